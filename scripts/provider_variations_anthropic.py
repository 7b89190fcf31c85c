"""Anthropic's protocol for ``provider_variations``: what gateways and compatible servers send in its place.

Sources: its API reference ("Streaming messages"), Bedrock's and Vertex's forms of it, LiteLLM's, OpenRouter's and
one-api's gateways, and Moonshot's, DeepSeek's, Zhipu's, MiniMax's and Ollama's compatible addresses.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scripts.provider_variations import TOO_LONG, Dialect, Documents, Place, Variation
from tests.end_to_end.provider_kinds import Answer, raw
from tests.fakes.provider import Failure

USAGE = {"input_tokens": 12, "output_tokens": 34}
Blocks = list[dict[str, Any]]
"""Content blocks: texts in pieces, and calls."""


def _deltas(index: object, kind: str, name: str, pieces: Sequence[str]) -> Documents:
    return [{"type": "content_block_delta", "index": index, "delta": {"type": kind, name: each}} for each in pieces]


def _block(index: object, block: dict[str, Any], deltas: Documents) -> Documents:
    begin = {"type": "content_block_start", "index": index, "content_block": block}
    return [begin, *deltas, {"type": "content_block_stop", "index": index}]


def _call(
    index: object, given: dict[str, Any], *, pieces: Sequence[str] | None = None, value: object = None
) -> Documents:
    block = {"type": "tool_use", "id": given["id"], "name": given["name"], "input": {} if value is None else value}
    written = json.dumps(given["input"])
    parts = ("", written[:5], written[5:]) if pieces is None else pieces
    return _block(index, block, _deltas(index, "input_json_delta", "partial_json", parts))


def _both(make: Callable[[int, dict[str, Any]], Documents]) -> Callable[[Blocks], Documents]:
    return lambda calls: [event for at, call in enumerate(calls) for event in make(at, call)]


def _with(call: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {**call, **fields}


FRAMINGS: Mapping[str, Callable[[Blocks], Documents]] = {
    "documented": _both(_call),
    "all arguments at once": _both(lambda at, one: _call(at, one, pieces=(json.dumps(one["input"]),))),
    "arguments in the beginning alone": _both(lambda at, one: _call(at, one, pieces=(), value=one["input"])),
    "arguments in the beginning, and empty pieces": _both(
        lambda at, one: _call(at, one, pieces=("", ""), value=one["input"])
    ),
    "arguments are objects": lambda calls: [
        event
        for at, one in enumerate(calls)
        for event in _block(
            at,
            {"type": "tool_use", "id": one["id"], "name": one["name"], "input": {}},
            [
                {
                    "type": "content_block_delta",
                    "index": at,
                    "delta": {"type": "input_json_delta", "partial_json": one["input"]},
                }
            ],
        )
    ],
    "no ids": _both(lambda at, one: _call(at, _with(one, id=""))),
    "ids are null": _both(lambda at, one: _call(at, _with(one, id=None))),
    "ids are numbers": _both(lambda at, one: _call(at, _with(one, id=at + 7))),
    "one id for both": _both(lambda at, one: _call(at, _with(one, id="toolu_1"))),
    "indexes are texts": _both(lambda at, one: _call(str(at), one)),
    "indexes have gaps": _both(lambda at, one: _call(3 * at + 2, one)),
    "no ends of blocks": _both(lambda at, one: _call(at, one)[:-1]),
    "pings between": _both(lambda at, one: [each for event in _call(at, one) for each in (event, {"type": "ping"})]),
    "thoughts before": lambda calls: [
        *_block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                *_deltas(0, "thinking_delta", "thinking", ("Hm", ".")),
                *_deltas(0, "signature_delta", "signature", ("c2ln",)),
            ],
        ),
        *(event for at, one in enumerate(calls, 1) for event in _call(at, one)),
    ],
    "redacted thoughts before": lambda calls: [
        *_block(0, {"type": "redacted_thinking", "data": "c2ln"}, []),
        *(event for at, one in enumerate(calls, 1) for event in _call(at, one)),
    ],
}


def _changed(kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Documents], Documents]:
    return lambda documents: [change(one) if one["type"] == kind else one for one in documents]


def _usage(value: object, beginning: object = None) -> Callable[[Documents], Documents]:
    def change(documents: Documents) -> Documents:
        begun = _changed(
            "message_start", lambda one: {**one, "message": {**one["message"], "usage": beginning or value}}
        )
        return _changed("message_delta", lambda one: {**one, "usage": value})(begun(documents))

    return change


TYPES: Mapping[str, Callable[[Documents], Documents]] = {
    "documented": list,
    "counts are texts": _usage({"input_tokens": "12", "output_tokens": "34"}),
    "counts are fractions": _usage({"input_tokens": 12.0, "output_tokens": 34.0}),
    "counts at the end alone": _usage(USAGE, {"input_tokens": 0, "output_tokens": 0}),
    "counts at the end, none before": _usage(USAGE, {"input_tokens": None}),
    "null counts of the cache": _usage(
        {**USAGE, "cache_read_input_tokens": None, "cache_creation_input_tokens": None, "server_tool_use": None}
    ),
    "usage is a text": _usage("much"),
    "no usage": lambda documents: _usage(None, {})(documents),
    "ids are objects": _changed(
        "message_start", lambda one: {**one, "message": {**one["message"], "id": {}, "model": 7}}
    ),
    "no message in the beginning": _changed("message_start", lambda _: {"type": "message_start", "usage": USAGE}),
    "unknown fields in all": lambda documents: [{**one, "x": [None], "sequence": "1"} for one in documents],
    "unknown events between": lambda documents: [
        each for one in documents for each in (one, {"type": "model_feeling", "delta": {"type": "mood", "text": 7}})
    ],
}
UNTOLD = ("usage is a text", "no usage", "no message in the beginning")


def _events(documents: Documents) -> bytes:
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in documents)


BYTES: Mapping[str, Callable[[Documents], bytes]] = {
    "documented": _events,
    "no names of events": lambda documents: b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in documents),
    "CR": lambda documents: _events(documents).replace(b"\n", b"\r"),
    "CRLF, no blank": lambda documents: _events(documents).replace(b"data: ", b"data:").replace(b"\n", b"\r\n"),
    "comments": lambda documents: (
        b"\xef\xbb\xbf: hello\n\n" + _events(documents).replace(b"event:", b": a\nid: 1\nevent:")
    ),
    "over several lines": lambda documents: _events(documents).replace(b', "', b',\ndata: "'),
    "lines of JSON": lambda documents: b"".join(json.dumps(one).encode() + b"\n" for one in documents),
    "no last event": lambda documents: _events([one for one in documents if one["type"] != "message_stop"]),
    "no blank at the end": lambda documents: _events(documents).rstrip(),
    "[DONE] behind": lambda documents: _events(documents) + b"data: [DONE]\n\n",
    "events of another kind": lambda documents: _events(documents).replace(
        b"event: content_block_delta", b"event: message"
    ),
}
ENDS: tuple[object, ...] = (
    "tool_use", "end_turn", "max_tokens", "stop_sequence", "pause_turn", "tool_calls", "stop", "never_heard_of", None,
    "", "model_context_window_exceeded", "TOOL_USE",
)  # fmt: skip
ENDS_OF_TEXT: tuple[object, ...] = (
    "end_turn",
    "stop_sequence",
    "stop",
    "END_TURN",
    "complete",
    None,
    "",
    "never_heard_of",
)


def _failed(status: int, kind: str, message: str) -> Failure:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return Failure(status, body=json.dumps(body).encode(), headers={"content-type": "application/json"})


def _in_stream(kind: str, message: str) -> Failure:
    return raw(_events([{"type": "error", "error": {"type": kind, "message": message}}]))


def _message(documents: Documents, end: object) -> Documents:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "own-1", "content": [], "usage": USAGE}
    end_of = {"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": None}, "usage": USAGE}
    return [{"type": "message_start", "message": message}, *documents, end_of, {"type": "message_stop"}]


_BEGUN = _events(_message([], None)[:1]) + b'event: content_block_start\ndata: {"type": "content_block_start", "ind'
_TOO_LONG = str(TOO_LONG["message"])
PLACES: Mapping[str, Place] = {
    "none": Place(),
    "behind the end: an error": Place(behind=_in_stream("api_error", "late").body or b""),
    "behind the end: rubbish": Place(behind=b"data: {no\n\n"),
    "in the middle": Place(broken=raw(_BEGUN)),
    "before: overloaded": Place(_failed(529, "overloaded_error", "Overloaded")),
    "before: overloaded, in a stream": Place(_in_stream("overloaded_error", "Overloaded")),
    "before: too long": Place(
        _failed(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
    ),
    "before: too long, in a stream": Place(_in_stream("invalid_request_error", _TOO_LONG)),
    "before: nothing": Place(raw(b'event: ping\ndata: {"type": "ping"}\n\n')),
    "before: no credit": Place(
        _failed(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        code="quota_used_up",
    ),
    "before: key": Place(_failed(401, "authentication_error", "invalid x-api-key"), code="model_key_refused"),
    "before: not found": Place(_failed(404, "not_found_error", "model: own"), code="model_refused_request"),
}


def _answer_of(one: Variation, documents: Documents, end: object) -> Answer:
    varied = TYPES[one.types](_message(documents, end))
    framed = BYTES[one.bytes]
    if end in (None, "") and one.bytes == "no last event":  # else nothing says that it ends
        framed = BYTES["documented"]
    behind = PLACES[one.place].behind
    return raw(framed(varied) + (b"\n\n" + behind if behind else b""))


def _calls(one: Variation, tool: str, key: str, first: str, second: str) -> Answer:
    calls = [{"id": f"toolu_{at}", "name": tool, "input": {key: value}} for at, value in enumerate((first, second))]
    return _answer_of(one, FRAMINGS[one.framing](calls), one.end)


def _says(one: Variation, pieces: Sequence[str]) -> Answer:
    deltas = _deltas(0, "text_delta", "text", pieces)
    return _answer_of(one, _block(0, {"type": "text", "text": ""}, deltas), one.end_of_text)


def _finishes(arguments: str) -> Answer:
    call = {"id": "toolu_f", "name": "finish", "input": json.loads(arguments)}
    return raw(_events(_message(_call(0, call), "tool_use")))


ANTHROPIC = Dialect(
    "anthropic/own", "", tuple(FRAMINGS), tuple(TYPES), UNTOLD, tuple(BYTES), ENDS, ENDS_OF_TEXT, PLACES, _calls, _says,
    _finishes,
)  # fmt: skip
