"""Which files are pages, and where the site shows them.

``detect_layout`` finds the site's generator and answers by its rules; ``make_site`` places pages by them; ``links``
then answers for links. What a configuration does not say (a generator's base path, when it is not in the archive) the
pages' own links decide.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname
from urllib.parse import unquote

from msgspec import Struct

from service.markup.front_matter import list_field, text_field
from service.markup.pages import INDEX_NAMES
from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.site.arrangement import arrange, depends_on_pages
from service.retrieval.site.detection import detect_layout
from service.retrieval.site.layout import MAX_CONFIG_BYTES, MAX_FACT, NUMBER, Kind, Layout, NavEntry, clean_url
from service.retrieval.site.link_rules import UNKNOWN, LinkRules
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
    "keeps_place",
    "make_site",
    "place_pages",
    "placed",
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
    root: str = ""
    """The folder that addresses count from."""
    rules: LinkRules = UNKNOWN
    redirects: frozenset[str] = frozenset()
    """The addresses in ``paths`` that the site's configuration, or its pages, lead on."""

    def is_redirect(self, url: str) -> bool:
        return _url_key(url) in self.redirects

    def path_of(self, url: str) -> str | None:
        """Return the page at an address, as it is without encoding, query and anchor."""
        return self.paths.get(_own_key(url))


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
        for address, (path, _) in self._layout.made_pages.items():
            if path in pages:
                paths.setdefault(_own_key(address), path)
        led_on: set[str] = set()
        for source, destination in redirects:
            target, key = paths.get(_url_key(destination.partition("#")[0])), _url_key(source)
            if target is not None and key not in paths:
                paths[key] = target
                led_on.add(key)
        layout = self._layout
        return Site(
            layout.kind, layout.docs_folder, pages, paths, self._files, arrangement.missing, layout.root, layout.links,
            frozenset(led_on),
        )  # fmt: skip

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
        return Placement(placed, entry, page, tuple(map(_own_key, every)), redirects)

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


def _own_key(url: str) -> str:
    """Return the key of an address that is not encoded: every sign in it is one of the page's name."""
    return clean_url(url).casefold()


def _url_key(url: str) -> str:
    return clean_url(unquote(url.partition("#")[0].partition("?")[0])).casefold()
