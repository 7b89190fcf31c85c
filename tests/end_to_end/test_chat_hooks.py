"""The chat clients' React hooks, from the oldest to the newest, against running services with a scripted model."""

import asyncio
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.clients.chat_clients import AI4, AI5_AND_LATER, require_clients, run_hooks
from tests.end_to_end.scripted import prompt, scripted_service
from tests.end_to_end.talk import message_url, recorded
from tests.fakes.provider import Reply, ScriptedProvider
from tests.service_process import free_port

pytestmark = [pytest.mark.node, pytest.mark.slow]

FIRST = "How do I install Kite?"
HELD = "Tell me slowly."
WORDS = ("With ", "wind ", "and ", "a ", "string.")
BEGUN = "With wind"
RESUMING = [one for one in AI5_AND_LATER if one != "ai5old"]
"""5.0.0 resumes when nothing is under way, too, and then stays as if it waited: the client's own fault."""


@pytest.fixture(scope="module", autouse=True)
def clients():
    require_clients()


@pytest.fixture(scope="module")
def provider_port():
    return free_port()


@pytest.fixture(scope="module")
def plain(tmp_path_factory, provider_port):
    """A service with the settings that it comes with."""
    with scripted_service(tmp_path_factory.mktemp("plain"), provider_port) as service:
        yield service


@pytest.fixture(scope="module")
def lasting(tmp_path_factory, provider_port):
    """A service whose replies go on for minutes without a reader."""
    with scripted_service(tmp_path_factory.mktemp("lasting"), provider_port, THREADS__GRACE_SECONDS="600") as service:
        yield service


@pytest.fixture
def held():
    return asyncio.Event()


@pytest.fixture
async def provider(provider_port, held):
    """Answers anything; what is to be told slowly, only as far as its second word."""

    def answer(asked):
        slowly = HELD in prompt(asked)
        return Reply(WORDS, delay_seconds=0.02, after=2 if slowly else None, hold=held if slowly else None)

    async with ScriptedProvider(answer, port=provider_port) as provider:
        yield provider


def script(version, service, steps, chat=""):
    url = message_url(service, 1 if version in AI4 else 2)
    return {
        "version": version, "url": url, "key": service.assistant_key, "chat": chat or f"chat-{version}", "steps": steps,
    }  # fmt: skip


def words(step):
    return [message["text"] for message in step["messages"]]


def shown_as_it_came(*steps):
    """The page showed a reply before it was whole; of a single one, a busy machine may show but the end."""
    return max(step["messages"][-1]["renders"] for step in steps) > 1


def slow_ones(provider):
    return [asked for asked in provider.asked if HELD in prompt(asked)]


async def test_chat_hook_continues_regenerates_edits_and_stops(plain, provider):
    steps = [{"say": FIRST}, {"regenerate": True}, {"say": "Where?"}, {"edit": "When?"}, {"stopAt": HELD}]
    outcomes = await run_hooks([script(version, plain, steps) for version in AI5_AND_LATER])
    whole = "".join(WORDS)
    for outcome in outcomes:
        first, again, second, edited, stopped = outcome["steps"]
        named = outcome["version"]
        for step in (first, second, again, edited, stopped):
            assert (step["status"], step["error"]) == ("ready", None), named
            assert step["metadata"] == step["threadId"] == first["threadId"], named
        assert words(first) == words(again) == [FIRST, whole], named
        assert shown_as_it_came(first, second, again, edited), named
        assert "/install" in first["messages"][1]["sources"], named
        assert words(second) == [FIRST, whole, "Where?", whole], named
        assert words(edited) == ["When?", whole], named
        assert (words(stopped)[-2], words(stopped)[-1].strip()) == (HELD, BEGUN), named
        assert stopped["requests"] == 5, named
        types = await recorded(plain, f"thread-{first['threadId']}", until="reply-stopped")
        assert (types.count("message-posted"), types.count("reply-completed")) == (4, 4), named
    await stops_were_quick(provider, [outcome["steps"][-1] for outcome in outcomes])


async def test_old_chat_hook_continues_regenerates_and_stops(plain, provider):
    steps = [{"say": "How?"}, {"say": "Where?"}, {"regenerate": True}, {"stopAt": HELD}]
    outcomes = await run_hooks([script(version, plain, steps) for version in AI4])
    whole = "".join(WORDS)
    for outcome in outcomes:
        first, second, again, stopped = outcome["steps"]
        named = outcome["version"]
        for step in outcome["steps"]:
            assert (step["error"], step["threadId"]) == (None, first["threadId"]), named
        assert words(first) == ["How?", whole], named
        assert shown_as_it_came(first, second, again), named
        assert words(second) == words(again) == ["How?", whole, "Where?", whole], named
        assert words(stopped)[-1].strip() == BEGUN, named
        types = await recorded(plain, f"thread-{first['threadId']}", until="reply-stopped")
        assert (types.count("message-posted"), types.count("reply-started")) == (3, 4), named
    await stops_were_quick(provider, [outcome["steps"][-1] for outcome in outcomes])


async def stops_were_quick(provider, steps):
    """The provider saw its request end soon after the stop, each of them, and not only when its own patience ended."""
    asked = slow_ones(provider)
    assert len(asked) == len(steps)
    async with asyncio.timeout(60):
        for one in asked:
            await one.disconnected.wait()
    since_the_epoch = time.time() - time.monotonic()
    stops = sorted(step["stoppedAt"] / 1000 for step in steps)
    for stop, end in zip(stops, sorted(one.disconnected_at + since_the_epoch for one in asked), strict=True):
        assert end - stop < 10


async def test_a_page_that_is_loaded_again_has_the_whole_reply(lasting, provider, held):
    leaving = [script(version, lasting, [{"leaveAt": HELD}]) for version in RESUMING]
    left = await run_hooks(leaving)
    for outcome in left:
        assert outcome["steps"][0]["messages"][-1]["text"].strip() == BEGUN, outcome["version"]
        stream = f"thread-{outcome['steps'][0]['threadId']}"
        await recorded(lasting, stream, until="reader-left")
    assert not any(asked.disconnected.is_set() for asked in slow_ones(provider))
    asyncio.get_running_loop().call_later(0.5, held.set)
    outcomes = await run_hooks([script(version, lasting, [{"resume": True}]) for version in RESUMING])
    for outcome, before in zip(outcomes, left, strict=True):
        (resumed,) = outcome["steps"]
        named = outcome["version"]
        assert (resumed["status"], resumed["error"]) == ("ready", None), named
        assert words(resumed) == ["".join(WORDS)], named
        assert resumed["threadId"] == resumed["metadata"] == before["steps"][0]["threadId"], named


async def test_a_limit_is_shown_as_its_sentence():
    sentence = "Too many requests; try again in 7 seconds."

    async def refuse(_):
        return web.json_response({"error": sentence}, status=429, headers={"Retry-After": "7"})

    app = web.Application()
    app.router.add_post("/{rest:.*}", refuse)
    async with TestServer(app) as server:
        asking = {"url": str(server.make_url("/x")), "key": "k", "chat": "c", "steps": [{"say": "How?"}]}
        outcomes = await run_hooks([{**asking, "version": version} for version in (*AI4, *AI5_AND_LATER)])
    for outcome in outcomes:
        assert sentence in outcome["steps"][0]["error"], outcome["version"]
