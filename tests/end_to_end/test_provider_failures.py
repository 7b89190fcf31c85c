"""Failures of providers by their meaning: some pass, some want a smaller request, the others end with their reason."""

import json

import pytest

from tests.end_to_end.provider_kinds import (
    ASK,
    call,
    delta,
    events,
    finishing,
    kinds_service,
    raw,
    run_job,
    says,
    stream,
)
from tests.fakes.provider import Failure, Reply, ScriptedProvider
from tests.service_process import free_port

ANSWER = "Run the installer [1]."
READ = call("read", path="install.md")


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    with kinds_service(tmp_path_factory.mktemp("failures"), port) as service:
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


def refused(status, error):
    return Failure(status, body=json.dumps({"error": error}).encode(), headers={"content-type": "application/json"})


XAI = "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
TOO_LONG = {
    "as 500 (llama.cpp#14566)": refused(
        500, {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}
    ),
    "in a stream": stream(
        {"error": {"code": 400, "message": "the request exceeds the available context size"}}, done=False
    ),
    "in a stream, by type": stream({"error": {"type": "exceed_context_size_error", "message": "n"}}, done=False),
    "in xAI's words": refused(400, XAI),
    "in Cohere's words": refused(
        400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4400."}
    ),
    "in LM Studio's words": refused(
        400,
        "Trying to keep the first 7000 tokens when context the overflows. "
        "However, the model is loaded with context length of only 4096 tokens.",
    ),
    "in a choice": stream(
        {"choices": [{"error": {"code": 400, "message": "maximum context length is 8192 tokens"}}]}, done=False
    ),
    "as a bare message": raw(events({"object": "error", "message": XAI, "code": 400}, done=False)),
    "too large for a minute, 413 (openclaw#147644)": refused(
        413,
        {
            "message": "Request too large for model `a` on tokens per minute (TPM): Limit 6000, Requested 7985.",
            "code": "rate_limit_exceeded",
        },
    ),
    "too large for a minute, 429": refused(
        429,
        {
            "message": "Rate limit reached for a on tokens per min (TPM): Limit 30,000, Requested 41,000.",
            "type": "tokens",
        },
    ),
    "nothing (a small window of llama-cpp-python)": raw(b""),
    "nothing but the end": raw(b"data: [DONE]\n\n"),
}


@pytest.mark.parametrize("kind", TOO_LONG)
async def test_job_sends_a_smaller_request_once(http, service, provider, kind):
    provider.will(TOO_LONG[kind], finishing())
    done = await run_job(http, service)
    assert (done.view["status"], done.has_waited, len(provider.asked)) == ("completed", False, 2)
    assert provider.asked[1].body["max_tokens"] <= provider.asked[0].body["max_tokens"] // 2


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", TOO_LONG)
async def test_answer_is_asked_for_with_a_smaller_request(http, service, provider, kind, version):
    provider.will(TOO_LONG[kind], says(ANSWER))
    answered = await ASK[version](http, service)
    assert (answered.text.startswith("Run the installer"), answered.error, len(provider.asked)) == (True, "", 2)
    first, second = (asked.body for asked in provider.asked)
    assert second["max_tokens"] <= first["max_tokens"] // 2


NEVER = {
    "no credit, 429": (
        refused(429, {"code": "insufficient_quota", "message": "You exceeded your current quota."}),
        "quota_used_up",
    ),
    "no credit, 402": (refused(402, {"message": "Insufficient Balance"}), "quota_used_up"),
    "no credit, 403": (refused(403, {"message": "Your team has used all available credits"}), "quota_used_up"),
    "no credit, in a stream": (
        stream({"error": {"type": "billing_error", "message": "x"}}, done=False),
        "quota_used_up",
    ),
    "key": (refused(401, {"message": "Unauthorized"}), "model_key_refused"),
    "not allowed": (refused(403, {"message": "Your organization must be verified"}), "model_key_refused"),
    "not found": (refused(404, {"message": "The model `own` does not exist"}), "model_refused_request"),
    "bad request": (refused(400, {"message": "temperatur: unknown field"}), "model_refused_request"),
    "filter (Azure)": (
        refused(400, {"code": "content_filter", "message": "content management policy"}),
        "model_refused",
    ),
    "filter, in a stream": (
        stream({"error": {"code": "data_inspection_failed", "message": "x"}}, done=False),
        "model_refused",
    ),
    "filter, as the end": (stream(delta("SAFETY")), "model_refused"),
}


