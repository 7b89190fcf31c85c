"""Links between pages: which are broken, which of them a job broke, and what they most likely meant.

Where a link leads is the site's business (``service.retrieval.navigation``). Here is how to find out without parsing
every page: a page's address needs its front matter only, the anchors of a page are read when a link asks for one, and
pages that may link to what a job removed are found by searching their text for its name.
"""

import asyncio
import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from posixpath import dirname, normpath, relpath
from urllib.parse import unquote

from msgspec import Struct

from service.agent import navigation
from service.agent.markup import PageLink, links_of
from service.agent.workspace import PAGE_SUFFIXES, Workspace
from service.domain.sites import Skipped
from service.retrieval.front_matter import fact, split_front_matter
from service.retrieval.inline import Link
from service.retrieval.markdown import ParsedPage, parse_page
from service.retrieval.navigation import Layout, Site, SiteBuilder, detect_layout, link_problem, resolve_link
from service.retrieval.slugs import slug

MAX_SUGGESTIONS = 3
MAX_MOVED_COMPARED = 200
CONFIGURATIONS = re.compile(
    r"(?:^|/)(?:docs|mint|versions)\.json$|(?:^|/)\.mintignore$|(?:^|/)mkdocs\.ya?ml$|(?:^|/)docusaurus\.config\.\w+$"
    r"|(?:^|/)sidebars\.\w+$|(?:^|/)(?:hugo|config)\.(?:toml|ya?ml|json)$"
)
MAX_CONFIGURATIONS = 60
MAX_NAVIGATION_FILES = 100
MAX_NAMED_IN_VAIN = 5_000

_INDEX = frozenset({"index", "_index", "readme"})
_SUFFIX = re.compile(r"\.(?:mdx?|markdown|html?)$", re.IGNORECASE)
_COMMON = frozenset(
    {
        "index", "overview", "introduction", "intro", "about", "faq", "faqs", "setup", "install", "installation",
        "home", "quickstart", "start", "getting-started", "guide", "guides", "reference", "api", "configuration",
        "config", "usage", "help", "examples", "example", "changelog", "concepts", "tutorial", "tutorials",
    }
)  # fmt: skip
"""Names that many folders have a page of: alone they say nothing."""


class BrokenLink(Struct, frozen=True):
    path: str
    line: int
    found: str
    """What stands there, with enough around it to tell it apart: ``(/a/b)``."""
    suggestions: tuple[str, ...]
    """What could stand there instead, best first."""
    clear: bool
    """The first suggestion is what was meant, as far as anyone can tell."""
    reason: str


class _View(Struct):
    """A site as it was or is."""

    layout: Layout
    site: Site
    titles: Mapping[str, str]
    files: frozenset[str]
    names: "_PageNames | None" = None
    """Made when first asked for."""
    resolved: dict[tuple[str, str], tuple[str | None, bool]] = {}

    def leads_to(self, path: str, target: str) -> tuple[str | None, bool]:
        """The page, and whether the link is sound as far as its page goes. ``target`` has no anchor."""
        if target in ("", "/"):  # the site's front page may be made by its theme
            return (path, True) if not target and path in self.site.pages else (None, True)
        key = ("" if target.startswith("/") else path, target)
        known = self.resolved.get(key)
        if known is None:
            page = resolve_link(path, target, self.site)
            known = self.resolved[key] = (page, page is not None or link_problem(path, target, self.site) is None)
        return known


class _Anchors(Struct, frozen=True):
    """What a link into a page may name."""

    names: frozenset[str]
    loosely: frozenset[str]
    """Those without punctuation and case, in which generators differ; and what some generators make anchors of too:
    headings with the tags in them, terms of definition lists."""

    def has(self, anchor: str) -> bool:
        if not _is_checked(anchor) or anchor in self.names:
            return True
        wanted = _loosely(unquote(anchor))  # and Mintlify's anchor of a field is param-<its name>
        return wanted in self.loosely or wanted.removeprefix("param") in self.loosely


