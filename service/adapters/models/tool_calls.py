"""Tool calls put together from the pieces of a stream, in whichever framing they come.

| Framing | Seen at |
|---|---|
| an index for each call, an id and a name in its first piece | OpenAI |
| no index: a piece belongs to the call before it | llama.cpp, Ollama |
| index 0 for all calls, a new id for each | Gemini's compatible address |
| index 0 or none, and no ids: a name after complete arguments begins a call | Gemini, smolagents' servers |
| the name again in each piece, the id again, or another id in each piece | vLLM, SGLang, proxies |
| each piece holds all arguments so far, or the last one holds all of them again | Qwen's and Zhipu's servers |
| arguments as an object, as a string of a string, as ``null``, or missing | llama.cpp, Ollama, vLLM |
| the fields beside the id instead of in ``function``; ``parameters`` or ``input`` for ``arguments`` | Llama, Cohere |
| ``function_call`` alone | OpenAI before 2023-11 |

An id that is missing or repeated is made up (``new_call_id``).
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from service.domain.errors import Unavailable
from service.domain.model import ToolCall, decoded_arguments
from service.ports.model import MODEL_REPLY_BROKEN, new_call_id

MAX_CALLS = 1_000
MAX_CHARACTERS = 2_000_000
"""Limit for the arguments of all calls of a reply; each piece counts for some more than its text."""
_PIECE_CHARACTERS = 8
_MARKS = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)


class _Closing:
    """Finds where the first value of a JSON text ends, piece by piece; of what is no JSON, any place."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_text = self._is_escaped = False
        self.is_closed = False
        """Whether it has ended, with nothing but blanks behind it."""
        self.is_over = False
        """Whether more follows its end."""

    def add(self, piece: str) -> None:
        if self.is_over:
            return
        start, self._is_escaped = int(self._is_escaped), False
        if self.is_closed:
            self.is_over = bool(piece.strip())
            self.is_closed = not self.is_over
            return
        for found in _MARKS.finditer(piece, start):
            mark = found[0]
            if mark[0] == "\\":
                self._is_escaped = len(mark) == 1
            elif mark == '"':
                self._is_text = not self._is_text
            elif not self._is_text:
                self._depth += 1 if mark in "{[" else -1
            if mark[0] != "\\" and not self._is_text and self._depth <= 0:
                self.is_over = bool(piece[found.end() :].strip())
                self.is_closed = not self.is_over
                return


