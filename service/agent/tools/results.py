"""The results of tools: text for the model, in which the text of files is fenced as data.

A fence's tag is made from the hash of what it holds, which no author can put into the text beforehand.
"""

import hashlib
from collections.abc import Iterable, Sequence

from msgspec import Struct

from service.agent.tools.excerpts import beginning
from service.domain.jobs.decider import FileChange, Handover, Todo
from service.domain.tool_values import Span, ToolValue

MAX_RESULT_CHARACTERS = 30_000


class Outcome(Struct, frozen=True):
    """The result of a tool call; its changes are applied when it is recorded."""

    result: str
    is_error: bool = False
    changes: tuple[FileChange, ...] = ()
    value: ToolValue | None = None
    todos: tuple[Todo, ...] | None = None
    finished: Handover | None = None
    """The work is done."""
    asked: str | None = None
    """A question to the caller: the job ends with it as ``needs_input``, and keeps its changes for the answer."""


def as_data(text: str) -> str:
    """Return the text fenced, so that a model can see where data begins and ends."""
    tag = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]
    return f"<data {tag}>\n{text}\n</data {tag}>"


def with_data(head: str, text: str) -> tuple[str, Span]:
    """Return a line and, below it, a text as data; and the place of the text in it."""
    whole = f"{head}\n{as_data(text)}"
    start = whole.index("\n", len(head) + 1) + 1
    return whole, (start, start + len(text))


def bounded(text: str, characters: int = MAX_RESULT_CHARACTERS) -> str:
    """Return a text, or of a long one the beginning, up to a line or a word, and how much more there is."""
    shown = beginning(text, characters)
    return text if shown == text else f"{shown}\n[… {len(text) - len(shown)} characters more]"


def fitting(lines: Iterable[str], characters: int = MAX_RESULT_CHARACTERS) -> list[str]:
    """Return the first lines, those that fit into this number of characters."""
    shown: list[str] = []
    for line in lines:
        characters -= len(line) + 1
        if characters < 0:
            break
        shown.append(line)
    return shown


def number_of(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def named(names: Sequence[str], most: int = 20) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
