"""Parts of a reply that its provider wants back: sent to the same model alone, kept by the log, read by no one else."""

import asyncio
import json

import pytest

from tests.end_to_end.provider_kinds import ASK, call, delta, finishing, kinds_service, run_job, says, stream
from tests.end_to_end.scripted import next_asked
from tests.end_to_end.talk import create_job, events_in, files_with, get_job, job_events
from tests.fakes.provider import Asked, Failure, Reply, ScriptedProvider
from tests.service_process import free_port

ANSWER = "Run the installer [1]."
THOUGHT = "Zweigstellenverzeichnis"
"""A word that is nowhere else."""
READ_ARGUMENTS = '{"path": "install.md"}'
READ = {"index": 0, "id": "call_1", "function": {"name": "read", "arguments": READ_ARGUMENTS}}
SEARCH = {"index": 0, "id": "call_1", "function": {"name": "search", "arguments": '{"query": "installer"}'}}


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    other = {"MODEL": "openai/other", "API_BASE": f"http://127.0.0.1:{port}/v1"}
    claude = {
        "MODEL": "anthropic/claude-opus-5-5",
        "API_BASE": f"http://127.0.0.1:{port}",
        "API_KEY_ENV": "SCRIPTED_KEY",
        "REASONING_EFFORT": "low",
    }
    settings = {
        f"MODELS__{alias}__{name}": value
        for alias, spec in (("OTHER", other), ("CLAUDE", claude))
        for name, value in spec.items()
    }
    with kinds_service(tmp_path_factory.mktemp("memory"), port, MODELS__OWN__FALLBACK="other", **settings) as service:
        service.environment["SCRIPTED_KEY"] = "sk-scripted"
        service.stop()
        service.start()
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


def said(asked: Asked):
    """The assistant's message with calls in a request."""
    return next(each for each in asked.body["messages"] if each.get("tool_calls"))


