"""Streams of models' providers, whatever stands in them, are read in time and memory that they do not decide."""

import asyncio
import contextlib
import itertools
import json
import tracemalloc

import pytest

from service.adapters.models.failures import ContentRefused
from service.domain.errors import ServiceError
from tests.adapters.stream_fuzzing import MOST_READ, read_all, reading
from tests.hostile.growth import assert_linear

pytestmark = pytest.mark.slow

PROTOCOLS = ("openai", "anthropic", "responses")
STREAMS = 2_000
MEBIBYTE = 1 << 20
SENT = 24 * MEBIBYTE
MOST_HELD = 30 * MEBIBYTE


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_broken_stream_ends_as_the_table_says(protocol):
    found = await read_all(protocol, seed=1, count=STREAMS)
    assert found.wrong == []
    assert {"stop", "tool_calls", "length", "refused", "model_reply_broken"} <= found.ends.keys()


def chunk(**delta):
    return b"data: %s\n\n" % json.dumps({"model": "m", "choices": [{"index": 0, "delta": delta}]}).encode()


def event(kind, **fields):
    return b"data: %s\n\n" % json.dumps({"type": kind, **fields}).encode()


def calls(**piece):
    return chunk(tool_calls=[piece])


NAMED = {"name": "read"}
BEGIN = calls(index=0, id="a", function={"name": "read", "arguments": '{"a": "'})
BLOCK = {"type": "thinking", "thinking": "", "signature": ""}
TOOL = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
SHAPES = {
    "a line": ("openai", b'data: {"a": "', b"a", b""),
    "a document": ("openai", b'{"a": "', b"a", b""),
    "a document of brackets": ("openai", b"{", b"[", b""),
    "lines of a document": ("openai", b"", b"data: [1,\n", b""),
    "lines of no document": ("openai", b"", b"data: x\n", b""),
    "documents in one event": ("openai", b"data: [\n", b"data: {}\n", b"\n"),
    "blanks": ("openai", b"data: {}\n\n", b"\n", b""),
    "returns": ("openai", b"data: {}\n\n", b"\r", b""),
    "comments": ("openai", b"", b": a\n\n", b""),
    "rubbish behind the end": ("openai", chunk(content="a") + b"data: [DONE]\n\n", b"data: {x\n\n", b""),
    "choices": ("openai", b'data: {"choices": [{"delta": {"content": 1}}', b",{}", b"]}\n\n"),
    "calls": ("openai", b'data: {"choices": [{"delta": {"content": 1, "tool_calls": [{}', b",{}", b"]}}]}\n\n"),
    "parts": ("openai", b'data: {"choices": [{"delta": {"content": ["a"', b',"a"', b"]}}]}\n\n"),
    "texts": ("openai", b"", chunk(content="a"), b""),
    "arguments": ("openai", BEGIN, calls(index=0, function={"arguments": '"'}), b""),
    "arguments, named again": ("openai", BEGIN, calls(index=0, function={**NAMED, "arguments": '"}'}), b""),
    "arguments, another id": ("openai", BEGIN, calls(index=0, id="b", function={"arguments": '"'}), b""),
    "the same call": ("openai", BEGIN, calls(function={**NAMED, "arguments": "{}"}), b""),
    "thoughts": ("openai", b"", chunk(reasoning_content="a"), b""),
    "parts of thoughts": ("openai", b"", chunk(reasoning_details=[{"type": "a", "text": "a"}]), b""),
    "blocks of thoughts": ("anthropic", b"", event("content_block_start", index=0, content_block=BLOCK), b""),
    "pieces of a call": (
        "anthropic",
        event("content_block_start", index=0, content_block=TOOL),
        event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": '"'}),
        b"",
    ),
    "blocks": ("anthropic", b'data: {"type": "message", "content": [{}', b',{"type": "tool_use"}', b"]}\n\n"),
    "texts of a response": ("responses", b"", event("response.output_text.delta", output_index=0, delta="a"), b""),
    "texts that came whole": ("responses", b"", event("response.output_text.done", content_index=0, text="a"), b""),
    "items": ("responses", b'data: {"object": "response", "output": [{}', b',{"type": "function_call"}', b"]}\n\n"),
    "parts of an item": (
        "responses",
        b'data: {"type": "response.output_item.done", "item": {"type": "message", "content": [{}',
        b',{"text": "a"}',
        b"]}}\n\n",
    ),
    "pieces of a call of a response": (
        "responses",
        event("response.output_item.added", output_index=0, item={"type": "function_call", "name": "read"}),
        event("response.function_call_arguments.delta", output_index=0, delta='"'),
        b"",
    ),
    "items without an index": ("responses", b"", event("response.refusal.done", item_id="a", refusal="a"), b""),
    "an error of errors": ("openai", b"data: ", b'{"error":', b""),
    "words of an error": ("openai", b'data: {"error": {"message": ["', b"a ", b'"]}}\n\n'),
}  # fmt: skip


async def consume(protocol, pieces):
    async with reading(protocol) as read:
        with contextlib.suppress(ServiceError, ContentRefused):
            await read(pieces)


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_takes_time_in_proportion_to_the_stream(shape):
    protocol, before, repeated, behind = SHAPES[shape]

    def sized(size):
        data = before + repeated * (size // len(repeated)) + behind
        return [data[at : at + MOST_READ] for at in range(0, len(data), MOST_READ)]

    assert_linear(lambda pieces: asyncio.run(consume(protocol, pieces)), sized, shape, first=64_000, largest=MEBIBYTE)


HELD = (
    "a line", "a document", "lines of a document", "lines of no document", "arguments, named again", "the same call",
    "thoughts", "blocks of thoughts",
)  # fmt: skip


@pytest.mark.parametrize("shape", HELD)
def test_stream_without_end_holds_little_memory(shape):
    protocol, before, repeated, _ = SHAPES[shape]
    piece = repeated * (MOST_READ // len(repeated))
    pieces = itertools.chain([before], itertools.repeat(piece, SENT // len(piece)))
    tracemalloc.start()
    try:
        asyncio.run(consume(protocol, pieces))
        assert tracemalloc.get_traced_memory()[1] < MOST_HELD
    finally:
        tracemalloc.stop()
