"""The pages of a site by their addresses: where a link leads that somebody wrote from memory."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from posixpath import splitext
from urllib.parse import unquote

from msgspec import Struct

from service.markup.addresses import with_anchor

MAX_ADDRESS_CHARACTERS = 2_000
MAX_ALIKE = 100
"""Limit for the pages of one name: to compare them takes a tenth of a millisecond, and answers have many links."""
_SUFFIXES = frozenset({".md", ".mdx", ".markdown", ".rst", ".html", ".htm"})
_OF_A_FOLDER = frozenset({"index", "readme"})


class AddressedPage(Struct, frozen=True, gc=False):
    url: str
    path: str
    """Path of its file, from the root of the repository."""
    anchors: str
    """A list as JSON: it is read for few pages."""
    groups: frozenset[str] = frozenset()
    """The readers that it is for, by case-folded names; empty for all."""


NO_ALIASES: Mapping[str, AddressedPage] = {}


class PageAddresses:
    """``service.ports.search_index.SiteLinks`` over one commit of a site."""

    def __init__(self, pages: Iterable[AddressedPage], aliases: Mapping[str, AddressedPage] = NO_ALIASES) -> None:
        """``aliases``: further addresses of pages."""
        self._pages: dict[tuple[str, ...], AddressedPage] = {}
        self._by_name: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        files: dict[tuple[str, ...], AddressedPage] = {}
        for page in pages:
            self._pages[_parts(page.url.replace("%", "%25"))] = page
            files[_parts(page.path.replace("%", "%25"))] = page
        for parts, page in [*((_parts(alias), page) for alias, page in aliases.items()), *files.items()]:
            self._pages.setdefault(parts, page)
        for parts in self._pages:
            if parts:
                self._by_name[parts[-1]].append(parts)

    def resolve(self, address: str, *, readers: Sequence[str] = ()) -> str | None:
        path, _, anchor = address[:MAX_ADDRESS_CHARACTERS].partition("#")
        parts = _parts(path.partition("?")[0])
        page = self._readable(parts, readers) or self._meant(parts, readers)
        if page is None:
            return None
        known = _known_anchor(page.anchors, unquote(anchor)) if anchor else ""
        return with_anchor(page.url, known)

    def _readable(self, parts: tuple[str, ...], readers: Sequence[str]) -> AddressedPage | None:
        page = self._pages.get(parts)
        if page is None or (page.groups and not any(reader.casefold() in page.groups for reader in readers)):
            return None
        return page

    def _meant(self, parts: tuple[str, ...], readers: Sequence[str]) -> AddressedPage | None:
        """Return the page whose address ends as this one does, where one does so in more parts than any other."""
        alike: defaultdict[int, dict[str, AddressedPage]] = defaultdict(dict)
        others = self._by_name.get(parts[-1], []) if parts else []
        for other in others if len(others) <= MAX_ALIKE else ():
            page = self._readable(other, readers)
            if page is not None:
                alike[_common_end(parts, other)][page.url] = page
        best = alike[max(alike)] if alike else {}
        return next(iter(best.values())) if len(best) == 1 else None


def _parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path or an address that say which page it is."""
    parts = [part for part in unquote(path).casefold().split("/") if part and part not in (".", "..")]
    if parts:
        stem, suffix = splitext(parts[-1])
        parts[-1] = stem if suffix in _SUFFIXES else parts[-1]
        if parts[-1] in _OF_A_FOLDER:
            parts.pop()
    return tuple(parts)


def _common_end(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for ours, theirs in zip(reversed(one), reversed(other), strict=False):
        if ours != theirs:
            break
        count += 1
    return count


def _known_anchor(anchors: str, anchor: str) -> str:
    known: list[str] = json.loads(anchors)
    if anchor in known:
        return anchor
    return next((each for each in known if _loosely(each) == _loosely(anchor)), "")


def _loosely(anchor: str) -> str:
    return re.sub(r"[\W_]+", "", anchor.casefold())
