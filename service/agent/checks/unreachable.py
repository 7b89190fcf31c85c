"""Pages that readers no longer find: the navigation named them, or a page linked to them, and now nothing does.

Only sites whose navigation is read are looked at: elsewhere a theme may list every page. It is a problem unless the
instruction asks for it.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence, Set

from service.agent.checks import navigation
from service.agent.checks.changed import Changed
from service.agent.checks.links.links import Links
from service.agent.checks.links.site_view import SiteView, without_query
from service.agent.checks.markup import links_of
from service.agent.checks.rules import PAGE_UNREACHABLE
from service.agent.guards import configurations
from service.domain.jobs.decider import Problem
from service.markup.pages import INDEX_NAMES, is_page, without_suffix

MAX_PAGES = 60
"""Limit for the pages that are named, and for those whose links are looked for."""
_REMOVING = re.compile(
    r"\b(?:remov|delet|drop|hid(?:e|ing)|unlist|un-?link|orphan|retir|archiv|prun|take out|taken out|clean ?up"
    r"|entfern|lösch|ausblend|streich|supprim|retir|masqu|elimin|quit(?:a|e)|ocult|borr|rimuov|nascond|remov|exclu"
    r"|verwijder|usuń|удал|убер|скры|kaldır|sil)|删除|移除|隐藏|削除|非表示|삭제|제거"  # noqa: RUF001
)
"""Beginnings of words, in lower case, by which people ask to take something out of sight."""
_NO_WORDS = re.compile(r"[\W_]+")
_ALL_OF_IT = re.compile(
    r"\b(?:all|every|whole|entire)\b[^\n.]{0,80}\b(?:navigation|nav|sidebar|toctree|table of contents|menu)\b"
)


async def check(links: Links, changed: Sequence[Changed], asked: Sequence[str]) -> list[Problem]:
    """Return the pages that were within reach. ``asked``: what people said in the job."""
    for file in changed:
        if navigation.is_navigation(file.path) and navigation.parse_problem(file.path, file.after or ""):
            return []  # what it names is not known
    before, now = await links.views()
    if not any(page.order >= 0 for page in before.site.pages.values()):
        return []
    moved = await links.moved()
    lost = await _without_programs(links, await asyncio.to_thread(_unlisted, before, now, moved))
    unlinked = [path for path in await asyncio.to_thread(_unlinked, changed, before, now, moved) if path not in lost]
    if unlinked:
        linked = await links.linked_from_elsewhere(unlinked[:MAX_PAGES])
        unlinked = [path for path in unlinked[:MAX_PAGES] if path not in linked]
    wanted = await asyncio.to_thread(_Wanted, asked)
    found = [
        PAGE_UNREACHABLE.problem(path, "The navigation named this page, and names it no longer. Name it again.")
        for path in lost
        if not wanted.includes(path, now)
    ]
    found += [
        PAGE_UNREACHABLE.problem(path, "No page links to this page any longer, nor does the navigation name it.")
        for path in unlinked
        if not wanted.includes(path, now)
    ]
    return found[:MAX_PAGES]


def _unlisted(before: SiteView, now: SiteView, moved: Mapping[str, str]) -> list[str]:
    """Return the pages that are there and lost their last entry, by their path now, in the order that they had; but
    those whose old name is an entry still, which is a problem of its own.
    """
    was = sorted((page.order, path) for path, page in before.site.pages.items() if page.order >= 0)
    there = now.site.pages
    vain = [f"/{name.strip('/').lower()}" for name in now.site.missing]
    paths = [
        moved.get(path, path)
        for _, path in was
        if path not in moved or not any(f"/{without_suffix(path)}".lower().endswith(name) for name in vain)
    ]
    return [path for path in paths if path in there and there[path].order < 0]


async def _without_programs(links: Links, lost: Sequence[str]) -> Sequence[str]:
    """Return the pages without those that a changed program still names: how it lists them is not known."""
    for path, text in links.workspace.changes.items():
        if lost and text is not None and configurations.is_code_navigation(path):
            root = navigation.root_of_code(path)
            lost = [page for page in lost if navigation.named_in_code(text, page, root) is None]
    return lost


def _unlinked(changed: Sequence[Changed], before: SiteView, now: SiteView, moved: Mapping[str, str]) -> list[str]:
    """Return the pages outside of the navigation to which a changed page linked, and does no longer."""
    there, found = now.site.pages, dict[str, None]()
    came_from = {to: path for path, to in moved.items()}
    for file in changed:
        if not is_page(file.path) or file.before is None or file.path in moved:
            continue  # a moved page is looked at under its new name
        old_path = came_from.get(file.path, file.path)
        led = {moved.get(page, page) for page in targets(old_path, file.before, before)}
        leads = targets(file.path, file.after, now) if file.after is not None else set[str]()
        for page in sorted(led - leads - {file.path}):
            if page in there and there[page].order < 0:
                found[page] = None
    return list(found)


def targets(path: str, text: str, view: SiteView) -> Set[str]:
    """Return the pages to which a page links."""
    found = set[str]()
    for link in links_of(text, path, view.layout.dialect):
        answer = view.leads_to(path, without_query(link.target.partition("#")[0]), link.form)
        if answer.page is not None:
            found.add(answer.page)
    return found


class _Wanted:
    """The words of people who ask to take something out of sight."""

    def __init__(self, asked: Sequence[str]) -> None:
        removing = [text for text in map(str.lower, asked) if _REMOVING.search(text)]
        self._said = [_words(text) for text in removing]
        self._all = any(_ALL_OF_IT.search(text) for text in removing)

    def includes(self, path: str, now: SiteView) -> bool:
        """Return whether people asked for it: for this page, a folder above it, or all of the navigation."""
        parts = [part for part in without_suffix(path).lower().split("/") if part not in INDEX_NAMES]
        names = [words for name in (*parts[-2:], now.titles.get(path, "")) if len((words := _words(name)).strip()) > 2]
        return self._all or any(name in said for name in names for said in self._said)


def _words(text: str) -> str:
    """Return the words of a text in lower case, with a blank before and after each."""
    return " " + _NO_WORDS.sub(" ", text.lower()).strip() + " "
