// The dashboard's own script: buttons that copy or insert a text. All else works without one, or is htmx's.
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
})();
