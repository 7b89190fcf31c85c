"""Streams that no provider means to send: real ones broken, cut, reordered, doubled, and with parts changed.

``scripts/fuzz --streams 100000`` reads that number of each protocol. Chat completions and Messages are read as they
come from the socket, by our readers, and so is Responses; Gemini goes through litellm, from a provider on loopback.
"""

import asyncio
import functools
import json
import random
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from yarl import URL

from service.adapters.models.capabilities import PartRefused
from service.adapters.models.errors import Retries
from service.adapters.models.failures import KINDS, ContentRefused
from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.memory import packed
from service.adapters.models.messages import in_openai_form
from service.adapters.models.model_settings import ModelSettings
from service.adapters.models.responses import ResponsesReader
from service.adapters.models.sources import ProviderSource
from service.adapters.models.streams import ChatCompletionsReader, MessagesReader, StreamReader
from service.domain.errors import ServiceError, Unavailable
from service.domain.model import ReplyMemory, ToolCall
from service.ports.model import (
    MODEL_REPLY_BROKEN,
    MODEL_SENT_NOTHING,
    AssistantMessage,
    ModelEnd,
    ModelRequest,
    ModelText,
    UserMessage,
)
from tests.fakes.provider import Call, Failure, Reply, ScriptedProvider
from tests.fakes.provider_protocols import EVENTS, WHOLE

Protocol = Literal["openai", "anthropic", "responses", "gemini"]
PROTOCOLS: tuple[Protocol, ...] = ("openai", "anthropic", "responses", "gemini")
READERS: dict[str, Callable[[], StreamReader]] = {
    "openai": ChatCompletionsReader,
    "anthropic": MessagesReader,
    "responses": ResponsesReader,
}
SAMPLES = Path(__file__).parent.parent / "samples" / "providers"
MOST_SECONDS = 0.010
"""Processor time of one turn of the event loop."""
MOST_READ = 384 * 1024
"""Bytes that a socket gives at once: as much as waits before reading from it is paused, and one reading more."""

ALLOWED = {(kind.error, kind.code or kind.error.code) for kind in KINDS.values()} | {
    (Unavailable, code) for code in (Unavailable.code, MODEL_REPLY_BROKEN, MODEL_SENT_NOTHING)
}
"""The failures that a stream may end in."""

