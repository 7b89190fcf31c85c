// The ask page: draws what the assistant's state says. Text of others becomes text nodes, never HTML.

import { createAssistant } from "./assistant.js";
import { createMarkdown, pageUrl, siteUrl } from "./markdown.js";

const page = document.getElementById("ask");
const [messages, form, question, stop, send, status] = ["messages", "form", "question", "stop", "send", "status"].map((id) => document.getElementById(id));
const { site, requests, base, signIn } = page.dataset;
const texts = JSON.parse(page.dataset.texts);
const address = new URL(requests, location.href).href;

forgetOthers();

const assistant = createAssistant({
  site,
  endpoints: { message: `${address}/message`, search: `${address}/search`, feedback: `${address}/feedback` },
});

/** Drop the conversations that the tab keeps where another person is signed in than the one who had them. */
function forgetOthers() {
  const { reader } = page.dataset;
  try {
    const before = sessionStorage.getItem("docsmith-reader") ?? "";
    if (before && before !== reader) sessionStorage.removeItem(`docsmith:${site}`);
    sessionStorage.setItem("docsmith-reader", reader);
  } catch {
    // a browser that keeps nothing
  }
}

function make(name, fields = {}, ...children) {
  const { class: className, ...rest } = fields;
  const made = Object.assign(document.createElement(name), rest);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const button = (label, onclick, fields = {}) => make("button", { type: "button", textContent: label, onclick, ...fields });

/** Colour a code block; what colours is loaded with the first one. Without it the code is plain. */
const highlighted = (element) => void import("./highlight.js").then(({ highlight }) => highlight(element), () => {});

/** A text of the page's language, with what its slots stand for. */
const text = (key, slots = {}) => texts[key].replace(/\{(\w+)\}/g, (_, slot) => slots[slot]);

const ERRORS = {
  connection_lost: "errorUnreachable", reply_broken: "errorBroken", rate_limited: "errorTooMany", quota_used_up: "errorTooMany",
  cost_bound_reached: "errorTooMany", unavailable: "errorUnavailable", forbidden: "errorRefused", not_found: "errorRefused",
};

/** The service's own words are English. */
const problemOf = ({ code, message }) => (document.documentElement.lang === "en" ? message : text(ERRORS[code] ?? "errorOther"));

// Messages: one view for each, changed as its message changes

class QuestionView {
  constructor(message) {
    this.element = make("article", { class: "asked", dir: "auto" }, make("h2", { textContent: message.text }));
  }

  show() {}
}

const REASONS = ["Wrong", "Outdated", "Incomplete", "Unclear", "OffTopic"];

class ReplyView {
  #shown = null;
  #index;
  #sources = [];

  constructor(_message, index) {
    this.#index = index;
    this.text = make("div", { class: "prose", dir: "auto" });
    this.rest = make("div");
    this.element = make("article", { class: "card reply", ariaLabel: text("answer") }, this.text, this.rest);
    this.markdown = createMarkdown(this.text, { link: (url) => this.#linkTo(url), code: highlighted });
  }

  /** The documentation's own site where it is known, else the passage below the answer. */
  #linkTo(url) {
    if (/^(https?|mailto):/.test(url)) return url;
    if (base) return siteUrl(url, base);
    const found = this.#sources.find((one) => one.url === url) ?? this.#sources.find((one) => one.url.split("#")[0] === url.split("#")[0]);
    return found ? `#${this.#idOf(found)}` : "";
  }

  #idOf(source) {
    return `source-${this.#index}-${source.number}`;
  }

  show(reply, isLast) {
    if (this.#shown?.reply === reply && this.#shown.isLast === isLast) return;
    const before = this.#shown?.reply;
    this.#shown = { reply, isLast };
    this.#sources = reply.sources;
    this.markdown.update(reply.text);
    const parts = ["status", "sources", "checks", "rating", "searching", "suggestions"];
    if (before && this.#isLast === isLast && parts.every((name) => before[name] === reply[name]) && Boolean(before.text) === Boolean(reply.text)) return;
    this.#isLast = isLast;
    const open = new Set([...this.rest.querySelectorAll("details[open]")].map((one) => one.id));
    this.rest.replaceChildren(...this.#around(reply, isLast));
    for (const one of this.rest.querySelectorAll("details")) one.open = open.has(one.id);
  }

  #isLast = false;

  #around(reply, isLast) {
    const isOver = reply.status !== "streaming";
    const found = [];
    if (!isOver && !reply.text) found.push(note(reply.searching ? text("searching", { query: reply.searching }) : text("reading")));
    if (reply.status === "stopped") found.push(note(text("stopped")));
    if (reply.finishReason === "length") found.push(note(text("cut")));
    if (isOver && reply.checks) found.push(...this.#checks(reply.checks));
    if (isOver && reply.text && reply.sources.length) found.push(this.#sourceList(reply));
    if (isOver && isLast && reply.suggestions.length) found.push(suggestionList(reply.suggestions));
    if (isOver) found.push(...this.#actions(reply, isLast));
    return found;
  }

  #checks({ supported, partly, unsupported, sentences }) {
    if (!unsupported) return [];
    const all = supported + partly + unsupported;
    const listed = sentences.filter((one) => one.status === "unsupported").map((one) => make("li", { textContent: one.text }));
    const summary = make("summary", { textContent: text("checked", { count: unsupported, total: all }) });
    return [make("details", { id: `checks-${this.#index}` }, summary, make("ul", { class: "unsupported" }, ...listed))];
  }

  #sourceList(reply) {
    const items = reply.sources.map((source) => {
      const name = source.heading && source.heading !== source.title ? `${source.title} › ${source.heading}` : source.title || source.url;
      const inside = [make("summary", { textContent: `${source.number}. ${name}` })];
      const address = base && siteUrl(source.url, base);
      if (address) inside.push(make("p", {}, make("a", { href: address, target: "_blank", rel: "noopener", textContent: text("openPage") })));
      const passage = make("div", { class: "passage", tabIndex: 0, dir: "auto" });
      const link = (url) => (address ? (url.startsWith("/") ? siteUrl(url, base) : pageUrl(url, address)) : base ? "" : this.#linkTo(url));
      createMarkdown(passage, { link, code: highlighted }).update(source.passage);
      inside.push(passage);
      return make("li", {}, make("details", { id: this.#idOf(source) }, ...inside));
    });
    return make("section", { ariaLabel: text("sources") }, make("h3", { textContent: text("sources") }), make("ul", { class: "sources" }, ...items));
  }

  #actions(reply, isLast) {
    const row = make("div", { class: "actions" });
    const found = [row];
    if (reply.id && reply.text) {
      row.append(this.#thumb(reply, "up", text("helpful")), this.#thumb(reply, "down", text("notHelpful")));
      row.append(button(text("copy"), async (event) => { event.target.textContent = (await copied(reply.text)) ? text("copied") : text("copyFailed"); }));
      if (reply.rating) found.push(note(text("rated")));
      if (reply.rating === "down") found.push(this.#comment(reply));
    }
    if (isLast) row.append(button(reply.status === "broken" || !reply.text ? text("retry") : text("askAgain"), () => assistant.retry()));
    return found;
  }

  #thumb(reply, rating, label) {
    const rate = () => assistant.submitFeedback(reply.id, rating).then(() => say(text("rated")), (error) => showProblem(problemOf(error)));
    const thumb = button(label, rate);
    thumb.ariaPressed = String(reply.rating === rating);
    return thumb;
  }

  #comment(reply) {
    const field = make("input", { id: `comment-${this.#index}`, maxLength: 2000, autocomplete: "off" });
    const toggle = ({ currentTarget: one }) => { one.ariaPressed = String(one.ariaPressed === "false"); };
    const presets = REASONS.map((name) => button(text(`reason${name}`), toggle, { ariaPressed: "false", name }));
    const group = make("div", { role: "group", ariaLabel: text("reasonLabel"), class: "actions" }, ...presets);
    const given = make("form", { class: "comment" }, make("label", { htmlFor: field.id, textContent: text("reasonLabel") }), group, field, make("button", { textContent: text("send") }));
    given.onsubmit = (event) => {
      event.preventDefault();
      const chosen = presets.filter((one) => one.ariaPressed === "true").map((one) => one.name);
      const comment = `${chosen.length ? "[" + chosen.join(", ") + "] " : ""}${field.value}`.trim();
      if (!comment) return;
      assistant.submitFeedback(reply.id, "down", comment).then(() => given.replaceChildren(note(text("reasonSaved"))), (error) => showProblem(problemOf(error)));
    };
    return given;
  }
}

const note = (words) => make("p", { class: "remark", textContent: words });

function suggestionList(suggestions) {
  const buttons = suggestions.slice(0, 6).map(({ label }) => button(label, () => void ask(label)));
  return make("section", { ariaLabel: text("related") }, make("h3", { textContent: text("related") }), make("div", { class: "actions" }, ...buttons));
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // a page without https
  }
}

// The page as a whole, drawn once for each frame at most

let views = [];
let isDrawn = false;

function draw() {
  isDrawn = false;
  const { messages: all, status: now, error, waitingSeconds } = assistant.getSnapshot();
  if (views.length > all.length || views.some((view, index) => view.role !== all[index].role || (view.role === "user" && view.id !== all[index].id))) {
    views = [];
    messages.replaceChildren();
  }
  const isNear = innerHeight + scrollY > document.documentElement.scrollHeight - 120;
  all.forEach((message, index) => {
    if (!views[index]) {
      views[index] = message.role === "user" ? new QuestionView(message) : new ReplyView(message, index);
      Object.assign(views[index], { role: message.role, id: message.id });
      messages.append(views[index].element);
    }
    views[index].show(message, index === all.length - 1);
  });
  const isBusy = now === "waiting" || now === "streaming";
  messages.ariaBusy = String(isBusy);
  stop.hidden = !isBusy;
  send.hidden = isBusy;
  const waiting = document.getElementById("waiting");
  waiting.hidden = !waitingSeconds;
  waiting.textContent = text("waiting", { seconds: waitingSeconds });
  showProblem(error ? problemOf(error) : "", error?.code);
  document.getElementById("new").hidden = !all.length;
  if (isBusy && isNear) scrollTo({ top: document.documentElement.scrollHeight });
}

function showProblem(words, code = "") {
  const problem = document.getElementById("problem");
  if (problem.textContent === words) return;
  problem.hidden = !words;
  problem.replaceChildren(words);
  if (code === "sign_in_required") problem.append(" ", make("a", { href: `${signIn}?next=${encodeURIComponent(location.pathname)}`, textContent: text("signIn") }));
}

function say(words) {
  status.textContent = "";
  requestAnimationFrame(() => { status.textContent = words; });
}

function drawSoon() {
  if (!isDrawn) requestAnimationFrame(draw);
  isDrawn = true;
}

function listThreads() {
  const { chatId } = assistant.getSnapshot();
  const earlier = assistant.getThreads().filter((one) => one.chatId !== chatId);
  document.getElementById("earlier").hidden = !earlier.length;
  document.getElementById("threads").replaceChildren(...earlier.map((one) => make("li", {},
    button(one.title, () => { assistant.openThread(one.chatId); document.getElementById("earlier").open = false; question.focus(); }, { class: "title quiet" }),
    button(text("forget"), () => { assistant.forgetThread(one.chatId); listThreads(); }, { ariaLabel: text("forgetThread", { title: one.title }) }),
  )));
}

async function ask(asked) {
  if (assistant.isBusy || !asked.trim()) return;
  document.getElementById("found")?.remove();
  question.value = "";
  say(text("questionSent"));
  await assistant.send(asked.trim());
}

const groups = [...document.querySelectorAll("#groups input")];

/** Ask as a reader of the chosen groups. The service believes it of members of the organization, and of no one else. */
const chooseGroups = () => assistant.setContext({ filter: { groups: groups.filter((one) => one.checked).map((one) => one.value) } });

for (const one of groups) one.addEventListener("change", chooseGroups);
if (groups.length) chooseGroups();
assistant.subscribe(drawSoon);
assistant.on("reply", () => say(`${text("answer")}: ${messages.lastElementChild?.querySelector(".prose")?.textContent.slice(0, 3000) ?? ""}`));
assistant.on("stop", () => say(text("answerStopped")));
for (const type of ["ask", "thread", "reply"]) assistant.on(type, listThreads);

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void ask(question.value);
});
question.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  void ask(question.value);
});
stop.addEventListener("click", () => {
  assistant.stop();
  question.focus();
});
document.getElementById("new").addEventListener("click", () => {
  assistant.newThread();
  question.focus();
});
messages.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  const source = link?.hash && link.getAttribute("href").startsWith("#") && document.getElementById(link.hash.slice(1));
  if (source) source.open = true;
});

for (const id of ["tools", "hint"]) document.getElementById(id).hidden = false;
draw();
listThreads();
void assistant.resume();
const asked = new URLSearchParams(location.search).get("q");
if (asked) {
  history.replaceState(null, "", location.pathname); // a reload does not search again
  question.value = asked; // a link of others fills the field, and asks nothing by itself
  question.focus();
}
