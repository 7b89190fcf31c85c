// Drives the chat clients that people use, from npm, against a server of ours; no React.
//
// Standard input: a JSON array of conversations. Standard output: a JSON array of what became of each, in order.
//
//   {version, url, key?, turns: ["question", ...], body?, userAgent?, stopAfterDeltas?, resumeChat?}
//
// version: a client by the name of packages.mjs (ai4old … ai7): the client's own transport and state, as its useChat hook drives
// them; or a raw reader of the v2 stream: "raw-lines" (splits at LF, takes lines that begin with "data: ", parses each
// without a try) and "raw-spec" (eventsource-parser).
// body: fields beside the messages (fp, retrievalPageSize, ...). Later turns add the threadId of the first.

import { createParser } from "eventsource-parser";
import { chatPackage, uiUtils } from "./packages.mjs";

const input = await new Promise((resolve, reject) => {
  let text = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (piece) => (text += piece));
  process.stdin.on("end", () => resolve(text));
  process.stdin.on("error", reject);
});
const conversations = JSON.parse(input);
const outcomes = await Promise.all(conversations.map(converse));
process.stdout.write(JSON.stringify(outcomes), () => process.exit(0)); // a connection kept alive must not hold it up

async function converse(conversation) {
  const outcome = { version: conversation.version, turns: [], toolCallsInPage: 0, requests: 0, crash: null };
  try {
    if (conversation.version.startsWith("raw-")) await converseRaw(conversation, outcome);
    else if (conversation.version.startsWith("ai4")) await converse4(conversation, outcome);
    else await converse5(conversation, outcome);
  } catch (error) {
    outcome.crash = String(error?.stack ?? error);
  }
  return outcome;
}

function headersOf({ key, userAgent }) {
  return { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...(userAgent ? { "User-Agent": userAgent } : {}) };
}

function newTurn(question) {
  return {
    question,
    status: null,
    httpStatus: null,
    contentType: null,
    deltas: 0,
    text: "",
    parts: [],
    sources: [],
    toolCalls: [],
    threadId: { header: null, metadata: null, onFinish: null, data: null, annotations: null, finishEvent: null },
    threadKey: null,
    finished: 0,
    waits: [],
    checks: [],
    errors: [],
  };
}

// A fetch that notes the headers of each response on the turn under way.
function noting(outcome, current) {
  return async (address, options) => {
    outcome.requests += 1;
    const response = await fetch(address, options);
    const turn = current();
    turn.httpStatus = response.status;
    turn.contentType = response.headers.get("content-type");
    turn.threadId.header = response.headers.get("x-thread-id");
    turn.threadKey = response.headers.get("x-thread-key");
    turn.sessionId = response.headers.get("x-session-id");
    return response;
  };
}

function threadOf(outcome) {
  const first = outcome.turns[0]?.threadId;
  return first?.header ?? first?.metadata ?? first?.annotations ?? null;
}

function bodyOf(conversation, outcome) {
  const threadId = conversation.body?.threadId ?? threadOf(outcome);
  return { fp: "anonymous", retrievalPageSize: 5, ...conversation.body, ...(threadId ? { threadId } : {}) };
}

// AI SDK 5 and later: AbstractChat with its default transport, which is all that useChat wraps.
async function converse5(conversation, outcome) {
  const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls } = await chatPackage(
    conversation.version,
  );
  let turn = newTurn("");
  const state = {
    status: "ready",
    error: undefined,
    messages: [],
    pushMessage(message) {
      this.messages = this.messages.concat(message);
      this.look(message);
    },
    popMessage() {
      this.messages = this.messages.slice(0, -1);
    },
    replaceMessage(index, message) {
      this.messages = [...this.messages.slice(0, index), message, ...this.messages.slice(index + 1)];
      this.look(message);
    },
    snapshot: (value) => structuredClone(value),
    look(message) {
      if (message.role !== "assistant") return;
      const text = textOf(message);
      if (text !== turn.text) {
        turn.deltas += 1;
        turn.text = text;
        if (conversation.stopAfterDeltas === turn.deltas) stopped = chat.stop();
      }
    },
  };
  let stopped = null;
  class Chat extends AbstractChat {}
  const chat = new Chat({
    ...(conversation.resumeChat ? { id: conversation.resumeChat } : {}),
    state,
    transport: new DefaultChatTransport({
      api: conversation.url,
      headers: headersOf(conversation),
      fetch: noting(outcome, () => turn),
    }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall: () => void (outcome.toolCallsInPage += 1),
    onError: (error) => turn.errors.push(String(error?.message ?? error)),
    onData: (part) => {
      turn.threadId.data ??= part.data?.threadId ?? null;
      if (part.data?.type === "waiting") turn.waits.push(part.data.seconds);
    },
    onFinish: ({ message }) => {
      turn.finished += 1;
      turn.threadId.onFinish = message?.metadata?.threadId ?? null;
    },
  });
  for (const question of conversation.resumeChat ? [null] : conversation.turns) {
    turn = newTurn(question);
    if (question === null) await chat.resumeStream();
    else await chat.sendMessage({ text: question }, { body: bodyOf(conversation, outcome) });
    await stopped;
    const message = state.messages.at(-1);
    turn.status = chat.status;
    if (message?.role === "assistant") {
      turn.text = textOf(message);
      turn.parts = message.parts.map((part) => part.type);
      turn.checks = message.parts.filter((part) => part.type === "data-docsmith-check").map((part) => part.data);
      turn.sources = message.parts
        .filter((part) => part.type === "source-url")
        .map(({ url, title }) => ({ url, title: title ?? null }));
      turn.toolCalls = message.parts
        .filter((part) => part.type.startsWith("tool-"))
        .map(({ type, state: progress, input: args, output }) => ({
          name: type.slice("tool-".length),
          state: progress,
          args,
          result: output ?? null,
        }));
      turn.threadId.metadata = message.metadata?.threadId ?? null;
    }
    outcome.chatId = chat.id;
    outcome.turns.push(turn);
    if (turn.errors.length > 0) break;
  }
}

