// The ask page: draws what the assistant's state says. Text of others becomes text nodes, never HTML.

import { createAssistant } from "./assistant.js";
import { createMarkdown, pageUrl } from "./markdown.js";

const page = document.getElementById("ask");
const [messages, form, question, stop, send, status] = ["messages", "form", "question", "stop", "send", "status"].map((id) => document.getElementById(id));
const { site, requests, base, signIn } = page.dataset;
const address = new URL(requests, location.href).href;

const assistant = createAssistant({
  site,
  endpoints: { message: `${address}/message`, search: `${address}/search`, feedback: `${address}/feedback` },
});

function make(name, fields = {}, ...children) {
  const { class: className, ...rest } = fields;
  const made = Object.assign(document.createElement(name), rest);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const button = (label, onclick, fields = {}) => make("button", { type: "button", textContent: label, onclick, ...fields });

// Messages: one view for each, changed as its message changes

class QuestionView {
  constructor(message) {
    this.element = make("article", { class: "asked" }, make("h2", { textContent: message.text }));
  }

  show() {}
}

class ReplyView {
  #shown = null;
  #index;
  #sources = [];

  constructor(_message, index) {
    this.#index = index;
    this.text = make("div", { class: "prose" });
    this.rest = make("div");
    this.element = make("article", { class: "card reply", ariaLabel: "Answer" }, this.text, this.rest);
    this.markdown = createMarkdown(this.text, { link: (url) => this.#linkTo(url) });
  }

  /** The documentation's own site where it is known, else the passage below the answer. */
  #linkTo(url) {
    if (/^(https?|mailto):/.test(url)) return url;
    if (base) return pageUrl(url, base);
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
    if (!isOver && !reply.text) found.push(note(reply.searching ? `Searching for “${reply.searching}” …` : "Reading the documentation …"));
    if (reply.status === "stopped") found.push(note("You stopped this answer."));
    if (reply.finishReason === "length") found.push(note("The answer was cut at its longest length."));
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
    const summary = make("summary", { textContent: `${unsupported} of ${all} statements ${unsupported === 1 ? "is" : "are"} not in the sources` });
    return [make("details", { id: `checks-${this.#index}` }, summary, make("ul", { class: "unsupported" }, ...listed))];
  }

  #sourceList(reply) {
    const items = reply.sources.map((source) => {
      const name = source.heading && source.heading !== source.title ? `${source.title} › ${source.heading}` : source.title || source.url;
      const inside = [make("summary", { textContent: `${source.number}. ${name}` })];
      const address = base && pageUrl(source.url, base);
      if (address) inside.push(make("p", {}, make("a", { href: address, target: "_blank", rel: "noopener", textContent: "Open the page" })));
      const passage = make("div", { class: "passage", tabIndex: 0 });
      const link = (url) => (address ? pageUrl(url, address) : base ? "" : this.#linkTo(url));
      createMarkdown(passage, { link }).update(source.passage);
      inside.push(passage);
      return make("li", {}, make("details", { id: this.#idOf(source) }, ...inside));
    });
    return make("section", { ariaLabel: "Sources" }, make("h3", { textContent: "Sources" }), make("ul", { class: "sources" }, ...items));
  }

  #actions(reply, isLast) {
    const row = make("div", { class: "actions" });
    const found = [row];
    if (reply.id && reply.text) {
      row.append(this.#thumb(reply, "up", "Helpful"), this.#thumb(reply, "down", "Not helpful"));
      row.append(button("Copy", async (event) => { event.target.textContent = (await copied(reply.text)) ? "Copied" : "Select and copy by hand"; }));
      if (reply.rating) found.push(note("Your rating is saved. Thank you."));
      if (reply.rating === "down") found.push(this.#comment(reply));
    }
    if (isLast) row.append(button(reply.status === "broken" || !reply.text ? "Try again" : "Answer again", () => assistant.retry()));
    return found;
  }

  #thumb(reply, rating, label) {
    const rate = () => assistant.submitFeedback(reply.id, rating).then(() => say("Your rating is saved."), (error) => showProblem(error.message));
    const thumb = button(label, rate);
    thumb.ariaPressed = String(reply.rating === rating);
    return thumb;
  }

  #comment(reply) {
    const text = make("input", { id: `comment-${this.#index}`, maxLength: 2000, autocomplete: "off" });
    const given = make("form", { class: "comment" }, make("label", { htmlFor: text.id, textContent: "What was missing or wrong? (optional)" }), text, make("button", { textContent: "Send" }));
    given.onsubmit = (event) => {
      event.preventDefault();
      if (!text.value.trim()) return;
      assistant.submitFeedback(reply.id, "down", text.value.trim()).then(() => given.replaceChildren(note("Your words are saved. Thank you.")), (error) => showProblem(error.message));
    };
    return given;
  }
}

const note = (text) => make("p", { class: "remark", textContent: text });

function suggestionList(suggestions) {
  const buttons = suggestions.slice(0, 6).map(({ label }) => button(label, () => void ask(label)));
  return make("section", { ariaLabel: "Related" }, make("h3", { textContent: "Related" }), make("div", { class: "actions" }, ...buttons));
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
  waiting.textContent = `The model's provider is busy; it is asked again in ${waitingSeconds} s.`;
  showProblem(error?.message ?? "", error?.code);
  document.getElementById("new").hidden = !all.length;
  if (isBusy && isNear) scrollTo({ top: document.documentElement.scrollHeight });
}

function showProblem(text, code = "") {
  const problem = document.getElementById("problem");
  if (problem.textContent === text) return;
  problem.hidden = !text;
  problem.replaceChildren(text);
  if (code === "sign_in_required") problem.append(" ", make("a", { href: `${signIn}?next=${encodeURIComponent(location.pathname)}`, textContent: "Sign in" }));
}

function say(text) {
  status.textContent = "";
  requestAnimationFrame(() => { status.textContent = text; });
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
    button("Forget", () => { assistant.forgetThread(one.chatId); listThreads(); }, { ariaLabel: `Forget ${one.title}` }),
  )));
}

async function ask(text) {
  if (assistant.isBusy || !text.trim()) return;
  document.getElementById("found")?.remove();
  question.value = "";
  say("Your question was sent.");
  await assistant.send(text.trim());
}

assistant.subscribe(drawSoon);
assistant.on("reply", () => say(`Answer: ${messages.lastElementChild?.querySelector(".prose")?.textContent.slice(0, 3000) ?? ""}`));
assistant.on("stop", () => say("The answer was stopped."));
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
