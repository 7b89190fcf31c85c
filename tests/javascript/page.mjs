// A page with the assistant, without a browser: `node page.mjs SCENARIO URL SITE KEY` loads the script as pages do, from
// the service, and prints a line of JSON for each thing that a test waits for.

const [scenario, url, site, key] = process.argv.slice(2);
const source = await (await fetch(`${url}/sdk/assistant.js`)).text();
const { createAssistant } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const kept = new Map();
const storage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => void kept.set(name, text) };
const open = (more = {}) => createAssistant({ site, server: url, key, storage, reconnectDelay: 200, ...more });
const tell = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const text = (assistant) => assistant.getSnapshot().messages.at(-1)?.text ?? "";
const until = (assistant, wanted) =>
  new Promise((resolve) => {
    const look = () => wanted(assistant.getSnapshot()) && resolve();
    assistant.subscribe(look);
    look();
  });
const shown = (assistant) => {
  const { status, error, messages } = assistant.getSnapshot();
  const reply = messages.at(-1);
  return { status, error: error?.code, says: error?.message, text: reply.text, sources: reply.sources.length, checks: reply.checks, count: messages.length };
};

const scenarios = {
  async reload() {
    const first = open();
    void first.send("How do I install Kite?");
    await until(first, () => text(first) !== "");
    first.destroy();
    tell("left");
    const second = open();
    await second.resume();
    tell(shown(second));
  },
  async lost() {
    const assistant = open({ reconnectDelay: undefined }); // its own: a start may take seconds
    const sending = assistant.send("How do I install Kite?");
    await until(assistant, () => text(assistant) !== "");
    tell(assistant.getSnapshot().threadId);
    await sending;
    tell(shown(assistant));
  },
  async late() {
    const first = open();
    void first.send("How do I install Kite?");
    await until(first, () => text(first) !== "");
    const broken = new Map(kept);
    await until(first, (state) => state.status === "idle");
    broken.forEach((value, name) => kept.set(name, value)); // as if the page had been left before the end
    const second = open();
    await second.resume();
    tell(shown(second));
  },
  async reader() {
    const assistant = open({ headers: { Origin: "https://docs.example.com" } });
    await assistant.send("How do I install Kite?");
    tell(shown(assistant));
    const { id } = assistant.getSnapshot().messages.at(-1);
    await assistant.submitFeedback(id, "down", "Too short.");
    await assistant.retry();
    tell(shown(assistant));
    tell((await assistant.search("inst")).map((one) => one.path));
    await assistant.send("And how do I set the delay?");
    tell(shown(assistant));
    const copy = open({ storage: null }); // the key alone, from a program
    await copy.send("How do I install Kite?");
    tell(shown(copy));
  },
};

await scenarios[scenario]();
