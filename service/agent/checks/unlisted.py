"""New pages that the site's navigation does not name, though it names the pages beside them.

Where a generator lists pages by itself, or a site keeps pages out of its navigation, the pages beside a new one are
not named either: then nothing is amiss. The problem says which line to add to which file, since some of these files
are programs that only people change.
"""

import asyncio
from collections.abc import Mapping, Sequence
from posixpath import dirname

from service.agent.checks.changed import Changed
from service.agent.checks.links.links import Links
from service.agent.checks.links.site_view import SiteView
from service.agent.checks.rules import PAGE_UNLISTED
from service.agent.workspace import Workspace
from service.domain.jobs.decider import Problem
from service.markup.front_matter import FrontMatter, split_front_matter, text_field
from service.markup.pages import is_page, without_suffix
from service.retrieval.site.navigation_lines import NavigationFile, may_be_listed, navigation_file

MAX_NEW_PAGES = 100


async def check(links: Links, changed: Sequence[Changed]) -> list[Problem]:
    workspace = links.workspace
    made = {
        file.path: file.after
        for file in changed
        if file.after is not None and file.before is None and is_page(file.path)
    }
    if not made or len(made) > MAX_NEW_PAGES:
        return []
    _, now = await links.views()
    navigation = await asyncio.to_thread(navigation_file, now.layout, now.files)
    if navigation is None:
        return []
    listing = await workspace.text(navigation.file) or ""
    return await asyncio.to_thread(_unlisted, made, now, workspace, navigation, listing)


def _unlisted(
    made: Mapping[str, str], now: SiteView, workspace: Workspace, navigation: NavigationFile, listing: str
) -> list[Problem]:
    layout = now.layout
    named = navigation.named(listing, now.site)
    folders: dict[str, list[str]] = {}
    for path in workspace.base_paths() if named else ():
        if is_page(path) and layout.is_page(path):
            folders.setdefault(dirname(path), []).append(path)
    found: list[Problem] = []
    for path, text in made.items():
        front_matter = split_front_matter(text)[0]
        if path in named or not may_be_listed(layout, path):
            continue
        if layout.is_hidden(front_matter) or _is_orphan(text, front_matter):
            continue
        beside = _beside(path, folders)
        if sum(page in named for page in beside) > len(beside) / 2:
            title = text_field(front_matter, "title") or now.titles.get(path, "") or _title(path, text)
            line = navigation.line(path, title, front_matter)
            message = f"The navigation does not name this page. Add {line} to {navigation.place}."
            found.append(PAGE_UNLISTED.problem(path, message))
    return found


def _beside(path: str, folders: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the pages of the same folder; of the nearest folder above that has some, where that has none."""
    folder = dirname(path)
    while folder and folder not in folders:
        folder = dirname(folder)
    return folders.get(folder, ())


def _is_orphan(text: str, front_matter: FrontMatter) -> bool:
    """Return whether a page of Sphinx says that it is in no list."""
    return "orphan" in front_matter or text.lstrip("\ufeff \n").startswith(":orphan:")


def _title(path: str, text: str) -> str:
    heading = next((line for line in text.splitlines() if line.startswith("# ")), "")
    name = without_suffix(path).rpartition("/")[2]
    return heading[2:].strip() or name.replace("-", " ").replace("_", " ").capitalize()
