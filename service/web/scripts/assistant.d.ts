/** Docsmith's assistant for web pages, without a view. No dependency; for browsers and Node.js 20. */

export type Status = "idle" | "waiting" | "streaming" | "error";
export type ReplyStatus = "streaming" | "done" | "stopped" | "broken";
export type Rating = "up" | "down";

export interface Source {
  /** As the reply cites it. */
  number: number;
  /** The section's address, which may be relative to the documentation site. */
  url: string;
  title: string;
  heading: string;
  /** The beginning of the passage that the reply was made from: 2,000 characters, and 560 where another thread was open
   * when the page was left. */
  passage: string;
}

export interface Suggestion {
  label: string;
  path: string;
}

export interface SentenceCheck {
  text: string;
  start: number;
  status: "supported" | "partly" | "unsupported";
  passage?: number;
  missing?: string[];
}

export interface Checks {
  supported: number;
  partly: number;
  unsupported: number;
  sentences: SentenceCheck[];
}

export interface Question {
  id: string;
  role: "user";
  text: string;
}

export interface Reply {
  /** Empty until the service has begun it. */
  id: string;
  role: "assistant";
  /** Markdown, without the suggestions. */
  text: string;
  status: ReplyStatus;
  sources: Source[];
  suggestions: Suggestion[];
  checks: Checks | null;
  /** The words that are being searched for. */
  searching: string;
  /** `length` or `content-filter` where the text is not whole, `error` where passages stand in for an answer, `other` where
      the provider gave a reason that is not known. */
  finishReason: string;
  rating: Rating | null;
}

export type Message = Question | Reply;

export interface Failure {
  /** A code of the service's errors, or `connection_lost`. */
  code: string;
  message: string;
  status?: number;
  retryAfterSeconds?: number;
}

export interface Snapshot {
  status: Status;
  chatId: string;
  threadId: string;
  threadKey: string;
  messages: Message[];
  error: Failure | null;
  /** More than 0 while the model's provider is busy. */
  waitingSeconds: number;
  /** Whether a reply is under way of which nothing has come for 10 s. */
  isSlow: boolean;
}

export interface Filter {
  version?: string;
  language?: string;
  tag?: string;
  groups?: string[];
}

export interface Context {
  /** The page that the reader has open. */
  path?: string;
  /** The text that the reader has selected there. */
  selection?: string;
  filter?: Filter;
  /** How many passages an answer is made from, 1 to 50. */
  pageSize?: number;
}

export interface KeptThread {
  chatId: string;
  threadId: string;
  title: string;
  /** Milliseconds since 1970. */
  at: number;
}

export interface SearchResult {
  content: string;
  path: string;
  metadata: { title: string; url: string; score: number; heading?: string; highlights?: unknown };
}

/** Without the question's text. */
export interface HookEvent {
  type: HookType;
  threadId: string;
  chatId: string;
  messageId?: string;
  rating?: Rating;
  code?: string;
}

export type HookType = "ask" | "retry" | "reply" | "stop" | "error" | "feedback" | "search" | "thread";

export interface KeepsText {
  getItem(name: string): string | null;
  setItem(name: string, text: string): void;
}

export interface Options {
  /** The site's domain. */
  site: string;
  /** An assistant key; left out for a public site. */
  key?: string;
  /** Whether the key needs reader tokens, as the settings of the site's widget say: then the first call is made with one.
   * When left out, it is repeated with one after it was refused. */
  readerTokens?: boolean;
  /** The service's address, without a slash at its end; the one that this script is from when left out. */
  server?: string;
  /** Addresses in place of the service's own. */
  endpoints?: { message?: string; search?: string; feedback?: string; token?: string };
  /** The reader's name, 1 to 200 characters; a random one when left out. */
  reader?: string;
  context?: Context;
  /** Where threads are kept over a reload: `sessionStorage` when left out, null for nowhere. */
  storage?: KeepsText | null;
  /** Further headers of each request. */
  headers?: Record<string, string>;
  fetch?: typeof fetch;
  /** Milliseconds before a lost connection is made again; growing from 1 s when left out. */
  reconnectDelay?: number;
}

export interface Assistant {
  getSnapshot(): Snapshot;
  /** Calls the listener after each change; returns what ends that. */
  subscribe(listener: (snapshot: Snapshot) => void): () => void;
  on(type: HookType, hook: (event: HookEvent) => void): () => void;
  setContext(context: Context): void;
  readonly isBusy: boolean;
  /** Ask. Does nothing while a reply is being written. Never rejects: errors are in the snapshot. */
  send(text: string): Promise<void>;
  /** Another reply to the last question, or the same question again after an error. */
  retry(): Promise<void>;
  /** End the reply; its text so far stays. */
  stop(): void;
  /** Go on with the reply that was being written when the page was left. Call it once after a reload. */
  resume(): Promise<void>;
  /** Rejects with an `AssistantError`. */
  submitFeedback(messageId: string, rating: Rating, comment?: string): Promise<void>;
  /** Sections, best first. Rejects with an `AssistantError`. */
  search(query: string, options?: { limit?: number; signal?: AbortSignal }): Promise<SearchResult[]>;
  newThread(): void;
  /** Newest first, at most 20. */
  getThreads(): KeptThread[];
  openThread(chatId: string): boolean;
  forgetThread(chatId: string): void;
  destroy(): void;
}

export interface AssistantError extends Error {
  code: string;
  status: number;
  retryAfterSeconds: number;
}

export type Action =
  | { type: "ask"; id: string; text: string }
  | { type: "retry" | "resume" | "end" | "stop" }
  | { type: "slow"; isSlow: boolean }
  | { type: "open"; threadId: string | null; threadKey: string | null; replyId: string | null }
  | { type: "chunk"; chunk: Record<string, unknown> & { type?: string } }
  | { type: "fail"; error: Failure }
  | { type: "rate"; id: string; rating: Rating }
  | { type: "thread"; thread: Partial<Snapshot> };

export declare const initialState: Snapshot;
export declare function reduce(state: Snapshot, action: Action): Snapshot;
export declare class EventParser {
  push(text: string): string[];
}
export declare function createAssistant(options: Options): Assistant;
