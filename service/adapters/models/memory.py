"""Collect the parts of a streamed reply that its provider wants back with it: thoughts, signatures, opaque blocks.

Each provider names them otherwise: ``reasoning_content`` (DeepSeek, Moonshot, Qwen), ``reasoning`` and
``reasoning_details`` (OpenRouter), ``extra_content`` and ``thought_signature`` (Gemini), ``thinking_blocks`` (litellm's
form of Anthropic's), ``provider_specific_fields`` (litellm's proxy). They go back under the names under which they
came, unread.
"""

import asyncio
import base64
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from service.adapters.models.fields import is_within
from service.domain.model import ReplyMemory

MAX_CHARACTERS = 512 * 1024
"""More is not kept: the memory of one reply is part of each later prompt."""
MAX_DEPTH = 32
"""Limit for the nesting of what is kept: it is written and read several times, each by another parser."""
_LARGE = 32 * 1024
"""Bytes that are packed in a thread."""
_EMPTY_BLOCK_CHARACTERS = 80
"""Characters of a block's JSON besides its text, about."""
_BLOCK_CHARACTERS = 16
"""Characters that a block counts for besides its text."""


class _Pieces(list[str]):
    """The pieces of a text that goes on."""


class MemoryCollector:
    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._objects: dict[str, dict[str, Any]] = {}
        self._blocks: dict[str, list[dict[str, Any]]] = {}
        self._thinking: dict[int | None, dict[str, Any]] = {}
        self._characters = 0
        self._written, self._written_in_blocks = 0, 0

    @property
    def written(self) -> int:
        """Return the characters of thoughts that have come, kept or not. Some providers send them twice, under two
        names: as text, and in blocks.
        """
        return max(self._written, self._written_in_blocks)

    def __bool__(self) -> bool:
        return bool(self._texts or self._objects or self._blocks)

    def add(self, name: str, value: object) -> None:
        """Add what a piece of the reply has under a name: text is appended, lists go on, objects are merged."""
        match value:
            case str():
                self._written += len(value)
                if self._has_room(len(value)):
                    self._texts.setdefault(name, []).append(value)
            case list():
                for block in value:
                    size = _size(block)
                    self._written_in_blocks += max(0, size - _EMPTY_BLOCK_CHARACTERS)
                    if self._has_room(size):
                        _append(self._blocks.setdefault(name, []), block)
            case dict():
                if self._has_room(_size(value)):
                    _merge(self._objects.setdefault(name, {}), value)
            case _:
                pass

    def begin_thinking(self, index: int | None, thinking: str, signature: str) -> None:
        """Begin a block of Anthropic's."""
        if self._has_room(len(thinking) + len(signature)):
            block = {"type": "thinking", "thinking": _Pieces([thinking]), "signature": _Pieces([signature])}
            self._blocks.setdefault("thinking_blocks", []).append(block)
            self._thinking[index] = block

    def add_thinking(self, index: int | None, thinking: str) -> None:
        self._written += len(thinking)
        self._add_to_block(index, "thinking", thinking)

    def add_signature(self, index: int | None, signature: str) -> None:
        self._add_to_block(index, "signature", signature)

    def add_redacted(self, data: str) -> None:
        if self._has_room(len(data)):
            self._blocks.setdefault("thinking_blocks", []).append({"type": "redacted_thinking", "data": data})

    def _add_to_block(self, index: int | None, name: str, text: str) -> None:
        if self._has_room(len(text)) and (block := self._thinking.get(index)) is not None:
            block[name].append(text)

    def _has_room(self, characters: int) -> bool:
        self._characters += characters + _BLOCK_CHARACTERS
        return self._characters <= MAX_CHARACTERS

    def collected(self, calls: Sequence[dict[str, Any]]) -> "Collected | None":
        """Return the memory of the reply, with that of its calls in their order; None when there is none.

        Half of a signed thought would be refused, so a memory that is too large is none.
        """
        if not (self or any(calls)) or self._characters + sum(map(_size, calls)) > MAX_CHARACTERS:
            return None
        message: dict[str, Any] = {name: "".join(texts) for name, texts in self._texts.items()}
        message |= self._objects
        message |= {name: [_joined(block) for block in blocks] for name, blocks in self._blocks.items()}
        return Collected(message, tuple(calls) if any(calls) else ())


class Collected(Struct, frozen=True):
    """The parts of one reply that go back."""

    message: dict[str, Any]
    """Fields of the message, by the names under which they came."""
    calls: tuple[dict[str, Any], ...]
    """Fields of its tool calls, in their order; empty when they have none."""


async def packed(collected: Collected, owner: str) -> ReplyMemory:
    """Return it for the record; not as text, for it is no one's to read."""
    document = msgspec.json.encode(collected)
    data = await asyncio.to_thread(_pack, document) if len(document) > _LARGE else _pack(document)
    return ReplyMemory(owner, data, len(document))


def _pack(document: bytes) -> str:
    return base64.b64encode(zlib.compress(document)).decode()


def unpack(memory: ReplyMemory) -> Collected | None:
    """Return what was packed; None for what cannot be read any more."""
    try:
        document = zlib.decompressobj().decompress(base64.b64decode(memory.data), 4 * MAX_CHARACTERS)
        return msgspec.json.decode(document, type=Collected)
    except (ValueError, zlib.error, msgspec.DecodeError):
        return None


def _append(blocks: list[dict[str, Any]], block: object) -> None:
    """Add a block; a piece of the one before is joined to it, as OpenRouter's documentation has it."""
    if not isinstance(block, dict):
        return
    last = blocks[-1] if blocks else None
    same = ("type", "index", "id")
    if last is None or "type" not in block or any(last.get(name) != block.get(name) for name in same[:2]):
        blocks.append({name: _Pieces([value]) if _is_text(name, value) else value for name, value in block.items()})
        return
    for name, value in block.items():
        if _is_text(name, value):
            before = last.setdefault(name, _Pieces())
            if isinstance(before, _Pieces):
                before.append(value)
        elif value is not None:
            last[name] = value


def _is_text(name: str, value: object) -> bool:
    return name in ("text", "summary", "thinking") and isinstance(value, str)


def _joined(block: dict[str, Any]) -> dict[str, Any]:
    return {name: "".join(value) if isinstance(value, _Pieces) else value for name, value in block.items()}


def _size(value: object) -> int:
    """Return the size of a value; too much for one that cannot be kept: nested too deep, with halves of characters."""
    try:
        return len(msgspec.json.encode(value)) if is_within(value, MAX_DEPTH) else MAX_CHARACTERS + 1
    except (ValueError, OverflowError):
        return MAX_CHARACTERS + 1


def _merge(into: dict[str, Any], value: dict[str, Any]) -> None:
    for name, new in value.items():
        old = into.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            _merge(old, new)
        else:
            into[name] = dict(new) if isinstance(new, dict) else new
