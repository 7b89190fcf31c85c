"""The tool that shows what was changed, as a unified diff; its cost is bounded however long the files are."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from service.agent.tools.reading import lines_of
from service.agent.tools.results import MAX_RESULT_CHARACTERS, Outcome, number_of, with_data
from service.agent.tree import EVERYTHING, is_within
from service.agent.workspace import Workspace
from service.domain.comparison import Effort, Opcode, coarse_opcodes, opcodes

CONTEXT = 3
STEPS = 4_000_000
"""For one diff. A file whose comparison takes more has no common lines but at its beginning and end."""
MAX_LINE = 2_000
"""Characters of a line that are shown."""

Versions = tuple[str, str, str | None, str | None]
"""Old path, new path, old text and new text; None where there is no file."""


async def own_diff(workspace: Workspace, moved: Mapping[str, str], path: str) -> Outcome:
    """Show the job's changes. ``moved``: old path to new path of files that were moved."""
    scope = workspace.folder(path)
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


def shown(head: str, files: Sequence[Versions]) -> Outcome:
    """Show as many of the files as there is space for, and name the others."""
    effort, room, parts, named = Effort(STEPS), MAX_RESULT_CHARACTERS - 2_000, list[str](), list[str]()
    for file in files:
        text = "\n".join(unified(file, effort))
        if len(text) > room and not parts:
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
    return Outcome(with_data(f"{head}:", "\n".join(parts))[0])


def unified(file: Versions, effort: Effort) -> Iterator[str]:
    """Yield the lines of a unified diff of one file."""
    old, new, before, after = file
    yield f"--- {f'a/{old}' if before is not None else '/dev/null'}"
    yield f"+++ {f'b/{new}' if after is not None else '/dev/null'}"
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
