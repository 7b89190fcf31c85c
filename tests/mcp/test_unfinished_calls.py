"""Calls that do not come to their end: the client has cancelled them, the model fails, a limit is reached."""

import asyncio
import re

import pytest

from tests.end_to_end.scripted import next_asked
from tests.mcp.client import Client, headers_of, legacy, modern

ASK = {"name": "ask", "arguments": {"question": "How do I install Kite?"}}


CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled"}


@pytest.fixture
def keyed(http, scripted):
    """A client whose key has searched nothing yet."""
    return Client(http, f"{scripted.url}/mcp/kite", Authorization=f"Bearer {new_key(scripted)}")


def new_key(scripted):
    return scripted.cli("key", "create", "--kind", "assistant", "--domain", "kite")["token"]


@pytest.fixture
def keyless(http, scripted):
    scripted.cli("site", "update", "kite", "--public")
    yield Client(http, f"{scripted.url}/mcp/kite")
    scripted.cli("site", "update", "kite", "--private")


@pytest.mark.parametrize("meta", [{}, {"progressToken": 1}])
async def test_closed_connection_ends_the_models_call(keyed, provider, meta):
    provider.will_reply("To install ", "Kite", after=1, hold=asyncio.Event())
    message = modern("tools/call", ASK, **meta)
    sending = asyncio.create_task(keyed.send(message, **headers_of(message)))
    asked = await next_asked(provider)
    sending.cancel()
    async with asyncio.timeout(60):
        await asked.disconnected.wait()


async def test_cancelled_notification_ends_the_models_call(keyed, provider):
    provider.will_reply("To install ", "Kite", after=1, hold=asyncio.Event())
    sending = asyncio.create_task(keyed.send(legacy("tools/call", ASK, id_="mine")))
    asked = await next_asked(provider)
    cancel = {**CANCEL, "params": {"requestId": "mine"}}
    another = Client(keyed.http, keyed.url, **{**keyed.headers, "User-Agent": "another"})
    assert (await another.send(cancel)).status == 202
    assert (await keyed.send({**cancel, "params": {"requestId": "other"}})).status == 202
    assert not asked.disconnected.is_set()
    assert (await keyed.send(cancel)).status == 202
    async with asyncio.timeout(60):
        await asked.disconnected.wait()
        assert (await sending).result["isError"] is True


async def test_stranger_cancels_no_call(keyless, provider):
    hold = asyncio.Event()
    provider.will_reply("To install ", "Kite", after=1, hold=hold)
    sending = asyncio.create_task(keyless.send(legacy("tools/call", ASK, id_=3)))
    await next_asked(provider)
    cancel = {**CANCEL, "params": {"requestId": 3}}
    assert [(await keyless.send(cancel)).status for _ in range(5)] == [202] * 5
    hold.set()
    assert (await sending).result["isError"] is False


async def test_modern_message_cancels_no_call(keyed, provider):
    hold = asyncio.Event()
    provider.will_reply("To install ", "Kite", after=1, hold=hold)
    sending = asyncio.create_task(keyed.send(legacy("tools/call", ASK, id_=3)))
    await next_asked(provider)
    cancel = {**CANCEL, "params": {"requestId": 3}}
    version = {"MCP-Protocol-Version": "2026-07-28"}
    assert [(await keyed.send(cancel, **version)).status for _ in range(5)] == [202] * 5
    hold.set()
    assert (await sending).result["isError"] is False


async def test_cancelling_counts_as_a_search(keyed):
    cancel = {**CANCEL, "params": {"requestId": "mine"}}
    assert [(await keyed.send(cancel)).status for _ in range(4)] == [202, 202, 202, 429]


async def test_failing_model_leaves_the_passages_and_says_so(keyed, provider):
    provider.will_fail(401)
    result = await keyed.call("ask", **ASK["arguments"])
    text = result["content"][0]["text"]
    assert "The assistant is misconfigured." in text
    assert "](" in text
    assert re.search(r"\b401\b", text) is None  # ids may have these digits


async def test_limit_is_reported_to_model_and_program(keyed):
    for _ in range(3):
        assert not (await keyed.call("search", query="install"))["isError"]
    over = await keyed.call("search", query="install")
    assert (over["isError"], "try again in" in over["content"][0]["text"]) == (True, True)
    answer = await keyed.ask("resources/list")
    assert (answer.status, int(answer.headers["Retry-After"]) > 0) == (429, True)
    assert (await keyed.ask("tools/list")).status == 200
