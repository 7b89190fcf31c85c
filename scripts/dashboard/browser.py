"""The dashboard in Chromium: how soon a long page is there and scrolls, a step shows, and a new key works."""

import json
import subprocess
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from scripts.dashboard.pages import COOKIE
from tests.dashboard.keyboard import create_key

OPENINGS = 5
SCROLLS, SCROLLED_MS = 3, 2_000
SIZE = {"width": 1280, "height": 900}
SHOWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
SCROLL = """(forMs) => new Promise((done) => {
  const began = performance.now();
  let frames = 0;
  const step = (now) => {
    frames += 1;
    const most = document.scrollingElement.scrollHeight - innerHeight;
    scrollTo(0, ((now - began) / forMs) * most);
    if (now - began < forMs) requestAnimationFrame(step);
    else done(frames);
  };
  requestAnimationFrame(step);
})"""
EMPTY = '<!doctype html><html lang="en"><title>Empty</title><body style="height: 20000px"></body></html>'
WATCH = """() => {
  window.shownAt = {};
  const look = () => {
    for (const step of document.querySelectorAll("#steps li.said")) {
      const text = step.querySelector(".words")?.textContent.trim();
      if (text && !(text in window.shownAt)) window.shownAt[text] = Date.now();
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def signed_in(browser: Any, url: str, session: str = "") -> Any:
    """Return a page in a fresh profile; ``url`` begins with http://localhost."""
    context = browser.new_context(viewport=SIZE, base_url=url)
    if session:
        # Browsers keep such a cookie for https alone, and send it to http://localhost as well
        context.add_cookies([{"name": COOKIE, "value": session, "url": "https://localhost"}])
    return context.new_page()


def opening_seconds(page: Any, path: str) -> float:
    """Return the median time from asking for a page to its first frame after everything has loaded."""
    found = []
    for _ in range(OPENINGS):
        page.goto("about:blank")
        began = time.perf_counter()
        page.goto(path, wait_until="load")
        page.evaluate(SHOWN)
        found.append(time.perf_counter() - began)
    return median(found)


def scrolled_share(page: Any) -> float:
    """Return the frames while the page is scrolled from top to end, as a share of those of an empty page."""
    empty = page.context.new_page()
    empty.set_content(EMPTY)
    frames = beside = 0
    for _ in range(SCROLLS):  # by turns, since other work on the machine comes and goes
        page.bring_to_front()
        frames += page.evaluate(SCROLL, SCROLLED_MS)
        empty.bring_to_front()
        beside += empty.evaluate(SCROLL, SCROLLED_MS)
    empty.close()
    page.bring_to_front()
    return frames / beside


def step_ms(page: Any, path: str, send: Callable[[str], object], times: int) -> list[float]:
    """Return how long after it was sent each message of a job stands in its open page.

    ``send`` gives the job a message; the time that its request takes counts, so its event was there earlier.
    """
    page.goto(path)
    page.locator("#steps li.said").first.wait_for()
    page.evaluate(WATCH)
    found = []
    for number in range(times):
        text = f"Mention string {number}, too"
        began = time.time()
        send(text)
        page.wait_for_function("(text) => text in window.shownAt", arg=text)
        found.append(page.evaluate("(text) => window.shownAt[text]", text) - began * 1000)
    return found


def key_seconds(browser: Any, url: str, login: Callable[[], str]) -> float:
    """Return the time from ``docsmith login`` to a key that has opened the API in curl, by keyboard alone."""
    page = signed_in(browser, url)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    began = time.perf_counter()
    key, command = create_key(page, login())
    assert key.startswith("docsmith_")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert isinstance(json.loads(done.stdout)["jobs"], list), done.stdout
    elapsed = time.perf_counter() - began
    page.context.close()
    return elapsed
