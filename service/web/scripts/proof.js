// Proof of work: the number that solves a challenge of the service, in ALTCHA's format. It is looked for in slices of a
// few milliseconds on the page's own thread: browsers refuse a worker of another origin, and strict policies any.
// crypto.subtle was turned down: it answers each hash by a promise, which takes ten times as long as the hash.

const SLICE = 5; // milliseconds; a page should answer within 8
const AT_ONCE = 8; // hashes between two looks at the clock
const TRIES = 3; // challenges of one request: a first one may end, or be of a network that was left
const WORDS = new Int32Array(64);
const STATE = new Int32Array(8);
const [ROOTS, START] = constants();

function constants() {
  const roots = new Int32Array(64);
  const start = new Int32Array(8);
  const fraction = (number) => (number - Math.floor(number)) * 2 ** 32;
  for (let prime = 2, found = 0; found < 64; prime += 1) {
    let divisor = 2;
    while (divisor * divisor <= prime && prime % divisor) divisor += 1;
    if (divisor * divisor <= prime) continue;
    if (found < 8) start[found] = fraction(Math.sqrt(prime));
    roots[found++] = fraction(Math.cbrt(prime));
  }
  return [roots, start];
}

/** The SHA-256 of some bytes, as eight words: the same array each time. */
export function sha256(bytes, length = bytes.length) {
  STATE.set(START);
  const blocks = (length + 72) >> 6;
  for (let at = 0; at < blocks * 64; at += 1) {
    const word = (at & 63) >> 2;
    const byte = at < length ? bytes[at] : at === length ? 128 : 0;
    WORDS[word] = (WORDS[word] << 8) | byte;
    if ((at & 63) < 63) continue;
    if (at >> 6 === blocks - 1) WORDS[15] = length << 3;
    compress(STATE);
  }
  return STATE;
}

function compress(state) {
  for (let at = 16; at < 64; at += 1) {
    const near = WORDS[at - 15];
    const far = WORDS[at - 2];
    const first = ((near >>> 7) | (near << 25)) ^ ((near >>> 18) | (near << 14)) ^ (near >>> 3);
    const second = ((far >>> 17) | (far << 15)) ^ ((far >>> 19) | (far << 13)) ^ (far >>> 10);
    WORDS[at] = (WORDS[at - 16] + first + WORDS[at - 7] + second) | 0;
  }
  let a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
  for (let at = 0; at < 64; at += 1) {
    const high = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const one = (h + high + ((e & f) ^ (~e & g)) + ROOTS[at] + WORDS[at]) | 0;
    const low = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const two = (low + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + one) | 0; d = c; c = b; b = a; a = (one + two) | 0;
  }
  state[0] += a; state[1] += b; state[2] += c; state[3] += d; state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}

const wordsOf = (hex) => Int32Array.from(hex.match(/.{8}/g) ?? [], (word) => parseInt(word, 16));

/** The challenge with its number, to send as `proof`; null when no number up to its most solves it. */
export async function solve({ algorithm, challenge, maxnumber, salt, signature }, signal) {
  const wanted = wordsOf(challenge);
  const encoder = new TextEncoder();
  const bytes = new Uint8Array(3 * salt.length + 16);
  for (let number = 0; number <= maxnumber; ) {
    for (const until = performance.now() + SLICE; number <= maxnumber && performance.now() < until; ) {
      for (const stop = number + AT_ONCE; number <= maxnumber && number < stop; number += 1) {
        const found = sha256(bytes, encoder.encodeInto(salt + number, bytes).written);
        if (found[0] === wanted[0] && found.every((word, at) => word === wanted[at])) return { algorithm, challenge, number, salt, signature };
      }
    }
    await new Promise((resolve) => setTimeout(resolve));
    signal?.throwIfAborted();
  }
  return null;
}

/** The answer to a request (`response`, where it was sent already); one that lacks proof is sent again with it. */
export async function withProof(send, signal, response) {
  for (let tries = 0, body; ; tries += 1) {
    if (!response || tries) response = await send(body);
    if (response.status !== 403 || tries === TRIES) return response;
    const { challenge } = await response.clone().json().catch(() => ({}));
    const proof = challenge && (await solve(challenge, signal));
    if (!proof) return response;
    body = JSON.stringify({ proof });
  }
}
