"""Requests that need not be built again: one that litellm has built, with places for the texts.

litellm takes 2 ms to build and account for a request, most of what it costs to begin a reply, and for two requests that
differ in their texts alone it builds the same one. So the second time that a kind of request is made, litellm rehearses
it twice, with other texts each time. Where both are the same but for the texts, and each text stands in its body as it
was given, requests of that kind are made from the pattern. All others are built by litellm, and so are all whose key is
not one of the settings or the environment: it may be a token that expires.
"""

import re
from collections.abc import Collection, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from service.adapters.models.exchange import Outgoing
from service.ports.model import AssistantMessage, ModelMessage, ModelRequest, SystemMessage, UserMessage

MAX_PATTERNS = 32
"""Limit for the kinds of requests of one model that are kept; a pattern takes a few kilobytes."""
_WORDS = ("Alpha", "Omega")
_Noted = TypeVar("_Noted")


class RequestPattern(Struct, frozen=True):
    """A request with places for texts; ``order`` has the number of the text in each."""

    outgoing: Outgoing
    """Its body is not used."""
    parts: tuple[bytes, ...]
    order: tuple[int, ...]

    def filled(self, texts: Sequence[str]) -> Outgoing:
        """Return the request with these texts."""
        pieces = [self.parts[0]]
        for number, part in zip(self.order, self.parts[1:], strict=True):
            pieces += [msgspec.json.encode(texts[number]), part]
        return replace(self.outgoing, body=b"".join(pieces))


class Patterns:
    """The patterns of one model's requests."""

    def __init__(self) -> None:
        self._known: dict[bytes, RequestPattern | None] = {}
        """None for a kind that has no pattern."""
        self._seen: dict[bytes, None] = {}
        """Kinds that were asked for once."""

    def knows(self, kind: bytes) -> bool:
        return kind in self._known

    def find(self, kind: bytes) -> RequestPattern | None:
        return self._known.get(kind)

    def is_first(self, kind: bytes) -> bool:
        """Note a kind, and return whether it was not seen before: a pattern for one request is not worth its cost."""
        is_first = kind not in self._seen
        _note(self._seen, kind, None)
        return is_first

    def add(self, kind: bytes, pattern: RequestPattern | None) -> None:
        _note(self._known, kind, pattern)


def _note(known: dict[bytes, _Noted], kind: bytes, value: _Noted) -> None:
    """Put a kind behind all others, and forget the first of too many."""
    known.pop(kind, None)
    known[kind] = value
    if len(known) > MAX_PATTERNS:
        del known[next(iter(known))]


def kind_of(request: ModelRequest, *more: str) -> bytes | None:
    """Return what a request has besides its texts; None where its texts may change how it is built."""
    if request.continuation is not None or not all(map(_is_plain, request.messages)):
        return None
    return msgspec.json.encode((rehearsals_of(request)[0], more))


def rehearsals_of(request: ModelRequest) -> tuple[ModelRequest, ModelRequest]:
    """Return the request twice, with other texts."""
    bare = replace(request, grounding=None, reports_waits=False, before_retry=None, on_usage=None, on_text=None)
    one, other = (
        replace(bare, messages=tuple(map(_with_text, request.messages, _texts(word, len(request.messages)))))
        for word in _WORDS
    )
    return one, other


def pattern_of(
    one: Outgoing | None, other: Outgoing | None, *, texts: int, keys: Collection[str]
) -> RequestPattern | None:
    """Return the pattern of two rehearsed requests, with this number of texts; None where they have none.

    ``keys``: the values that may stand in a header for a key.
    """
    if one is None or other is None or (one.method, one.url, one.headers) != (other.method, other.url, other.headers):
        return None
    if not any(key and key in value for key in keys for value in one.headers.values()):
        return None
    split, again = (_split(each.body, word) for each, word in zip((one, other), _WORDS, strict=True))
    if split != again or sorted(split[1]) != list(range(texts)):
        return None
    return RequestPattern(replace(one, body=b""), *split)


def _split(body: bytes, word: str) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
    pieces = re.split(rb'"%s text (\d+)\."' % word.encode(), body)
    return tuple(pieces[::2]), tuple(map(int, pieces[1::2]))


def _texts(word: str, count: int) -> list[str]:
    return [f"{word} text {number}." for number in range(count)]


def _is_plain(message: ModelMessage) -> bool:
    match message:
        case SystemMessage(text=text) | UserMessage(text=text):
            return bool(text.strip())
        case AssistantMessage(text=text, tool_calls=(), memory=None):
            return bool(text) and text == text.strip()
        case _:
            return False


def _with_text(message: ModelMessage, text: str) -> ModelMessage:
    return UserMessage(text) if isinstance(message, UserMessage) else replace(message, text=text)
