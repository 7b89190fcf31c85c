"""Parts of texts as a model sees them: whole lines with their numbers, and of a long line whole words."""

from collections.abc import Sequence

MARK = "…"
"""Stands where something is left out."""
AROUND = 160
"""Characters of a long line before what is looked for, and after it."""
WORD = 40
"""Characters of the longest word for which a cut gives way."""


def around(line: str, start: int, end: int, most: int = AROUND) -> str:
    """Return a line, or of a long one what is around the part from ``start`` to ``end``, with a mark at each cut."""
    line = line.rstrip()
    if len(line) <= 2 * most + end - start:
        return line
    begin, stop = max(0, start - most), min(len(line), end + most)
    if begin:
        space = line.find(" ", begin, min(start, begin + WORD))
        begin = space + 1 if space >= 0 else begin
    if stop < len(line):
        space = line.rfind(" ", max(end, stop - WORD), stop)
        stop = space if space >= 0 else stop
    return f"{MARK if begin else ''}{line[begin:stop].rstrip()}{MARK if stop < len(line) else ''}"


def beginning(text: str, most: int) -> str:
    """Return the beginning of a text, at most ``most`` characters: whole lines, or else whole words."""
    if len(text) <= most:
        return text
    at = text.rfind("\n", most // 2, most + 1)
    if at < 0:
        at = text.rfind(" ", max(0, most - WORD), most + 1)
    return text[: at if at > 0 else most]


def numbered(lines: Sequence[str], first: int, last: int, near: int, most: int = 10) -> list[str]:
    """Return at most ``most`` of the lines from ``first`` to ``last`` with their numbers: the first, such as a heading,
    and those around ``near``. Blank lines are left out, and a mark stands where others are.
    """
    wanted = [number for number in range(first, last + 1) if lines[number - 1].strip()]
    if len(wanted) > most:
        at = next((place for place, number in enumerate(wanted) if number >= near), len(wanted) - 1)
        begin = max(1, min(at - most // 3, len(wanted) - most + 1))
        wanted = [wanted[0], *wanted[begin : begin + most - 1]]
    shown: list[str] = []
    before = first - 1
    for number in wanted:
        if any(line.strip() for line in lines[before : number - 1]):
            shown.append(f"  {MARK}")
        shown.append(f"  {number}: {around(lines[number - 1], 0, 0, AROUND)}")
        before = number
    if any(line.strip() for line in lines[before:last]):
        shown.append(f"  {MARK}")
    return shown
