"""Long names, addresses and prompts in Chromium: they widen no page and no table, on a desktop and on a phone."""

import pytest

pytestmark = pytest.mark.slow

WORD = "w" * 90
WIDER = """() => [...document.querySelectorAll(".scroll:has(> .grid)")].filter(
    (one) => one.scrollWidth > one.clientWidth + 1
).map(
    (one) => (one.querySelector("caption")?.textContent ?? one.ariaLabel ?? "") + " " + one.scrollWidth
).concat(document.documentElement.scrollWidth > innerWidth + 1 ? ["the page"] : [])"""
"""Tables that are wider than their place, and the page if it is wider than the window."""


@pytest.fixture(scope="module")
def named(service):
    """An organization's things, each with a long word in its name."""
    ours = ("--organization", service.organization_id)
    service.cli("key", "create", "--kind", "admin", "--name", WORD, *ours)
    service.cli("webhook", "create", "--url", f"https://hooks.example/{WORD * 5}", *ours)
    service.cli("job", "create", f"Write about {WORD * 3}", "--project", service.project_id)
    service.cli("ask", service.domain, f"What is {WORD * 2}?")
    return service


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_long_words_widen_no_table(named, browsing, size):
    base = f"/dashboard/{named.organization_id}"
    found = {}
    with browsing.opened("owner", size=size) as page:
        for path in ("", "/jobs", "/questions", "/gaps", "/analytics", "/keys", "/webhooks", "/usage", "/sites"):
            page.goto(base + path)
            if wide := page.evaluate(WIDER):
                found[path] = wide
    assert found == {}
