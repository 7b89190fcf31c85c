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
  #panel; #shown = {}; #isRating = false;

  constructor(panel) {
    this.#panel = panel;
    this.text = make("div", { class: "prose", dir: "auto" });
    this.rest = make("div", { class: "rest" });
    this.element = make("article", { class: "reply", ariaLabel: t("answer") }, this.text, this.rest);
    this.markdown = { update: (text) => { this.text.textContent = text; } }; // its marks are shown until the module is there
    loadModule(panel.server, FILES.markdown).then(({ createMarkdown }) => {
      this.text.replaceChildren();
      this.markdown = createMarkdown(this.text, { link: panel.link, code: (code) => this.#decorate(code) });
      this.markdown.update(this.#shown.reply?.text ?? "");
    }, () => {}); // or stay, if it cannot be loaded
  }

  /** Colour a code block, and add a button that copies it; what colours is loaded with the first block. */
  #decorate(code) {
    const text = code.textContent;
    const copy = iconButton("copy", t("copy"), () => this.#copy(text));
    code.before(copy);
    loadModule(this.#panel.server, FILES.highlight).then(({ highlight }) => highlight(code)).catch(() => {}); // plain code
  }

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
    const cards = sources.map(({ number, url, title, heading, passage }) => {
      const href = this.#panel.link(url);
      const parts = [
        make("span", { class: "number" }, String(number)),
        make("span", { class: "page" }, title || url, ...(heading && heading !== title ? [make("span", { class: "heading" }, ` › ${heading}`)] : [])),
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
    const isWhole = reply.status !== "broken" && reply.text;
    if (reply.id && reply.text) {
      row.append(this.#thumb(reply, "up", "helpful"), this.#thumb(reply, "down", "notHelpful"));
      row.append(iconButton("copy", t("copy"), () => this.#copy(reply.text), { "data-name": "copy" }));
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

/** Links away from the site open in a tab of their own. */
export const opening = (href) => (/^https?:/.test(href) ? { target: "_blank", rel: "noopener noreferrer" } : {});
