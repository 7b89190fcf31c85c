"""The navigation of MkDocs: ``nav``, else every page by folder (mkdocs.org/user-guide/writing-your-docs); ``.pages`` of
awesome-pages, ``.nav.yml`` of awesome-nav, ``SUMMARY.md`` of literate-nav.

Titles of sections are left out: pages have their places in the order of reading, with the titles that entries give.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from posixpath import basename, dirname, normpath, splitext

from msgspec import Struct

from service.markup.front_matter import load_strings
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import Read, join_path, read_text

MAX_ENTRIES = 100_000
MAX_DEPTH = 30
_REST = re.compile(r"\.\.\.\s*(?:\|\s*flat\s*)?(?:\|\s*(?:(?P<kind>regex|glob)=)?(?P<pattern>.*))?")
Entry = tuple[str, str]
"""Path below the folder of pages, and the title that the navigation gives it or nothing."""


class _Tree(Struct, dict=True):
    """The pages of one folder, and the folders in it, in MkDocs' own order."""

    path: str
    pages: list[str]
    folders: dict[str, "_Tree"]

    @cached_property
    def children(self) -> list[str]:
        """Paths of the pages, the folder's own page first, then those of the folders."""
        return [*sorted(self.pages, key=_page_order), *(self.folders[name].path for name in sorted(self.folders))]

    def every_page(self) -> Iterator[str]:
        yield from sorted(self.pages, key=_page_order)
        for name in sorted(self.folders):
            yield from self.folders[name].every_page()


def navigation(
    folder: str, pages: Iterable[str], plugins: Mapping[str, object], nav: object, read: Read
) -> list[Entry]:
    """Return the pages of a folder in the order of the site, by their paths in the repository."""
    inside = [name[len(folder) :].lstrip("/") for name in pages]
    site = _Site(folder, _tree(inside), plugins, read)
    found: dict[str, str] = {}
    for path, title in site.entries(nav):
        if path in site.pages and path not in found and len(found) < MAX_ENTRIES:
            found[path] = title
    return [(join_path(folder, path), title) for path, title in found.items()]


def _tree(pages: Iterable[str]) -> _Tree:
    root = _Tree("", [], {})
    for page in pages:
        at = root
        for name in page.split("/")[:-1]:
            at = at.folders.setdefault(name, _Tree(join_path(at.path, name), [], {}))
        at.pages.append(page)
    return root


def _page_order(path: str) -> tuple[bool, str]:
    return splitext(basename(path))[0] not in ("index", "README"), path


