"""Numbers of readers: the same on each page, in the API and at the terminal."""

import re

import aiohttp
import pytest

SITE = "counted"


@pytest.fixture(scope="module")
def site(service):
    docs = str(service.data.parent / "docs")
    ours = ("--organization", service.organization_id)
    made = service.cli("project", "create", "--name", SITE, "--repository", docs, "--domain", SITE, *ours)
    service.cli("index", SITE)
    key = service.cli("key", "create", "--kind", "assistant", "--domain", SITE, *ours)
    return made["id"], key["token"]


async def say(service, site, text, **more):
    """Ask by the API; the thread and the reply."""
    body = {"fp": "anonymous", "messages": [{"role": "user", "content": text}], **more}
    url = f"{service.url}/discovery/v2/assistant/{SITE}/message"
    headers = {"Authorization": f"Bearer {site[1]}"}
    async with aiohttp.ClientSession(headers=headers) as client, client.post(url, json=body) as answer:
        assert "[DONE]" in await answer.text()
        return answer.headers["X-Thread-Id"]


async def test_numbers_of_readers_agree(service, site, viewer):
    thread = await say(service, site, "How do I install Kite?")
    await say(service, site, "Where are zeppelins moored overnight?")
    await say(service, site, "where are ZEPPELINS moored overnight")
    await say(service, site, "Hello", threadId=thread)
    service.cli("ask", SITE, "How do I install Kite?")
    service.cli("ask", SITE, "Who paints the hangars of dirigibles?")
    headers = {"Authorization": f"Bearer {service.admin_key}"}

    async def read(path, **query):
        query = {"projectId": site[0], **query}
        async with aiohttp.ClientSession(service.url, headers=headers) as api, api.get(path, params=query) as answer:
            return await answer.json()

    async def page(path):
        async with viewer.get(f"/dashboard/{service.organization_id}/{path}") as answer:
            return await answer.text()

    totals = (await read("/v2/analytics", days="7"))["totals"]
    outcomes = ("answered", "unsure", "unanswered", "failed")
    assert totals["questions"] == 6 == sum(totals[outcome] for outcome in outcomes)
    assert totals["unanswered"] >= 2
    for outcome in outcomes:
        listed = (await read("/v2/questions", outcome=outcome, limit="100"))["conversations"]
        assert len(listed) == totals[outcome], outcome
        shown = await page(f"questions?site={SITE}&days=7&outcome={outcome}")
        assert len(set(re.findall(r'questions/[\w-]+#([\w-]+)"', shown))) in (totals[outcome], 0), outcome
    gaps = (await read("/v2/gaps"))["gaps"]
    assert sum(gap["count"] for gap in gaps) == totals["unanswered"]
    terminal = service.cli("gap", "list", "--project", SITE)["gaps"]
    assert terminal == gaps
    assert (await read("/v2/overview"))["unanswered"] >= totals["unanswered"]
    analytics = await page(f"analytics?site={SITE}&days=7")
    assert re.search(r">6<", analytics)
    unanswered = f"{totals['unanswered']} question{'' if totals['unanswered'] == 1 else 's'} without an answer"
    assert unanswered in analytics
    assert f"questions?days=7&amp;site={SITE}&amp;outcome=unanswered" in analytics
    usage = await read("/v2/usage", days="7")
    requests = next(one for one in usage["projects"] if one["id"] == site[0])
    assert requests["assistant"] == 4  # those at the terminal are no requests
    assert "requests to the assistant" in await page("usage?days=7")
