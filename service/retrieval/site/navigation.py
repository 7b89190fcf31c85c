"""Which files are pages, where the site shows them, and what a link on one of them leads to.

``detect_layout`` finds the site's generator and answers by its rules; ``make_site`` places pages by them;
``resolve_link`` and ``link_problem`` then answer for links. What a configuration does not say (a generator's base path,
when it is not in the archive) the pages' own links decide.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname, normpath
from urllib.parse import unquote

from msgspec import Struct

from service.markup.front_matter import list_field, text_field
from service.markup.pages import INDEX_NAMES, MARKDOWN_SUFFIXES, without_suffix
from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.site.arrangement import arrange, depends_on_pages
from service.retrieval.site.detection import detect_layout
from service.retrieval.site.layout import MAX_CONFIG_BYTES, MAX_FACT, NUMBER, Kind, Layout, NavEntry, clean_url
from service.retrieval.site.translations import copy_key, text_language

__all__ = [  # with what those who read sites need of the modules below this one
    "MAX_CONFIG_BYTES",
    "Layout",
    "Placed",
    "Placements",
    "Site",
    "SiteBuilder",
    "SitePage",
    "detect_layout",
    "is_external",
    "keeps_place",
    "link_problem",
    "make_site",
    "place_pages",
    "placed",
    "resolve_link",
    "site_page",
]

MAX_VOTES = 3000


class SitePage(Struct, frozen=True, gc=False):
    path: str
    url: str
    title: str
    anchors: frozenset[str]
    version: str = ""
    language: str = ""
    """The language of its place, by what the site says; empty where it says nothing."""
    tags: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Groups of readers; empty means everyone."""
    order: int = -1
    """In the navigation, from 0; -1 when it is not there."""
    is_default: bool = True
    text_language: str = ""
    """The language that its text is in (``service.retrieval.site.translations``)."""
    copy_key: str = ""
    """A name that it shares with its translations and its other versions."""


class Site(Struct, frozen=True):
    """The pages of a site and where they are."""

    kind: Kind
    docs_folder: str
    pages: Mapping[str, SitePage]
    """By path in the repository."""
    paths: Mapping[str, str]
    """By URL, redirects included; case and a trailing slash play no part: ask through ``path_of``."""
    files: frozenset[str]
    """Every file that was given, pages or not."""
    missing: tuple[str, ...] = ()
    """Pages that the navigation names and that are not there, as it names them."""

    def path_of(self, url: str) -> str | None:
        return self.paths.get(_url_key(url))


class Placed(Struct, frozen=True, gc=False):
    """What is kept of a parsed page to give it its place in the site."""

    path: str
    title: str
    has_own_title: bool
    front_matter: dict[str, object]
    text_language: str = ""
    """As its text alone shows it; empty where that is too little."""
    anchors: frozenset[str] = frozenset()

    @property
    def aliases(self) -> tuple[str, ...]:
        """Further addresses of the page."""
        return list_field(self.front_matter, "aliases", "redirect_from")


class Placement(Struct, frozen=True, gc=False):
    """How a page got its place: what it depends on besides the layout and the URL prefix, and what came of it."""

    placed: Placed
    entry: NavEntry | None
    page: SitePage
    addresses: tuple[str, ...]
    """As links are compared with them."""
    redirects: tuple[tuple[str, str], ...]
    """Further addresses of the page, each with the page's own."""


class Placements(Struct, frozen=True):
    """The places of all pages of a site, so that the site with a few other pages need not place the rest again."""

    layout: Layout
    base: str
    by_path: Mapping[str, Placement]


def placed(page: ParsedPage) -> Placed:
    front_matter = {key: _small(page.front_matter[key]) for key in _PLACING if key in page.front_matter}
    own = bool(text_field(page.front_matter, "title", "sidebar_label", "sidebarTitle", "linkTitle"))
    return Placed(page.path, page.title, own, front_matter, anchors=page.anchors)


def _small(value: object) -> object:
    if isinstance(value, list):
        return [item[:MAX_FACT] for item in value[:100] if isinstance(item, str)]
    if isinstance(value, dict):
        return {str(key)[:MAX_FACT]: _small(value[key]) for key in list(value)[:20] if not isinstance(value[key], dict)}
    return str(value)[:MAX_FACT] if isinstance(value, str | int | float) else None


_PLACING = (
    *("slug", "url", "permalink", "id", "aliases", "redirect_from", "title", "date", "publishDate"),
    *("version", "language", "lang", "locale", "tag", "tags", "groups"),
    *("sidebar", "sidebar_position", "parse_number_prefixes"),
)


# The site


