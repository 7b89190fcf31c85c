"""The dashboard by keyboard alone: from a sign-in link to a key, and to a command that uses it."""

MOST_TABS = 60
FOCUSED = """() => {
  const one = document.activeElement;
  const label = one.labels?.[0] ?? one;
  return (one.getAttribute("aria-label") ?? label.textContent).replace(/\\s+/g, " ").trim();
}"""


def create_key(page, link):
    """Sign in by a link and create an admin key; return the key and the first command, as they were copied.

    The page is a new one, whose context may use the clipboard.
    """
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
    return copied(page, "the key"), copied(page, "List the jobs")


def copied(page, name):
    """Press a button that copies, and return what is on the clipboard."""
    go_to(page, f"Copy {name}")
    page.keyboard.press("Enter")
    page.get_by_role("button", name=f"Copied {name}").wait_for()
    return page.evaluate("() => navigator.clipboard.readText()")


def follow(page, name, url):
    go_to(page, name)
    with page.expect_navigation(url=url):
        page.keyboard.press("Enter")


def go_to(page, name):
    """Press Tab until something that begins with this name has the focus."""
    seen = []
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
        if seen[-1].startswith(name):
            return
    raise AssertionError(f"{name} is not reached by Tab: {seen}")
