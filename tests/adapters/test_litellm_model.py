"""LitellmModel over real HTTP, against a provider on this machine that speaks as the real ones do."""

import asyncio
import json
import logging
import random
import re
import socket
import time
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from service.adapters.models.errors import Retries
from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.domain.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    QuotaUsedUp,
    RateLimited,
    ServiceError,
    Unavailable,
)
from service.domain.model import ToolCall
from service.ports.model import (
    AssistantMessage,
    Continuation,
    ModelEnd,
    ModelRequest,
    ModelText,
    ModelWaiting,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from tests.fakes.provider import Call, Failure, ScriptedProvider
from tests.fakes.provider_protocols import event

# pydantic on litellm's types, when it reads a stream of the Responses API; as model_library has it.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class .* `ReadOnly`:UserWarning"),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]

KEY = "sk-a-key-that-nobody-may-see"
PROMPT = "a question that nobody may read"
SEARCH = Tool("search", "Search the pages.", {"type": "object", "properties": {"q": {"type": "string"}}})
REQUEST = ModelRequest((SystemMessage("Answer."), UserMessage(PROMPT)))
WITH_TOOLS = ModelRequest(REQUEST.messages, (SEARCH,))

# How the request is made and the stream is read: OpenAI's client and our reader; Anthropic's way and our reader;
# litellm's way for servers like OpenAI's and our reader; its bridge to the Responses API and our reader; our transport
# and litellm's reader, which makes the request only when the first chunk is asked for.
WAYS = {
    "openai": "openai/gpt-5.2",
    "anthropic": "anthropic/claude-sonnet-5-5",
    "like openai": "deepseek/deepseek-chat",
    "azure": "azure/our-deployment",
    "responses": "openai/responses/gpt-5.5",
    "gemini": "gemini/gemini-2.5-pro",
}
OURS = ["openai", "anthropic", "like openai", "azure", "responses"]


class Waits:
    """A sleep and a clock that only count."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def clock(self) -> float:
        return sum(self.seconds)


@pytest.fixture
async def provider():
    async with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
def waits():
    return Waits()


@pytest.fixture
async def make(provider, waits):
    """Models at the provider, closed at the end."""
    made = []

    def make(way, *, env=None, retries=None, **settings):
        base = provider.url if way in ("anthropic", "azure", "gemini") else provider.openai_base
        fields = {"alias": "a", "model": WAYS.get(way, way), "api_base": base, "api_key_env": "MODEL_KEY", **settings}
        made.append(
            LitellmModel(
                ModelSettings(**fields),
                env={"MODEL_KEY": KEY} if env is None else env,
                retries=retries or Retries(),
                sleep=waits.sleep,
                clock=waits.clock,
                jitter=lambda: 1.0,
            )
        )
        return made[-1]

    yield make
    for model in made:
        await model.close()


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture
def model(make, way):
    return make(way)


async def reply(model, request=REQUEST):
    """The texts, and the end."""
    chunks = [chunk async for chunk in model.reply(request)]
    assert all(isinstance(chunk, ModelText) for chunk in chunks[:-1])
    assert isinstance(chunks[-1], ModelEnd)
    return [chunk.text for chunk in chunks[:-1]], chunks[-1]


async def test_text_comes_in_many_deltas_then_the_end(provider, model):
    words = [f"wörd{number} " for number in range(50)]
    provider.will_reply(*words)
    texts, end = await reply(model)
    assert "".join(texts) == "".join(words)
    assert len(texts) > 1
    assert (end.reason, end.tool_calls) == ("stop", ())
    assert (end.usage.input_tokens, end.usage.output_tokens) == (12, 34)


async def test_reply_whose_tokens_are_not_told_is_estimated(provider, make):
    told = b'event: message_delta\ndata: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}\n\n'
    start = b'event: content_block_start\ndata: {"type": "content_block_start", "content_block": %s}\n\n'
    body = start % b'{"type": "text", "text": "Run the installer."}' + told
    provider.will(Failure(200, body=body, headers={"content-type": "text/event-stream"}))
    _, end = await reply(make("anthropic"))
    assert (end.usage.input_tokens, end.usage.output_tokens) == (len(PROMPT + "Answer.") // 4, 4)


async def test_half_of_a_character_ends_no_reply(provider, model):
    provider.will_reply("a ", "\ud83d", " b")
    texts, _ = await reply(model)
    assert "".join(texts) == "a \ufffd b"


GOING_ON = ModelRequest(REQUEST.messages, (SEARCH,), continuation=Continuation("Fetch the kite, ", "Go on."))
PREFILLED = {"role": "assistant", "content": "Fetch the kite,"}


@pytest.mark.parametrize("name", ["anthropic/claude-haiku-4-5", "deepseek/deepseek-chat"])
async def test_model_that_takes_a_prefill_goes_on_with_it(provider, make, name):
    provider.will_reply("hold the string.")
    base = provider.url if name.startswith("anthropic") else provider.openai_base
    texts, _ = await reply(make(name, api_base=base), GOING_ON)
    assert texts == ["hold the string."]
    last = provider.asked[0].body["messages"][-1]
    content = last["content"] if isinstance(last["content"], str) else last["content"][0]["text"]
    assert (last["role"], content) == ("assistant", PREFILLED["content"])
    assert last.get("prefix", False) is (not name.startswith("anthropic"))


async def test_other_models_are_asked_to_go_on(provider, make):
    provider.will_reply("hold the string.")
    await reply(make("openai"), GOING_ON)
    assert provider.asked[0].body["messages"][-2:] == [PREFILLED, {"role": "user", "content": "Go on."}]


async def test_model_that_refuses_a_prefill_is_asked_to_go_on(provider, make):
    model = make("deepseek/deepseek-chat")
    provider.will_fail(400, "invalid_request_error", "prefix is only for the beta address")
    for _ in range(2):
        provider.will_reply("hold the string.")
        await reply(model, GOING_ON)
    roles = [asked.body["messages"][-1]["role"] for asked in provider.asked]
    assert roles == ["assistant", "user", "user"]


async def test_a_delta_is_there_before_the_next_is_sent(provider, model):
    hold = asyncio.Event()
    provider.will_reply("first", "second", after=1, hold=hold)
    async with aclosing(model.reply(REQUEST)) as chunks:
        assert await anext(chunks) == ModelText("first")
        hold.set()
        assert await anext(chunks) == ModelText("second")


async def test_parallel_calls_with_split_arguments_are_put_together(provider, model):
    provider.will_reply(
        "I look. ", calls=(Call("search", ('{"q": ', '"a b', '"}')), Call("search", ('{"q":"c"}',)), Call("search"))
    )
    texts, end = await reply(model, WITH_TOOLS)
    assert "".join(texts) == "I look. "
    assert end.reason == "tool_calls"
    assert [(call.name, json.loads(call.arguments)) for call in end.tool_calls] == [
        ("search", {"q": "a b"}), ("search", {"q": "c"}), ("search", {}),
    ]  # fmt: skip
    assert len({call.id for call in end.tool_calls}) == 3


@pytest.mark.parametrize("way", OURS, indirect=True)  # Gemini's arguments are objects, not texts of JSON
async def test_call_without_text_and_bad_arguments_arrive_as_text(provider, model):
    provider.will_reply(calls=(Call("search", ('{"q": ', "oops")),))
    texts, end = await reply(model, WITH_TOOLS)
    assert texts == []
    assert [call.arguments for call in end.tool_calls] == ['{"q": oops']


@pytest.mark.parametrize("way", ["openai", "like openai"], indirect=True)
async def test_a_conversation_goes_out_in_openai_form(provider, model):
    provider.will_reply("ok")
    await reply(model, CONVERSATION)
    body = provider.asked[0].body
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [call["function"]["arguments"] for call in body["messages"][2]["tool_calls"]] == [
        '{"q":"x"}', '{"not_json":"oops"}',
    ]  # fmt: skip
    assert [message["tool_call_id"] for message in body["messages"][3:5]] == ["call_1", "call_2"]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["search"]
    assert body["stream_options"] == {"include_usage": True}


async def test_a_conversation_goes_out_in_anthropic_form(provider, make):
    provider.will_reply("ok")
    await reply(make("anthropic"), CONVERSATION)
    body = provider.asked[0].body
    assert body["system"][0]["text"] == "Answer."
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in body["messages"][1]["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["input"] for block in body["messages"][1]["content"][1:]] == [{"q": "x"}, {"not_json": "oops"}]
    assert [block.get("tool_use_id") for block in body["messages"][2]["content"]] == ["call_1", "call_2", None]
    assert [tool["name"] for tool in body["tools"]] == ["search"]
    assert body["max_tokens"] == 8192


async def test_anthropic_cache_marks_cover_tool_conversations(provider, make):
    keep = {"type": "ephemeral"}
    more = (AssistantMessage("", (ToolCall("call_3", "search", "{}"),)), ToolMessage("call_3", "search", "here"))
    model = make("anthropic")
    for messages in (CONVERSATION.messages, CONVERSATION.messages[:-1], (*CONVERSATION.messages, *more)):
        provider.will_reply("ok")
        await reply(model, ModelRequest(messages, CONVERSATION.tools))
    provider.will_reply("ok")
    await reply(model, REQUEST)
    by_user, by_tool, later, alone = (asked.body for asked in provider.asked)
    for body, kept in (
        (by_user, ["Where?", "Go on."]),
        (by_tool, ["Where?", "not JSON"]),
        (later, ["Where?", "Go on.", "here"]),
    ):
        assert body["system"][-1]["cache_control"] == keep
        blocks = [block for message in body["messages"] for block in message["content"]]
        marked = [block for block in blocks if "cache_control" in block]
        assert [block["cache_control"] for block in marked] == [keep] * len(kept)
        assert [block.get("text") or block["content"] for block in marked] == kept
    assert "cache_control" not in str(alone)


CONVERSATION = ModelRequest(
    (
        SystemMessage("Answer."),
        UserMessage("Where?"),
        AssistantMessage("I look.", (ToolCall("call_1", "search", '{"q":"x"}'), ToolCall("call_2", "search", "oops"))),
        ToolMessage("call_1", "search", "nothing"),
        ToolMessage("call_2", "search", "not JSON", is_error=True),
        UserMessage("Go on."),
    ),
    (SEARCH,),
)


async def test_the_key_goes_out_and_so_do_limits(provider, make, way):
    model = make(way, max_output_tokens=77)
    provider.will_reply("ok")
    await reply(model)
    asked = provider.asked[0]
    assert asked.key == KEY
    limits = {**asked.body, **asked.body.get("generationConfig", {})}
    assert 77 in (limits.get(f) for f in ("max_tokens", "max_completion_tokens", "max_output_tokens"))


CHOSEN = {"temperature": 0.25, "top_p": 0.5, "reasoning_effort": "low", "extra": {"seed": 7, "own": {"deep": [1]}}}


async def test_parameters_of_the_settings_go_out(provider, make):
    provider.will_reply("ok")
    await reply(make("openai/our-own-model", **CHOSEN))
    body = provider.asked[-1].body
    assert {name: body[name] for name in (*CHOSEN, "seed", "own") if name in body} == {
        "temperature": 0.25, "top_p": 0.5, "reasoning_effort": "low", "seed": 7, "own": {"deep": [1]},
    }  # fmt: skip
    provider.will_reply("ok")
    await reply(make("openai/our-own-model"))
    assert not {"temperature", "top_p", "reasoning_effort", "allowed_openai_params"} & set(provider.asked[-1].body)


async def test_anthropic_thinks_before_its_first_call_only(provider, make):
    model = make("anthropic/claude-sonnet-4-5", api_base=provider.url, **CHOSEN)
    called = (AssistantMessage("", (ToolCall("c", "search", "{}"),)), ToolMessage("c", "search", "Nothing."))
    asked = []
    for messages in (REQUEST.messages, (*REQUEST.messages, *called)):
        provider.will_reply("ok")
        await reply(model, ModelRequest(messages, (SEARCH,)))
        asked.append(provider.asked[-1].body)
    assert (asked[0]["thinking"]["type"], asked[0]["top_p"]) == ("enabled", 0.5)
    assert "thinking" not in asked[1]
    assert asked[1]["temperature"] == 0.25


async def test_no_key_meant_for_others_goes_to_an_own_address(provider, make):
    model = make("openai", api_key_env="", env={"OPENAI_API_KEY": "sk-for-openai"})
    provider.will_reply("ok")
    await reply(model)
    assert provider.asked[0].key == "none"


async def test_model_that_really_answered_is_reported(provider, make):
    for way, answered in (("openai", "gpt-5.2-2025-12-11"), ("anthropic", "claude-sonnet-5-5-20260901")):
        provider.will_reply("ok", model=answered)
        _, end = await reply(make(way))
        assert end.model == f"{way}/{answered}"


async def test_prices_are_litellms_or_those_of_the_settings(provider, make):
    provider.will_reply("ok", input_tokens=1_000_000, output_tokens=1_000_000)
    _, end = await reply(make("openai/gpt-4.1"))
    assert end.usage.cost_usd == pytest.approx(10.0)
    provider.will_reply("ok", input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)
    _, end = await reply(make("openai/gpt-5.2"))
    assert end.usage.cost_usd == pytest.approx(0.6 * 1.75 + 0.4 * 0.175 + 0.1 * 14)
    for tokens, price in ((100_000, 1.25), (300_000, 2.5)):  # a token of a long prompt costs more
        provider.will_reply("ok", input_tokens=tokens, output_tokens=0)
        _, end = await reply(make("gemini"))
        assert end.usage.cost_usd == pytest.approx(tokens * price / 1_000_000)
    provider.will_reply("ok", input_tokens=1_000_000, output_tokens=500_000)
    own = {"input_usd_per_million_tokens": 3.0, "output_usd_per_million_tokens": 8.0}
    _, end = await reply(make("openai/our-own", **own))
    assert end.usage.cost_usd == pytest.approx(7.0)
    provider.will_reply("ok")
    _, end = await reply(make("openai/our-own"))
    assert end.usage.cost_usd is None


@pytest.mark.parametrize("name", ["openrouter/anthropic/claude-sonnet-4.5", "dashscope/qwen-flash"])
async def test_model_without_a_price_in_litellms_table_is_not_free(name):
    model = LitellmModel(ModelSettings(alias="a", model=name), env={})
    assert await model.price() is None


async def test_cached_tokens_are_counted_and_cost_less(provider, make):
    for way in ("openai", "anthropic"):
        provider.will_reply("ok", input_tokens=10_000)
        provider.will_reply("ok", input_tokens=10_000, cached_tokens=9_000)
        model = make(way)
        (_, full), (_, cached) = await reply(model), await reply(model)
        assert full.usage.input_tokens == cached.usage.input_tokens == 10_000
        assert cached.usage.cost_usd < full.usage.cost_usd / 2


async def test_tokens_are_estimated_when_the_provider_does_not_count(provider, make):
    provider.will_reply("word " * 100, counts=False)
    _, end = await reply(make("like openai"))
    assert end.usage.output_tokens == 125
    assert end.usage.input_tokens > 0


@pytest.mark.parametrize("way", OURS, indirect=True)
@pytest.mark.parametrize("reason", ["length", "refused"])
async def test_reason_for_the_end_is_reported(provider, model, reason):
    provider.will_reply("Half an", reason=reason)
    _, end = await reply(model)
    assert end.reason == reason


@pytest.mark.parametrize("way", ["openai", "anthropic"], indirect=True)
async def test_a_refusal_is_a_reply(provider, model):
    provider.will_reply(refusal="I will not.")
    texts, end = await reply(model)
    assert ("".join(texts), end.reason) == ("I will not.", "refused")


async def test_prompt_refused_by_the_providers_filter_is_a_refusal(provider, make):
    provider.will_fail(
        400,
        "invalid_request_error",
        "Your request was rejected as a result of our safety system.",
        code="content_policy_violation",
    )
    texts, end = await reply(make("openai"))
    assert (texts, end.reason) == ([], "refused")


CONTEXT = {
    "openai": "This model's maximum context length is 128000 tokens. However, your messages resulted in 200000 tokens.",
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
}


@pytest.mark.parametrize("way", ["openai", "anthropic"], indirect=True)
async def test_prompt_too_long_has_its_own_error(provider, model, way, waits):
    provider.will_fail(400, "invalid_request_error", CONTEXT[way], code="context_length_exceeded")
    with pytest.raises(Invalid) as caught:
        await reply(model)
    assert caught.value.code == "context_window_exceeded"
    assert waits.seconds == []


@pytest.mark.parametrize(
    ("status", "type_", "message", "error", "code"),
    [
        (401, "authentication_error", f"Incorrect API key provided: {KEY}", Forbidden, "model_key_refused"),
        (403, "permission_error", "Your key may not use this.", Forbidden, "model_key_refused"),
        (402, "billing_error", "Payment required.", QuotaUsedUp, "quota_used_up"),
        (400, "invalid_request_error", "tools.0.name: too long", Invalid, "model_refused_request"),
        (404, "not_found_error", "model: none such", Invalid, "model_refused_request"),
        (413, "request_too_large", "Request exceeds the maximum size", Invalid, "request_too_large"),
        (422, "invalid_request_error", "unprocessable", Invalid, "model_refused_request"),
        (429, "insufficient_quota", "You exceeded your current quota", QuotaUsedUp, "quota_used_up"),
    ],
)
async def test_error_that_waiting_does_not_end_is_raised_at_once(
    provider, model, waits, status, type_, message, error, code
):
    provider.will_fail(status, type_, message, code=type_)
    with pytest.raises(ServiceError) as caught:
        await reply(model)
    assert (type(caught.value), caught.value.code) == (error, code)
    assert KEY not in str(caught.value)
    assert waits.seconds == []
    assert len(provider.asked) == 1


PAGE = b"<!doctype html>\n<html><head><title>Sign in</title></head><body>Sign in</body></html>"


@pytest.mark.parametrize("stated", ["text/html; charset=utf-8", "text/plain"])
@pytest.mark.parametrize("status", [200, 302, 404])
async def test_web_page_in_place_of_a_reply_is_called_so(provider, model, waits, stated, status):
    if stated == "text/plain" and (status != 200 or not model.name.startswith(("openai/gpt", "anthropic"))):
        pytest.skip("only the beginning of a stream shows it")
    for _ in range(8):
        provider.will_fail(status, body=PAGE, headers={"Content-Type": stated})
    for _ in range(2):  # the second request is sent without litellm
        with pytest.raises(Unavailable) as caught:
            await reply(model)
        said = str(caught.value)
        assert said.startswith(f"{provider.url}/")
        assert f"answered with a web page (status {status})" in said
        assert "heck api_base" in said
        assert KEY not in said


async def test_page_of_an_overloaded_server_means_what_its_status_says(provider, model, waits):
    provider.will_fail(502, body=PAGE, headers={"Content-Type": "text/html"})
    provider.will_reply("At last.")
    texts, _ = await reply(model)
    assert "".join(texts) == "At last."


@pytest.mark.parametrize(
    ("status", "type_"),
    [
        (408, "x"),
        (425, "x"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "x"),
        (503, "x"),
        (504, "x"),
        (529, "overloaded_error"),
    ],
)
async def test_temporary_error_is_retried(provider, model, waits, status, type_):
    provider.will_fail(status, type_, "try later")
    provider.will_fail(status, type_, "try later")
    provider.will_reply("At last.")
    texts, _ = await reply(model)
    assert "".join(texts) == "At last."
    assert len(waits.seconds) == 2


async def test_tries_are_bounded(provider, model, waits):
    for _ in range(9):
        provider.will_fail(503)
    with pytest.raises(Unavailable):
        await reply(model)
    assert len(provider.asked) == 4
    assert waits.seconds == [0.5, 1.0, 2.0]


async def test_the_providers_word_on_when_to_come_back_is_kept(provider, model, waits):
    provider.will_fail(429, "rate_limit_error", headers={"retry-after": "7"})
    provider.will_fail(429, "rate_limit_error", headers={"retry-after": "11.5"})
    provider.will_reply("ok")
    await reply(model)
    assert waits.seconds == [7.0, 11.5]


@pytest.mark.parametrize("way", OURS, indirect=True)
async def test_waits_are_reported_to_a_caller_that_shows_them(provider, model, waits):
    provider.will_fail(429, "rate_limit_error", headers={"retry-after": "7"})
    provider.will_fail(503)
    provider.will_fail(429, "rate_limit_error", headers={"retry-after": "0.5"})
    provider.will_reply("ok")
    found = [chunk async for chunk in model.reply(replace(REQUEST, reports_waits=True))]
    assert waits.seconds == [7.0, 1.0, 0.5]
    assert found[:3] == [ModelWaiting(7.0), ModelWaiting(1.0), ModelText("ok")]


@pytest.mark.parametrize("way", OURS, indirect=True)
async def test_provider_is_not_asked_again_where_that_is_refused(provider, model, waits):
    async def refuse():
        assert waits.seconds == [7.0]
        raise Conflict("It is another one's by now.")

    provider.will_fail(429, "rate_limit_error", headers={"retry-after": "7"})
    with pytest.raises(Conflict):
        await reply(model, replace(REQUEST, before_retry=refuse))
    assert len(provider.asked) == 1


async def test_wait_beyond_the_retry_bound_is_not_begun(provider, model, waits):
    provider.will_fail(429, "rate_limit_error", headers={"retry-after": "3600"})
    with pytest.raises(RateLimited) as caught:
        await reply(model)
    assert caught.value.retry_after_seconds == 3600
    assert waits.seconds == []


@pytest.mark.parametrize("way", OURS, indirect=True)
async def test_overload_in_the_stream_before_any_text_is_retried(provider, model, waits):
    provider.will_reply("never", after=0, error="overloaded_error")
    provider.will_reply("ok")
    texts, _ = await reply(model)
    assert (texts, len(waits.seconds)) == (["ok"], 1)


@pytest.mark.parametrize("how", [{"cut": True}, {"error": "overloaded_error"}])
async def test_nothing_is_tried_again_after_the_first_text(provider, model, waits, how):
    provider.will_reply("first", "second", after=1, **how)
    provider.will_reply("never asked")
    async with aclosing(model.reply(REQUEST)) as chunks:
        assert await anext(chunks) == ModelText("first")
        with pytest.raises(Unavailable):
            await anext(chunks)
    assert (waits.seconds, len(provider.asked)) == ([], 1)


@pytest.mark.parametrize("way", OURS, indirect=True)
async def test_malformed_event_ends_the_reply_with_an_error(provider, model):
    provider.will_reply("first", "second", after=1, raw=b"data: {broken\n\n")
    async with aclosing(model.reply(REQUEST)) as chunks:
        assert await anext(chunks) == ModelText("first")
        with pytest.raises(Unavailable):
            await anext(chunks)


@pytest.mark.parametrize("way", OURS, indirect=True)
async def test_a_connection_cut_before_any_answer_is_tried_again(provider, model):
    provider.will_reply("never", after=-1, cut=True)
    provider.will_reply("ok")
    texts, _ = await reply(model)
    assert texts == ["ok"]
    assert len(provider.asked) == 2


async def test_a_provider_that_is_not_there_is_unavailable(make, way):
    with socket.socket() as silent:  # whose port nobody else gets meanwhile
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        model = make(way, api_base=f"http://127.0.0.1:{port}/v1", retries=Retries(tries=1))
        with pytest.raises(Unavailable):
            await reply(model)


@pytest.mark.parametrize("way", OURS, indirect=True)
@pytest.mark.parametrize("after", [-1, 0])
async def test_no_first_token_in_time_is_unavailable(provider, make, way, after):
    model = make(way, first_token_timeout_seconds=0.05, retries=Retries(tries=1))
    provider.will_reply("late", after=after, hold=asyncio.Event())
    with pytest.raises(Unavailable):
        await reply(model)


async def test_silence_between_two_texts_is_unavailable(provider, make, way):
    model = make(way, idle_timeout_seconds=0.3)
    provider.will_reply("first", "late", after=1, hold=asyncio.Event())
    async with aclosing(model.reply(REQUEST)) as chunks:
        assert await anext(chunks) == ModelText("first")
        with pytest.raises(Unavailable):
            await anext(chunks)


async def test_closing_a_reply_ends_the_call_at_the_provider(provider, model):
    provider.will_reply("first", "never", after=1, hold=asyncio.Event())
    async with aclosing(model.reply(REQUEST)) as chunks:
        assert await anext(chunks) == ModelText("first")
    closed_at = time.monotonic()
    async with asyncio.timeout(60):
        await provider.asked[0].disconnected.wait()
    assert provider.asked[0].disconnected_at - closed_at < 10


async def test_cancelling_before_the_first_text_ends_the_model_call(provider, model):
    provider.will_reply("never", after=-1, hold=asyncio.Event())
    task = asyncio.create_task(reply(model))
    asked = await provider.next_asked()
    task.cancel()
    cancelled_at = time.monotonic()
    async with asyncio.timeout(60):
        await asked.disconnected.wait()
    assert asked.disconnected_at - cancelled_at < 10
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_connections_are_kept_for_the_next_call(provider, make):
    model = make("openai")
    for _ in range(3):
        provider.will_reply("ok")
        await reply(model)
    assert len({asked.peer for asked in provider.asked}) == 1


async def test_many_replies_at_once(provider, make):
    model = make("anthropic")
    for number in range(150):
        provider.will_reply(str(number), " done")
    ends = await asyncio.gather(*(reply(model) for _ in range(150)))
    assert sorted(int("".join(texts).removesuffix(" done")) for texts, _ in ends) == list(range(150))


async def test_neither_key_nor_prompt_nor_answer_is_logged(provider, model, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    provider.will_reply("an answer that nobody may read", "second", after=1, cut=True)
    provider.will_fail(400, "invalid_request_error", f"bad: {PROMPT}")
    provider.will_fail(401, "authentication_error", f"bad: {KEY}")
    provider.will_reply("an answer that nobody may read")
    for _ in range(3):
        with pytest.raises(ServiceError):
            await reply(model)
    await reply(model)
    out, err = capfd.readouterr()
    logged = "\n".join([caplog.text, out, err, *(str(record.__dict__) for record in caplog.records)])
    assert not re.search(f"{KEY}|{PROMPT}|nobody may read|litellm", logged, re.IGNORECASE)


async def test_a_key_that_is_not_set_is_refused_before_any_call(provider, make):
    with pytest.raises(Forbidden) as caught:
        await reply(make("openai", env={}))
    assert (caught.value.code, str(caught.value)) == ("model_key_refused", "MODEL_KEY is not set")
    assert provider.asked == []


@pytest.mark.parametrize("name", ["nobody/some-model", "some-model-of-nobody"])
async def test_a_model_of_no_known_provider_is_not_found(make, name):
    model = make(name, api_base="")
    with pytest.raises(NotFound) as caught:
        await model.prepare()
    assert caught.value.code == "unknown_model"
    with pytest.raises(NotFound):
        await reply(model)


async def test_a_model_without_tools_says_so(provider, make):
    with pytest.raises(Invalid) as caught:
        await reply(make("nlp_cloud/dolphin"), WITH_TOOLS)
    assert caught.value.code == "model_takes_no_tools"
    assert provider.asked == []


async def test_preparing_a_model_sends_no_request(provider, model):
    await model.prepare()
    await model.prepare()
    assert provider.asked == []


async def test_a_closed_model_leaves_nothing_open(provider, model):
    provider.will_reply("ok")
    await reply(model)
    await model.close()
    async with asyncio.timeout(60):
        await provider.asked[0].finished.wait()
    await model.close()


def test_without_a_script_waits_are_random_and_bounded():
    retries = Retries()
    for tried in range(1, retries.tries):
        for error in (Unavailable("x"), RateLimited("x")):
            wait = retries.wait_seconds(error, tried=tried, spent_seconds=0, random=random.random())
            assert wait is not None
            assert 0 <= wait <= retries.longest_wait_seconds


@pytest.mark.parametrize("way", ["openai"], indirect=True)
async def test_texts_that_come_with_an_error_are_given_before_it(provider, model):
    second = b'data: {"choices": [{"delta": {"content": "second"}}]}\n\n'
    provider.will_reply("first", "never", after=1, raw=second + second + b"data: {broken\n\n")
    async with aclosing(model.reply(REQUEST)) as chunks:
        assert [await anext(chunks) for _ in range(3)] == [ModelText(text) for text in ("first", "second", "second")]
        with pytest.raises(Unavailable):
            await anext(chunks)


@pytest.mark.parametrize("way", WAYS)
async def test_reply_past_its_limit_is_cut(provider, make, way):
    """A server that ignores the limit of a reply sends no end; what has come is counted, and the call is closed."""
    hold = asyncio.Event()
    provider.will_reply(*(f"wörd{number} " for number in range(300)), after=200, hold=hold)
    request = replace(REQUEST, max_output_tokens=50, is_cut=True)
    texts, end = await reply(make(way), request)
    assert 100 < len("".join(texts)) < 1_700
    assert end.reason == "length"
    assert end.usage.output_tokens > 50
    sent = json.dumps(provider.asked[0].body)
    assert any(f'"{name}": 50' in sent for name in LIMITS)


LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")


async def test_calls_count_for_the_limit(provider, make):
    arguments = ('{"q": "', *(f"word{number} " for number in range(300)), '"}')
    provider.will_reply("I look. ", calls=(Call("search", arguments),))
    _, end = await reply(make("anthropic"), replace(WITH_TOOLS, max_output_tokens=50, is_cut=True))
    assert (end.reason, end.tool_calls) == ("length", ())


async def test_thoughts_of_a_response_come_back_before_its_calls(provider, make):
    model = make("responses")
    thought = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
    done = event("response.output_item.done", {"output_index": 0, "item": thought})
    provider.will_reply(calls=(Call("search", ('{"q": "a"}',)),), after=0, raw=done)
    provider.will_reply("Run it.")
    _, first = await reply(model, WITH_TOOLS)
    called = AssistantMessage("", first.tool_calls, first.memory)
    found = ToolMessage(first.tool_calls[0].id, "search", "Nothing.")
    texts, _ = await reply(model, ModelRequest((*REQUEST.messages, called, found), (SEARCH,)))
    assert texts == ["Run it."]
    sent = provider.asked[-1].body["input"]
    assert [item["type"] for item in sent] == ["message", "reasoning", "function_call", "function_call_output"]
    assert {name: sent[1][name] for name in ("id", "encrypted_content")} == {"id": "rs_1", "encrypted_content": "gAAAA"}


async def test_newest_model_is_asked_for_tools_by_the_responses_api_through_us(provider, make):
    """Its requests are rehearsed as others are, and no rehearsal goes out."""
    model = make("openai/gpt-5.5", reasoning_effort="low")
    for _ in range(3):
        provider.will_reply("Run it.")
        await reply(model, WITH_TOOLS)
    assert [asked.protocol for asked in provider.asked] == ["responses"] * 3
    assert all(PROMPT in json.dumps(asked.body["input"]) for asked in provider.asked)