MOVED = "the page it leads to has moved"
NO_ANCHORS = _Anchors(frozenset(), frozenset())
_RAW_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+([^\n]{1,300})$", re.MULTILINE)
_TERM = re.compile(r"^[ \t]*(?:[-*][ \t]+)?(\S[^\n]{0,300})\n(?:[ \t]*\n)?[ \t]*(?:[-*][ \t]+)?:[ \t]", re.MULTILINE)


class _PageNames(Struct, frozen=True):
    by_name: Mapping[str, Sequence[str]]
    """Pages by the last part of their address or path, or by their title."""
    everywhere: frozenset[str]
    """Folders that more than half of the pages are in: to be in one of them says nothing."""
    often_alike: bool
    """Many pages share their name with others, as members of classes do: then a name alone says little."""


class _Suspect(Struct, frozen=True):
    """A link whose anchor is still to be looked at, or that is known to be broken already."""

    path: str
    link: PageLink
    page: str | None
    """Where it leads now; None: nowhere."""
    meant: str | None = None
    """Where the page it led to before has gone."""


class Links:
    """The links of one workspace. Facts of the base are read once; what a job changed is read anew."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._base_pages: dict[str, ParsedPage] = {}
        self._base: _View | None = None
        self._now: _View | None = None
        self._now_of: dict[str, str | None] = {}
        self._anchors: dict[tuple[str, int], _Anchors] = {}

    async def broken(self) -> list[BrokenLink]:
        """Every broken link of the site, in the order of path and line; the clear ones first."""
        now = await self._view()
        suspects: list[_Suspect] = []
        async for texts in self._workspace.texts(await asyncio.to_thread(_pages, self._workspace, now.layout)):
            suspects += await asyncio.to_thread(_suspects, texts, now)
        broken = await self._reported(suspects, now)
        broken += await self._navigation(now, changed_only=False)
        return sorted(broken, key=lambda link: (not link.clear, link.path, link.line))

    async def broken_by_changes(self) -> list[BrokenLink]:
        """Those that were sound before the job's changes, and new ones."""
        changes = await self._workspace.effective_changes()
        pages = {path: text for path, text in changes.items() if path.lower().endswith((".md", ".mdx", ".markdown"))}
        moved = await self.moved()
        came_from = {to: path for path, to in moved.items()}
        if not any(CONFIGURATIONS.search(path) or path.lower().endswith(PAGE_SUFFIXES) for path in changes):
            return []
        if await self._only_words(changes):
            return []
        before, now = await self._view(base=True), await self._view()
        suspects: list[_Suspect] = []
        for path, text in pages.items():
            if text is not None:
                old_path = path if self._workspace.in_base(path) else came_from.get(path, path)
                old_text = await self._workspace.base_text(old_path) or ""
                suspects += await self._newly_broken(path, text, old_path, old_text, before, now, moved)
        suspects += await self._broken_elsewhere(pages, before, now, moved)
        broken = await self._reported(suspects, now)
        broken += await self._navigation(now, changed_only=True, moved=moved)
        return sorted(broken, key=lambda link: (not link.clear, link.path, link.line))

    # Views

    async def _view(self, *, base: bool = False) -> _View:
        if base or not self._workspace.changes:
            if self._base is None:
                self._base = await self._base_view()
            return self._base
        if self._now is None or self._now_of != self._workspace.changes:
            self._now = await self._changed_view()
            self._now_of = dict(self._workspace.changes)
        return self._now

    async def _base_view(self) -> _View:
        paths = self._workspace.base_paths()
        layout = await self._layout(paths, base=True)
        wanted = await asyncio.to_thread(lambda: [path for path in paths if layout.is_page(path)])
        async for texts in self._workspace.base_texts(wanted):
            self._base_pages.update(await asyncio.to_thread(_light_pages, texts, many_bases=len(layout.bases) > 1))
        return await asyncio.to_thread(_made_view, layout, self._base_pages, paths)

    async def _changed_view(self) -> _View:
        base = await self._view(base=True)
        changes = dict(self._workspace.changes)
        layout = base.layout
        paths = await asyncio.to_thread(self._workspace.paths)
        if any(CONFIGURATIONS.search(path) for path in changes):
            layout = await self._layout(paths, base=False)
        return await asyncio.to_thread(_changed_view, base, layout, self._base_pages, changes, paths)

    async def _layout(self, paths: Sequence[str], *, base: bool) -> Layout:
        files = await asyncio.to_thread(_configurations, paths)
        read = self._workspace.base_texts if base else self._workspace.texts
        found: dict[str, str] = {}
        async for texts in read(files):
            found.update(texts)
        return await asyncio.to_thread(
            detect_layout, paths, lambda name: found[name].encode() if name in found else None,
            docs_folder=self._workspace.docs_folder,
        )  # fmt: skip

    async def _anchors_of(self, path: str, *, base: bool = False) -> _Anchors:
        text = await (self._workspace.base_text(path) if base else self._workspace.text(path))
        if text is None:
            return NO_ANCHORS
        return (await asyncio.to_thread(self._parsed_anchors, {path: text}))[path]

    def _parsed_anchors(self, texts: Mapping[str, str]) -> dict[str, _Anchors]:
        found: dict[str, _Anchors] = {}
        assert self._base is not None
        for path, text in texts.items():
            key = (path, hash(text))
            if key not in self._anchors:
                self._anchors[key] = _page_anchors(path, text, self._base.layout)
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
        """No page came, went, or changed its address, anchors or links: then the rest of the site need not be read."""
        for path, text in changes.items():
            old = await self._workspace.base_text(path)
            if old is None or text is None or CONFIGURATIONS.search(path):
                return False
            if not await asyncio.to_thread(_differs_in_words_only, path, old, text):
                return False
        return True

    async def _newly_broken(
        self, path: str, text: str, old_path: str, old_text: str, before: _View, now: _View, moved: Mapping[str, str]
    ) -> list[_Suspect]:
        """Of a changed page's own links."""
        known: set[str] = set()
        was_at: dict[tuple[str, str], str] = {}  # page as it is called now, and anchor, to the page as it was called
        for link in await asyncio.to_thread(links_of, old_text):
            target, _, anchor = link.target.partition("#")
            known.add(link.target)
            was, _ = before.leads_to(old_path, _bare(target))
            if was is not None:
                was_at[moved.get(was, was), anchor] = was
        suspects = []
        for link in await asyncio.to_thread(links_of, text):
            target, _, anchor = link.target.partition("#")
            page, sound = now.leads_to(path, _bare(target))
            was, was_sound = before.leads_to(old_path, _bare(target)) if link.target in known else (None, True)
            if not sound:
                if was_sound and not link.is_image:
                    suspects.append(_Suspect(path, link, None, moved.get(was or "", was)))
            elif page is None:
                old_file = _file(old_path, target)
                if link.target in known and old_file in before.files and _file(path, target) not in now.files:
                    suspects.append(_Suspect(path, link, None, moved.get(old_file, old_file)))
            elif _is_checked(anchor) and not link.is_image:
                led_to = was_at.get((page, anchor))
                if led_to is None or (await self._anchors_of(led_to, base=True)).has(anchor):
                    suspects.append(_Suspect(path, link, page))
        return suspects

    async def _broken_elsewhere(
        self, changed: Mapping[str, str | None], before: _View, now: _View, moved: Mapping[str, str]
    ) -> list[_Suspect]:
        """Of the links in pages that the job left alone, those to what it took away."""
        affected = await asyncio.to_thread(_displaced, before, now)  # page to the anchors it lost
        for path in changed:
            if path in before.site.pages and path in now.site.pages:
                lost = (await self._anchors_of(path, base=True)).loosely - (await self._anchors_of(path)).loosely
                if lost:
                    affected[path] = lost
        if not affected:
            return []
        needles = _needles(affected, before)
        suspects: list[_Suspect] = []
        pages = await asyncio.to_thread(_pages, self._workspace, before.layout)
        async for texts in self._workspace.texts([path for path in pages if path not in changed]):
            suspects += await asyncio.to_thread(_links_to, texts, affected, needles, before, now, moved)
        return suspects

    async def _reported(self, suspects: Sequence[_Suspect], now: _View) -> list[BrokenLink]:
        asked = sorted({suspect.page for suspect in suspects if suspect.page is not None})
        anchors: dict[str, _Anchors] = {}
        async for texts in self._workspace.texts(asked):
            anchors.update(await asyncio.to_thread(self._parsed_anchors, texts))
        broken = await asyncio.to_thread(_verdicts, suspects, anchors, now)
        return [await self._sure_of_anchor(link, now) for link in broken]

    async def _sure_of_anchor(self, link: BrokenLink, now: _View) -> BrokenLink:
        """A clear suggestion whose anchor its page lacks is not clear."""
        if not link.clear or "#" not in link.suggestions[0] or link.reason == MOVED:
            return link
        for each in links_of(f"[x]{link.suggestions[0]}" if link.suggestions[0][0] == "(" else link.suggestions[0]):
            target, _, anchor = each.target.partition("#")
            page, _ = now.leads_to(link.path, _bare(target))
            if page is None or (await self._anchors_of(page)).has(anchor):
                return link
            shorter = link.suggestions[0].replace(f"#{anchor}", "", 1) if target else link.suggestions[0]
            return BrokenLink(link.path, link.line, link.found, (shorter,), clear=False, reason=link.reason)
        return link

    async def _navigation(
        self, now: _View, *, changed_only: bool, moved: Mapping[str, str] | None = None
    ) -> list[BrokenLink]:
        """Pages that a navigation file names in vain."""
        names = await asyncio.to_thread(_navigation_files, self._workspace)
        files = [(path, await self._workspace.text(path), await self._workspace.base_text(path)) for path in names]
        had = self._base.files if changed_only and self._base is not None else frozenset()
        return await asyncio.to_thread(_named_in_vain, files, now.files, had, moved or {}, changed_only=changed_only)