SIGNED: dict[str, Any] = {"google": {"thought_signature": "c2ln"}}
MEMORIES: tuple[dict[str, Any], ...] = (
    {"reasoning_content": "Hm."},
    {"reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0}]},
    {"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]},
    {"extra_content": SIGNED, "provider_specific_fields": {"a": [1]}},
    {"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}]},
    {"tool_calls": [{"id": "a", "function": {"name": "read", "arguments": {"path": "a"}}, "extra_content": SIGNED}]},
    {"function_call": {"name": "read", "arguments": '{"path": "a"}'}},
    {"refusal": "I will not."},
)
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 7, 2**63, 10**30, "", " ", "a" * 3_000, "\x00", "\ud83d", "\u202e", "ü🌍", [], {}, [[]],
    [None], {"a": {}}, ["a", 1], {"0": {}}, "stop", "length", "error", "{", '{"path": "a"}', '"', "}", "<tool_call>",
    {"message": "maximum context length is 8192 tokens", "code": 400}, {"error": {"error": {"error": "x"}}},
    [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}], {"type": "text", "text": 1},
    [{"type": "thinking", "thinking": ["a", 1], "text": [1], "signature": ["x"]}] * 2,
)  # fmt: skip
LINES: tuple[bytes, ...] = (
    b": waiting\n\n", b"event: ping\ndata: {}\n\n", b"data: [DONE]\n\n", b"data:\n\n", b"data: {\n\n", b"data: {\n",
    b"\r", b"\n\n", b"id: 1\nretry: 5\n\n", b"data: null\n\n", b"data: []\n\n", b'data: {"error": "x"}\n\n', b"{", b"[",
    b'data: {"error": {"code": 429, "message": "rate limit"}}\n\n', b"<html>", b"\xef\xbb\xbf", b"\xff\xfe",
    b'data: {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}\n\n', b"data: NaN\n\n",
)  # fmt: skip


class _Asked(Struct):
    body: dict[str, Any]


ASKED = _Asked({"model": "m", "stream_options": {"include_usage": True}})
CALLS = (Call("read", ('{"path": ', '"a.md"}')), Call("search", ('{"query": "a"}',)))
REPLIES = (
    Reply(("Run ", "the ", "installer [1].")),
    Reply(("I look. ",), CALLS),
    Reply((), CALLS),
    Reply(("It is",), reason="length"),
    Reply(refusal="No."),
)


def _real(protocol: Protocol) -> list[list[bytes]]:
    """The events of streams that are meant."""
    found = [[sent for sent, _ in EVENTS[protocol](ASKED, reply, 1)] for reply in REPLIES]
    if protocol in WHOLE:
        found += [[f"data: {json.dumps(WHOLE[protocol](ASKED, reply, 1))}\n\n".encode()] for reply in REPLIES]
    folder = SAMPLES / protocol
    files = sorted(folder.glob("*.sse")) if folder.is_dir() else []
    found += [[event + b"\n\n" for event in file.read_bytes().split(b"\n\n") if event.strip()] for file in files]
    if protocol == "openai":
        for memory in MEMORIES:
            chunk = {"model": "m", "choices": [{"index": 0, "delta": memory, "finish_reason": None}]}
            found.append([f"data: {json.dumps(chunk)}\n\n".encode(), *found[0]])
    return found


def streams(protocol: Protocol, *, seed: int, count: int) -> Iterator[list[bytes]]:
    """Yield streams as the pieces in which they come from a socket, the same for the same seed."""
    chance, real = random.Random(seed), _real(protocol)
    for _ in range(count):
        events = list(chance.choice(real))
        for _ in range(chance.choice((1, 1, 2, 3, 5))):
            _change(events, chance, real)
        data = b"".join(events)
        if chance.random() < 0.3:
            data = _broken(data, chance)
        yield list(_pieces(data, chance))


def _change(events: list[bytes], chance: random.Random, real: list[list[bytes]]) -> None:
    at = chance.randrange(len(events) + 1)
    one = events[min(at, len(events) - 1)] if events else b""
    match chance.randrange(12):
        case 0:
            del events[at:]
        case 1:
            del events[at : at + 1]
        case 2:
            events.insert(at, one)
        case 3:
            chance.shuffle(events)
        case 4:
            events.extend(events)
            del events[200:]
        case 5:
            events.insert(at, chance.choice(LINES))
        case 6:
            events[at:at] = chance.choice(real)
        case 7:
            events[at:at] = [one] * chance.choice((2, 10, 100, 2_000) if len(one) < 1_000 else (2,))
        case _ if events:
            events[min(at, len(events) - 1)] = _with_changed_part(one, chance)


def _with_changed_part(event: bytes, chance: random.Random) -> bytes:
    """Change one place of an event's document, at any depth."""
    head, found, tail = event.partition(b"data:")
    try:
        document = json.loads(tail)
    except ValueError:
        return event
    value = document
    while isinstance(value, dict | list) and value:
        key = chance.choice(list(value) if isinstance(value, dict) else list(range(len(value))))
        if isinstance(value[key], dict | list) and value[key] and chance.random() < 0.8:
            value = value[key]
            continue
        kind = chance.random()
        if kind < 0.15:
            del value[key]
        elif kind < 0.25 and isinstance(value, dict):
            value[chance.choice(("error", "message", "content", "usage", "index", "id", "type", "0"))] = value[key]
        elif kind < 0.30:
            value[key] = [value[key]] * chance.choice((2, 50, 5_000) if len(event) < 2_000 else (2,))
        elif kind < 0.33:
            value[key] = _nested(chance.choice((3, 60, 400, 900)), value[key], chance)
        elif kind < 0.36:
            value[key] = chance.choice(('"', "}", "a ", "\\", "\u4e2d", "{}", "[1,")) * chance.choice((500, 60_000))
        else:
            value[key] = chance.choice(ODD)
        break
    separators = chance.choice(((",", ":"), (", ", ": ")))
    try:
        changed = json.dumps(document, separators=separators)
    except RecursionError:  # nested twice
        return event
    return b"%s%s%s\n\n" % (head, found, changed.encode())


def _nested(levels: int, value: Any, chance: random.Random) -> Any:
    kind = chance.randrange(3)
    for _ in range(levels):
        value = [value] if kind == 0 else {"a": value} if kind == 1 else {"type": "text", "text": value}
    return value


def _broken(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    other = chance.randrange(len(data) + 1)
    match chance.randrange(14):
        case 0:
            return data[:at]
        case 1:
            return data[at:]
        case 2:
            return data[:at] + bytes(chance.choices(range(256), k=3)) + data[at:]
        case 3:
            return data + data
        case 4:
            return b"[" * chance.randrange(5_000) + data
        case 5:
            return (
                data[:at] + chance.choice((rb"\ud800", rb"\u0000", rb"\x", b"\xff\xfe", b"NaN", b"1e999")) + data[at:]
            )
        case 6:
            return data.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n")))
        case 7:
            return data.replace(b"\n\n", b"\n")
        case 8:
            return data.replace(b"data: ", b"").replace(b"data:", b"")
        case 9:
            return data.replace(b",", b",\ndata: ")
        case 10:
            return data[: min(at, other)] + data[max(at, other) :]
        case 11:
            return data[:at] + data[at:other] * chance.choice((2, 20))
        case 12:
            filler = chance.choice(
                (b"data: x\n", b"data: [1,\n", b"data: \n\n", b": a\n\n", b"data: {}\n\n", b"\r", b" ")
            )
            return data[:at] + filler * chance.choice((100, 3_000, 40_000)) + data[at:]
        case _:
            return data[:at] + chance.choice((b"a", b"\xff", b"\\", b"[", b'{"a":')) * 600_000 + data[at:]


def _pieces(data: bytes, chance: random.Random) -> Iterator[bytes]:
    most = chance.choice((1, 16, 200, 4_000, MOST_READ, MOST_READ))
    if len(data) > 4_000 * most:
        most = MOST_READ
    start = 0
    while start < len(data):
        end = start + chance.randint(max(1, most // 2), most)
        yield data[start:end]
        start = end


class Found(Struct):
    """The outcome of reading streams."""

    ends: Counter[str] = field(default_factory=Counter)
    """How often each end came."""
    wrong: list[str] = []
    """Streams that ended in another exception than those of the table, or broke a promise, with which."""
    most_seconds: float = 0.0
    """The longest turn of the event loop, in processor time."""
    slow: list[str] = []
    """Streams with a turn over ``MOST_SECONDS``."""
    most_bytes: int = 0
    """The most memory that was taken while one stream was read, of those for which that was measured."""
    measured: int = 0
    """Streams for which it was: one of ``MEASURED``, and each that is longer than all before."""

    def note_turns(self, turns: "Turns", stream: list[bytes]) -> None:
        self.most_seconds = max(self.most_seconds, turns.most_seconds)
        if turns.most_seconds > MOST_SECONDS:
            self.slow.append(f"a turn took {1000 * turns.most_seconds:.1f} ms: {_shown(stream)}")


def _shown(stream: list[bytes]) -> str:
    data = b"".join(stream)
    return f"{len(data)} bytes in {len(stream)} pieces, {data[:300]!r} … {data[-200:]!r}"


class Turns:
    """Awaits a coroutine, and notes the most processor time that it takes in one turn of the event loop."""

    def __init__(self, coroutine: Coroutine[Any, Any, "Read"]) -> None:
        self._coroutine = coroutine
        self.most_seconds = 0.0

    def __await__(self) -> Generator[Any, None, "Read"]:
        thrown: BaseException | None = None
        while True:
            began = time.thread_time()
            try:
                waits_for = self._coroutine.send(None) if thrown is None else self._coroutine.throw(thrown)
            except StopIteration as done:
                return done.value
            finally:
                self.most_seconds = max(self.most_seconds, time.thread_time() - began)
            thrown = None
            try:
                yield waits_for
            except asyncio.CancelledError as cancelled:
                thrown = cancelled


class _Content:
    """The pieces of a body, as ``aiohttp.StreamReader`` gives them."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)

    def is_eof(self) -> bool:
        return True

    async def readany(self) -> bytes:
        await asyncio.sleep(0)
        return next(self._pieces, b"")


class _Response:
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.content = _Content(pieces)
        self.url = URL("http://127.0.0.1/v1/chat/completions")


SPEC = ModelSettings(alias="a", model="openai/a")


class Read(Struct):
    """A reply that was read to its end."""

    texts: list[str]
    reason: str = ""
    calls: tuple[ToolCall, ...] = ()
    memory: ReplyMemory | None = None


def promise_broken(reply: Read) -> str:
    """Return which promise a reply breaks: it can be recorded, and sent back to its provider."""
    if not all(reply.texts):
        return "an empty text"
    if len({call.id for call in reply.calls}) < len(reply.calls) or not all(
        each.id and each.name for each in reply.calls
    ):
        return "calls without a name or an id of their own"
    said = AssistantMessage("".join(reply.texts), reply.calls, reply.memory)
    try:
        msgspec.json.encode(said)
        msgspec.json.encode(in_openai_form(said, owner="own"))
    except (ValueError, RecursionError, TypeError) as error:
        return f"cannot be recorded or sent back: {error!r}"
    return ""


MEASURED = 200


async def read_all(protocol: Protocol, *, seed: int, count: int) -> Found:
    """Read streams, and note how they end."""
    found, longest = Found(), 0
    async with reading(protocol) as read:
        for number, stream in enumerate(streams(protocol, seed=seed, count=count)):
            length = sum(map(len, stream))
            is_measured, longest = number % MEASURED == 0 or length > longest, max(length, longest)
            turns = Turns(read(stream))
            if is_measured:  # the stream itself is there already
                tracemalloc.start()
            try:
                reply = await turns
            except (ServiceError, ContentRefused) as error:
                _note_failure(found, error, stream)
            except Exception as error:  # noqa: BLE001  what is looked for
                found.ends[f"{type(error).__name__}"] += 1
                place = traceback.extract_tb(error.__traceback__)[-1]
                found.wrong.append(f"{error!r} in {place.name}, line {place.lineno}: {_shown(stream)}")
            else:
                found.ends[reply.reason] += 1
                if broken := promise_broken(reply):
                    found.wrong.append(f"{broken}: {_shown(stream)}")
            if is_measured:
                found.most_bytes = max(found.most_bytes, tracemalloc.get_traced_memory()[1])
                found.measured += 1
                tracemalloc.stop()
            else:
                found.note_turns(turns, stream)
    return found


@asynccontextmanager
async def reading(protocol: Protocol) -> AsyncIterator[Callable[[Iterable[bytes]], Coroutine[Any, Any, Read]]]:
    """Give what reads a stream of a protocol."""
    if protocol in READERS:
        yield functools.partial(_read_here, READERS[protocol])
        return
    async with ScriptedProvider() as provider:
        settings = ModelSettings(alias="a", model="gemini/gemini-2.5-pro", api_base=provider.url)
        model = LitellmModel(settings, env={"GEMINI_API_KEY": "key"}, retries=Retries(tries=1))
        await model.prepare()
        try:
            yield functools.partial(_read_through_litellm, provider, model)
        finally:
            await model.close()


async def _read_here(reader: Callable[[], StreamReader], stream: Iterable[bytes]) -> Read:
    source = ProviderSource(_Response(stream), reader(), SPEC)  # type: ignore[arg-type]
    texts: list[str] = []
    try:
        while (found := await source.read()) is not None:
            texts.extend(found)
        ending = await source.ending()
        memory = await packed(ending.memory, "own") if ending.memory is not None else None
        return Read(texts, ending.reason, ending.tool_calls, memory)
    finally:
        await source.close()


async def _read_through_litellm(provider: ScriptedProvider, model: LitellmModel, stream: Iterable[bytes]) -> Read:
    provider.will(Failure(200, body=b"".join(stream), headers={"content-type": "text/event-stream"}))
    provider.asked.clear()
    reply = Read([])
    async for chunk in model.reply(ModelRequest((UserMessage("Look."),))):
        if isinstance(chunk, ModelEnd):
            reply = Read(reply.texts, chunk.reason, chunk.tool_calls, chunk.memory)
        elif isinstance(chunk, ModelText):
            reply.texts.append(chunk.text)
    return reply


def _note_failure(found: Found, error: Exception, stream: list[bytes]) -> None:
    if isinstance(error, PartRefused):
        error = error.otherwise
    if isinstance(error, ContentRefused):
        found.ends["refused by a filter"] += 1
        return
    assert isinstance(error, ServiceError)
    found.ends[error.code] += 1
    if (type(error), error.code) not in ALLOWED:
        found.wrong.append(f"{error!r}: {_shown(stream)}")
