// The views of a conversation: each shows one message, and changes as its message changes.

import { FILES } from "./files.js";
import { loadModule } from "./fetching.js";
import { blanked, button, copyText, iconButton, make, note } from "./nodes.js";
import { t } from "./words.js";

const SNIPPET = 140;
const REASONS = ["Wrong", "Outdated", "Incomplete", "Unclear", "OffTopic"];
const PARTS = ["status", "sources", "checks", "rating", "searching", "suggestions"];

export class QuestionView {
  role = "user";

  constructor({ id, text }) {
    this.id = id;
    this.element = make("article", { class: "asked" }, make("h3", {}, text));
  }

  show() {}
}

/** `panel` has: assistant, server, link(url), ask(text), say(text), fail(error). */
export class ReplyView {
  role = "assistant";
  #panel; #shown = {}; #isRating = false; #movable = (text) => text;

  constructor(panel) {
    this.#panel = panel;
    this.text = make("div", { class: "prose", dir: "auto" });
    this.rest = make("div", { class: "rest" });
    this.element = make("article", { class: "reply", ariaLabel: t("answer") }, this.text, this.rest);
    this.markdown = { update: (text) => { this.text.textContent = text; } }; // its marks are shown until the module is there
    loadModule(panel.server, FILES.markdown).then(({ createMarkdown, movable }) => {
      this.text.replaceChildren();
      this.#movable = movable;
      this.markdown = createMarkdown(this.text, { link: panel.link, code: (code) => this.#decorate(code), named: (link) => this.#name(link) });
      this.markdown.update(this.#shown.reply?.text ?? "");
    }, () => {}); // or stay, if it cannot be loaded
  }

  /** A citation shows a number: its name is that of its source. */
  #name(link) {
    const number = link.textContent;
    if (!/^\d+$/.test(number)) return;
    const pageOf = (url) => url.split("#")[0];
    const { sources } = this.#shown.reply;
    const source = sources.find((one) => one.number === Number(number));
    const page = source ?? sources.find((one) => pageOf(this.#panel.link(one.url)) === pageOf(link.getAttribute("href")));
    if (page) link.ariaLabel = link.title = `${number}: ${source ? namesOf(source).join(" › ") : page.title}`;
  }

  /** Colour a code block, and add a button that copies it; what colours is loaded with the first block. */
  #decorate(code) {
    const text = code.textContent;
    const copy = iconButton("copy", t("copy"), () => this.#copy(text));
    code.before(copy);
    loadModule(this.#panel.server, FILES.highlight).then(({ highlight }) => highlight(code)).catch(() => {}); // plain code
  }

  #absolute = (url) => {
    const href = this.#panel.link(url);
    return href && new URL(href, location.href).href;
  };

  async #copy(text) {
    this.#panel.say(t((await copyText(text)) ? "copied" : "copyFailed"), true);
  }

  show(reply, isLast) {
    const before = this.#shown;
    if (before.reply === reply && before.isLast === isLast) return;
    this.#shown = { reply, isLast };
    this.markdown.update(reply.text);
    const isSame = before.reply && before.isLast === isLast && PARTS.every((name) => before.reply[name] === reply[name]);
    if (isSame && Boolean(before.reply.text) === Boolean(reply.text)) return;
    this.#redraw();
  }

  #redraw() {
    const { reply, isLast } = this.#shown;
    const root = this.rest.getRootNode();
    const focused = this.rest.contains(root.activeElement) ? root.activeElement.dataset.name : "";
    const open = new Set([...this.rest.querySelectorAll("details[open]")].map((one) => one.className));
    this.rest.replaceChildren(...this.#around(reply, isLast));
    for (const one of this.rest.querySelectorAll("details")) one.open ||= open.has(one.className);
    if (focused) this.rest.querySelector(`[data-name="${focused}"]`)?.focus();
  }

  #around(reply, isLast) {
    if (reply.status === "streaming") {
      if (reply.text) return [];
      return [make("p", { class: "note working" }, reply.searching ? t("searching", { query: reply.searching }) : t("reading"))];
    }
    const found = [];
    if (reply.status === "stopped") found.push(note(t("stopped")));
    if (reply.finishReason === "length") found.push(note(t("cut")));
    if (reply.text && reply.sources.length) found.push(this.#sources(reply.sources));
    if (reply.checks?.unsupported) found.push(this.#checks(reply.checks));
    if (isLast && reply.suggestions.length) found.push(this.#related(reply.suggestions));
    return [...found, ...this.#actions(reply, isLast)];
  }

  #sources(sources) {
    const cards = sources.map((source) => {
      const { number, url, passage } = source;
      const [page, section] = namesOf(source);
      const href = this.#panel.link(url);
      const parts = [
        make("span", { class: "number" }, String(number)),
        make("span", { class: "page" }, page, ...(section ? [make("span", { class: "heading" }, ` › ${section}`)] : [])),
        make("span", { class: "snippet" }, blanked(passage.slice(0, 4 * SNIPPET)).replace(/\s+/g, " ").trim().slice(0, SNIPPET)),
      ];
      const card = href ? make("a", { class: "card", href, ...opening(href) }, ...parts) : make("div", { class: "card" }, ...parts);
      return make("li", {}, card);
    });
    const list = make("ol", {}, ...cards);
    const summary = make("summary", {}, `${t("sources")} (${sources.length})`);
    return make("details", { class: "sources", open: true }, summary, list);
  }

  #checks({ supported, partly, unsupported, sentences }) {
    const listed = sentences.filter((one) => one.status === "unsupported").map((one) => make("li", {}, one.text));
    const summary = make("summary", {}, t("checked", { count: unsupported, total: supported + partly + unsupported }));
    return make("details", { class: "checks" }, summary, make("ul", { dir: "auto" }, ...listed));
  }

  #related(suggestions) {
    const buttons = suggestions.slice(0, 6).map(({ label }) => make("li", {}, button(label, () => this.#panel.ask(label), { class: "suggestion" })));
    return make("section", { ariaLabel: t("related") }, make("h4", {}, t("related")), make("ul", { class: "suggestions" }, ...buttons));
  }

  #actions(reply, isLast) {
    const row = make("div", { class: "actions" });
    const found = [row];
    const isWhole = reply.status !== "broken" && reply.text && reply.finishReason !== "error";
    if (reply.id && reply.text) {
      row.append(this.#thumb(reply, "up", "helpful"), this.#thumb(reply, "down", "notHelpful"));
      row.append(iconButton("copy", t("copy"), () => this.#copy(this.#movable(reply.text, this.#absolute)), { "data-name": "copy" }));
    }
    const retry = () => void this.#panel.assistant.retry();
    if (isLast) row.append(isWhole ? iconButton("retry", t("askAgain"), retry, { "data-name": "retry" }) : button(t("retry"), retry, { "data-name": "retry" }));
    if (reply.rating && !this.#isRating) found.push(note(t("rated")));
    if (this.#isRating) found.push(this.#reason(reply));
    return found;
  }

  #thumb(reply, rating, label) {
    const rate = () => {
      this.#isRating = rating === "down";
      this.#panel.rate(reply.id, rating).then(() => {
        this.#redraw();
        this.rest.querySelector("form button")?.focus();
      }, this.#panel.fail);
    };
    return iconButton(rating, t(label), rate, { "data-name": rating, ariaPressed: String(reply.rating === rating) });
  }

  #reason(reply) {
    const text = make("input", { id: `reason-${reply.id}`, maxLength: 2000, autocomplete: "off", "data-name": "reason" });
    const toggle = ({ currentTarget: one }) => { one.ariaPressed = String(one.ariaPressed === "false"); };
    const presets = REASONS.map((name) => button(t(`reason${name}`), toggle, { ariaPressed: "false", "data-name": name }));
    const group = make("div", { role: "group", ariaLabel: t("reasonLabel") }, ...presets);
    const form = make("form", { class: "reason" }, make("label", { htmlFor: text.id }, t("reasonLabel")), group, text, make("button", {}, t("send")));
    form.onsubmit = (event) => {
      event.preventDefault();
      const chosen = presets.filter((one) => one.ariaPressed === "true").map((one) => one.dataset.name);
      const comment = `${chosen.length ? "[" + chosen.join(", ") + "] " : ""}${text.value}`.trim();
      if (!comment) return;
      this.#panel.rate(reply.id, "down", comment).then(() => {
        this.#isRating = false;
        form.replaceChildren(note(t("reasonSaved")));
        this.#panel.say(t("reasonSaved"));
      }, this.#panel.fail);
    };
    return form;
  }
}

/** The title of a source's page, and the heading of its section where it has one of its own. */
const namesOf = ({ title, heading, url }) => [title || url, heading].slice(0, heading && heading !== title ? 2 : 1);

/** Links away from the site open in a tab of their own. */
export const opening = (href) => (/^https?:/.test(href) ? { target: "_blank", rel: "noopener noreferrer" } : {});