# Run in threads: functions of values


def _pages(workspace: Workspace, layout: Layout) -> list[str]:
    return [path for path in workspace.pages() if layout.is_page(path)]


def _configurations(paths: Sequence[str]) -> list[str]:
    """Files that may say how the site is laid out, those nearest to the root first."""
    files = [path for path in paths if CONFIGURATIONS.search(path)]
    return sorted(files, key=lambda path: (path.count("/"), path))[:MAX_CONFIGURATIONS]


def _navigation_files(workspace: Workspace) -> list[str]:
    """Those that the job changed first, then those nearest to the root."""
    changes = workspace.changes
    files = [path for path in workspace.paths() if navigation.is_navigation(path)]
    return sorted(files, key=lambda path: (path not in changes, path.count("/"), path))[:MAX_NAVIGATION_FILES]


def _light_pages(texts: Mapping[str, str], *, many_bases: bool) -> dict[str, ParsedPage]:
    """Pages with what places them on the site, and nothing else."""
    pages = {}
    for path, text in texts.items():
        facts, _ = (
            split_front_matter(text.removeprefix("\ufeff")) if text.lstrip("\ufeff")[:3] in ("---", "+++") else ({}, 0)
        )
        links = tuple(Link(link.target, "", link.line) for link in links_of(text)[:20]) if many_bases else ()
        title = fact(facts, "title", "sidebar_label", "sidebarTitle", "linkTitle")
        if not title:
            heading = re.search(r"^#\s+(.+)$", text, re.MULTILINE)
            title = heading[1].strip() if heading else ""
        pages[path] = ParsedPage(path, title, "", facts, (), NO_ANCHORS.names, links, "")
    return pages


