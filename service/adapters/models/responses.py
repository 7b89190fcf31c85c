"""The stream of OpenAI's Responses API, from bytes to texts; sans-I/O.

OpenAI's newest models take tools only there, so litellm asks some of them so. Its own reader makes several objects of
its types for each event, and works out a price for each response in one: 250 to 500 ms of CPU per 1,000 events in one
turn of the event loop. Facts that this reader respects (API reference, "Responses: streaming events"):

- A text or the arguments of a call come as ``…delta`` events, and then whole, up to four times: in ``…text.done``,
  ``content_part.done``, ``output_item.done`` and the response of the last event. Servers that imitate it leave out any
  of these; one that sends no deltas is read from what is whole.
- Parts belong together by ``output_index``; ``item_id`` is another in each event at GitHub Copilot.
- ``response.completed``, ``.incomplete`` (with a reason) and ``.failed`` (with an error) end; what follows is not read.
- A thought that has ``encrypted_content`` has to come back before the calls that follow it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from service.adapters.models.failures import failure_in_stream
from service.adapters.models.fields import (
    count_of,
    index_of,
    json_of,
    list_of,
    name_of,
    object_of,
    text_of,
)
from service.adapters.models.streams import PAUSE, PayloadReader, Tokens
from service.adapters.models.tool_calls import MAX_CALLS

REASONING_ITEMS = "reasoning_items"
"""litellm's name, in a message, for the thoughts that go back."""
_TEXTS = ("response.output_text.delta", "response.refusal.delta")
_ARGUMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_CALLS = ("function_call", "custom_tool_call")
_ENDS = ("completed", "incomplete", "failed", "cancelled")


class _Delta(Struct, gc=False):
    """An event that has a piece of a text or of arguments, as nearly all."""

    type: str
    delta: str
    output_index: int | None = None
    item_id: str | None = None


_delta = msgspec.json.Decoder(_Delta)


