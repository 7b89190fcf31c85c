// A sign-in link has its secret behind the "#", which no browser sends: it goes into the form, and out of the address.
(() => {
  "use strict";

  const form = document.getElementById("sign-in");
  if (!form) return;

  function take() {
    const secret = location.hash.slice(1);
    if (!secret) return;
    history.replaceState(null, "", location.pathname + location.search);
    form.elements.link.value = secret;
    document.getElementById("by-hand").hidden = true;
    document.getElementById("ready").hidden = false;
    form.querySelector("button").focus();
  }

  addEventListener("hashchange", take);
  take();
})();
