"""Replies of providers in framings and types that are not documented: read as they are, whole, and paid once."""

import json
import re

import pytest

from tests.end_to_end.provider_kinds import (
    ASK,
    calling,
    delta,
    events,
    finishing,
    kinds_service,
    raw,
    run_job,
    says,
    stream,
)
from tests.fakes.provider import ScriptedProvider
from tests.service_process import free_port

ANSWER = "Run the installer [1]."


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    with kinds_service(tmp_path_factory.mktemp("framings"), port) as service:
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


def piece(index, name=None, arguments=None, call_id=None):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    places = (("index", index), ("id", call_id), ("function", function))
    return {key: value for key, value in places if value is not None}


def two(name, first, second):
    """Framings of two calls of a tool, which people have reported."""
    one, other = json.dumps(first), json.dumps(second)
    half, rest = one[:5], one[5:]
    return {
        "index 0, no ids (smolagents#1958)": [piece(0, name, one), piece(0, name, other)],
        "index 0, no ids, in pieces": [piece(0, name, half), piece(0, None, rest), piece(0, name, other)],
        "no index, no ids": [piece(None, name, one), piece(None, name, other)],
        "no index, names again": [piece(None, name, half), piece(None, name, rest), piece(None, name, other)],
        "index 0, an id each": [piece(0, name, one, "a"), piece(0, name, other, "b")],
        "an id for each piece": [piece(0, name, half, "a"), piece(0, None, rest, "b"), piece(1, name, other, "c")],
        "all arguments so far": [piece(0, name, half), piece(0, None, one), piece(1, name, other)],
        "arguments are objects (llama.cpp#20198)": [piece(0, name, first), piece(1, name, second)],
        "a string of a string": [piece(0, name, json.dumps(one)), piece(1, name, other)],
        "an empty object, then pieces": [
            piece(0, name, {}),
            piece(0, None, half),
            piece(0, None, rest),
            piece(1, name, other),
        ],
        "index is a string, id a number": [piece("0", name, one, 7), piece("1", name, other, 8)],
        "beside the id": [
            {"index": 0, "name": name, "arguments": one},
            {"index": 1, "name": name, "parameters": second},
        ],
    }


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
    "usage that cannot be read": stream({**delta(content=TEXT), "usage": "much"}, delta("stop")),
    "unknown fields of any type": stream({**delta(content=TEXT), "id": {}, "created": "x"}, delta("stop")),
    "an error behind the end": stream(
        delta(content=TEXT), delta("stop"), {"error": {"message": "late", "type": "server_error"}}
    ),
    "rubbish behind the end": raw(events(delta(content=TEXT), delta("stop"), done=False) + b"data: {no\n\n"),
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
