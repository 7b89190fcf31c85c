"""Pages that a side renamed: the new name of a file whose old name is gone."""

from collections import Counter
from collections.abc import Iterable

from service.agent.merging.sides import Side, Sides

MAX_CANDIDATES = 100
"""New files that are read to find one that is like the old one."""
ALIKE = 0.5
"""The part of the lines that a renamed page has in common with the old one; git's default."""


class Renames:
    """The new names on both sides of files that are gone. Few files are asked for: those that the other side needs."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._counted: dict[str, Counter[str]] = {}
        self._new = {side: self._new_files(side) for side in (sides.ours, sides.theirs)}

    async def load(self, gone: Iterable[str]) -> None:
        """Read what the search for these files' new names needs."""
        for path in gone:
            await self._sides.base.load([path])
            for side in (self._sides.ours, self._sides.theirs):
                if path not in side.files:
                    await side.load(self._candidates(path, side))

    def new_name(self, path: str, side: Side) -> str | None:
        """Return the file of the side that the base's file became; None when it was deleted."""
        candidates = self._candidates(path, side)
        blob = self._sides.base.blob(path)
        same = [name for name in candidates if side.blob(name) == blob]
        if same:
            return same[0]
        old = self._lines(self._sides.base, path)
        likeness = {name: _likeness(old, self._lines(side, name)) for name in candidates}
        best = max(likeness, key=lambda name: (likeness[name], name), default=None)
        return best if best is not None and likeness[best] >= ALIKE else None

    def _candidates(self, path: str, side: Side) -> list[str]:
        """Return the side's new files with the same suffix, those of the same name first."""
        name, new = path.rpartition("/")[2], self._new[side].get(path.rpartition(".")[2], [])
        alike = [other for other in new if other.rpartition("/")[2] == name]
        return [*alike, *(other for other in new[:MAX_CANDIDATES] if other not in alike)][:MAX_CANDIDATES]

    def _lines(self, side: Side, path: str) -> Counter[str]:
        """Return a file's lines with how often each is there."""
        blob = side.blob(path) or ""
        if blob not in self._counted:
            self._counted[blob] = Counter(line for line in (side.text(path) or "").splitlines() if line.strip())
        return self._counted[blob]

    def _new_files(self, side: Side) -> dict[str, list[str]]:
        """Return a side's new files by suffix, sorted."""
        found: dict[str, list[str]] = {}
        for path in sorted(side.files.keys() - self._sides.base.files.keys()):
            found.setdefault(path.rpartition(".")[2], []).append(path)
        return found


def _likeness(lines: Counter[str], others: Counter[str]) -> float:
    longer = max(lines.total(), others.total())
    return (lines & others).total() / longer if longer else 0.0
