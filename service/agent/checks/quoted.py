"""Lines of a context repository that is not public, word for word in what the pull request would publish."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from service.agent.checks.changed import Changed
from service.agent.checks.rules import PRIVATE_TEXT
from service.agent.sources import Passage, Private
from service.agent.things import WORD
from service.domain.jobs.decider import Problem

LONG_LINE = 60
"""A line of more characters is reported alone; shorter ones as ``IN_A_ROW``."""
IN_A_ROW, LEAST_IN_A_ROW = 3, 40
"""Lines, and characters of all of them together: three braces are copied from no one."""
MAX_LINES = 20_000
MAX_REPORTED = 20
_Line = tuple[str, str, int]
"""Its words, its file and its number there."""
_BEFORE, _BEHIND = " \t\r>*+#`|-", " \t\r`|"
"""Markdown around a line that is quoted."""


def check(changed: Sequence[Changed], said: Mapping[str, str], private: Private) -> list[Problem]:
    """Return an error for each place, with its source. ``said``: texts for the pull request, by what they are.

    What stood in the files before, or in what may be repeated, is not reported.
    """
    if not private.passages:
        return []
    lines = list(_lines(private.passages))[:MAX_LINES]
    known = "\n".join(_plain(line) for text in private.public for line in text.split("\n"))
    known += "".join(f"\n{_plain(line)}" for file in changed for line in (file.before or "").split("\n"))
    rows = _rows(lines)
    found: list[Problem] = []
    targets = [(file.path, file.after, True) for file in changed if file.after is not None]
    for path, text, is_file in [*targets, *((name, text, False) for name, text in said.items())]:
        for line, source, number in _repeated([_plain(one) for one in text.split("\n")], lines, rows, known):
            what = "This line is" if is_file else f"In the {path}, this is"
            message = (
                f"{what} line {number} of {source}, word for word, and that repository is not public. Say it in your"
                " own words, or leave it out."
            )
            found.append(PRIVATE_TEXT.problem(path if is_file else "", message, line if is_file else None))
            if len(found) == MAX_REPORTED:
                return found
    return found


def _lines(passages: Sequence[Passage]) -> Iterator[_Line]:
    """Yield the lines that say something, each with its file and number."""
    for passage in passages:
        for number, line in enumerate(passage.lines, passage.first_line):
            if plain := _plain(line):
                yield plain, passage.path, number


def _rows(private: Sequence[_Line]) -> Mapping[tuple[str, ...], _Line]:
    """Return the first line of each ``IN_A_ROW`` of one file, by their words."""
    return {
        tuple(one[0] for one in private[at : at + IN_A_ROW]): private[at]
        for at in range(len(private) - IN_A_ROW + 1)
        if len({one[1] for one in private[at : at + IN_A_ROW]}) == 1
    }


def _repeated(
    text: Sequence[str], private: Sequence[_Line], rows: Mapping[tuple[str, ...], _Line], known: str
) -> Iterator[tuple[int, str, int]]:
    """Yield the line of each repeated one, its file and its number there."""
    joined, seen = " ".join(text), set[tuple[str, int]]()
    starts = [0, *accumulate(len(one) + 1 for one in text)]
    words = set(WORD.findall(joined))
    for line, source, number in private:
        if len(line) <= LONG_LINE or (source, number) in seen or not words.issuperset(WORD.findall(line)):
            continue
        if (at := joined.find(line)) >= 0 and line not in known:  # what is known is long, and few lines come so far
            seen.add((source, number))
            yield bisect_right(starts, at), source, number
    numbered = [(number, line) for number, line in enumerate(text, 1) if line]
    for at in range(len(numbered) - IN_A_ROW + 1):
        row = tuple(line for _, line in numbered[at : at + IN_A_ROW])
        begins = rows.get(row)
        if begins is None or sum(map(len, row)) < LEAST_IN_A_ROW or all(one in known for one in row):
            continue
        if not any((begins[1], begins[2] + near) in seen for near in range(IN_A_ROW)):
            seen.update((begins[1], begins[2] + near) for near in range(IN_A_ROW))
            yield numbered[at][0], begins[1], begins[2]


def _plain(line: str) -> str:
    return " ".join(line.lstrip(_BEFORE).rstrip(_BEHIND).split())
