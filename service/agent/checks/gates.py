"""Checks before a pull request: only what the job's changes break, not what was broken before.

Each gate compares a file as it was with how it is. A file that moved is compared with what it was under its old name.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff

from service.agent.checks import (
    addresses,
    code_gate,
    conflicts,
    images,
    markup,
    navigation,
    quoted,
    unlisted,
    unreachable,
    unsourced,
)
from service.agent.checks.changed import Changed
from service.agent.checks.links.links import Links
from service.agent.checks.pages import markdown_of
from service.agent.checks.rules import (
    ANCHOR_BROKEN,
    CODE_FENCE_UNCLOSED,
    FRONT_MATTER_INVALID,
    FRONT_MATTER_REMOVED,
    IMPORT_REMOVED,
    LINK_BROKEN,
    NAME_LEFT,
    NAVIGATION_INVALID,
    NAVIGATION_PAGE_MISSING,
    PATH_REFUSED,
    REFERENCE_UNKNOWN,
    RULES,
    SECRET,
    SHRUNK,
    TAG_UNBALANCED,
    TOO_LARGE,
)
from service.agent.guards import configurations
from service.agent.sources import Private
from service.agent.workspace import Workspace
from service.domain.errors import Invalid
from service.domain.jobs.decider import Problem
from service.markup.front_matter import block_of
from service.markup.markdown import Markdown
from service.markup.pages import is_markdown

NOTHING_PRIVATE = Private()
NOTHING_SAID: Mapping[str, str] = {}
MAX_PROBLEMS = 200
MAX_CHANGED_FILES = 150
MAX_CHANGED_LINES = 10_000
"""Limit for the changed lines of a job: no one reviews a larger pull request."""
SHRUNK_TO = 0.3
MIN_LINES_TO_SHRINK = 60


_ORDER = {rule.code: number for number, rule in enumerate(RULES)}


async def check(
    workspace: Workspace,
    links: Links,
    texts: Sequence[str] | None = None,
    asked: Sequence[str] = (),
    *,
    private: Private = NOTHING_PRIVATE,
    said: Mapping[str, str] = NOTHING_SAID,
) -> tuple[Problem, ...]:
    """Return the problems that the changes cause, at most ``MAX_PROBLEMS``, those of the most serious gates first.

    ``texts``: what was said and read in the job; without them it is not checked where names come from.
    ``asked``: what people said alone, who may ask for what is a problem otherwise. ``private``: what was read of
    repositories that are not public; it must not stand in the changes, nor in what is ``said`` of them.
    """
    effective = await workspace.effective_changes()
    if not effective:
        return tuple(await asyncio.to_thread(quoted.check, (), said, private))
    before = {path: await workspace.base_text(path) for path in effective}
    came_from = {to: path for path, to in (await links.moved()).items()}
    changed = [
        Changed(path, before[came_from[path]], text, is_moved=True)
        if before[path] is None and path in came_from
        else Changed(path, before[path], text)
        for path, text in effective.items()
    ]
    found = await _paths(workspace, effective)
    found += await asyncio.to_thread(check_files, changed)
    found += await asyncio.to_thread(quoted.check, changed, said, private)
    found += await _code_navigation(workspace, effective)
    named = {(problem.path, problem.line) for problem in found}
    for link in await links.broken_by_changes():
        if link.is_for_people and (link.path, link.line) in named:
            continue
        rule = ANCHOR_BROKEN if link.lacks_anchor else LINK_BROKEN
        if link.is_for_people:
            rule = NAME_LEFT
        elif navigation.is_navigation(link.path):
            rule = NAVIGATION_PAGE_MISSING
        shown = link.found.strip("()\"' ")
        hint = f"; it could be {link.suggestions[0].strip(chr(40) + chr(41))}" if link.suggestions else ""
        fault = "is left" if link.is_for_people else "is broken"
        found.append(rule.problem(link.path, f"{shown} {fault}: {link.reason}{hint}", link.line))
    for unsure in await links.new_unknown():
        message = f"It is not known what {unsure.target[:200]} leads to: {unsure.reason}. Look it up."
        found.append(REFERENCE_UNKNOWN.problem(unsure.path, message, unsure.line))
    for gate in (code_gate.check, addresses.check, images.check, unlisted.check):
        found += await gate(links, changed)
    found += await unreachable.check(links, changed, asked)
    if texts is not None:
        found += await unsourced.check(workspace, changed, texts, asked)
    found.sort(key=lambda problem: (not problem.is_error, _ORDER[problem.code]))
    return tuple(found[:MAX_PROBLEMS])


def check_files(changed: list[Changed]) -> list[Problem]:
    """The gates that need nothing but the changed files' text."""
    found: list[Problem] = []
    for file in changed:
        if file.after is None:
            continue
        found += secrets(file)
        found += conflicts.markers(file.path, file.before or "", file.after)
        if is_markdown(file.path):
            found += front_matter(file)
            found += body(file)
        if navigation.is_navigation(file.path):
            found += navigation_file(file)
    return found + size(changed)


