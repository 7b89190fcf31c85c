"""The results of a tool as values: for a model that works on values, besides the text that a language model reads.

A text that is both in a value and in the result is kept once: the value says where in the result it is. So the words of
a result can change, and values need little space in the log.
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
    """Number of all entries that match."""
    paths: Span = NOWHERE
    """Those that are named, one a line; folders end with a slash and may have a number behind it."""


class Found(Value, frozen=True, tag="found"):
    """Files that contain a text."""

    count: int
    """Number of all of them."""
    paths: tuple[str, ...]
    """Those that are named."""


class Lines(Value, frozen=True, tag="lines"):
    """A part of a file."""

    text: Span
    next_line: int | None = None
    """Where the part that comes next begins; None at the end."""
    numbered: bool = False
    """Each line has its number and a tab before it."""
    path: str = ""
    """The file's path as the model sees it; empty from before it was recorded, as are the two below."""
    first_line: int = 0
    commit: str = ""
    """The commit that the file was read at; of the documentation's repository, before the job's own changes."""
    title: str | None = None
    """The title that readers and the index see, of a page that the job has changed; None where it was not looked at."""


class Diffed(Value, frozen=True, tag="diffed"):
    """The changes of a commit."""

    text: Span
    """A unified diff, with the paths as the model sees them."""
    commit: str


class Replaced(Value, frozen=True, tag="replaced"):
    times: int


class DeadLink(Struct, frozen=True):
    path: str
    line: int
    found: str
    """The text that is there now."""
    suggestion: str = ""
    """A text that could replace it; empty when nothing fits."""
    is_clear: bool = False
    """The suggestion is the only one that fits."""


class NamedLink(Struct, frozen=True):
    path: str
    line: int
    target: str


class UnknownLinks(Struct, frozen=True):
    """Links of which it is not known where they lead, for one reason."""

    reason: str
    count: int
    links: tuple[NamedLink, ...] = ()
    """The first of them."""


class DeadLinks(Value, frozen=True, tag="dead-links"):
    count: int
    """Number of all of them."""
    links: tuple[DeadLink, ...] = ()
    """Those that are named."""
    unknown: tuple[UnknownLinks, ...] = ()


class ExternalLink(Struct, frozen=True):
    path: str
    line: int
    url: str
    reason: str
    """Why it does not work, as a part of a sentence."""


class ExternalLinks(Value, frozen=True, tag="external-links"):
    """Links to other sites."""

    asked: int
    """Number of addresses that were asked."""
    broken: tuple[ExternalLink, ...] = ()


class Declined(Value, frozen=True, tag="declined"):
    """Why the tool did nothing."""

    reason: Span
    """Without what would do."""
    docs_folder: str = ""
    """The folder in which the path would have to be; empty when that is not the reason."""


ToolValue: TypeAlias = Listed | Found | Lines | Diffed | Replaced | DeadLinks | ExternalLinks | Declined
