// Keeps the page of a pull request as it is: when the service says that something has changed, the page is read again and
// its parts that differ are replaced. What is typed into a comment stays, and so do the files while they are the same.
(() => {
  "use strict";

  const PARTS = ["head", "deciding", "description", "said", "made", "all-commits"];
  const status = document.getElementById("status");
  if (!status || !window.EventSource) return;
  let reading = false, again = false;

  function replace(fresh, id) {
    const here = document.getElementById(id), there = fresh.getElementById(id);
    if (here && there && !here.isEqualNode(there)) here.replaceWith(document.adoptNode(there));
    return Boolean(here) === Boolean(there);
  }

  async function read() {
    const before = document.getElementById("decision").textContent;
    const answer = await fetch(status.dataset.page + location.search, { credentials: "same-origin" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const files = ["all-files", ...PARTS.filter((id) => !replace(fresh, id))];
    const version = (page) => page.getElementById("all-files")?.dataset.version;
    if (version(document) !== version(fresh)) replace(fresh, files[0]);
    for (const id of files.slice(1)) {  // a part that came or went
      const there = fresh.getElementById(id), here = document.getElementById(id);
      if (here) here.remove();
      else if (id === "said") document.getElementById("comments").after(document.adoptNode(there));
      else document.getElementById("deciding").after(document.adoptNode(there));
    }
    const now = document.getElementById("decision").textContent;
    if (now !== before) status.textContent = now;
  }

  async function refresh() {
    if (reading) { again = true; return; }
    reading = true;
    try {
      do { again = false; await read(); } while (again);
    } catch {
      // the next change reads it again
    } finally {
      reading = false;
    }
  }

  const changes = new EventSource(status.dataset.live);
  changes.onmessage = refresh;
  changes.addEventListener("done", () => changes.close());
  addEventListener("pagehide", () => changes.close());
})();