def secrets(file: Changed) -> list[Problem]:
    """The text itself is not repeated: problems are shown to people and recorded."""
    known = {secret for _, secret, _ in markup.secrets(file.before or "")}
    return [
        SECRET.problem(file.path, f"This looks like {kind}. Use a placeholder instead.", line)
        for kind, secret, line in markup.secrets(file.after or "")
        if secret not in known
    ]


def front_matter(file: Changed) -> list[Problem]:
    before, after = file.before or "", file.after or ""
    problem = markup.front_matter_problem(after)
    if problem is not None:
        if file.before is not None and markup.front_matter_problem(before) is not None:
            return []
        return [FRONT_MATTER_INVALID.problem(file.path, problem[1], problem[0])]
    if block_of(before) is not None and block_of(after) is None:
        return [FRONT_MATTER_REMOVED.problem(file.path, "The page had front matter, and now has none.", 1)]
    return []


def body(file: Changed) -> list[Problem]:
    before, after = markdown_of(file.before or "", file.path), markdown_of(file.after or "", file.path)
    found: list[Problem] = []
    fence = after.unclosed_fence
    if fence is not None and (file.before is None or before.unclosed_fence is None):
        found.append(CODE_FENCE_UNCLOSED.problem(file.path, "This code fence is never closed.", fence))
        return found  # all that follows reads as code
    if file.path.endswith(".mdx") or markup.imports(before):
        found += _unbalanced(file.path, before, after, components=True)
    found += _unbalanced(file.path, before, after, components=False)
    kept, used = markup.imports(after), markup.components(after)
    for name, line in markup.imports(before).items():
        if name not in kept and name[:1].isupper() and name in used:
            found.append(IMPORT_REMOVED.problem(file.path, f"{name} is used, but no longer imported.", line))
    return found


def _unbalanced(path: str, before: Markdown, after: Markdown, *, components: bool) -> Iterator[Problem]:
    was = markup.unbalanced(before, components=components)
    for name, (surplus, line) in markup.unbalanced(after, components=components).items():
        if was.get(name, (0, 0))[0] != surplus:
            shown = f"<{name}>" if components else f"{{{{< {name} >}}}}"
            missing = "closed" if surplus > 0 else "opened"
            yield TAG_UNBALANCED.problem(path, f"{shown} is not {missing} as often as it should be.", line)


def navigation_file(file: Changed) -> list[Problem]:
    problem = navigation.parse_problem(file.path, file.after or "")
    if problem is None or (file.before is not None and navigation.parse_problem(file.path, file.before) is not None):
        return []
    return [NAVIGATION_INVALID.problem(file.path, problem[1], problem[0])]


def size(changed: list[Changed]) -> list[Problem]:
    found: list[Problem] = []
    if len(changed) > MAX_CHANGED_FILES:
        message = f"{len(changed)} files are changed; more than {MAX_CHANGED_FILES} are hard to review."
        found.append(TOO_LARGE.problem("", message))
    lines = 0
    for file in changed:
        before, after = (file.before or "").splitlines(), (file.after or "").splitlines()
        if before == after:
            continue
        if file.after is not None and len(before) >= MIN_LINES_TO_SHRINK and len(after) < SHRUNK_TO * len(before):
            message = f"The file had {len(before)} lines, and now has {len(after)}. Is that meant?"
            found.append(SHRUNK.problem(file.path, message))
        if lines <= MAX_CHANGED_LINES:
            lines += _changed_lines(before, after)
    if lines > MAX_CHANGED_LINES:
        found.append(TOO_LARGE.problem("", f"More than {MAX_CHANGED_LINES} lines are changed."))
    return found


def _changed_lines(before: list[str], after: list[str]) -> int:
    if abs(len(before) - len(after)) > MAX_CHANGED_LINES or len(before) + len(after) > 2 * MAX_CHANGED_LINES:
        return abs(len(before) - len(after))  # a diff of files that long takes seconds
    common = 0
    while common < min(len(before), len(after)) and before[common] == after[common]:
        common += 1
    diff = unified_diff(before[common:], after[common:], n=0, lineterm="")
    return sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in diff)


async def _paths(workspace: Workspace, effective: Mapping[str, str | None]) -> list[Problem]:
    """Names that git's tree does not take: where a link or a submodule is, which no tool shows, or a twin of one."""
    try:
        await workspace.rehearse(effective)
    except Invalid as error:
        return [PATH_REFUSED.problem("", f"This cannot be committed: {error}")]
    return []


async def _code_navigation(workspace: Workspace, effective: Mapping[str, str | None]) -> list[Problem]:
    """Return problems for deleted pages that are named in a sidebar which is a program."""
    gone = [path for path, text in effective.items() if text is None]
    if not gone:
        return []
    found: list[Problem] = []
    for path in await asyncio.to_thread(_sidebars, workspace):
        text = await workspace.text(path) or ""
        root = navigation.root_of_code(path)
        for page in gone:
            line = navigation.named_in_code(text, page, root)
            if line is not None:
                message = f"It names {page}, which does not exist any more."
                found.append(NAVIGATION_PAGE_MISSING.problem(path, message, line))
    return found


def _sidebars(workspace: Workspace) -> list[str]:
    """The first few that are programs."""
    return [path for path in workspace.paths() if configurations.is_code_navigation(path)][:5]
