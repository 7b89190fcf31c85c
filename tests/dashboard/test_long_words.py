"""Long names, addresses and prompts in Chromium: they widen no page and no table, on a desktop and on a phone."""

import pytest

from tests.dashboard.conftest import invite, sign_in

pytestmark = pytest.mark.slow

WORD = "w" * 90
WIDER = """() => [...document.querySelectorAll(".scroll")].filter((one) => one.scrollWidth > one.clientWidth + 1).map(
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


async def test_menu_stays_on_the_pages_of_an_operator(service, nobody):
    new = {"email": "both@example.com", "organization_id": service.organization_id, "role": "owner"}
    _, link = await invite(service.data, **new, is_operator=True)
    cookie = {"Cookie": f"__Host-docsmith={sign_in(service.url, link)}"}
    for path in ("/operator/organizations", "/operator/health", "/operator/settings", "/operator/audit"):
        async with nobody.get(path, headers=cookie) as answer:
            text = await answer.text()
            assert answer.status == 200, text
            for section in ("jobs", "gaps", "webhooks"):
                assert f'dashboard/{service.organization_id}/{section}"' in text
