"""A model provider on this machine that says what a script tells it to.

It speaks OpenAI's chat completions and responses (``provider.openai_base``) and Anthropic's messages
(``provider.anthropic_base``), event for event as the real ones do, so that everything up to the socket is tested::

    async with ScriptedProvider() as provider:
        provider.will_reply("Hel", "lo")
        provider.will_fail(429, headers={"retry-after": "3"})

Replies are given in order; when the script is empty, ``answer`` is asked. As a process of its own it answers whatever
it is asked, for end-to-end tests: ``python -m tests.fakes.provider --port 0 --chunks 40 --delay-ms 20``, which prints
``listening on http://127.0.0.1:PORT`` first.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

from aiohttp import web
from msgspec import Struct

CREATED = 1_760_000_000
"""Fixed, so that what is sent can be compared."""

Protocol = Literal["openai", "responses", "anthropic"]


class Call(Struct, frozen=True):
    """A tool call of a reply; its arguments go out in these pieces."""

    name: str
    pieces: tuple[str, ...] = ("{}",)
    id: str = ""

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class Reply(Struct, frozen=True):
    """A reply, or half of one."""

    texts: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    refusal: str = ""
    input_tokens: int = 12
    output_tokens: int = 34
    cached_tokens: int = 0
    """Of the input tokens, those read from the cache."""
    reason: Literal["stop", "length", "refused", ""] = ""
    """Empty: what follows from the rest."""
    model: str = ""
    """Empty: the model that was asked for."""
    counts: bool = True
    """False: no usage is told."""
    delay_seconds: float = 0.0
    """Before each text."""
    after: int | None = None
    """The number of texts after which the following happens; None: never. -1: before the status line."""
    hold: asyncio.Event | None = None
    """Wait for it, then go on."""
    cut: bool = False
    """Break the connection off."""
    raw: bytes = b""
    """Send this, then go on."""
    error: str = ""
    """Send an error of this type into the stream, then end."""


class Failure(Struct, frozen=True):
    """An answer that is not a reply."""

    status: int
    type: str = "api_error"
    message: str = "scripted failure"
    code: str | None = None
    headers: dict[str, str] = {}
    body: bytes | None = None
    """Instead of an error in the protocol's form."""


