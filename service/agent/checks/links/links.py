"""Links between pages: which are broken, and which of them a job broke.

Pages that may link to what a job removed are found by searching their text for its name, without parsing every page.
"""

import asyncio
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from posixpath import dirname, normpath
from typing import NamedTuple
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from service.agent.checks import navigation
from service.agent.checks.links.base_site import base_site
from service.agent.checks.links.elsewhere import HIDDEN_LIST, named_elsewhere, parents_left, searched, translations_left
from service.agent.checks.links.guesses import (
    MOVED,
    BrokenLink,
    LinkReport,
    SuspectLink,
    UnknownLink,
    is_read_alike,
    verdicts,
)
from service.agent.checks.links.heading_renames import renamed_anchors
from service.agent.checks.links.site_view import (
    NO_ANCHORS,
    Anchors,
    BaseSite,
    SiteView,
    anchors_of_page,
    changed_view,
    differ_in_words_only,
    is_checked,
    loosely,
    without_query,
)
from service.agent.checks.links.workspace_layout import base_layout, workspace_layout
from service.agent.checks.markup import PageLink, links_of
from service.agent.workspace import Workspace
from service.markup.pages import INDEX_NAMES, MARKDOWN_SUFFIXES, is_markdown, is_page, without_suffix
from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.site.detection import is_configuration
from service.retrieval.site.layout import DEPENDENCY_FOLDERS
from service.retrieval.site.links import MAY_ADD, SOUND, LinkAnswer
from service.retrieval.site.navigation import Layout
from service.retrieval.site.navigation_lines import navigation_file

NOT_FOLLOWED = "a symbolic link or a submodule is on the way to it, which is not followed"
MAX_MOVED_COMPARED = 200
MAX_NAVIGATION_FILES = 100
MAX_NESTED = 3
"""How deep files that pages show may show others."""
MAX_NAMED_IN_VAIN = 5_000
_LINKING = (*MARKDOWN_SUFFIXES, ".rst", ".adoc")
"""Pages whose links are looked at."""
_DOTS = frozenset(("..", "./", "(.)", '"."'))
"""Parts of links to the page of a folder that do not name it."""
_MODULE = re.compile(r"/[^/.]+$|\.(?:[cm]?[jt]sx?|vue|svelte|astro|json|css)$")
_UNNAMED = frozenset(("link", "based", "wiki"))
"""Forms that lead to much that no page has; of the others, a new one that is not known is named."""
MAX_UNKNOWN = 2_000
"""Links of which it is not known where they lead."""


class _Needles(Struct, frozen=True):
    """Words in lower case, one of which is in any link to some pages."""

    words: frozenset[str]
    near: frozenset[str] = frozenset()
    """Those in links from within the folder of such a page, which need not name it: ``../``."""
    folders: frozenset[str] = frozenset()
    """Names of these folders; empty for the top one, in which all pages are."""

    def are_in(self, path: str, text: str) -> bool:
        low = text.lower()
        if any(word in low for word in self.words):
            return True
        if not self.near or self.folders.isdisjoint(["", *path.lower().split("/")]):
            return False
        return any(word in low for word in self.near)

    def having(self, texts: Mapping[str, str]) -> Mapping[str, str]:
        return {path: text for path, text in texts.items() if self.are_in(path, text)}


class _ChangedPage(NamedTuple):
    path: str
    text: str
    old_path: str
    old_text: str
    """Empty for a new page."""


