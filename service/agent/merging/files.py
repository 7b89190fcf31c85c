"""A three-way merge of a repository's files: what merges by itself, and what is left for someone to decide.

The cases, for a file that both sides changed:

- both changed it: merged by lines; lines that both changed are a conflict;
- both added it: lines that both have are agreed, all others are a conflict;
- one renamed it, the other changed it: the change goes to the new name;
- both renamed it, differently: the documentation's name is kept, with the changes of both;
- one deleted it, the other changed it: a conflict, with the whole text on one side;
- it is no text, is kept in Git LFS, or is no file that a job may write: a problem, which only a person can solve.

A conflict stands in the file between markers until it is resolved.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from service.agent.merging.renames import Renames
from service.agent.merging.sides import Side, Sides
from service.agent.tools.results import bounded
from service.domain.jobs.decider import MergeConflict, Problem
from service.domain.texts.comparison import Effort
from service.domain.texts.line_merge import END, LineConflict, Part, marked, merged, merged_additions, text_of

MERGE_STEPS = 20_000_000
"""Effort for all files of a merge, about a second. What is left then is compared at its beginnings and ends only."""
MAX_CONTESTED = 300
MAX_SHOWN, MAX_SHOWN_OF_ALL = 4_000, 24_000
"""Characters of one conflict that are shown, and of all; the file has the rest."""


class FileMerge(Struct, frozen=True):
    """The result of a merge: texts by path (None: deleted) that differ from what whole files give, and what is left."""

    changes: dict[str, str | None]
    conflicts: tuple[MergeConflict, ...] = ()
    problems: tuple[Problem, ...] = ()


class Names(Struct, frozen=True):
    """The names of both sides beside the markers."""

    ours: str
    theirs: str


async def merge_files(sides: Sides, names: Names, may_write: Callable[[str], bool]) -> FileMerge:
    """Merge the files that both sides changed."""
    contested, gone = await asyncio.to_thread(_changed_on_both, sides)
    if len(contested) + len(gone) > MAX_CONTESTED:
        sentence = f"{len(contested) + len(gone)} files were changed on both sides. Merge the branches with git."
        return FileMerge({}, problems=(_problem("", sentence),))
    await sides.load(contested)
    renames = await asyncio.to_thread(Renames, sides)
    await renames.load([*gone, *(path for path in contested if _is_deleted_once(sides, path))])
    return await asyncio.to_thread(_Merging(sides, names, may_write, renames).run, contested, gone)


async def merge_texts(texts: Mapping[str, tuple[str | None, str | None, str | None]], names: Names) -> FileMerge:
    """Merge files of which the base's, our and their texts are given; None where a side does not have the file."""

    def run() -> FileMerge:
        found = _Texts(names)
        for path, (base, ours, theirs) in texts.items():
            found.merge(path, base, ours, theirs)
        return FileMerge(found.changes, tuple(found.conflicts))

    return await asyncio.to_thread(run)


def _changed_on_both(sides: Sides) -> tuple[list[str], list[str]]:
    """Return the files that both sides changed and do not agree on, and those that neither has any more."""
    both = sorted(sides.changed_in(sides.ours) & sides.changed_in(sides.theirs))
    return [path for path in both if not _agree(sides, path)], [path for path in both if _is_gone(sides, path)]


def _agree(sides: Sides, path: str) -> bool:
    return sides.ours.blob(path) == sides.theirs.blob(path)


def _is_gone(sides: Sides, path: str) -> bool:
    return path not in sides.ours.files and path not in sides.theirs.files


def _is_deleted_once(sides: Sides, path: str) -> bool:
    return path not in sides.ours.files or path not in sides.theirs.files


