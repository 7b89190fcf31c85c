import assert from "node:assert/strict";
import { test } from "node:test";

import { createAssistant, EventParser, initialState, reduce } from "../../service/web/scripts/assistant.js";

const pieces = (text, size) => Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, at * size + size));
const asked = () => reduce({ ...initialState, chatId: "c" }, { type: "ask", id: "m1", text: "How?" });
const after = (actions, state = asked()) => actions.reduce(reduce, state);
const chunks = (...all) => all.map((chunk) => ({ type: "chunk", chunk }));
const delta = (text) => ({ type: "text-delta", id: "t1", delta: text });
const last = (state) => state.messages.at(-1);

const FINISH = ': \rdata:{"type":"finish","messageMetadata":\ndata: {"type":"finish","threadId":"T"}\n: \rdata:}\n\n';
const STREAM = 'data: {"a":1}\n\n: ping\n\ndata:{"b":"ä"}\r\n\r\n' + FINISH + "data: [DONE]\n\n";

test("events are read from pieces of any size", () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const parser = new EventParser();
    const found = pieces(STREAM, size).flatMap((piece) => parser.push(piece));
    assert.equal(found.length, 4, `pieces of ${size}`);
    assert.deepEqual(JSON.parse(found[2]), { type: "finish", messageMetadata: { type: "finish", threadId: "T" } });
    assert.deepEqual([found[0], found[1], found[3]], ['{"a":1}', '{"b":"ä"}', "[DONE]"]);
  }
});

test("a question waits for its reply", () => {
  const state = asked();
  assert.deepEqual([state.status, state.messages.length, last(state).status], ["waiting", 2, "streaming"]);
});

test("a reply is put together from its chunks", () => {
  const results = [{ number: 1, url: "/a#b", title: "A", heading: "B", content: "x".repeat(9000) }];
  const state = after([
    { type: "open", threadId: "T", threadKey: "K", replyId: "r1" },
    ...chunks(
      { type: "start", messageId: "r1", messageMetadata: { threadId: "T" } },
      { type: "tool-input-available", input: { query: "how" } },
      { type: "tool-output-available", output: { results } },
      { type: "text-start", id: "t1" }, delta("To "), delta("do it."), { type: "text-end", id: "t1" },
      { type: "data-docsmith-check", data: { supported: 1, partly: 0, unsupported: 0, sentences: [] } },
      { type: "a-new-type" }, { type: "finish", messageMetadata: {} },
    ),
    { type: "end" },
  ]);
  assert.deepEqual([state.status, state.threadId, state.threadKey], ["idle", "T", "K"]);
  const { id, text, status, sources, checks, searching } = last(state);
  assert.deepEqual([id, text, status, searching, checks.supported], ["r1", "To do it.", "done", "", 1]);
  assert.deepEqual([sources[0].number, sources[0].heading, sources[0].passage.length], [1, "B", 2000]);
});

test("what is shown never goes back, and ends as the text without suggestions", () => {
  const text = "Do it.\n\n``` \ncode\n```\n\n```suggestions\n(Retries)[/retry]\n(More of it)[/a#b]\n```\n";
  for (const size of [1, 2, 5, 13, 200]) {
    let state = asked();
    let shown = "";
    for (const piece of pieces(text, size)) {
      state = after(chunks(delta(piece)), state);
      assert.ok(last(state).text.startsWith(shown), `pieces of ${size}`);
      assert.ok(!last(state).text.includes("suggestions"));
      shown = last(state).text;
    }
    const { text: whole, suggestions, raw } = last(reduce(state, { type: "end" }));
    assert.equal(whole, "Do it.\n\n``` \ncode\n```\n\n");
    assert.deepEqual(suggestions, [{ label: "Retries", path: "/retry" }, { label: "More of it", path: "/a#b" }]);
    assert.equal(raw, "");
  }
});

test("the beginning of a fence that is none is shown at the end", () => {
  const state = after(chunks(delta("a\n``")));
  assert.equal(last(state).text, "a\n");
  assert.equal(last(reduce(state, { type: "end" })).text, "a\n``");
});

test("chunks after the end change nothing", () => {
  const state = after([{ type: "stop" }, ...chunks(delta("late"), { type: "error", errorText: "late" })]);
  assert.deepEqual([state.status, last(state).status, last(state).text], ["idle", "stopped", ""]);
});

test("an error keeps the text so far", () => {
  const state = after(chunks(delta("Half"), { type: "error", errorText: "Busy." }));
  assert.deepEqual([state.status, state.error.message, last(state).status, last(state).text], ["error", "Busy.", "broken", "Half"]);
});

