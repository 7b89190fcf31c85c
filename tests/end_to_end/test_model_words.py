"""What no reader gets of a model's or its provider's words: thoughts, reasons of failures, code that no passage has."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from service.streams import THREADS
from tests.end_to_end.scripted import scripted_service
from tests.end_to_end.talk import (
    ask,
    create_job,
    events_in,
    files_with,
    get_job,
    job_events,
    message_url,
    question,
    text_of,
)
from tests.end_to_end.test_operations import wait_for
from tests.fakes.provider import ScriptedProvider
from tests.service_process import free_port

THOUGHT = "Ermentrude asks for [2]"
KEY = "sk-scripted"
"""The provider's, as the services that are scripted have it."""


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    folder = tmp_path_factory.mktemp("words")
    (folder / "docsmith.toml").write_text("")
    with scripted_service(folder, port, CONFIG=str(folder / "docsmith.toml")) as service:
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


async def raw(http, service, version, text):
    body = question(text)
    if version == 1:
        body["messages"][0]["content"] = text
    async with http.post(message_url(service, version), json=body, headers=service.assistant) as response:
        assert response.status == 200
        return response.headers["X-Thread-Id"], await response.text()


async def events_of(service, thread_id):
    return [THREADS.codec.decode(event) for event in await events_in(service, f"thread-{thread_id}")]


@pytest.mark.parametrize("version", [1, 2])
async def test_thoughts_are_recorded_and_not_shown(http, service, provider, version):
    provider.will_reply("<thi", "nk>", THOUGHT, "</th", "ink>", "\n\nRun it [1].")
    thread_id, stream = await raw(http, service, version, "How do I install Kite?")
    assert "Run it [1]" in stream
    assert "Ermentrude" not in stream
    assert "think" not in stream
    events = await events_of(service, thread_id)
    assert "".join(event.thinking for event in events if hasattr(event, "thinking")) == THOUGHT
    (done,) = (event for event in events if hasattr(event, "cited"))
    assert done.cited == (1,)
    assert "Ermentrude" not in done.text
    assert files_with(b"ermentrude", *service.folders) == []  # encrypted in the log, and in no view


async def test_thoughts_are_erased_with_their_thread(http, service, provider):
    provider.will_reply("<think>", THOUGHT, "</think>", "Run it [1].")
    thread_id, _ = await raw(http, service, 2, "How do I install Kite?")
    service.cli("audit", "erase", f"thread-{thread_id}", "--yes")
    assert not any(THOUGHT in str(event) for event in await events_of(service, thread_id))


async def test_thoughts_are_not_shown_again_and_not_sent_to_the_model(http, service, provider):
    provider.will_reply("<think>", THOUGHT, "</think>", "Run it [1].")
    first = await ask(http, service, question("How do I install Kite?"))
    await provider.next_asked()
    provider.will_reply("On Windows, too.")
    body = question("And on Windows?", threadId=first[0]["X-Thread-Id"])
    assert text_of(await ask(http, service, body)) == "On Windows, too."
    asked = await provider.next_asked()
    assert "Run it" in json.dumps(asked.body)
    assert "Ermentrude" not in json.dumps(asked.body)


FAILURES = [
    (429, "rate_limit_error", "You are over the quota of org-42", "busy"),
    (503, "overloaded_error", "node gpu-7.internal is down", "unavailable"),
    (401, "authentication_error", f"Incorrect API key provided: {KEY}", "misconfigured"),
    (400, "invalid_request_error", f"gpt-5.2 does not take org-42 with Bearer {KEY}", "misconfigured"),
    (404, "not_found_error", "The model gpt-5.2 does not exist for org-42", "misconfigured"),
]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("status", "kind", "said", "learned"), FAILURES)
async def test_readers_do_not_get_a_providers_error(http, service, provider, version, status, kind, said, learned):
    for _ in range(4):
        provider.will_fail(status, kind, said, headers={"retry-after-ms": "1"})
    _, stream = await raw(http, service, version, "How do I install Kite?")
    assert f"The assistant is {learned}." in stream
    for word in ("org-42", "gpu-7", "gpt-5.2", "openai", KEY, "quota"):
        assert word not in stream
    failures = [line for line in service.log().splitlines() if "model failed" in line]
    line = max(failures, key=lambda line: json.loads(line)["timestamp"])  # of any instance
    assert "gpt-5.2" in line
    assert KEY not in service.log()
    if status == 400:
        assert "does not take org-42" in line


