"""What a probe says of servers that can do everything, or lack one thing."""

import pytest

from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.ports.model_probe import Tried, probe_model
from tests.fakes.model_servers import (
    able,
    cuts_silently,
    in_one_piece,
    one_at_a_time,
    refuses_orders,
    small_window,
    without_parser,
    without_tools,
)
from tests.fakes.provider import Failure, ScriptedProvider

ABLE = {"word", "stream", "tool_call", "two_calls", "roles", "long_prompt"}


async def probed(answer, **settings):
    async with ScriptedProvider(answer) as provider:
        spec = ModelSettings(alias="own", model="openai/our-own", api_base=provider.openai_base, **settings)
        model = LitellmModel(spec, env={})
        try:
            return await probe_model(model)
        finally:
            await model.close()


@pytest.mark.parametrize(
    ("server", "lacks", "words"),
    [
        (able, set(), ""),
        (without_tools, {"tool_call", "two_calls"}, "takes no tools"),
        (without_parser, {"tool_call", "two_calls"}, "as text"),
        (one_at_a_time, {"two_calls"}, "one call at a time"),
        (in_one_piece, {"stream"}, "one piece"),
        (small_window, {"long_prompt"}, "too long"),
        (cuts_silently, {"long_prompt"}, "beginning"),
        (refuses_orders, {"roles"}, "refuses the order"),
    ],
)
async def test_probe_names_what_a_server_lacks(server, lacks, words):
    probe = await probed(server)
    assert {one.ability for one in probe.tried} == ABLE
    assert {one.ability for one in probe.tried if one.verdict == "works"} == ABLE - lacks
    assert any(words in probe.find(ability).says for ability in lacks or ABLE)
    assert probe.answers
    assert probe.can_edit is ("tool_call" not in lacks)
    assert probe.usage.input_tokens >= 12


async def test_probe_of_a_model_that_never_answers_asks_once():
    seen: list[Tried] = []
    async with ScriptedProvider(lambda _: Failure(401, "authentication_error", "wrong key")) as provider:
        spec = ModelSettings(alias="own", model="openai/our-own", api_base=provider.openai_base)
        model = LitellmModel(spec, env={})
        probe = await probe_model(model, on_tried=seen.append)
        await model.close()
    assert len(provider.asked) == 1
    assert not probe.answers
    assert probe.find("word").verdict == "fails"
    assert {one.verdict for one in probe.tried[1:]} == {"unknown"}
    assert tuple(seen) == probe.tried
