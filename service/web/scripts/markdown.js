// Markdown to nodes of a document, while it is being written. Nothing is ever parsed as HTML: a tag is shown as text.
//
// Blocks that are complete stay as they are; the last one is rendered again as it grows. A block of more than
// MAX_BLOCK characters is closed, nesting ends at MAX_DEPTH, patterns see short lines alone, and the search for the end
// of a pair stops after the first failure: so the time for a hostile text grows with its length alone.

const MAX_BLOCK = 16_000;
const MAX_DEPTH = 8;
const MAX_LABEL = 300;
const MAX_LINE = 1_000;
const MAX_COLUMNS = 50;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:([ \t]+)(.*))?$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const DIVIDER = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

const matchOf = (pattern, line) => (line.length > MAX_LINE ? null : pattern.exec(line));

/** The address, if a link may lead there: http, https, mailto, or relative. Else the empty string. */
export function safeUrl(url, base) {
  try {
    const parsed = new URL(url, base || "https://relative.invalid/");
    if (!["http:", "https:", "mailto:"].includes(parsed.protocol)) return "";
    return parsed.origin === "https://relative.invalid" ? url : parsed.href;
  } catch {
    return "";
  }
}

/** The address of a page on a site: whole, or from the site's root. Empty for one that would lead off the site unsaid. */
export function pageUrl(url, site) {
  const safe = safeUrl(url, site);
  return !safe || /^https?:\/\//i.test(url) || new URL(safe).origin === new URL(site).origin ? safe : "";
}

/** The address of a page, which counts from the root of its site or of its host, below that of the site. */
export function siteUrl(url, site) {
  const folder = new URL(site).pathname.replace(/\/+$/, "");
  return pageUrl(url.startsWith("/") && !url.startsWith("//") && !`${url}/`.startsWith(`${folder}/`) ? folder + url : url, site);
}