class Asked:
    """A request as it came."""

    def __init__(self, protocol: Protocol, request: web.Request, body: dict[str, Any]) -> None:
        self.protocol = protocol
        self.path = request.path
        self.headers = {name.lower(): value for name, value in request.headers.items()}
        self.body = body
        self.peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        """The client's end of the connection."""
        self.disconnected = asyncio.Event()
        self.disconnected_at: float | None = None
        """``time.monotonic()`` when the client went away before the end."""
        self.finished = asyncio.Event()

    def left(self) -> None:
        self.disconnected_at = time.monotonic()
        self.disconnected.set()

    @property
    def key(self) -> str:
        """The key that came with it."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key", bearer)


def plausible(asked: Asked) -> Reply:
    """The last question said back, in words; what the standalone process answers."""
    question = _last_text(asked.body)
    words = f"You asked: {question.strip()[:400]} The documentation answers this in its first section [1].".split(" ")
    return Reply((*(f"{word} " for word in words[:-1]), words[-1]), input_tokens=200, output_tokens=len(words))


def _last_text(body: dict[str, Any]) -> str:
    for message in reversed(body.get("messages") or body.get("input") or []):
        content = message.get("content")
        if message.get("role") == "user":
            if isinstance(content, str):
                return content
            return " ".join(part.get("text", "") for part in content or [] if isinstance(part, dict))
    return ""


class ScriptedProvider:
    def __init__(self, answer: Callable[[Asked], Reply | Failure] | None = None, *, port: int = 0) -> None:
        self._answer = answer or (lambda _asked: Failure(400, "invalid_request_error", "nothing is scripted"))
        self._script: list[Reply | Failure] = []
        self._numbers = itertools.count(1)
        self.asked: list[Asked] = []
        self._arrivals: asyncio.Queue[Asked] = asyncio.Queue()
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_base(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_base(self) -> str:
        return self.url

    def will_reply(self, *texts: str, calls: tuple[Call, ...] = (), **more: Any) -> None:
        """``more`` are the other fields of ``Reply``."""
        self._script.append(Reply(texts, calls, **more))

    def will_fail(self, status: int, type: str = "api_error", message: str = "scripted failure", **more: Any) -> None:  # noqa: A002
        """``more`` are the other fields of ``Failure``."""
        self._script.append(Failure(status, type, message, **more))

    async def next_asked(self) -> Asked:
        """The next request that has not been taken yet, as soon as it is there."""
        return await self._arrivals.get()

    async def __aenter__(self) -> "ScriptedProvider":
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._openai)
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_post("/v1/messages", self._anthropic)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _openai(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("openai", request)

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("responses", request)

    async def _anthropic(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("anthropic", request)

    async def _serve(self, protocol: Protocol, request: web.Request) -> web.StreamResponse:
        asked = Asked(protocol, request, await request.json())
        self.asked.append(asked)
        self._arrivals.put_nowait(asked)
        reply = self._script.pop(0) if self._script else self._answer(asked)
        number = next(self._numbers)
        try:
            if isinstance(reply, Failure):
                return _fail(protocol, reply, number)
            if reply.after == -1:
                await self._happen(asked, reply, request, None)
            if asked.body.get("stream"):
                return await self._stream(asked, reply, request, number)
            return web.json_response(_WHOLE[protocol](asked, reply, number), headers=_headers(protocol, number))
        except asyncio.CancelledError:
            asked.left()
            raise
        except ConnectionError:
            asked.left()
            return web.Response()  # to nobody
        finally:
            asked.finished.set()

    async def _stream(self, asked: Asked, reply: Reply, request: web.Request, number: int) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
                **_headers(asked.protocol, number),
            }
        )
        await response.prepare(request)
        events = _EVENTS[asked.protocol](asked, reply, number)
        texts = 0
        if reply.after == 0 and not await self._happen(asked, reply, request, response):
            return response
        for data, is_text in events:
            if is_text and reply.delay_seconds:
                await asyncio.sleep(reply.delay_seconds)
            await response.write(data)
            texts += is_text
            if is_text and texts == reply.after and not await self._happen(asked, reply, request, response):
                return response
        await response.write_eof()
        return response

    async def _happen(
        self, asked: Asked, reply: Reply, request: web.Request, response: web.StreamResponse | None
    ) -> bool:
        """What the script has happen in the middle of a reply. Whether the reply goes on."""
        if reply.hold is not None:
            await reply.hold.wait()
        if reply.raw and response is not None:
            await response.write(reply.raw)
        if reply.error and response is not None:
            error = {"type": reply.error, "message": "scripted failure"}
            if asked.protocol == "responses":
                await response.write(_event("error", {**error, "code": reply.error, "param": None}))
            elif asked.protocol == "anthropic":
                await response.write(_event("error", {"error": error}))
            else:
                await response.write(_data({"error": {**error, "code": reply.error, "param": None}}))
            await response.write_eof()
            return False
        if reply.cut:
            if request.transport is not None:
                request.transport.abort()
            return False
        return True


def _headers(protocol: Protocol, number: int) -> dict[str, str]:
    return {("request-id" if protocol == "anthropic" else "x-request-id"): f"req_{number:024}"}


def _fail(protocol: Protocol, failure: Failure, number: int) -> web.Response:
    if failure.body is not None:
        return web.Response(status=failure.status, body=failure.body, headers=failure.headers)
    body: dict[str, Any]
    if protocol != "anthropic":
        body = {"error": {"message": failure.message, "type": failure.type, "param": None, "code": failure.code}}
    else:
        body = {
            "type": "error",
            "error": {"type": failure.type, "message": failure.message},
            "request_id": f"req_{number:024}",
        }
    return web.json_response(body, status=failure.status, headers={**_headers(protocol, number), **failure.headers})


def _data(document: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(document, separators=(',', ':'))}\n\n".encode()


def _openai_reason(reply: Reply) -> str:
    match reply.reason:
        case "refused":
            return "content_filter"
        case "":
            return "tool_calls" if reply.calls else "stop"
        case reason:
            return reason


def _openai_usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _openai_events(asked: Asked, reply: Reply, number: int) -> Iterator[tuple[bytes, bool]]:
    """Events with whether each is a text of the script."""
    with_usage = bool((asked.body.get("stream_options") or {}).get("include_usage")) and reply.counts

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _data({**head, "choices": [choice], **({"usage": None} if with_usage else {})})

    head = {
        "id": f"chatcmpl-{number:029}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": reply.model or asked.body["model"],
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }
    only_calls = bool(reply.calls) and not reply.texts
    yield chunk({"role": "assistant", "content": None if only_calls else "", "refusal": None}), False
    for text in reply.texts:
        yield chunk({"content": text}), True
    if reply.refusal:
        yield chunk({"refusal": reply.refusal}), True
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        opening = {"index": index, "id": _call_id(call, index, "call_"), "type": "function", "function": function}
        yield chunk({"tool_calls": [opening]}), False
        for piece in call.pieces:
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), False
    yield chunk({}, _openai_reason(reply)), False
    if with_usage:
        yield _data({**head, "choices": [], "usage": _openai_usage(reply)}), False
    yield b"data: [DONE]\n\n", False


def _openai_whole(asked: Asked, reply: Reply, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(reply.texts) or None,
        "refusal": reply.refusal or None,
        "annotations": [],
    }
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": _call_id(call, index, "call_"),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for index, call in enumerate(reply.calls)
        ]
    return {
        "id": f"chatcmpl-{number:029}",
        "object": "chat.completion",
        "created": CREATED,
        "model": reply.model or asked.body["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _openai_reason(reply)}],
        "usage": _openai_usage(reply),
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _call_id(call: Call, index: int, prefix: str) -> str:
    return call.id or f"{prefix}{index:024}"


def _responses_whole(asked: Asked, reply: Reply, number: int) -> dict[str, Any]:
    text = "".join((*reply.texts, reply.refusal))
    output: list[dict[str, Any]] = []
    if text:
        content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        output.append(
            {
                "id": f"msg_{number:024}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [content],
            }
        )
    for index, call in enumerate(reply.calls):
        output.append(
            {
                "id": f"fc_{index:024}",
                "type": "function_call",
                "status": "completed",
                "call_id": _call_id(call, index, "call_"),
                "name": call.name,
                "arguments": call.arguments,
            }
        )
    usage = {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
    is_cut = reply.reason == "length"
    return {
        "id": f"resp_{number:024}",
        "object": "response",
        "created_at": CREATED,
        "status": "incomplete" if is_cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "instructions": None,
        "model": reply.model or asked.body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": asked.body.get("tools", []),
        "usage": usage,
    }


def _responses_events(asked: Asked, reply: Reply, number: int) -> Iterator[tuple[bytes, bool]]:
    numbers = itertools.count()

    def event(name: str, **fields: Any) -> bytes:
        return _event(name, {"sequence_number": next(numbers), **fields})

    whole = _responses_whole(asked, reply, number)
    started = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield event("response.created", response=started), False
    yield event("response.in_progress", response=started), False
    for index, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            begun = {**item, "status": "in_progress", "content": []}
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            yield event("response.output_item.added", output_index=index, item=begun), False
            yield event("response.content_part.added", **at, content_index=0, part=part), False
            for text in (*reply.texts, *([reply.refusal] if reply.refusal else [])):
                yield event("response.output_text.delta", **at, content_index=0, delta=text, logprobs=[]), True
            text = item["content"][0]["text"]
            yield event("response.output_text.done", **at, content_index=0, text=text, logprobs=[]), False
            yield event("response.content_part.done", **at, content_index=0, part=item["content"][0]), False
        else:
            call = next(
                call for call in reply.calls if call.name == item["name"] and call.arguments == item["arguments"]
            )
            begun = {**item, "status": "in_progress", "arguments": ""}
            yield event("response.output_item.added", output_index=index, item=begun), False
            for piece in call.pieces:
                yield event("response.function_call_arguments.delta", **at, delta=piece), False
            yield event("response.function_call_arguments.done", **at, arguments=call.arguments), False
        yield event("response.output_item.done", output_index=index, item=item), False
    yield event(f"response.{whole['status']}", response=whole), False


def _event(name: str, fields: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields}, separators=(',', ':'))}\n\n".encode()


def _anthropic_reason(reply: Reply) -> str:
    match reply.reason:
        case "refused":
            return "refusal"
        case "length":
            return "max_tokens"
        case _:
            return "refusal" if reply.refusal else "tool_use" if reply.calls else "end_turn"


def _anthropic_usage(reply: Reply, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": reply.input_tokens - reply.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def _anthropic_events(asked: Asked, reply: Reply, number: int) -> Iterator[tuple[bytes, bool]]:
    message = {
        "model": reply.model or asked.body["model"],
        "id": f"msg_{number:024}",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _anthropic_usage(reply, 1),
    }
    yield _event("message_start", {"message": message}), False
    blocks = 0
    texts = (*reply.texts, *([reply.refusal] if reply.refusal else []))
    if texts:
        yield _event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}), False
        yield _event("ping", {}), False
        for text in texts:
            yield _event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}}), True
        yield _event("content_block_stop", {"index": 0}), False
        blocks = 1
    for index, call in enumerate(reply.calls, blocks):
        block = {"type": "tool_use", "id": _call_id(call, index, "toolu_"), "name": call.name, "input": {}}
        yield _event("content_block_start", {"index": index, "content_block": block}), False
        for piece in ("", *call.pieces):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield _event("content_block_delta", {"index": index, "delta": delta}), False
        yield _event("content_block_stop", {"index": index}), False
    delta = {"stop_reason": _anthropic_reason(reply), "stop_sequence": None}
    yield _event("message_delta", {"delta": delta, "usage": _anthropic_usage(reply, reply.output_tokens)}), False
    yield _event("message_stop", {}), False


def _anthropic_whole(asked: Asked, reply: Reply, number: int) -> dict[str, Any]:
    text = "".join((*reply.texts, reply.refusal))
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for index, call in enumerate(reply.calls, len(content)):
        call_id, arguments = _call_id(call, index, "toolu_"), json.loads(call.arguments)
        content.append({"type": "tool_use", "id": call_id, "name": call.name, "input": arguments})
    return {
        "model": reply.model or asked.body["model"],
        "id": f"msg_{number:024}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": _anthropic_reason(reply),
        "stop_sequence": None,
        "usage": _anthropic_usage(reply, reply.output_tokens),
    }


_EVENTS = {"openai": _openai_events, "responses": _responses_events, "anthropic": _anthropic_events}
_WHOLE = {"openai": _openai_whole, "responses": _responses_whole, "anthropic": _anthropic_whole}


@contextlib.asynccontextmanager
async def answering(*, port: int, chunks: int, delay_seconds: float) -> AsyncIterator[ScriptedProvider]:
    """A provider that answers everything, in about so many pieces."""

    def answer(asked: Asked) -> Reply:
        reply = plausible(asked)
        texts = itertools.islice(itertools.cycle(reply.texts), chunks) if chunks else reply.texts
        return Reply(tuple(texts), input_tokens=reply.input_tokens, output_tokens=chunks, delay_seconds=delay_seconds)

    async with ScriptedProvider(answer, port=port) as provider:
        yield provider


async def _main() -> None:
    parser = argparse.ArgumentParser(description="A model provider that answers everything.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--chunks", type=int, default=0, help="pieces of an answer; 0: one for each word")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="before each piece")
    options = parser.parse_args()
    async with answering(port=options.port, chunks=options.chunks, delay_seconds=options.delay_ms / 1000) as provider:
        print(f"listening on {provider.url}", flush=True)  # noqa: T201  whoever starts it needs the port
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
