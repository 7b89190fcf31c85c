"""Replies whose readers lose the connection: what they get when they come back, and who else does not."""

import asyncio

import pytest

from service.web.api.assistant.threads import MAX_ID_CHARACTERS
from tests.end_to_end.scripted import Reading, asking, next_asked, scripted_service
from tests.end_to_end.talk import message_url, question, recorded, text_of
from tests.fakes.provider import ScriptedProvider
from tests.service_process import free_port

TEXTS = ("Fetch the kite, ", "hold the ", "string.")
WHOLE = "".join(TEXTS)


@pytest.fixture(scope="module")
def provider_port():
    return free_port()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory, provider_port):
    """A service whose replies go on for minutes without a reader."""
    folder = tmp_path_factory.mktemp("lasting")
    with scripted_service(folder, provider_port, THREADS__GRACE_SECONDS="600") as service:
        yield service


@pytest.fixture
async def provider(provider_port):
    async with ScriptedProvider(port=provider_port) as provider:
        yield provider


def in_chat(chat_id, **more):
    return question("How do I install Kite?", id=chat_id, trigger="submit-message", **more)


async def resume(http, service, chat_id, *, query="", key="", **headers):
    """The chunks, or None for 204."""
    url = f"{message_url(service)}/{chat_id}/stream{query}"
    authorization = {"Authorization": f"Bearer {key}"} if key else service.assistant
    async with http.get(url, headers={**authorization, **headers}) as response:
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        if response.status == 204:
            return None
        assert response.status == 200, await response.text()
        return await Reading(response).rest()


async def lose(http, service, provider, chat_id, hold, **more):
    """Ask, and lose the connection after the first words. The thread, and what was read of its reply."""
    provider.will_reply(*TEXTS, after=1, hold=hold)
    async with asking(http, service, in_chat(chat_id, **more)) as reading:
        await reading.until("Fetch the")
        found = reading.found
        key = reading.response.headers["X-Thread-Key"]
        reading.leave()
    return await next_asked(provider), reading.thread_id, key, found


async def test_a_lost_reader_gets_every_character_once(http, lasting, provider):
    hold = asyncio.Event()
    asked, thread_id, _, found = await lose(http, lasting, provider, "chat-1", hold)
    await recorded(lasting, f"thread-{thread_id}", until="reader-left")
    async with http.get(f"{message_url(lasting)}/chat-1/stream", headers=lasting.assistant) as response:
        assert response.headers["X-Thread-Id"] == thread_id
        assert "X-Thread-Key" not in response.headers
        reading = Reading(response)
        await reading.until("Fetch the")
        assert reading.found[: len(found)] == found
        hold.set()
        resumed = await reading.rest()
    assert text_of(resumed) == WHOLE
    assert resumed[0] == found[0]  # the same message id
    assert resumed[-1]["type"] == "finish"
    assert not asked.disconnected.is_set()
    types = await recorded(lasting, f"thread-{thread_id}", until="reply-completed")
    assert types.count("reader-returned") == 1
    assert await resume(http, lasting, "chat-1") is None


async def test_reply_that_ended_unread_waits_for_its_reader(http, lasting, provider):
    hold = asyncio.Event()
    _, thread_id, _, _ = await lose(http, lasting, provider, "chat/2 ä", hold)
    await recorded(lasting, f"thread-{thread_id}", until="reader-left")
    hold.set()
    await recorded(lasting, f"thread-{thread_id}", until="reply-completed")
    found = await resume(http, lasting, "chat%2F2%20%C3%A4")
    assert text_of(found) == WHOLE
    types = [chunk["type"] for chunk in found]
    assert types[:5] == ["start", "start-step", "tool-input-start", "tool-input-available", "tool-output-available"]
    assert types[-4:] == ["text-delta", "text-end", "finish-step", "finish"]
    assert found[0]["messageMetadata"]["threadId"] == thread_id
    assert await resume(http, lasting, "chat/2 ä") is None


async def test_several_may_read_one_reply(http, lasting, provider):
    hold = asyncio.Event()
    provider.will_reply(*TEXTS, after=1, hold=hold)
    async with asking(http, lasting, in_chat("two-tabs")) as reading:
        await reading.until("Fetch the")
        asked = await next_asked(provider)
        async with http.get(f"{message_url(lasting)}/two-tabs/stream", headers=lasting.assistant) as response:
            other = Reading(response)
            await other.until("Fetch the")
            hold.set()
            assert text_of(await reading.rest()) == text_of(await other.rest()) == WHOLE
    assert not asked.disconnected.is_set()


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {"User-Agent": "another browser"}),
        ("?fp=bob", {}),
        ("?threadKey=wrong", {}),
        ("", {"X-Thread-Key": "wrong"}),
    ],
)
async def test_stranger_with_a_guessed_chat_name_gets_nothing(http, lasting, provider, query, headers):
    hold = asyncio.Event()
    await lose(http, lasting, provider, "guessed", hold, fp="ann")
    assert await resume(http, lasting, "guessed", query=query, **headers) is None
    hold.set()
    assert text_of(await resume(http, lasting, "guessed", query="?fp=ann")) == WHOLE


async def test_the_holder_of_another_key_shows_the_threads_own(http, lasting, provider):
    hold = asyncio.Event()
    _, _, thread_key, _ = await lose(http, lasting, provider, "moved", hold)
    another = lasting.cli("key", "create", "--kind", "assistant", "--domain", lasting.domain)["token"]
    assert await resume(http, lasting, "moved", key=another) is None
    hold.set()
    found = await resume(http, lasting, "moved", key=another, **{"X-Thread-Key": thread_key})
    assert text_of(found) == WHOLE