class Links:
    """The links of one workspace. Facts of the base are read once; what a job changed is read again."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._layout_files: frozenset[str] = frozenset()
        """Files that say how the site is laid out."""
        self._site: BaseSite | None = None
        self._base: SiteView | None = None
        self._now: SiteView | None = None
        self._now_of: dict[str, str | None] = {}
        self._anchors: dict[tuple[str, int], Anchors] = {}
        self._broken: list[BrokenLink] | None = None
        self._broken_of: dict[str, str | None] = {}

    async def report(self) -> LinkReport:
        """Every broken link of the site, in the order of path and line, the clear ones first; and those of which the
        site's rules do not say where they lead.
        """
        now = await self._view()
        suspects: list[SuspectLink] = []
        unknown: list[UnknownLink] = []
        async for texts in self._workspace.texts(await asyncio.to_thread(_pages, self._workspace, now)):
            found, others = await asyncio.to_thread(_suspects, texts, now)
            suspects, unknown = suspects + found, unknown + others[: MAX_UNKNOWN - len(unknown)]
        reported = await self._reported(suspects, now)
        named, broken = await self._navigation(now, changed_only=False), reported.broken
        if now.site.rules.has_all_files:
            broken += named
        else:
            unknown += [UnknownLink(each.path, each.line, each.found, MAY_ADD) for each in named]
        unknown = [*unknown, *reported.unknown][:MAX_UNKNOWN]
        return LinkReport(_ordered(broken), sorted(unknown, key=lambda link: (link.path, link.line)))

    async def broken_by_changes(self) -> list[BrokenLink]:
        """Return those that were sound before the job's changes, and new ones. A tool and the gates ask for them."""
        if self._broken is None or self._broken_of != self._workspace.changes:
            of = dict(self._workspace.changes)
            self._broken, self._broken_of = await self._broken_by_changes(), of
        return self._broken

    async def _broken_by_changes(self) -> list[BrokenLink]:
        changes = await self._workspace.effective_changes()
        pages = {path: text for path, text in changes.items() if path.lower().endswith(_LINKING)}
        moved = await self.moved()
        came_from = {to: path for path, to in moved.items()}
        await self._base_layout()
        if not any(self._says_layout(path) or is_page(path) for path in changes):
            return []
        if await self._only_words(changes):
            return []
        before, now = await self._view(base=True), await self._view()
        of_parts = await self._anchors_of_parts(pages, now)
        suspects: list[SuspectLink] = []
        for path, text in pages.items():
            if text is not None:
                old_path = path if self._workspace.in_base(path) else came_from.get(path, path)
                old_text = await self._workspace.base_text(old_path) or ""
                page = _ChangedPage(path, text, old_path, old_text)
                suspects += await self._newly_broken(page, before, now, moved, of_parts)
        suspects += await self._broken_elsewhere(pages, before, now, moved, of_parts)
        renamed = await self._renamed_anchors(pages, came_from, now)
        for path, anchors in of_parts.items():
            renamed[path] = {old: new for old, new in anchors.items() if new} | dict(renamed.get(path, {}))
        broken = (await self._reported(suspects, now, renamed)).broken
        broken += await self._navigation(now, changed_only=True, moved=moved)
        known = {(link.path, link.line, link.found) for link in broken}
        elsewhere = await self._elsewhere(changes, before, now, moved)
        elsewhere += await self._parents(before, now, moved)
        return _ordered([*broken, *(link for link in elsewhere if (link.path, link.line, link.found) not in known)])

    async def new_unknown(self) -> list[UnknownLink]:
        """Return the names that the job wrote into pages (in roles, imports, includes and others), of which it is not
        known what they mean.
        """
        if not self._workspace.changes:
            return []
        before, now = await self._view(base=True), await self._view()
        came_from = {to: path for path, to in (await self.moved()).items()}
        found: list[UnknownLink] = []
        for path, text in (await self._workspace.effective_changes()).items():
            if text is not None and path.lower().endswith(_LINKING):
                old_path = path if self._workspace.in_base(path) else came_from.get(path, path)
                old = await self._workspace.base_text(old_path) or ""
                found += await asyncio.to_thread(_named_newly, _ChangedPage(path, text, old_path, old), before, now)
        return found[:MAX_UNKNOWN]

    async def _elsewhere(
        self, changes: Mapping[str, str | None], before: SiteView, now: SiteView, moved: Mapping[str, str]
    ) -> list[BrokenLink]:
        """Return the names of pages that went in files that are no pages, and in front matter."""
        gone = {path: moved.get(path) for path, text in changes.items() if text is None and is_page(path)}
        if not gone:
            return []
        paths = await asyncio.to_thread(self._workspace.readable_paths)
        paths += [path for path in await asyncio.to_thread(self._workspace.paths) if HIDDEN_LIST.search(path)]
        wanted = [*searched(paths), *await asyncio.to_thread(_readable_pages, self._workspace)]
        needles = _needles(gone, before) or _Needles(frozenset())
        listing = {path for path in self._layout_files if path.endswith(".json")}
        found: list[BrokenLink] = []
        async for texts in self._workspace.texts(wanted):
            some = await asyncio.to_thread(needles.having, texts)
            if some:
                found += await asyncio.to_thread(named_elsewhere, some, gone, before, now, listing)
        may_write = self._workspace.may_write
        left = await asyncio.to_thread(translations_left, gone, before, now)
        return left + [
            each if may_write(each.path) else replace(each, clear=False, is_for_people=True) for each in found
        ]

    async def _parents(self, before: SiteView, now: SiteView, moved: Mapping[str, str]) -> list[BrokenLink]:
        """Return the pages that name the page above them by a title that no page has any longer."""
        there = frozenset(now.titles.values())
        new = {
            old: now.titles.get(moved.get(path, path), "") for path, old in before.titles.items() if old not in there
        }
        titles = {old: title for old, title in new.items() if old and title}
        if not titles or not now.site.rules.has_liquid:
            return []
        found: list[BrokenLink] = []
        async for texts in self._workspace.texts(await asyncio.to_thread(_readable_pages, self._workspace)):
            found += await asyncio.to_thread(parents_left, texts, titles)
        return found

    async def linked_from_elsewhere(self, wanted: Collection[str]) -> Collection[str]:
        """Return those of the pages to which another page links as the site is now."""
        now, found = await self._view(), set[str]()
        needles = _needles(wanted, now)
        async for texts in self._workspace.texts(await asyncio.to_thread(_pages, self._workspace, now)):
            found |= await asyncio.to_thread(_linked, texts, frozenset(wanted), needles, now)
        return found

    # Views

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    async def layout(self) -> Layout:
        """Return how the site was laid out before the changes."""
        return await self._base_layout()

    async def views(self) -> tuple[SiteView, SiteView]:
        """Return the site before the changes, and as it is now. Every page of it is read for that once."""
        return await self._view(base=True), await self._view()

    def base_page(self, path: str) -> ParsedPage | None:
        """Return what is kept of a page as it was, once the site has been read."""
        return self._site.pages.get(path) if self._site is not None else None

    async def _view(self, *, base: bool = False) -> SiteView:
        if self._site is None or self._base is None:
            self._site = await base_site(self._workspace)
            self._base = self._site.own_view()
        if base or not self._workspace.changes:
            return self._base
        if self._now is None or self._now_of != self._workspace.changes:
            self._now = await self._changed_view(self._site, self._base)
            self._now_of = dict(self._workspace.changes)
        return self._now

    async def _changed_view(self, site: BaseSite, base: SiteView) -> SiteView:
        changes = dict(self._workspace.changes)
        layout = base.layout
        paths = await asyncio.to_thread(self._workspace.paths)
        await self._base_layout()
        if frozenset(paths) != base.files or any(self._says_layout(path) for path in changes):
            found, _ = await workspace_layout(self._workspace, paths, base=False)
            layout = layout if found == layout else found
        return await asyncio.to_thread(changed_view, site, base, layout, changes, paths)

    async def _base_layout(self) -> Layout:
        layout, self._layout_files = await base_layout(self._workspace)
        return layout

    def _says_layout(self, path: str) -> bool:
        return path in self._layout_files or is_configuration(path)

    async def _anchors_of(self, path: str, *, base: bool = False) -> Anchors:
        text = await (self._workspace.base_text(path) if base else self._workspace.text(path))
        if text is None:
            return NO_ANCHORS
        return (await asyncio.to_thread(self._parsed_anchors, {path: text}))[path]

    def _parsed_anchors(self, texts: Mapping[str, str]) -> dict[str, Anchors]:
        found: dict[str, Anchors] = {}
        assert self._base is not None
        for path, text in texts.items():
            key = (path, hash(text))
            if key not in self._anchors:
                self._anchors[key] = anchors_of_page(path, text, self._base.layout)
            found[path] = self._anchors[key]
        return found

    # What is broken

    async def moved(self) -> dict[str, str]:
        """Deleted files that live on under another name: with the same text, or with most of its lines."""
        changes = await self._workspace.effective_changes()
        gone = [path for path, text in changes.items() if text is None][:MAX_MOVED_COMPARED]
        made = {path: text for path, text in changes.items() if text is not None and not self._workspace.in_base(path)}
        moved: dict[str, str] = {}
        for path in gone:
            text = await self._workspace.base_text(path) or ""
            left = {to: new for to, new in made.items() if to not in moved.values()}
            same = [to for to, new in left.items() if new == text]
            if not same and left:
                same = await asyncio.to_thread(_most_alike, text, left)
            if same:
                moved[path] = same[0]
        return moved

    async def _only_words(self, changes: Mapping[str, str | None]) -> bool:
        """Return whether no page came, went, or changed its address, anchors or links: then the rest of the site is not
        read.
        """
        dialect = (await self._base_layout()).dialect
        for path, text in changes.items():
            old = await self._workspace.base_text(path)
            if old is None or text is None or (self._says_layout(path) and not is_page(path)):
                return False
            if not await asyncio.to_thread(differ_in_words_only, path, old, text, dialect):
                return False
        return True

    async def _newly_broken(
        self, changed: _ChangedPage, before: SiteView, now: SiteView, moved: Mapping[str, str],
        of_parts: Mapping[str, Mapping[str, str]],
    ) -> list[SuspectLink]:  # fmt: skip
        """Return the broken links in a changed page itself."""
        path, old_path = changed.path, changed.old_path
        old_links = await asyncio.to_thread(links_of, changed.old_text, old_path, before.layout.dialect)
        new_links = await asyncio.to_thread(links_of, changed.text, path, now.layout.dialect)
        known = _kept(old_links, new_links)
        was_at = _targets(old_links, old_path, before, moved)
        suspects = []
        for at, link in enumerate(new_links):
            target, _, anchor = link.target.partition("#")
            answer = now.leads_to(path, without_query(target), link.form)
            was = SOUND
            if at in known:
                was = before.leads_to(old_path, without_query(target), link.form)
            page = answer.page
            if _is_lost(was, answer, before, now, moved) or (at in known and _names_gone(old_path, link, was, now)):
                if not link.is_image:
                    suspects.append(SuspectLink(path, link, None, moved.get(was.page or "", was.page), answer, was))
            elif page is None:
                old_file = _file(old_path, target)
                if at in known and old_file in before.files and _file(path, target) not in now.files:
                    suspects.append(SuspectLink(path, link, None, moved.get(old_file, old_file)))
                elif answer.state == "broken" and was.state != "broken" and not link.is_image:
                    suspects.append(SuspectLink(path, link, None, None, answer))
            elif is_checked(anchor) and not link.is_image:
                led_to, from_part = was_at.get((page, anchor)), unquote(anchor) in of_parts.get(page, {})
                if led_to is None or from_part or (await self._anchors_of(led_to, base=True)).has(anchor):
                    suspects.append(SuspectLink(path, link, page, has_lost_anchor=led_to is not None))
        return suspects

    async def _anchors_of_parts(
        self, changed: Mapping[str, str | None], now: SiteView
    ) -> Mapping[str, Mapping[str, str]]:
        """Return the anchors that pages had from files that they show, and have no longer, by page, each with the one
        in its place; empty for one that is gone.
        """
        lost: dict[str, dict[str, str]] = {}
        for path, text in changed.items():
            old = await self._workspace.base_text(path)
            if text is None or old is None:
                continue
            gone = (await self._anchors_of(path, base=True)).names - (await self._anchors_of(path)).names
            if gone:
                new = await asyncio.to_thread(renamed_anchors, path, old, text, now.layout.dialect)
                lost[path] = {anchor: new.get(anchor, "") for anchor in gone}
        found: dict[str, dict[str, str]] = {}
        for _ in range(MAX_NESTED if lost else 0):
            showing: dict[str, dict[str, str]] = {}
            async for texts in self._workspace.texts(await asyncio.to_thread(_readable_pages, self._workspace)):
                for path, parts in (await asyncio.to_thread(_showing, texts, frozenset(lost), now)).items():
                    own = await self._anchors_of(path)
                    all_ = {old: new for part in parts for old, new in lost[part].items()}
                    showing[path] = {old: new for old, new in all_.items() if not own.has(old)}
            lost = {path: anchors for path, anchors in showing.items() if path not in found}
            found |= lost
            if not lost:
                break
        return found

    async def _broken_elsewhere(
        self, changed: Mapping[str, str | None], before: SiteView, now: SiteView, moved: Mapping[str, str],
        of_parts: Mapping[str, Mapping[str, str]],
    ) -> list[SuspectLink]:  # fmt: skip
        """Return the links in unchanged pages whose targets the job removed."""
        affected = await asyncio.to_thread(_displaced, before, now)  # page to the anchors it lost
        affected |= {path: frozenset() for path in before.files - now.files}
        if now.layout.hugo is not None:  # it refuses a name that two pages have
            new = {_name(path) for path in now.files - before.files}
            affected |= {path: frozenset() for path in before.site.pages if _name(path) in new}
        for path in changed:
            if path in before.site.pages and path in now.site.pages:
                lost = (await self._anchors_of(path, base=True)).loosely - (await self._anchors_of(path)).loosely
                if lost:
                    affected[path] = lost
        for path, anchors in of_parts.items():
            affected[path] = affected.get(path, frozenset()) | frozenset(map(loosely, anchors))
        if not affected:
            return []
        needles = _needles(affected, before)
        suspects: list[SuspectLink] = []
        pages = await asyncio.to_thread(_readable_pages, self._workspace)
        async for texts in self._workspace.texts([path for path in pages if path not in changed]):
            suspects += await asyncio.to_thread(_links_to, texts, affected, needles, before, now, moved)
        return suspects

    async def _renamed_anchors(
        self, changed: Mapping[str, str | None], came_from: Mapping[str, str], now: SiteView
    ) -> dict[str, Mapping[str, str]]:
        """Return, by changed page, the anchors of headings that have other words now."""
        renamed: dict[str, Mapping[str, str]] = {}
        for path, text in changed.items():
            old = await self._workspace.base_text(came_from.get(path, path))
            if old is not None and text is not None:
                found = await asyncio.to_thread(renamed_anchors, path, old, text, now.layout.dialect)
                renamed[path] = {anchor: new for anchor, new in found.items() if anchor != new}
        return renamed

    async def _reported(
        self, suspects: Sequence[SuspectLink], now: SiteView, renamed: Mapping[str, Mapping[str, str]] | None = None
    ) -> LinkReport:
        asked = sorted({suspect.page for suspect in suspects if suspect.page is not None})
        anchors: dict[str, Anchors] = {}
        async for texts in self._workspace.texts(asked):
            anchors.update(await asyncio.to_thread(self._parsed_anchors, texts))
        found = await asyncio.to_thread(verdicts, suspects, anchors, now, renamed or {})
        broken, unknown = list[BrokenLink](), found.unknown
        left_out = await self._workspace.left_out({_file_of(link) for link in found.broken if not link.lacks_anchor})
        for link in found.broken:
            if not link.lacks_anchor and _file_of(link) in left_out:
                unknown.append(UnknownLink(link.path, link.line, link.found, NOT_FOLLOWED))
                continue
            sure = await self._sure_of_anchor(link, now, renamed or {})
            may_change = self._workspace.may_write(link.path)
            broken.append(sure if may_change else replace(sure, clear=False, is_for_people=True))
        return LinkReport(broken, unknown)

    async def _sure_of_anchor(
        self, link: BrokenLink, now: SiteView, renamed: Mapping[str, Mapping[str, str]]
    ) -> BrokenLink:
        """A clear suggestion whose anchor its page lacks is not clear."""
        target, _, anchor = link.meant.partition("#")
        if not link.clear or not anchor or link.reason == MOVED:
            return link
        page = now.leads_to(link.path, without_query(target)).page
        if page is None or anchor in renamed.get(page, {}).values() or (await self._anchors_of(page)).has(anchor):
            return link
        shorter = link.suggestions[0].replace(f"#{anchor}", "", 1) if target else link.suggestions[0]
        return BrokenLink(link.path, link.line, link.found, (shorter,), clear=False, reason=link.reason)

    async def _navigation(
        self, now: SiteView, *, changed_only: bool, moved: Mapping[str, str] | None = None
    ) -> list[BrokenLink]:
        """Return the pages that a navigation file names and that do not exist."""
        names = await asyncio.to_thread(_navigation_files, self._workspace)
        files = [(path, await self._workspace.text(path), await self._workspace.base_text(path)) for path in names]
        had = self._base.files if changed_only and self._base is not None else frozenset()
        return await asyncio.to_thread(_named_in_vain, files, now.files, had, moved or {}, changed_only=changed_only)


