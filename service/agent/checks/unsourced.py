"""Names, flags, paths and numbers in new code that no source has: a model may have made them up.

A source is the documentation as it was, the caller's words, or a file that was read in this job.
"""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from service.agent.checks.changed import Changed
from service.agent.checks.pages import markdown_of
from service.agent.checks.rules import UNSOURCED
from service.agent.things import WORD, Thing, parts_of, stands_in, things_of_code
from service.agent.workspace import Workspace
from service.domain.jobs.decider import Problem
from service.markup.pages import is_markdown

MAX_LOOKED_UP = 200
"""Things that are looked for in the whole documentation."""
FEW = 20
"""Each of some things is searched for in a text; for more, its words are found once."""
MAX_REPORTED = 20


class _Wanted(Struct, frozen=True):
    """A thing that has no source yet."""

    path: str
    line: int
    parts: frozenset[Thing]
    """Those that stand nowhere yet. A dotted name or a path may come from several places."""


async def check(workspace: Workspace, changed: Sequence[Changed], texts: Sequence[str]) -> list[Problem]:
    """Return a warning for each thing without a source. ``texts``: what was said and read in the job."""
    wanted = await asyncio.to_thread(_new_things, changed)
    wanted = await asyncio.to_thread(_left, wanted, [*texts, *workspace.paths()])
    wanted = dict(list(wanted.items())[:MAX_LOOKED_UP])
    base = [path for path in workspace.readable_base_paths() if workspace.is_documentation(path)]
    async for some in workspace.base_texts(base if wanted else ()):
        wanted = await asyncio.to_thread(_left, wanted, list(some.values()))
        if not wanted:
            break
    return [
        UNSOURCED.problem(
            one.path,
            f"{thing.text} is in no source: not in the documentation, the instruction or a file that was read. Check"
            " that it is right.",
            one.line,
        )
        for thing, one in list(wanted.items())[:MAX_REPORTED]
    ]


def _new_things(changed: Sequence[Changed]) -> dict[Thing, _Wanted]:
    found: dict[Thing, _Wanted] = {}
    for file in changed:
        if file.after is None or not is_markdown(file.path):
            continue
        before = things_of_code(markdown_of(file.before or "", file.path))
        for thing, line in things_of_code(markdown_of(file.after, file.path)).items():
            if thing not in before:
                found.setdefault(thing, _Wanted(file.path, line, frozenset(parts_of(thing))))
    return found


def _left(wanted: Mapping[Thing, _Wanted], texts: Sequence[str]) -> dict[Thing, _Wanted]:
    """Return the things that these texts do not have, nor all of their parts with those before."""
    text = "\n".join(texts)
    words = None if len(wanted) <= FEW else {word for each in texts for word in WORD.findall(each)}
    left: dict[Thing, _Wanted] = {}
    for thing, one in wanted.items():
        if words is not None and words.isdisjoint(WORD.findall(thing.text)):
            left[thing] = one
        elif not stands_in(thing, text):
            parts = one.parts if one.parts == {thing} else frozenset(p for p in one.parts if not stands_in(p, text))
            if parts:
                left[thing] = replace(one, parts=parts)
    return left
