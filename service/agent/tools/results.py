"""The results of tools: text for the model, in which the text of files is fenced as data.

A fence's tag is made from the hash of what it holds, which no author can put into the text beforehand.
"""

import hashlib

from msgspec import Struct

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
    return text if len(text) <= characters else f"{text[:characters]}\n[… {len(text) - characters} characters more]"


def number_of(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
