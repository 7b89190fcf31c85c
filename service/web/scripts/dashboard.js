// The dashboard's own script: buttons that copy or insert a text, and forms that are sent once. All else works without one, or is htmx's.
(() => {
  "use strict";

  const root = document.documentElement;
  root.classList.add("scripted");

  const status = document.getElementById("status");

  function say(text) {
    if (!status) return;
    status.textContent = "";
    requestAnimationFrame(() => { status.textContent = text; });
  }

  async function copy(button) {
    const source = button.dataset.copyFrom && document.getElementById(button.dataset.copyFrom);
    const text = source ? (source.value ?? source.textContent) : button.dataset.copy;
    const label = button.querySelector("[data-label]") ?? button;
    button.dataset.before ??= label.textContent;
    try {
      await navigator.clipboard.writeText(text);
      label.textContent = "Copied";
      say("Copied");
    } catch {
      select(source ?? button.previousElementSibling);
      label.textContent = "Press Ctrl+C";
      say("The text is selected. Press Ctrl+C to copy it.");
    }
    clearTimeout(button.restoring);
    button.restoring = setTimeout(() => { label.textContent = button.dataset.before; }, 2000);
  }

  // Pages of plain HTTP addresses have no clipboard: the text is selected for the person to copy.
  function select(element) {
    if (!element) return;
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  // A form goes on a line of its own, and its first part to fill in is selected.
  function insert(button) {
    const field = document.getElementById(button.dataset.into), form = button.dataset.insert;
    const before = field.value.trimEnd() && `${field.value.trimEnd()}\n`;
    field.value = before + form;
    field.focus();
    const part = /[A-Z]+\b/.exec(form);
    const from = before.length + (part ? part.index : form.length);
    field.setSelectionRange(from, from + (part ? part[0].length : 0));
    say("Inserted");
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy], button[data-copy-from], button[data-insert]");
    if (!button) return;
    if (button.dataset.insert) insert(button); else copy(button);
  });

  // A second press while the first is under way sends nothing. The button is disabled a moment later, since a disabled
  // one would not send its own value; and enabled again where the browser stays or comes back: a download, "Back".
  function buttonsOf(form) {
    return form.querySelectorAll("button:not([type=button])");
  }

  function free(form) {
    delete form.dataset.sent;
    for (const button of buttonsOf(form)) button.disabled = false;
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    if ("sent" in form.dataset) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "";
    setTimeout(() => {
      for (const button of buttonsOf(form)) button.disabled = true;
      if ("download" in form.dataset) setTimeout(free, 2000, form);
    });
  });

  addEventListener("pageshow", (event) => {
    if (event.persisted) document.querySelectorAll("form[data-sent]").forEach(free);
  });
})();
