// Tries an operation of the API from its page. The key is read from its field for each request and kept nowhere; no
// cookie is sent, since a session never opens the API. What comes back is shown as text.
(() => {
  "use strict";

  const MOST_SHOWN = 1_000_000; // characters of an answer
  const SHOWN_HEADERS = ["content-type", "location", "retry-after", "x-request-id", "x-thread-id", "x-thread-key"];
  const form = document.getElementById("try");
  if (!form) return;
  const output = form.querySelector("output");
  const stop = form.querySelector("[data-stop]");
  const send = form.querySelector("[data-send]");
  const keyField = document.getElementById("field-key"); // it has no name: no form may send it
  let controller = null;

  function address() {
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const input of form.querySelectorAll("[data-in]")) {
      const { in: place, name } = input.dataset;
      if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(input.value.trim()));
      else if (input.value.trim()) query.set(name, input.value.trim());
    }
    const asked = query.toString();
    return form.dataset.root + path.slice(1) + (asked ? `?${asked}` : "");
  }

  function request() {
    const headers = {};
    const key = keyField?.value.trim();
    if (key) headers.Authorization = `Bearer ${key}`;
    const body = form.elements.body?.value;
    if (body) headers["Content-Type"] = "application/json";
    return { method: form.dataset.method, headers, body: body || undefined, credentials: "omit", redirect: "manual" };
  }

  function shown(tag, text) {
    const element = document.createElement(tag);
    element.textContent = text;
    output.append(element);
    return element;
  }

  async function read(response, into) {
    const decoder = new TextDecoder();
    let text = "";
    for (const reader = response.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      const piece = decoder.decode(value, { stream: true });
      text += piece;
      into.append(piece); // the text so far is not set again for each piece
      if (text.length > MOST_SHOWN) {
        controller.abort();
        text = `${text.slice(0, MOST_SHOWN)}\n… the rest is not shown`;
        into.textContent = text;
        return;
      }
    }
    if ((response.headers.get("content-type") ?? "").includes("json")) into.textContent = pretty(text);
  }

  function pretty(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    controller?.abort();
    controller = new AbortController();
    output.replaceChildren();
    stop.hidden = false;
    try {
      const response = await fetch(address(), { ...request(), signal: controller.signal });
      shown("strong", `${response.status} ${response.statusText}`);
      const headers = SHOWN_HEADERS.filter((name) => response.headers.has(name));
      shown("p", headers.map((name) => `${name}: ${response.headers.get(name)}`).join("\n")).className = "kind";
      const body = shown("pre", "");
      body.className = "sample";
      body.tabIndex = 0;
      if (response.body) await read(response, body);
    } catch (error) {
      if (error.name !== "AbortError") shown("p", `The request could not be sent: ${error.message}`);
    } finally {
      stop.hidden = true;
    }
  });

  stop.addEventListener("click", () => controller?.abort());
  send.disabled = false; // before, a press would send the form itself, with its fields in the address
})();
