"""The widget's tag in pages that real generators make, as the manual says to put it there."""

import pytest

from tests.widget.conftest import expected_errors
from tests.widget.generated import BUILDERS, MANUAL, built_site

pytestmark = pytest.mark.slow

LANGUAGES = {"html": "ar", "hugo": "de"}
QUESTIONS = {"ar": "سؤالك", "de": "Ihre Frage", "en": "Your question"}


def documented_policy():
    """The manual's policy, in the strictest one around it."""
    line = next(line for line in MANUAL.read_text().splitlines() if line.startswith("script-src 'self'"))
    return f"default-src 'none'; style-src 'self'; {line.replace('https://docsmith.example.com', '{host}')}"


@pytest.mark.parametrize("name", BUILDERS)
def test_widget_answers_on_pages_of(name, service, site, provider, opened, tmp_path):
    created = ("key", "create", "--kind", "assistant", "--domain", service.domain, "--origin", site.origin)
    key = service.cli(*created)["token"]
    site.folder = built_site(name, tmp_path, server=service.url, domain=service.domain, key=key)
    site.policy = documented_policy() if name == "html" else ""
    provider.will_reply("Set `retryDelaySecs`, as in [1](/retry#delay).")
    page = opened("/")
    asked = []
    page.on("request", lambda request: asked.append(request) if request.url.endswith("/message") else None)
    page.locator("ask-docs button").first.click()
    page.get_by_label(QUESTIONS[LANGUAGES.get(name, "en")], exact=True).fill("How do I set the retry delay?")
    page.keyboard.press("Enter")
    page.locator("ask-docs .sources").wait_for()
    answer = page.locator("ask-docs .reply .prose").inner_text()
    assert answer == "Set retryDelaySecs, as in 1."
    assert asked[0].post_data_json["currentPath"] == "/"
    page.locator("a[href*=install]:not([href$='.md']):visible").first.click()
    page.wait_for_url("**/install**")
    page.locator("ask-docs .sources").wait_for()  # in a new page, or in the same one
    assert page.locator("ask-docs").count() == 1
    assert page.locator("ask-docs .reply .prose").inner_text() == answer
    page.keyboard.press("Control+k")
    page.locator("ask-docs #search input").fill("install")
    page.locator("ask-docs .results a").first.wait_for()
    with expected_errors(opened) as errors:
        assert all("401" in error for error in errors)  # the first request shows whether the key needs a token
