// What screen readers hear of an answer: whole sentences, as they come, not each piece.

import { blanked, make } from "./nodes.js";

const END = /[.!?。！？؟](?=["'”’)\]*_]{0,3}\s)|\n\n/g;
const [MAX_SILENCE, MAX_SPOKEN] = [2_000, 60];

/** Speaks in a log region. */
export class Speaker {
  #region; #said = 0;

  constructor(region) {
    this.#region = region;
  }

  /** Say the sentences of a growing text that are complete; with its end, the rest. */
  follow(text, isOver) {
    if (text.length < this.#said) this.#said = 0;
    const rest = text.slice(this.#said);
    let end = isOver || rest.length > MAX_SILENCE ? rest.length : 0;
    END.lastIndex = 0;
    for (let found; !isOver && (found = END.exec(rest)); ) end = Math.max(end, found.index + found[0].length);
    if (!end) return;
    this.#said += end;
    this.say(blanked(rest.slice(0, end)).replace(/\s+/g, " ").trim());
  }

  /** Begin with a new text, of which so many characters are known already. */
  begin(known = 0) {
    this.#said = known;
  }

  say(sentence) {
    if (!sentence) return;
    this.#region.append(make("p", {}, sentence));
    if (this.#region.childElementCount > MAX_SPOKEN) this.#region.firstElementChild.remove();
  }
}
