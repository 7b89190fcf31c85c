// In the panel, in place of proof.js: its file is loaded when a token request is refused.

import { FILES } from "./files.js";
import { loadModule } from "./fetching.js";

const SERVER = new URL("..", import.meta.url).href.slice(0, -1);

export async function withProof(send, signal) {
  const response = await send();
  if (response.status !== 403) return response;
  return (await loadModule(SERVER, FILES.proof)).withProof(send, signal, response);
}
