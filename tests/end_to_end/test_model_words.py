"""What a model says besides the answer. No reader gets any of it."""

import json

import pytest

from eventstore import SQLiteEventStore
from service.streams import THREADS
from tests.end_to_end.scripted import free_port, scripted_service
from tests.end_to_end.talk import ask, files_with, message_url, question, text_of
from tests.fakes.provider import ScriptedProvider

THOUGHT = "Ermentrude asks for [2]"


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    with scripted_service(tmp_path_factory.mktemp("words"), port) as service:
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


async def raw(http, service, version, text):
    body = question(text)
    if version == 1:
        body["messages"][0]["content"] = text
    async with http.post(message_url(service, version), json=body, headers=service.assistant) as response:
        assert response.status == 200
        return response.headers["X-Thread-Id"], await response.text()


async def events_of(service, thread_id):
    store = await SQLiteEventStore.open(service.data / "events.db", vault_path=service.data / "keys.db", read_only=True)
    async with store:
        return [THREADS.codec.decode(event) for event in await store.read_stream(f"thread-{thread_id}")]


@pytest.mark.parametrize("version", [1, 2])
async def test_thoughts_are_recorded_and_not_shown(http, service, provider, version):
    provider.will_reply("<thi", "nk>", THOUGHT, "</th", "ink>", "\n\nRun it [1].")
    thread_id, stream = await raw(http, service, version, "How do I install Kite?")
    assert "Run it [1]" in stream
    assert "Ermentrude" not in stream
    assert "think" not in stream
    events = await events_of(service, thread_id)
    assert "".join(event.thinking for event in events if hasattr(event, "thinking")) == THOUGHT
    (done,) = (event for event in events if hasattr(event, "cited"))
    assert done.cited == (1,)
    assert "Ermentrude" not in done.text
    assert files_with(b"ermentrude", service.data) == []  # encrypted in the log, and in no view


async def test_thoughts_are_erased_with_their_thread(http, service, provider):
    provider.will_reply("<think>", THOUGHT, "</think>", "Run it [1].")
    thread_id, _ = await raw(http, service, 2, "How do I install Kite?")
    service.cli("audit", "erase", f"thread-{thread_id}", "--yes")
    assert not any(THOUGHT in str(event) for event in await events_of(service, thread_id))


async def test_thoughts_are_not_told_again_and_not_put_to_the_model(http, service, provider):
    provider.will_reply("<think>", THOUGHT, "</think>", "Run it [1].")
    first = await ask(http, service, question("How do I install Kite?"))
    await provider.next_asked()
    provider.will_reply("On Windows, too.")
    body = question("And on Windows?", threadId=first[0]["X-Thread-Id"])
    assert text_of(await ask(http, service, body)) == "On Windows, too."
    asked = await provider.next_asked()
    assert "Run it" in json.dumps(asked.body)
    assert "Ermentrude" not in json.dumps(asked.body)