def _made_view(layout: Layout, pages: Mapping[str, ParsedPage], paths: Iterable[str]) -> _View:
    files = frozenset(paths)
    builder = SiteBuilder(layout, files)
    for page in pages.values():
        if not layout.is_hidden(page.facts):
            builder.add(page)
    return _View(layout, builder.site(), {path: page.title for path, page in pages.items()}, files)


def _changed_view(
    base: _View,
    layout: Layout,
    base_pages: Mapping[str, ParsedPage],
    changes: Mapping[str, str | None],
    paths: Sequence[str],
) -> _View:
    """The base itself where the changes leave every page at its place: making a large site anew takes a second."""
    texts = {path: text for path, text in changes.items() if text is not None and layout.is_page(path)}
    changed = _light_pages(texts, many_bases=len(layout.bases) > 1)
    if (
        layout is base.layout
        and changed.keys() == {path for path in changes if path in base_pages}
        and frozenset(paths) == base.files
        and all(page.facts == base_pages[path].facts for path, page in changed.items())
    ):
        return base
    pages = {path: page for path, page in base_pages.items() if path not in changes}
    return _made_view(layout, {**pages, **changed}, paths)


def _page_anchors(path: str, text: str, layout: Layout) -> _Anchors:
    page = parse_page(text.encode(errors="replace"), path, layout.dialect)
    if isinstance(page, Skipped):
        return NO_ANCHORS
    others = (*_RAW_HEADING.findall(text), *_TERM.findall(text)) if "\n" in text else ()
    return _Anchors(page.anchors, frozenset(_loosely(each) for each in (*page.anchors, *others)))


