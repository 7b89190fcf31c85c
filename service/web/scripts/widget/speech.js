// What screen readers hear of an answer: whole sentences, as they come, not each piece. Nothing of it stays.

import { blanked, make } from "./nodes.js";

const END = /[.!?。！？؟](?=["'”’)\]*_]{0,3}\s)|\n\n/g;
const [MAX_SILENCE, HEARD] = [2_000, 60_000]; // characters; milliseconds after which a sentence is no news

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
    let from = 0;
    const sayTo = (end) => { this.say(heard(rest.slice(from, end))); from = end; };
    END.lastIndex = 0;
    for (let found; (found = END.exec(rest)); ) sayTo(END.lastIndex);
    if (isOver || rest.length - from > MAX_SILENCE) sayTo(rest.length);
    this.#said += from;
  }

  /** Begin with a new text, of which so many characters are known already: nothing before it is heard any more. */
  begin(known = 0) {
    this.#said = known;
    this.#region.replaceChildren();
  }

  say(sentence) {
    if (!sentence) return;
    const said = make("p", {}, sentence);
    this.#region.append(said);
    setTimeout(() => said.remove(), HEARD);
  }
}

/** Markdown as it is read aloud: rows of a table as lists of their cells, without its line of dashes and without citations. */
function heard(markdown) {
  const rows = markdown.replace(/^[ |:-]*-[ |:-]*$/gm, "").replace(/^ *\|(.*?)\|? *$/gm, (_, row) => `${row.trim().replace(/ *\| */g, ", ")}.`);
  return blanked(rows.replace(/\[\d+\]\([^)\s]*\)/g, "")).replace(/\s+/g, " ").trim();
}
