"""The tools that show what was changed: by the job, or by earlier commits. A diff's cost is bounded however long the
files are.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from service.agent.guards.refused import Refused
from service.agent.tools.arguments import History
from service.agent.tools.excerpts import beginning
from service.agent.tools.results import MAX_RESULT_CHARACTERS, Outcome, fitting, named, number_of, with_data
from service.agent.tree import EVERYTHING, Tree, is_within, lines_of
from service.agent.workspace import Workspace
from service.domain.texts.comparison import Effort, Opcode, coarse_opcodes, opcodes
from service.domain.tool_values import Diffed
from service.ports.docs_source import CommitChanges, PastCommit

CONTEXT = 3
STEPS = 4_000_000
"""For one diff. A file whose comparison takes more has no common lines but at its beginning and end."""
ROOM_FOR_NAMES = 4_000
"""Characters of a result that are kept for what stands above and below the lines."""
MAX_LINE = 2_000
"""Characters of a line that are shown."""

Versions = tuple[str, str, str | None, str | None]
"""Old path, new path, old text and new text; None where there is no file."""


async def own_diff(
    workspace: Workspace, moved: Mapping[str, str], paths: Sequence[str] = ("",), start_line: int = 1
) -> Outcome:
    """Show the job's changes. ``moved``: old path to new path of files that were moved."""
    scopes = [await workspace.checked_folder(path) for path in paths]
    effective = await workspace.effective_changes()
    came_from = {to: old for old, to in moved.items() if to in effective and old in effective}
    versions: list[Versions] = []
    for new, text in effective.items():
        if new in moved and moved[new] in came_from:
            continue  # it is shown where it is now
        old = came_from.get(new, new)
        if any(is_within(new, scope) or is_within(old, scope) for scope in scopes):
            versions.append((old, new, await workspace.base_text(old), text))
    if not versions:
        where = [scope for scope in scopes if scope not in ("", EVERYTHING)]
        return Outcome(f"You have changed nothing{' in ' + named(where) if where else ''}.")
    return await asyncio.to_thread(shown, f"{number_of(len(versions), 'file')} changed", versions, start_line)


async def commit_diff(tree: Tree, name: str, paths: Sequence[str] = ("",), start_line: int = 1) -> Outcome:
    """Show what a commit of the tree's history changed."""
    found, texts = await tree.changed_by(name.strip(), await _scopes(tree, paths))
    head = f"Commit {found.commit.commit[:8]} changed {number_of(len(found.files), 'file')}"
    return await _commits_diff(tree, head, found, texts, start_line)


async def range_diff(tree: Tree, since: str, to: str, paths: Sequence[str], start_line: int = 1) -> Outcome:
    """Show what differs between two commits, tags or branches; an empty ``to`` is the tree as it was found."""
    found, texts = await tree.compared(since.strip(), to.strip(), await _scopes(tree, paths))
    shown_to = to.strip() or found.commit.commit[:8]
    head = f"From {since.strip()[:100]} to {shown_to[:100]}, {number_of(len(found.files), 'file')} changed"
    return await _commits_diff(tree, head, found, texts, start_line)


async def _commits_diff(
    tree: Tree, head: str, found: CommitChanges, texts: Mapping[str, str | None], start_line: int
) -> Outcome:
    versions = [
        (
            tree.prefix + file.path,
            tree.prefix + file.path,
            texts[file.old] if file.old else None,
            texts[file.new] if file.new else None,
        )
        for file in found.files
        if not any(blob is not None and texts[blob] is None for blob in (file.old, file.new))
    ]
    paths = [tree.prefix + file.path for file in found.files]
    binary = [path for path in paths if path not in {version[1] for version in versions}]
    newest = _line(found.commit)
    if not found.files:
        return Outcome(with_data(f"{newest[:8]}: nothing changed there that can be shown:", newest)[0])
    rest = [f"Not text: {named(binary)}"] if binary else []
    rest += [f"{number_of(found.more, 'more file')} changed: give a path to see them"] if found.more else []
    above, commit = (newest, *rest), found.commit.commit
    return await asyncio.to_thread(shown, head, versions, start_line, above=above, commit=commit)


