"""A reply while it is given: what the assistant hands to the wire encoders, one after the other.

The order is fixed: ``ReplyOpened``, any number of searches (each ``SearchStarted``, ``SearchFinished``), text, and at
the end one of ``ReplyDone`` or ``ReplyBroken``. A further search between two stretches of text is allowed.
"""

from msgspec import Struct

from service.domain.model import Usage
from service.domain.threads import Resolution, Source


class ReplyOpened(Struct, frozen=True, tag="opened"):
    thread_id: str
    reply_id: str


class SearchStarted(Struct, frozen=True, tag="search-started"):
    call_id: str
    query: str


class SearchHit(Struct, frozen=True):
    """A passage as clients see it in the result of the search step."""

    number: int
    path: str
    url: str
    title: str
    heading: str
    content: str
    score: float


class SearchFinished(Struct, frozen=True, tag="search-finished"):
    call_id: str
    query: str
    hits: tuple[SearchHit, ...]
    sources: tuple[Source, ...]
    """Those that are new in this reply; each page is told once to the client."""


class TextDelta(Struct, frozen=True, tag="text-delta"):
    text: str


class ReplyDone(Struct, frozen=True, tag="done"):
    text: str
    """All of it: the joined deltas."""
    cited: tuple[int, ...]
    resolution: Resolution
    model: str
    usage: Usage


class ReplyBroken(Struct, frozen=True, tag="broken"):
    """An error after the stream has begun."""

    code: str
    message: str


ReplyEvent = ReplyOpened | SearchStarted | SearchFinished | TextDelta | ReplyDone | ReplyBroken
