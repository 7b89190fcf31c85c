// Renders Markdown as sites do, raw HTML included, and says what a browser makes of it.
//
// Standard input: a line for each batch, JSON: {base, texts: [Markdown, ...], pages: [HTML, ...]}.
// Standard output: a line for each batch, JSON: {marked: [Seen, ...], remark: [Seen, ...], pages: [Seen, ...]}, where
// Seen = {elements: [[name, [[attribute, value, address or null], ...]], ...], code: [text, ...]}: each element once
// however often it occurs, addresses resolved against base as a browser resolves them, and the text of each code
// element.

import { createInterface } from "node:readline";
import { Marked } from "marked";
import { parseFragment } from "parse5";
import rehypeStringify from "rehype-stringify";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";

const ADDRESSES = new Set(["href", "src", "srcset", "action", "formaction", "data", "poster", "background", "cite", "ping"]);
const marked = new Marked({ gfm: true });
const remark = unified()
  .use(remarkParse)
  .use(remarkGfm)
  .use(remarkRehype, { allowDangerousHtml: true })
  .use(rehypeStringify, { allowDangerousHtml: true });

for await (const line of createInterface({ input: process.stdin })) {
  const { base, texts, pages } = JSON.parse(line);
  const seen = {
    marked: texts.map((text) => look(marked.parse(text), base)),
    remark: texts.map((text) => look(String(remark.processSync(text)), base)),
    pages: pages.map((page) => look(page, base)),
  };
  process.stdout.write(JSON.stringify(seen) + "\n");
}

function look(html, base) {
  const elements = new Map();
  const code = [];
  const waiting = [[parseFragment(html), false]];
  while (waiting.length) {
    const [node, isCode] = waiting.pop();
    if (node.tagName) {
      const attributes = node.attrs.map(({ name, value }) => [name, value, ADDRESSES.has(name) ? resolved(value, base) : null]);
      elements.set(JSON.stringify([node.tagName, attributes]), [node.tagName, attributes]);
    }
    if (node.tagName === "code" && !isCode) code.unshift(textOf(node));
    const within = isCode || node.tagName === "code";
    for (const child of (node.content ?? node).childNodes ?? []) waiting.push([child, within]);
  }
  return { elements: [...elements.values()], code };
}

function textOf(node) {
  if (node.nodeName === "#text") return node.value;
  return (node.childNodes ?? []).map(textOf).join("");
}

function resolved(value, base) {
  try {
    return new URL(value, base).href;
  } catch {
    return "invalid:";
  }
}
