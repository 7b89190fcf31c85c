// Finds the chat clients among the packages: of AI SDK 5 and later, "ai5old" is what "react5old" depends on.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);

function hookPackage(version) {
  return version.replace("ai", "react");
}

function requireOf(name) {
  return createRequire(require.resolve(`${name}/package.json`));
}

// By hand, since "ai" means another package for each hook, and some of them are modules only.
async function imported(from, name) {
  const file = from.resolve(`${name}/package.json`);
  const { exports, module, main } = JSON.parse(readFileSync(file, "utf8"));
  let entry = exports?.["."] ?? module ?? main;
  while (typeof entry !== "string") entry = entry.import ?? entry.node ?? entry.default;
  return await import(pathToFileURL(join(dirname(file), entry)).href);
}

export async function chatPackage(version) {
  return await imported(requireOf(hookPackage(version)), "ai");
}

export async function reactHooks(version) {
  if (version.startsWith("ai4")) return await imported(requireOf(version), "@ai-sdk/react");
  return await imported(require, hookPackage(version));
}

export function uiUtils(version) {
  return requireOf(version)("@ai-sdk/ui-utils");
}