class SiteBuilder:
    """Takes parsed pages one by one and keeps little of each, so that a large site need not be held whole."""

    def __init__(self, layout: Layout, files: Iterable[str], before: Placements | None = None) -> None:
        self._layout = layout
        self._files = frozenset(files)
        self._before = before
        self.placements: Placements | None = None
        """Those of the site that was built."""
        self._placed: list[Placed] = []
        self._absolute: dict[str, None] = {}

    def add(self, page: ParsedPage) -> None:
        self.vote(page)
        self.add_placed(placed(page))

    def add_placed(self, page: Placed) -> None:
        self._placed.append(page)

    def vote(self, page: ParsedPage) -> None:
        """A page's links show under which prefix the site has its pages."""
        if len(self._absolute) < MAX_VOTES and len(self._layout.bases) > 1:
            self._absolute.update((_url_key(link.href), None) for link in page.links[:20] if link.href.startswith("/"))

    def base(self) -> str:
        """The URL prefix that most links agree on."""
        return max(self._layout.bases, key=self._votes) if self._absolute else self._layout.bases[0]

    def site(self, base: str | None = None) -> Site:
        if base is None:
            base = self.base()
        pages: dict[str, SitePage] = {}
        paths: dict[str, str] = {}
        arrangement = arrange(self._layout, {each.path: each.front_matter for each in self._placed})
        redirects: list[tuple[str, str]] = list(self._layout.redirects.items())
        before, by_path = self._known(base), dict[str, Placement]()
        for each in self._placed:
            entry = arrangement.entries.get(each.path)
            made = before.get(each.path)
            if made is None or made.placed is not each or made.entry != entry:
                made = self._place(each, entry, base)
            by_path[each.path], pages[each.path] = made, made.page
            for address in made.addresses:
                paths.setdefault(address, each.path)
            redirects.extend(made.redirects)
        self.placements = Placements(self._layout, base, by_path)
        for source, destination in redirects:
            target = paths.get(_url_key(destination.partition("#")[0]))
            if target is not None:
                paths.setdefault(_url_key(source), target)
        return Site(self._layout.kind, self._layout.docs_folder, pages, paths, self._files, arrangement.missing)

    def _known(self, base: str) -> Mapping[str, Placement]:
        """Return the places of pages before, where the same rules gave them."""
        before = self._before
        if before is None or before.base != base:
            return {}
        return before.by_path if before.layout is self._layout or before.layout == self._layout else {}

    def _place(self, placed: Placed, entry: NavEntry | None, base: str) -> Placement:
        page = site_page(self._layout, placed, base, entry)
        addresses = (page.url, page.url.removeprefix(self._layout.link_prefix))
        every = dict.fromkeys(one for each in addresses for one in (each, each.removesuffix(".html")))
        redirects = tuple(
            (alias if alias.startswith("/") else f"{dirname(page.url)}/{alias}", page.url) for alias in placed.aliases
        )
        return Placement(placed, entry, page, tuple(map(_url_key, every)), redirects)

    def _votes(self, base: str) -> int:
        urls = {_url_key(self._layout.resolve_url(each.path, each.front_matter, base)[0]) for each in self._placed}
        return sum(url in urls for url in self._absolute)


def site_page(layout: Layout, page: Placed, base: str, entry: NavEntry | None = None) -> SitePage:
    """Return a page at its place, under the site's URL prefix. ``entry``: its place in the navigation."""
    url, version, language = layout.resolve_url(page.path, page.front_matter, base)
    entry = entry or NavEntry(-1)
    titles = (
        (entry.title, page.title) if layout.kind == "mkdocs" or not page.has_own_title else (page.title, entry.title)
    )
    if layout.kind in ("vitepress", "sphinx", "nextra"):  # their lists have names of their own, which are no titles
        titles = (page.title, entry.title)
    title = next(filter(None, titles), "") or _title_of(page.path)
    documents = layout.document_set(page.path)
    version = text_field(page.front_matter, "version") or entry.version or version
    language = text_field(page.front_matter, "language", "lang", "locale") or entry.language or language
    return SitePage(
        path=page.path,
        url=url,
        title=title,
        anchors=page.anchors,
        version=version,
        language=language,
        tags=list_field(page.front_matter, "tag", "tags") or entry.tags,
        groups=list_field(page.front_matter, "groups") or entry.groups,
        order=entry.order,
        is_default=entry.is_default and (documents is None or documents.is_default),
        text_language=text_language(page.text_language, language, layout.default_language),
        copy_key=copy_key(layout, page.path, language, version, base),
    )


def place_pages(
    layout: Layout, base: str, pages: Iterable[Placed], every: Callable[[], Iterable[Placed]]
) -> Iterator[SitePage]:
    """Yield some pages at their places. ``every`` gives all pages of the site, where those decide the places."""
    entries = layout.entries
    if depends_on_pages(layout):
        entries = arrange(layout, {each.path: each.front_matter for each in every()}).entries
    for page in pages:
        yield site_page(layout, page, base, entries.get(page.path))