def _suspects(texts: Mapping[str, str], now: _View) -> list[_Suspect]:
    """Links of these pages that lead nowhere, or whose anchor must be looked at."""
    found = []
    for path, text in texts.items():
        for link in links_of(text):
            if link.is_image:
                continue
            target, _, anchor = link.target.partition("#")
            page, sound = now.leads_to(path, _bare(target))
            if not sound or (page is not None and _is_checked(anchor)):
                found.append(_Suspect(path, link, page))
    return found


def _links_to(
    texts: Mapping[str, str],
    affected: Mapping[str, frozenset[str]],
    needles: Collection[str] | None,
    before: _View,
    now: _View,
    moved: Mapping[str, str],
) -> list[_Suspect]:
    found = []
    for path, text in texts.items():
        if needles is not None:
            lowered = text.lower()
            if not any(needle in lowered for needle in needles):
                continue
        for link in links_of(text):
            target, _, anchor = link.target.partition("#")
            led_to, _ = before.leads_to(path, _bare(target))
            if led_to is None or led_to not in affected:
                continue
            page, sound = now.leads_to(path, _bare(target))
            if not sound:
                found.append(_Suspect(path, link, None, moved.get(led_to, led_to)))
            elif page is not None and _loosely(unquote(anchor)) in affected[led_to]:
                found.append(_Suspect(path, link, page))
    return found


def _differs_in_words_only(path: str, old: str, new: str) -> bool:
    if {link.target for link in links_of(new)} - {link.target for link in links_of(old)}:
        return False
    was, now = parse_page(old.encode(), path), parse_page(new.encode(), path)
    if isinstance(was, Skipped) or isinstance(now, Skipped):
        return False
    others = [{*_RAW_HEADING.findall(text), *_TERM.findall(text)} for text in (old, new)]
    return was.facts == now.facts and was.anchors == now.anchors and others[0] == others[1]


def _displaced(before: _View, now: _View) -> dict[str, frozenset[str]]:
    """Pages that are gone, or shown elsewhere."""
    if before.site is now.site:
        return {}
    there = now.site.pages
    return {
        path: frozenset()
        for path, page in before.site.pages.items()
        if path not in there or there[path].url != page.url
    }  # fmt: skip


def _needles(affected: Iterable[str], before: _View) -> list[str] | None:
    """Lower-case words of which one stands in any link to these pages; None when no word does."""
    by_page: dict[str, set[str]] = {path: set() for path in affected}
    for url, path in before.site.paths.items():
        if path in by_page:
            by_page[path].add(url)
    needles: set[str] = set()
    for path, urls in by_page.items():
        for address in (_SUFFIX.sub("", path), *urls):
            parts = [part for part in address.lower().split("/") if part and part not in _INDEX]
            if not parts:
                return None
            needles.add(parts[-1])
    return sorted(needles) if len(needles) <= 40 else None


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
                continue  # named in vain before
            went = next((moved[file] for file in entry.files if file in moved), None)
            source = next((file for file in entry.files if file in moved), "")
            suggestions = (entry.renamed(source, went),) if went else ()
            reason = f"the navigation names {entry.page}, which does not exist"
            broken.append(BrokenLink(path, entry.line, entry.found, suggestions, clear=bool(went), reason=reason))
            if len(broken) >= MAX_NAMED_IN_VAIN:
                return broken
    return broken


# What was meant


