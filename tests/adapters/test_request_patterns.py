"""Requests made from a pattern are those that litellm builds; what it cannot say in advance it is asked each time."""

import pytest
from msgspec.structs import replace

from service.adapters.models.errors import Retries
from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.domain.errors import RateLimited
from service.ports.model import ModelRequest, ModelText, SystemMessage, Tool, UserMessage
from tests.fakes.provider import ScriptedProvider

pytestmark = [pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")]

SEARCH = Tool("search", "Search the pages.", {"type": "object", "properties": {"q": {"type": "string"}}})
REQUEST = ModelRequest((SystemMessage("Answer."), UserMessage("How?")), (SEARCH,))
TEXTS = ['Say "no".\n', "Alpha text 0.", "\\u00fc ü ☃ </s>"]
OF_ITS_SIZE = {"content-length"}


@pytest.fixture
async def provider():
    async with ScriptedProvider() as provider:
        yield provider


@pytest.fixture(params=["openai/gpt-5.2", "anthropic/claude-sonnet-5-5", "deepseek/deepseek-chat"])
async def model(request, provider):
    base = provider.url if request.param.startswith("anthropic") else provider.openai_base
    settings = ModelSettings(alias="a", model=request.param, api_base=base, api_key_env="MODEL_KEY")
    model = LitellmModel(settings, env={"MODEL_KEY": "sk-the-key-of-a-test"}, retries=Retries(tries=1))
    yield model
    await model.close()


async def ask(provider, model, text, request=REQUEST):
    """The text of the reply, and the request as the provider got it."""
    asked = replace(request, messages=(request.messages[0], UserMessage(text)))
    reply = "".join([chunk.text async for chunk in model.reply(asked) if isinstance(chunk, ModelText)])
    return reply, await provider.next_asked()


async def test_later_requests_are_built_as_the_first_one(provider, model):
    for _ in range(4):
        provider.will_reply("Thus.")
    _, first = await ask(provider, model, "How?")
    for text in TEXTS:
        reply, asked = await ask(provider, model, text)
        assert reply == "Thus."
        written = first.body | {"messages": asked.body["messages"]}
        assert asked.body == written
        assert str(first.body["messages"]).replace(repr("How?"), repr(text)) == str(asked.body["messages"])
        assert {name: value for name, value in asked.headers.items() if name not in OF_ITS_SIZE} == {
            name: value for name, value in first.headers.items() if name not in OF_ITS_SIZE
        }


async def test_request_with_other_tools_is_built_for_itself(provider, model):
    for _ in range(3):
        provider.will_reply("Thus.")
        await ask(provider, model, "How?")
    provider.will_reply("Thus.")
    _, asked = await ask(provider, model, "How?", replace(REQUEST, tools=()))
    assert "tools" not in asked.body


async def test_refusal_of_a_later_request_is_reported_by_its_kind(provider, model):
    for _ in range(3):
        provider.will_reply("Thus.")
        await ask(provider, model, "How?")
    provider.will_fail(429, "rate_limit_error", "slow down")
    with pytest.raises(RateLimited):
        await ask(provider, model, "How?")
    await provider.next_asked()
    provider.will_reply("Thus.")
    reply, _ = await ask(provider, model, "Once more?")
    assert reply == "Thus."


async def test_half_of_a_surrogate_pair_is_left_to_litellm(provider):
    settings = ModelSettings(
        alias="a", model="anthropic/claude-sonnet-5-5", api_base=provider.url, api_key_env="MODEL_KEY"
    )
    model = LitellmModel(settings, env={"MODEL_KEY": "sk-the-key-of-a-test"}, retries=Retries(tries=1))
    for _ in range(3):
        provider.will_reply("Thus.")
        reply, asked = await ask(provider, model, "half \ud800")
        assert reply == "Thus."
        assert "half \\ud800" in str(asked.body["messages"])
    await model.close()