class ResponsesReader(PayloadReader):
    """The stream of ``POST …/responses``."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[str, int] = {}
        """Numbers of items whose events have no index, by their ids."""
        self._begun: set[int] = set()
        """Calls, by their index, that have begun, and those whose arguments have come."""
        self._given: set[int] = set()
        self._call_ids: set[str] = set()
        self._has_deltas = False
        """Whether texts come in pieces: then what is whole has been read."""
        self._read_texts: set[tuple[int, int]] = set()
        """Texts that came whole, by the indexes of their item and part."""
        self._thought_characters = 0

    def _read_payloads(self, payloads: list[bytes]) -> Iterator[str]:
        for payload in payloads:
            if self.is_whole:
                return
            if payload == b"[DONE]":
                self._done = True
            elif payload or self._payloads.begun:
                try:
                    event = _delta.decode(payload)
                except (msgspec.DecodeError, RecursionError, ValueError):
                    yield from self._read_otherwise(payload)
                else:
                    index = event.output_index
                    yield self._read_delta(
                        event.type, self._place(event.item_id or "") if index is None else index, event.delta
                    )

    def _read_document(self, document: dict[str, Any]) -> Iterator[str]:
        yield from self._read(document)
        yield PAUSE

    def _read_delta(self, kind: str, at: int | None, delta: str) -> str:
        if kind in _TEXTS:
            self._refused |= kind == _TEXTS[1]
            if delta:
                self._has_come = self._has_deltas = True
            return delta
        if kind in _ARGUMENTS and delta:
            self._has_come = True
            self._tool_calls.add(at, "", "", delta)
            if at is not None:
                self._given.add(at)
        elif kind not in _ARGUMENTS:
            self._thought_characters += len(delta)
        return PAUSE

    def _read(self, document: dict[str, Any]) -> Iterator[str]:
        if self.is_whole:
            return
        name = name_of(document.get("type"))
        kind = name.removeprefix("response.")
        is_response = document.get("object") == "response" or (not kind and "output" in document)
        response = document if is_response else object_of(document.get("response"))
        is_failure = kind in ("error", "failed") or (kind == name and document.keys() & {"message", "detail"})
        error = document.get("error") or (document if is_failure else None)
        if is_response or kind in _ENDS:
            status = name_of(response.get("status")) or "completed" if is_response else kind
            if status == "failed":
                raise failure_in_stream(response.get("error") or error)
            yield from self._read_end(status, response)
        elif error:
            raise failure_in_stream(error)
        elif "delta" in document:
            as_text = text_of if f"response.{kind}" in _TEXTS else json_of
            yield self._read_delta(f"response.{kind}", self._at(document), as_text(document["delta"]))
        elif kind in ("output_text.done", "refusal.done"):
            part = {"type": kind.removesuffix(".done"), **document}
            yield self._read_part(self._at(document), index_of(document.get("content_index")), part)
        elif kind == "content_part.done":
            part = object_of(document.get("part"))
            yield self._read_part(self._at(document), index_of(document.get("content_index")), part)
        elif kind in ("function_call_arguments.done", "custom_tool_call_input.done"):
            self._add_arguments(self._at(document), json_of(document.get("arguments", document.get("input"))))
        elif kind in ("output_item.added", "output_item.done"):
            yield from self._read_item(
                self._at(document), object_of(document.get("item")), is_done=kind.endswith("done")
            )
        self._model = self._model or name_of(response.get("model"))

    def _at(self, document: dict[str, Any]) -> int | None:
        index = index_of(document.get("output_index"))
        item = object_of(document.get("item"))
        return self._place(name_of(document.get("item_id")) or name_of(item.get("id"))) if index is None else index

    def _place(self, item_id: str) -> int | None:
        """Return a number for an item whose events have no index; None where they have no id either."""
        if not item_id or len(self._places) > MAX_CALLS:
            return None
        return self._places.setdefault(item_id, -1 - len(self._places))

    def _read_item(self, at: int | None, item: dict[str, Any], *, is_done: bool) -> Iterator[str]:
        kind = name_of(item.get("type"))
        if kind in _CALLS:
            self._read_call(at, item)
        elif kind == "reasoning" and is_done:
            self._keep(at, item)
        elif kind == "message" and is_done:
            for number, part in enumerate(list_of(item.get("content"))):
                yield self._read_part(at, number, part if isinstance(part, dict) else {"text": part})

    def _read_part(self, at: int | None, number: int | None, part: dict[str, Any]) -> str:
        """Return the text of a part that has come whole, unless it has been read."""
        key, is_refusal = (at or 0, number or 0), name_of(part.get("type")) == "refusal"
        text = text_of(part.get("refusal" if is_refusal else "text"))
        if self._has_deltas or key in self._read_texts or not text:
            return PAUSE
        self._read_texts.add(key)
        self._refused |= is_refusal
        self._has_come = True
        return text

    def _read_call(self, at: int | None, item: dict[str, Any]) -> None:
        call_id = name_of(item.get("call_id")) or name_of(item.get("id"))
        arguments = json_of(item.get("arguments", item.get("input")))
        if at is None or at not in self._begun:
            self._has_come = True
            self._call_ids.add(call_id)
            self._tool_calls.begin(at, call_id, name_of(item.get("name")), "")
            if at is not None:
                self._begun.add(at)
                self._given.discard(at)  # of pieces that came before their call
        self._add_arguments(at, "" if arguments == "{}" else arguments)

    def _add_arguments(self, at: int | None, arguments: str) -> None:
        """Add arguments that have come whole, unless they came before."""
        if arguments and at not in self._given:
            self._has_come = True
            self._tool_calls.add(at, "", "", arguments)
            if at is not None:
                self._given.add(at)

    def _keep(self, at: int | None, item: dict[str, Any]) -> None:
        if content := name_of(item.get("encrypted_content")):
            kept = {"type": "reasoning", "id": name_of(item.get("id")), "index": at or 0, "encrypted_content": content}
            self._memory.add(REASONING_ITEMS, [kept | {"summary": list_of(item.get("summary"))}])

    def _read_end(self, status: str, response: dict[str, Any]) -> Iterator[str]:
        """Read what has not come before the response that is whole."""
        items = [object_of(item) for item in list_of(response.get("output"))]
        calls = [item for item in items if name_of(item.get("type")) in _CALLS]
        are_missing, has_thoughts = len(calls) > len(self._call_ids), bool(self._memory)
        for at, item in enumerate(items):
            is_call = name_of(item.get("type")) in _CALLS
            call_id = name_of(item.get("call_id")) or name_of(item.get("id"))
            if is_call and are_missing and (call_id not in self._call_ids or not call_id):
                self._read_call(None, item)
            elif not is_call and not (has_thoughts and name_of(item.get("type")) == "reasoning"):
                yield from self._read_item(at, item, is_done=True)
            yield PAUSE
        usage = object_of(response.get("usage"))
        read, written = count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))
        if read is not None or written is not None:
            cached = count_of(object_of(usage.get("input_tokens_details")).get("cached_tokens"))
            self._tokens = Tokens(read or 0, written or 0, cache_read=min(read or 0, cached or 0))
        if status in _ENDS:
            reason = name_of(object_of(response.get("incomplete_details")).get("reason"))
            self._said = reason or status if status == "incomplete" else status

    @property
    def hidden_characters(self) -> int:
        return self._tool_calls.written + self._thought_characters

    @property
    def is_done(self) -> bool:
        return self.is_whole