# Run in threads: functions of values


def _ordered(broken: Iterable[BrokenLink]) -> list[BrokenLink]:
    return sorted(broken, key=lambda link: (not link.clear, link.path, link.line))


def _pages(workspace: Workspace, now: SiteView) -> list[str]:
    """Return the pages of the site, and the list that names them where that is a page, too."""
    layout = now.layout
    listing = navigation_file(layout, now.files)
    listed = listing.file if listing is not None and is_markdown(listing.file) else ""
    return [path for path in workspace.pages() if layout.is_page(path) or path == listed]


def _readable_pages(workspace: Workspace) -> list[str]:
    """Return every page of the repository, those outside of the site included: a README, a draft, a part."""
    folders = DEPENDENCY_FOLDERS
    return [path for path in workspace.readable_paths() if is_page(path) and folders.isdisjoint(path.split("/"))]


def _navigation_files(workspace: Workspace) -> list[str]:
    """Return those that the job changed first, then those nearest to the root."""
    changes = workspace.changes
    files = [path for path in workspace.paths() if navigation.is_navigation(path)]
    return sorted(files, key=lambda path: (path not in changes, path.count("/"), path))[:MAX_NAVIGATION_FILES]


def _suspects(texts: Mapping[str, str], now: SiteView) -> tuple[list[SuspectLink], list[UnknownLink]]:
    """Return the links of these pages that lead nowhere, or whose anchor must be looked at; and those of which it is
    not known where they lead.
    """
    found, unknown = list[SuspectLink](), list[UnknownLink]()
    for path, text in texts.items():
        for link in links_of(text, path, now.layout.dialect):
            if link.is_image:
                continue
            target, _, anchor = link.target.partition("#")
            answer = now.leads_to(path, without_query(target), link.form)
            if answer.state == "broken" or (answer.page is not None and is_checked(anchor)):
                found.append(SuspectLink(path, link, answer.page, None, answer))
            elif answer.state == "unknown":
                unknown.append(UnknownLink(path, link.line, link.target, answer.reason))
    return found, unknown


