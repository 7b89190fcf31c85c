// Drives the clients' React hooks (useChat) in a page made by jsdom, against a server of ours.
//
// Standard input: a JSON array of scripts {version, url, key, chat?, steps: [...]}, which all run at the same time.
// Standard output: a JSON array of what the page showed after each step, in order.
//
// A step: {say: text} sends a message; {edit: text} sends the first message anew; {regenerate: true}; {stopAt: text}
// sends that message and stops once the reply has begun; {leaveAt: text} sends it and takes the page down then;
// {resume: true} is a new page with the same chat, which resumes.
// After each: {status, error, requests, threadId, metadata, messages: [{role, text, renders, sources}], stoppedAt?}.

import { JSDOM } from "jsdom";
import { chatPackage, reactHooks } from "./packages.mjs";

const dom = new JSDOM("<!doctype html><body></body>", { url: "http://page.example/" });
globalThis.window = dom.window;
globalThis.document = dom.window.document;
globalThis.navigator = dom.window.navigator;

const { createElement, useEffect } = await import("react");
const { createRoot } = await import("react-dom/client");

const BEGUN = 6; // characters of a reply: more than its first word
const input = await new Promise((resolve) => {
  let text = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (piece) => (text += piece));
  process.stdin.on("end", () => resolve(text));
});
const outcomes = await Promise.all(JSON.parse(input).map(played));
process.stdout.write(JSON.stringify(outcomes), () => process.exit(0));

async function played(script) {
  const outcome = { version: script.version, steps: [], crash: null };
  try {
    const open = script.version.startsWith("ai4") ? await opener4(script) : await opener5(script);
    let page = open(script, false);
    for (const step of script.steps) {
      if (step.resume) page = open(script, true);
      outcome.steps.push(await page.take(step));
      if (step.leaveAt) page.close();
    }
    page.close();
  } catch (error) {
    outcome.crash = String(error?.stack ?? error);
  }
  return outcome;
}

// A page with one chat. `use` is the hook's call; `acts` what the steps do with its result.
function pageOf(use, acts) {
  const root = createRoot(document.body.appendChild(document.createElement("div")));
  const seen = { chat: null, renders: new Map(), waiting: [], requests: 0, threadId: null };
  function Chat() {
    const chat = use(seen);
    useEffect(() => {
      seen.chat = chat;
      for (const message of chat.messages) {
        const texts = seen.renders.get(message.id) ?? new Set();
        seen.renders.set(message.id, texts.add(textOf(message)));
      }
      seen.waiting = seen.waiting.filter(({ holds, resolve }) => !holds(chat) || resolve());
    });
    return null;
  }
  root.render(createElement(Chat));
  const until = (holds) =>
    new Promise((resolve, reject) => {
      if (seen.chat && holds(seen.chat)) return resolve();
      const timer = setTimeout(() => reject(new Error(`${seen.chat?.status} ${shown(seen)}`)), 20_000);
      seen.waiting.push({ holds, resolve: () => void (clearTimeout(timer), resolve()) });
    });
  const begun = (chat) => chat.messages.at(-1)?.role === "assistant" && textOf(chat.messages.at(-1)).length > BEGUN;
  const idle = (chat) => (chat.status ? ["ready", "error"].includes(chat.status) : !chat.isLoading);
  return {
    close: () => root.unmount(),
    async take(step) {
      await until(() => true);
      let stoppedAt;
      if (step.resume) await until((chat) => begun(chat) && idle(chat));
      else {
        const before = seen.requests;
        const text = step.say ?? step.edit ?? step.stopAt ?? step.leaveAt;
        if (step.regenerate) acts.regenerate(seen.chat);
        else acts.send(seen.chat, text, step.edit ? seen.chat.messages[0].id : undefined);
        await until(() => seen.requests > before);
        if (step.stopAt || step.leaveAt) {
          await until(begun);
          stoppedAt = Date.now();
          if (step.stopAt) seen.chat.stop();
        }
        if (!step.leaveAt) await until(idle);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return { ...shown(seen), stoppedAt };
    },
  };
}

function shown({ chat, renders, requests, threadId }) {
  return {
    status: chat?.status ?? null,
    error: chat?.error?.message ?? null,
    requests,
    threadId,
    metadata: chat?.messages.at(-1)?.metadata?.threadId ?? null,
    messages: (chat?.messages ?? []).map((message) => ({
      role: message.role,
      text: textOf(message),
      renders: renders.get(message.id)?.size ?? 0,
      sources: (message.parts ?? []).filter((part) => part.type === "source-url").map((part) => part.url),
    })),
  };
}

function textOf(message) {
  if (typeof message.content === "string") return message.content;
  return message.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("");
}

function noting(seen) {
  return async (address, options) => {
    seen.requests += 1;
    const response = await fetch(address, options);
    seen.threadId = response.headers.get("x-thread-id") ?? seen.threadId;
    return response;
  };
}

async function opener5({ version }) {
  const { useChat } = await reactHooks(version);
  const { DefaultChatTransport } = await chatPackage(version);
  return ({ url, key, chat: id }, resume) => {
    let transport;
    return pageOf(
      (seen) => {
        transport ??= new DefaultChatTransport({
          api: url,
          headers: { Authorization: `Bearer ${key}` },
          body: { fp: "anonymous" },
          fetch: noting(seen),
        });
        return useChat({ id, transport, resume, onError: () => {} });
      },
      {
        send: (chat, text, messageId) => void chat.sendMessage({ text, ...(messageId ? { messageId } : {}) }),
        regenerate: (chat) => void chat.regenerate(),
      },
    );
  };
}

async function opener4({ version }) {
  const { useChat } = await reactHooks(version);
  return ({ url, key, chat: id }) => {
    let thread = {};
    return pageOf(
      (seen) =>
        useChat({
          api: url,
          id,
          headers: { Authorization: `Bearer ${key}` },
          body: { fp: "anonymous", ...thread },
          fetch: noting(seen),
          onResponse: (response) => (thread = { threadId: response.headers.get("x-thread-id") }),
          onError: () => {},
        }),
      {
        send: (chat, content) => void chat.append({ role: "user", content }, { body: { fp: "anonymous", ...thread } }),
        regenerate: (chat) => void chat.reload({ body: { fp: "anonymous", ...thread } }),
      },
    );
  };
}
