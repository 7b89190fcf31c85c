"""How well a site was read, by its index: pages without a place in the navigation, addresses that two pages share,
entries, links and includes that lead nowhere, markup that was not read, and files that were left out.
"""

import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from posixpath import dirname, normpath
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct, json

from service.markup.leftovers import leftovers
from service.markup.pages import PAGE_SUFFIXES, without_suffix
from service.retrieval.index.stored import MISSING_ENTRIES
from service.retrieval.readers.includes.files import limit_in
from service.retrieval.search.words import PAGE_SHIFT
from service.retrieval.site.layout import GENERATORS, SHOWN_ON, Kind, Layout, decode_layout
from service.retrieval.site.links import link_answer
from service.retrieval.site.navigation import Site, SitePage

FindingKind = Literal[
    "same_address", "missing_entry", "broken_link", "missing_include", "leftover", "not_in_navigation", "skipped"
]  # fmt: skip
MAX_FINDINGS = 1_000
"""Findings of each kind that are listed; the number counts all."""
MISTAKES: frozenset[FindingKind] = frozenset(
    ("same_address", "missing_entry", "broken_link", "missing_include", "leftover")
)
"""Defects of the site, or of how it was read; findings of other kinds may be correct."""


class Finding(Struct, frozen=True, omit_defaults=True):
    path: str
    detail: str
    line: int = 0
    """From 1; 0 for a finding of the whole file."""


class Findings(Struct, frozen=True):
    number: int
    first: tuple[Finding, ...]


class SiteCheck(Struct, frozen=True, rename="camel"):
    """Facts about an index, and the findings of each kind in it."""

    generator: Kind
    commit: str
    pages: int
    sections: int
    navigation_entries: int
    """Pages that the navigation names; 0 where the site has none that is read."""
    findings: Mapping[FindingKind, Findings]

    @property
    def is_clean(self) -> bool:
        """Return whether there are no mistakes."""
        return not any(self.findings[kind].number for kind in MISTAKES)


def check_index(db: sqlite3.Connection) -> SiteCheck:
    """Return the findings of an index, by its tables. Every section is read, which takes a while for a large site."""
    meta = dict(db.execute("SELECT key, value FROM meta"))
    layout = decode_layout(meta["layout"])
    files = {path for (path,) in db.execute("SELECT path FROM files")}
    (entries,) = db.execute("SELECT count(*) FROM pages WHERE position >= 0").fetchone()
    named = json.decode(meta.get(MISSING_ENTRIES, "[]"), type=list[str])
    missing = [*named, *(path for path in layout.entries if path not in files)] if layout.links.has_all_files else []
    findings: dict[FindingKind, Findings] = {
        "same_address": _counted(_same_address(db)),
        "missing_entry": _counted(Finding(name, "The navigation names it; the page is not there.") for name in missing),
        "broken_link": _counted(_broken_links(db, layout, files)),
        "missing_include": _counted(
            Finding(page, _not_shown(*limit_in(target)))
            for page, target in db.execute("SELECT page, target FROM missing ORDER BY page, target")
        ),
        "leftover": _counted(_leftovers(db)),
        "not_in_navigation": _counted(_not_in_navigation(db) if entries else ()),
        "skipped": _counted(
            Finding(path, reason)
            for path, reason in db.execute("SELECT path, reason FROM skipped ORDER BY path")
            if not reason.startswith(SHOWN_ON)  # it is in the index
        ),
    }
    return SiteCheck(layout.kind, meta["commit"], int(meta["pages"]), int(meta["sections"]), entries, findings)


def _not_shown(target: str, limit: int) -> str:
    if limit:
        return f"It shows {target}, of which the first {limit:,} characters are in the index."
    return f"It shows {target}, which is not found."


def _counted(found: Iterable[Finding]) -> Findings:
    first: list[Finding] = []
    number = 0
    for number, one in enumerate(found, start=1):
        if number <= MAX_FINDINGS:
            first.append(one)
    return Findings(number, tuple(first))


def _same_address(db: sqlite3.Connection) -> Iterator[Finding]:
    by_url: dict[str, str] = {}
    for path, url in db.execute("SELECT path, url FROM pages ORDER BY path"):
        other = by_url.setdefault(url.casefold(), path)
        if other != path:
            yield Finding(path, f"It has the address {url}, as {other} has.")


