"""From ``docsmith login`` to a key that works in curl, by keyboard alone."""

import json
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.slow

MOST_TABS = 60
FOCUSED = """() => {
  const one = document.activeElement;
  const label = one.labels?.[0] ?? one;
  return (one.getAttribute("aria-label") ?? label.textContent).replace(/\\s+/g, " ").trim();
}"""


def go_to(page, name):
    """Press Tab until something that begins with this name has the focus."""
    seen = []
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
        if seen[-1].startswith(name):
            return
    raise AssertionError(f"{name} is not reached by Tab: {seen}")


def follow(page, name, url):
    go_to(page, name)
    with page.expect_navigation(url=url):
        page.keyboard.press("Enter")


def test_key_that_works_in_curl_by_keyboard_alone(service, browsing):
    if shutil.which("curl") is None:
        pytest.skip("asks with curl; install curl to run it")
    link = service.cli("login", "--person", "owner@example.com")["link"]
    with browsing.opened() as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(link)
        page.get_by_text("Your link is ready.").wait_for()
        with page.expect_navigation(url="**/dashboard/*"):
            page.keyboard.press("Enter")  # the button has the focus
        follow(page, "Keys", "**/keys")
        follow(page, "Create an admin key", "**/keys/new")
        go_to(page, "Name")
        page.keyboard.type("Terminal")
        with page.expect_navigation(url="**/keys"):
            page.keyboard.press("Enter")
        go_to(page, "Copy the key")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Copied the key").wait_for()
        key = page.evaluate("() => navigator.clipboard.readText()")
        go_to(page, "Copy List the jobs")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Copied List the jobs").wait_for()
        command = page.evaluate("() => navigator.clipboard.readText()")
    assert key.startswith("docsmith_")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert isinstance(json.loads(done.stdout)["jobs"], list), done
