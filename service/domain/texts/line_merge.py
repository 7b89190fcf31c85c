"""A three-way merge of texts by lines: what each side changed since their common base, as diff3 puts it together.

Changes that touch the same lines, or lines next to each other, are a conflict, as in git. A conflict can be written
into the text between markers that ``conflict_lines`` finds again.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from service.domain.texts.comparison import Effort, Opcode, coarse_opcodes, opcodes

STEPS_PER_FILE = 1_000_000
"""Limit for one comparison. A file that takes more has no common lines but at its beginning and end."""

OURS, BASE, THEIRS, END = "<<<<<<<", "|||||||", "=======", ">>>>>>>"
_WORD = re.compile(r"\S+\s*|\s+")
_MARKER = re.compile(r"(?:<{7}|\|{7}|>{7})(?: .*)?$")


class Part(Struct, frozen=True):
    """Lines of the merged text with their ends: agreed, or a conflict."""

    agreed: tuple[str, ...] = ()
    conflict: "LineConflict | None" = None


class LineConflict(Struct, frozen=True):
    """Both sides changed these lines of the base, each in its own way."""

    base: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


def merged(base: str, ours: str, theirs: str, effort: Effort) -> tuple[Part, ...]:
    """Return the merged text in parts. A merge without a conflict has agreed parts only."""
    if ours == theirs or theirs == base:
        return (Part(tuple(_lines(ours))),)
    if ours == base:
        return (Part(tuple(_lines(theirs))),)
    return tuple(_parts(_lines(base), _lines(ours), _lines(theirs), effort))


def merged_words(base: str, ours: str, theirs: str, effort: Effort) -> str | None:
    """Return a line with the words that each side changed; None where they are the same, or next to each other."""
    words, mine, yours = (_WORD.findall(line) for line in (base, ours, theirs))
    return text_of(tuple(_parts(words, mine, yours, effort)))


def merged_additions(ours: str, theirs: str, effort: Effort) -> tuple[Part, ...]:
    """Return two texts without a common base as one: lines that both have are agreed, all others are conflicts."""
    one, other = _lines(ours), _lines(theirs)
    found: list[Part] = []
    for tag, a, b, c, d in _compared(one, other, effort):
        if tag == "equal":
            found.append(Part(tuple(one[a:b])))
        else:
            found.append(Part(conflict=LineConflict((), tuple(one[a:b]), tuple(other[c:d]))))
    return tuple(found)


def text_of(parts: Sequence[Part]) -> str | None:
    """Return the merged text; None when a part is a conflict."""
    if any(part.conflict is not None for part in parts):
        return None
    return "".join(line for part in parts for line in part.agreed)


def marked(parts: Sequence[Part], our_name: str, their_name: str) -> tuple[str, tuple[int, ...]]:
    """Return the text with its conflicts between markers, and the line of each conflict's first marker, from 1."""
    end = next((_end_of(line) for part in parts for line in _all_lines(part) if _end_of(line)), "\n")
    lines: list[str] = []
    starts: list[int] = []
    for part in parts:
        if part.conflict is None:
            lines += part.agreed
            continue
        _close(lines, end)
        starts.append(len(lines) + 1)
        lines.append(f"{OURS} {our_name}{end}")
        for mark, side in ((f"{BASE} before{end}", part.conflict.base), (f"{THEIRS}{end}", part.conflict.theirs)):
            if mark.startswith(BASE):
                lines += part.conflict.ours
                _close(lines, end)
            if mark.startswith(BASE) and not side:
                continue
            lines += [mark, *side]
            _close(lines, end)
        lines.append(f"{END} {their_name}{end}")
    return "".join(lines), tuple(starts)


def conflict_lines(text: str) -> list[int]:
    """Return the lines, from 1, that are markers of a conflict. A row of equals signs alone is an underlined title."""
    if OURS not in text and END not in text and BASE not in text:
        return []
    return [number for number, line in enumerate(text.splitlines(), 1) if _MARKER.match(line)]


class MarkedConflict(Struct, frozen=True):
    """A conflict as it stands in a text between its markers."""

    line: int
    """The line of its first marker, from 1."""
    text: str
    """All of it, the markers included."""
    sides: LineConflict


def marked_conflicts(text: str) -> list[MarkedConflict]:
    """Return the conflicts that ``marked`` wrote into a text; one whose markers are not whole is left out."""
    found: list[MarkedConflict] = []
    sides: dict[str, list[str]] = {}
    lines: list[str] = []
    start, side = 0, ""
    for number, line in enumerate(_lines(text), 1):
        mark = line[:7] if line[7:8] in ("", " ", "\r", "\n") else ""
        if mark == OURS:
            start, side, lines, sides = number, OURS, [], {OURS: [], BASE: [], THEIRS: []}
        elif side and mark in (BASE, THEIRS):
            side = mark
        elif side and mark != END:
            sides[side].append(line)
        if side:
            lines.append(line)
        if side and mark == END:
            whole = LineConflict(tuple(sides[BASE]), tuple(sides[OURS]), tuple(sides[THEIRS]))
            found.append(MarkedConflict(start, "".join(lines), whole))
            side = ""
    return found


def _close(lines: list[str], end: str) -> None:
    if lines and not _end_of(lines[-1]):
        lines[-1] += end


def _end_of(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def _all_lines(part: Part) -> tuple[str, ...]:
    return part.agreed if part.conflict is None else (*part.conflict.ours, *part.conflict.theirs)


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _compared(before: Sequence[str], after: Sequence[str], effort: Effort) -> Sequence[Opcode]:
    return opcodes(before, after, effort, most=STEPS_PER_FILE) or coarse_opcodes(before, after)


class _Same(Struct, frozen=True):
    """Lines that a side has in common with the base."""

    base: int
    side: int
    count: int


def _same(base: Sequence[str], side: Sequence[str], effort: Effort) -> list[_Same]:
    return [_Same(a, c, b - a) for tag, a, b, c, _ in _compared(base, side, effort) if tag == "equal"]


def _parts(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], effort: Effort) -> Iterator[Part]:
    """Walk the lines that all three have in common; what lies between two such runs was changed by one side or both."""
    at_base = at_ours = at_theirs = 0
    for common in [*_common(_same(base, ours, effort), _same(base, theirs, effort)), None]:
        to_base, to_ours, to_theirs, count = common or (len(base), len(ours), len(theirs), 0)
        was, mine, yours = base[at_base:to_base], ours[at_ours:to_ours], theirs[at_theirs:to_theirs]
        if mine == yours or yours == was:
            agreed = mine
        elif mine == was:
            agreed = yours
        else:
            agreed = []
            yield Part(conflict=LineConflict(tuple(was), tuple(mine), tuple(yours)))
        if agreed or count:
            yield Part((*agreed, *base[to_base : to_base + count]))
        at_base, at_ours, at_theirs = to_base + count, to_ours + count, to_theirs + count


def _common(ours: Sequence[_Same], theirs: Sequence[_Same]) -> Iterator[tuple[int, int, int, int]]:
    """Yield where the runs of lines that all three have begin in each, and how many lines they are."""
    mine, yours = iter(ours), iter(theirs)
    one, other = next(mine, None), next(yours, None)
    while one is not None and other is not None:
        start = max(one.base, other.base)
        end = min(one.base + one.count, other.base + other.count)
        if start < end:
            yield start, one.side + start - one.base, other.side + start - other.base, end - start
        if one.base + one.count <= other.base + other.count:
            one = next(mine, None)
        else:
            other = next(yours, None)