def _broken_links(db: sqlite3.Connection, layout: Layout, files: Collection[str]) -> Iterator[Finding]:
    """Yield the links that lead to no page by the rules of the site. Those that count from the page are left out where
    it shows other files: they may be from there.
    """
    pages = {
        path: SitePage(path, url, title, frozenset())
        for path, url, title in db.execute("SELECT path, url, title FROM pages")
    }
    paths = dict(db.execute("SELECT key, path FROM addresses JOIN pages ON pages.id = page WHERE is_url"))
    site = Site(
        layout.kind, layout.docs_folder, pages, paths, frozenset(files), root=layout.root, rules=layout.links
    )  # fmt: skip
    showing = {page for (page,) in db.execute("SELECT DISTINCT page FROM uses")}
    for path, links in db.execute("SELECT path, links FROM pages WHERE length(links) > 0 ORDER BY path"):
        hrefs = dict.fromkeys(href for href, *_ in json.decode(zlib.decompress(links), type=list[tuple[str, str, int]]))
        for href in hrefs if path not in showing else (one for one in hrefs if one.startswith("/")):
            answer = link_answer(path, href, site)
            if answer.state == "broken" and not _is_name(path, href, site):
                yield Finding(path, f"It links to {href}: {answer.reason}.")


def _is_name(path: str, href: str, site: Site) -> bool:
    """Return whether a link was made from a name of a file that counts from the root, or does not leave it."""
    file = unquote(href.partition("#")[0].partition("?")[0]).lstrip("/")
    folder = dirname(path)[len(site.root) :]
    names = (normpath(f"/./{file}"), normpath(f"/./{folder}/{file}"))
    stems = [without_suffix(f"{site.root}{name}".lstrip("/")) for name in names]
    return any(stem + suffix in site.files for stem in stems for suffix in PAGE_SUFFIXES)


def _not_in_navigation(db: sqlite3.Connection) -> Iterator[Finding]:
    for path, url in db.execute("SELECT path, url FROM pages WHERE position < 0 ORDER BY path"):
        yield Finding(path, f"The navigation does not name it; its address is {url}.")


_IN_HEADINGS = frozenset(("shortcode", "attributes", "include"))
"""Kinds that are looked for in headings, which have lost the marks of code."""


def _leftovers(db: sqlite3.Connection) -> Iterator[Finding]:
    for path, heading, text, line in db.execute(
        "SELECT iif(sections.path = '', pages.path, sections.path), heading, text, start_line FROM sections"  # noqa: S608  (a number of ours)
        f" JOIN pages ON pages.id = sections.id >> {PAGE_SHIFT} ORDER BY pages.path, sections.id"
    ):
        in_heading = [one for one in leftovers(heading) if one.kind in _IN_HEADINGS]
        for one in (*in_heading, *leftovers(zlib.decompress(text).decode())):
            yield Finding(path, f"{one.kind}: {one.text}", line)


def described(check: SiteCheck, *, shown: int) -> str:
    """Return the check as text, with the first findings of each kind."""
    name = GENERATORS[check.generator]
    lines = [f"{name}: {check.pages:,} pages, {check.sections:,} sections, {_navigation(check)}"]
    for kind, (one, several) in _NAMES.items():
        found = check.findings[kind]
        if found.number:
            lines.append(f"{found.number:,} {one if found.number == 1 else several}")
            lines += [f"  {at.path}{f':{at.line}' if at.line else ''}: {at.detail}" for at in found.first[:shown]]
            if found.number > shown:
                lines.append(f"  and {found.number - shown:,} more: --json lists them")
    if check.is_clean:
        lines.append(
            "No mistakes were found in addresses, the navigation, links, includes and markup."
            " Anchors are not checked here."
        )
    return "\n".join(lines)


def _navigation(check: SiteCheck) -> str:
    entries = check.navigation_entries
    return f"{entries:,} of them in the navigation" if entries else "no navigation was found"


_NAMES: Mapping[FindingKind, tuple[str, str]] = {
    "same_address": ("page has the address of another", "pages have the address of another"),
    "missing_entry": ("entry of the navigation has no page", "entries of the navigation have no page"),
    "broken_link": ("link leads nowhere", "links lead nowhere"),
    "missing_include": ("include was not found, or is cut", "includes were not found, or are cut"),
    "leftover": ("piece of markup was not read", "pieces of markup were not read"),
    "not_in_navigation": ("page is not in the navigation", "pages are not in the navigation"),
    "skipped": ("file is not used", "files and folders are not used"),
}
