"""Replies of providers in framings and types that are not documented: read as they are, whole, and paid once."""

import json
import re

import pytest
from dulwich.repo import Repo

from tests.end_to_end.provider_kinds import (
    ASK,
    calling,
    delta,
    events,
    finishing,
    kinds_service,
    piece,
    raw,
    run_job,
    says,
    stream,
    two,
)
from tests.fakes.provider import ScriptedProvider
from tests.service_process import DOCS, free_port

ANSWER = "Run the installer [1]."


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    docs = {**DOCS, "windows.md": "# Windows\r\n\r\nIt runs.\r\n"}
    with kinds_service(tmp_path_factory.mktemp("framings"), port, docs) as service:
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


FRAMINGS = list(two("read", {}, {}))


@pytest.mark.parametrize("framing", FRAMINGS)
async def test_job_carries_out_both_calls(http, service, provider, framing):
    pieces = two("read", {"path": "install.md"}, {"path": "index.md"})[framing]
    provider.will(calling(*pieces), finishing())
    done = await run_job(http, service)
    assert (done.view["status"], done.failure, done.has_waited) == ("completed", {}, False)
    assert done.tools == ["read", "read", "finish"]
    assert len(provider.asked) == 2
    _, said, *results = provider.asked[1].body["messages"][-4:]
    assert [json.loads(each["function"]["arguments"]) for each in said["tool_calls"]] == [
        {"path": "install.md"},
        {"path": "index.md"},
    ]
    assert [each["tool_call_id"] for each in results] == [each["id"] for each in said["tool_calls"]]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("framing", FRAMINGS)
async def test_assistant_carries_out_both_calls(http, service, provider, framing, version):
    pieces = two("search", {"query": "installer"}, {"query": "sizes"})[framing]
    provider.will(calling(*pieces), says(ANSWER))
    answered = await ASK[version](http, service)
    assert (answered.text.startswith("Run the installer"), answered.error) == (True, "")
    assert len(provider.asked) == 2
    said = next(each for each in provider.asked[1].body["messages"] if each.get("tool_calls"))
    queries = [json.loads(each["function"]["arguments"])["query"] for each in said["tool_calls"]]
    assert queries == ["installer", "sizes"]


async def test_made_up_ids_fit_every_template(http, service, provider):
    read = piece(0, "read", '{"path": "install.md"}')
    provider.will(calling(read), calling(read), finishing())
    done = await run_job(http, service)
    assert done.tools == ["read", "read", "finish"]
    ids = [each["tool_call_id"] for each in provider.asked[2].body["messages"] if each["role"] == "tool"]
    assert all(re.fullmatch("[A-Za-z0-9]{9}", each) for each in ids), ids
    assert len(set(ids)) == 2


async def test_ids_that_a_provider_repeats_are_made_different(http, service, provider):
    read = piece(0, "read", '{"path": "install.md"}', "call_0")
    provider.will(calling(read), calling(read), finishing())
    done = await run_job(http, service)
    assert done.tools == ["read", "read", "finish"]
    ids = [each["tool_call_id"] for each in provider.asked[2].body["messages"] if each["role"] == "tool"]
    assert len(set(ids)) == 2


TEXT = "It needs 20 MB [1]."
DIGITS = [delta(content="It needs "), delta(content=2), delta(content=0), delta(content=" MB [1]."), delta("stop")]
USAGE = {"prompt_tokens": 12, "completion_tokens": 34}


def whole(message, **more):
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"model": "own-1", "choices": [choice], "usage": USAGE, **more}).encode()