@pytest.mark.parametrize("kind", NEVER)
async def test_job_does_not_wait_for_what_cannot_pass(http, service, provider, kind):
    answer, code = NEVER[kind]
    provider.will(answer)
    done = await run_job(http, service)
    assert (done.failure.get("code"), done.has_waited, len(provider.asked)) == (code, False, 1)
    if kind == "not found":
        assert f"127.0.0.1:{provider.url.rpartition(':')[2]}/v1/chat/completions" in done.failure["message"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", NEVER)
async def test_reader_gets_passages_or_a_sentence_at_once(http, service, provider, kind, version):
    provider.will(NEVER[kind][0])
    answered = await ASK[version](http, service)
    assert (answered.error, len(provider.asked)) == ("", 1)
    assert "content filter" in answered.text if kind.startswith("filter") else "](/install" in answered.text


PASSES = {
    "too many requests": refused(429, {"message": "Too many requests"}),
    "a quota by time (Gemini)": refused(
        429,
        {
            "code": 429,
            "status": "RESOURCE_EXHAUSTED",
            "message": "You exceeded your current quota, please check your plan. "
            "Quota exceeded for metric: generate_requests_per_minute. Please retry in 0.1s.",
        },
    ),
    "overloaded": refused(529, {"type": "overloaded_error", "message": "Overloaded"}),
    "overloaded, in a stream": stream({"error": {"code": 503, "message": "x"}}, done=False),
    "loading": refused(503, {"message": "Loading model", "type": "unavailable_error"}),
    "limit, in a stream": stream({"error": {"code": 429, "message": "Provider returned error"}}, done=False),
}


@pytest.mark.parametrize("kind", PASSES)
async def test_what_passes_is_asked_again(http, service, provider, kind):
    provider.will(PASSES[kind], finishing())
    done = await run_job(http, service)
    assert (done.view["status"], done.has_waited, len(provider.asked)) == ("completed", False, 2)


ENDS = {
    "MAX_TOKENS": ("length", "cut off"),
    "model_length": ("length", "cut off"),
    "eos_token": ("", ""),
    "COMPLETE": ("", ""),
    "end-turn": ("", ""),
    "never_heard_of": ("other", "cut off"),
}


@pytest.mark.parametrize("said", ENDS)
async def test_end_reasons_of_others_are_read(http, service, provider, said):
    finish, note = ENDS[said]
    more = stream(delta(content=" It needs 20 MB."), delta("stop"))
    provider.will(stream(delta(content=ANSWER), delta(said)), *([more] if finish == "length" else []))
    answered = await ASK[2](http, service)
    assert (answered.text.startswith("Run the installer"), answered.error) == (True, "")
    assert answered.usage.get("finishReason", "") == ("" if finish == "length" else finish)
    provider.will(stream(delta(content="I look."), delta(said)), finishing())
    done = await run_job(http, service)
    assert done.view["status"] == "completed"
    assert note in json.dumps(provider.asked[-1].body["messages"])


BROKEN = {
    "no JSON": raw(b'data: {"choices": [{"delta": {"content": "Ru\n\n'),
    "said to be broken": stream(delta("error")),
    "a call that its server could not read": refused(
        400, {"code": "tool_use_failed", "message": "Failed to call a function."}
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_job_ends_after_three_replies_that_cannot_be_read(http, service, provider, kind):
    provider.will(*[BROKEN[kind]] * 9)
    done = await run_job(http, service)
    assert (done.failure.get("code"), done.has_waited, len(provider.asked)) == ("model_replies_lost", False, 3)
    assert [event["type"] for event in done.events].count("reply-lost") == 3
    if kind == "no JSON":
        assert done.view["usage"]["inputTokens"] > 1_000  # estimated, since no one said


async def test_reply_that_cannot_be_read_is_counted_and_asked_again(http, service, provider):
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    broken = stream({**delta(content=""), "usage": usage}, delta("network_error"), done=False)
    provider.will(broken, finishing())
    done = await run_job(http, service)
    assert done.view["status"] == "completed"
    assert done.view["usage"] == {**done.view["usage"], "inputTokens": 112, "outputTokens": 44}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", BROKEN)
async def test_answer_that_cannot_be_read_is_asked_for_once_more(http, service, provider, kind, version):
    provider.will(BROKEN[kind], says(ANSWER))
    answered = await ASK[version](http, service)
    assert (answered.text.startswith("Run the installer"), answered.error, len(provider.asked)) == (True, "", 2)


@pytest.mark.parametrize("text", ["I think about it ", ""])
async def test_job_ends_after_three_replies_without_end_or_call(http, service, provider, text):
    provider.will(*[stream(delta(content=text, reasoning_content="Hm."), delta("length"))] * 60)
    done = await run_job(http, service)
    assert (len(provider.asked), done.has_waited) == (3, False)
    assert "greatest length" in done.view["message"]


async def test_job_ends_when_its_model_repeats_itself(http, service, provider):
    provider.will(*[Reply(("I look. ",), (READ,))] * 60)
    done = await run_job(http, service)
    assert (len(provider.asked), done.has_waited) == (6, False)  # reminded once
    assert "repeat themselves" in json.dumps(provider.asked[3].body["messages"])
    assert "repeats the same replies" in done.view["message"]


async def test_model_that_takes_turns_repeats_itself_too(http, service, provider):
    other = call("read", path="index.md")
    provider.will(*[Reply((), (READ,)), Reply((), (other,))] * 30)
    done = await run_job(http, service)
    assert len(provider.asked) == 12
    assert "repeats the same replies" in done.view["message"]


async def test_empty_streams_end_a_job_with_the_setting_to_change(http, service, provider):
    provider.will(*[raw(b"")] * 9)
    done = await run_job(http, service)
    assert (done.failure["code"], done.has_waited, len(provider.asked)) == ("model_sent_nothing", False, 2)
    assert "context_tokens" in done.failure["message"]
