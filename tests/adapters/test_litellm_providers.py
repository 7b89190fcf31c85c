"""What litellm makes of our requests for providers that have ways of their own."""

import asyncio

import pytest

from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.domain.errors import Invalid
from service.domain.model import ToolCall
from service.ports.model import (
    AssistantMessage,
    ModelEnd,
    ModelRequest,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from tests.fakes.provider import Call, ScriptedProvider

pytestmark = pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class .* `ReadOnly`:UserWarning")

READ = Tool("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
ODD_ID = "functions.read:0"  # as some providers name calls, and others refuse it
REQUEST = ModelRequest(
    (
        SystemMessage("Work."),
        UserMessage("Fix it."),
        AssistantMessage("I look.", (ToolCall(ODD_ID, "read", '{"path":"a.md"}'),)),
        ToolMessage(ODD_ID, "read", "the text"),
    ),
    (READ,),
    max_output_tokens=77,
)


@pytest.fixture
async def provider():
    async with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
async def asked_by(provider):
    """The request that a model of this name makes, and its reply's end; None for an end when the provider refuses."""
    made = []

    async def asked_by(name, base=""):
        settings = ModelSettings(alias="a", model=name, api_base=base or provider.url, api_key_env="MODEL_KEY")
        made.append(LitellmModel(settings, env={"MODEL_KEY": "sk-1"}))
        try:
            end = [chunk async for chunk in made[-1].reply(REQUEST)][-1]
        except Invalid:
            end = None
        return provider.asked[-1], end

    yield asked_by
    for model in made:
        await model.close()


async def test_azure_uses_the_deployments_address_and_its_own_header(provider, asked_by):
    provider.will_reply(calls=(Call("read", ('{"path":', '"b.md"}')),), model="gpt-5.2-2025-12-11")
    asked, end = await asked_by("azure/our-deployment")
    assert asked.path == "/openai/deployments/our-deployment/chat/completions"
    assert asked.query["api-version"]
    assert asked.headers["api-key"] == "sk-1"
    assert asked.body["max_tokens"] == 77
    assert [tool["function"]["name"] for tool in asked.body["tools"]] == ["read"]
    assert isinstance(end, ModelEnd)
    assert end.tool_calls[0].arguments == '{"path":"b.md"}'
    assert end.model == "azure/gpt-5.2-2025-12-11"


async def test_gemini_has_its_own_request_form_and_stream(provider, asked_by):
    provider.will_reply("Now ", calls=(Call("read", ('{"path": "b.md"}',)),), input_tokens=100, output_tokens=7)
    asked, end = await asked_by("gemini/gemini-2.5-pro")
    assert (asked.path, asked.query) == ("/models/gemini-2.5-pro:streamGenerateContent", {"alt": "sse"})
    assert asked.key == "sk-1"
    assert asked.body["system_instruction"]["parts"] == [{"text": "Work."}]
    assert [content["role"] for content in asked.body["contents"]] == ["user", "model", "user"]
    assert asked.body["contents"][1]["parts"][-1]["function_call"] == {"name": "read", "args": {"path": "a.md"}}
    assert asked.body["contents"][2]["parts"][0]["function_response"]["name"] == "read"
    assert asked.body["generationConfig"]["max_output_tokens"] == 77
    assert (end.reason, end.usage.input_tokens, end.usage.output_tokens) == ("tool_calls", 100, 7)
    assert end.usage.cost_usd > 0


async def test_bedrock_is_asked_to_converse(provider, asked_by):
    provider.will_fail(400, "ValidationException", "not today")
    asked, _ = await asked_by("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert asked.path == "/model/anthropic.claude-sonnet-4-5-20250929-v1:0/converse-stream"
    assert asked.key == "sk-1"
    assert asked.body["inferenceConfig"]["maxTokens"] == 77
    assert asked.body["system"] == [{"text": "Work."}]
    assert [message["role"] for message in asked.body["messages"]] == ["user", "assistant", "user"]
    (spec,) = (tool["toolSpec"] for tool in asked.body["toolConfig"]["tools"])
    assert spec["name"] == "read"


@pytest.mark.parametrize("name", ["hosted_vllm/our-own", "openrouter/anthropic/claude-sonnet-4.5", "groq/llama-4"])
async def test_servers_like_openais_are_asked_in_its_form(provider, asked_by, name):
    provider.will_reply("ok", input_tokens=9)
    asked, end = await asked_by(name, provider.openai_base)
    assert asked.path == "/v1/chat/completions"
    assert asked.key == "sk-1"
    assert asked.body["model"] == name.partition("/")[2]
    assert [message["role"] for message in asked.body["messages"]] == ["system", "user", "assistant", "tool"]
    assert (end.reason, end.usage.input_tokens) == ("stop", 9)


async def test_ids_that_anthropic_refuses_are_made_ones_that_it_takes(provider, asked_by):
    provider.will_reply("ok")
    asked, _ = await asked_by("anthropic/claude-sonnet-5-5")
    used = asked.body["messages"][1]["content"][1]["id"]
    assert used.replace("_", "").replace("-", "").isalnum()
    assert asked.body["messages"][2]["content"][0]["tool_use_id"] == used


async def test_ollama_is_asked_for_its_window_and_given_one_to_use(provider, asked_by):
    """litellm waits for the answer to the first question, which comes from this very event loop."""
    settings = ModelSettings(alias="a", model="ollama_chat/qwen3", api_base=provider.url)
    async with asyncio.timeout(60):
        assert await LitellmModel(settings, env={}).window_tokens() == 16_384
        provider.will_fail(400, "invalid_request_error", "not today")
        asked, _ = await asked_by("ollama_chat/qwen3")
    assert asked.path == "/api/chat"
    assert asked.body["options"] == {"num_predict": 77, "num_ctx": 16_384}
    assert [tool["function"]["name"] for tool in asked.body["tools"]] == ["read"]
