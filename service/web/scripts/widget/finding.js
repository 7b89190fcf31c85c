// Keyword search as the reader types: results are links, and the arrow keys lead from one to the next. Loaded with the
// first search; so it has what it needs of the panel's file from the panel.

const [DELAY, BEFORE, LENGTH] = [120, 50, 180];

/**
 * The view of searching. `panel` has: assistant, link(url), ask(text), say(text), words(error), emit(type, detail), and
 * as `parts` what makes nodes: make, button, note, blanked, opening, t.
 */
export const createSearch = (panel) => new SearchView(panel);

class SearchView {
  #panel; #timer = 0; #call = null; #query = "";

  constructor(panel) {
    this.#panel = panel;
    const { make, t } = panel.parts;
    this.input = make("input", { type: "search", id: "words", autocomplete: "off", ariaLabel: t("searchLabel"), placeholder: t("searchLabel"), enterKeyHint: "search", maxLength: 400 });
    this.results = make("ul", { class: "results", ariaLabel: t("searchResults") });
    this.below = make("div", { class: "below" });
    this.form = make("form", { class: "searching", role: "search" }, this.input);
    this.element = make("div", { class: "find" }, this.form, make("div", { class: "scroll" }, this.results, this.below));
    this.results.hidden = true;
    this.input.oninput = () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.#search(), DELAY);
    };
    this.form.onsubmit = (event) => {
      event.preventDefault();
      void this.#open();
    };
    this.element.onkeydown = (event) => this.#move(event);
    this.results.onclick = (event) => {
      const link = event.target.closest("a");
      if (link) panel.emit("navigate", { source: "search" });
    };
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  /** Enter opens the first result, and where there is none, asks. */
  async #open() {
    clearTimeout(this.#timer);
    if (this.#query !== this.input.value.trim()) await this.#search();
    const first = this.results.querySelector("a") ?? this.below.querySelector("button");
    first?.click();
  }

  #move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [this.input, ...this.results.querySelectorAll("a"), ...this.below.querySelectorAll("button")];
    const at = stops.indexOf(event.target.getRootNode().activeElement);
    event.preventDefault();
    stops[(at + step + stops.length) % stops.length].focus();
  }

  async #search() {
    const query = (this.#query = this.input.value.trim());
    this.#call?.abort();
    if (!query) return this.#show([]);
    const call = (this.#call = new AbortController());
    try {
      const found = await this.#panel.assistant.search(query, { signal: call.signal });
      if (call === this.#call) this.#show(found);
    } catch (error) {
      if (!call.signal.aborted) this.#show([], this.#panel.words(error));
    }
  }

  #show(found, problem = "") {
    const { make, button, note, t } = this.#panel.parts;
    this.results.replaceChildren(...found.map((one) => make("li", {}, this.#result(one))));
    this.results.hidden = !found.length;
    const query = this.#query;
    const below = [];
    if (problem) below.push(make("p", { class: "problem" }, problem));
    else if (query && !found.length) below.push(note(t("searchEmpty")));
    if (query) below.push(button(t("askInstead", { query }), () => this.#panel.ask(query), { class: "suggestion" }));
    this.below.replaceChildren(...below);
    if (query) this.#panel.say(problem || (found.length ? t("searchCount", { count: found.length }) : t("searchEmpty")));
  }

  #result({ content, metadata }) {
    const { make, blanked, opening } = this.#panel.parts;
    const { title, heading, url, highlights = {} } = metadata;
    const marked = (text, ranges) => piecesOf(text, ranges).map((one, index) => (index % 2 ? make("mark", {}, one) : one));
    const href = this.#panel.link(url);
    const parts = [make("span", { class: "page" }, ...marked(title, highlights.title))];
    if (heading && heading !== title) parts.push(make("span", { class: "heading" }, " › ", ...marked(heading, highlights.heading)));
    const text = blanked(content);
    let start = Math.max(0, (highlights.content?.[0]?.start ?? 0) - BEFORE);
    if (start) start += /^(\S{0,20}\s+)?/.exec(text.slice(start))[0].length; // to the next word, where words are apart
    const ranges = (highlights.content ?? []).map(({ start: from, end }) => ({ start: from - start, end: end - start }));
    parts.push(make("span", { class: "snippet" }, ...marked(text.slice(start, start + LENGTH), ranges)));
    return href ? make("a", { class: "card", href, ...opening(href) }, ...parts) : make("div", { class: "card" }, ...parts);
  }
}

/** A text in pieces: every second one is in these ranges. */
function piecesOf(text, ranges = []) {
  const pieces = [];
  let at = 0;
  for (const { start, end } of ranges) {
    if (start < at || end > text.length) continue;
    pieces.push(text.slice(at, start), text.slice(start, end));
    at = end;
  }
  return [...pieces, text.slice(at)];
}
