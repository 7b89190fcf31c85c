import assert from "node:assert/strict";
import { test } from "node:test";

import { highlight, tokensOf } from "../../service/web/scripts/widget/highlight.js";
import { fakeDocument } from "./fake_document.mjs";

const CASES = [
  ["js", "const f = `a ${b}`; // c", { keyword: ["const"], string: ["`a ${b}`"], comment: ["// c"] }],
  ["ts", "return /[/]x/g.test(s) / 2 / 3;", { keyword: ["return"], string: ["/[/]x/g"], name: ["test"], number: ["2", "3"] }],
  ["python", "@app.get('/')\ndef f(a):\n    r'''x\ny''' # c", { meta: ["@app.get"], string: ["'/'", "r'''x\ny'''"], keyword: ["def"], name: ["f"], comment: ["# c"] }],
  ["bash", '$ kite run --delay 3 "$HOME" # c', { meta: ["$ "], name: ["--delay"], number: ["3"], string: ['"$HOME"'], comment: ["# c"] }],
  ["json", '{"a:b": "c:d", "e": [1.5, null]}', { name: ['"a:b"', '"e"'], string: ['"c:d"'], number: ["1.5"], keyword: ["null"] }],
  ["yaml", "# c\nname: kite\nurl: https://x.example/a\non: true", { comment: ["# c"], name: ["name", "url", "on"], keyword: ["true"] }],
  ["toml", '[tool]\nname = "a#b" # c\nday = 2024-01-02', { meta: ["[tool]"], name: ["name ", "day "], string: ['"a#b"'], comment: ["# c"], number: ["2024-01-02"] }],
  ["html", '<a href="x>y">text &amp;</a><!-- c -->', { keyword: ["<a", ">", "</a>"], name: ["href"], string: ['"x>y"'], meta: ["&amp;"], comment: ["<!-- c -->"] }],
  ["html", "<script>let x;</script><style>a { margin: 2px }</style>", { keyword: ["<script>let", "</script><style>", "</style>"], name: ["margin"], number: ["2px"] }],
  ["css", ".a { color: #fff } @media print {}", { meta: [".a"], name: ["color"], number: ["#fff"], keyword: ["@media"] }],
  ["go", 'func main() { x := "y" }', { keyword: ["func"], name: ["main"], string: ['"y"'] }],
  ["rust", "#[test]\nfn f(x: &'a str) { 'c'; }", { meta: ["#[test]"], keyword: ["fn", "str"], name: ["f", "'a"], string: ["'c'"] }],
  ["java", "@Override public int f() { return 1; }", { meta: ["@Override"], keyword: ["public", "int", "return"], name: ["f"], number: ["1"] }],
  ["c++", '#include <a.h>\nint x = 0x1f; /* c\n*/', { meta: ["#include"], string: ["<a.h>"], keyword: ["int"], number: ["0x1f"], comment: ["/* c\n*/"] }],
  ["sql", "Select a from t where b = 'it''s' -- c", { keyword: ["Select", "from", "where"], string: ["'it''s'"], comment: ["-- c"] }],
  ["diff", "--- a\n+++ b\n-old\n+new\n same", { meta: ["--- a", "+++ b"], removed: ["-old"], added: ["+new"] }],
];

for (const [language, code, wanted] of CASES) {
  test(`colours ${language}: ${JSON.stringify(code.slice(0, 30))}`, () => {
    const found = {};
    for (const [kind, text] of tokensOf(code, language)) if (kind) (found[kind] ??= []).push(text);
    assert.deepEqual(found, wanted);
  });
}

const LANGUAGES = ["js", "python", "php", "go", "rust", "java", "kotlin", "c", "csharp", "sql", "sh", "json", "yaml", "toml", "css", "html", "diff"];
const PIECES = ['"', "'", "`", "=/", "=/[", "\\", '"""', "/*", "<", "<a b='", "<a=", "<script>", "<script></script>", "<!--", "${", "{{", "a:", "- ", " ", "\n", "0x", "a(", 'r#"', "'a", "#[", "\u00e9", "\ud83d\ude00", "<b>&lt;"];

for (const language of LANGUAGES) {
  test(`the text of hostile ${language} stays the same`, { timeout: 60_000 }, () => {
    for (const piece of PIECES) {
      for (const code of [piece.repeat(20_000 / piece.length), PIECES.join(piece), piece]) {
        assert.equal(tokensOf(code, language).map(([, text]) => text).join(""), code);
      }
    }
  });
}

test("long code and unknown languages stay plain", () => {
  assert.equal(tokensOf("x".repeat(20_001), "js"), null);
  for (const language of ["", "klingon", "constructor", "__proto__"]) assert.equal(tokensOf("let x", language), null);
});

test("an element keeps its text and gets spans", () => {
  const code = fakeDocument.createElement("code");
  code.className = "language-JS";
  code.append("let a = '<b>';");
  code.textContent = "let a = '<b>';";
  highlight(code, fakeDocument);
  assert.equal(code.inside(), '<span className="code-keyword">let</span> a = <span className="code-string">\'&lt;b>\'</span>;');
});