async def test_there_is_nothing_to_resume(http, lasting):
    assert await resume(http, lasting, "never-heard-of") is None
    assert await resume(http, lasting, "x" * (MAX_ID_CHARACTERS + 100)) is None
    url = f"{message_url(lasting)}/chat-1/stream"
    async with http.get(url) as response:
        assert response.status == 401
    async with http.post(url, json={}, headers=lasting.assistant) as response:
        assert (response.status, response.headers["Allow"]) == (405, "GET")


async def test_a_client_that_cannot_resume_stops_the_model_even_here(http, lasting, provider):
    provider.will_reply(*TEXTS, after=1, hold=asyncio.Event())
    async with asking(http, lasting, question("How do I install Kite?")) as reading:
        await reading.until("Fetch the")
        reading.leave()
    asked = await next_asked(provider)
    async with asyncio.timeout(60):
        await asked.disconnected.wait()
    types = await recorded(lasting, f"thread-{reading.thread_id}", until="reply-stopped")
    assert "reader-left" not in types


async def test_a_message_that_is_sent_again_is_not_asked_twice(http, lasting, provider):
    hold = asyncio.Event()
    _, thread_id, _, found = await lose(http, lasting, provider, "again", hold)
    body = in_chat("again", threadId=thread_id)
    async with asking(http, lasting, body) as reading:
        await reading.until("Fetch the")
        hold.set()
        under_way = await reading.rest()
    assert (text_of(under_way), under_way[0]) == (WHOLE, found[0])
    async with asking(http, lasting, body) as reading:
        ended = await reading.rest()
    assert (text_of(ended), ended[0]) == (WHOLE, found[0])
    assert len(provider.asked) == 1


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_reply_goes_on_behind_the_end_of_its_process(http, lasting, provider, how):
    provider.will_reply(*TEXTS, after=2, hold=asyncio.Event())
    async with asking(http, lasting, in_chat(f"goes on after {how}")) as reading:
        await reading.until("hold the")
        stream, found = f"thread-{reading.thread_id}", reading.found
        await recorded(lasting, stream, until="reply-written")
        provider.will_reply(WHOLE.removeprefix("Fetch the "))  # what was recorded of it is repeated, and cut off
        await asyncio.to_thread(getattr(lasting, how))
        await asyncio.to_thread(lasting.start)
    resumed = await resume(http, lasting, f"goes on after {how}")
    assert (text_of(resumed), resumed[0], resumed[-1]["type"]) == (WHOLE, found[0], "finish")
    types = await recorded(lasting, stream, until="reply-completed")
    assert (types.count("reply-resumed"), types.count("reply-started")) == (1, 1)
    asked, again = [await next_asked(provider) for _ in range(2)]
    assert [message["role"] for message in again.body["messages"][-2:]] == ["assistant", "user"]
    assert again.body["messages"][: len(asked.body["messages"])] == asked.body["messages"]


async def test_reader_of_a_reply_that_cannot_go_on_gets_its_text(http, lasting, provider):
    provider.will_reply(*TEXTS, after=2, hold=asyncio.Event())
    async with asking(http, lasting, in_chat("crashed")) as reading:
        await reading.until("hold the")
        stream = f"thread-{reading.thread_id}"
        await recorded(lasting, stream, until="reply-written")
        found = reading.found
        lasting.kill()
        await asyncio.to_thread(lasting.start)
    resumed = await resume(http, lasting, "crashed")
    events = lasting.cli("audit", "show", "--stream", stream)["events"]
    written = "".join(event["data"]["text"] for event in events if event["type"] == "reply-written")
    assert text_of(resumed) == written
    assert written.startswith("Fetch the kite, ")
    assert resumed[0] == found[0]
    assert "The assistant is misconfigured. These are the passages" in written
    assert resumed[-1]["messageMetadata"]["failure"] == "assistant_misconfigured"
    assert await resume(http, lasting, "crashed") is None


async def test_stopping_service_does_not_wait_for_a_lost_reader(http, lasting, provider):
    _, thread_id, _, found = await lose(http, lasting, provider, "down", asyncio.Event())
    stream = f"thread-{thread_id}"
    await recorded(lasting, stream, until="reader-left")
    async with asyncio.timeout(60):  # a tenth of what a reader is given
        assert await asyncio.to_thread(lasting.stop) == 0
    await asyncio.to_thread(lasting.start)
    resumed = await resume(http, lasting, "down")
    assert text_of(resumed).startswith("Fetch the")
    assert resumed[0] == found[0]
    assert resumed[-1]["messageMetadata"]["failure"] == "assistant_misconfigured"
    await recorded(lasting, stream, until="reader-returned")
    assert await resume(http, lasting, "down") is None


async def test_reply_cut_at_its_length_goes_on_once(http, lasting, provider):
    provider.will_reply(TEXTS[0], reason="length")
    provider.will_reply("".join(TEXTS[1:]))
    async with asking(http, lasting, question("How do I install Kite?")) as reading:
        whole = await reading.rest()
    assert (text_of(whole), whole[-1]["messageMetadata"].get("finishReason")) == (WHOLE, None)
    for text in TEXTS[:2]:
        provider.will_reply(text, reason="length")
    url = message_url(lasting, version=1)
    async with http.post(url, json=question("How do I install Kite?"), headers=lasting.assistant) as response:
        last = (await response.text()).splitlines()[-1]
    assert '"finishReason":"length"' in last
    assert len(provider.asked) == 4
