// Passkeys: make one on the account page, and sign in with one.
(() => {
  "use strict";

  const able = window.PublicKeyCredential && PublicKeyCredential.parseRequestOptionsFromJSON;

  async function post(url, body) {
    const response = await fetch(url, {
      method: "POST",
      headers: { Accept: "application/json", "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.detail);
    return answer;
  }

  async function signIn(form) {
    const options = await post(form.dataset.options, {});
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
    const credential = await navigator.credentials.get({ publicKey });
    const next = new FormData(form).get("next") ?? "";
    const answer = await post(form.action, { next, answer: credential.toJSON() });
    location.assign(new URL(answer.location, form.action));
  }

  async function add(form) {
    const name = new FormData(form).get("passkey_name");
    const options = await post(form.dataset.options, {});
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
    const credential = await navigator.credentials.create({ publicKey });
    await post(form.action, { name, answer: credential.toJSON() });
    location.reload();
  }

  // Browsers say only in technical words that a person closed the dialog, or that no passkey fits.
  function reason(error) {
    if (error.name === "NotAllowedError") return "No passkey was used. Try again, or choose another way.";
    if (error.name === "InvalidStateError") return "This device has a passkey of yours already.";
    if (error.name === "SecurityError") return "Passkeys need this page's public address, or http://localhost.";
    return error.message;
  }

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    if (!able) continue;
    form.hidden = false;
    const status = form.querySelector("[role=status]");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const button = form.querySelector("button");
      button.disabled = true;
      status.textContent = "";
      try {
        await (form.dataset.passkey === "add" ? add(form) : signIn(form));
      } catch (error) {
        status.textContent = reason(error);
      } finally {
        button.disabled = false;
      }
    });
  }
})();
