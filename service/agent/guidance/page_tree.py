"""The pages of the site with their titles, in the order of its navigation; the folders of large sites are folded."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from posixpath import dirname

from service.agent.checks.links.base_site import base_site
from service.agent.checks.links.workspace_layout import base_layout
from service.agent.tools.results import fitting, number_of
from service.agent.workspace import Workspace

MAX_CHARACTERS = 4_200
"""About 1,000 tokens, which hold some 60 pages."""
MAX_READ = 400
"""Pages of a site that are read for their titles; of a larger one, folders are all that there is room for."""
MAX_TITLE = 60


async def page_tree(workspace: Workspace, most: int = MAX_CHARACTERS) -> tuple[str, bool]:
    """Return the tree, from the base commit, and whether the navigation gives the order. Empty where no page is."""
    layout, _ = await base_layout(workspace)
    paths = await asyncio.to_thread(lambda: [path for path in workspace.readable_base_paths() if layout.is_page(path)])
    titles, order = dict[str, str](), {path: entry.order for path, entry in layout.entries.items()}
    if len(paths) <= MAX_READ:
        view = (await base_site(workspace)).view
        titles = {path: page.title for path, page in view.site.pages.items()}
        order = {path: page.order for path, page in view.site.pages.items()}
    listed = sorted((path for path in paths if order.get(path, -1) >= 0), key=lambda path: (order[path], path))
    others = sorted(path for path in paths if order.get(path, -1) < 0)
    parts = [listed, others] if listed else [others]
    return await asyncio.to_thread(_tree, parts, titles, most), bool(listed)


def _tree(parts: Sequence[Sequence[str]], titles: Mapping[str, str], most: int) -> str:
    """Return the pages of the parts: those of the navigation, and the others."""
    lines = [line for part in _headed(parts) for line in (_lines(part, titles) if isinstance(part, list) else [part])]
    depth = max((path.count("/") for part in parts for path in part), default=0) + 1
    while depth > 1 and sum(len(line) + 1 for line in lines) > most:
        depth -= 1
        folded = (_folded(part, titles, depth) if isinstance(part, list) else [part] for part in _headed(parts))
        lines = [line for part in folded for line in part]
    shown = fitting(lines, most)
    left = len(lines) - len(shown)
    return "\n".join([*shown, *([f"… {left} more lines: list shows them"] if left else [])])


def _headed(parts: Sequence[Sequence[str]]) -> Iterable[list[str] | str]:
    """Yield the parts, with a heading before the second."""
    for number, part in enumerate(parts):
        if number and part:
            yield "Not in the navigation:"
        yield list(part)


def _lines(paths: Sequence[str], titles: Mapping[str, str]) -> Iterable[str]:
    """Yield the pages below the name of their folder, which stands once for those that follow each other."""
    folder = ""
    for path in paths:
        if dirname(path) != folder:
            folder = dirname(path)
            yield f"{folder}/" if folder else "./"
        yield f"{'  ' if folder else ''}{path.rpartition('/')[2]}{_titled(path, titles)}"


def _titled(path: str, titles: Mapping[str, str]) -> str:
    title = " ".join(titles.get(path, "").split())
    if not title:
        return ""
    return f": {title if len(title) <= MAX_TITLE else title[:MAX_TITLE].rpartition(' ')[0] + ' …'}"


def _folded(paths: Sequence[str], titles: Mapping[str, str], depth: int) -> list[str]:
    """Return the pages, where those of a folder at this depth are one line with their number and first titles."""
    counts: dict[str, int] = {}
    first: dict[str, list[str]] = {}
    for path in paths:
        parts = path.split("/", depth)
        key = path if len(parts) <= depth else "/".join(parts[:depth]) + "/"
        counts[key] = counts.get(key, 0) + 1
        if title := _titled(path, titles).removeprefix(": "):
            first.setdefault(key, []).append(title)
    return [
        f"{key} ({number_of(count, 'page')}){_some(first.get(key, ()))}"
        if key.endswith("/")
        else f"{key}{_titled(key, titles)}"
        for key, count in counts.items()
    ]


def _some(titles: Sequence[str]) -> str:
    return f": {', '.join(titles[:3])}{', …' if len(titles) > 3 else ''}" if titles else ""
