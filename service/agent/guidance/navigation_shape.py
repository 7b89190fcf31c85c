"""How the site's navigation files are written: of each, the part that names pages.

The part is found by what it names and not by its words, so it is the same for every generator: the first run of lines
in which most lines name a page of the site by its path, its id or its address.
"""

import asyncio
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from posixpath import dirname

from service.agent.checks.links.workspace_layout import base_layout
from service.agent.checks.navigation import is_navigation
from service.agent.guards.configurations import is_code_navigation
from service.agent.tools.excerpts import around, beginning
from service.agent.tools.results import as_data
from service.agent.workspace import Workspace
from service.markup.generator_files import NAVIGATION_PARTS, matcher
from service.markup.pages import is_page, without_suffix
from service.retrieval.site.navigation import Layout
from service.retrieval.site.navigation_lines import navigation_file

MAX_FILES = 3
MAX_LOOKED_THROUGH = 40
"""Files in which names of pages are looked for."""
MAX_LINES = 24
MAX_CHARACTERS = 1_200
MAX_TEXT = 400_000
"""Characters of one file that are looked through."""
MAX_PAGES = 20_000
NEARLY = 0.9
"""The part of the most pages that the run which is shown has to name."""
MAX_ABOVE = 6
"""Lines above the first page in which the beginning of its list is looked for."""

_PARTS = {kind: matcher(names) for kind, names in NAVIGATION_PARTS.items()}
_NAME = re.compile(r"[\w.@%~/-]++")
_TAIL = re.compile(r"(?:^|/)(?:index|readme|_index)$", re.IGNORECASE)


async def navigation_shape(workspace: Workspace, most: int = MAX_FILES) -> str:
    """Return where the navigation is, and the part that names pages, from the base commit; empty when there is none."""
    layout, _ = await base_layout(workspace)
    files, pages = await asyncio.to_thread(_files, workspace, layout)
    shown: list[tuple[int, int, str, str]] = []
    for rank, path in enumerate(files):
        text = (await workspace.base_text(path) or "")[:MAX_TEXT]
        found = await asyncio.to_thread(_part, path, text, layout, pages) if text else None
        if found is None and text and rank == 0:
            found = 0, 1, text
        if found is not None:
            count, start, part = found
            head = f"- {path}, {text.count(chr(10)) + 1} lines, from line {start}:\n{as_data(part)}"
            shown.append((rank if count else MAX_LOOKED_THROUGH, -count, path, head))
    kept = sorted(shown)[:most]
    return "\n".join(head for *_, head in kept)


def _files(workspace: Workspace, layout: Layout) -> tuple[list[str], list[str]]:
    """Return the files that may name pages, the likeliest first, and the pages."""
    paths = workspace.base_paths()
    main = navigation_file(layout, paths)
    pattern = _PARTS.get(layout.kind)
    found = [path for path in paths if is_navigation(path) or is_code_navigation(path)]
    found += [path for path in paths if pattern is not None and pattern.search(path)]
    near = [path for path in found if workspace.is_documentation(path) or "/" not in path] or found
    first = [main.file] if main is not None else []
    rest = sorted(set(near) - set(first), key=lambda path: (path.count("/"), path))
    pages = [path for path in paths if is_page(path) and layout.is_page(path)]
    return [*first, *rest][:MAX_LOOKED_THROUGH], pages[:MAX_PAGES]


def _part(path: str, text: str, layout: Layout, pages: Sequence[str]) -> tuple[int, int, str] | None:
    """Return how many lines name pages, and the first line and the text of the part; None where no line does."""
    folder = dirname(path.partition(".vitepress/")[0] + "x")
    names = {name for page in pages for name in _names(page, folder, layout) if page != path}
    lines = text.split("\n")
    naming = [number for number, line in enumerate(lines) if any(_bare(each) in names for each in _NAME.findall(line))]
    if not naming:
        return None
    counts = [bisect_right(naming, at + MAX_LINES - 1) - bisect_left(naming, at) for at in naming]
    first = naming[next(place for place, count in enumerate(counts) if count >= NEARLY * max(counts))]
    start = _above(lines, first)
    part = "\n".join(around(line, 0, 0) for line in lines[start : start + MAX_LINES])
    return len(naming), start + 1, beginning(part, MAX_CHARACTERS)


def _above(lines: Sequence[str], first: int) -> int:
    """Return the line on which the list of a page begins: the last one above that stands further to the left."""
    indent = _indent(lines[first])
    for number in range(first - 1, max(-1, first - 1 - MAX_ABOVE), -1):
        if lines[number].strip() and _indent(lines[number]) < indent:
            return number
    return first


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _names(page: str, folder: str, layout: Layout) -> Iterator[str]:
    """Yield the ways in which a navigation file may name a page: from its own folder, the pages' or further below."""
    stem = without_suffix(page)
    for above in (folder, layout.root, layout.docs_folder):
        if not above or stem.startswith(f"{above}/"):
            yield _bare(stem[len(above) :])
    yield _bare(layout.below_mount(page)[1])
    parts = stem.split("/")
    yield from (_bare("/".join(parts[at:])) for at in range(1, len(parts) - 1))


def _bare(name: str) -> str:
    """Return a name without what generators leave out: slashes around it, its suffix, ``index``."""
    name = name.strip("/.") if name.startswith((".", "/")) else name.rstrip("/.")
    short = _TAIL.sub("", without_suffix(name).casefold())
    return short or name.casefold()