def _verdicts(suspects: Iterable[_Suspect], anchors: Mapping[str, _Anchors], now: _View) -> list[BrokenLink]:
    broken = []
    for suspect in suspects:
        anchor = suspect.link.target.partition("#")[2]
        if suspect.page is None:
            broken.append(_without_page(suspect, now))
        elif not (known := anchors.get(suspect.page, NO_ANCHORS)).has(anchor):
            broken.append(_without_anchor(suspect, anchor, known.names))
    return broken


def _without_page(suspect: _Suspect, now: _View) -> BrokenLink:
    target, hash_mark, anchor = suspect.link.target.partition("#")
    tail = hash_mark + anchor
    reason = f"no page is at {target}"
    if suspect.meant is not None:
        pages, clear = ([suspect.meant], True) if suspect.meant in now.files else ([], False)
        reason = MOVED if pages else "the page it leads to is gone"
    else:
        pages, clear = _guesses(suspect.path, target, now)
    written = [each for page in pages if (each := _address(suspect.path, target, page, now)) is not None]
    suggestions = tuple(suspect.link.with_target(each + tail) for each in written[:MAX_SUGGESTIONS])
    clear = clear and bool(written) and len(pages) == len(written)
    return BrokenLink(suspect.path, suspect.link.line, suspect.link.found, suggestions, clear, reason)


def _without_anchor(suspect: _Suspect, anchor: str, anchors: frozenset[str]) -> BrokenLink:
    wanted = _loosely(unquote(anchor))
    near = sorted(
        ((difflib.SequenceMatcher(None, wanted, _loosely(each)).ratio(), each) for each in sorted(anchors)[:500]),
        key=lambda pair: (-pair[0], pair[1]),
    )
    best = [each for ratio, each in near[:MAX_SUGGESTIONS] if ratio >= 0.6]
    sure = [each for each in best if _is_slip(unquote(anchor), each)]
    target = suspect.link.target.partition("#")[0]
    suggestions = tuple(suspect.link.with_target(f"{target}#{each}") for each in dict.fromkeys([*sure, *best]))
    reason = f"{suspect.page} has no heading #{anchor}"
    return BrokenLink(suspect.path, suspect.link.line, suspect.link.found, suggestions, len(sure) == 1, reason)


def _is_slip(written: str, meant: str) -> bool:
    """A name mistyped or inflected: one or two letters apart, its numbers the same."""
    one, two = _loosely(written), _loosely(meant)
    if re.sub(r"\D", "", one) != re.sub(r"\D", "", two) or min(len(one), len(two)) < 4:
        return False
    changed = sum(
        max(end - start, other_end - other_start)
        for kind, start, end, other_start, other_end in difflib.SequenceMatcher(None, one, two, False).get_opcodes()
        if kind != "equal"
    )
    return changed <= (2 if len(one) >= 8 else 1)


def _guesses(path: str, target: str, now: _View) -> tuple[list[str], bool]:
    """Pages that a link to nowhere may have meant, best first, and whether the first is the one."""
    parts = [_word(part) for part in _SUFFIX.sub("", _bare(target)).split("/") if part not in ("", ".", "..")]
    while parts and parts[-1] in _INDEX:
        parts.pop()
    if not parts:
        return [], False
    name, folders = parts[-1], parts[:-1]
    known = _names(now)
    names = known.by_name
    found = list(names.get(name, ()))
    exact = bool(found)
    if not exact:
        near = [each for each in names if abs(len(each) - len(name)) <= 3 and _alike_at_an_end(each, name)]
        close = difflib.get_close_matches(name, near, n=3, cutoff=0.85)
        found = [page for each in close for page in names[each]]
    here = now.site.pages.get(path)
    if here is not None:
        spoken = (here.version, here.language)
        kin = [page for page in found if (now.site.pages[page].version, now.site.pages[page].language) == spoken]
        found = kin or found
    ranked = sorted(set(found), key=lambda page: (-_shared(folders, page, now), len(page), page))
    if not ranked or ranked[0] == path:
        return ranked[1:], False
    telling_folders = [folder for folder in folders if folder not in known.everywhere]
    shared = _shared(telling_folders, ranked[0], now)
    alone = len(ranked) == 1 or _shared(telling_folders, ranked[1], now) < shared
    all_fits = bool(folders) and _shared(folders, ranked[0], now) == len(set(folders))
    if exact and name in _own_names(ranked[0], now) and not known.often_alike:
        telling = len(name) > 3 and name not in _COMMON
        return ranked, alone and (shared > 0 or (telling and len(ranked) == 1))
    # Called so by its title, or nearly so, or as many pages are: then all else of the link must fit.
    nearly = exact or any(_is_slip(name, own) for own in _own_names(ranked[0], now))
    return ranked, alone and nearly and all_fits