class _PartialCall:
    def __init__(self, call_id: str = "", name: str = "") -> None:
        self.id = call_id
        self.name = name
        self.pieces: list[str] = []
        self.extra: dict[str, Any] = {}
        """Fields that have to come back with the call."""
        self._closing = _Closing()
        self._looked_at = 0
        """How many pieces."""
        self._is_object: bool | None = None
        """Whether the text to its close is an object; None before that was asked."""

    @property
    def is_complete(self) -> bool:
        for piece in self.pieces[self._looked_at :]:
            self._closing.add(piece)
        self._looked_at = len(self.pieces)
        if not self._closing.is_closed:
            return False
        if self._is_object is None:
            self._is_object = is_object("".join(self.pieces))
        return self._is_object

    def arguments(self) -> str:
        """Return the arguments as text; where they are not JSON, as the model wrote them."""
        joined = "".join(self.pieces)
        if not joined.strip():
            return "{}"
        return next((found for text in self._readings(joined) if (found := _as_object(text)) is not None), joined)

    def _readings(self, joined: str) -> Iterator[str]:
        yield joined
        first, last = self.pieces[0], self.pieces[-1]
        if first.strip() == "{}":  # where the arguments will stand
            yield "".join(self.pieces[1:])
        if last.startswith(first):  # all of them again
            yield last
        if joined[: len(joined) // 2] * 2 == joined:
            yield last if len(self.pieces) == 2 else joined[: len(joined) // 2]


class ToolCalls:
    """Tool calls put together from pieces."""

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._by_id: dict[str, _PartialCall] = {}
        self.characters = 0
        """Characters of all arguments, about."""
        self.written = 0
        """Characters of all arguments and names."""

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(
        self, index: int | None, call_id: str, name: str, arguments: str, extra: dict[str, Any] | None = None
    ) -> None:
        """Add a piece: to the call that it continues, or as the beginning of another.

        Raises:
            Unavailable: the calls have no end (``model_reply_broken``).
        """
        call = self._continued(index, call_id, name, arguments) or self._begun(call_id, name)
        self._note(call, index, call_id, arguments)
        call.id = call.id or call_id
        call.name = call.name or name
        if extra:
            call.extra.update(extra)

    def begin(self, index: int | None, call_id: str, name: str, arguments: str) -> None:
        """Add a call whose protocol says that it begins here. Raises as ``add`` does."""
        before = None if index is None else self._by_index.get(index)
        if before is None or before.id != call_id:  # else: once more
            self._note(self._begun(call_id, name), index, call_id, arguments)

    def _begun(self, call_id: str, name: str) -> _PartialCall:
        self.written += len(name)
        call = _PartialCall(call_id, name)
        self._calls.append(call)
        return call

    def _note(self, call: _PartialCall, index: int | None, call_id: str, arguments: str) -> None:
        self.written += len(arguments)
        self.characters += len(arguments) + len(call_id) + _PIECE_CHARACTERS
        if self.characters > MAX_CHARACTERS or len(self._calls) > MAX_CALLS:
            raise Unavailable("the model's provider sent calls of tools without end", code=MODEL_REPLY_BROKEN)
        if index is not None:
            self._by_index[index] = call
        if call_id:
            self._by_id[call_id] = call
        if arguments:
            call.pieces.append(arguments)

    def _continued(self, index: int | None, call_id: str, name: str, arguments: str) -> _PartialCall | None:
        """Return the call that a piece continues; None when it begins one."""
        latest, by_id = (self._calls[-1] if self._calls else None), self._by_id.get(call_id)
        call = by_id or latest if index is None else self._by_index.get(index)
        if index is not None and call is None:
            if by_id is not None and (not name or (name == by_id.name and by_id.pieces and not by_id.is_complete)):
                return by_id
            return latest if latest is not None and not (name or call_id or latest.is_complete) else None
        if call is None:
            return None
        if by_id is not None and by_id is not call:
            call = by_id
        if call_id and call.id and call_id != call.id:
            return None if name or call.is_complete else call
        if not name or not call.name or (call_id and call_id == call.id):
            return call
        if name != call.name:
            return None
        if not call.is_complete or (arguments.strip() and arguments == call.arguments()):
            return call
        return None

    def complete(self, *, cut: bool) -> tuple[ToolCall, ...]:
        """Return the calls in the order in which the model made them. ``cut``: an incomplete last one is left out."""
        return tuple(call for call, _ in self.with_extras(cut=cut))

    def with_extras(self, *, cut: bool) -> list[tuple[ToolCall, dict[str, Any]]]:
        """Return each call with the fields that have to come back with it."""
        calls = [call for call in self._calls if call.name]
        if cut and calls and not (calls[-1].pieces and is_object(calls[-1].arguments())):
            calls.pop()
        ids: set[str] = set()
        found: list[tuple[ToolCall, dict[str, Any]]] = []
        for number, call in enumerate(calls):
            before = calls[number - 1] if number else None
            if before is not None and not call.id and not call.pieces and before.name == call.name and before.pieces:
                continue  # the name of the call before, once more at its end
            call_id = call.id if call.id and call.id not in ids else new_call_id()
            ids.add(call_id)
            found.append((ToolCall(call_id, call.name, call.arguments()), call.extra))
        return found


def is_object(text: str) -> bool:
    """Return whether a text is a JSON object."""
    return _as_object(text) is not None


def _as_object(text: str) -> str | None:
    """Return the text of the JSON object that is in a text; None when there is none."""
    try:
        value = decoded_arguments(text, object)
        if isinstance(value, str):
            text, value = value, decoded_arguments(value, object)
    except msgspec.DecodeError:
        return None
    if value is None:
        return "{}"
    return text if isinstance(value, dict) else None