class _Merging:
    def __init__(self, sides: Sides, names: Names, may_write: Callable[[str], bool], renames: Renames) -> None:
        self._sides, self._may_write, self._renames = sides, may_write, renames
        self._texts = _Texts(names)
        self._problems: list[Problem] = []

    def run(self, contested: list[str], gone: list[str]) -> FileMerge:
        for path in gone:
            self._renamed_twice(path)
        for path in contested:
            self._contested(path)
        return FileMerge(self._texts.changes, tuple(self._texts.conflicts), tuple(self._problems))

    def _contested(self, path: str) -> None:
        base, ours, theirs = self._sides.base, self._sides.ours, self._sides.theirs
        if not self._may_write(path) or not all(side.is_text_or_absent(path) for side in (base, ours, theirs)):
            why = "is no text that can be merged" if self._may_write(path) else "is no file that a job may write"
            self._problems.append(_problem(path, f"Both sides changed this file, which {why}. Merge it with git."))
        elif path in ours.files and path in theirs.files:
            self._merge(path, path, path, path)
        elif path in ours.files:
            self._one_deleted(path, theirs, ours)
        else:
            self._one_deleted(path, ours, theirs)

    def _one_deleted(self, path: str, where: Side, other: Side) -> None:
        """Merge a file that one side renamed or deleted, and the other changed."""
        name = self._renames.new_name(path, where)
        if name is None or name in other.files or not self._may_write(name) or where.text(name) is None:
            self._merge(path, path, path, path)
            return
        self._texts.changes[path] = None
        if where is self._sides.theirs:
            self._merge(name, path, path, name)
        else:
            self._merge(name, path, name, path)

    def _renamed_twice(self, path: str) -> None:
        ours, theirs = (self._renames.new_name(path, side) for side in (self._sides.ours, self._sides.theirs))
        if ours is None or theirs is None or ours == theirs or not self._may_write(ours) or not self._may_write(theirs):
            return
        if ours in self._sides.theirs.files or theirs in self._sides.ours.files:
            return
        self._texts.changes[ours] = None
        self._merge(theirs, path, ours, theirs)

    def _merge(self, to: str, base: str, ours: str, theirs: str) -> None:
        sides = self._sides
        self._texts.merge(to, sides.base.text(base), sides.ours.text(ours), sides.theirs.text(theirs))


class _Texts:
    """Merged texts, and what is left to decide in them."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._effort = Effort(MERGE_STEPS)
        self._shown = MAX_SHOWN_OF_ALL
        self.changes: dict[str, str | None] = {}
        self.conflicts: list[MergeConflict] = []

    def merge(self, path: str, base: str | None, ours: str | None, theirs: str | None) -> None:
        """Merge three texts of a file; None where it does not exist."""
        if ours == theirs or theirs == base:
            self.changes[path] = ours
        elif ours == base:
            self.changes[path] = theirs
        elif ours is None or theirs is None:
            kept = LineConflict((), _lines(ours), _lines(theirs))
            did = {True: "deleted", False: "changed"}
            names = f"{self._names.ours}: {did[ours is None]}", f"{self._names.theirs}: {did[theirs is None]}"
            self._keep(path, (Part(conflict=kept),), "deleted", names)
        elif base is None:
            parts = merged_additions(ours, theirs, self._effort)
            self._keep(path, parts, "added", (self._names.ours, self._names.theirs))
        else:
            parts = merged(base, ours, theirs, self._effort)
            self._keep(path, parts, "changed", (self._names.ours, self._names.theirs))

    def _keep(
        self,
        path: str,
        parts: tuple[Part, ...],
        kind: Literal["changed", "added", "deleted"],
        names: tuple[str, str],
    ) -> None:
        text = text_of(parts)
        if text is not None:
            self.changes[path] = text
            return
        text, starts = marked(parts, *names)
        self.changes[path] = text
        for line, block in zip(starts, _blocks(text, starts), strict=True):
            shown = bounded(block, max(0, min(MAX_SHOWN, self._shown)))
            self._shown -= len(shown)
            self.conflicts.append(MergeConflict(path, kind, line, shown))


def _lines(text: str | None) -> tuple[str, ...]:
    return tuple((text or "").splitlines(keepends=True))


def _blocks(text: str, starts: tuple[int, ...]) -> Iterator[str]:
    """Yield the text of each conflict, its markers included."""
    lines = text.splitlines(keepends=True)
    for start in starts:
        end = next(at for at in range(start, len(lines)) if lines[at].startswith(END))
        yield "".join(lines[start - 1 : end + 1])


def _problem(path: str, message: str) -> Problem:
    return Problem("conflicts", path, message, code="merge_conflict")