def _is_module(target: str) -> bool:
    """Return whether an import is of a program: a new one is a problem of its own (``code_gate``)."""
    return target.startswith((".", "@", "~", "/")) and _MODULE.search(target) is not None


def _named_newly(changed: _ChangedPage, before: SiteView, now: SiteView) -> list[UnknownLink]:
    had = {_written(link) for link in links_of(changed.old_text, changed.old_path, before.layout.dialect)}
    found: list[UnknownLink] = []
    for link in links_of(changed.text, changed.path, now.layout.dialect):
        if link.form in _UNNAMED or _written(link) in had or (link.form == "include" and _is_module(link.target)):
            continue
        answer = now.leads_to(changed.path, without_query(link.target.partition("#")[0]), link.form)
        if answer.state == "unknown":
            found.append(UnknownLink(changed.path, link.line, link.target, answer.reason))
    return found


def _kept(old: Sequence[PageLink], new: Sequence[PageLink]) -> Collection[int]:
    """Return the places of the links that the page had before. Where their number is the same, a link in whose
    place was another one is none of them: it may have got a target that a link elsewhere on the page had.
    """
    if len(old) == len(new):
        return {at for at, (one, other) in enumerate(zip(old, new, strict=True)) if _written(one) == _written(other)}
    known = set(map(_written, old))
    return {at for at, link in enumerate(new) if _written(link) in known}


