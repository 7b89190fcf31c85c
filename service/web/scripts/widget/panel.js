// The widget's panel: asking and searching in one box. The loader calls `createPanel` once; its methods are those of
// window.Docsmith.
//
// How the parts plug in:
// - texts/LANGUAGE.json: every text, by a key in English camelCase; `t(key, values)` of words.js returns one. Each is a
//   file of its own, loaded for a page in its language; without it there is no panel.
// - highlight.js: `highlight(codeElement)` colours a code block in place; loaded with the first block of an answer.
// - options.js: the options' names. The site's own settings come below those of the page, in the same shape.
// - assistant.js asks, streams, resumes and keeps threads. markdown.js makes nodes of its text; loaded with the first
//   answer.

import { createAssistant } from "../assistant.js";
import { opening, QuestionView, ReplyView } from "./answers.js";
import { loadModule } from "./fetching.js";
import { FILES } from "./files.js";
import { Follower } from "./following.js";
import { baseOf, linksBelow } from "./links.js";
import { blanked, button, iconButton, make, note } from "./nodes.js";
import { handOffLink, merged, normalized } from "./options.js";
import { pushPage } from "./pushing.js";
import { Speaker } from "./speech.js";
import { followTheme } from "./theme.js";
import { loadWords, t } from "./words.js";
import sheet from "./panel.css";

const RTL = ["ar", "fa", "he", "ur"];
const [MAX_SELECTION, SHOWN_SELECTION] = [4_000, 120];
const PATIENCE = 1_500; // milliseconds for the site's settings

/** `host` is the element, `button` the loader's; `emit(type, detail)` calls the page's hooks. */
export async function createPanel({ host, button: opener, options, server, emit }) {
  const settings = siteSettings(server, options);
  const [language, known] = await Promise.all([loadWords(server, options.lang), Promise.race([settings, later(PATIENCE)])]);
  const panel = new Panel({ host, opener, options, server, emit, language, settings: known });
  if (!known) void settings.then(panel.setDefaults);
  return panel;
}

const later = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What the site's owner chose; nothing where that cannot be read. */
async function siteSettings(server, { site, key }) {
  try {
    const headers = key ? { Authorization: `Bearer ${key}` } : {};
    const response = await fetch(`${server}/discovery/v1/widget/${encodeURIComponent(site)}`, { headers });
    return response.ok ? await response.json() : {};
  } catch {
    return {};
  }
}

class Panel {
  #host; #opener; #settings; #given; #options; #emit; #language; #site; #server;
  #views = []; #isDrawn = false; #mode = "ask"; #before = null; #selection = ""; #isNew = false; #source = ""; #writer;
  #theme; #push; #follower; #onSelection; #shared; #finding = null; #hasShortcuts;

