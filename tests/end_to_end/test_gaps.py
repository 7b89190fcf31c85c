"""Gaps of a served site: closed by its pages, dismissed and restored over HTTP and at the terminal."""

import asyncio
import json

import aiohttp
import pytest

from tests.end_to_end.talk import ask, question, recorded
from tests.service_process import service_in, write_docs

UNANSWERED = "How do I calibrate the frobnicating theremin?"


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gaps")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"), changes=True)
        service.start()
        service.docs = folder / "docs"
        yield service


@pytest.fixture
async def http():
    async with aiohttp.ClientSession() as session:
        yield session


async def call(http, instance, method, path, status=200):
    async with http.request(method, instance.url + path, headers=instance.admin) as answer:
        assert answer.status == status, await answer.text()
        text = await answer.text()
        return json.loads(text) if text else None


async def open_gaps(http, instance):
    return (await call(http, instance, "GET", "/v2/gaps"))["gaps"]


async def test_gap_is_dismissed_and_restored_by_api_and_terminal(http, instance):
    await ask(http, instance, question("Where are zeppelins moored overnight?"))
    [gap] = await open_gaps(http, instance)
    assert gap["prompt"].startswith('Answer the question "Where are zeppelins moored overnight?"')
    await call(http, instance, "POST", f"/v2/gaps/{gap['id']}/dismiss", 204)
    await call(http, instance, "POST", f"/v2/gaps/{gap['id']}/dismiss", 204)
    assert await open_gaps(http, instance) == []
    assert (await call(http, instance, "GET", "/v2/overview"))["unanswered"] == 0
    [dismissed] = (await call(http, instance, "GET", "/v2/gaps?state=dismissed"))["gaps"]
    assert (dismissed["id"], dismissed["count"], dismissed["dismissedAt"] is None) == (gap["id"], 1, False)
    run = asyncio.to_thread
    [shown] = (await run(instance.cli, "gap", "list", "--dismissed"))["gaps"]
    assert shown == dismissed
    await run(instance.cli, "gap", "restore", gap["id"])
    [again] = await open_gaps(http, instance)
    assert again["id"] == gap["id"]
    table = (await run(instance.run, "gap", "list")).stdout
    assert gap["id"] in table
    assert "Where are zeppelins moored overnight?" in table
    await run(instance.cli, "gap", "dismiss", gap["id"], "--project", "kite")
    assert await open_gaps(http, instance) == []
    [dismissed] = (await call(http, instance, "GET", "/v2/gaps?state=dismissed"))["gaps"]
    assert dismissed["dismissedBy"].startswith("cli:")
    await call(http, instance, "POST", f"/v2/gaps/{gap['id']}/restore", 204)
    await call(http, instance, "POST", f"/v2/gaps/{gap['id']}/dismiss", 204)
    refused = await call(http, instance, "POST", "/v2/gaps/0000/dismiss", 404)
    assert refused["code"] == "gap_not_found"
    assert (await run(instance.cli, "gap", "dismiss", "0000", status=1))["code"] == "gap_not_found"


async def test_gap_closes_once_the_site_answers_it(http, instance):
    await ask(http, instance, question(UNANSWERED))
    [gap] = await open_gaps(http, instance)
    assert gap["question"] == UNANSWERED
    page = "# Calibrate the frobnicating theremin\n\nTo calibrate the frobnicating theremin, turn its left dial to 7.\n"
    write_docs(instance.docs, {"theremin.md": page})
    await asyncio.to_thread(instance.cli, "index", "kite")
    await recorded(instance, f"gap-{gap['id']}", until="gap-answered", seconds=300)
    assert await open_gaps(http, instance) == []
    events = (await asyncio.to_thread(instance.cli, "audit", "show", "--stream", f"gap-{gap['id']}"))["events"]
    assert [event["type"] for event in events] == ["gap-answered"]
    assert "theremin" not in json.dumps(events)
    await ask(http, instance, question(UNANSWERED))
    assert await open_gaps(http, instance) == []
