// Ranks questions with what documentation sites ship: minisearch and lunr, as their own guides set them up.
// node rivals.mjs NAME < {"sections": [{id, path, title, heading, text}], "questions": [text]}
// prints {"ranked": [[path, …], …], "build_seconds", "milliseconds": [of each query]}
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.cwd(), "here.js"));
const { sections, questions } = JSON.parse(readFileSync(0, "utf8"));
const paths = sections.map((section) => section.path);
const fields = ["title", "heading", "text"];
const began = performance.now();
let search;
if (process.argv[2] === "minisearch") {
  const module = require("minisearch");
  const index = new (module.default ?? module)({ fields, idField: "id" });
  index.addAll(sections);
  search = (question) => index.search(question).map((found) => found.id);
} else {
  const lunr = require("lunr");
  const index = lunr(function () {
    this.ref("id");
    for (const field of fields) this.field(field);
    for (const section of sections) this.add(section);
  });
  // As plain words: its query language would refuse some questions.
  search = (question) =>
    index
      .query((query) => query.term(lunr.tokenizer(question)))
      .map((found) => Number(found.ref));
}
const built = (performance.now() - began) / 1000;
const ranked = [];
const milliseconds = [];
for (const question of questions) {
  const start = performance.now();
  const found = search(question);
  milliseconds.push(performance.now() - start);
  ranked.push([...new Set(found.slice(0, 300).map((id) => paths[id]))]);
}
console.log(JSON.stringify({ ranked, build_seconds: built, milliseconds }));
