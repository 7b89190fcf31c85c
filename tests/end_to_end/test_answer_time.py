"""An answer whose model goes on writing: it ends when its time is used up."""

import asyncio

import pytest

from tests.end_to_end.provider_kinds import QUESTION, ask_v1, ask_v2, kinds_service
from tests.fakes.provider import Asked, Reply, ScriptedProvider
from tests.service_process import free_port

WORDS = "Run the installer [1]. "
NOTE = "The answer took too long, and stops here."
SILENT = "How do I set the retry delay?"


def never_ending(asked: Asked) -> Reply:
    """A reply that does not end; for one question, without a word."""
    is_silent = SILENT in str(asked.body["messages"])
    return Reply((WORDS, "never"), after=0 if is_silent else 1, hold=asyncio.Event())


@pytest.fixture
async def provider():
    async with ScriptedProvider(never_ending, port=free_port()) as provider:
        yield provider


async def test_answer_ends_when_its_time_is_used_up(http, tmp_path, provider):
    port = int(provider.url.rpartition(":")[2])
    with kinds_service(tmp_path, port, ASSISTANT__MAX_MINUTES="0.1") as service:
        one, two, silent = await asyncio.gather(
            ask_v1(http, service, QUESTION), ask_v2(http, service, QUESTION), ask_v2(http, service, SILENT)
        )
        async with http.get(f"{service.url}/readyz") as response:
            shown = await response.text()
        logged = service.log()
    for answered in (one, two):
        assert answered.text.startswith("Run the installer")
        assert NOTE in answered.text
        assert not answered.error
    assert one.usage["completionTokens"] > 0
    assert "](/" in silent.text  # the passages
    assert NOTE not in silent.text
    assert logged.count("set max_minutes of [assistant] higher") == 3
    assert "model_too_slow" in shown
    for asked in provider.asked:
        await asyncio.wait_for(asked.finished.wait(), 10)  # no call goes on
