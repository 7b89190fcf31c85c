"""What a probe says of servers that can do everything, or lack one thing."""

import json

import pytest

from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.ports.model_probe import Tried, probe_model
from tests.fakes.provider import Asked, Call, Failure, Reply, ScriptedProvider

ABLE = {"word", "stream", "tool_call", "two_calls", "roles", "long_prompt"}


def able(asked: Asked) -> Reply | Failure:
    """A server and a model that lack nothing."""
    prompt = json.dumps(asked.body["messages"])
    if "Count from" in prompt:
        return Reply(("1, 2, ", "3, 4"))
    if "twice" in prompt:
        return Reply((), tuple(Call("look_up_weather", (json.dumps({"city": city}),)) for city in ("Paris", "Rome")))
    if "Answer now" in prompt:
        return Reply(("Sunny",))
    if "Call the tool" in prompt:
        return Reply((), (Call("look_up_weather", ('{"city": "Paris"}',)),))
    return Reply(("Juniper",))


def without_tools(asked: Asked) -> Reply | Failure:
    if asked.body.get("tools"):
        return Failure(400, "api_error", "registry.example/tiny:latest does not support tools")
    return able(asked)


def without_parser(asked: Asked) -> Reply | Failure:
    reply = able(asked)
    if isinstance(reply, Failure) or not reply.calls:
        return reply
    return Reply(('<tool_call>{"name": "look_up_weather", "arguments": {"city": "Paris"}}</tool_call>',))


def one_at_a_time(asked: Asked) -> Reply | Failure:
    reply = able(asked)
    return reply if isinstance(reply, Failure) else Reply(reply.texts, reply.calls[:1])


def in_one_piece(asked: Asked) -> Reply | Failure:
    reply = able(asked)
    return reply if isinstance(reply, Failure) else Reply(("".join(reply.texts),) if reply.texts else (), reply.calls)


def small_window(asked: Asked) -> Reply | Failure:
    if len(json.dumps(asked.body)) > 16_000:
        return Failure(400, "invalid_request_error", "This model's maximum context length is 4096 tokens")
    return able(asked)


def cuts_silently(asked: Asked) -> Reply | Failure:
    return Reply(("Which line?",)) if len(json.dumps(asked.body)) > 16_000 else able(asked)


def refuses_orders(asked: Asked) -> Reply | Failure:
    if "Answer now" in json.dumps(asked.body["messages"]):
        return Failure(400, "BadRequestError", "Unexpected role 'user' after role 'tool'")
    return able(asked)


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
