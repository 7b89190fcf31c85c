// Import the description, from standard input, as Postman and Bruno do; print what they make of it.

import { readFileSync } from "node:fs";
import { openApiToBruno } from "@usebruno/converters";
import converter from "openapi-to-postmanv2";

const text = readFileSync(0, "utf8");
const leaves = (items, key) => items.flatMap((one) => (one[key] ? leaves(one[key], key) : [one]));

function postman() {
  return new Promise((resolve, reject) => {
    const options = { folderStrategy: "Tags", parametersResolution: "Example" };
    converter.convertV2({ type: "string", data: text }, options, (error, done) => {
      if (error || !done.result) return reject(error ?? new Error(done.reason));
      const { item, variable } = done.output[0].data;
      const requests = leaves(item, "item").map(({ name, request }) => ({
        name, method: request.method, path: `/${request.url.path.join("/")}`, host: request.url.host[0],
        auth: request.auth?.type ?? "", body: request.body?.raw ?? "",
      }));
      resolve({ base: variable.find((one) => one.key === "baseUrl").value, requests });
    });
  });
}

async function bruno() {
  const { items, environments } = await openApiToBruno(JSON.parse(text));
  const requests = leaves(items, "items").map(({ name, request }) => ({
    name, method: request.method, path: request.url.replace("{{baseUrl}}", "").split("?")[0],
    host: request.url.slice(0, "{{baseUrl}}".length), auth: request.auth.mode, body: request.body.json ?? "",
  }));
  return { base: environments[0].variables.find((one) => one.name === "baseUrl").value, requests };
}

const imported = { postman: await postman(), bruno: await bruno() };
process.stdout.write(JSON.stringify(imported), () => process.exit());
