"""A diff as rows that a page can show: numbers of both sides, and within changed lines what changed."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from service.domain.texts.comparison import Effort, opcodes
from service.ports.code_host import DiffHunk
from service.web.pages.rendering import visible

WORD_STEPS, WORD_STEPS_OF_A_PAIR = 1_500_000, 150_000
"""For a page, and for two lines: where they do not suffice, it is not shown which words changed."""
MAX_COMPARED_TOKENS = 1_000
"""A pair of longer lines is not compared word by word."""
MIN_LIKENESS = 0.4
"""Lines that share less than this are two lines, not one that changed."""

_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


class Piece(Struct, frozen=True):
    text: str
    changed: bool = False


class Line(Struct, frozen=True):
    side: Literal["same", "added", "removed"]
    old: int | None
    new: int | None
    pieces: Sequence[Piece]
    ends_file_without_newline: bool = False
    is_cut: bool = False
    """The line goes on."""


class Hunk(Struct, frozen=True):
    first_new: int
    lines: Sequence[Line]


class Marking:
    """Marks the words that changed, on one page, as long as its effort lasts."""

    def __init__(self) -> None:
        self.effort = Effort(WORD_STEPS)
        self.unmarked = 0
        """Pairs of lines that were not compared."""


def rows_of(hunks: Sequence[DiffHunk], marking: Marking) -> list[Hunk]:
    """Return the hunks as rows."""
    return [Hunk(hunk.first_new, list(_compared(list(_numbered(hunk)), marking))) for hunk in hunks]


def _numbered(hunk: DiffHunk) -> Iterator[Line]:
    old, new = hunk.first_old, hunk.first_new
    for line in hunk.lines:
        in_old, in_new = line.side != "added", line.side != "removed"
        pieces = [Piece(visible(line.text.removesuffix("\r")))]
        yield Line(
            line.side,
            old if in_old else None,
            new if in_new else None,
            pieces,
            ends_file_without_newline=line.ends_file_without_newline,
            is_cut=line.is_cut,
        )
        old, new = old + in_old, new + in_new


def _compared(lines: Sequence[Line], marking: Marking) -> Iterator[Line]:
    """Yield the lines; where equal numbers of lines were removed and then added, compare each pair by words."""
    at = 0
    while at < len(lines):
        removed = _run(lines, at, "removed")
        added = _run(lines, at + len(removed), "added")
        if removed and len(removed) == len(added):
            pairs = [_compare(before, after, marking) for before, after in zip(removed, added, strict=True)]
            yield from (before for before, _ in pairs)
            yield from (after for _, after in pairs)
            at += len(removed) + len(added)
        else:
            run = [*removed, *added] or [lines[at]]
            yield from run
            at += len(run)


def _run(lines: Sequence[Line], start: int, side: str) -> Sequence[Line]:
    end = start
    while end < len(lines) and lines[end].side == side:
        end += 1
    return lines[start:end]


def _compare(before: Line, after: Line, marking: Marking) -> tuple[Line, Line]:
    was, now = _TOKEN.findall(before.pieces[0].text), _TOKEN.findall(after.pieces[0].text)
    found = None
    if max(len(was), len(now)) <= MAX_COMPARED_TOKENS:
        found = opcodes(was, now, marking.effort, most=WORD_STEPS_OF_A_PAIR)
    if found is None:
        marking.unmarked += 1
        return before, after
    common = sum(was_to - was_from for kind, was_from, was_to, _, _ in found if kind == "equal")
    if 2 * common < MIN_LIKENESS * (len(was) + len(now)):
        return before, after
    was_pieces, now_pieces = [], []
    for kind, was_from, was_to, now_from, now_to in found:
        was_pieces.append(Piece("".join(was[was_from:was_to]), changed=kind != "equal"))
        now_pieces.append(Piece("".join(now[now_from:now_to]), changed=kind != "equal"))
    return _with_pieces(before, was_pieces), _with_pieces(after, now_pieces)


def _with_pieces(line: Line, pieces: Sequence[Piece]) -> Line:
    return replace(line, pieces=[piece for piece in pieces if piece.text])
