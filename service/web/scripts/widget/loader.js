// The chat widget's tag: a button, shortcuts, and the methods of window.Docsmith. Nothing else is loaded before the
// first use: hovering or focusing the button loads the panel, and so do a shortcut and every method that needs it.
//
//   <script src="https://HOST/widget.js" data-site="guide" data-key="KEY" async></script>
//
// Each option of `init` can be an attribute: data-hand-off is `handOff`. A tag without data-site waits for
// `Docsmith.init({ site, … })`.

import sheet from "./loader.css";
import { loadModule, languageOf } from "./fetching.js";
import { FILES } from "./files.js";

let script = document.currentScript; // an element of the page's text may have that name
if (!(script instanceof HTMLScriptElement)) script = document.querySelector("script[src*='/widget'][data-site]");
const server = script.dataset.server ?? script.src.replace(/\/widget(\/[\w-]+)?\.js([?#].*)?$/, "");
const listeners = new Set();
let [options, host, button, view, loading] = [];

/** Call the hooks; what they throw is not ours. */
function emit(type, detail = {}) {
  for (const [wanted, hook] of [...listeners]) {
    if (wanted !== type && wanted !== "event") continue;
    try {
      hook({ type, ...detail });
    } catch (error) {
      console.error(error);
    }
  }
}

/** Put the widget where the page has an element for it, else a button at the page's end. */
function mount() {
  const placed = document.querySelector("ask-docs");
  host = placed ?? document.createElement("ask-docs");
  host.isPlaced = placed;
  if (!placed) document.body.append(host);
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(sheet);
  root.adoptedStyleSheets = [style];
  button = document.createElement("button");
  Object.assign(button, { type: "button", className: "opener", ariaExpanded: "false" });
  const language = languageOf(FILES.labels, options.lang);
  button.append(icon(), options.labels?.trigger ?? options.label ?? FILES.labels[language]);
  button.dir = language === "ar" ? "rtl" : "ltr";
  const { side, accent } = { ...options, ...options.appearance };
  if (side === "left") button.style.insetInline = "20px auto";
  button.onpointerenter = button.onfocus = loadEarly;
  button.onclick = () => call(button.ariaExpanded === "true" ? "close" : "open", { source: "button" });
  root.replaceChildren(...(placed || /off|false/.test(options.button) ? [] : [button]));
  if (accent) host.style.setProperty("--docsmith-accent", accent);
  const mode = !placed && (kept(":open") || (options.defaultOpen && "ask"));
  if (mode) void call("open", { mode, focus: false, source: "reload" });
  else if (placed || kept("").includes('"streaming"')) loadEarly(); // the reply goes on
}

function unmount() {
  const old = host;
  [host, view, loading] = [];
  old?.shadowRoot.replaceChildren();
  if (!old?.isPlaced) old?.remove();
}

function icon() {
  const [svg, path] = ["svg", "path"].map((one) => document.createElementNS("http://www.w3.org/2000/svg", one));
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.ariaHidden = "true";
  path.setAttribute("d", "M4 3h16v14h-7l-5 4v-4H4zm3 4v2h10V7zm0 4v2h7v-2z");
  svg.append(path);
  return svg;
}

/** The panel's methods, once it is there. After a failure the next call tries again. */
function load() {
  const ours = host;
  if (!ours) return Promise.reject(new Error("Call Docsmith.init first."));
  loading ??= panelModule().then(async ({ createPanel }) => {
    const made = await createPanel({ host, button, options, server, emit });
    if (ours === host) view = made;
    else made.destroy();
    return view;
  });
  loading.catch((error) => {
    console.warn("Docsmith:", error.message);
    loading = null;
  });
  return loading;
}

const loadEarly = () => void load().catch(() => {});

/** The panel that this loader names; else that of the newest loader: the service may have been updated since. */
async function panelModule() {
  try {
    return await loadModule(server, FILES.panel);
  } catch (error) {
    if (script.integrity) throw error; // a page that names the bytes wants no others
    const newest = await (await fetch(`${server}/widget.js`, { cache: "reload" })).text();
    const name = /"panel":"([\w-]{43})"/.exec(newest)?.[1];
    if (!name) throw error;
    return loadModule(server, name);
  }
}

const call = async (method, ...given) => (await load())?.[method](...given);

const methods = {
  async init(given = {}) {
    if (options) return methods.update(given);
    options = { ...script.dataset, ...given };
    for (const [type, hook] of Object.entries(given.hooks ?? {})) methods.on(type, hook);
    if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
    mount();
    emit("init");
  },
  async destroy() {
    view?.destroy();
    unmount();
    options = null;
    emit("destroy");
  },
  /** Call a hook for one type of event, or for each with the type "event"; returns what ends that. */
  on(type, hook) {
    const one = [type, hook];
    listeners.add(one);
    return () => listeners.delete(one);
  },
};
for (const method of ["open", "close", "ask", "update", "reset"]) methods[method] = call.bind(null, method);

/** What was kept when the page was left: the conversations, or the mode in which the panel was open. */
function kept(what) {
  try {
    return sessionStorage.getItem(`docsmith:${options.site}${what}`) ?? "";
  } catch {
    return ""; // a page without storage
  }
}

addEventListener("keydown", (event) => {
  const mode = { k: "search", i: "ask" }[event.key?.toLowerCase()];
  if (!mode || !options || options.shortcuts === "off" || event.defaultPrevented || event.altKey || event.shiftKey) return;
  if (!(event.ctrlKey || event.metaKey) || event.target.isContentEditable) return; // in an editor they have a meaning
  event.preventDefault();
  void call("open", { mode, source: "shortcut" });
});

/** An element that a page adds or removes later, as pages do that are drawn by a script. */
class AskDocs extends HTMLElement {
  connectedCallback() { this.#move(this !== host); }
  disconnectedCallback() { this.#move(this === host); }

  #move(isNews) {
    if (!host || !isNews) return;
    view?.destroy();
    unmount();
    mount();
  }
}

if (!window.Docsmith?.init) { // an element with that id is there as well
  window.Docsmith = methods;
  customElements.define("ask-docs", AskDocs);
  if (script.dataset.site) void methods.init();
  dispatchEvent(new Event("docsmith:ready"));
}
