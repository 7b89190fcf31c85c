// The panel's texts: English is here, other languages are loaded when the page is in one of them.

import en from "./texts/en.json";
import { FILES } from "./files.js";
import { languageOf, loadModule } from "./fetching.js";

let words = en;
let loaded = "en";

/** A text in the reader's language, with its values filled in. */
export function t(key, values = {}) {
  return (words[key] ?? en[key]).replace(/\{(\w+)\}/g, (found, name) => values[name] ?? found);
}

/** Load the texts for a language (of the page when left out); returns the language. English stays if they cannot be loaded. */
export async function loadWords(server, wanted) {
  const language = languageOf(["en", ...Object.keys(FILES.texts)], wanted);
  if (language === loaded) return loaded;
  try {
    words = language === "en" ? en : (await loadModule(server, FILES.texts[language])).default;
    loaded = language;
  } catch (error) {
    console.warn("Docsmith:", error.message);
  }
  return loaded;
}
