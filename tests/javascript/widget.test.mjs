// The parts of the widget that need no browser: options, addresses, colours.

import assert from "node:assert/strict";
import test from "node:test";

import { fakeDocument } from "./fake_document.mjs";

globalThis.location = new URL("https://docs.example/guide/install");
const folder = "../../service/web/scripts/widget";
const { handOffLink, merged, normalized } = await import(`${folder}/options.js`);
const { baseOf, linksBelow } = await import(`${folder}/links.js`);
const { contrast, readable, rgbOf } = await import(`${folder}/theme.js`);
const { blanked, make } = await import(`${folder}/nodes.js`);
const { createSearch } = await import(`${folder}/finding.js`);

test("options have the names of attributes, of the site's settings, and of other widgets", () => {
  const tag = normalized({ site: "guide", form: "modal", suggestions: "One?| Two? |", handOff: "help@example.com", title: "Ask" });
  assert.deepEqual(tag, { form: "modal", title: "Ask", suggestions: ["One?", "Two?"], handOff: "mailto:help@example.com" });
  const other = normalized({
    appearance: { variant: "panel", accent: "#7c3aed" }, labels: { title: "Copilot" }, supportEmail: "help@example.com",
    starterQuestions: ["One?"], filter: { language: "de", version: null },
  });
  assert.deepEqual(other, {
    form: "side", accent: "#7c3aed", title: "Copilot", suggestions: ["One?"], handOff: "mailto:help@example.com", filter: { language: "de" },
  });
  for (const form of ["nonsense", "constructor"]) assert.equal(normalized({ form }).form, "side");
  assert.deepEqual(normalized({ labels: { trigger: "Help" } }), { label: "Help" });
  const none = { title: null, greeting: null, placeholder: null, disclaimer: null };
  assert.deepEqual(normalized({ labels: null, label: "Help" }), { ...none, label: "Help" });
  assert.deepEqual(["", "on", "true", true, "off", false, null].map((push) => normalized({ push }).push), [true, true, true, true, false, false, null]);
});

test("an empty option stands for the one below it", () => {
  assert.equal(merged({ title: "Of the site" }, { title: "" }).title, "Of the site");
  assert.equal(merged({ title: "Of the site" }, { title: "Of the page" }).title, "Of the page");
  assert.equal(merged({ form: "modal" }, { form: null }).form, "modal");
  assert.equal(merged().form, "side");
});

test("the link to people carries the conversation and no script", () => {
  assert.equal(handOffLink({ handOff: "https://help.example/" }, "a b", "Ask"), "https://help.example/?threadId=a+b");
  assert.equal(handOffLink({ handOff: "https://help.example/{threadId}" }, "a b", "Ask"), "https://help.example/a%20b");
  assert.equal(handOffLink({ handOff: "mailto:a@b.example" }, "", "Ask"), "mailto:a@b.example?subject=Ask");
  for (const handOff of ["javascript:alert(1)", "data:text/html,x", "https://", "https://a b", undefined]) assert.equal(handOffLink({ handOff }, "a", "Ask"), "");
});

test("addresses are below the site's own, and never lead elsewhere unsaid", () => {
  const below = linksBelow(baseOf("https://acme.example/project"));
  assert.equal(below("/retry#delay"), "https://acme.example/project/retry#delay");
  assert.equal(below("/project/retry"), "https://acme.example/project/retry");
  assert.equal(below("//evil.example/x"), "https://acme.example/project//evil.example/x");
  const own = linksBelow(baseOf(""));
  assert.equal(own("/retry?a=b#delay"), "/retry?a=b#delay");
  for (const url of ["//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example"]) {
    assert.equal(new URL(own(url), location.href).origin, location.origin, url);
  }
  assert.equal(linksBelow("")("/retry"), "");
  assert.equal(own("https://other.example/"), "https://other.example/");
});

test("a colour is moved until it can be read", () => {
  const [ground, ink] = [[255, 255, 255], [31, 35, 40]];
  for (const color of [[255, 238, 0], [255, 255, 255], [255, 105, 180], [0, 0, 0]]) {
    assert.ok(contrast(readable(color, ground, ink), ground) >= 4.5, String(color));
  }
  assert.deepEqual(rgbOf("rgba(1, 2, 3, 0.9)"), [1, 2, 3]);
  assert.equal(rgbOf("rgba(0, 0, 0, 0)"), null);
});

test("what is shown of a result begins with a word, and with no language of a code block", async () => {
  assert.equal(blanked("A\n```sh\nkite `init`\n```"), "A\n     \nkite  init \n   ");
  globalThis.document = fakeDocument;
  const shown = async (content, word) => {
    const start = content.indexOf(word);
    const found = { content, metadata: { title: "Install", url: "/install", highlights: { content: [{ start, end: start + word.length }] } } };
    const panel = { assistant: { search: async () => [found] }, link: (url) => url, parts: { make, blanked, button: () => make("button"), opening: () => ({}), t: String } };
    const view = createSearch(panel);
    view.input.value = word;
    await new Promise((say) => {
      panel.say = say;
      view.input.oninput();
    });
    return view.results.html();
  };
  const before = "Kite keeps everything that it was given, so nothing is lost. ";
  assert.match(await shown(`${before}Make a backup first.`, "backup"), />that it was given, so nothing is lost\. Make a <mark>backup<\/mark> first\.</);
  assert.match(await shown(`${"漢字".repeat(60)}凧`, "凧"), /<mark>凧<\/mark>/);
});