test("states are not changed in place", () => {
  const freeze = (value) => (value && typeof value === "object" ? (Object.values(value).forEach(freeze), Object.freeze(value)) : value);
  let state = freeze(asked());
  for (const action of [...chunks(delta("a"), { type: "tool-output-available", output: { results: [{ number: 1 }] } }), { type: "end" }, { type: "rate", id: "", rating: "up" }]) {
    state = freeze(reduce(state, action));
  }
  assert.equal(last(state).text, "a");
});

// With requests

const reply = (text, { id = "r1", done = true } = {}) =>
  [{ type: "start", messageId: id, messageMetadata: { threadId: "T" } }, { type: "text-start", id: "t1" }, delta(text)]
    .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + (done ? 'data: {"type":"finish"}\n\ndata: [DONE]\n\n' : "");
const streamOf = (text, headers = {}) => new Response(text, { headers: { "X-Thread-Id": "T", "X-Thread-Key": "K", "X-Message-Id": "r1", ...headers } });
const problem = (status, code, headers = {}) => new Response(JSON.stringify({ code, detail: `It is ${code}.` }), { status, headers });

class Storage extends Map {
  getItem(name) {
    return this.get(name) ?? null;
  }

  setItem(name, text) {
    if (text.length > (this.most ?? Infinity)) throw new Error("full");
    this.set(name, text);
  }
}

/** After all that is under way without a timer. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** An assistant whose requests are answered in turn; each answer is a Response, an Error, or a function of the call. */
function assistantWith(answers, options = {}) {
  const calls = [];
  const fake = async (url, { method, headers, body, signal }) => {
    calls.push({ url, method, headers, body: body && JSON.parse(body), signal });
    const answer = answers.shift();
    const found = typeof answer === "function" ? await answer(calls.at(-1)) : answer;
    if (found instanceof Error) throw found;
    return found;
  };
  const settings = { site: "kite", server: "https://d.example", key: "KEY", fetch: fake, storage: new Storage(), reconnectDelay: 0, ...options };
  return { calls, storage: settings.storage, settings, assistant: createAssistant(settings) };
}

test("a question is sent as chat clients send it", async () => {
  const { assistant, calls } = assistantWith([streamOf(reply("Hi")), streamOf(reply("Again"))], { context: { path: "/p", selection: "words", filter: { version: "2" } } });
  const seen = [];
  assistant.on("ask", (event) => seen.push(event));
  await assistant.send("How?");
  await assistant.send("And then?");
  const [first, second] = calls;
  assert.deepEqual([first.url, first.method], ["https://d.example/discovery/v2/assistant/kite/message", "POST"]);
  assert.equal(first.headers.Authorization, "Bearer KEY");
  assert.deepEqual(first.body.messages.map((one) => one.parts), [[{ type: "text", text: "How?" }]]);
  assert.deepEqual([first.body.currentPath, first.body.filter, first.body.context[0].value], ["/p", { version: "2" }, "words"]);
  assert.deepEqual([first.body.threadId, second.body.threadId, second.body.threadKey], [undefined, "T", "K"]);
  assert.equal(first.body.id, second.body.id);
  assert.deepEqual(assistant.getSnapshot().messages.map((one) => one.text), ["How?", "Hi", "And then?", "Again"]);
  assert.ok(!JSON.stringify(seen).includes("How?"));
});

test("a blank question, and one while a reply is written, are not sent", async () => {
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const { assistant, calls } = assistantWith([async () => (await held, streamOf(reply("Hi")))]);
  await assistant.send("  ");
  const first = assistant.send("How?");
  await assistant.send("Other?");
  await assistant.retry();
  release();
  await first;
  assert.equal(calls.length, 1);
});

test("a reader token is fetched when it is asked for, kept, and fetched again when it ends", async () => {
  const expiresAt = "2000-01-01T00:00:00Z"; // of a server whose clock is behind this one
  const token = (name, expiresIn = 900) => new Response(JSON.stringify({ token: name, expiresAt, expiresIn }));
  const { assistant, calls, settings } = assistantWith([
    problem(401, "reader_token_required"), token("one"), streamOf(reply("Hi")),
    problem(401, "reader_token_expired"), token("two", 10), streamOf(reply("Hi")),
    token("three"), streamOf(reply("Hi")),
  ]);
  for (const question of ["a", "b", "c"]) await assistant.send(question);
  const sent = calls.map((call) => [call.url.split("/")[5] === "kite" ? "token" : "message", call.headers["X-Reader-Token"]]);
  assert.deepEqual(sent.map(([, name]) => name), [undefined, undefined, "one", "one", undefined, "two", undefined, "three"]);
  assert.equal(assistant.getSnapshot().status, "idle");
  const again = assistantWith([streamOf(reply("Hi"))], { storage: settings.storage });
  await again.assistant.send("d");
  assert.equal(again.calls[0].headers["X-Reader-Token"], "three");
});

