// The official TypeScript client, driven against the server at the address that is the first argument. It prints one line
// of JSON: what it saw.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "docsmith-test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const { tools } = await client.listTools();
const found = await client.callTool({ name: "search", arguments: { query: "delay between two tries" } });
const page = await client.callTool({ name: "fetch", arguments: { id: found.structuredContent.results[0].id } });
const words = [];
const answer = await client.callTool(
  { name: "ask", arguments: { question: "How do I install Kite?" } },
  undefined,
  { onprogress: (progress) => words.push(progress.message ?? "") },
);
const { resources } = await client.listResources();
const read = await client.readResource({ uri: resources.at(-1).uri });
const unknown = await client.callTool({ name: "nothing" }).then(() => 0, (error) => error.code);
await client.close();
console.log(JSON.stringify({
  server: client.getServerVersion().name,
  tools: tools.map((tool) => tool.name),
  text: JSON.parse(page.content[0].text).text,
  answer: answer.structuredContent.answer,
  words: words.join(""),
  resource: read.contents[0].text,
  unknown,
}));