async def history(tree: Tree, asked: History) -> Outcome:
    scope = await _scope(tree, asked.path)
    found = await tree.history(scope, asked.skip + asked.limit)
    commits = found.commits[asked.skip :]
    where = tree.prefix + scope if scope else tree.prefix or "the repository"
    more = "" if found.is_whole or len(commits) >= asked.limit else " The history before is not here."
    if len(commits) >= asked.limit:
        more = f" There may be more: set skip to {asked.skip + asked.limit}."
    if not commits:
        before = " before these" if asked.skip else ""
        return Outcome(f"No commit of {where}{before} is in the history that is here.")
    lines = "\n".join(map(_line, commits))
    head = f"The last {number_of(len(commits), 'commit')} of {where}.{more}"
    if asked.skip:
        head = f"{number_of(len(commits), 'commit')} of {where}, after the first {asked.skip}.{more}"
    return Outcome(with_data(head, lines)[0])


def _line(commit: PastCommit) -> str:
    return f"{commit.commit[:10]} {commit.at:%Y-%m-%d} {commit.author}: {commit.subject}"


async def _scopes(tree: Tree, paths: Sequence[str]) -> Sequence[str]:
    """Return the files and folders that are meant; none for everything."""
    scopes = [await _scope(tree, path) for path in paths]
    return scopes if all(scopes) else ()


async def _scope(tree: Tree, path: str) -> str:
    """Return the file or folder that is meant, which may be gone by now; empty for everything."""
    scope = await tree.checked_folder(path)
    return "" if scope == EVERYTHING else scope


def shown(
    head: str, files: Sequence[Versions], start_line: int = 1, above: Sequence[str] = (), commit: str = ""
) -> Outcome:
    """Show a diff from one of its lines on, as far as there is space, and name the files that come after;
    ``commit``: the one that changed them.
    """
    effort, lines, begins = Effort(STEPS), list[str](), dict[str, int]()
    for file in files:
        begins[file[1]] = len(lines) + 1
        lines += unified(file, effort)
    if start_line > max(len(lines), 1):
        raise Refused(f"The diff has {number_of(len(lines), 'line')}.", "Give a start_line among them.")
    part = fitting(lines[start_line - 1 :], MAX_RESULT_CHARACTERS - ROOM_FOR_NAMES)
    end = start_line + len(part) - 1
    parts = [*(above if start_line == 1 else ()), *part]
    if end < len(lines):
        head += f"; lines {start_line} to {end} of {len(lines)} (go on with start_line {end + 1}, or ask by path)"
        after = [path for path, begin in begins.items() if begin > end]
        if after:
            parts.append(f"[{number_of(len(after), 'more file')}: {beginning(named(after), 1_500)}]")
    said, span = with_data(f"{head}:", "\n".join(parts))
    return Outcome(said, value=Diffed(span, commit) if commit else None)


def unified(file: Versions, effort: Effort) -> Iterator[str]:
    """Yield the lines of a unified diff of one file."""
    old, new, before, after = file
    yield f"--- {_side('a', old) if before is not None else '/dev/null'}"
    yield f"+++ {_side('b', new) if after is not None else '/dev/null'}"
    a, b = lines_of(before or ""), lines_of(after or "")
    codes = opcodes(a, b, effort, most=STEPS)
    for group in _hunks(coarse_opcodes(a, b) if codes is None else codes):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from _marked(" ", a[i:j])
            else:
                yield from _marked("-", a[i:j])
                yield from _marked("+", b[k:m])


def _side(letter: str, path: str) -> str:
    return path if path.startswith("@") else f"{letter}/{path}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        text = line.removesuffix("\n")
        yield mark + (text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]} [… {len(text) - MAX_LINE} characters]")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _range(start: int, end: int) -> str:
    return f"{start + (start < end)},{end - start}"


def _hunks(codes: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """Yield the changes that are near to each other, with the lines around them."""
    group: list[Opcode] = []
    for tag, i, j, k, m in codes:
        if tag != "equal":
            group.append((tag, i, j, k, m))
            continue
        if group and j - i > 2 * CONTEXT:
            yield [*group, (tag, i, i + CONTEXT, k, k + CONTEXT)]
            group = []
            i, k = j - CONTEXT, m - CONTEXT
        elif not group:
            i, k = max(i, j - CONTEXT), max(k, m - CONTEXT)
        group.append((tag, i, j, k, m))
    if any(code[0] != "equal" for code in group):
        if group[-1][0] == "equal":
            tag, i, j, k, m = group[-1]
            group[-1] = (tag, i, min(j, i + CONTEXT), k, min(m, k + CONTEXT))
        yield group
