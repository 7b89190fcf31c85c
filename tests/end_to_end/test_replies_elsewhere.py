"""Replies that one instance gives, read and stopped at the others."""

import asyncio
import signal
from contextlib import AsyncExitStack

import aiohttp
import pytest

from tests.end_to_end.scripted import Reading, next_asked, scripted_settings
from tests.end_to_end.talk import message_url, question, recorded, text_of
from tests.fakes.provider import ScriptedProvider
from tests.instances import instances_in
from tests.mcp.client import Client, legacy
from tests.service_process import free_port, write_docs

TEXTS = ("Fetch the kite, ", "hold the ", "string.")
WHOLE = "".join(TEXTS)


@pytest.fixture(scope="module")
def provider_port():
    return free_port()


@pytest.fixture(scope="module")
def three(tmp_path_factory, provider_port):
    folder = tmp_path_factory.mktemp("three")
    with instances_in(folder, scripted_settings(provider_port), count=3) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        for member in service.members:
            member.domain, member.assistant_key = service.domain, service.assistant_key
        yield service


@pytest.fixture
async def provider(provider_port):
    async with ScriptedProvider(port=provider_port) as provider:
        yield provider


def in_chat(chat_id):
    return question("How do I install Kite?", id=chat_id, trigger="submit-message", features=["resume"])


async def asked_at(stack, http, member, chat_id):
    request = http.post(message_url(member), json=in_chat(chat_id), headers=member.assistant)
    response = await stack.enter_async_context(request)
    assert response.status == 200, await response.text()
    return Reading(response)


async def resumed_at(stack, http, member, chat_id):
    request = http.get(f"{message_url(member)}/{chat_id}/stream", headers=member.assistant)
    response = await stack.enter_async_context(request)
    assert response.status == 200, await response.text()
    return Reading(response)


async def test_reply_is_read_at_every_instance_as_it_is_written(http, three, provider):
    hold = asyncio.Event()
    provider.will_reply(*TEXTS, after=2, hold=hold)
    async with AsyncExitStack() as stack:
        one, two, three_ = three.members
        readings = [await asked_at(stack, http, one, "all")]
        await readings[0].until("hold the")
        readings += [await resumed_at(stack, http, member, "all") for member in (two, three_, two)]
        for reading in readings:
            await reading.until("hold the")
        hold.set()
        found = [await reading.rest() for reading in readings]
    assert [text_of(each) for each in found] == [WHOLE] * 4
    searches = [[part for part in each if part["type"] not in ("text-delta", "finish")] for each in found]
    assert searches[1] == searches[0]  # with the passages of its search; how its text is cut may differ


async def test_reply_is_stopped_at_another_instance(http, three, provider):
    provider.will_reply(*TEXTS, after=1, hold=asyncio.Event())
    async with AsyncExitStack() as stack:
        one, two, _ = three.members
        reading = await asked_at(stack, http, one, "stop")
        await reading.until("Fetch the")
        asked = await next_asked(provider)
        async with http.post(f"{message_url(two)}/stop/stop", headers=two.assistant) as response:
            assert response.status == 204
        found = await reading.rest()
        async with asyncio.timeout(30):
            await asked.disconnected.wait()
    assert found[-1]["type"] == "error"
    types = await recorded(three, f"thread-{reading.thread_id}", until="reply-stopped")
    assert "reply-completed" not in types


async def test_reply_ends_when_its_last_reader_leaves_elsewhere(http, three, provider):
    provider.will_reply(*TEXTS, after=1, hold=asyncio.Event())
    one, two, _ = three.members
    plain = question("How do I install Kite?", id="left", trigger="submit-message")  # its client does not come back
    request = http.post(message_url(one), json=plain, headers=one.assistant)
    async with request as response, AsyncExitStack() as stack:
        await Reading(response).until("Fetch the")
        reading = await resumed_at(stack, http, two, "left")
        await reading.until("Fetch the")
        asked = await next_asked(provider)
        response.close()
        reading.response.close()
        async with asyncio.timeout(30):
            await asked.disconnected.wait()


async def test_mcp_call_is_cancelled_at_another_instance(http, three, provider):
    one, two, three_ = (Client(http, f"{at.url}/mcp/{at.domain}", **at.assistant) for at in three.members)
    asking = {"name": "ask", "arguments": {"question": "How do I install Kite?"}}

    async def begun(client, request_id):
        provider.will_reply(*TEXTS, after=1, hold=asyncio.Event())
        sending = asyncio.create_task(client.send(legacy("tools/call", asking, id_=request_id)))
        return sending, await next_asked(provider)

    def cancel(request_id):
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
        return two.send(cancelled)

    sending, asked = await begun(one, "mine")
    twins = [await begun(client, "twin") for client in (one, three_)]
    for request_id in ("other", "twin"):  # of two that fit none is cancelled
        assert (await cancel(request_id)).status == 202
    assert not any(each.disconnected.is_set() for each in (asked, twins[0][1], twins[1][1]))
    assert (await cancel("mine")).status == 202
    async with asyncio.timeout(30):
        await asked.disconnected.wait()
        assert (await sending).result["isError"] is True
    assert not any(each.disconnected.is_set() for _, each in twins)
    for other, _ in twins:
        other.cancel()
    async with asyncio.timeout(30):
        await asyncio.gather(*(each.disconnected.wait() for _, each in twins))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "paused"])
async def test_reply_goes_on_behind_the_end_of_its_instance(http, three, provider, how):
    """One that was only paused sends its readers what the new one has written, once it goes on."""
    name = f"lost-{how}"
    held = asyncio.Event()
    provider.will_reply(*TEXTS, after=1, hold=held)
    async with AsyncExitStack() as stack:
        one, two, _ = three.members
        own = await asked_at(stack, http, one, name)
        await own.until("Fetch the")
        await recorded(two, f"thread-{own.thread_id}", until="reply-written")
        reading = await resumed_at(stack, http, two, name)
        await reading.until("Fetch the")
        provider.will_reply(*TEXTS[1:])
        if how == "killed":
            one.kill()
        else:
            one.process.send_signal(signal.SIGSTOP)
        found = await reading.rest()
        assert text_of(found) == WHOLE
        if how == "paused":
            one.process.send_signal(signal.SIGCONT)
            held.set()
            assert text_of(await own.rest()) == WHOLE
        else:
            with pytest.raises(aiohttp.ClientError):
                await own.rest()
            one.start()
    types = await recorded(two, f"thread-{own.thread_id}", until="reply-completed")
    assert types.count("reply-resumed") == 1
