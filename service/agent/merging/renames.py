"""Pages that a side renamed: the new name of a file whose old name is gone."""

from collections import Counter
from collections.abc import Iterable

from service.agent.merging.sides import Side, Sides

MAX_CANDIDATES = 200
"""New files that are read to find one that is like the old one."""
ALIKE = 0.5
"""The part of the lines that a renamed page has in common with the old one; git's default."""


class Renames:
    """The new names on both sides of files that are gone. Few files are asked for: those that the other side needs."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides

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
        text = self._sides.base.text(path)
        likeness = {name: _likeness(text or "", side.text(name) or "") for name in candidates}
        best = max(likeness, key=lambda name: (likeness[name], name), default=None)
        return best if best is not None and likeness[best] >= ALIKE else None

    def _candidates(self, path: str, side: Side) -> list[str]:
        """Return the side's new files with the same suffix, those of the same name first."""
        name, suffix = path.rpartition("/")[2], path.rpartition(".")[2]
        new = [other for other in side.files if other not in self._sides.base.files and other.endswith(f".{suffix}")]
        return sorted(new, key=lambda other: (other.rpartition("/")[2] != name, other))[:MAX_CANDIDATES]


def _likeness(one: str, other: str) -> float:
    lines, others = (Counter(line for line in text.splitlines() if line.strip()) for text in (one, other))
    longer = max(lines.total(), others.total())
    return (lines & others).total() / longer if longer else 0.0
