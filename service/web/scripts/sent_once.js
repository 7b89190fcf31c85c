// Forms that are sent once.
(() => {
  "use strict";

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
