"""New code in changed pages: code that no changed page had before, and no other page of the site has."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence

from service.agent.checks.changed import Changed
from service.agent.checks.links.links import Links
from service.agent.checks.new_code import Code, added, code_of
from service.agent.checks.rules import NEW_CODE
from service.agent.workspace import Workspace
from service.domain.jobs.decider import Problem
from service.markup.dialects.dialect import Dialect
from service.markup.pages import is_page

MAX_SHOWN = 10
"""Pieces of one page that are named each; of more, only the number."""
MAX_COMPARED = 30
"""Pages of the site that are read for a piece of code that they may have, too."""
MAX_WANTED = 50
"""Pieces of code that are looked for in the site; those beyond count as new."""
MAX_QUOTED = 120
_BEFORE_MODULE = re.compile(r"['\"]")
_VUE = re.compile(r"(?P<root>(?:.*/)?)\.(?:vitepress|vuepress)/")


async def check(links: Links, changed: Sequence[Changed]) -> list[Problem]:
    pages = [file for file in changed if is_page(file.path)]
    if not any(file.after for file in pages):
        return []
    layout = await links.layout()
    dialect = layout.dialect
    roots = await asyncio.to_thread(_vue_roots, links.workspace)
    found = await asyncio.to_thread(_found, pages, dialect, roots)
    if not found:
        return []
    wanted = {piece.key: piece for pieces in found.values() for piece in pieces}
    shown = await asyncio.to_thread(lambda: [path for path in links.workspace.base_paths() if layout.is_page(path)])
    known = await _known_elsewhere(links.workspace, wanted, shown, dialect, roots)
    problems: list[Problem] = []
    for path, pieces in found.items():
        problems += _problems(path, [piece for piece in pieces if piece.key not in known])
    return problems


def _problems(path: str, pieces: Sequence[Code]) -> list[Problem]:
    shown = [
        NEW_CODE.problem(path, f"New code, {piece.kind}: {_quoted(piece)}. A person has to review it.", piece.line)
        for piece in pieces[:MAX_SHOWN]
    ]
    if len(pieces) > MAX_SHOWN:
        shown.append(NEW_CODE.problem(path, f"It has {len(pieces) - MAX_SHOWN} more pieces of new code."))
    return shown


def _quoted(piece: Code) -> str:
    return piece.key if len(piece.key) <= MAX_QUOTED else f"{piece.key[:MAX_QUOTED]} …"


def _vue_roots(workspace: Workspace) -> frozenset[str]:
    """Folders of sites whose pages are templates of Vue."""
    found = (_VUE.match(path) for path in workspace.base_paths() if ".vitepress/" in path or ".vuepress/" in path)
    return frozenset(match["root"] for match in found if match is not None)


def _is_vue(path: str, roots: Collection[str]) -> bool:
    return any(path.startswith(root) for root in roots)


def _found(pages: Sequence[Changed], dialect: Dialect, roots: Collection[str]) -> dict[str, list[Code]]:
    """Return the code by page that no changed page had before."""
    known: set[str] = set()
    for file in pages:
        if file.before:
            known.update(piece.key for piece in code_of(file.before, file.path, dialect, vue=_is_vue(file.path, roots)))
    found: dict[str, list[Code]] = {}
    for file in pages:
        if file.after:
            pieces = added(code_of(file.after, file.path, dialect, vue=_is_vue(file.path, roots)), known)
            if pieces:
                found[file.path] = pieces
    return found


def _sign(piece: Code) -> str:
    """Return a text that each page with this code has."""
    first = piece.text.split("\n", 1)[0]
    return _BEFORE_MODULE.split(first)[0] if piece.kind == "an import" else first


async def _known_elsewhere(
    workspace: Workspace,
    wanted: dict[str, Code],
    shown: Sequence[str],
    dialect: Dialect,
    roots: Collection[str],
) -> set[str]:
    """Return the keys of code that other pages had before: what the site runs already is not new to it.

    ``shown``: the site's pages.
    """
    known: set[str] = set()
    if not wanted:
        return known
    signs = {key: _sign(piece) for key, piece in list(wanted.items())[:MAX_WANTED]}
    left = MAX_COMPARED
    async for texts in workspace.base_texts(shown):
        some = await asyncio.to_thread(_that_may_have, texts, [sign for key, sign in signs.items() if key not in known])
        for path in some[:left]:
            pieces = await asyncio.to_thread(code_of, texts[path], path, dialect, vue=_is_vue(path, roots))
            known.update(piece.key for piece in pieces if piece.key in wanted)
        left -= len(some[:left])
        if not left or len(known) == len(wanted):
            break
    return known


def _that_may_have(texts: Mapping[str, str], signs: Sequence[str]) -> list[str]:
    return [path for path, text in texts.items() if any(sign in text for sign in signs)]
