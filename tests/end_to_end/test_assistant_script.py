"""The script of the assistant against the service: what a reader loses, and what a copied key opens."""

import asyncio
import json
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.end_to_end.scripted import next_asked, scripted_service
from tests.end_to_end.talk import recorded
from tests.fakes.provider import ScriptedProvider
from tests.service_process import free_port

PAGE = Path(__file__).parent.parent / "javascript" / "page.mjs"
TEXTS = ("Fetch the kite, ", "hold the ", "string.")
WHOLE = "".join(TEXTS)
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js 20")


@pytest.fixture(scope="module")
def provider_port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, provider_port):
    with scripted_service(tmp_path_factory.mktemp("script"), provider_port, LIMITS__PROOF_HOUR="1") as service:
        yield service


@pytest.fixture
async def provider(provider_port):
    async with ScriptedProvider(port=provider_port) as provider:
        yield provider


@asynccontextmanager
async def page(scenario, service, key=None):
    """A page that runs a scenario; awaiting what is yielded gives the next thing that it tells."""
    arguments = (scenario, service.url, service.domain, key or service.assistant_key)
    process = await asyncio.create_subprocess_exec("node", str(PAGE), *arguments, stdout=asyncio.subprocess.PIPE)

    async def told():
        async with asyncio.timeout(60):
            return json.loads(await process.stdout.readline())

    yield told
    async with asyncio.timeout(60):
        assert await process.wait() == 0


async def test_reload_in_mid_answer_loses_no_character(service, provider):
    hold = asyncio.Event()
    provider.will_reply(*TEXTS, after=1, hold=hold)
    async with page("reload", service) as told:
        assert await told() == "left"
        hold.set()
        found = await told()
    assert (found["text"], found["status"], found["count"]) == (WHOLE, "idle", 2), found
    assert found["sources"] > 0


async def test_reply_goes_on_after_the_server_was_killed(tmp_path, provider_port, provider):
    with scripted_service(tmp_path, provider_port) as service:
        service.stop()
        port = str(free_port())
        service.start("--port", port)
        hold = asyncio.Event()
        provider.will_reply(*TEXTS, after=1, hold=hold)
        async with page("lost", service) as told:
            thread_id = await told()
            await next_asked(provider)
            await recorded(service, f"thread-{thread_id}", until="reply-written")
            service.kill()
            provider.will_reply("hold the string.")
            await asyncio.to_thread(service.start, "--port", port)
            found = await told()
    assert (found["status"], found["text"].startswith(TEXTS[0])) == ("idle", True)
    assert found["text"].endswith("string.")


async def test_reply_that_ended_meanwhile_is_read_from_the_record(service, provider):
    provider.will_reply(*TEXTS)
    async with page("late", service) as told:
        found = await told()
    assert (found["text"], found["status"]) == (WHOLE, "idle")
    assert len(provider.asked) == 1


async def make_busy(http, service, key):
    """Fetch reader tokens until they cost proof of work."""
    headers = {"Authorization": f"Bearer {key}", "Origin": "https://docs.example.com"}
    status = 200
    while status == 200:
        async with http.post(f"{service.url}/discovery/v1/token/{service.domain}", headers=headers) as answer:
            status = answer.status
    assert status == 403


async def test_page_with_a_browser_key_asks_rates_and_searches(http, service, provider):
    named = ("--domain", service.domain, "--origin", "https://docs.example.com")
    created = ("key", "create", "--kind", "assistant", *named)
    key = (await asyncio.to_thread(service.cli, *created))["token"]
    await make_busy(http, service, key)
    for text in ("First.", "Second.", "Third."):
        provider.will_reply(text)
    async with page("reader", service, key) as told:
        first, again, paths, third, copied = [await told() for _ in range(5)]
    assert (first["text"], first["status"]) == ("First.", "idle")
    assert (again["text"], again["count"]) == ("Second.", 2)
    assert "install" in paths
    assert (third["text"], third["count"]) == ("Third.", 4)
    assert copied["error"] == "origin_not_allowed"