function textOf(message) {
  return message.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("");
}

// AI SDK 4: what useChat of @ai-sdk/react 1 does around callChatApi, with the options that our v1 documents.
async function converse4(conversation, outcome) {
  const { callChatApi, shouldResubmitMessages } = uiUtils(conversation.version);
  let count = 0;
  const generateId = () => `id-${(count += 1)}`;
  let messages = [];
  let data = [];
  for (const question of conversation.turns) {
    const turn = newTurn(question);
    const asked = {
      id: generateId(),
      role: "user",
      content: question,
      createdAt: new Date(),
      parts: [{ type: "text", text: question }],
    };
    messages = [...messages, asked];
    const sent = messages;
    const abort = new AbortController();
    let reply = null;
    try {
      await callChatApi({
        api: conversation.url,
        body: { id: "chat-1", messages: sent, ...bodyOf(conversation, outcome) },
        streamProtocol: "data",
        credentials: undefined,
        headers: headersOf(conversation),
        abortController: () => abort,
        restoreMessagesOnFailure: () => {},
        onResponse: undefined,
        onUpdate({ message, data: more }) {
          if (message.content !== turn.text) turn.deltas += 1;
          turn.text = message.content;
          reply = structuredClone(message);
          messages = [...sent, reply];
          if (more?.length) data = more;
          if (conversation.stopAfterDeltas && turn.deltas >= conversation.stopAfterDeltas) abort.abort();
        },
        onFinish(message, { usage, finishReason }) {
          turn.finished += 1;
          turn.usage = usage;
          turn.finishReason = finishReason;
          turn.threadId.onFinish = threadIn(message.annotations);
        },
        onToolCall: () => void (outcome.toolCallsInPage += 1),
        generateId,
        fetch: noting(outcome, () => turn),
        lastMessage: sent.at(-1),
      });
      turn.status = "ready";
    } catch (error) {
      turn.status = error.name === "AbortError" ? "ready" : "error";
      if (turn.status === "error") turn.errors.push(error.message);
    }
    turn.data = data;
    turn.threadId.data = threadIn(data);
    turn.waits = (reply?.annotations ?? []).filter((one) => one.type === "waiting").map((one) => one.seconds);
    turn.checks = (reply?.annotations ?? []).filter((one) => one.type === "docsmith-check").map((one) => one.data);
    turn.threadId.annotations = threadIn(reply?.annotations);
    turn.messageId = reply?.id ?? null;
    turn.parts = reply?.parts?.map((part) => part.type) ?? [];
    turn.toolCalls = (reply?.toolInvocations ?? []).map(({ toolName, state, args, result }) => ({
      name: toolName,
      state,
      args,
      result: result ?? null,
    }));
    if (shouldResubmitMessages) {
      turn.asksAgain = shouldResubmitMessages({
        originalMaxToolInvocationStep: undefined,
        originalMessageCount: sent.length,
        maxSteps: 5,
        messages,
      });
    }
    outcome.turns.push(turn);
    if (turn.status === "error") break;
  }
}

function threadIn(values) {
  return (values ?? []).findLast?.((value) => value?.threadId)?.threadId ?? null;
}

async function converseRaw(conversation, outcome) {
  const body = { fp: "anonymous", ...conversation.body };
  for (const question of conversation.turns) {
    const turn = newTurn(question);
    const message = { id: `m${outcome.turns.length}`, role: "user", parts: [{ type: "text", text: question }] };
    const threadId = threadOf(outcome);
    const response = await noting(outcome, () => turn)(conversation.url, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headersOf(conversation) },
      body: JSON.stringify({ ...body, messages: [message], ...(threadId ? { threadId } : {}) }),
    });
    turn.events = conversation.version === "raw-lines" ? await readLines(response) : await readEvents(response);
    for (const event of turn.events) {
      if (event.type === "text-delta") {
        turn.deltas += 1;
        turn.text += event.delta;
      }
      if (event.type === "finish") {
        turn.finished += 1;
        turn.threadId.finishEvent = event.threadId ?? null;
      }
      if (event.type === "start" || event.type === "finish") {
        turn.threadId.metadata ??= event.messageMetadata?.threadId ?? null;
      }
      if (event.type === "source-url") turn.sources.push({ url: event.url, title: event.title ?? null });
      if (event.type === "error") turn.errors.push(event.errorText);
    }
    turn.status = turn.errors.length > 0 ? "error" : "ready";
    outcome.turns.push(turn);
  }
}

async function readLines(response) {
  const events = [];
  for (const line of (await response.text()).split("\n")) {
    if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
    events.push(JSON.parse(line.slice("data: ".length)));
  }
  return events;
}

async function readEvents(response) {
  const events = [];
  const parser = createParser({
    onEvent: ({ data }) => void (data === "[DONE]" || events.push(JSON.parse(data))),
    onError: (error) => {
      throw error;
    },
  });
  const decoder = new TextDecoder();
  for await (const piece of response.body) parser.feed(decoder.decode(piece, { stream: true }));
  return events;
}