test("calls at the same time share a reader token, also when the first of them ends", async () => {
  const token = new Response(JSON.stringify({ token: "t", expiresIn: 900 }));
  const { assistant, calls } = assistantWith([token, new Response("[]")], { readerTokens: true });
  const first = new AbortController();
  const ended = assert.rejects(assistant.search("a", { signal: first.signal }));
  first.abort();
  assert.deepEqual(await assistant.search("ab"), []);
  await ended;
  assert.deepEqual(calls.map((call) => call.body?.query), [undefined, "ab"]);
});

test("a token that is refused twice is an error", async () => {
  const token = () => new Response(JSON.stringify({ token: "t", expiresIn: 900 }));
  const { assistant, calls } = assistantWith([problem(401, "reader_token_expired"), token, problem(401, "reader_token_expired")]);
  await assistant.send("a");
  assert.equal(calls.length, 3);
  assert.equal(assistant.getSnapshot().error.code, "reader_token_expired");
});

test("a token of a service that says no seconds is used for a while", async () => {
  const token = new Response(JSON.stringify({ token: "t", expiresAt: "2000-01-01T00:00:00Z" }));
  const { assistant, calls } = assistantWith([token, new Response("[]"), new Response("[]")], { readerTokens: true });
  for (const query of ["a", "ab"]) await assistant.search(query);
  assert.deepEqual(calls.map((call) => call.headers["X-Reader-Token"]), [undefined, "t", "t"]);
});

test("a refusal says when to come back, and the question can be sent again", async () => {
  const { assistant, calls } = assistantWith([problem(429, "rate_limited", { "Retry-After": "60" }), streamOf(reply("Hi"))]);
  await assistant.send("How?");
  const { status, error } = assistant.getSnapshot();
  assert.deepEqual([status, error.code, error.retryAfterSeconds, error.message], ["error", "rate_limited", 60, "It is rate_limited."]);
  await assistant.retry();
  assert.equal(calls[1].body.trigger, "regenerate-message");
  assert.equal(calls[0].body.messages[0].id, calls[1].body.messages[0].id);
  assert.deepEqual(assistant.getSnapshot().messages.map((one) => one.text), ["How?", "Hi"]);
});

test("a lost connection goes on where the reply is", async () => {
  const { assistant, calls } = assistantWith([
    streamOf(reply("Half", { done: false })), new TypeError("Failed to fetch"), problem(503, "unavailable"), streamOf(reply("Half and half")),
  ]);
  await assistant.send("How?");
  assert.equal(assistant.getSnapshot().messages[1].text, "Half and half");
  assert.match(calls[1].url, /\/message\/[0-9a-f]{32}\/stream\?fp=/);
  assert.equal(calls[1].headers["X-Thread-Key"], "K");
});

test("a reply that ended meanwhile is read from the record", async () => {
  const { assistant, calls } = assistantWith([streamOf(reply("Half", { done: false })), new Response(null, { status: 204 }), streamOf(reply("Whole"))]);
  await assistant.send("How?");
  assert.equal(assistant.getSnapshot().messages[1].text, "Whole");
  assert.deepEqual([calls[2].method, calls[2].body.trigger, calls[2].body.messageId], ["POST", "submit-message", calls[0].body.messages[0].id]);
});

test("a connection that is silent is left for a new one", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const half = [": ping\n\n", reply("Half", { done: false })].map((text) => new TextEncoder().encode(text));
  let isLeft = false;
  const silent = new ReadableStream({
    pull: (controller) => (half.length ? controller.enqueue(half.shift()) : new Promise(() => {})),
    cancel: () => { isLeft = true; },
  });
  const { assistant, calls } = assistantWith([new Response(silent), streamOf(reply("Half and half"))]);
  const sending = assistant.send("How?");
  await new Promise((resolve) => assistant.subscribe((state) => state.messages[1].text === "Half" && resolve()));
  await turn();
  context.mock.timers.tick(44_000);
  await turn();
  assert.deepEqual([isLeft, calls.length], [false, 1]);
  context.mock.timers.tick(1_000);
  await turn();
  context.mock.timers.tick(1); // it waits before it connects again
  await sending;
  assert.deepEqual([isLeft, calls.length, assistant.getSnapshot().messages[1].text], [true, 2, "Half and half"]);
});