async def test_the_operators_command_says_why_the_model_failed(service, provider):
    provider.will_fail(400, "invalid_request_error", f"gpt-5.2 does not take org-42 with Bearer {KEY}")
    done = await asyncio.to_thread(service.run, "ask", service.domain, "How do I install Kite?")
    assert done.returncode == 1
    assert "The assistant is misconfigured." in done.stderr
    assert "does not take org-42" in done.stderr
    assert KEY not in done.stdout + done.stderr


async def test_an_error_in_the_middle_of_a_reply_is_not_shown(http, service, provider):
    provider.will_reply("Run ", "it", after=1, error="overloaded_error")
    _, stream = await raw(http, service, 2, "How do I install Kite?")
    assert "The assistant is unavailable." in stream
    assert "overloaded" not in stream


async def test_a_job_says_why_its_model_failed_without_secrets(http, service, provider):
    for _ in range(3):
        provider.will_fail(400, "invalid_request_error", f"gpt-5.2 does not take org-42 with Bearer {KEY}")
    job = await create_job(http, service, 'Append "Kites rise." to index.md')
    async with asyncio.timeout(120):
        events = await job_events(http, service, job["id"])
    found = await get_job(http, service, job["id"])
    assert "org-42" in json.dumps([events, found])
    assert KEY not in json.dumps([events, found])
    assert files_with(KEY.encode(), *service.folders) == []


async def test_ends_that_are_no_answer_are_named_and_show_no_gap(http, service, provider):
    provider.will_fail(429, "rate_limit_error", headers={"retry-after": "1"})
    provider.will_reply("I will not.", reason="refused")
    filtered, stream = await raw(http, service, 1, "How do I install Kite?")
    waited = {"type": "waiting", "seconds": 1.0, "message": "The assistant is busy. It tries again in 1 second."}
    first, *_ = (json.loads(line[2:]) for line in stream.splitlines() if line.startswith("8:"))
    assert first == [waited]
    assert '"finishReason":"content-filter"' in stream.splitlines()[-1]
    assert "content filter" in stream
    provider.will_reply()
    provider.will_reply()
    empty, stream = await raw(http, service, 2, "How do I install Kite?")
    assert "The assistant wrote no answer." in stream
    url = f"{service.url}/v1/analytics/{service.project_id}/assistant"
    async with http.get(url, headers=service.admin) as response:
        rows = {row["threadId"]: row for row in (await response.json())["conversations"]}
    assert rows[filtered]["failure"] == {"code": "content_filter", "message": "A content filter ended the answer."}
    assert (rows[empty]["state"], rows[empty]["failure"]["code"]) == ("failed", "assistant_empty")
    for path, name in ((url, "conversations"), (f"{url}/unanswered", "questions")):
        async with http.get(path, params={"resolutionStatus": "unanswered"}, headers=service.admin) as response:
            assert not {filtered, empty} & {row.get("threadId") for row in (await response.json())[name]}


async def test_code_without_passage_is_withheld_after_a_reload(http, service, provider):
    code = "```sh\ncurl -sSf kite.example/install | sh\n```\n\n```sh\nkite {}\n```\n"
    file = Path(service.environment["DOCSMITH_CONFIG"])
    for times, (setting, flag) in enumerate([("true", "--levitate"), ("false", "--hover")], start=1):
        settings = f"[assistant]\nwithhold_unsupported_code = {setting}\n"
        await asyncio.to_thread(file.write_text, settings)
        service.signal(signal.SIGHUP)
        told = await asyncio.to_thread(wait_for, service, "settings read", times=times * len(service.each))
        assert told["changed"] == ["assistant.withhold_unsupported_code"]
        for version in (1, 2):
            provider.will_reply("Run it [1]:\n\n", *code.format(flag).partition("te"))
            thread_id, stream = await raw(http, service, version, "How do I install Kite?")
            assert "curl -sSf kite.example/install | sh" in stream
            events = await events_of(service, thread_id)
            shown = "".join(event.text for event in events if hasattr(event, "raw"))
            for text in (stream, shown):
                assert (flag in text) == (setting == "false")
                assert ("This code was left out" in text) == (setting == "true")
