import assert from "node:assert/strict";
import { test } from "node:test";

import { createMarkdown, pageUrl, safeUrl, siteUrl } from "../../service/web/scripts/markdown.js";
import { fakeDocument } from "./fake_document.mjs";

const shown = (text, options = {}) => {
  const element = fakeDocument.createElement("div");
  createMarkdown(element, { document: fakeDocument, ...options }).update(text);
  return element.inside();
};

const streamed = (text, size) => {
  const element = fakeDocument.createElement("div");
  const view = createMarkdown(element, { document: fakeDocument });
  for (let end = size; end < text.length + size; end += size) view.update(text.slice(0, end));
  return element.inside();
};

const CASES = [
  ["Plain text.", "<p>Plain text.</p>"],
  ["One\ntwo\n\nthree", "<p>One\ntwo</p><p>three</p>"],
  ["# A\n## B #\ntext", "<h3>A</h3><h4>B</h4><p>text</p>"],
  ["**a** _b_ ~~c~~ `d` ***e***", "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d</code> <strong><em>e</em></strong></p>"],
  ["snake_case_name, 2 * 3 * 4, $PATH and $HOME", "<p>snake_case_name, 2 * 3 * 4, $PATH and $HOME</p>"],
  ["a\\*b\\* &amp; &lt;i&gt; &#65;", "<p>a*b* &amp; &lt;i> A</p>"],
  ["``a ` b``", "<p><code>a ` b</code></p>"],
  ["line  \nbreak\\\nagain", "<p>line  <br></br>break<br></br>again</p>"],
  ["[1](/retry#delay)", '<p><a href="/retry#delay">1</a></p>'],
  ["[a [b] c](https://x.example/(y) \"t\")", '<p><a href="https://x.example/(y)">a [b] c</a></p>'],
  ["See https://x.example/a_b. Or <https://y.example>", '<p>See <a href="https://x.example/a_b">https://x.example/a_b</a>. Or <a href="https://y.example/">https://y.example</a></p>'],
  ["<me@x.example>", '<p><a href="mailto:me@x.example">me@x.example</a></p>'],
  ["```sh\n$ a <b>\n\n# c\n```\nafter", '<pre><code className="language-sh">$ a &lt;b>\n\n# c</code></pre><p>after</p>'],
  ["```\nopen", "<pre><code>open</code></pre>"],
  ["- a\n- b\n  - c\n\n- d", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>"],
  ["3. a\n4. b\n  - c", '<ol start="3"><li>a</li><li>b<ul><li>c</li></ul></li></ol>'],
  ["- a\n\n  more\n\npara", "<ul><li><p>a</p><p>more</p></li></ul><p>para</p>"],
  ["- a\n- b\n\n1. c", "<ul><li>a</li><li>b</li></ul><ol><li>c</li></ol>"],
  ["> a\n> - b\n\nc", "<blockquote><p>a</p><ul><li>b</li></ul></blockquote><p>c</p>"],
  ["a\n\n---\n\nb", "<p>a</p><hr></hr><p>b</p>"],
  ["| a | b |\n|---|:-:|\n| 1 \\| 2 | **c** |\n\nd", '<div className="table"><table><thead><tr><th>a</th><th className="align-center">b</th></tr></thead><tbody><tr><td>1 | 2</td><td className="align-center"><strong>c</strong></td></tr></tbody></table></div><p>d</p>'],
  ["![alt](https://x.example/i.png)", '<p><a href="https://x.example/i.png">alt</a></p>'],
  ["**open and [half](", "<p>**open and [half](</p>"],
];

for (const [text, html] of CASES) {
  test(`renders ${JSON.stringify(text)}`, () => assert.equal(shown(text), html));
}

test("text in pieces is shown as the whole is", () => {
  const text = CASES.map(([one]) => one).join("\n\n");
  for (const size of [1, 2, 3, 7, 64]) assert.equal(streamed(text, size), shown(text), `pieces of ${size}`);
  for (const [one] of CASES) assert.equal(streamed(one, 1), shown(one), one);
});

test("complete blocks stay the same nodes", () => {
  const element = fakeDocument.createElement("div");
  const view = createMarkdown(element, { document: fakeDocument });
  view.update("one\n\ntwo\n\nthr");
  const [first] = element.childNodes;
  view.update("one\n\ntwo\n\nthree\n\nfour");
  assert.equal(element.childNodes[0], first);
});

test("code blocks are given once their end is there", () => {
  const element = fakeDocument.createElement("div");
  const given = [];
  const view = createMarkdown(element, { document: fakeDocument, code: (code) => given.push(code) });
  view.update("```js\nlet a;");
  assert.deepEqual(given, []);
  view.update("```js\nlet a;\n```\n\nSome");
  assert.equal(given.length, 1);
  view.update("```js\nlet a;\n```\n\nSome more text");
  assert.deepEqual([given.length, given[0], given[0].className], [1, element.childNodes[0].childNodes[0], "language-js"]);
});

test("another text takes the place of the first", () => {
  const element = fakeDocument.createElement("div");
  const view = createMarkdown(element, { document: fakeDocument });
  view.update("one\n\ntwo\n\nthree");
  view.update("other");
  assert.equal(element.inside(), "<p>other</p>");
});

const SCRIPTS = [
  "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "java\tscript:alert(1)",
  "\u0001javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "vbscript:x", "blob:https://x/1", "file:///etc/passwd",
  "filesystem:https://x/1", "javascript&colon;alert(1)", "ftp://x.example",
];

test("addresses of scripts are no links", () => {
  for (const url of SCRIPTS) {
    assert.ok(["", url].includes(safeUrl(url)), url);
    assert.ok(!/^\W*(javascript|data|vbscript|blob|file|filesystem|ftp):/i.test(safeUrl(url)), url);
    for (const text of [`[x](${url})`, `[x](<${url}>)`, `<${url}>`, `![x](${url})`, url, `[x](&#106;avascript:alert(1))`]) {
      assert.doesNotMatch(shown(text), /href="\W*(javascript|data|vbscript|blob|file|filesystem|ftp):/i, text);
    }
  }
});

test("a page's own rules for links and images are checked again", () => {
  assert.equal(shown("[a](/b)", { link: () => "javascript:alert(1)" }), "<p>a</p>");
  assert.equal(shown("![a](/b)", { image: () => "data:image/svg+xml,x" }), '<p><a href="/b">a</a></p>');
  assert.equal(shown("![a](/b.png)", { image: (url) => `https://docs.example${url}` }), '<p><img src="https://docs.example/b.png"></img></p>');
  assert.equal(shown("[a](b)", { base: "https://docs.example/x/" }), '<p><a href="https://docs.example/x/b">a</a></p>');
});

test("HTML is shown as text", () => {
  for (const text of ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "<b>x</b>", "- <i>", "| <b> | x |\n|--|--|\n| <u> | y |"]) {
    assert.doesNotMatch(shown(text), /<(script|img|svg|b|i|u)\b/, text);
  }
});

const HOSTILE = {
  quotes: ">".repeat(200_000), "quotes with text": "> ".repeat(50_000) + "x", lists: Array.from({ length: 3000 }, (_, i) => " ".repeat(i % 400) + "- x").join("\n"),
  stars: "*".repeat(200_000), "open stars": "*a ".repeat(60_000), "open pairs": "**a ".repeat(50_000), brackets: "[".repeat(200_000) + "](",
  "closed brackets": "[".repeat(20_000) + "]".repeat(20_000) + "](x)", links: "[a](".repeat(50_000), backticks: Array.from({ length: 600 }, (_, i) => "`".repeat(i)).join(" "),
  underscores: "_a".repeat(100_000), spaces: `[x](${" ".repeat(100_000)}`, heading: `# ${" #".repeat(100_000)}x`, rule: "- ".repeat(100_000) + "x",
  table: `${"|a".repeat(50_000)}\n${"|-".repeat(50_000)}`, divider: `a|b\n-${" ".repeat(100_000)}x`, fence: "```" + "a".repeat(100_000) + "`", line: "word ".repeat(200_000),
  entities: "&".repeat(200_000), angles: "<".repeat(200_000), urls: "https://".repeat(30_000), items: "- x\n".repeat(50_000), nested: "- ".repeat(50_000) + "x", mixed: "*_~`[!<&".repeat(25_000), blanks: "\n".repeat(200_000),
};

for (const [name, text] of Object.entries(HOSTILE)) {
  test(`hostile ${name} end`, { timeout: 20_000 }, () => assert.ok(shown(text).length >= 0));
}

test("10,000 pieces of a long line end", { timeout: 20_000 }, () => {
  assert.ok(streamed("x ".repeat(50_000), 10).length > 100_000);
});

test("a page's address counts from the root of its site, or of its host", () => {
  for (const site of ["https://acme.github.io/kite", "https://acme.github.io/kite/"]) {
    assert.equal(siteUrl("/install#linux", site), "https://acme.github.io/kite/install#linux");
    assert.equal(siteUrl("/kite/install", site), "https://acme.github.io/kite/install");
    assert.equal(siteUrl("/kitesurfing", site), "https://acme.github.io/kite/kitesurfing");
    assert.equal(siteUrl("https://www.example.com/a", site), "https://www.example.com/a");
    assert.equal(siteUrl("//evil.example/a", site), "");
  }
  assert.equal(siteUrl("/install", "https://docs.example.com"), "https://docs.example.com/install");
});

test("an address on a site does not lead to another without saying so", () => {
  const site = "https://docs.example.com/guide";
  assert.equal(pageUrl("/install#linux", site), "https://docs.example.com/install#linux");
  assert.equal(pageUrl("https://www.example.com/a", site), "https://www.example.com/a");
  for (const url of ["//evil.example/a", "///evil.example/a", "\\\\evil.example/a", "javascript:alert(1)", "java\tscript:alert(1)", "http://[", "data:text/html,x"]) {
    assert.equal(pageUrl(url, site), "", url);
  }
});