  constructor({ host, opener, options, server, emit, language, settings = {} }) {
    [this.#host, this.#opener, this.#emit, this.#language, this.#server] = [host, opener, emit, language, server];
    this.#site = options.site;
    this.#hasShortcuts = options.shortcuts !== "off";
    this.#given = normalized(options);
    this.#settings = normalized(settings);
    this.#writer = settings.answeredBy;
    this.#options = merged(this.#settings, this.#given);
    const { site, key, reader } = options;
    this.assistant = createAssistant({ site, key, reader, server, readerTokens: settings.readerTokens });
    this.#build();
    this.#watch();
    this.#configure();
    this.#draw();
    if (this.#isInline) this.#show();
    void this.assistant.resume();
  }

  // What views call

  link = (url) => linksBelow(baseOf(this.#options.base))(url);

  emit = (type, detail) => this.#emit(type, { source: this.#source || "widget", threadId: this.assistant.getSnapshot().threadId, ...detail });

  say = (text, isShown = false) => {
    this.speaker.say(text);
    if (!isShown) return;
    this.status.textContent = text;
    setTimeout(() => { if (this.status.textContent === text) this.status.textContent = ""; }, 4_000);
  };

  fail = (error) => this.say(this.words(error), true);

  /** An error in the reader's words; what only a developer can mend is said in the console. */
  words = ({ code, message, status }) => {
    if (code === "connection_lost") return t("errorUnreachable");
    if (code === "reply_broken") return t("errorBroken");
    if (status === 429) return t("errorTooMany");
    console.warn("Docsmith:", message);
    if (!status && !code) return t("errorUnreachable");
    if (status >= 500) return t("errorUnavailable");
    return t([401, 403, 404].includes(status) ? "errorRefused" : "errorOther");
  };

  rate = async (id, rating, comment) => {
    await this.assistant.submitFeedback(id, rating, comment);
    if (!comment) this.say(t("rated"));
  };

  // Methods of window.Docsmith

  open = ({ mode = "ask", focus = true, source = "" } = {}) => {
    this.#source = source;
    this.#takeSelection();
    if (!this.#isOpen) {
      this.#before = document.activeElement;
      this.#show();
      this.emit("open");
    }
    this.#switch(mode === "search" ? "search" : "ask");
    this.#remember();
    if (focus) this.#focus();
  };

  close = () => {
    if (!this.#isOpen || this.#isInline) return;
    const hadFocus = this.#host.shadowRoot.activeElement && this.#host.shadowRoot.activeElement !== this.#opener;
    this.#hide();
    this.#opener.ariaExpanded = "false";
    this.#remember();
    const target = this.#before?.isConnected && this.#before !== document.body && this.#before !== this.#host ? this.#before : this.#opener;
    if (hadFocus) target.focus();
    this.emit("close");
  };

  ask = async (question, { open = true, focus = true, source = "" } = {}) => {
    if (open) this.open({ focus, source });
    this.#switch("ask");
    await this.#ask(String(question));
  };

  update = ({ hooks, ...more } = {}) => {
    for (const [type, hook] of Object.entries(hooks ?? {})) window.Docsmith.on(type, hook);
    this.#given = { ...this.#given, ...normalized(more) };
    this.#options = merged(this.#settings, this.#given);
    this.#configure();
    this.#drawSoon();
    this.emit("update");
  };

  setDefaults = (settings) => {
    this.#settings = normalized(settings);
    this.#writer = settings.answeredBy;
    this.#options = merged(this.#settings, this.#given);
    this.#configure();
    this.#drawSoon();
  };

  reset = () => {
    this.assistant.newThread();
    this.#selection = "";
    this.emit("reset");
    this.#drawSoon();
  };

  destroy = () => {
    this.assistant.destroy();
    this.#theme.end();
    this.#push.end();
    document.removeEventListener("selectionchange", this.#onSelection);
    this.box.remove();
  };

  // The box

  #build() {
    const style = new CSSStyleSheet();
    style.replaceSync(sheet);
    const root = this.#host.shadowRoot;
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, style];
    this.title = make("h2", { id: "title" });
    this.tabs = Object.fromEntries(["ask", "search"].map((mode) => [mode, button(t(mode), () => { this.#switch(mode); this.#focus(); }, { role: "tab", id: `tab-${mode}` })]));
    for (const [mode, tab] of Object.entries(this.tabs)) tab.setAttribute("aria-controls", mode);
    this.fresh = iconButton("add", t("newThread"), () => { this.reset(); this.#switch("ask"); this.#focus(); });
    this.closing = iconButton("close", t("close"), this.close);
    const tabs = make("div", { class: "tabs", role: "tablist", ariaLabel: t("title") }, this.tabs.ask, this.tabs.search);
    tabs.onkeydown = (event) => {
      if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
      this.#switch(this.#mode === "ask" ? "search" : "ask");
      this.tabs[this.#mode].focus();
    };
    const head = make("header", {}, this.title, tabs, this.fresh, this.closing);

    this.empty = make("div", { class: "empty" });
    this.messages = make("div", { class: "messages" });
    this.problem = make("p", { class: "problem", role: "alert", hidden: true });
    this.log = make("div", { class: "scroll log", role: "region", ariaLabel: t("conversation"), tabIndex: 0 }, this.empty, (this.talk = make("div", {}, this.messages, this.problem)));
    this.question = make("textarea", { id: "question", rows: 1, maxLength: 32_768, ariaLabel: t("questionLabel"), enterKeyHint: "send", "aria-describedby": "hint" });
    this.send = make("button", { class: "icon send", ariaLabel: t("ask"), title: t("ask") });
    this.send.append(iconButton("send", "", null).firstChild);
    this.stop = iconButton("stop", t("stop"), () => { this.assistant.stop(); this.question.focus(); }, { hidden: true });
    this.stop.classList.add("send");
    this.about = make("div", { class: "about", hidden: true });
    this.disclaimer = make("p", { class: "note" });
    this.support = make("a", { class: "support", hidden: true });
    const hint = make("span", { id: "hint", hidden: true }, t("questionHint"));
    this.form = make("form", {}, this.about, make("div", { class: "field" }, this.question, this.send, this.stop), hint);
    const asking = make("div", { id: "ask", role: "tabpanel", "aria-labelledby": "tab-ask" }, this.log, this.form);
    const { assistant, link, say, emit, fail, rate, words } = this;
    const ask = (text) => { this.#switch("ask"); this.#focus(); void this.#ask(text); };
    this.#shared = { assistant, server: this.#server, link, say, emit, fail, rate, words, ask };
    this.#shared.parts = { make, button, note, blanked, opening, t };
    const searching = make("div", { id: "search", role: "tabpanel", "aria-labelledby": "tab-search", hidden: true });
    this.panes = { ask: asking, search: searching };

    this.status = make("p", { class: "status" });
    const spoken = make("div", { class: "unseen", role: "log", ariaLive: "polite" });
    this.speaker = new Speaker(spoken);
    const foot = make("footer", {}, this.status, this.disclaimer, this.support);
    this.box = make("dialog", { class: "panel", "aria-labelledby": "title", lang: this.#language, dir: RTL.includes(this.#language) ? "rtl" : "ltr" }, make("i", { class: "probe" }), head, asking, searching, foot, spoken);
    root.append(this.box);
  }

  #watch() {
    this.form.onsubmit = (event) => {
      event.preventDefault();
      void this.#ask(this.question.value);
    };
    this.question.onkeydown = (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      void this.#ask(this.question.value);
    };
    this.box.onkeydown = (event) => {
      if (event.key === "Escape" && !this.#isInline) {
        event.preventDefault();
        this.close();
      }
      event.stopPropagation(); // the page's own shortcuts are for the page
      const mode = { k: "search", i: "ask" }[event.key.toLowerCase()];
      if (mode && this.#hasShortcuts && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
        event.preventDefault();
        this.open({ mode, source: "shortcut" });
      }
    };
    this.box.oncancel = (event) => {
      event.preventDefault();
      this.close();
    };
    this.box.onclick = (event) => {
      if (event.target === this.box && this.box.matches(":modal")) this.close();
      const link = event.target.closest?.("a");
      if (link && this.messages.contains(link)) this.emit("navigate", { source: "answer" });
    };
    // Where the window is low, the box scrolls as a whole.
    this.#follower = new Follower(this.talk, () => (getComputedStyle(this.log).overflowY === "auto" ? this.log : this.box));
    this.log.onscroll = this.box.onscroll = this.#follower.noteScroll;
    this.#onSelection = () => { if (this.#isOpen) this.#takeSelection(); };
    document.addEventListener("selectionchange", this.#onSelection);
    this.assistant.subscribe(() => this.#drawSoon());
    this.assistant.on("ask", () => { this.speaker.begin(); this.say(t("questionSent")); });
    this.assistant.on("retry", () => { this.#isNew = true; this.speaker.begin(); });
    this.assistant.on("stop", () => { this.#isLive = false; this.speaker.begin(); this.say(t("answerStopped")); });
    this.assistant.on("error", () => this.speaker.begin());
    for (const type of ["ask", "retry", "reply", "stop", "error", "feedback", "search"]) {
      this.assistant.on(type, ({ type: _, ...detail }) => this.emit(type, detail));
    }
  }

  /** Show what the options say. */
  #configure() {
    const options = this.#options;
    if (this.#host.isPlaced) options.form = "inline";
    else if (options.form === "inline") options.form = "side"; // there is no place for it
    const set = (name, value) => (value === undefined ? this.#host.style.removeProperty(name) : this.#host.style.setProperty(name, value));
    set("--docsmith-accent", options.accent);
    set("--docsmith-radius", options.radius);
    set("--docsmith-font", options.font);
    set("--docsmith-z-index", options.zIndex);
    this.title.textContent = options.title ?? t("title");
    this.question.placeholder = options.placeholder ?? t("questionLabel");
    const notice = this.#writer ? t(this.#writer === "model" ? "disclaimer" : "quoted") : ""; // it is said when it is known
    this.disclaimer.textContent = options.disclaimer === false || options.disclaimer === "" ? "" : options.disclaimer ?? notice;
    this.#host.classList.toggle("inline", options.form === "inline");
    this.closing.hidden = options.form === "inline";
    const hasOtherLayer = this.#isOpen && (this.box.dataset.form === "modal") !== (options.form === "modal");
    this.box.dataset.form = options.form;
    this.box.dataset.side = options.side === "left" ? "left" : "right";
    this.#opener.style.insetInline = options.side === "left" ? "20px auto" : "";
    if (this.#opener.lastChild) this.#opener.lastChild.data = options.label ?? t("ask");
    this.#push ??= pushPage(this.box, () => this.#isOpen && this.#options.form === "side" && this.#options.push);
    this.#theme ??= followTheme(this.#host, this.box, () => this.#options.theme);
    this.#theme.show();
    if (hasOtherLayer) this.#showAgain();
    this.#push.show();
  }

  /** Open it in the way that its form needs now; the focus stays. */
  #showAgain() {
    const focused = this.#host.shadowRoot.activeElement;
    this.#hide();
    this.#show();
    focused?.focus();
    this.#remember();
  }

  get #isInline() { return this.#options.form === "inline"; }

  get #isOpen() { return this.box.open || this.box.matches(":popover-open"); }

  #show() {
    const { form } = this.#options;
    if (form === "modal") {
      this.box.removeAttribute("popover");
      this.box.showModal();
    } else if (form === "inline" || !this.box.showPopover) {
      this.box.show();
    } else {
      this.box.popover = "manual"; // above all of the page, whatever its z-index
      this.box.showPopover();
    }
    this.#opener.ariaExpanded = "true";
    this.#theme.show();
    this.#push.show();
    this.#toLast();
  }

  #hide() {
    if (this.box.open) this.box.close();
    else this.box.hidePopover?.();
    this.#push.show();
  }

  #switch(mode) {
    this.#mode = mode;
    if (mode === "search") this.#search().catch(this.fail);
    for (const one of ["ask", "search"]) {
      this.panes[one].hidden = one !== mode;
      this.tabs[one].ariaSelected = String(one === mode);
      this.tabs[one].tabIndex = one === mode ? 0 : -1;
    }
    this.disclaimer.hidden = mode === "search";
    this.#drawSoon();
  }

  #focus() {
    if (this.#mode === "search") this.#search().then((view) => view.focus(), this.fail);
    else this.question.focus();
  }

  /** The view of searching; its file is loaded when it is needed first. */
  #search() {
    this.#finding ??= loadModule(this.#server, FILES.search).then(({ createSearch }) => {
      const view = createSearch(this.#shared);
      this.panes.search.append(view.element);
      return view;
    });
    this.#finding.catch(() => { this.#finding = null; });
    return this.#finding;
  }

  /** Whether the panel is open stays over a reload, except where it covers the page. */
  #remember() {
    try {
      if (this.#isOpen && this.#options.form !== "modal") sessionStorage.setItem(`docsmith:${this.#site}:open`, this.#mode);
      else sessionStorage.removeItem(`docsmith:${this.#site}:open`);
    } catch {
      // a page without storage
    }
  }

  // Asking

  #takeSelection() {
    const selected = document.getSelection();
    const own = this.#host.shadowRoot.getSelection?.() ?? selected; // a browser's own words for what is in our shadow
    const isOurs = this.#host.shadowRoot.contains(own?.anchorNode) || this.#host.contains(selected?.anchorNode);
    const text = selected?.toString().trim().slice(0, MAX_SELECTION) ?? "";
    if (this.#host === document.activeElement && (!text || isOurs)) return; // focus in the panel ends no selection
    if (text === this.#selection) return;
    this.#selection = text;
    this.#drawSoon();
  }

  async #ask(text) {
    if (this.assistant.isBusy || !text.trim()) return;
    this.question.value = "";
    this.#isNew = true;
    this.assistant.setContext({ path: location.pathname, selection: this.#selection || undefined, filter: this.#options.filter });
    this.#selection = "";
    await this.assistant.send(text.trim());
  }

  // Drawing, once for each frame at most

  #drawSoon() {
    if (!this.#isDrawn) requestAnimationFrame(() => this.#draw());
    this.#isDrawn = true;
  }

  #draw() {
    this.#isDrawn = false;
    const snapshot = this.assistant.getSnapshot();
    const { messages: all, status, error } = snapshot;
    const isBusy = status === "waiting" || status === "streaming";
    if (this.#views.length > all.length || this.#views.some((view, index) => view.role !== all[index].role || (view.role === "user" && view.id !== all[index].id))) {
      this.#views = [];
      this.messages.replaceChildren();
      this.talk.style.minHeight = "";
      this.speaker.begin(isBusy ? 0 : Infinity);
    }
    all.forEach((message, index) => {
      if (!this.#views[index]) {
        const view = message.role === "user" ? new QuestionView(message) : new ReplyView(this.#shared);
        this.#views[index] = view;
        this.messages.append(view.element);
      }
      this.#views[index].show(message, index === all.length - 1);
    });
    const last = all.at(-1);
    if (last?.role === "assistant" && this.#isLive && !error) this.speaker.follow(last.text, !isBusy);
    this.#isLive = isBusy;
    this.messages.ariaBusy = String(isBusy);
    const hadFocus = [this.stop, this.send].includes(this.#host.shadowRoot.activeElement);
    [this.stop.hidden, this.send.hidden] = [!isBusy, isBusy];
    if (hadFocus) this.question.focus();
    this.#drawAround(snapshot);
    this.#drawProblem(snapshot);
    if (this.#isNew) this.#toLast();
    else if (isBusy && last.text) this.#follower.follow(this.#views.at(-1).element);
    this.#isNew = false;
  }

  #isLive = false;
  #around = "";

  /** What changes seldom: drawn again when what it shows has changed. */
  #drawAround({ messages, chatId, threadId }) {
    const key = JSON.stringify([!messages.length, chatId, threadId, this.#selection, this.#options]);
    if (key === this.#around) return;
    this.#around = key;
    this.fresh.hidden = !messages.length;
    this.empty.hidden = messages.length > 0;
    this.empty.replaceChildren(...(messages.length ? [] : this.#greeting()));
    this.about.hidden = !this.#selection;
    const shown = this.#selection.replace(/\s+/g, " ");
    this.about.replaceChildren(
      make("span", { class: "unseen" }, t("selection")),
      make("q", {}, shown.length > SHOWN_SELECTION ? `${shown.slice(0, SHOWN_SELECTION)}…` : shown),
      iconButton("close", t("removeSelection"), () => { this.#selection = ""; this.#drawSoon(); this.question.focus(); }),
    );
    const href = handOffLink(this.#options, threadId, this.title.textContent);
    this.support.hidden = !href;
    if (href) Object.assign(this.support, { href, textContent: t("handOff"), target: href.startsWith("http") ? "_blank" : "", rel: "noopener" });
  }

  #greeting() {
    const found = [make("p", { class: "greeting" }, this.#options.greeting ?? t("greeting"))];
    const list = (label, items) => make("section", { ariaLabel: label }, make("h3", {}, label), make("ul", { class: "suggestions" }, ...items));
    const questions = (this.#options.suggestions).slice(0, 6);
    if (questions.length) found.push(list(t("suggestions"), questions.map((one) => make("li", {}, button(one, () => { this.#focus(); void this.#ask(one); }, { class: "suggestion" })))));
    const threads = this.assistant.getThreads();
    if (threads.length) found.push(list(t("threads"), threads.map((one) => this.#thread(one))));
    return found;
  }

  #thread({ chatId, title }) {
    const open = () => { this.speaker.begin(Infinity); this.assistant.openThread(chatId); this.#isNew = true; this.#focus(); };
    const forget = () => { this.assistant.forgetThread(chatId); this.#around = ""; this.#drawSoon(); this.question.focus(); };
    return make("li", { class: "thread" }, button(title, open, { class: "suggestion" }), iconButton("close", t("forgetThread", { title }), forget));
  }

  #drawProblem({ error, waitingSeconds, isSlow }) {
    const text = error ? this.#problemOf(error) : waitingSeconds ? t("waiting", { seconds: waitingSeconds }) : isSlow ? t("stillWaiting") : "";
    if (this.problem.textContent === text) return;
    this.problem.className = error ? "problem" : "note";
    this.problem.textContent = text;
    this.problem.hidden = !text;
  }

  #problem = {};

  #problemOf(error) {
    if (this.#problem.error !== error) this.#problem = { error, text: this.words(error) };
    return this.#problem.text;
  }

  /** Bring the last question into view. */
  #toLast() {
    const asked = this.#views.findLast((view) => view.role === "user");
    if (asked) this.#follower.begin(asked.element);
  }
}