class _Site:
    def __init__(self, folder: str, tree: _Tree, plugins: Mapping[str, object], read: Read) -> None:
        self._folder, self._tree, self._plugins, self._read = folder, tree, plugins, read
        self.pages = frozenset(tree.every_page())
        self._used: set[str] = set()
        """Paths that an entry of literate-nav has named."""

    def entries(self, nav: object) -> Iterator[Entry]:
        literate = self._plugins.get("literate-nav")
        if isinstance(literate, dict):
            self._summary = str(literate.get("nav_file") or "SUMMARY.md")
            if not nav or self._summary in self.pages:
                return self._literate(self._tree, ())
            return self._explicit(nav, 0)
        if nav:
            return self._explicit(nav, 0)
        if "awesome-pages" in self._plugins or "awesome-nav" in self._plugins:
            return self._awesome(self._tree, 0)
        return ((page, "") for page in self._tree.every_page())

    def _explicit(self, nav: object, depth: int, title: str = "") -> Iterator[Entry]:
        """``nav`` of the configuration, with what the plugins for navigation allow in it."""
        if depth > MAX_DEPTH:
            return
        if isinstance(nav, list):
            named = {path for path, _ in self._named(nav, depth)} if "..." in str(nav)[:MAX_ENTRIES] else set()
            for item in nav:
                if isinstance(item, str) and (rest := _REST.fullmatch(item)) is not None:
                    yield from self._rest(rest, [page for page in self._tree.every_page() if page not in named])
                else:
                    yield from self._explicit(item, depth + 1)
        elif isinstance(nav, dict):
            for key, value in nav.items():
                yield from self._explicit(value, depth + 1, str(key))
        elif isinstance(nav, str):
            yield from self._string(nav, title)

    def _named(self, nav: object, depth: int) -> Iterator[Entry]:
        if isinstance(nav, list):
            yield from (entry for item in nav if item != "..." for entry in self._explicit(item, depth + 1))

    def _string(self, target: str, title: str) -> Iterator[Entry]:
        path = normpath(target)
        if path in self.pages:
            yield path, title
        elif "literate-nav" in self._plugins and "*" in target:
            yield from self._wildcard(target, ())
        elif (tree := self._folder_at(path)) is not None and len(self._plugins):
            yield from self._literate(tree, ()) if "literate-nav" in self._plugins else self._awesome(tree, 0)

    def _folder_at(self, path: str) -> _Tree | None:
        at: _Tree | None = self._tree
        for name in path.split("/") if path not in ("", ".") else ():
            at = at.folders.get(name) if at is not None else None
        return at

    def _rest(self, rest: re.Match[str], pages: Sequence[str]) -> Iterator[Entry]:
        """``...`` stands for the pages that have no entry; with a pattern, for those that it fits."""
        pattern = (rest["pattern"] or "").strip()
        if rest["kind"] == "regex":
            return  # a pattern of others may take any time
        fits = ignore_rules([f"/{pattern}"])
        yield from ((page, "") for page in pages if not pattern or fits.ignores(page))

    # awesome-pages, awesome-nav

    def _awesome(self, tree: _Tree, depth: int) -> Iterator[Entry]:
        settings = self._folder_settings(tree.path)
        if depth > MAX_DEPTH or (settings.get("hide") == "true" and tree.path):
            return
        children = _sorted(tree.children, settings)
        nav = settings.get("nav") or settings.get("arrange")
        if not isinstance(nav, list):
            nav = ["..."]
        elif "arrange" in settings and "..." not in nav:
            nav = [*nav, "..."]
        names = set(_strings(nav))
        left = [child for child in children if basename(child) not in names and child not in names]
        if settings.get("append_unmatched") == "true":
            nav = [*nav, "..."]
        yield from self._arranged(nav, tree, left, depth)

    def _arranged(self, nav: Sequence[object], tree: _Tree, left: list[str], depth: int) -> Iterator[Entry]:
        for item in nav:
            pairs = item.items() if isinstance(item, dict) else [("", item)]
            for title, value in pairs:
                if isinstance(value, list):
                    yield from self._arranged(value, tree, left, depth + 1) if depth < MAX_DEPTH else ()
                elif not isinstance(value, str):
                    continue
                elif (rest := _REST.fullmatch(value)) is not None or "*" in value:
                    pattern = (rest["pattern"] or "").strip() if rest is not None else value
                    if rest is not None and rest["kind"] == "regex":
                        continue  # as above
                    fits = ignore_rules([f"/{pattern}"])
                    taken = [one for one in left if not pattern or fits.ignores(one[len(tree.path) :].lstrip("/"))]
                    left[:] = [one for one in left if one not in set(taken)]
                    for child in taken:
                        yield from self._child(child, "", depth)
                else:
                    yield from self._child(normpath(join_path(tree.path, value)), str(title), depth)

    def _child(self, path: str, title: str, depth: int) -> Iterator[Entry]:
        if path in self.pages:
            yield path, title
        elif (tree := self._folder_at(path)) is not None and path:
            yield from self._awesome(tree, depth + 1)

    def _folder_settings(self, folder: str) -> Mapping[str, object]:
        name = ".nav.yml" if "awesome-nav" in self._plugins else ".pages"
        options = self._plugins.get("awesome-nav") or self._plugins.get("awesome-pages")
        name = str(options.get("filename") or name) if isinstance(options, dict) else name
        try:
            settings = load_strings(read_text(self._read, join_path(self._folder, folder, name)))
        except ValueError:
            return {}
        return settings if isinstance(settings, dict) else {}

    # literate-nav

    def _literate(self, tree: _Tree, above: tuple[str, ...]) -> Iterator[Entry]:
        """The list of a folder's ``SUMMARY.md``; without one, its pages and folders."""
        if tree.path in above or len(above) > MAX_DEPTH:
            return
        summary = join_path(tree.path, self._summary)
        if summary not in self.pages:
            yield from self._wildcard(join_path(tree.path, "*"), (*above, tree.path))
            return
        self._used.add(summary)
        items = _listed(read_text(self._read, join_path(self._folder, summary)))
        targets = [(title, normpath(join_path(tree.path, link)), link) for title, link in items]
        self._used.update(path for _, path, _ in targets if "*" not in path)
        for title, path, link in targets:
            if "*" in link:
                yield from self._wildcard(join_path(tree.path, link) + "/" * link.endswith("/"), (*above, tree.path))
            elif link.endswith("/") and (folder := self._folder_at(path)) is not None:
                yield from self._literate(folder, (*above, tree.path))
            else:
                yield path, title

    def _wildcard(self, pattern: str, above: tuple[str, ...]) -> Iterator[Entry]:
        at = self._folder_at(dirname(pattern.rstrip("/")))
        if at is None or "*" in dirname(pattern.rstrip("/")):
            return
        fits = ignore_rules([f"/{basename(pattern.rstrip('/'))}"])
        for child in at.children:
            if child in self._used or not fits.ignores(basename(child)):
                continue
            self._used.add(child)
            if child not in self.pages and (tree := self._folder_at(child)) is not None:
                yield from self._literate(tree, above)
            elif not pattern.endswith("/"):
                yield child, ""


def _listed(text: str) -> list[Entry]:
    """Return titles and links of the list that is behind ``<!--nav-->``, else of the last list."""
    marked = "<!--nav-->" in text
    found: list[Entry] = []
    for line in text.rpartition("<!--nav-->")[2].split("\n")[:MAX_ENTRIES]:
        item = _ITEM.match(line)
        if item is not None:
            link, wildcard = _LINK.search(item[1]), item[1].strip()
            if link is not None:
                found.append((link[1].replace("\\", ""), link[2]))
            elif "*" in wildcard:
                found.append(("", wildcard.replace("\\", "")))
        elif line.strip() and not line.startswith((" ", "\t")) and found:
            if marked:
                break
            found.clear()
    return found


_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+([^\n]{1,2000})")
_LINK = re.compile(r"\[((?:\\.|[^\[\]]){0,500}+)\]\(<?([^()<>\s]{1,500})>?")


def _strings(nav: Sequence[object]) -> Iterator[str]:
    for item in nav:
        for value in item.values() if isinstance(item, dict) else [item]:
            if isinstance(value, str):
                yield value.rstrip("/")
            elif isinstance(value, list):
                yield from _strings(value)


def _sorted(children: Sequence[str], settings: Mapping[str, object]) -> list[str]:
    """Return them as ``order`` and ``sort_type`` say; by title is by name here, the titles being unread."""
    order, kind = settings.get("order"), settings.get("sort_type")
    sort = settings.get("sort")
    if isinstance(sort, dict):  # of awesome-nav, which sorts names with numbers as people do
        order, kind = sort.get("direction") or "asc", sort.get("type") or "natural"
    if not (order or kind or settings.get("order_by")):
        return list(children)
    return sorted(children, key=_natural if kind == "natural" else basename, reverse=order == "desc")


def _natural(path: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d{1,12})", basename(path))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
