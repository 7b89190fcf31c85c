// Files of the widget, each checked against its address.

const [loads, again] = [{}, {}]; // by name

/**
 * Load a module of the widget by a script element, which checks its integrity; the import is then of the same module.
 * A browser keeps a load that failed: the next call asks for the file by another address.
 */
export const loadModule = (server, name) => (loads[name] ??= load(server, name).catch((error) => {
  delete loads[name];
  again[name] = (again[name] ?? "?again=") + 1;
  throw error;
}));

async function load(server, name) {
  const src = `${server}/widget/${name}.js` + (again[name] ?? "");
  const script = document.createElement("script");
  const integrity = `sha256-${name.replace(/-/g, "+").replace(/_/g, "/")}=`;
  await new Promise((onload, reject) => {
    const onerror = () => reject(new Error(`${src} cannot be loaded.`));
    Object.assign(script, { type: "module", crossOrigin: "anonymous", integrity, src, onload, onerror });
    document.head.append(script);
  }).finally(() => script.remove());
  return import(src);
}

/** The language of the page, if texts have it; else English. */
export function languageOf(texts, wanted) {
  const tag = (wanted || document.documentElement.lang || "en").toLowerCase();
  return [tag, tag.split("-")[0]].find((one) => Object.hasOwn(texts, one)) ?? "en";
}
