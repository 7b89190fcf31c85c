// The ask page: draws what the assistant's state says. Text of others becomes text nodes, never HTML.

import { createAssistant } from "./assistant.js";
import { Follower } from "./following.js";
import { createMarkdown, movable, pageUrl, siteUrl } from "./markdown.js";
import { button, copyText, make } from "./nodes.js";
import { Speaker } from "./speech.js";

const page = document.getElementById("ask");
const [talk, messages, form, question, stop, send] = ["talk", "messages", "form", "question", "stop", "send"].map((id) => document.getElementById(id));
const { site, requests, signIn } = page.dataset;
const base = new URL(page.dataset.base, location.href).href.replace(/\/$/, ""); // the pages' own site, or their place on this one
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

/** The address of a page, from one in an answer. */
const linkTo = (url) => (/^(https?|mailto):/.test(url) ? url : siteUrl(url, base));

const nameOf = ({ title, heading, url }) => (heading && heading !== title ? `${title} › ${heading}` : title || url);

class QuestionView {
  constructor(message) {
    this.element = make("article", { class: "asked", dir: "auto" }, make("h2", {}, message.text));
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
    this.markdown = createMarkdown(this.text, { link: linkTo, code: highlighted, named: (link) => this.#name(link) });
  }

  /** A citation shows a number: its name is that of its source. */
  #name(link) {
    const number = link.textContent;
    if (!/^\d+$/.test(number)) return;
    const page = (url) => url.split("#")[0];
    const source = this.#sources.find((one) => one.number === Number(number)) ?? this.#sources.find((one) => page(linkTo(one.url)) === page(link.href));
    if (source) link.ariaLabel = link.title = `${number}: ${source.number === Number(number) ? nameOf(source) : source.title}`;
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
      const inside = [make("summary", {}, `${source.number}. ${nameOf(source)}`)];
      const address = siteUrl(source.url, base);
      if (address) inside.push(make("p", {}, make("a", { href: address, target: "_blank", rel: "noopener", textContent: text("openPage") })));
      const passage = make("div", { class: "passage", tabIndex: 0, dir: "auto", role: "group", ariaLabel: nameOf(source) });
      const link = (url) => (url.startsWith("/") ? siteUrl(url, base) : pageUrl(url, address || base));
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
      row.append(button(text("copy"), async (event) => { event.target.textContent = (await copyText(movable(reply.text, linkTo))) ? text("copied") : text("copyFailed"); }));
      if (reply.rating) found.push(note(text("rated")));
      if (reply.rating === "down") found.push(this.#comment(reply));
    }
    if (isLast) row.append(button(reply.status === "broken" || !reply.text || reply.finishReason === "error" ? text("retry") : text("askAgain"), () => assistant.retry()));
    return found;
  }

  #thumb(reply, rating, label) {
    const rate = () => assistant.submitFeedback(reply.id, rating).then(() => speaker.say(text("rated")), (error) => showProblem(problemOf(error)));
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

// The page as a whole, drawn once for each frame at most

let views = [];
let isDrawn = false;
let isLive = false;
let isNew = false; // a question was asked that is not drawn yet

const speaker = new Speaker(document.getElementById("spoken"));
const isSticky = () => getComputedStyle(form).position === "sticky";
const follower = new Follower(talk, () => document.scrollingElement, () => (isSticky() ? form.offsetHeight : 0));

function draw() {
  isDrawn = false;
  const { messages: all, status: now, error, waitingSeconds, isSlow } = assistant.getSnapshot();
  if (views.length > all.length || views.some((view, index) => view.role !== all[index].role || (view.role === "user" && view.id !== all[index].id))) {
    views = [];
    messages.replaceChildren();
    speaker.begin(Infinity);
    talk.style.minHeight = "";
  }
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
  const hadFocus = [stop, send].includes(document.activeElement);
  [stop.hidden, send.hidden] = [!isBusy, isBusy];
  if (hadFocus && document.activeElement !== stop && document.activeElement !== send) question.focus({ preventScroll: true });
  const waiting = document.getElementById("waiting");
  const words = waitingSeconds ? text("waiting", { seconds: waitingSeconds }) : isSlow ? text("stillWaiting") : "";
  if (words && words !== waiting.textContent) speaker.say(words);
  waiting.hidden = !words;
  waiting.textContent = words;
  showProblem(error ? problemOf(error) : "", error?.code);
  document.getElementById("new").hidden = !all.length;
  const last = all.at(-1);
  if (isLive && !error) speaker.follow(last?.text ?? "", !isBusy);
  isLive = isBusy;
  if (isNew) follower.begin(views.findLast((view) => view.role === "user").element);
  else if (isBusy && last?.text) follower.follow(views.at(-1).element);
  isNew = false;
}

function showProblem(words, code = "") {
  const problem = document.getElementById("problem");
  if (problem.textContent === words) return;
  problem.hidden = !words;
  problem.replaceChildren(words);
  if (code === "sign_in_required") problem.append(" ", make("a", { href: `${signIn}?next=${encodeURIComponent(location.pathname)}`, textContent: text("signIn") }));
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
  grow();
  isNew = true;
  await assistant.send(asked.trim());
}

const groups = [...document.querySelectorAll("#groups input")];

/** Ask as a reader of the chosen groups. The service believes it of members of the organization, and of no one else. */
const chooseGroups = () => assistant.setContext({ filter: { groups: groups.filter((one) => one.checked).map((one) => one.value) } });

for (const one of groups) one.addEventListener("change", chooseGroups);
if (groups.length) chooseGroups();
assistant.subscribe(drawSoon);
assistant.on("ask", () => {
  speaker.begin();
  speaker.say(text("questionSent"));
});
assistant.on("retry", () => {
  isNew = true;
  speaker.begin();
});
assistant.on("stop", () => {
  isLive = false;
  speaker.begin();
  speaker.say(text("answerStopped"));
});
assistant.on("error", () => speaker.begin());
for (const type of ["ask", "thread", "reply"]) assistant.on(type, listThreads);

form.addEventListener("submit", (event) => {
  if (event.submitter?.id === "search") return; // by the service, as without a script
  event.preventDefault();
  void ask(question.value);
});
question.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  void ask(question.value);
});
/** The field is as high as its text, also in browsers that cannot do that themselves. */
function grow() {
  if (CSS.supports("field-sizing", "content")) return;
  question.style.height = "";
  question.style.height = `${question.scrollHeight + question.offsetHeight - question.clientHeight}px`;
}

question.addEventListener("input", grow);
addEventListener("scroll", follower.noteScroll);
stop.addEventListener("click", () => {
  assistant.stop();
  question.focus();
});
document.getElementById("new").addEventListener("click", () => {
  assistant.newThread();
  question.focus();
});
for (const id of ["tools", "hint"]) document.getElementById(id).hidden = false;
isNew = assistant.getSnapshot().messages.length > 0 && !document.getElementById("found");
draw();
listThreads();
void assistant.resume();
const asked = new URLSearchParams(location.search).get("q");
if (asked) {
  history.replaceState(null, "", location.pathname); // a reload does not search again
  question.value = asked; // a link of others fills the field, and asks nothing by itself
}
grow();
question.focus({ preventScroll: true });
