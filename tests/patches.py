"""Diffs as text, to be written and compared in tests: the hunks of a unified diff."""

import re

from service.ports.code_host import DiffHunk, DiffLine

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_SIDES = {" ": "same", "+": "added", "-": "removed"}
_SIGNS = {side: sign for sign, side in _SIDES.items()}
_NO_NEWLINE = "\\ No newline at end of file"


def hunks_of(patch: str) -> list[DiffHunk]:
    hunks: list[DiffHunk] = []
    for row in patch.removesuffix("\n").split("\n"):
        if start := _HUNK.fullmatch(row):
            hunks.append(DiffHunk(int(start[1]), int(start[2]), []))
        elif row == _NO_NEWLINE:
            last = hunks[-1].lines.pop()
            hunks[-1].lines.append(DiffLine(last.side, last.text, ends_file_without_newline=True))
        else:
            hunks[-1].lines.append(DiffLine(_SIDES[row[0]], row[1:]))
    return hunks


def patch_of(hunks: list[DiffHunk]) -> str:
    return "".join(
        f"@@ -{hunk.first_old},{_count(hunk, 'added')} +{hunk.first_new},{_count(hunk, 'removed')} @@\n"
        + "".join(map(_row, hunk.lines))
        for hunk in hunks
    )


def _count(hunk: DiffHunk, other: str) -> int:
    """The lines of the side that has none of the other's."""
    return sum(line.side != other for line in hunk.lines)


def _row(line: DiffLine) -> str:
    end = f"\n{_NO_NEWLINE}" if line.ends_file_without_newline else ""
    return f"{_SIGNS[line.side]}{line.text}{end}\n"
