"""Names, flags, paths and numbers in new code, and statements in new prose, that no source has.

A source is the caller's words, or a file that was read in this job; for names, also the documentation as it was. Prose
is held against its sources by the checks of answers, ``service.sentences``.
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
from service.sentences.statements import unsourced_statements

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


class _Claim(Struct, frozen=True):
    """A number, unit or promise of new prose."""

    path: str
    line: int
    text: str


async def check(
    workspace: Workspace, changed: Sequence[Changed], texts: Sequence[str], asked: Sequence[str]
) -> list[Problem]:
    """Return a warning for each thing without a source. ``texts``: what was said and read in the job; ``asked``: what
    people said alone.
    """
    wanted = await asyncio.to_thread(_new_things, changed)
    names, claimed = await asyncio.to_thread(_new_statements, changed, texts, asked)
    wanted |= {thing: one for thing, one in names.items() if thing.text not in {known.text for known in wanted}}
    wanted = await asyncio.to_thread(_left, wanted, [*texts, *workspace.paths()])
    wanted = dict(list(wanted.items())[:MAX_LOOKED_UP])
    base = [path for path in workspace.readable_base_paths() if workspace.is_documentation(path)]
    async for some in workspace.base_texts(base if wanted else ()):
        wanted = await asyncio.to_thread(_left, wanted, list(some.values()))
        if not wanted:
            break
    claimed = [one for one in claimed if one.text not in {thing.text for thing in wanted}]
    return [
        *(UNSOURCED.problem(one.path, _sentence(one.text), one.line) for one in claimed[:MAX_REPORTED]),
        *_of_things(wanted, MAX_REPORTED - len(claimed)),
    ]


def _sentence(piece: str) -> str:
    if piece == "not":
        return "This says the contrary of what was read, and has no source. Check that it is right."
    return (
        f"{piece} is in no source for this sentence: not in the instruction or a file that was read. Check that it is"
        " right."
    )


def _of_things(wanted: Mapping[Thing, _Wanted], most: int) -> list[Problem]:
    return [
        UNSOURCED.problem(
            one.path,
            f"{thing.text} is in no source: not in the documentation, the instruction or a file that was read. Check"
            " that it is right.",
            one.line,
        )
        for thing, one in list(wanted.items())[: max(0, most)]
    ]


def _new_statements(
    changed: Sequence[Changed], texts: Sequence[str], asked: Sequence[str]
) -> tuple[dict[Thing, _Wanted], list[_Claim]]:
    """Return the names of new prose without a source, and its other pieces."""
    names: dict[Thing, _Wanted] = {}
    claimed: list[_Claim] = []
    sources = [*(file.before or "" for file in changed), *(text for text in texts if text not in asked)]
    for file in changed:
        if file.after is None or not is_markdown(file.path):
            continue
        page, before = markdown_of(file.after, file.path), markdown_of(file.before or "", file.path)
        found = unsourced_statements(page.text[page.start :], before.text[before.start :], sources, asked)
        for one in found:
            line = page.line_of(one.start)
            for text in one.names:
                thing = Thing(text, "flag" if text.startswith("-") else "name")
                names.setdefault(thing, _Wanted(file.path, line, frozenset(parts_of(thing))))
            claimed += (_Claim(file.path, line, text) for text in one.missing)
    return names, claimed


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
