"""Two trees compared for people: files, hunks, counts; within limits, so that no change makes a page that a
browser or this service cannot carry.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from dulwich.objects import ObjectID
from msgspec.structs import replace

from service.adapters.git.commit_changes import Change, TooDeep, changes
from service.adapters.git.objects import Objects
from service.domain.texts.comparison import Effort, Opcode, coarse_opcodes, opcodes
from service.ports.code_host import MAX_SHOWN_LINE, Diffed, DiffHunk, DiffLine

FILES_PER_PAGE = 100
MAX_CHANGES = 20_000
MAX_LISTED_BYTES = 8 * 1024 * 1024
"""Limit for the files that are read for one page, in bytes. The lines of files beyond it are not counted."""
OPEN_LINES, OPEN_CHARACTERS = 400, 32 * 1024
"""A file whose hunks are longer is shown apart."""
LINES_OF_ALL, CHARACTERS_OF_ALL = 2_000, 160 * 1024
"""Limits for the hunks of a page, which a browser lays out within half a second; files beyond are shown apart."""
MAX_LINES, MAX_CHARACTERS = 2_000, 256 * 1024
"""Limits for hunks that are shown on their own; the rest is left out."""
LINE_STEPS = 1_000_000
"""For a page, or for a file: one whose comparison takes more has no common lines but at its beginning and end."""
SAMPLED_PAIRS = 250_000
"""Lines on one side times lines on the other: above it, lines that occur often are not looked for."""
CONTEXT = 3
SIMILAR = 0.6
MAX_RENAME_PAIRS, MAX_RENAME_BYTES = 400, 4 * 1024 * 1024

Kind = Literal["added", "deleted", "changed", "moved"]


class Diff:
    """The files that differ between two trees, found once. ``is_cut``: there are more than are looked at."""

    def __init__(self, objects: Objects, old: ObjectID | None, new: ObjectID | None) -> None:
        self._objects = objects
        self.is_cut = False
        found: list[Change] = []
        try:
            for change in changes(objects, old, new):
                if len(found) >= MAX_CHANGES:
                    self.is_cut = True
                    break
                found.append(change)
            else:
                found = _with_moves(objects, found)
        except TooDeep:
            self.is_cut = True
        self._changes = found

    def __len__(self) -> int:
        return len(self._changes)

    def page(self, first: int) -> list[Diffed]:
        """A page of files, from the given one on, the first being 1. Hunks are left out where they are long."""
        effort, left, files = Effort(LINE_STEPS), MAX_LISTED_BYTES, []
        for change in self._changes[first - 1 : first - 1 + FILES_PER_PAGE]:
            size = sum(self._objects.size(blob) or 0 for blob in (change.old, change.new) if blob is not None)
            if size > left and not _is_submodule(change):
                files.append(_undone(change))
            else:
                left -= 0 if _is_submodule(change) else size
                files.append(_diffed(self._objects, change, effort))
        return _opened(files)

    def file(self, place: int) -> Diffed | None:
        """One file, or its beginning; None when there are fewer."""
        if not 1 <= place <= len(self._changes):
            return None
        file = _diffed(self._objects, self._changes[place - 1], Effort(LINE_STEPS))
        hunks, is_cut = _beginning(file.hunks or ())
        return replace(file, hunks=hunks, is_cut=is_cut)

    def texts(self, place: int) -> tuple[str, bytes | None, bytes | None, bool] | None:
        """Return a file's path, its content on both sides (None: it is not there), and whether it is text that is
        read; None when there are fewer files.
        """
        if not 1 <= place <= len(self._changes):
            return None
        change = self._changes[place - 1]
        if _is_submodule(change):
            return _shown_path(change.path), None, None, False
        old, new = _text(self._objects, change.old), _text(self._objects, change.new)
        if old is None or new is None or b"\0" in old[:8_000] or b"\0" in new[:8_000]:
            return _shown_path(change.path), None, None, False
        return _shown_path(change.path), old if change.old else None, new if change.new else None, True


def _opened(files: Sequence[Diffed]) -> list[Diffed]:
    """Return the files, without the hunks that are shown apart."""
    lines, characters, opened = LINES_OF_ALL, CHARACTERS_OF_ALL, []
    for file in files:
        size = sum(len(line.text) + 2 for hunk in file.hunks or () for line in hunk.lines)
        if file.lines > min(OPEN_LINES, lines) or size > min(OPEN_CHARACTERS, characters):
            opened.append(replace(file, hunks=None))
        else:
            lines, characters = lines - file.lines, characters - size
            opened.append(_with_short_lines(file))
    return opened


def _with_short_lines(file: Diffed) -> Diffed:
    if not file.hunks:
        return file
    return replace(file, hunks=[replace(hunk, lines=[_shortened(line) for line in hunk.lines]) for hunk in file.hunks])


def _beginning(hunks: Sequence[DiffHunk]) -> tuple[list[DiffHunk], bool]:
    """Return the part that is shown, and whether there is more."""
    kept: list[DiffHunk] = []
    rows, characters = MAX_LINES, MAX_CHARACTERS
    for hunk in hunks:
        rows -= 1
        lines: list[DiffLine] = []
        for line in map(_shortened, hunk.lines):
            rows -= 1 + line.ends_file_without_newline
            characters -= len(line.text) + 2
            if rows < 0 or characters < 0:
                return [*kept, replace(hunk, lines=lines)] if lines else kept, True
            lines.append(line)
        kept.append(replace(hunk, lines=lines))
    return kept, False


def _shortened(line: DiffLine) -> DiffLine:
    if len(line.text.removesuffix("\r")) <= MAX_SHOWN_LINE:
        return line
    return replace(line, text=line.text[:MAX_SHOWN_LINE], is_cut=True)


def _with_moves(objects: Objects, found: list[Change]) -> list[Change]:
    """Deleted and added files of the same, or nearly the same, content become one moved file."""
    gone = {change.path: change for change in found if change.new is None}
    come = [change for change in found if change.old is None]
    moved: dict[bytes, Change] = {}
    by_content: dict[tuple[ObjectID | None, int], list[Change]] = {}
    for change in gone.values():
        by_content.setdefault((change.old, change.old_mode), []).append(change)
    for change in come:
        same = by_content.get((change.new, change.new_mode))
        if same:
            source = same.pop()
            moved[change.path] = change._replace(old=source.old, old_mode=source.old_mode, old_path=source.path)
            del gone[source.path]
    left = [change for change in come if change.path not in moved]
    if len(left) * len(gone) <= MAX_RENAME_PAIRS and _bytes(objects, [*left, *gone.values()]) <= MAX_RENAME_BYTES:
        lines = {change.path: _line_counts(objects, change) for change in (*left, *gone.values())}
        for change in left:
            best = max(
                ((_similarity(lines[source.path], lines[change.path]), source.path) for source in gone.values()),
                default=None,
            )
            if best is not None and best[0] >= SIMILAR:
                source = gone.pop(best[1])
                moved[change.path] = change._replace(old=source.old, old_mode=source.old_mode, old_path=source.path)
    sources = {change.old_path for change in moved.values()}
    return [moved.get(change.path, change) for change in found if not (change.new is None and change.path in sources)]


def _similarity(old: Counter[bytes], new: Counter[bytes]) -> float:
    """Lines in common, by count: cheap, and near to what git finds."""
    return (old & new).total() / max(old.total(), new.total(), 1)


def _line_counts(objects: Objects, change: Change) -> Counter[bytes]:
    text = None if _is_submodule(change) else _text(objects, change.new or change.old)
    return Counter((text or b"").splitlines())


def _bytes(objects: Objects, changed: Sequence[Change]) -> int:
    """Return the bytes of the files of both sides."""
    blobs = [blob for change in changed if not _is_submodule(change) for blob in (change.old, change.new)]
    return sum(objects.size(blob) or 0 for blob in blobs if blob is not None)


def _is_submodule(change: Change) -> bool:
    return 0o160000 in (change.old_mode, change.new_mode)


def _text(objects: Objects, blob: ObjectID | None) -> bytes | None:
    return b"" if blob is None else objects.blob(blob)


def _undone(change: Change) -> Diffed:
    """A file that has not been read: its lines are not counted."""
    kind: Kind = "changed"
    if change.old is None:
        kind = "added"
    elif change.new is None:
        kind = "deleted"
    elif change.old_path != change.path:
        kind = "moved"
    return Diffed(_shown_path(change.path), _shown_path(change.old_path), kind, None, None, None)


def _diffed(objects: Objects, change: Change, effort: Effort) -> Diffed:
    file, submodule = _undone(change), _is_submodule(change)
    old = b"" if submodule else _text(objects, change.old)
    new = b"" if submodule else _text(objects, change.new)
    if old is None or new is None:
        return replace(file, hunks=(), is_too_large=True)
    return _with_hunks(file, old, new, effort)


def diff_of_texts(texts: Sequence[tuple[str, bytes | None, bytes | None]]) -> list[Diffed]:
    """Compare files by their path and their content on both sides; None: it is not there."""
    effort, files = Effort(LINE_STEPS), []
    for path, old, new in texts:
        kind: Kind = "added" if old is None else "deleted" if new is None else "changed"
        file = _with_hunks(Diffed(path, path, kind, None, None, None), old or b"", new or b"", effort)
        hunks, is_cut = _beginning(file.hunks or ())
        files.append(replace(file, hunks=hunks, is_cut=is_cut))
    return files


def _with_hunks(file: Diffed, old: bytes, new: bytes, effort: Effort) -> Diffed:
    if b"\0" in old[:8_000] or b"\0" in new[:8_000]:
        return replace(file, hunks=(), added=0, removed=0, binary=True)
    hunks, added, removed = compared(old, new, effort)
    rows = sum(1 + line.ends_file_without_newline for hunk in hunks for line in hunk.lines)
    return replace(file, hunks=hunks, added=added, removed=removed, lines=len(hunks) + rows)


def _shown_path(path: bytes) -> str:
    return path.decode("utf-8", "replace")


def compared(old: bytes, new: bytes, effort: Effort) -> tuple[list[DiffHunk], int, int]:
    """Return the hunks, and how many lines were added and removed."""
    before, after = _lines(old), _lines(new)
    often = len(before) * len(after) > SAMPLED_PAIRS
    found = opcodes(before, after, effort, most=LINE_STEPS, autojunk=often) or coarse_opcodes(before, after)
    added = sum(end - start for tag, _, _, start, end in found if tag != "equal")
    removed = sum(end - start for tag, start, end, _, _ in found if tag != "equal")
    hunks = []
    for group in _grouped(found):
        lines: list[DiffLine] = []
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                lines += [_line("same", text) for text in before[old_start:old_end]]
            else:
                lines += [_line("removed", text) for text in before[old_start:old_end]]
                lines += [_line("added", text) for text in after[new_start:new_end]]
        first, last = group[0], group[-1]
        hunks.append(DiffHunk(_first(first[1], last[2]), _first(first[3], last[4]), lines))
    return hunks, added, removed


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace")
    if "\n" not in text:
        text = text.replace("\r", "\n")  # as old Macs wrote: git sees one line
    lines = text.split("\n")
    whole = [line + "\n" for line in lines[:-1]]
    return whole + ([lines[-1]] if lines[-1] else [])


def _line(side: Literal["same", "added", "removed"], text: str) -> DiffLine:
    return DiffLine(side, text.removesuffix("\n"), ends_file_without_newline=not text.endswith("\n"))


def _first(start: int, end: int) -> int:
    return start + 1 if end > start else start


def _grouped(opcodes: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """Changes with three lines around them, near ones together: difflib's ``get_grouped_opcodes`` for given opcodes."""
    group: list[Opcode] = []
    for number, (tag, a, b, c, d) in enumerate(opcodes):
        if tag != "equal":
            group.append((tag, a, b, c, d))
            continue
        first, last = number == 0, number == len(opcodes) - 1
        if not first and not last and b - a <= 2 * CONTEXT:
            group.append((tag, a, b, c, d))
            continue
        if not first:
            group.append((tag, a, min(b, a + CONTEXT), c, min(d, c + CONTEXT)))
            yield group
            group = []
        if not last:
            group.append((tag, max(a, b - CONTEXT), b, max(c, d - CONTEXT), d))
    if any(tag != "equal" for tag, *_ in group):
        yield group
