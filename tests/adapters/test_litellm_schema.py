"""Replies of LitellmModel that are to be one JSON document, and the usage of replies that are cut short, over HTTP."""

import asyncio
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.ports.model import ModelEnd, ModelRequest, ModelText, OutputSchema, SystemMessage, UserMessage
from tests.fakes.provider import Call, ScriptedProvider

SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
    "additionalProperties": False,
}
REQUEST = ModelRequest(
    (SystemMessage("Plan."), UserMessage("And on Linux?")), output_schema=OutputSchema("plan", SCHEMA)
)
PLAN = '{"question":"How do I install it on Linux?"}'


@pytest.fixture
async def provider():
    async with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
async def make(provider):
    made = []

    def make(model):
        base = provider.url if model.startswith("anthropic/") else provider.openai_base
        made.append(LitellmModel(ModelSettings(alias="a", model=model, api_base=base), env={}))
        return made[-1]

    yield make
    for model in made:
        await model.close()


async def reply(model, request=REQUEST):
    chunks = [chunk async for chunk in model.reply(request)]
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, ModelText)), chunks[-1]


async def test_schema_goes_out_in_openai_form(provider, make):
    provider.will_reply(PLAN[:9], PLAN[9:])
    assert (await reply(make("openai/gpt-5.2")))[0] == PLAN
    form = {"type": "json_schema", "json_schema": {"name": "plan", "schema": SCHEMA, "strict": True}}
    assert provider.asked[0].body["response_format"] == form


async def test_schema_goes_out_in_anthropic_form(provider, make):
    provider.will_reply(PLAN[:9], PLAN[9:])
    assert (await reply(make("anthropic/claude-sonnet-5-5")))[0] == PLAN
    body = provider.asked[0].body
    form = body.get("output_format") or body["output_config"]["format"]
    assert (form["type"], form["schema"]["required"]) == ("json_schema", ["question"])
    assert "tools" not in body


async def test_schema_is_a_tool_for_a_model_that_knows_tools_only(provider, make):
    provider.will_reply(calls=(Call("json_tool_call", (PLAN[:9], PLAN[9:])),))
    text, end = await reply(make("anthropic/claude-3-haiku-20240307"))
    assert provider.asked[0].body["tools"][0]["name"] == "json_tool_call"
    assert text == PLAN
    assert (end.reason, end.tool_calls) == ("stop", ())


async def test_requests_without_a_schema_ask_for_none(provider, make):
    provider.will_reply("Hello")
    await reply(make("openai/gpt-5.2"), replace(REQUEST, output_schema=None))
    assert "response_format" not in provider.asked[0].body


async def test_usage_of_a_reply_cut_short_is_what_the_provider_told(provider, make):
    told = []
    for model in ("anthropic/claude-sonnet-5-5", "openai/gpt-5.2"):  # OpenAI tells it at the end alone
        hold = asyncio.Event()
        provider.will_reply("first", "second", after=1, hold=hold)
        async with aclosing(make(model).reply(replace(REQUEST, on_usage=told.append))) as chunks:
            assert await anext(chunks) == ModelText("first")
        hold.set()
    assert [usage.input_tokens for usage in told] == [12, 4]  # the other one is estimated


async def test_usage_of_a_whole_reply_is_told_by_its_end_alone(provider, make):
    told = []
    provider.will_reply(PLAN)
    _, end = await reply(make("anthropic/claude-sonnet-5-5"), replace(REQUEST, on_usage=told.append))
    assert isinstance(end, ModelEnd)
    assert (end.usage.input_tokens, told) == (12, [])