test("a connection that stays lost is an error in the end", async () => {
  const { assistant, calls } = assistantWith([streamOf(reply("Half", { done: false })), ...Array(20).fill(new TypeError("Failed to fetch"))]);
  await assistant.send("How?");
  assert.deepEqual([assistant.getSnapshot().error.code, assistant.getSnapshot().messages[1].text], ["connection_lost", "Half"]);
  assert.ok(calls.length < 10);
});

test("stop ends the request and keeps the text", async () => {
  let cut;
  const body = new ReadableStream({
    start(controller) {
      cut = () => controller.error(new DOMException("Aborted", "AbortError"));
      controller.enqueue(new TextEncoder().encode(reply("Half", { done: false })));
    },
  });
  const { assistant, calls } = assistantWith([new Response(body, { headers: { "X-Thread-Key": "K" } }), new Response(null, { status: 204 })]);
  const sending = assistant.send("How?");
  await new Promise((resolve) => assistant.subscribe((state) => state.status === "streaming" && resolve()));
  assistant.stop();
  assert.ok(calls[0].signal.aborted);
  const { status, messages } = assistant.getSnapshot();
  assert.deepEqual([status, messages[1].status, messages[1].text, assistant.isBusy], ["idle", "stopped", "Half", false]);
  assert.match(calls[1].url, /\/message\/[0-9a-f]{32}\/stop\?fp=/);
  assert.deepEqual([calls[1].method, calls[1].headers["X-Thread-Key"], calls[1].headers["Content-Type"]], ["POST", "K", undefined]);
  cut(); // as a browser does
  await sending;
});

test("a thread is there after a reload, and its reply goes on", async () => {
  let release;
  const first = assistantWith([streamOf(reply("Hi")), () => new Promise((resolve) => (release = resolve))]);
  await first.assistant.send("How?");
  void first.assistant.send("And?");
  const { assistant, calls } = assistantWith([streamOf(reply("Then this.", { id: "r2" }))], { storage: first.storage });
  assert.deepEqual(assistant.getSnapshot().messages.map((one) => one.text), ["How?", "Hi", "And?", ""]);
  await assistant.resume();
  assert.deepEqual([assistant.getSnapshot().messages[3].text, assistant.getSnapshot().status], ["Then this.", "idle"]);
  assert.equal(calls[0].method, "GET");
  await assistant.resume();
  assert.equal(calls.length, 1); // there is nothing to go on with
  release(streamOf(reply("late")));
});

test("threads are kept, opened, forgotten, and begun anew", async () => {
  const { assistant } = assistantWith([streamOf(reply("One")), streamOf(reply("Two"))]);
  await assistant.send("First?");
  const { chatId } = assistant.getSnapshot();
  assistant.newThread();
  assert.deepEqual(assistant.getSnapshot(), initialState);
  await assistant.send("Second?");
  assert.deepEqual(assistant.getThreads().map((one) => one.title), ["Second?", "First?"]);
  assert.ok(assistant.openThread(chatId));
  assert.deepEqual(assistant.getSnapshot().messages.map((one) => one.text), ["First?", "One"]);
  assistant.forgetThread(chatId);
  assert.deepEqual([assistant.getThreads().length, assistant.getSnapshot().messages.length], [1, 0]);
  assert.equal(assistant.openThread("none"), false);
});

test("storage that is full, broken or missing does no harm", async () => {
  const full = new Storage();
  full.most = 900;
  for (const storage of [full, null, new Storage([["docsmith:kite", "{broken"]]), new Storage([["docsmith:kite", '{"threads":[null,{}],"reader":7,"token":5}']])]) {
    const { assistant } = assistantWith([streamOf(reply("One ".repeat(30))), streamOf(reply("Two"))], { storage });
    await assistant.send("First?");
    assistant.newThread();
    await assistant.send("Second?");
    assert.equal(assistant.getSnapshot().messages[1].text, "Two");
  }
  assert.deepEqual(JSON.parse(full.get("docsmith:kite")).threads.map((one) => one.title), ["Second?"]);
});

