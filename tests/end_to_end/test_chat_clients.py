"""The real chat clients from npm against the running service."""

import pytest

from tests.clients.chat_clients import AI4, AI5_AND_LATER, conversation, require_clients, run_chats
from tests.end_to_end.talk import message_url

pytestmark = pytest.mark.node

TURNS = ["How do I install Kite?", "What is the delay between two retries?"]


@pytest.fixture(scope="module", autouse=True)
def clients():
    require_clients()


def posted(service, thread_id):
    events = service.cli("audit", "show", "--stream", f"thread-{thread_id}")["events"]
    return [event["data"]["text"] for event in events if event["type"] == "message-posted"]


@pytest.mark.parametrize(("version", "clients_of_it"), [(2, AI5_AND_LATER), (1, AI4)])
async def test_a_conversation_goes_on_in_its_thread(service, version, clients_of_it):
    url, body = message_url(service, version), {"fp": "anonymous"}
    outcomes = await run_chats(
        [conversation(one, url, service.assistant_key, turns=TURNS, body=body) for one in clients_of_it]
    )
    for outcome in outcomes:
        named = outcome["version"]
        first, second = outcome["turns"]
        for turn in (first, second):
            assert turn["errors"] == [], named
            assert turn["status"] == "ready", named
            assert turn["deltas"] > 3, named
            assert turn["threadId"]["header"] == first["threadId"]["header"], named
        assert "kite.example/install" in first["text"], named
        assert "retryDelaySecs" in second["text"], named
        channels = ("metadata", "onFinish") if version == 2 else ("data", "annotations", "onFinish")
        for channel in channels:
            assert first["threadId"][channel] == first["threadId"]["header"], (named, channel)
        if version == 2:
            assert any(source["url"].startswith("/install") for source in first["sources"]), named
        assert outcome["requests"] == 2, named
        assert posted(service, first["threadId"]["header"]) == TURNS, named


async def test_a_refusal_is_a_sentence_that_people_can_read(service):
    outcomes = await run_chats(
        [
            conversation(one, message_url(service, version), "docsmith_dsc_nonsense", turns=["How?"], body={"fp": "x"})
            for version, clients in ((1, AI4), (2, AI5_AND_LATER))
            for one in clients
        ]
    )
    for outcome in outcomes:
        (error,) = outcome["turns"][0]["errors"]
        assert "This API key is not valid." in error, outcome["version"]