def _written(link: PageLink) -> tuple[str, str]:
    return link.form, link.target


def _is_lost(was: LinkAnswer, answer: LinkAnswer, before: SiteView, now: SiteView, moved: Mapping[str, str]) -> bool:
    """Return whether a link led to a page that is still there, perhaps under another name, and does so no longer."""
    if was.page is None:
        return False
    wanted = moved.get(was.page, was.page)
    if answer.page != wanted:
        return answer.page is None or wanted in now.files
    had, has = before.site.pages.get(was.page), now.site.pages.get(wanted)
    is_in_place = had is not None and has is not None and had.url == has.url and was.page in moved
    return not is_in_place and not is_read_alike(was, answer, wanted)


def _names_gone(path: str, link: PageLink, was: LinkAnswer, now: SiteView) -> bool:
    """Return whether a link names the file of a page that is there no more, so that it leads at most to one that is
    named alike: in other letters, or as the page of a folder.
    """
    target = link.target.partition("#")[0]
    if link.form != "link" or not is_page(target) or was.page is None or was.page in now.files:
        return False
    return _file(path, target) == was.page


def _targets(
    links: Iterable[PageLink], path: str, before: SiteView, moved: Mapping[str, str]
) -> dict[tuple[str, str], str]:
    """Return the pages that links led to, by their path now and the anchor."""
    found: dict[tuple[str, str], str] = {}
    for link in links:
        target, _, anchor = link.target.partition("#")
        page = before.leads_to(path, without_query(target), link.form).page
        if page is not None:
            found[moved.get(page, page), anchor] = page
    return found


