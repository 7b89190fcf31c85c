// Runs the loader, as it is served, in a page whose text has an element with a name that the loader reads; prints where
// the panel is loaded from. The page does nothing else: each of its parts answers with another such part.

import { readFileSync } from "node:fs";
import vm from "node:vm";

class HTMLScriptElement {}
class HTMLElement {}

const part = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === Symbol.iterator ? [][Symbol.iterator] : part),
  set: () => true, apply: () => part, construct: () => ({}),
});
const tag = Object.assign(new HTMLScriptElement(), { src: "https://docs.example/widget.js", dataset: { site: "guide" }, integrity: "sha256-" });
const named = { src: "https://evil.example/widget.js", dataset: { server: "https://evil.example", site: "guide" } };
const document = {
  currentScript: tag, readyState: "complete", documentElement: { lang: "en" }, body: part,
  querySelector: (selector) => (selector.startsWith("script") ? tag : null),
  createElementNS: () => part,
  createElement: (name) => (name === "script" ? { remove() {} } : { style: part, append() {}, attachShadow: () => part }),
  head: { append: (script) => { console.log(script.src); script.onerror(); } },
};
const page = {
  document, HTMLScriptElement, HTMLElement, customElements: { define() {} }, sessionStorage: { getItem: () => "ask" },
  CSSStyleSheet: class { replaceSync() {} }, Event: class {}, addEventListener() {}, dispatchEvent() {}, console: { warn() {}, error() {} },
};
page.window = page;
(process.argv[3] === "Docsmith" ? page : document)[process.argv[3]] = named;
process.on("unhandledRejection", () => {}); // the panel cannot be loaded
vm.runInNewContext(readFileSync(process.argv[2], "utf-8"), page);
