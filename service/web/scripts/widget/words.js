// The panel's texts: a file for each language, of which a page loads its own.

import { FILES } from "./files.js";
import { languageOf, loadModule } from "./fetching.js";

let words = {};

/** A text in the reader's language, with its values filled in. */
export const t = (key, values = {}) => words[key].replace(/\{(\w+)\}/g, (found, name) => values[name] ?? found);

/** Load the texts for a language (of the page when left out); returns the language. */
export async function loadWords(server, wanted) {
  const language = languageOf(FILES.texts, wanted);
  words = (await loadModule(server, FILES.texts[language])).default;
  return language;
}
