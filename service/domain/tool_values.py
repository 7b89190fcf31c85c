"""What a tool found, as values: beside the text that a language model reads, for a model that works on values.

A text that a value has in common with the result is kept once: the value says where in the result it stands. So the
words of a result can change, and values take little of the log.
"""

from typing import TypeAlias

from msgspec import Struct

Span: TypeAlias = tuple[int, int]
"""From where and up to where in a result's text, in characters."""
NOWHERE: Span = (0, 0)


class Value(Struct, frozen=True, tag_field="kind", omit_defaults=True):
    """Stored for good with the result: a new field gets a default; a tag is never renamed or reused."""


class Listed(Value, frozen=True, tag="listed"):
    """Files."""

    count: int
    """Of all that fit."""
    paths: Span = NOWHERE
    """Those that are named, one a line; folders end with a slash and may have a number behind it."""


class Found(Value, frozen=True, tag="found"):
    """Files that contain a text."""

    count: int
    """Of all of them."""
    paths: tuple[str, ...]
    """Those that are named."""


class Lines(Value, frozen=True, tag="lines"):
    """A part of a file."""

    text: Span
    next_line: int | None = None
    """Where the part that comes next begins; None at the end."""


class Replaced(Value, frozen=True, tag="replaced"):
    times: int


class DeadLink(Struct, frozen=True):
    path: str
    line: int
    found: str
    """What stands there."""
    suggestion: str = ""
    """What could stand there instead; empty when nothing fits."""
    is_clear: bool = False
    """The suggestion is the only one that fits."""


class DeadLinks(Value, frozen=True, tag="dead-links"):
    count: int
    """Of all of them."""
    links: tuple[DeadLink, ...] = ()
    """Those that are named."""


class Declined(Value, frozen=True, tag="declined"):
    """Why the tool did nothing."""

    reason: Span
    """Without what would do."""
    docs_folder: str = ""
    """The folder in which the path would have to be; empty when that is not the reason."""


ToolValue: TypeAlias = Listed | Found | Lines | Replaced | DeadLinks | Declined