def _links_to(
    texts: Mapping[str, str],
    affected: Mapping[str, frozenset[str]],
    needles: _Needles | None,
    before: SiteView,
    now: SiteView,
    moved: Mapping[str, str],
) -> list[SuspectLink]:
    found = []
    for path, text in texts.items():
        if needles is not None and not needles.are_in(path, text):
            continue
        for link in links_of(text, path, now.layout.dialect):
            target, _, anchor = link.target.partition("#")
            was = before.leads_to(path, without_query(target), link.form)
            led_to = was.page if was.page is not None or link.form != "link" else _file(path, target)
            if led_to is None or led_to not in affected:
                continue
            if target.startswith("/") and before.site.is_redirect(target) and led_to in moved:
                continue  # the redirect is what has to change
            answer = now.leads_to(path, without_query(target), link.form)
            is_lost = _is_lost(was, answer, before, now, moved) or _names_gone(path, link, was, now)
            if (was.page is None and led_to not in now.files) or is_lost:
                found.append(SuspectLink(path, link, None, moved.get(led_to, led_to), answer, was))
            elif answer.page is not None and loosely(unquote(anchor)) in affected[led_to]:
                found.append(SuspectLink(path, link, answer.page, has_lost_anchor=True))
    return found


def _showing(texts: Mapping[str, str], parts: frozenset[str], now: SiteView) -> dict[str, list[str]]:
    """Return the pages that show one of these files, with those that they show."""
    names = {_name(part).lstrip("_") for part in parts}
    found: dict[str, list[str]] = {}
    for path, text in texts.items():
        low = text.lower()
        if any(name in low for name in names):
            shown = (
                now.leads_to(path, link.target, "include").page
                for link in links_of(text, path, now.layout.dialect)
                if link.form == "include"
            )
            if here := [part for part in shown if part in parts and part != path]:
                found[path] = here
    return found


