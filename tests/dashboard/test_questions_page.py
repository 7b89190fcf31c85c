"""The pages about readers in Chromium: accessible in light and dark, within the policy, and of use without a script."""

import json
from urllib.request import Request, urlopen

import pytest

pytestmark = pytest.mark.slow

QUESTION = "How do I rotate zygomorphic certificates?"
ANSWERED = "How long is the retry delay?"


@pytest.fixture(scope="module")
def asked(service):
    for text in (QUESTION, ANSWERED):
        body = {"fp": "anonymous", "messages": [{"role": "user", "content": text}]}
        headers = {"Authorization": f"Bearer {service.assistant_key}", "Content-Type": "application/json"}
        url = f"{service.url}/discovery/v2/assistant/{service.domain}/message"
        with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=120) as answer:
            assert b"[DONE]" in answer.read()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_about_readers_are_accessible(browsing, axe, service, asked, scheme):
    base = f"/dashboard/{service.organization_id}"
    with browsing.opened("owner", scheme=scheme, size="phone" if scheme == "dark" else "desktop") as page:
        page.goto(f"{base}/questions")
        assert axe(page) == []
        page.get_by_role("link", name=ANSWERED).first.click()
        page.get_by_role("heading", name="Conversation").wait_for()
        assert axe(page) == []
        page.get_by_role("link", name="Retries").first.click()
        page.get_by_role("heading", name="Source 1 of an answer").wait_for()
        assert axe(page) == []
        page.goto(f"{base}/gaps")
        page.get_by_text("Make a job of it").first.click()
        assert axe(page) == []
        page.goto(f"{base}/analytics")
        assert axe(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_gap_becomes_job_without_a_script(browsing, service, asked):
    with browsing.opened("editor", scripts=False) as page:
        page.goto(f"/dashboard/{service.organization_id}/gaps")
        gap = page.get_by_role("region", name=QUESTION)
        gap.get_by_text("Make a job of it").click()
        gap.get_by_role("button", name="Give the job").click()
        page.get_by_text("The agent has the job.").wait_for()
        assert "/jobs/" in page.url
