// GitHub's API, emulated. The seed is argument 2, as JSON; answers with one line of JSON: {url, keys}, the private keys
// that it made for the Apps. Ends with its standard input.
import { createEmulator } from "emulate";

const github = await createEmulator({ service: "github", port: 0, seed: JSON.parse(process.argv[2]) });
const keys = github.generatedSecrets.filter((one) => one.kind === "github.app_private_key");
console.log(JSON.stringify({ url: github.url, keys: Object.fromEntries(keys.map((one) => [one.id, one.value])) }));
for await (const _ of process.stdin);
await github.close();