SIGNATURE = {"google": {"thought_signature": THOUGHT}}
HALVES = ("Zweigstellen", "verzeichnis")
DETAILS = [{"type": "reasoning.text", "text": each, "index": 0} for each in HALVES]
MEMORIES = {
    "DeepSeek (langchain#37713)": (
        lambda piece: [*(delta(reasoning_content=each) for each in HALVES), delta(tool_calls=[piece])],
        lambda said: said["reasoning_content"],
    ),
    "OpenRouter": (
        lambda piece: [*(delta(reasoning_details=[one]) for one in DETAILS), delta(tool_calls=[piece])],
        lambda said: said["reasoning_details"][0]["text"],
    ),
    "Gemini": (
        lambda piece: [delta(tool_calls=[{**piece, "extra_content": SIGNATURE}])],
        lambda said: said["tool_calls"][0]["extra_content"]["google"]["thought_signature"],
    ),
    "vLLM": (
        lambda piece: [delta(reasoning=THOUGHT), delta(tool_calls=[piece])],
        lambda said: said["reasoning"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MEMORIES)
async def test_job_sends_back_what_its_replies_carried(http, service, provider, kind):
    chunks, memory = MEMORIES[kind]
    provider.will(stream(*chunks(READ), delta("tool_calls")), finishing())
    done = await run_job(http, service)
    assert done.tools == ["read", "finish"]
    assert memory(said(provider.asked[1])) == THOUGHT
    assert THOUGHT not in json.dumps(done.events)
    assert THOUGHT not in json.dumps(done.view)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", MEMORIES)
async def test_answer_sends_back_what_its_replies_carried(http, service, provider, kind, version):
    chunks, memory = MEMORIES[kind]
    provider.will(stream(*chunks(SEARCH), delta("tool_calls")), says(ANSWER))
    answered = await ASK[version](http, service)
    assert answered.text.startswith("Run the installer")
    assert memory(said(provider.asked[1])) == THOUGHT
    assert THOUGHT not in answered.text


async def test_thoughts_of_another_model_are_not_sent(http, service, provider):
    chunks, _ = MEMORIES["DeepSeek (langchain#37713)"]
    provider.will(stream(*chunks(READ), delta("tool_calls")), *[Failure(503)] * 2, finishing())
    done = await run_job(http, service)
    assert done.tools == ["read", "finish"]
    assert [asked.body["model"] for asked in provider.asked] == ["own", "own", "own", "other"]
    assert "reasoning_content" in said(provider.asked[1])
    assert "reasoning_content" not in said(provider.asked[3])


async def test_server_that_wants_thoughts_with_every_call_gets_some(http, service, provider):
    def answer(asked: Asked):
        calls = [each for each in asked.body["messages"] if each.get("tool_calls")]
        if not all(each.get("reasoning_content") for each in calls):
            words = "The `reasoning_content` in the thinking mode must be passed back to the API."
            return Failure(400, "invalid_request_error", words)
        return finishing() if calls else Reply((), (call("read", path="install.md"),))

    provider._answer = answer
    done = await run_job(http, service)
    assert (done.view["status"], done.tools) == ("completed", ["read", "finish"])


async def test_anthropics_thoughts_go_back_signed_and_thinking_goes_on(http, service, provider):
    def event(kind, **fields):
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    tool = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    blocks = [
        event("message_start", message={"model": "claude-opus-5-5", "usage": {"input_tokens": 9, "output_tokens": 1}}),
        event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
        event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": THOUGHT}),
        event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "c2ln"}),
        event("content_block_start", index=1, content_block={"type": "redacted_thinking", "data": "b3BhcXVl"}),
        event("content_block_start", index=2, content_block=tool),
        event("content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": READ_ARGUMENTS}),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 5}),
        event("message_stop"),
    ]  # fmt: skip
    body = "".join(blocks).encode()
    provider.will(Failure(200, body=body, headers={"content-type": "text/event-stream"}), finishing())
    job = await asyncio.to_thread(service.cli, "job", "create", "Look", "--model", "claude")
    await job_events(http, service, job["id"])
    assert (await get_job(http, service, job["id"]))["status"] == "completed"
    first, second = (asked.body for asked in provider.asked)
    content = next(each["content"] for each in second["messages"] if each["role"] == "assistant")
    assert content[:2] == [
        {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
    ]
    assert first["thinking"] == second["thinking"]


async def test_memory_survives_a_kill_and_is_gone_with_its_job(http, service, provider, tmp_path):
    chunks, memory = MEMORIES["DeepSeek (langchain#37713)"]
    service.stop()  # for an earlier test the model was away, and is asked last for a while
    service.start()
    hold = asyncio.Event()
    provider.will(stream(*chunks(READ), delta("tool_calls")), Reply(("I am",), after=1, hold=hold))
    job = await create_job(http, service, "Look at it.")
    for _ in range(2):
        await next_asked(provider)
    service.kill()
    hold.set()
    provider.will(finishing())
    service.start()
    await job_events(http, service, job["id"])
    assert (await get_job(http, service, job["id"]))["status"] == "completed"
    assert [asked.body["model"] for asked in provider.asked] == ["own"] * 3
    assert memory(said(provider.asked[-1])) == THOUGHT
    out = tmp_path / "out"
    await asyncio.to_thread(service.cli, "audit", "export", "--output", str(out), "--personal")
    exported = "".join(file.read_text("utf-8") for file in out.rglob("*") if file.is_file())
    assert '"memory"' in exported
    assert THOUGHT not in exported
    assert '"data":"eJ' not in exported  # nor packed
    assert await asyncio.to_thread(files_with, THOUGHT.encode(), service.data) == []
    await asyncio.to_thread(service.cli, "audit", "erase", f"job-{job['id']}", "--yes")
    replies = [event for event in await events_in(service, f"job-{job['id']}") if event.type == "model-replied"]
    assert replies
    assert all(event.erased for event in replies)
