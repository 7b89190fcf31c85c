// Docsmith's assistant for web pages, without a view: it asks, streams, resumes, and keeps threads. Its types: assistant.d.ts.

import { withProof } from "./proof.js";

const FENCE = "```suggestions";
const [MAX_THREADS, MAX_MESSAGES, MAX_PASSAGE, SHOWN_PASSAGE, MAX_SELECTION] = [20, 60, 2_000, 560, 50_000];
const NO_RAW = { raw: "", tail: "", fence: -1 };
const [RECONNECTS, TOKEN_MARGIN, MAX_SILENCE, SLOW] = [6, 30_000, 45_000, 10_000]; // the service sends something every 15 s

export const initialState = Object.freeze({
  status: "idle", chatId: "", threadId: "", threadKey: "", messages: [], error: null, waitingSeconds: 0, isSlow: false,
});

/** Server-sent events from text in any pieces: `push` returns the data of each event that is complete. */
export class EventParser {
  #rest = ""; #seen = 0; #data = [];

  push(text) {
    const events = [];
    this.#rest += text;
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = this.#seen;
    let start = 0;
    for (let end; (end = ends.exec(this.#rest)); ) {
      if (end[0] === "\r" && ends.lastIndex === this.#rest.length) break; // perhaps half of CR LF
      this.#line(this.#rest.slice(start, end.index), events);
      start = ends.lastIndex;
    }
    this.#rest = this.#rest.slice(start);
    this.#seen = this.#rest.endsWith("\r") ? this.#rest.length - 1 : this.#rest.length;
    return events;
  }

  #line(line, events) {
    if (line === "") {
      if (this.#data.length) events.push(this.#data.join("\n"));
      this.#data = [];
    } else if (line.startsWith("data:")) {
      this.#data.push(line.slice(line[5] === " " ? 6 : 5));
    }
  }
}

/** The state after an action. Pure. */
export function reduce(state, action) {
  switch (action.type) {
    case "ask":
      return {
        ...state, status: "waiting", error: null, waitingSeconds: 0,
        messages: [...state.messages, { id: action.id, role: "user", text: action.text }, blankReply()],
      };
    case "retry":
    case "resume":
      return withReply({ ...state, status: "waiting", error: null, waitingSeconds: 0 }, action.type === "retry" ? blankReply() : { status: "streaming" });
    case "open":
      return {
        ...withReply(state, { ...blankReply(), rating: lastOf(state).rating, id: action.replyId || lastOf(state).id }),
        threadId: action.threadId || state.threadId, threadKey: action.threadKey || state.threadKey,
      };
    case "chunk":
      return afterChunk(state, action.chunk);
    case "end":
      return withReply({ ...state, status: "idle", waitingSeconds: 0 }, ended(lastOf(state), "done"));
    case "stop":
      return withReply({ ...state, status: "idle", waitingSeconds: 0 }, ended(lastOf(state), "stopped"));
    case "fail":
      return withReply({ ...state, status: "error", waitingSeconds: 0, error: action.error }, ended(lastOf(state), "broken"));
    case "rate":
      return {
        ...state,
        messages: state.messages.map((one) => (one.id === action.id ? { ...one, rating: action.rating } : one)),
      };
    case "slow":
      return { ...state, isSlow: action.isSlow };
    case "thread":
      return { ...initialState, ...action.thread };
    default:
      return state;
  }
}

function blankReply() {
  return {
    id: "", role: "assistant", text: "", ...NO_RAW, status: "streaming", sources: [], suggestions: [],
    checks: null, searching: "", finishReason: "", rating: null,
  };
}

const lastOf = (state) => state.messages.at(-1) || {};

function withReply(state, change) {
  const last = lastOf(state);
  if (last.role !== "assistant") return state;
  return { ...state, messages: [...state.messages.slice(0, -1), { ...last, ...change }] };
}

function afterChunk(state, chunk) {
  const reply = lastOf(state);
  if (reply.role !== "assistant" || reply.status !== "streaming") return state;
  switch (chunk.type) {
    case "start":
      return {
        ...withReply(state, { id: chunk.messageId || reply.id }),
        threadId: chunk.messageMetadata?.threadId || state.threadId,
      };
    case "tool-input-available":
      return withReply(state, { searching: String(chunk.input?.query ?? "") });
    case "tool-output-available":
      return withReply(state, { sources: withSources(reply.sources, chunk.output?.results), searching: "" });
    case "text-start":
      return reply.raw ? withText(state, "\n\n") : state;
    case "text-delta":
      return withText({ ...state, status: "streaming", waitingSeconds: 0 }, String(chunk.delta ?? ""));
    case "data-docsmith-check":
      return withReply(state, { checks: chunk.data });
    case "data-docsmith-waiting":
      return { ...state, waitingSeconds: chunk.data?.seconds || 0 };
    case "finish":
      return withReply(state, { finishReason: chunk.messageMetadata?.finishReason || "" });
    case "error":
      return reduce(state, { type: "fail", error: { code: "reply_broken", message: String(chunk.errorText ?? "") } });
    default:
      return state;
  }
}

function withSources(sources, results) {
  if (!Array.isArray(results)) return sources;
  const found = new Map(sources.map((one) => [one.number, one]));
  results.forEach((one, index) => {
    const number = one.number ?? found.size + index + 1;
    const { url = "", title = "", heading = "", content = "" } = one;
    found.set(number, { number, url, title, heading, passage: String(content).slice(0, MAX_PASSAGE) });
  });
  return [...found.values()].sort((one, other) => one.number - other.number);
}

/** Text up to the suggestions, which are the last part of a reply; what may be the beginning of them is held back. */
function withText(state, delta) {
  const reply = lastOf(state);
  const raw = reply.raw + delta;
  if (reply.fence >= 0) return withReply(state, { raw });
  const near = (reply.raw ? reply.tail : "\n") + delta; // the whole text is not looked at for each delta
  const at = near.indexOf("\n" + FENCE);
  if (at >= 0) {
    const fence = raw.length - near.length + at + 1;
    return withReply(state, { raw, fence, text: raw.slice(0, fence) });
  }
  const tail = near.slice(-FENCE.length - 1);
  const half = tail.slice(tail.lastIndexOf("\n") + 1);
  const isHeld = half && half.length < tail.length && FENCE.startsWith(half);
  return withReply(state, { raw, tail, text: isHeld ? raw.slice(0, raw.length - half.length) : raw });
}

function ended(reply, status) {
  if (reply.role !== "assistant") return {};
  const { raw = "", fence = -1 } = reply;
  if (fence < 0) return { ...NO_RAW, status, text: raw, searching: "" };
  const close = raw.indexOf("\n```", fence + FENCE.length);
  const inside = raw.slice(fence + FENCE.length, close < 0 ? raw.length : close);
  const suggestions = [...inside.matchAll(/^\((.+)\)\[([^[\]\n]+)\]\s*$/gm)].map(([, label, path]) => ({ label, path }));
  const after = close < 0 ? "" : raw.slice(close + 4).replace(/^[^\n]*\n?/, "");
  return { ...NO_RAW, status, searching: "", suggestions, text: raw.slice(0, fence) + after };
}

class AssistantError extends Error {
  constructor(code, message, status = 0, retryAfterSeconds = 0) {
    super(message);
    Object.assign(this, { name: "AssistantError", code, status, retryAfterSeconds });
  }
}

async function errorOf(response) {
  const problem = await response.json().catch(() => ({}));
  const message = problem.detail || `The service answered with status ${response.status}.`;
  return new AssistantError(problem.code || "unknown", message, response.status, Number(response.headers.get("Retry-After")) || 0);
}

const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");

function defaultStorage() {
  try { return globalThis.sessionStorage ?? null; } catch { return null; } // a page without storage
}

export const createAssistant = (options) => new Assistant(options);

class Assistant {
  #options; #urls; #storage; #fetch;
  #state = initialState;
  #listeners = new Set(); #hooks = new Map();
  #context = {}; #threads = []; #reader = "";
  #token = null; #fetching = null; #call = null; #wake = null; #slow = 0;

  constructor(options) {
    const { site, server = new URL("..", import.meta.url).href.replace(/\/$/, "") } = options;
    const place = encodeURIComponent(site);
    this.#options = options;
    this.#urls = {
      message: `${server}/discovery/v2/assistant/${place}/message`, search: `${server}/discovery/v1/search/${place}`,
      feedback: `${server}/discovery/v1/feedback/${place}`, token: `${server}/discovery/v1/token/${place}`,
      ...options.endpoints,
    };
    this.#storage = options.storage === undefined ? defaultStorage() : options.storage;
    this.#fetch = options.fetch ?? ((...call) => globalThis.fetch(...call));
    this.setContext(options.context ?? {});
    this.#load();
  }

  getSnapshot = () => this.#state;

  subscribe = (listener) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  on(type, hook) {
    if (!this.#hooks.has(type)) this.#hooks.set(type, new Set());
    this.#hooks.get(type).add(hook);
    return () => this.#hooks.get(type).delete(hook);
  }

  setContext({ path, selection, filter, pageSize } = {}) {
    this.#context = { path, selection, filter, pageSize };
  }

  get isBusy() { return this.#call !== null; }

  async send(text) {
    if (this.isBusy || !text.trim()) return;
    const id = newId();
    if (!this.#state.chatId) this.#state = { ...this.#state, chatId: newId() };
    this.#apply({ type: "ask", id, text });
    this.#tell("ask", {});
    await this.#run((signal) => this.#post("submit-message", signal));
  }

  async retry() {
    if (this.isBusy || lastOf(this.#state).role !== "assistant") return;
    this.#apply({ type: "retry" });
    this.#tell("retry", {});
    await this.#run((signal) => this.#post("regenerate-message", signal));
  }

  stop() {
    if (!this.isBusy) return;
    this.#call.abort();
    this.#call = null;
    this.#listen();
    const url = `${this.#chatUrl()}/stop?fp=${encodeURIComponent(this.#reader)}`;
    void this.#request("POST", url).catch(() => {}); // the reply ends without a reader anyway, later
    this.#apply({ type: "stop" });
    this.#tell("stop", {});
  }

  async resume() {
    if (this.isBusy || lastOf(this.#state).status !== "streaming") return;
    this.#apply({ type: "resume" });
    await this.#run((signal) => this.#reconnect(signal));
  }

  async submitFeedback(messageId, rating, comment) {
    const body = { threadId: this.#state.threadId, messageId, rating, ...(comment ? { comment } : {}) };
    await this.#request("POST", this.#urls.feedback, body);
    this.#apply({ type: "rate", id: messageId, rating });
    this.#tell("feedback", { messageId, rating });
  }

  async search(query, { limit = 8, signal } = {}) {
    if (!query.trim()) return [];
    const body = { query, pageSize: limit, prefix: true, highlights: true, filter: this.#context.filter };
    const response = await this.#request("POST", this.#urls.search, body, signal);
    this.#tell("search", {});
    return response.json();
  }

  newThread() {
    this.stop();
    this.#apply({ type: "thread", thread: {} });
    this.#tell("thread", {});
  }

  getThreads() {
    return this.#threads.map(({ chatId, threadId, title, at }) => ({ chatId, threadId, title, at }));
  }

  openThread(chatId) {
    const kept = this.#threads.find((one) => one.chatId === chatId);
    if (!kept) return false;
    this.stop();
    this.#apply(opening(kept));
    this.#tell("thread", {});
    void this.resume();
    return true;
  }

  forgetThread(chatId) {
    if (this.#state.chatId === chatId) this.newThread();
    this.#threads = this.#threads.filter((one) => one.chatId !== chatId);
    this.#save();
  }

  destroy() {
    this.#call?.abort();
    this.#call = null;
    this.#listen();
    this.#wake?.();
    this.#listeners.clear();
    this.#hooks.clear();
  }

  // One reply

  async #run(begin) {
    const call = (this.#call = new AbortController());
    const isOurs = () => this.#call === call;
    this.#listen();
    try {
      let response = await begin(call.signal);
      for (let failures = 0; ; ) {
        const before = lastOf(this.#state).raw?.length ?? 0;
        if (response && (await this.#read(response, isOurs))) break;
        if (!isOurs()) return;
        if ((lastOf(this.#state).raw?.length ?? 0) > before) failures = 0;
        if (++failures > RECONNECTS) throw new AssistantError("connection_lost", "The connection was lost.");
        await this.#pause(500 * 2 ** failures, call.signal);
        if (!isOurs()) return;
        response = await this.#reconnect(call.signal);
      }
      if (isOurs()) this.#finish({ type: "end" });
    } catch (error) {
      if (!isOurs()) return;
      const { code = "connection_lost", status = 0, retryAfterSeconds = 0 } = error;
      const message = error instanceof AssistantError ? error.message : "The service cannot be reached.";
      this.#finish({ type: "fail", error: { code, message, status, retryAfterSeconds } });
    }
  }

  #listen() {
    clearTimeout(this.#slow);
    const note = (isSlow) => isSlow !== this.#state.isSlow && this.#apply({ type: "slow", isSlow });
    note(false);
    if (this.#call) this.#slow = setTimeout(note, SLOW, true);
  }

  #finish(action) {
    this.#call = null;
    this.#listen();
    const isBroken = this.#state.status === "error";
    if (!isBroken) this.#apply(action);
    const failed = this.#state.error;
    this.#tell(failed ? "error" : "reply", failed ? { code: failed.code } : { messageId: lastOf(this.#state).id });
  }

  /** Whether the reply came to its end; null and false are a lost connection. */
  async #read(response, isOurs) {
    this.#apply({
      type: "open", threadId: response.headers.get("X-Thread-Id"), threadKey: response.headers.get("X-Thread-Key"),
      replyId: response.headers.get("X-Message-Id"),
    });
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const parser = new EventParser();
    for (;;) {
      const timer = setTimeout(() => void reader.cancel().catch(() => {}), MAX_SILENCE);
      const { done, value } = await reader.read().catch(() => ({ done: true }));
      clearTimeout(timer);
      if (done || !isOurs()) return false;
      const events = parser.push(decoder.decode(value, { stream: true }));
      if (events.length) this.#listen();
      for (const data of events) {
        if (data === "[DONE]") return true;
        this.#apply({ type: "chunk", chunk: parsed(data) });
      }
      if (this.#state.status === "error") {
        void reader.cancel().catch(() => {});
        return true;
      }
    }
  }

  #post(trigger, signal, again = false) {
    const { chatId, threadId, threadKey, messages } = this.#state;
    const question = messages[messages.length - 2];
    const { path, selection, filter, pageSize } = this.#context;
    const body = {
      fp: this.#reader, id: chatId, trigger, features: ["checks", "resume"],
      messages: [{ id: question.id, role: "user", parts: [{ type: "text", text: question.text }] }],
      threadId: threadId || undefined, threadKey: threadKey || undefined,
      messageId: trigger === "regenerate-message" || again ? question.id : undefined,
      currentPath: path?.slice(0, 200), filter, retrievalPageSize: pageSize,
      context: selection ? [{ type: "textSelection", value: selection.slice(0, MAX_SELECTION), path }] : undefined,
    };
    return this.#request("POST", this.#urls.message, body, signal);
  }

  /** The reply under way, from its start; else the recorded one: a question that is sent again is not asked twice. */
  async #reconnect(signal) {
    const url = `${this.#chatUrl()}/stream?fp=${encodeURIComponent(this.#reader)}`;
    try {
      const response = await this.#request("GET", url, undefined, signal);
      return response.status === 204 ? await this.#post("submit-message", signal, true) : response;
    } catch (error) {
      if (signal.aborted || (error instanceof AssistantError && error.status < 500)) throw error;
      return null; // not reachable, or restarting: later
    }
  }

  #chatUrl() { return `${this.#urls.message}/${encodeURIComponent(this.#state.chatId)}`; }

  // Requests

  async #request(method, url, body, signal, isSecond = false) {
    const headers = { ...this.#options.headers };
    if (body) headers["Content-Type"] = "application/json";
    if (this.#options.key) headers.Authorization = `Bearer ${this.#options.key}`;
    if (!body && this.#state.threadKey) headers["X-Thread-Key"] = this.#state.threadKey;
    if (this.#options.readerTokens) this.#token ??= { token: "", until: 0 };
    if (this.#token) headers["X-Reader-Token"] = isSecond ? this.#token.token : await this.#readerToken();
    signal?.throwIfAborted();
    const response = await this.#fetch(url, { method, headers, body: body && JSON.stringify(body), signal });
    if (response.ok) return response;
    const error = await errorOf(response);
    if (isSecond || !error.code.startsWith("reader_token_")) throw error;
    await this.#readerToken(true);
    return this.#request(method, url, body, signal, true);
  }

  async #readerToken(isRefused = false) { // one for all calls under way: an address gets few
    if (!isRefused && this.#token.until - TOKEN_MARGIN > Date.now()) return this.#token.token;
    return (this.#fetching ??= this.#newToken().finally(() => { this.#fetching = null; }));
  }

  async #newToken() {
    const headers = { ...this.#options.headers, Authorization: `Bearer ${this.#options.key}`, "Content-Type": "application/json" };
    const response = await withProof((body) => this.#fetch(this.#urls.token, { method: "POST", headers, body }));
    if (!response.ok) throw await errorOf(response);
    const { token, expiresIn = 60 } = await response.json(); // seconds: the reader's clock may be wrong
    this.#token = { token, until: Date.now() + expiresIn * 1000 };
    this.#save();
    return token;
  }

  #pause(milliseconds, signal) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#options.reconnectDelay ?? milliseconds);
      this.#wake = () => (clearTimeout(timer), resolve());
      signal.addEventListener("abort", this.#wake, { once: true });
    });
  }

  // State, and what is kept of it

  #apply(action) {
    const before = this.#state;
    this.#state = reduce(before, action);
    if (this.#state === before) return;
    if (action.type !== "chunk" || this.#state.threadId !== before.threadId) this.#keep();
    for (const listener of [...this.#listeners]) listener(this.#state);
  }

  #tell(type, detail) {
    const { threadId, chatId } = this.#state;
    for (const hook of [...(this.#hooks.get(type) ?? [])]) hook({ type, threadId, chatId, ...detail });
  }

  #keep() {
    const { chatId, threadId, threadKey, messages } = this.#state;
    if (chatId && messages.length) {
      const old = this.#threads.find((one) => one.chatId === chatId);
      const title = old?.title ?? messages[0].text.slice(0, 80);
      const kept = { chatId, threadId, threadKey, title, at: Date.now(), messages: messages.slice(-MAX_MESSAGES) };
      this.#threads = [kept, ...this.#threads.filter((one) => one !== old)].slice(0, MAX_THREADS);
    }
    this.#save();
  }

  get #name() { return `docsmith:${this.#options.site}`; }

  #save() {
    const { chatId } = this.#state;
    const textOf = (one) => (one.chatId === chatId ? JSON.stringify(one) : (one.text ??= JSON.stringify(one, shortened)));
    const texts = this.#storage ? this.#threads.map(textOf) : [];
    for (let count = texts.length; this.#storage && count >= 0; count = count > 1 ? count >> 1 : count - 1) {
      const rest = JSON.stringify({ reader: this.#reader, chatId, token: this.#token });
      try {
        this.#storage.setItem(this.#name, `{"threads":[${texts.slice(0, count)}],${rest.slice(1)}`);
        return;
      } catch { /* full: keep fewer */ }
    }
  }

  #load() {
    let kept = {};
    try {
      kept = JSON.parse(this.#storage?.getItem(this.#name) ?? "{}") ?? {};
    } catch { /* not ours, or not readable */ }
    this.#threads = (Array.isArray(kept.threads) ? kept.threads : []).filter((one) => one?.chatId && Array.isArray(one.messages));
    this.#reader = this.#options.reader ?? (typeof kept.reader === "string" && kept.reader ? kept.reader : newId());
    this.#token = kept.token?.token ? kept.token : null;
    const last = this.#threads.find((one) => one.chatId === kept.chatId);
    if (last) this.#state = reduce(this.#state, opening(last));
  }
}

/** Of a thread that is not open, passages are kept as far as cards show them; its JSON is made once. */
const shortened = (name, value) => (name === "passage" ? value?.slice?.(0, SHOWN_PASSAGE) ?? value : value);
const opening = ({ chatId, threadId, threadKey, messages }) => ({ type: "thread", thread: { chatId, threadId, threadKey, messages } });

function parsed(data) {
  try { return JSON.parse(data) ?? {}; } catch { return {}; }
}
