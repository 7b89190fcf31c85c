"""The tools that show what was changed: by the job, or by earlier commits. A diff's cost is bounded however long the
files are.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from service.agent.tools.arguments import History
from service.agent.tools.results import MAX_RESULT_CHARACTERS, Outcome, number_of, with_data
from service.agent.tree import EVERYTHING, Tree, is_within, lines_of
from service.agent.workspace import Workspace
from service.domain.texts.comparison import Effort, Opcode, coarse_opcodes, opcodes
from service.domain.tool_values import Diffed
from service.ports.docs_source import PastCommit

CONTEXT = 3
STEPS = 4_000_000
"""For one diff. A file whose comparison takes more has no common lines but at its beginning and end."""
MAX_LINE = 2_000
"""Characters of a line that are shown."""

Versions = tuple[str, str, str | None, str | None]
"""Old path, new path, old text and new text; None where there is no file."""


async def own_diff(workspace: Workspace, moved: Mapping[str, str], path: str) -> Outcome:
    """Show the job's changes. ``moved``: old path to new path of files that were moved."""
    scope = await workspace.checked_folder(path)
    effective = await workspace.effective_changes()
    came_from = {to: old for old, to in moved.items() if to in effective and old in effective}
    versions: list[Versions] = []
    for new, text in effective.items():
        if new in moved and moved[new] in came_from:
            continue  # it is shown where it is now
        old = came_from.get(new, new)
        if is_within(new, scope) or is_within(old, scope):
            versions.append((old, new, await workspace.base_text(old), text))
    if not versions:
        where = f" in {scope}" if scope not in ("", EVERYTHING) else ""
        return Outcome(f"You have changed nothing{where}.")
    return await asyncio.to_thread(shown, f"{number_of(len(versions), 'file')} changed", versions)


async def commit_diff(tree: Tree, name: str, path: str) -> Outcome:
    """Show what a commit of the tree's history changed."""
    found, texts = await tree.changed_by(name.strip(), await _scope(tree, path))
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
    named = [tree.prefix + file.path for file in found.files]
    binary = [path for path in named if path not in {version[1] for version in versions}]
    head = _line(found.commit)
    if not found.files:
        return Outcome(with_data(f"{head[:8]} changed nothing there that can be shown:", head)[0])
    rest = [f"Not text: {', '.join(binary[:20])}"] if binary else []
    rest += [f"{number_of(found.more, 'more file')} changed"] if found.more else []
    changed = f"Commit {head[:8]} changed {number_of(len(found.files), 'file')}"
    return await asyncio.to_thread(shown, changed, versions, above=(head, *rest), commit=found.commit.commit)


async def history(tree: Tree, asked: History) -> Outcome:
    scope = await _scope(tree, asked.path)
    found = await tree.history(scope, asked.limit)
    where = tree.prefix + scope if scope else tree.prefix or "the repository"
    more = "" if found.is_whole or len(found.commits) >= asked.limit else " The history before is not here."
    if not found.commits:
        return Outcome(f"No commit of {where} is in the history that is here.")
    lines = "\n".join(map(_line, found.commits))
    return Outcome(with_data(f"The last {number_of(len(found.commits), 'commit')} of {where}.{more}", lines)[0])


def _line(commit: PastCommit) -> str:
    return f"{commit.commit[:10]} {commit.at:%Y-%m-%d} {commit.author}: {commit.subject}"


async def _scope(tree: Tree, path: str) -> str:
    """Return the file or folder that is meant, which may be gone by now; empty for everything."""
    scope = await tree.checked_folder(path)
    return "" if scope == EVERYTHING else scope


def shown(head: str, files: Sequence[Versions], above: Sequence[str] = (), commit: str = "") -> Outcome:
    """Show files as far as there is space for them, and name the others; ``commit``: the one that changed them."""
    effort, room, parts, named = Effort(STEPS), MAX_RESULT_CHARACTERS - 4_000, list(above), list[str]()
    for file in files:
        text = "\n".join(unified(file, effort))
        if len(text) > room and len(parts) == len(above):
            text = f"{text[:room]}\n[… {len(text) - room} characters more]"
        if len(text) > room + 100:
            named.append(file[1])
            continue
        room -= len(text)
        parts.append(text)
    if named:
        some = ", ".join(named[:20]) + (" …" if len(named) > 20 else "")
        parts.append(f"[{number_of(len(named), 'more file')}: {some[:1_500]}]")
        head += "; ask for the rest by path"
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
