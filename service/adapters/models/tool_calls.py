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

from collections.abc import Iterator
from typing import Any

import msgspec

from service.domain.model import ToolCall, decoded_arguments
from service.ports.model import new_call_id


class _PartialCall:
    def __init__(self, call_id: str = "", name: str = "") -> None:
        self.id = call_id
        self.name = name
        self.pieces: list[str] = []
        self.extra: dict[str, Any] = {}
        """Fields that have to come back with the call."""

    @property
    def is_complete(self) -> bool:
        return bool(self.pieces) and self.pieces[-1].rstrip().endswith(("}", '"')) and is_object("".join(self.pieces))

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

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(
        self, index: int | None, call_id: str, name: str, arguments: str, extra: dict[str, Any] | None = None
    ) -> None:
        """Add a piece: to the call that it continues, or as the beginning of another."""
        call = self._continued(index, call_id, name, arguments)
        if call is None:
            call = _PartialCall(call_id, name)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or call_id
        call.name = call.name or name
        if call_id:
            self._by_id[call_id] = call
        if arguments:
            call.pieces.append(arguments)
        if extra:
            call.extra.update(extra)

    def begin(self, index: int | None, call_id: str, name: str, arguments: str) -> None:
        """Add a call whose protocol says that it begins here."""
        before = None if index is None else self._by_index.get(index)
        if before is not None and before.id == call_id:
            return  # once more
        call = _PartialCall(call_id, name)
        self._calls.append(call)
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
        is_again = bool(arguments.strip()) and arguments == call.arguments()
        return None if call.is_complete and not is_again else call

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