def _alike_at_an_end(name: str, other: str) -> bool:
    return name[:2] == other[:2] or name[-3:] == other[-3:]


def _names(now: _View) -> _PageNames:
    if now.names is None:
        names: dict[str, list[str]] = {}
        own: Counter[str] = Counter()
        within: Counter[str] = Counter()
        for path, page in now.site.pages.items():
            called = _own_names(path, now)
            own.update(called)
            for name in called | {_word(slug(now.titles.get(path, "")))} - {""}:
                names.setdefault(name, []).append(path)
            within.update({_word(part) for part in f"{dirname(path)}/{dirname(page.url)}".split("/")})
        alike = sum(count for name, count in own.items() if count > 1 and name not in _COMMON)
        total = max(len(now.site.pages), 1)
        now.names = _PageNames(
            names, frozenset(f for f, count in within.items() if count > total / 2), often_alike=alike > total / 5
        )
    return now.names


def _own_names(page: str, now: _View) -> set[str]:
    """The last part of its path and of its address."""
    parts = [part for part in _SUFFIX.sub("", page).split("/") if part.lower() not in _INDEX]
    return {_word(parts[-1]) if parts else "", _word(now.site.pages[page].url.rpartition("/")[2])} - {""}


def _shared(folders: Sequence[str], page: str, now: _View) -> int:
    """How many folders of a link the page's path or address has too."""
    own = {_word(part) for part in f"{page}/{now.site.pages[page].url}".split("/")}
    return sum(folder in own for folder in set(folders))


def _address(path: str, target: str, page: str, now: _View) -> str | None:
    """How a link on ``path`` would name the page, written as the old target was; None when no way of writing works."""
    if page not in now.site.pages:
        return relpath(page, dirname(path) or ".") if not target.startswith("/") else f"/{page}"
    url = now.site.pages[page].url
    bare, _, query = target.partition("?")
    has_suffix = _SUFFIX.search(bare) is not None
    near = relpath(page, dirname(path) or ".")
    stem = _SUFFIX.sub("", near)
    stem = re.sub(r"(?:^|/)(?:index|_index|README|readme)$", "", stem) or "."
    lead = "./" if bare.startswith("./") and not near.startswith("../") else ""
    slashed = "/" if bare.endswith("/") else ""
    own = now.site.pages.get(path)
    options: list[str] = []
    if bare.startswith("/"):
        options += [f"/{page}", url] if has_suffix else [url.rstrip("/") + slashed or "/", url]
    else:
        options += [lead + near] if has_suffix else []
        options += [lead + stem + slashed]
        if own is not None:
            options += [relpath(url, base) + slashed for base in (dirname(own.url), own.url) if base]
        options += [near, url]
    tail = f"?{query}" if query else ""
    for option in options:
        if now.leads_to(path, option)[0] == page:
            return option + tail
    return None


def _file(path: str, target: str) -> str:
    """The path of a file that is no page, from the root of the repository."""
    bare = unquote(_bare(target))
    return bare.lstrip("/") if bare.startswith("/") else normpath(f"{dirname(path)}/{bare}").removeprefix("/")


def _bare(target: str) -> str:
    return target.partition("?")[0]


def _is_checked(anchor: str) -> bool:
    return bool(anchor) and anchor.casefold() not in ("top", "_top") and not anchor.startswith((":~:", "/", "!"))


def _loosely(anchor: str) -> str:
    """Without punctuation and case, in which generators differ."""
    return re.sub(r"[\W_]+", "", anchor.casefold())


def _word(name: str) -> str:
    return re.sub(r"[\W_]+", "-", unquote(name).casefold()).strip("-")
