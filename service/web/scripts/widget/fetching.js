// Files of the widget, each checked against its address.

/** Load a module of the widget by a script element, which checks its integrity; the import is then of the same module. */
export async function loadModule(server, name) {
  const src = `${server}/widget/${name}.js`;
  await new Promise((resolve, reject) => {
    const integrity = `sha256-${name.replace(/-/g, "+").replace(/_/g, "/")}=`;
    const script = document.createElement("script");
    Object.assign(script, { type: "module", crossOrigin: "anonymous", integrity, src, onload: resolve });
    script.onerror = () => reject(new Error(`${src} cannot be loaded.`));
    document.head.append(script);
  });
  return import(src);
}

/** The language of the page, if texts have it; else English. */
export function languageOf(texts, wanted) {
  const tag = (wanted || document.documentElement.lang || "en").toLowerCase();
  return [tag, tag.split("-")[0]].find((one) => Object.hasOwn(texts, one)) ?? "en";
}
