"""What providers send: replies and failures in the protocols of OpenAI, Anthropic and Gemini."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from typing import Any, Literal
from typing import Protocol as TypingProtocol

from aiohttp import web
from msgspec import Struct

CREATED = 1_760_000_000
"""Fixed, so that what is sent can be compared."""

Protocol = Literal["openai", "responses", "anthropic", "gemini"]


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


class HasBody(TypingProtocol):
    """A request, as far as an answer depends on it."""

    body: dict[str, Any]


def headers(protocol: Protocol, number: int) -> dict[str, str]:
    return {("request-id" if protocol == "anthropic" else "x-request-id"): f"req_{number:024}"}


def failed(protocol: Protocol, failure: Failure, number: int) -> web.Response:
    if failure.body is not None:
        return web.Response(status=failure.status, body=failure.body, headers=failure.headers)
    body: dict[str, Any]
    if protocol == "gemini":
        body = {"error": {"code": failure.status, "message": failure.message, "status": failure.type}}
    elif protocol != "anthropic":
        body = {"error": {"message": failure.message, "type": failure.type, "param": None, "code": failure.code}}
    else:
        body = {
            "type": "error",
            "error": {"type": failure.type, "message": failure.message},
            "request_id": f"req_{number:024}",
        }
    return web.json_response(body, status=failure.status, headers={**headers(protocol, number), **failure.headers})


def data(document: dict[str, Any]) -> bytes:
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


def _openai_events(asked: HasBody, reply: Reply, number: int) -> Iterator[tuple[bytes, bool]]:
    """Events with whether each is a text of the script."""
    with_usage = bool((asked.body.get("stream_options") or {}).get("include_usage")) and reply.counts

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return data({**head, "choices": [choice], **({"usage": None} if with_usage else {})})

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
        yield data({**head, "choices": [], "usage": _openai_usage(reply)}), False
    yield b"data: [DONE]\n\n", False


def _openai_whole(asked: HasBody, reply: Reply, number: int) -> dict[str, Any]:
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


def _responses_whole(asked: HasBody, reply: Reply, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if reply.texts:
        content.append({"type": "output_text", "text": "".join(reply.texts), "annotations": [], "logprobs": []})
    if reply.refusal:
        content.append({"type": "refusal", "refusal": reply.refusal})
    output: list[dict[str, Any]] = []
    if content:
        output.append(
            {
                "id": f"msg_{number:024}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": content,
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
    reason = {"length": "max_output_tokens", "refused": "content_filter"}.get(reply.reason)
    return {
        "id": f"resp_{number:024}",
        "object": "response",
        "created_at": CREATED,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "model": reply.model or asked.body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": asked.body.get("tools", []),
        "usage": usage,
    }


def _responses_events(asked: HasBody, reply: Reply, number: int) -> Iterator[tuple[bytes, bool]]:
    numbers = itertools.count()

    def numbered(name: str, **fields: Any) -> bytes:
        return event(name, {"sequence_number": next(numbers), **fields})

    whole = _responses_whole(asked, reply, number)
    started = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield numbered("response.created", response=started), False
    yield numbered("response.in_progress", response=started), False
    for index, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            begun = {**item, "status": "in_progress", "content": []}
            yield numbered("response.output_item.added", output_index=index, item=begun), False
            for number_of_part, part in enumerate(item["content"]):
                kind, place = part["type"], {**at, "content_index": number_of_part}
                name = "refusal" if kind == "refusal" else "text"
                yield numbered("response.content_part.added", **place, part={**part, name: ""}), False
                for text in (reply.refusal,) if kind == "refusal" else reply.texts:
                    yield numbered(f"response.{kind}.delta", **place, delta=text), True
                yield numbered(f"response.{kind}.done", **place, **{name: part[name]}), False
                yield numbered("response.content_part.done", **place, part=part), False
        else:
            call = next(
                call for call in reply.calls if call.name == item["name"] and call.arguments == item["arguments"]
            )
            begun = {**item, "status": "in_progress", "arguments": ""}
            yield numbered("response.output_item.added", output_index=index, item=begun), False
            for piece in call.pieces:
                yield numbered("response.function_call_arguments.delta", **at, delta=piece), False
            yield numbered("response.function_call_arguments.done", **at, arguments=call.arguments), False
        yield numbered("response.output_item.done", output_index=index, item=item), False
    yield numbered(f"response.{whole['status']}", response=whole), False


def event(name: str, fields: dict[str, Any]) -> bytes:
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


def _anthropic_events(asked: HasBody, reply: Reply, number: int) -> Iterator[tuple[bytes, bool]]:
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
    yield event("message_start", {"message": message}), False
    blocks = 0
    texts = (*reply.texts, *([reply.refusal] if reply.refusal else []))
    if texts:
        yield event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}), False
        yield event("ping", {}), False
        for text in texts:
            yield event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}}), True
        yield event("content_block_stop", {"index": 0}), False
        blocks = 1
    for index, call in enumerate(reply.calls, blocks):
        block = {"type": "tool_use", "id": _call_id(call, index, "toolu_"), "name": call.name, "input": {}}
        yield event("content_block_start", {"index": index, "content_block": block}), False
        for piece in ("", *call.pieces):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield event("content_block_delta", {"index": index, "delta": delta}), False
        yield event("content_block_stop", {"index": index}), False
    delta = {"stop_reason": _anthropic_reason(reply), "stop_sequence": None}
    yield event("message_delta", {"delta": delta, "usage": _anthropic_usage(reply, reply.output_tokens)}), False
    yield event("message_stop", {}), False


def _anthropic_whole(asked: HasBody, reply: Reply, number: int) -> dict[str, Any]:
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


def _gemini_events(asked: HasBody, reply: Reply, number: int) -> Iterator[tuple[bytes, bool]]:
    """Each event is a whole response; a call comes in one piece, whatever pieces the script has."""
    reason = {"length": "MAX_TOKENS", "refused": "SAFETY"}.get(reply.reason, "STOP")
    usage = {
        "promptTokenCount": reply.input_tokens,
        "candidatesTokenCount": reply.output_tokens,
        "cachedContentTokenCount": reply.cached_tokens,
        "totalTokenCount": reply.input_tokens + reply.output_tokens,
    }
    head = {"modelVersion": reply.model or "gemini-2.5-pro", "responseId": f"resp{number:024}"}

    def candidate(parts: list[dict[str, Any]], **more: str) -> dict[str, Any]:
        return {**head, "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0, **more}]}

    for text in (*reply.texts, *([reply.refusal] if reply.refusal else [])):
        yield data(candidate([{"text": text}])), True
    calls = [{"functionCall": {"name": call.name, "args": json.loads(call.arguments)}} for call in reply.calls]
    yield data({**candidate(calls or [{"text": ""}], finishReason=reason), "usageMetadata": usage}), False


EVENTS = {
    "openai": _openai_events,
    "responses": _responses_events,
    "anthropic": _anthropic_events,
    "gemini": _gemini_events,
}
WHOLE = {"openai": _openai_whole, "responses": _responses_whole, "anthropic": _anthropic_whole}