def _linked(texts: Mapping[str, str], wanted: Collection[str], needles: _Needles | None, now: SiteView) -> set[str]:
    """Return the pages among those that are wanted to which one of these links."""
    found = set[str]()
    for path, text in texts.items():
        if needles is not None and not needles.are_in(path, text):
            continue
        for link in links_of(text, path, now.layout.dialect):
            page = now.leads_to(path, without_query(link.target.partition("#")[0]), link.form).page
            if page is not None and page in wanted and page != path:
                found.add(page)
    return found


def _displaced(before: SiteView, now: SiteView) -> dict[str, frozenset[str]]:
    """Pages that are gone, or shown elsewhere."""
    if before.site is now.site:
        return {}
    there = now.site.pages
    return {
        path: frozenset()
        for path, page in before.site.pages.items()
        if path not in there or there[path].url != page.url
    }  # fmt: skip


def _name(path: str) -> str:
    return without_suffix(path).rpartition("/")[2].lower()


def _needles(affected: Iterable[str], before: SiteView) -> _Needles | None:
    """Return the words of the links to these pages; None when no word is in all of them, or too many are asked for."""
    pages = before.site.pages
    by_page = {path: {pages[path].url} if path in pages else set[str]() for path in affected}
    for url, path in before.site.paths.items():
        if path in by_page:
            by_page[path].add(url)
    needles = {max(label.split(), key=len) for label, path in before.site.rules.labels.items() if path in by_page}
    near, folders = set[str](), set[str]()
    for path, urls in by_page.items():
        name = _name(path).partition(".")[0]
        if name in INDEX_NAMES:
            near |= {name, *_DOTS}
            folders.add(path.lower().rpartition("/")[0].rpartition("/")[2])
        for address in (without_suffix(path), *urls):
            parts = [part for part in address.lower().split("/") if part and part not in INDEX_NAMES]
            if not parts:
                return None
            needles |= _spellings(parts[-1])
            if name in INDEX_NAMES:
                folders.add(parts[-1])
    return _Needles(frozenset(needles), frozenset(near), frozenset(folders)) if len(needles) <= 40 else None


