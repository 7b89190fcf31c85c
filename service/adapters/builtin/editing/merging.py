"""Conflicts of a merge that need no judgement: resolved as both sides meant it. The others are named."""

import json
import re
from collections.abc import Sequence
from itertools import takewhile

from service.adapters.builtin.editing.steps import MAX_NAMED, Call, Editing, Step, Steps, counted
from service.domain.line_merge import OURS, LineConflict, MarkedConflict, marked_conflicts

MERGE_TITLE = "Merge the documentation's branch"
_ASKED = re.compile(
    r"\b(?:merge|rebase|sync|conflicts?|(?:update|refresh)\s+(?:the|your|its)\s+branch)\b", re.IGNORECASE
)


def asks_for_merge(text: str) -> bool:
    """Return whether a sentence asks for what every round begins with."""
    return _ASKED.search(text) is not None


def resolve_conflicts(editing: Editing) -> Steps:
    """Resolve the conflicts in the files as far as both sides fit together, and report the others."""
    found = yield from editing.one("", "search", query=f"{OURS} ", exact=True)
    for path in editing.found(found):
        text = "\n".join((yield from editing.lines(path)))
        yield from _resolve(editing, path, marked_conflicts(f"{text}\n"))


def _resolve(editing: Editing, path: str, conflicts: Sequence[MarkedConflict]) -> Steps:
    clear = [(one, lines) for one in conflicts if (lines := resolved(one.sides, path)) is not None]
    calls: list[Call] = [
        ("replace", {"path": path, "old": one.text, "new": "".join(lines)}) for one, lines in reversed(clear)
    ]
    results = (yield from editing.ask(Step(f"Resolving conflicts in {path}. ", tuple(calls)))) if calls else ()
    done = sum(not result.is_error for result in results)
    if done:
        editing.say(f"Resolved {counted(done, 'conflict')} in {path}: both sides are kept.")
    for one in [one for one in conflicts if resolved(one.sides, path) is None][:MAX_NAMED]:
        editing.say(f"The conflict in {path}, line {one.line}, is not resolved: {_reason(one.sides)} Say what to keep.")


def resolved(sides: LineConflict, path: str) -> Sequence[str] | None:
    """Return the lines that both sides meant: additions of both at one place, or changes of different lines."""
    base, ours, theirs = sides.base, sides.ours, sides.theirs
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
    mine, yours = ours[head:], theirs[head:]
    if len(base) <= head and mine and yours:  # both changed the lines before in the same way, and added others
        if {line.strip() for line in mine if line.strip()} & {line.strip() for line in yours if line.strip()}:
            return None
        joined = _joined(yours, mine, path)
        return None if joined is None else [*ours[:head], *joined]
    if len(base) == len(ours) == len(theirs):
        pairs = list(zip(base, ours, theirs, strict=True))
        if all(was in (mine, yours) or mine == yours for was, mine, yours in pairs):
            return [yours if mine == was else mine for was, mine, yours in pairs]
    return None


def _joined(first: Sequence[str], second: Sequence[str], path: str) -> Sequence[str] | None:
    """Return both additions, one after the other; of entries of a list in JSON with a comma between them."""
    if not path.endswith(".json"):
        return [*first, *second]
    for between in ("", ","):
        last = first[-1].rstrip()
        joined = [*first[:-1], f"{last}{between}\n", *second]
        text = "".join(joined).strip().removesuffix(",")
        if _is_json(f"[{text}]") or _is_json(f"{{{text}}}"):
            return joined
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _reason(sides: LineConflict) -> str:
    if not sides.ours or not sides.theirs:
        return "one side deleted what the other changed."
    return "both sides changed the same lines." if sides.base else "both sides added the same thing differently."
