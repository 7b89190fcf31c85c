"""Two trees compared for people: files, unified hunks, counts; within limits, so that no change makes a page that a
browser or this service cannot carry.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from dulwich.objects import ObjectID

from service.adapters.git_history import is_folder
from service.adapters.git_names import MAX_DEPTH
from service.adapters.git_objects import Objects
from service.ports.code_host import Diffed

MAX_FILES = 300
MAX_PATCH_BYTES = 128 * 1024
"""Of one file."""
MAX_PAGE_BYTES = 1024 * 1024
"""Of all patches."""
MAX_CHANGES = 20_000
MAX_PAIRS = 4_000_000
"""Lines on one side times lines on the other, in the part that differs: above it, no search for common lines."""
CONTEXT = 3
SIMILAR = 0.6
MAX_RENAME_PAIRS = 400

Kind = Literal["added", "deleted", "changed", "moved"]
Opcode = tuple[str, int, int, int, int]


class Change(NamedTuple):
    path: bytes
    old: ObjectID | None
    new: ObjectID | None
    old_mode: int
    new_mode: int
    old_path: bytes


class TooDeep(Exception):
    """Folders nested deeper than any documentation's."""


def changes(objects: Objects, old: ObjectID | None, new: ObjectID | None, prefix: bytes = b"") -> Iterator[Change]:
    """Files that differ, trees that are the same not entered, in the order of their paths. Raises TooDeep."""
    if old == new:
        return
    if prefix.count(b"/") > MAX_DEPTH:
        raise TooDeep
    before = {entry.name: entry for entry in objects.entries(old)} if old else {}
    after = {entry.name: entry for entry in objects.entries(new)} if new else {}
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name), after.get(name)
        if one == other:
            continue
        path = prefix + name
        old_tree = one.id if one and is_folder(one) else None
        new_tree = other.id if other and is_folder(other) else None
        old_file = one if one and not is_folder(one) else None
        new_file = other if other and not is_folder(other) else None
        if old_file or new_file:
            yield Change(
                path,
                old_file.id if old_file else None,
                new_file.id if new_file else None,
                old_file.mode if old_file else 0,
                new_file.mode if new_file else 0,
                path,
            )
        if old_tree or new_tree:
            yield from changes(objects, old_tree, new_tree, path + b"/")


def diff(objects: Objects, old: ObjectID | None, new: ObjectID | None) -> tuple[list[Diffed], bool]:
    """The files of the difference, and whether some of it had to be left out."""
    found: list[Change] = []
    try:
        for change in changes(objects, old, new):
            if len(found) >= MAX_CHANGES:
                return _shown(objects, found[:MAX_FILES], truncated=True)
            found.append(change)
    except TooDeep:
        return _shown(objects, found[:MAX_FILES], truncated=True)
    found = _with_moves(objects, found)
    return _shown(objects, found[:MAX_FILES], truncated=len(found) > MAX_FILES)


def _shown(objects: Objects, found: Sequence[Change], *, truncated: bool) -> tuple[list[Diffed], bool]:
    files, used = [], 0
    for change in found:
        file, cut = _diffed(objects, change, MAX_PAGE_BYTES - used)
        used += len(file.patch)
        truncated = truncated or cut
        files.append(file)
    return files, truncated


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
    if len(left) * len(gone) <= MAX_RENAME_PAIRS:
        for change in left:
            best = max(((_similarity(objects, source, change), source.path) for source in gone.values()), default=None)
            if best is not None and best[0] >= SIMILAR:
                source = gone.pop(best[1])
                moved[change.path] = change._replace(old=source.old, old_mode=source.old_mode, old_path=source.path)
    sources = {change.old_path for change in moved.values()}
    return [moved.get(change.path, change) for change in found if not (change.new is None and change.path in sources)]


def _similarity(objects: Objects, one: Change, other: Change) -> float:
    """Lines in common, by count: cheap, and near to what git finds."""
    old, new = _text(objects, one.old), _text(objects, other.new)
    if not old or not new:
        return 0.0
    lines, others = old.splitlines(), new.splitlines()
    remaining: dict[bytes, int] = {}
    for line in lines:
        remaining[line] = remaining.get(line, 0) + 1
    common = 0
    for line in others:
        if remaining.get(line, 0):
            remaining[line] -= 1
            common += 1
    return common / max(len(lines), len(others), 1)


def _text(objects: Objects, blob: ObjectID | None) -> bytes | None:
    return b"" if blob is None else objects.blob(blob)


def _diffed(objects: Objects, change: Change, room: int) -> tuple[Diffed, bool]:
    kind: Kind = "changed"
    if change.old is None:
        kind = "added"
    elif change.new is None:
        kind = "deleted"
    elif change.old_path != change.path:
        kind = "moved"
    path, old_path = _shown_path(change.path), _shown_path(change.old_path)
    submodule = 0o160000 in (change.old_mode, change.new_mode)
    old = b"" if submodule else _text(objects, change.old)
    new = b"" if submodule else _text(objects, change.new)
    if old is None or new is None:
        return Diffed(path, old_path, kind, "", 0, 0), True  # too large to be read
    if b"\0" in old[:8_000] or b"\0" in new[:8_000]:
        return Diffed(path, old_path, kind, "", 0, 0, binary=True), False
    patch, added, removed = unified(old, new)
    if len(patch) > min(MAX_PATCH_BYTES, room):
        return Diffed(path, old_path, kind, "", added, removed), True
    return Diffed(path, old_path, kind, patch, added, removed), False


def _shown_path(path: bytes) -> str:
    return path.decode("utf-8", "replace")


def unified(old: bytes, new: bytes) -> tuple[str, int, int]:
    """The hunks of a unified diff, and how many lines it adds and removes."""
    before, after = _lines(old), _lines(new)
    opcodes = _opcodes(before, after)
    added = sum(end - start for tag, _, _, start, end in opcodes if tag != "equal")
    removed = sum(end - start for tag, start, end, _, _ in opcodes if tag != "equal")
    hunks = []
    for group in _grouped(opcodes):
        first, last = group[0], group[-1]
        hunks.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n")
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                hunks.extend(_marked(" ", before[old_start:old_end]))
            else:
                hunks.extend(_marked("-", before[old_start:old_end]))
                hunks.extend(_marked("+", after[new_start:new_end]))
    return "".join(hunks), added, removed


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace")
    lines = text.split("\n")
    whole = [line + "\n" for line in lines[:-1]]
    return whole + ([lines[-1]] if lines[-1] else [])


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")


def _range(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1 if count else start},{count}" if count != 1 else f"{start + 1}"


def _opcodes(before: Sequence[str], after: Sequence[str]) -> list[Opcode]:
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    opcodes: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    if len(old) * len(new) > MAX_PAIRS:
        opcodes.append(("replace", head, head + len(old), head, head + len(new)))
    else:
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > 250_000).get_opcodes():
            opcodes.append((tag, head + a, head + b, head + c, head + d))
    if tail:
        opcodes.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return opcodes


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