def keeps_place(layout: Layout, base: str, before: Placed | None, now: Placed | None) -> bool:
    """Return whether a page has the addresses that it had, and no other page another place in the navigation."""
    if before is None or now is None:
        return before is now
    if depends_on_pages(layout) and before.front_matter != now.front_matter:
        return False
    here, there = (site_page(layout, page, base) for page in (before, now))
    return here.url == there.url and before.aliases == now.aliases


def make_site(layout: Layout, pages: Iterable[ParsedPage], files: Iterable[str]) -> Site:
    builder = SiteBuilder(layout, files)
    for page in pages:
        if not layout.is_hidden(page.front_matter):
            builder.add(page)
    return builder.site()


def _title_of(path: str) -> str:
    folder, _, file = path.rpartition("/")
    name = file.rpartition(".")[0]
    if name.lower() in INDEX_NAMES:
        name = folder.rpartition("/")[2] or name
    words = re.sub(r"[-_]+", " ", NUMBER.sub("", name)).strip()
    return words[:1].upper() + words[1:]


def _url_key(url: str) -> str:
    return clean_url(unquote(url.partition("#")[0].partition("?")[0])).casefold()


# Links


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_INDEX_TAIL = re.compile(r"(?:^|/)(?:index|_index|readme)$", re.IGNORECASE)


def is_external(href: str) -> bool:
    """It leaves the site: another scheme or host."""
    return _SCHEME.match(href.strip()) is not None


def resolve_link(from_path: str, href: str, site: Site) -> str | None:
    """The path of the page that a link on ``from_path`` leads to; None when it leads to none, or off the site.

    Read as sites do: from the page's file (``../a/b.md``), from its URL (``../b``), from the site's root
    (``/a/b``), with or without ``.md``, ``.mdx``, ``.html`` or a trailing slash. Query and anchor play no part; an
    anchor alone is the page itself.
    """
    href = href.strip()
    if is_external(href):
        return None
    target = unquote(href.partition("#")[0].partition("?")[0])
    if not target:
        return from_path if from_path in site.pages else None
    for candidate in _as_files(from_path, target, site):
        if candidate in site.pages:
            return candidate
    for url in _as_urls(from_path, target, site):
        path = site.paths.get(_url_key(url))
        if path is not None:
            return path
    return None


def link_problem(from_path: str, href: str, site: Site) -> str | None:
    """What is wrong with a link, as a sentence; None when it is sound or leads off the site.

    Anchors are compared without punctuation, since generators differ there.
    """
    href = href.strip()
    if is_external(href) or "{" in href or "<" in href:
        return None
    target, _, anchor = href.partition("#")
    path = resolve_link(from_path, href, site)
    if path is None:
        return None if _is_asset(from_path, target, site) else f"No page is at {target!r}."
    anchor = unquote(anchor)
    if not anchor or anchor.casefold() in ("top", "_top") or anchor.startswith((":~:", "/", "!")):
        return None
    known = site.pages[path].anchors
    if anchor in known or _loosely(anchor) in {_loosely(name) for name in known}:
        return None
    return f"{path} has no heading {anchor!r}."


def _loosely(anchor: str) -> str:
    return re.sub(r"[\W_]+", "", anchor.casefold())


def _is_asset(from_path: str, target: str, site: Site) -> bool:
    """A file that is no page; one with a suffix of its own may lie where the archive does not reach."""
    suffix = target.rpartition("/")[2].partition("?")[0].rpartition(".")[2].lower()
    if "." not in target.rpartition("/")[2] or f".{suffix}" in MARKDOWN_SUFFIXES:
        return any(candidate in site.files for candidate in _as_files(from_path, target, site))
    return suffix not in ("html", "htm")


def _as_files(from_path: str, target: str, site: Site) -> Iterable[str]:
    folders = ["", site.docs_folder] if target.startswith("/") else [dirname(from_path)]
    if target.startswith("/"):
        folders.append(dirname(site.docs_folder))
    for folder in dict.fromkeys(folders):
        joined = normpath(f"{folder}/{target.lstrip('/')}" if folder else target.lstrip("/"))
        if joined.startswith("../") or joined == "..":
            continue
        joined = "" if joined == "." else joined
        yield joined
        for suffix in MARKDOWN_SUFFIXES:
            yield joined + suffix
        for suffix in MARKDOWN_SUFFIXES:
            for name in ("index", "_index", "README", "readme"):
                yield f"{joined}/{name}{suffix}" if joined else f"{name}{suffix}"


def _as_urls(from_path: str, target: str, site: Site) -> Iterable[str]:
    bare = without_suffix(target)
    bare = _INDEX_TAIL.sub("", bare) or "/"
    if target.startswith("/"):
        yield target
        yield bare
        return
    page = site.pages.get(from_path)
    if page is None:
        return
    for base in (dirname(page.url), page.url):  # without and with a slash at the end of the page's own address
        for each in (target, bare):
            yield normpath(f"{base}/{each}")