const CODE = /(^ {0,3}(```|~~~)[^]*?(?:^ {0,3}\2|(?![^]))|`[^`\n]*`)/m;
const SITE_LINK = /\[([^[\]\n]{0,300})\]\((\/[^()\s]{0,2000})\)/g;

/** A text for another place: its links within the site have whole addresses, which `link(url)` gives; without one, none. */
export function movable(text, link) {
  const moved = (part) => part.replace(SITE_LINK, (_, label, url) => (link(url) ? `[${label}](${link(url)})` : label));
  return text.split(CODE).map((part, index) => (index % 3 === 0 ? moved(part) : index % 3 === 1 ? part : "")).join("");
}

/**
 * A view of growing Markdown in an element. `update(text)` shows the text so far; `link(url)` may change or refuse
 * (with the empty string) an address, after `safeUrl`; `image(url)` gives the address of an image to show; images are
 * links where it is left out; `code(element)` gets each code block whose end is there, `named(anchor)` each link.
 */
export function createMarkdown(element, options = {}) {
  return new Markdown(element, options);
}

class Markdown {
  #element;
  #context;
  #text = "";
  #done = 0;
  #open = [];

  constructor(element, { document = element.ownerDocument, base = "", link = (url) => url, image = () => "", code = () => {}, named = () => {} }) {
    this.#element = element;
    const checked = (change) => (url) => {
      const safe = safeUrl(url, base);
      return safe && safeUrl(change(safe), base);
    };
    this.#context = { document, link: checked(link), image: checked(image), code, named };
  }

  update(text) {
    if (text === this.#text) return;
    if (!text.startsWith(this.#text)) this.clear();
    this.#text = text;
    for (const node of this.#open) node.remove();
    this.#open = [];
    const lines = text.slice(this.#done).split("\n");
    const blocks = blocksOf(lines);
    const last = lastOpen(blocks, lines);
    for (const [index, [at, end]] of blocks.entries()) {
      const nodes = renderBlock(this.#context, lines, at, end, 0);
      const length = lines.slice(at, end).reduce((sum, line) => sum + line.length + 1, 0);
      this.#element.append(...nodes);
      if (index < last || (length > MAX_BLOCK && !matchOf(FENCE, lines[at]) && !this.#open.length)) {
        this.#done = Math.min(this.#done + length, text.length);
      } else this.#open.push(...nodes);
    }
  }

  clear() {
    this.#element.replaceChildren();
    [this.#text, this.#done, this.#open] = ["", 0, []];
  }
}

// Blocks: each is a range of lines

function blocksOf(lines) {
  const blocks = [];
  for (let at = 0; at < lines.length; at = blocks.at(-1)[1]) blocks.push([at, Math.min(blockEnd(lines, at), lines.length)]);
  return blocks;
}

/** The index of the first block that more text may change. The last line may be a part of one, so it shows nothing. */
function lastOpen(blocks, lines) {
  const before = (index) => {
    while (index > 0 && isBlank(lines[blocks[index][0]])) index -= 1;
    return index;
  };
  const last = before(blocks.length - 1);
  if (last === 0 || blocks[last][0] !== lines.length - 1) return last;
  const [at, end] = blocks[before(last - 1)];
  const fence = matchOf(FENCE, lines[at]);
  return fence && end - 1 > at && closes(lines[end - 1], fence[1]) ? last : before(last - 1); // closed code stays
}

const isBlank = (line) => !line.trim();
const indentOf = (line) => line.length - line.trimStart().length;

function startsBlock(lines, at) {
  const line = lines[at];
  return [FENCE, HEADING, RULE].some((one) => matchOf(one, line)) || QUOTE.test(line) || ITEM.test(line) || isTable(lines, at);
}

function isTable(lines, at) {
  return at + 1 < lines.length && lines[at].includes("|") && lines[at + 1].includes("-") && matchOf(DIVIDER, lines[at + 1])
    && cellsOf(lines[at]).length === cellsOf(lines[at + 1]).length;
}

/** The line after the block that begins here. */
function blockEnd(lines, at) {
  const line = lines[at];
  if (isBlank(line)) return at + 1;
  const fence = matchOf(FENCE, line);
  let length = 0;
  const isFull = (next) => (length += lines[next].length + 1) > MAX_BLOCK;
  let next = at + 1;
  if (fence) {
    while (next < lines.length && !closes(lines[next], fence[1])) next += 1;
    return next + 1;
  }
  if (matchOf(HEADING, line) || matchOf(RULE, line)) return at + 1;
  if (QUOTE.test(line)) {
    while (next < lines.length && QUOTE.test(lines[next]) && !isFull(next)) next += 1;
    return next;
  }
  if (isTable(lines, at)) {
    for (next = at + 2; next < lines.length && lines[next].includes("|") && !isFull(next); ) next += 1;
    return next;
  }
  const item = ITEM.exec(line);
  if (item) return listEnd(lines, at, item, isFull);
  while (next < lines.length && !isBlank(lines[next]) && !startsBlock(lines, next) && !isFull(next)) next += 1;
  return next;
}

function closes(line, mark) {
  const trimmed = line.trim();
  return trimmed.length >= mark.length && indentOf(line) < 4 && trimmed === mark[0].repeat(trimmed.length);
}

function listEnd(lines, at, item, isFull) {
  let next = at + 1;
  for (; next < lines.length && !isFull(next); next += 1) {
    const line = lines[next];
    if (isBlank(line)) {
      const after = lines[next + 1];
      if (after === undefined) break;
      const other = ITEM.exec(after);
      if (isBlank(after) || !(indentOf(after) > indentOf(lines[at]) || (other && isSameList(item, other)))) break;
    } else if (indentOf(line) <= item[1].length) {
      const other = ITEM.exec(line);
      if (other ? !isSameList(item, other) : startsBlock(lines, next)) break;
    }
  }
  return next;
}

const isSameList = (one, other) => /\d/.test(one[2]) === /\d/.test(other[2]) && one[2].at(-1) === other[2].at(-1);

function renderBlocks(context, lines, depth) {
  const nodes = [];
  for (let at = 0; at < lines.length; ) {
    const end = Math.min(blockEnd(lines, at), lines.length);
    nodes.push(...renderBlock(context, lines, at, end, depth));
    at = end;
  }
  return nodes;
}

function renderBlock(context, lines, at, end, depth) {
  const line = lines[at];
  if (isBlank(line)) return [];
  if (depth > MAX_DEPTH) return [element(context, "p", [lines.slice(at, end).join("\n")])];
  const fence = matchOf(FENCE, line);
  if (fence) {
    const isClosed = end - 1 > at && closes(lines[end - 1], fence[1]);
    const code = element(context, "code", [lines.slice(at + 1, isClosed ? end - 1 : end).join("\n")]);
    if (/^[\w+#.-]{1,40}$/.test(fence[2])) code.className = `language-${fence[2]}`;
    const box = element(context, "pre", [code]);
    box.tabIndex = 0; // it scrolls
    if (isClosed) context.code(code);
    return [box];
  }
  const heading = matchOf(HEADING, line);
  if (heading) {
    const level = Math.min(heading[1].length + 2, 6); // a reply is a part of a page
    return [element(context, `h${level}`, inline(context, line.slice(heading[0].length).trim().replace(/ #+$/, "")))];
  }
  if (matchOf(RULE, line)) return [context.document.createElement("hr")];
  if (QUOTE.test(line)) {
    const inside = lines.slice(at, end).map((one) => QUOTE.exec(one)[1]);
    return [element(context, "blockquote", renderBlocks(context, inside, depth + 1))];
  }
  if (isTable(lines, at)) return [renderTable(context, lines.slice(at, end))];
  const item = ITEM.exec(line);
  if (item) return [renderList(context, lines.slice(at, end), item, depth)];
  const text = lines.slice(at, end).map((one, index, all) => (index + 1 < all.length ? one.trimStart() : one.trim())).join("\n");
  const paragraphs = [];
  for (let from = 0; from < text.length; from += MAX_BLOCK) {
    paragraphs.push(element(context, "p", inline(context, text.slice(from, from + MAX_BLOCK))));
  }
  return paragraphs;
}

function renderList(context, lines, first, depth) {
  const list = context.document.createElement(/\d/.test(first[2]) ? "ol" : "ul");
  if (/^\d/.test(first[2]) && parseInt(first[2], 10) !== 1) list.start = parseInt(first[2], 10);
  for (let at = 0; at < lines.length; ) {
    const item = ITEM.exec(lines[at]);
    const width = item[1].length + item[2].length + Math.min((item[3] ?? " ").length, 4);
    let end = at + 1;
    while (end < lines.length && !(ITEM.test(lines[end]) && indentOf(lines[end]) < item[1].length + 2)) end += 1;
    const rest = lines.slice(at + 1, end).map((one) => one.slice(Math.min(indentOf(one), width)));
    const inside = [item[4] ?? "", ...rest];
    const isLoose = inside.some((one, index) => isBlank(one) && index + 1 < inside.length && !isBlank(inside[index + 1]));
    const nodes = renderBlocks(context, inside, depth + 1).flatMap((node) => (!isLoose && node.localName === "p" ? [...node.childNodes] : [node]));
    list.append(element(context, "li", nodes));
    at = end;
  }
  return list;
}

function renderTable(context, lines) {
  const aligned = cellsOf(lines[1]).map((one) => (/^:-+:$/.test(one) ? "center" : /-:$/.test(one) ? "end" : ""));
  const row = (line, name) => {
    const cells = cellsOf(line);
    return element(context, "tr", aligned.map((align, index) => {
      const cell = element(context, name, inline(context, cells[index] ?? ""));
      if (align) cell.className = `align-${align}`;
      if (name === "th") cell.scope = "col";
      return cell;
    }));
  };
  const names = row(lines[0], "th");
  const head = element(context, "thead", [names]);
  const body = element(context, "tbody", lines.slice(2).map((line) => row(line, "td")));
  const box = element(context, "div", [element(context, "table", [head, body])]);
  box.className = "table";
  box.tabIndex = 0; // it scrolls
  box.role = "group";
  box.ariaLabel = [...names.childNodes].map((one) => one.textContent).join(", ");
  return box;
}

function cellsOf(line) {
  const cells = line.trim().replace(/^\|/, "").replace(/\\\||\|$/g, (found) => (found === "|" ? "" : "\\|")).split(/(?<!\\)\|/, MAX_COLUMNS);
  return cells.map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function element({ document }, name, children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

// Inside of a block

const SPECIAL = /[\\`*_~![<&\n]|https?:\/\//g;
const LINK_TARGET = /^\(\s{0,3}(?:<([^<>\n]*)>|(?!<)((?:[^\s()\\]|\\.|\([^\s()]*\))*))(?:\s{1,3}(?:"[^"]*"|'[^']*'))?\s{0,3}\)/;
const PUNCTUATION = /[!-/:-@[-`{-~]/;

function inline(context, text, depth = 0, isLinked = false) {
  const nodes = [];
  const hopeless = new Set(); // delimiters that have no end from here on
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(context.document.createTextNode(plain));
    plain = "";
  };
  for (let at = 0; at < text.length; ) {
    SPECIAL.lastIndex = at;
    const found = SPECIAL.exec(text);
    plain += text.slice(at, found ? found.index : text.length);
    if (!found) break;
    const start = found.index;
    const piece = depth < MAX_DEPTH ? inlinePiece(context, text, start, depth, isLinked, hopeless) : null;
    if (piece) {
      if (typeof piece.node === "string") plain += piece.node;
      else {
        flush();
        nodes.push(...[piece.node].flat());
      }
      at = piece.end;
    } else {
      const run = /^[`*_~]+/.exec(text.slice(start, start + 200));
      const skipped = run ? run[0] : found[0];
      plain += skipped;
      at = start + skipped.length;
    }
  }
  flush();
  return nodes;
}

function inlinePiece(context, text, at, depth, isLinked, hopeless) {
  const char = text[at];
  switch (char) {
    case "\\":
      if (text[at + 1] === "\n") return { node: context.document.createElement("br"), end: at + 2 };
      return PUNCTUATION.test(text[at + 1] ?? "") ? { node: text[at + 1], end: at + 2 } : null;
    case "\n":
      return { node: / {2,}$/.test(text.slice(Math.max(0, at - 3), at)) ? context.document.createElement("br") : "\n", end: at + 1 };
    case "&": {
      const found = /^&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(\w{2,6}));/.exec(text.slice(at, at + 12));
      const code = found && (found[1] ? parseInt(found[1], 10) : found[2] ? parseInt(found[2], 16) : -1);
      const decoded = code > 0 && code < 0x110000 ? String.fromCodePoint(code) : ENTITIES[found?.[3]];
      return decoded ? { node: decoded, end: at + found[0].length } : null;
    }
    case "`":
      return codePiece(context, text, at, hopeless);
    case "<": {
      const found = /^<([a-z][a-z+.-]{1,30}:[^\s<>]{1,2000}|[^\s<>@]{1,100}@[^\s<>@]{1,200})>/i.exec(text.slice(at, at + 2100));
      if (!found || isLinked) return null;
      const url = context.link(found[1].includes("@") && !found[1].includes(":") ? `mailto:${found[1]}` : found[1]);
      return { node: url ? link(context, url, [found[1]]) : found[0], end: at + found[0].length };
    }
    case "h": {
      if (isLinked || /\w/.test(text[at - 1] ?? "")) return null;
      const found = /^https?:\/\/[^\s<>"`|\\^{}]{1,2000}/.exec(text.slice(at, at + 2100))?.[0].replace(/[.,:;!?'*_~)\]]+$/, "");
      const url = found && found.length > 8 && context.link(found);
      return url ? { node: link(context, url, [found]), end: at + found.length } : null;
    }
    case "!":
      return text[at + 1] === "[" ? linkPiece(context, text, at, depth, isLinked, hopeless) : null;
    case "[":
      return linkPiece(context, text, at, depth, isLinked, hopeless);
    default:
      return pairPiece(context, text, at, depth, isLinked, hopeless);
  }
}

function codePiece(context, text, at, hopeless) {
  let width = 1;
  while (text[at + width] === "`") width += 1;
  const mark = "`".repeat(width);
  if (hopeless.has(mark)) return null;
  for (let end = text.indexOf(mark, at + width); end >= 0; ) {
    let stop = end;
    while (text[stop] === "`") stop += 1;
    if (stop - end === width) {
      const code = text.slice(at + width, end).replace(/\n/g, " ");
      return { node: element(context, "code", [/^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code]), end: stop };
    }
    end = text.indexOf(mark, stop);
  }
  hopeless.add(mark);
  return null;
}

function pairPiece(context, text, at, depth, isLinked, hopeless) {
  const char = text[at];
  const mark = text[at + 1] === char ? char + char : char;
  if (mark === "~" || hopeless.has(mark)) return null;
  const isWord = (one) => one !== undefined && /[\p{L}\p{N}]/u.test(one);
  const from = at + mark.length;
  if (text[from] === undefined || /\s/.test(text[from]) || (char === "_" && isWord(text[at - 1]))) return null;
  for (let end = text.indexOf(mark, from + 1); end > 0; end = text.indexOf(mark, end + 1)) {
    if (mark.length === 1 && text[end + 1] === char) {
      end += 1; // of a pair
      continue;
    }
    if (text[end + mark.length] === char) end += 1; // the outer one of three
    if (/\s/.test(text[end - 1]) || text[end - 1] === "\\" || (char === "_" && isWord(text[end + mark.length]))) continue;
    const name = char === "~" ? "del" : mark.length === 2 ? "strong" : "em";
    return { node: element(context, name, inline(context, text.slice(from, end), depth + 1, isLinked)), end: end + mark.length };
  }
  hopeless.add(mark);
  return null;
}

function linkPiece(context, text, at, depth, isLinked, hopeless) {
  if (hopeless.has("](") || text.indexOf("](", at) < 0) {
    hopeless.add("](");
    return null;
  }
  const isImage = text[at] === "!";
  const from = at + (isImage ? 2 : 1);
  let close = from;
  for (let open = 1; close < text.length; close += 1) {
    if (close - from > MAX_LABEL) return null;
    if (text[close] === "\\") close += 1;
    else if (text[close] === "[") open += 1;
    else if (text[close] === "]" && --open === 0) break;
  }
  const found = text[close + 1] === "(" && LINK_TARGET.exec(text.slice(close + 1, close + 2500));
  if (!found) return null;
  const label = text.slice(from, close);
  const target = (found[1] ?? found[2]).replace(/\\([!-/:-@[-`{-~])/g, "$1");
  const end = close + 1 + found[0].length;
  if (isImage) {
    const shown = context.image(target);
    if (shown) {
      const image = context.document.createElement("img");
      [image.src, image.alt, image.loading] = [shown, label, "lazy"];
      return { node: image, end };
    }
  }
  const url = isLinked || !target ? "" : context.link(target);
  const inside = isImage ? [label || target] : inline(context, label, depth + 1, true);
  return { node: url ? link(context, url, inside) : inside.map((one) => (typeof one === "string" ? context.document.createTextNode(one) : one)), end };
}

function link(context, url, children) {
  const made = element(context, "a", children);
  made.href = url;
  if (/^https?:/.test(url)) {
    made.rel = "noopener noreferrer nofollow";
    made.target = "_blank";
  }
  context.named(made);
  return made;
}