ODD_TEXTS = {
    "digits (cloudflare/ai#651)": stream(*DIGITS),
    "parts": stream(delta(content=[{"type": "text", "text": TEXT}]), delta("stop")),
    "usage of other types": stream(
        delta(content=TEXT), {**delta("stop"), "usage": {"prompt_tokens": "12", "completion_tokens": 3.5}}
    ),
    "usage by other names": stream(
        delta(content=TEXT), {**delta("stop"), "usage": {"input_tokens": 12, "output_tokens": 34}}
    ),
    "usage that cannot be read": stream({**delta(content=TEXT), "usage": "much"}, delta("stop")),
    "unknown fields of any type": stream({**delta(content=TEXT), "id": {}, "created": "x"}, delta("stop")),
    "an error behind the end": stream(
        delta(content=TEXT), delta("stop"), {"error": {"message": "late", "type": "server_error"}}
    ),
    "rubbish behind the end": raw(events(delta(content=TEXT), delta("stop"), done=False) + b"data: {no\n\n"),
    "rubbish behind documents on lines": raw(
        b"".join(json.dumps(each).encode() + b"\n" for each in DIGITS) + b"data: {no\n\n", "application/x-ndjson"
    ),
    "half characters": raw(
        b'data: {"model":"m","choices":[{"delta":{"content":"It needs 20 MB [1]. \\ud83d"}}]}\n\n'
        + events(delta("stop"))
    ),
    "one event over several lines": raw(
        events(delta(content=TEXT), delta("stop")).replace(b'"choices"', b'\ndata: "choices"')
    ),
    "CR alone": raw(events(*DIGITS).replace(b"\n", b"\r")),
    "no blank at the end": raw(events(*DIGITS, done=False).rstrip()),
    "message in place of a delta": stream({"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}]}),
    "one document (braintrust-proxy#125)": raw(whole({"content": TEXT}), "application/json"),
    "one document, as a stream": raw(b"\n" + whole({"content": TEXT})),
    "one document over lines": raw(
        json.dumps(json.loads(whole({"content": TEXT})), indent=2).encode(), "application/json"
    ),
    "documents on lines": raw(b"".join(json.dumps(each).encode() + b"\n" for each in DIGITS), "application/x-ndjson"),
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", ODD_TEXTS)
async def test_answer_is_read_whatever_types_it_has(http, service, provider, kind, version):
    provider.will(ODD_TEXTS[kind])
    answered = await ASK[version](http, service)
    assert answered.error == ""
    assert answered.text.startswith("It needs 20 MB [")
    assert len(provider.asked) == 1  # nothing that arrived whole is asked for twice


@pytest.mark.parametrize("kind", ODD_TEXTS)
async def test_job_reads_words_of_any_types(http, service, provider, kind):
    provider.will(ODD_TEXTS[kind], finishing())
    done = await run_job(http, service)
    assert (done.view["status"], done.has_waited, len(provider.asked)) == ("completed", False, 2)
    assert TEXT in json.dumps(provider.asked[1].body["messages"])


async def test_document_with_calls_in_place_of_a_stream_is_read(http, service, provider):
    function = {"name": "read", "arguments": {"path": "install.md"}}
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "function": function}]}
    provider.will(raw(whole(message), "application/json"), finishing())
    done = await run_job(http, service)
    assert (done.tools, len(provider.asked)) == (["read", "finish"], 2)
    assert done.view["usage"]["inputTokens"] == 24


async def test_tokens_by_other_names_are_counted(http, service, provider):
    provider.will(ODD_TEXTS["usage by other names"], finishing())
    done = await run_job(http, service)
    assert done.view["usage"]["inputTokens"] == 24


async def test_written_file_keeps_its_line_ends(http, service, provider):
    """A model writes LF whatever the file has (Gitlawb/zero#376)."""
    text = "# Windows\n\nIt runs there.\n"
    provider.will(
        calling(piece(0, "write", json.dumps({"path": "windows.md", "text": text}))), finishing(), finishing()
    )
    done = await run_job(http, service)
    assert done.view["status"] == "completed", done.view
    with Repo(str(service.data / done.view["source"]["repository"])) as repository:
        tree = repository[repository[f"refs/heads/{done.view['branch']}".encode()].tree]
        _, blob = tree.lookup_path(repository.__getitem__, b"windows.md")
        shown = repository[blob].data.decode()
    assert shown == text.replace("\n", "\r\n")
