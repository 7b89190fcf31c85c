"""The readers of providers' streams, without a socket."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from service.adapters.models.failures import failure_in_stream
from service.adapters.models.memory import packed
from service.adapters.models.responses import ResponsesReader
from service.adapters.models.streams import ChatCompletionsReader, Ending, MessagesReader, Tokens
from service.domain.errors import Forbidden, Invalid, QuotaUsedUp, RateLimited, Unavailable
from service.domain.model import ToolCall
from tests.adapters.stream_fuzzing import reading
from tests.fakes.provider import Call, Reply
from tests.fakes.provider_protocols import EVENTS, WHOLE

SAMPLES = Path(__file__).parent.parent / "samples" / "providers"
READERS = {"openai": ChatCompletionsReader, "anthropic": MessagesReader}


def fed(reader, data: bytes) -> list[str]:
    return [text for text in reader.feed(data) if text]


def read(sample: str, *, piece: int = 1 << 20) -> tuple[list[str], Ending]:
    reader = READERS[sample.split("/")[0]]()
    data = (SAMPLES / f"{sample}.sse").read_bytes()
    texts = [text for start in range(0, len(data), piece) for text in fed(reader, data[start : start + piece])]
    return texts, reader.ending()


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_texts_come_as_they_are_sent_and_all_tokens_are_counted(protocol):
    texts, ending = read(f"{protocol}/text")
    assert texts == ["Hello", ", wörld! 🌍"]
    assert (ending.reason, ending.tool_calls) == ("stop", ())
    assert ending.tokens is not None
    assert (ending.tokens.input, ending.tokens.output, ending.tokens.cache_read) == (2125, 15, 2000)


@pytest.mark.parametrize("sample", ["openai/text", "openai/parallel_tool_calls", "anthropic/thinking_then_tool_use"])
@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64, 1000])
def test_stream_reads_the_same_wherever_the_network_cuts(sample, piece):
    assert read(sample, piece=piece) == read(sample)


def test_parallel_tool_calls_are_put_together_by_index():
    texts, ending = read("openai/parallel_tool_calls")
    assert texts == []
    assert ending.reason == "tool_calls"
    assert ending.tool_calls == (
        ToolCall("call_DdmO9pD3xa9XTPNJ32zg2hcA", "get_weather", '{"location":"Paris"}'),
        ToolCall("call_9xTPNJ32zg2hcADdmO9pD3xa", "get_weather", '{"location":"Bogotá"}'),
    )


def test_thinking_is_not_text_and_no_arguments_make_an_object():
    texts, ending = read("anthropic/thinking_then_tool_use")
    assert "".join(texts) == "Let me check the weather for San Francisco."
    assert ending.tool_calls == (
        ToolCall("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", '{"location": "San Francisco, CA"}'),
        ToolCall("toolu_01A09q90qw90lq917835lq9", "list_cities", "{}"),
    )
    assert ending.tokens == Tokens(472, 89)


def test_refusal_is_shown_and_reported():
    texts, ending = read("openai/refusal")
    assert "".join(texts) == "I'm sorry, but I can't help with that."
    assert ending.reason == "refused"


def test_comments_parts_and_a_missing_done_are_put_up_with():
    texts, ending = read("openai/imitation_with_comments")
    assert texts == ["Hello", " there"]
    assert (ending.reason, ending.tokens, ending.model) == ("stop", None, "vendor/model-1")


def test_calls_that_share_an_index_are_separated_by_their_ids():
    _, ending = read("openai/imitation_same_index")
    assert ending.reason == "tool_calls"
    assert [(call.id, call.arguments) for call in ending.tool_calls] == [
        ("call_a", '{"q":"a"}'), ("call_b", '{"q":"b"}'), ("call_c", '{"p":1}'),
    ]  # fmt: skip


@pytest.mark.parametrize("sample", ["openai/error", "anthropic/overloaded"])
def test_an_error_in_the_stream_is_raised(sample):
    with pytest.raises(Unavailable):
        read(sample)


@pytest.mark.parametrize("sample", ["openai/text", "openai/parallel_tool_calls", "anthropic/text"])
def test_a_stream_that_stops_before_its_end_is_no_reply(sample):
    reader = READERS[sample.split("/")[0]]()
    data = (SAMPLES / f"{sample}.sse").read_bytes()
    list(reader.feed(data[: len(data) // 2]))
    with pytest.raises(Unavailable):
        reader.ending()


@pytest.mark.parametrize("reader", READERS.values())
def test_event_that_is_no_json_is_an_error(reader):
    with pytest.raises(Unavailable):
        list(reader().feed(b": hello\n\ndata: {broken\n\n"))


def test_a_call_cut_off_by_the_limit_is_left_out():
    reader = ChatCompletionsReader()
    whole = {"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"p": 1}'}}
    half = {"index": 1, "id": "b", "function": {"name": "write", "arguments": '{"p": 1, "text": "Lorem'}}
    for fields in ({"delta": {"tool_calls": [whole, half]}}, {"delta": {}, "finish_reason": "length"}):
        list(reader.feed(f"data: {json.dumps({'choices': [fields]})}\n\n".encode()))
    ending = reader.ending()
    assert ending.reason == "length"
    assert [call.name for call in ending.tool_calls] == ["read"]


@pytest.mark.parametrize(
    ("stop_reason", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "refused"),
        ("new", "unknown"),
    ],
)
def test_the_reasons_of_anthropic_are_ours(stop_reason, reason):
    reader = MessagesReader()
    for event in ({"type": "message_delta", "delta": {"stop_reason": stop_reason}}, {"type": "message_stop"}):
        list(reader.feed(f"data: {json.dumps(event)}\n\n".encode()))
    assert reader.ending().reason == reason


@pytest.mark.parametrize(
    ("kind", "error", "code"),
    [
        ("overloaded_error", Unavailable, "unavailable"),
        ("rate_limit_error", RateLimited, "rate_limited"),
        ("insufficient_quota", QuotaUsedUp, "quota_used_up"),
        ("authentication_error", Forbidden, "model_key_refused"),
        ("invalid_request_error context_length_exceeded", Invalid, "context_window_exceeded"),
        ("invalid_request_error", Invalid, "model_refused_request"),
        ("never heard of", Unavailable, "unavailable"),
    ],
)
def test_the_kind_of_an_error_decides(kind, error, code):
    found = failure_in_stream({"type": kind})
    assert (type(found), found.code) == (error, code)


@given(st.lists(st.text(min_size=1), min_size=1), st.integers(min_value=1, max_value=40))
def test_any_text_comes_through_any_cuts(texts, piece):
    sent = {
        ChatCompletionsReader: [
            *({"choices": [{"delta": {"content": text}}]} for text in texts),
            {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        ],
        MessagesReader: [
            *({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}} for text in texts),
            {"type": "message_stop"},
        ],
    }
    for reader_type, events in sent.items():
        reader = reader_type()
        data = b"".join(f"data: {json.dumps(event)}\r\n\r\n".encode() for event in events)
        read_texts = [text for at in range(0, len(data), piece) for text in fed(reader, data[at : at + piece])]
        assert read_texts == texts
        assert reader.ending().reason == "stop"


def test_lines_without_a_blank_one_between_them_are_separated():
    texts = [{"model": "m", "choices": [{"delta": {"content": word}}]} for word in ("Run ", "the ", "installer.")]
    first, *rest = (f"data: {json.dumps(chunk)}\n".encode() for chunk in texts)
    reader = ChatCompletionsReader()
    assert fed(reader, first + b"\n") == ["Run "]
    assert fed(reader, b"".join(rest) + b"\n") == ["the ", "installer."]


def test_parts_that_are_no_text_are_no_answer():
    parts = [{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "Run"}, {"text": " it"}, {"type": None}]
    chunk = {"model": "m", "choices": [{"delta": {"content": parts, "reasoning_content": "Hm."}}]}
    reader = ChatCompletionsReader()
    assert fed(reader, f"data: {json.dumps(chunk)}\n\n".encode()) == ["Run", " it"]


def test_arguments_that_are_an_object_keep_their_numbers_and_lose_halves_of_characters():
    function = {"name": "read", "arguments": {"size": 1.5, "count": 2, "path": "\ud83d"}}
    reader = ChatCompletionsReader()
    chunk = {"model": "m", "choices": [{"delta": {"tool_calls": [{"function": function}]}, "finish_reason": "stop"}]}
    assert fed(reader, f"data: {json.dumps(chunk)}\n\n".encode()) == []
    (call,) = reader.ending().tool_calls
    assert json.loads(call.arguments) == {"size": 1.5, "count": 2, "path": "\ufffd"}


@pytest.mark.parametrize(
    "memory",
    [
        {"reasoning_details": [{"type": "a", "text": ["a", 1]}] * 2},
        {"thinking_blocks": [{"type": "thinking", "signature": [1]}]},
        {"reasoning_details": [{"half": "\ud83d"}]},
        {"extra_content": {"deep": json.loads("[" * 800 + "]" * 800)}},
    ],
)
async def test_memory_that_cannot_be_sent_back_ends_no_reply(memory):
    reader = ChatCompletionsReader()
    chunk = {"model": "m", "choices": [{"delta": {"content": "Run", **memory}, "finish_reason": "stop"}]}
    assert fed(reader, f"data: {json.dumps(chunk)}\n\n".encode()) == ["Run"]
    ending = reader.ending()
    assert ending.reason == "stop"
    assert ending.memory is None or (await packed(ending.memory, "own")).data


@pytest.mark.parametrize("text", ["a", 'q"uote', "\\", "\n\u2028", "🌍", "", "data: x", '"},"finish_reason":null}]}'])
def test_chunk_like_the_one_before_is_read_as_the_first(text):
    chunks = [
        {"model": "m", "choices": [{"index": 0, "delta": {"content": each}}]} for each in ("one", "two", text, "end")
    ]
    events = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": each}}
        for each in ("one", "two", text, "end")
    ]
    for reader, documents in ((ChatCompletionsReader(), chunks), (MessagesReader(), events)):
        read_texts = [each for one in documents for each in fed(reader, f"data: {json.dumps(one)}\n\n".encode())]
        assert "".join(read_texts) == f"onetwo{text}end"


async def test_small_piece_that_ends_a_long_document_is_read_in_several_turns():
    """Others have their turn while the document is read, although its last piece is small."""
    content = [{"type": "text", "text": "a"}, *([{"type": "unheard_of"}] * 2_400)]
    data = b"data: %s\n\n" % json.dumps({"type": "message", "content": content, "stop_reason": "end_turn"}).encode()
    turns, at_the_last, is_read = 0, 0, asyncio.Event()

    def pieces():
        nonlocal at_the_last
        yield data[:-100]
        at_the_last = turns
        yield data[-100:]

    async def others():
        nonlocal turns
        while not is_read.is_set():
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    async with reading("anthropic") as read:
        reply = await read(pieces())
    is_read.set()
    await other
    assert (reply.texts, reply.reason) == (["a"], "stop")
    assert turns - at_the_last > 2  # one for the piece, one for the end


def test_text_without_an_end_reason_ends_with_done():
    chunks = [{"model": "m", "choices": [{"index": 0, "delta": {"content": each}}]} for each in ("", "one", "two")]
    reader = ChatCompletionsReader()
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
    assert fed(reader, body.encode()) == ["one", "two"]
    assert reader.ending().reason == "stop"


class Asked(Struct):
    body: dict[str, Any]


ASKED = Asked({"model": "gpt-5.5"})
LOOKED = Reply(
    ("I look. ", "Now."), (Call("read", ('{"path": ', '"a.md"}')), Call("search", ('{"q": "a"}',))), cached_tokens=4
)


def responses_read(*events: bytes, piece: int = 1 << 20) -> tuple[list[str], Ending]:
    reader, data = ResponsesReader(), b"".join(events)
    texts = [text for start in range(0, len(data), piece) for text in fed(reader, data[start : start + piece])]
    return [*texts, *(text for text in reader.finish() if text)], reader.ending()


def without(*kinds: str) -> list[bytes]:
    """The events of a reply of the Responses API but those of these kinds."""
    events = [sent for sent, _ in EVENTS["responses"](ASKED, LOOKED, 1)]
    return [each for each in events if not any(f"event: response.{kind}\n".encode() in each for kind in kinds)]


DELTAS = ("output_text.delta", "function_call_arguments.delta")
DONE = ("output_text.done", "content_part.done", "output_item.done", "function_call_arguments.done")


@pytest.mark.parametrize("piece", [1, 7, 64, 1000, 1 << 20])
@pytest.mark.parametrize(
    "left_out",
    [
        (),
        DONE,
        DELTAS,
        (*DELTAS, "output_text.done", "function_call_arguments.done"),
        (*DELTAS, "output_text.done", "content_part.done", "function_call_arguments.done"),
        (*DELTAS, *DONE, "output_item.added", "created", "in_progress"),
        ("output_item.added",),
    ],
)
def test_response_is_read_once_whichever_of_its_events_come(left_out, piece):
    texts, ending = responses_read(*without(*left_out), piece=piece)
    assert "".join(texts) == "I look. Now."
    assert ending.reason == "tool_calls"
    assert [(call.name, json.loads(call.arguments)) for call in ending.tool_calls] == [
        ("read", {"path": "a.md"}), ("search", {"q": "a"}),
    ]  # fmt: skip
    assert ending.tokens == Tokens(12, 34, cache_read=4)
    assert ending.model == "gpt-5.5"


def test_response_that_is_one_document_is_read():
    document = WHOLE["responses"](ASKED, LOOKED, 1)
    texts, ending = responses_read(json.dumps(document).encode())
    assert "".join(texts) == "I look. Now."
    assert [call.name for call in ending.tool_calls] == ["read", "search"]
    assert ending.tokens == Tokens(12, 34, cache_read=4)


def test_calls_of_a_response_whose_events_have_other_ids_each_time_come_once():
    events = without()
    for number, each in enumerate(events):
        document = json.loads(each.partition(b"data: ")[2])
        if "item_id" in document:
            document["item_id"] = f"other_{number}"
        if "item" in document:
            document["item"]["id"] = f"other_{number}"
        events[number] = b"data: %s\n\n" % json.dumps(document).encode()
    texts, ending = responses_read(*events)
    assert "".join(texts) == "I look. Now."
    assert [call.name for call in ending.tool_calls] == ["read", "search"]


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ({"type": "response.completed", "response": {}}, "stop"),
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}},
            "length",
        ),
        ({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}}, "refused"),
        ({"type": "response.incomplete", "response": None}, "length"),
        ({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "solar flare"}}}, "unknown"),
    ],
)
def test_end_of_a_response_is_ours(last, reason):
    text = {"type": "response.output_text.delta", "delta": "Run it."}
    texts, ending = responses_read(*(f"data: {json.dumps(each)}\n\n".encode() for each in (text, last)))
    assert (texts, ending.reason) == (["Run it."], reason)


@pytest.mark.parametrize(
    ("last", "error"),
    [
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}}, RateLimited),
        ({"type": "error", "code": "server_error", "message": "no"}, Unavailable),
        ({"type": "error", "error": {"type": "insufficient_quota", "message": "no"}}, QuotaUsedUp),
        ({"type": "response.cancelled", "response": {}}, Unavailable),
        ({"detail": "Unauthorized"}, Forbidden),
        ({"type": "response.in_progress", "response": {}}, Unavailable),
    ],
)
def test_response_that_fails_or_stops_is_no_reply(last, error):
    with pytest.raises(error):
        responses_read(f"data: {json.dumps(last)}\n\n".encode())


def test_refused_response_is_shown_and_reported():
    events = [sent for sent, _ in EVENTS["responses"](ASKED, Reply(refusal="I will not."), 1)]
    texts, ending = responses_read(*events)
    assert (texts, ending.reason) == (["I will not."], "refused")