test("a thread whose reply is being written can be forgotten", async () => {
  const { assistant, storage } = assistantWith([() => new Promise(() => {}), new Response(null, { status: 204 })]);
  void assistant.send("First?");
  assistant.forgetThread(assistant.getSnapshot().chatId);
  assert.deepEqual([assistant.getThreads(), assistant.getSnapshot().messages, assistant.isBusy], [[], [], false]);
  assert.deepEqual(JSON.parse(storage.get("docsmith:kite")).threads, []);
});

test("a full store keeps the open thread whole, and of others what is shown", async () => {
  const passage = "x".repeat(2_000);
  const messages = Array.from({ length: 60 }, (_, at) => (at % 2 ? { id: `r${at}`, role: "assistant", text: "Do it.", status: "done", sources: [{ number: 1, passage }], suggestions: [], checks: { sentences: [{ text: "Do it.", passage: 1 }] } } : { id: `m${at}`, role: "user", text: "How?" }));
  const threads = Array.from({ length: 20 }, (_, at) => ({ chatId: `c${at}`, threadId: `T${at}`, threadKey: "K", title: `Question ${at}`, at, messages }));
  const storage = new Storage([["docsmith:kite", JSON.stringify({ threads, chatId: "c3" })]]);
  const { assistant } = assistantWith([streamOf(reply("Hi"))], { storage });
  const kept = () => JSON.parse(storage.get("docsmith:kite"));
  const lengths = () => kept().threads.map((one) => one.messages[1].sources[0].passage.length);
  await assistant.send("And then?");
  assert.deepEqual([kept().chatId, kept().threads.length, kept().threads[0].chatId], ["c3", 20, "c3"]);
  assert.deepEqual(lengths(), [2_000, ...Array(19).fill(560)]);
  assert.equal(kept().threads[5].messages[1].checks.sentences[0].passage, 1);
  assert.ok(assistant.openThread("c0"));
  assert.deepEqual([kept().threads[0].chatId, ...lengths()], ["c0", 2_000, ...Array(19).fill(560)]);
  assert.equal(assistant.getSnapshot().messages[1].sources[0].passage.length, 2_000);
  storage.most = storage.get("docsmith:kite").length / 2;
  assistant.openThread("c1");
  assert.deepEqual([kept().chatId, kept().threads.length, assistant.getThreads().length], ["c1", 5, 20]);
});

test("a reply is rated, and a refused rating is not shown", async () => {
  const { assistant, calls } = assistantWith([streamOf(reply("Hi")), new Response(null, { status: 204 }), problem(404, "message_not_found")]);
  await assistant.send("How?");
  await assistant.submitFeedback("r1", "down", "No.");
  assert.deepEqual(calls[1].body, { threadId: "T", messageId: "r1", rating: "down", comment: "No." });
  assert.equal(assistant.getSnapshot().messages[1].rating, "down");
  await assert.rejects(assistant.submitFeedback("r1", "up"), { code: "message_not_found", status: 404 });
  assert.equal(assistant.getSnapshot().messages[1].rating, "down");
});

test("a search asks for beginnings of words", async () => {
  const { assistant, calls } = assistantWith([new Response('[{"path":"a"}]')]);
  assert.deepEqual(await assistant.search(" "), []);
  assert.deepEqual(await assistant.search("ret", { limit: 3 }), [{ path: "a" }]);
  assert.deepEqual([calls[0].url, calls[0].body.prefix, calls[0].body.pageSize], ["https://d.example/discovery/v1/search/kite", true, 3]);
});

test("hooks and listeners can be taken back", async () => {
  const { assistant } = assistantWith([streamOf(reply("Hi")), streamOf(reply("Hi"))]);
  const seen = [];
  const ends = ["ask", "reply", "thread"].map((type) => assistant.on(type, (event) => seen.push(event.type)));
  await assistant.send("a");
  assistant.newThread();
  ends.forEach((end) => end());
  await assistant.send("b");
  assert.deepEqual(seen, ["ask", "reply", "thread"]);
});

test("10,000 pieces take linear time", { timeout: 20_000 }, () => {
  let state = asked();
  for (let count = 0; count < 10_000; count += 1) state = reduce(state, { type: "chunk", chunk: delta("x".repeat(100)) });
  assert.equal(last(reduce(state, { type: "end" })).text.length, 1_000_000);
});

test("the end of hostile suggestions takes linear time", { timeout: 20_000 }, () => {
  const text = `Do it.\n\`\`\`suggestions\n(${")[a".repeat(300_000)}`;
  const state = reduce(reduce(asked(), { type: "chunk", chunk: delta(text) }), { type: "end" });
  assert.deepEqual(last(state).suggestions, []);
  assert.equal(last(state).text, "Do it.\n");
});