def _spellings(name: str) -> set[str]:
    """Return a name as links have it: as it is, and percent-encoded; of several words the longest, which all have."""
    words = [word for word in re.split(r"[\s_-]+", name) if word]
    alone = max(words, key=len) if words else name
    return {alone, quote(alone, safe="").lower(), quote(unicodedata.normalize("NFC", alone), safe="").lower()}


def _most_alike(text: str, candidates: Mapping[str, str]) -> list[str]:
    """The candidate that shares most lines with the text, if it is most of them."""
    lines = {line for line in text.splitlines() if line.strip()}
    if not lines:
        return []
    best = max(candidates, key=lambda to: len(lines & set(candidates[to].splitlines())))
    return [best] if len(lines & set(candidates[best].splitlines())) > len(lines) / 2 else []


def _named_in_vain(
    files: Iterable[tuple[str, str | None, str | None]],
    there: Collection[str],
    had: Collection[str],
    moved: Mapping[str, str],
    *,
    changed_only: bool,
) -> list[BrokenLink]:
    """``files`` are navigation files: path, text, and text before."""
    broken = []
    for path, text, old in files:
        if text is None:
            continue
        known = {entry.page for entry in navigation.entries(path, old or "")} if changed_only else frozenset()
        for entry in navigation.entries(path, text):
            if entry.exists(there):
                continue
            if changed_only and entry.page in known and not entry.exists(had):
                continue  # missing before, too
            went = next((moved[file] for file in entry.files if file in moved), None)
            source = next((file for file in entry.files if file in moved), "")
            suggestions = (entry.renamed(source, went),) if went else ()
            reason = f"the navigation names {entry.page}, which does not exist"
            broken.append(BrokenLink(path, entry.line, entry.found, suggestions, clear=bool(went), reason=reason))
            if len(broken) >= MAX_NAMED_IN_VAIN:
                return broken
    return broken


def _file_of(link: BrokenLink) -> str:
    return _file(link.path, link.target.partition("#")[0])


def _file(path: str, target: str) -> str:
    """The path of a file that is no page, from the root of the repository."""
    bare = unquote(without_query(target))
    return bare.lstrip("/") if bare.startswith("/") else normpath(f"{dirname(path)}/{bare}").removeprefix("/")
