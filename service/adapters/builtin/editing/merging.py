"""Conflicts of a merge that need no judgement: resolved as both sides meant it. The others are named."""

import json
import re
from collections.abc import Generator, Sequence
from itertools import takewhile
from typing import Literal

from service.adapters.builtin.editing.forms import short
from service.adapters.builtin.editing.steps import MAX_NAMED, Call, Editing, Step, Turn, counted
from service.domain.texts.comparison import Effort
from service.domain.texts.line_merge import OURS, LineConflict, marked_conflicts, merged_words

MERGE_TITLE = "Merge the documentation's branch"
UNRESOLVED = (
    'The documentation\'s branch is not merged. Say "keep ours" for the text of the pull request, "keep main" for the'
    " other, or change one of the texts."
)
_ASKED = re.compile(
    r"\b(?:merge|rebase|sync|conflicts?|(?:update|refresh)\s+(?:the|your|its)\s+branch)\b", re.IGNORECASE
)
_KEEP = re.compile(
    r"\b(?:keep|take|use)\s+(?:the\s+)?(?:(?P<theirs>theirs|main|master|documentation)|ours|mine|job|pull\s+request|this)\b",
    re.IGNORECASE,
)
MAX_EFFORT = 200_000
MAX_SAME = 30
"""Characters in which two lines may begin alike and are still shown from their start."""

Side = Literal["ours", "theirs"]


def asks_for_merge(text: str) -> bool:
    """Return whether a sentence asks for what every round begins with, or says which side to keep."""
    return _ASKED.search(text) is not None or _KEEP.search(text) is not None


def side_to_keep(text: str) -> Side | None:
    """Return the side that a sentence says to keep: the documentation's branch, or the job's own."""
    found = _KEEP.search(text)
    if found is None:
        return None
    return "theirs" if found["theirs"] else "ours"


def resolve_conflicts(editing: Editing, keep: Side | None) -> Generator[Step, Turn, int]:
    """Resolve the conflicts in the files as far as both sides fit together, the others as the caller says; return how
    many are left, which the report names.
    """
    found = yield from editing.one("", "search", query=f"{OURS} ", exact=True)
    left = 0
    for path in editing.found(found):
        text = "\n".join((yield from editing.lines(path)))
        left += yield from _resolve(editing, path, f"{text}\n", keep)
    return left


def _resolve(editing: Editing, path: str, text: str, keep: Side | None) -> Generator[Step, Turn, int]:
    conflicts = marked_conflicts(text)
    if len(conflicts) == 1 and keep and conflicts[0].text == text and not getattr(conflicts[0].sides, keep):
        done = yield from editing.one(f"Deleting {path}. ", "delete", path=path)
        editing.say(f"Deleted {path}, as one side did.")
        return int(done.is_error)
    clear = [(one, lines) for one in conflicts if (lines := resolved(one.sides, path, keep)) is not None]
    calls: list[Call] = [
        ("replace", {"path": path, "old": one.text, "new": "".join(lines)}) for one, lines in reversed(clear)
    ]
    results = (yield from editing.ask(Step(f"Resolving conflicts in {path}. ", tuple(calls)))) if calls else ()
    done_calls = sum(not result.is_error for result in results)
    if done_calls:
        editing.say(f"Resolved {counted(done_calls, 'conflict')} in {path}.")
    unclear = [one for one in conflicts if resolved(one.sides, path, keep) is None]
    for one in unclear[:MAX_NAMED]:
        editing.say(f"{path}: {_reason(one.sides)}")
    return len(conflicts) - done_calls


def resolved(sides: LineConflict, path: str, keep: Side | None = None) -> Sequence[str] | None:
    """Return the lines that both sides meant: additions of both at one place, or changes of different lines or words;
    else those of the side to keep.
    """
    found = _together(sides, path)
    if found is None and keep is not None:
        return sides.ours if keep == "ours" else sides.theirs
    return found


def _together(sides: LineConflict, path: str) -> Sequence[str] | None:
    base, ours, theirs = sides.base, sides.ours, sides.theirs
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
    mine, yours = ours[head:], theirs[head:]
    if len(base) <= head and mine and yours:  # both changed the lines before in the same way, and added others
        if {line.strip() for line in mine if line.strip()} & {line.strip() for line in yours if line.strip()}:
            return None
        joined = _joined(yours, mine, path)
        return None if joined is None else [*ours[:head], *joined]
    if len(base) == len(ours) == len(theirs):
        effort = Effort(MAX_EFFORT)
        lines = [_line(*three, effort) for three in zip(base, ours, theirs, strict=True)]
        kept = [line for line in lines if line is not None]
        return kept if len(kept) == len(lines) else None
    return None


def _line(base: str, ours: str, theirs: str, effort: Effort) -> str | None:
    if ours in (base, theirs):
        return theirs
    return ours if theirs == base else merged_words(base, ours, theirs, effort)


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
    ours, theirs = (next((line.strip() for line in side if line.strip()), "") for side in (sides.ours, sides.theirs))
    if not ours or not theirs:
        return f"one side deleted what begins with {short(ours or theirs, 60)}, and the other changed it."
    pairs = zip((line.strip() for line in sides.ours), (line.strip() for line in sides.theirs), strict=False)
    ours, theirs = next((pair for pair in pairs if pair[0] != pair[1]), (ours, theirs))
    same = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(ours, theirs, strict=False)))
    start = ours.rfind(" ", 0, same) + 1 if same > MAX_SAME else 0
    mine, yours = (short(f"{'…' if start else ''}{line[start:]}") for line in (ours, theirs))
    return f"both sides changed the same text: {mine} in the pull request, {yours} in the documentation."
