"""The sources that a job's model has: the caller's words, and the lines of files that it has read.

It is taken from the record, so a resumed job, and a later round, know what was read before.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from service.domain.jobs.decider import JobRequested, MessageAdded, ToolReturned, Work
from service.domain.tool_values import Diffed, Found, Lines, Listed

_NUMBER = re.compile(r"\A\s*\d{1,9}(?::|\t|-) ?")
"""The number before a line that a search has found."""
_HUNK = re.compile(r"@@ -\d{1,9},(\d{1,9}) \+(\d{1,9}),(\d{1,9}) @@")


class Passage(Struct, frozen=True):
    """Lines of a file that the model has read, one after the other."""

    path: str
    """As the model sees it: ``@NAME/…`` in a context repository."""
    commit: str
    first_line: int
    lines: tuple[str, ...]


class Private(Struct, frozen=True):
    """Lines of context repositories that are not public, and what may be repeated: people's words, and what was read
    elsewhere.
    """

    passages: tuple[Passage, ...] = ()
    public: tuple[str, ...] = ()


def private(request: JobRequested, work: Work) -> Private:
    """Return what the job has read of context repositories that are not public, apart from what else it has read."""
    closed = tuple(f"@{one.name}/" for one in work.contexts or () if not one.public)
    found = [passage for passage in passages(work) if passage.path.startswith(closed)]
    public = [message.content for message in request.messages]
    for step in (*work.transcript, *work.waiting):
        if isinstance(step, MessageAdded):
            public.append(step.text)
        elif isinstance(step, ToolReturned) and _shows_files(step):
            if not any(name in step.result or _path_of(step).startswith(name) for name in closed):
                public.append(step.result)
            elif not isinstance(step.value, Lines | Diffed):
                lines = [_NUMBER.sub("", line) for line in step.result.split("\n")]
                found.append(Passage(_path_of(step) or closed[0], "", 1, tuple(lines)))
    return Private(tuple(found), tuple(public))


def _path_of(step: ToolReturned) -> str:
    return step.value.path if isinstance(step.value, Lines) else ""


def texts(request: JobRequested, work: Work) -> list[str]:
    """Return all that the model could take a name from, but for the documentation itself."""
    found = [message.content for message in request.messages]
    for step in (*work.transcript, *work.waiting):
        if isinstance(step, MessageAdded):
            found.append(step.text)
        elif isinstance(step, ToolReturned) and _shows_files(step):
            found.append(step.result)
    return found


def asked(request: JobRequested, work: Work) -> list[str]:
    """Return what people said in the job: the instruction and later messages."""
    found = [message.content for message in request.messages if message.role != "assistant"]
    return found + [step.text for step in (*work.transcript, *work.waiting) if isinstance(step, MessageAdded)]


def _shows_files(step: ToolReturned) -> bool:
    if step.is_error:
        return False
    return step.name == "history" or isinstance(step.value, Listed | Found | Lines | Diffed)


def passages(work: Work) -> Iterator[Passage]:
    """Yield what was read, in order; not the documentation that was only found by searching."""
    for step in work.transcript:
        if not isinstance(step, ToolReturned):
            continue
        match step.value:
            case Lines(path=path, commit=commit, first_line=first_line, numbered=True, text=(start, end)) if path:
                lines = step.result[start:end].split("\n")
                yield Passage(path, commit, first_line, tuple(line.partition("\t")[2] for line in lines))
            case Diffed(commit=commit, text=(start, end)):
                yield from _of_diff(step.result[start:end].split("\n"), commit)
            case _:
                continue


def _of_diff(lines: Sequence[str], commit: str) -> Iterator[Passage]:
    """Yield the lines of each hunk as they are after the commit."""
    path, at = "", 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("+++ "):
            path = line[4:].removeprefix("b/")
        hunk = _HUNK.match(line)
        if hunk is None:
            continue
        old, first, new = (int(number) for number in hunk.groups())
        kept: list[str] = []
        while (old > 0 or new > 0) and at < len(lines):
            mark, text = lines[at][:1], lines[at][1:]
            at += 1
            old -= mark in ("-", " ")
            new -= mark in ("+", " ")
            if mark in ("+", " "):
                kept.append(text)
        if kept and path != "/dev/null":
            yield Passage(path, commit, first, tuple(kept))
