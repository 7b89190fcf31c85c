import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { createAssistant } from "../../service/web/scripts/assistant.js";
import { sha256, solve, withProof } from "../../service/web/scripts/proof.js";

const SALT = "9a1f0c3e5b7d2a4c6e8f0b1d?expires=1795428000&";
const hash = (text) => createHash("sha256").update(text).digest("hex");
const hex = (words) => Array.from(words, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
const challengeOf = (number, maxnumber = 2_000) => ({ algorithm: "SHA-256", challenge: hash(SALT + number), maxnumber, salt: SALT, signature: "s" });
const refusal = (challenge) => new Response(JSON.stringify({ code: "proof_required", detail: "Busy.", challenge }), { status: 403 });

test("a hash is that of the standard, for any length", () => {
  const random = Uint8Array.from({ length: 300 }, (_, at) => (at * 151 + 7) & 255);
  for (let length = 0; length <= random.length; length += 1) {
    const bytes = random.subarray(0, length);
    assert.equal(hex(sha256(bytes)), hash(bytes), `${length} bytes`);
  }
});

test("the number of a challenge is found, the first and the last included", async () => {
  for (const number of [0, 1, 63, 64, 1_999, 2_000]) {
    const { maxnumber, ...rest } = challengeOf(number);
    assert.deepEqual(await solve({ maxnumber, ...rest }), { ...rest, number });
  }
});

test("a challenge without a solution ends", async () => {
  assert.equal(await solve(challengeOf(2_001)), null);
});

test("a challenge is left when the reader stops", async () => {
  const stopped = new AbortController();
  const solving = solve(challengeOf(10_000_001, 10_000_000), stopped.signal);
  stopped.abort();
  await assert.rejects(solving, { name: "AbortError" });
});

test("a request that needs proof is repeated with it, a few times", async () => {
  const sent = [];
  const answers = [refusal(challengeOf(3)), refusal(challengeOf(4)), new Response("{}")];
  const response = await withProof(async (body) => (sent.push(body), answers.shift()));
  assert.equal(response.status, 200);
  assert.deepEqual(sent.map((body) => body && JSON.parse(body).proof.number), [undefined, 3, 4]);
  let count = 0;
  const refused = await withProof(async () => ((count += 1), refusal(challengeOf(1))));
  assert.deepEqual([refused.status, count, (await refused.json()).code], [403, 4, "proof_required"]);
});

test("a refusal that is there already is not asked for again", async () => {
  const sent = [];
  const response = await withProof(async (body) => (sent.push(body), new Response("{}")), undefined, refusal(challengeOf(3)));
  assert.deepEqual([response.status, sent.length, JSON.parse(sent[0]).proof.number], [200, 1, 3]);
});

test("an assistant that knows of tokens makes no call without one", async () => {
  const calls = [];
  const answers = [new Response('{"token":"t","expiresIn":900}'), new Response("[]")];
  const fake = async (url, { headers }) => (calls.push([url.split("/").at(-2), headers["X-Reader-Token"]]), answers.shift());
  const assistant = createAssistant({ site: "kite", server: "https://d.example", key: "KEY", fetch: fake, storage: null, readerTokens: true });
  await assistant.search("install");
  assert.deepEqual(calls, [["token", undefined], ["search", "t"]]);
});

test("another refusal is not repeated", async () => {
  for (const body of ["no JSON", '{"code":"origin_not_allowed"}']) {
    let count = 0;
    const response = await withProof(async () => ((count += 1), new Response(body, { status: 403 })));
    assert.deepEqual([count, await response.text()], [1, body]);
  }
});

test("the assistant solves what its token costs, and asks", async () => {
  const calls = [];
  const token = { token: "t", expiresIn: 900 };
  const answers = [
    new Response('{"code":"reader_token_required"}', { status: 401 }), refusal(challengeOf(1_234)),
    new Response(JSON.stringify(token)), new Response("[]"),
  ];
  const fake = async (url, { headers, body }) => (calls.push({ url, headers, body: body && JSON.parse(body) }), answers.shift());
  const assistant = createAssistant({ site: "kite", server: "https://d.example", key: "KEY", fetch: fake, storage: null });
  assert.deepEqual(await assistant.search("install"), []);
  assert.deepEqual(calls.map((call) => call.body?.proof?.number), [undefined, undefined, 1_234, undefined]);
  assert.deepEqual([calls[2].headers["Content-Type"], calls[3].headers["X-Reader-Token"]], ["application/json", "t"]);
});
