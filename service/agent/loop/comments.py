"""A comment on the pull request as the model is shown it: others' text, so all of it is data.

The lines that it is about, and the changes around them, are those of our own clone: the code hosts say more or less of
them. Where the clone does not have them, the changes are shown that the host shows above the comment.
"""

import re
from collections.abc import Iterator, Mapping

from service.agent.prompts import prompt
from service.agent.tools.diffs import STEPS, unified
from service.agent.tools.results import as_data, bounded
from service.agent.tree import lines_of
from service.domain.jobs.comments import CommentSource, without_address
from service.domain.texts.comparison import Effort
from service.ports.model import UserMessage

Versions = Mapping[str, tuple[str | None, str | None]]
"""Texts of the pull request's files, before it and in it."""

LINES_AROUND = 3
MAX_CHARACTERS = 4_000
"""Limit for the lines, and for the changes around them."""
_HUNK = re.compile(r"@@ -(\d{1,9}),(\d{1,9}) \+(\d{1,9}),(\d{1,9}) @@")


def comment_message(comment: CommentSource, text: str, versions: Versions | None = None) -> UserMessage:
    """Return the message, which also has the comment's own words for a model that works on values. Without versions
    the comment is an earlier one, and its place is only named.
    """
    place = "\n".join(_place(comment, versions))
    shown = prompt("comment", author=_name(comment.author), place=place, quoted=as_data(text))
    return UserMessage(shown, words=without_address(text))


def _name(author: str) -> str:
    """Return the account's name as far as it has the form that code hosts give names."""
    return f"`{author}`" if re.fullmatch(r"[\w.@-]{1,100}", author) else "A reviewer"


def _place(comment: CommentSource, versions: Versions | None) -> Iterator[str]:
    if comment.path:
        yield from ("", "It is about this place:", as_data(comment.path + _lines(comment)))
        before, after = (versions or {}).get(comment.path, (None, None))
        text = before if comment.side == "old" else after
        around = _around(text, comment) if text is not None and comment.side != "gone" else ""
        diff = _changes(comment, before, after) if around else comment.diff if versions is not None else ""
        if around:
            yield from ("The lines there, each with its number; > stands before those that are meant:", as_data(around))
        if diff:
            yield from ("The changes around it:" if around else "The changes that it stands below:", as_data(diff))
    if comment.before and versions is not None:
        said = "\n\n".join(f"{one.author}: {one.text}" for one in comment.before)
        yield from ("", "The comments above it in the same thread, the oldest first:", as_data(said))
    if comment.path or (comment.before and versions is not None):
        yield ""


def _lines(comment: CommentSource) -> str:
    first, last = comment.first_line, comment.last_line
    if last is None:
        return ""
    where = f", line {last}" if first in (None, last) else f", lines {first} to {last}"
    return where + {"new": "", "old": " before the change", "gone": " as it was then"}[comment.side]


def _around(text: str, comment: CommentSource) -> str:
    """Return the numbered lines that a comment is about, with some around them; empty where the file is shorter."""
    last, lines = comment.last_line, lines_of(text)
    if last is None or not 1 <= last <= len(lines):
        return ""
    first = min(comment.first_line or last, last)
    shown = range(max(1, first - LINES_AROUND), min(len(lines), last + LINES_AROUND) + 1)
    marked = (f"{'>' if first <= at <= last else ' '} {at}\t{lines[at - 1].rstrip()}" for at in shown)
    return bounded("\n".join(marked), MAX_CHARACTERS)


def _changes(comment: CommentSource, before: str | None, after: str | None) -> str:
    """Return the part of the file's diff that has the line; empty when it is not near a change."""
    hunks: list[list[str]] = []
    for line in list(unified((comment.path, comment.path, before, after), Effort(STEPS)))[2:]:
        if _HUNK.match(line):
            hunks.append([])
        hunks[-1].append(line)
    for hunk in hunks:
        found = _HUNK.match(hunk[0])
        assert found is not None
        old, olds, new, news = map(int, found.groups())
        first, count = (old, olds) if comment.side == "old" else (new, news)
        if comment.last_line is not None and first <= comment.last_line < first + max(count, 1):
            return bounded("\n".join(hunk), MAX_CHARACTERS)
    return ""
