"""Mend broken links for which one page clearly fits, and name the others."""

from collections.abc import Sequence

from service.adapters.builtin.editing.steps import MAX_EDITS, MAX_NAMED, Editing, Step, Steps, counted
from service.adapters.builtin.editing.tool_results import dead_links, shown, times_replaced, unknown_links
from service.domain.tool_values import UnknownLinks

MAX_EXAMPLES = 3
"""Links that are named for one reason why it is not known where they lead."""


def mend_links(editing: Editing, name: str, *, folder: str = "") -> Steps:
    """Replace each broken link of the site, or of one folder, for which one page clearly fits, and name the others."""
    yield from _mend(editing, name, changed=False, folder=folder)


def mend_broken_by_changes(editing: Editing, name: str) -> Steps:
    """Mend those that the job's changes broke. It is reported only where there are any."""
    yield from _mend(editing, name, changed=True, folder="")


_Edit = tuple[tuple[str, int, str], str]
"""The path, line and text of a link, and the text in its place."""


def _apart(edits: Sequence[_Edit]) -> list[_Edit]:
    """Return the edits in an order in which none of a line finds what another one wrote, as far as there is one."""
    lines: dict[tuple[str, int], list[_Edit]] = {}
    for edit in edits:
        lines.setdefault(edit[0][:2], []).append(edit)
    ordered: list[_Edit] = []
    for left in lines.values():
        while left:
            first = next((e for e in left if not any(o[0][2] in e[1] for o in left if o is not e)), left[0])
            left.remove(first)
            ordered.append(first)
    return ordered


def _said_unknown(unknown: Sequence[UnknownLinks]) -> str:
    """Return the links that were left alone because nothing proves that they are broken."""
    lines = [
        f"Left alone, because it is not known where they lead: {counted(sum(each.count for each in unknown), 'link')}."
    ]
    for each in unknown:
        shown = ", ".join(f"`{link.target}` ({link.path}, line {link.line})" for link in each.links[:MAX_EXAMPLES])
        more = f" and {each.count - MAX_EXAMPLES} more" if each.count > MAX_EXAMPLES else ""
        lines.append(f"  - {each.reason}: {shown}{more}")
    return "\n".join(lines)


def _mend(editing: Editing, name: str, *, changed: bool, folder: str) -> Steps:
    scope = {"folder": folder} if folder else {}
    tried: set[tuple[str, int, str]] = set()
    pages: set[str] = set()
    fixed = 0
    while True:
        found = yield from editing.one("Checking links. ", "check_links", changed=changed, **scope)
        links, remaining = dead_links(found)
        edits: dict[tuple[str, int, str], str] = {}
        for link in links:
            if link.is_clear and (link.path, link.line, link.found) not in tried:
                edits[link.path, link.line, link.found] = link.suggestion
        batch = _apart(list(edits.items())[: MAX_EDITS - len(tried)])
        if not batch:
            break
        tried |= {key for key, _ in batch}
        calls = [  # by line: the same text may stand elsewhere in code
            ("replace", {"path": path, "old": old, "new": new, "line": line, "all": True})
            for (path, line, old), new in batch
        ]
        results = yield from editing.ask(Step(f"Fixing links in {len({k[0] for k, _ in batch})} pages. ", tuple(calls)))
        for ((path, _, _), _), result in zip(batch, results, strict=True):
            if not result.is_error:
                fixed += times_replaced(result)
                pages.add(path)
    mendable = sum(link.is_clear and (link.path, link.line, link.found) not in tried for link in links)
    if fixed:
        editing.say(f"{name}: {fixed} in {counted(len(pages), 'page')}.")
    elif not changed:
        editing.say("No broken link has a clear replacement." if remaining else "No link is broken.")
    if not changed and (others := unknown_links(found)):
        editing.say(_said_unknown(others))
    if mendable:
        editing.say(f"One job fixes no more than these; {counted(remaining, 'broken link')} left: ask again.")
    elif remaining:
        listed = "".join(f"\n  - `{link.path}`, line {link.line}: {shown(link)}" for link in links[:MAX_NAMED])
        rest = f"\n  - and {remaining - MAX_NAMED} more" if remaining > MAX_NAMED else ""
        editing.say(f"{counted(remaining, 'broken link')} left without a clear replacement:{listed}{rest}")
