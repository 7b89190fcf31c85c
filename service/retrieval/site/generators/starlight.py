"""Astro's Starlight: pages below ``src/content/docs``, in the order of the sidebar of its integration, or of names and
``sidebar.order`` (starlight.astro.build/reference/configuration, packages/starlight/utils/navigation.ts).

A page's address is its path as GitHub makes anchors, or the whole of ``slug``. Languages are folders; one that
is called ``root`` has none.
"""

import re
from collections.abc import Iterator, Mapping
from posixpath import dirname, normpath

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import FrontMatter
from service.retrieval.site.documents import DocumentSet, SidebarItem
from service.retrieval.site.javascript.script import exported
from service.retrieval.site.layout import MAX_FACT, Layout, NavEntry, Read, clean_url, join_path, read_text, within
from service.retrieval.site.link_rules import Fallback, LinkRules
from service.retrieval.site.settings import text_setting

MAX_LANGUAGES, MAX_DEPTH, MAX_ITEMS = 200, 40, 20_000
_MARKS = frozenset(("sidebar", "locales", "defaultLocale", "social", "editLink", "customCss", "logo", "title"))
"""Options of Starlight; other integrations have few of them."""
_LAST = float("inf")
_ROOT = "root"


def starlight(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    if "starlight" not in read_text(read, config):
        return None
    found = exported(config, lambda name: read_text(read, name) if name in files else None)
    settings: Mapping[str, object] = found if isinstance(found, dict) else {}
    options = _options(settings.get("integrations"))
    base = clean_url(text_setting(settings, "base")).rstrip("/")
    source = normpath(text_setting(settings, "srcDir") or "src")
    folder = join_path(dirname(config), source, "content/docs")
    if source.startswith("..") or not any(within(name, folder) for name in files):
        return None
    given = options.get("sidebar")
    sidebars = tuple(_items(given, 0)) if isinstance(given, list) else None
    default = text_setting(options, "defaultLocale")
    sets: list[DocumentSet] = []
    main = DocumentSet(folder, base, base, language="", style="starlight", sidebars=sidebars)
    locales = options.get("locales")
    for name, locale in list(locales.items())[:MAX_LANGUAGES] if isinstance(locales, dict) else ():
        language = (text_setting(locale, "lang") if isinstance(locale, dict) else "") or name
        if name == _ROOT:
            main = _in_language(main, language)
        elif name.strip("/"):
            sets.append(
                DocumentSet(
                    join_path(folder, name),
                    f"{base}/{name}",
                    base,
                    language=language,
                    original=folder,
                    style="starlight",
                    sidebars=sidebars,
                )
            )
    shown = next((each for each in sets if default and each.prefix == f"{base}/{default}"), main)
    return Layout(
        "starlight", docs_folder, folder, Dialect(), (base,),
        mounts=tuple((each.folder, each.prefix, "", each.language) for each in (*sets, main)),
        default_language=main.language or next((each.language for each in sets if each.prefix.endswith(default)), ""),
        documents=(*sets, main), links=_link_rules(settings, options, config, sets, shown, files, read),
        redirects=dict(_redirects(settings, base)),
    )  # fmt: skip


_PLAIN_INTEGRATIONS = re.compile(
    r"astro/|node:|\.|(?:fs|path|url|vite)$|@astrojs/(?:starlight|sitemap|mdx|react|preact|vue|svelte|solid-js|alpinejs|partytown|tailwind|markdoc|check|db|node|"
    r"ts-plugin|lit)(?:/|$)"
)
"""Modules that make no addresses; others may."""
_IMPORTED = re.compile(r"^import\b[^'\"\n]*['\"]([^'\"\n]{1,200})['\"]", re.MULTILINE)
_ROUTE = re.compile(r"\.(?:astro|mdx?|html|[jt]s)$")


def _link_rules(
    settings: Mapping[str, object], options: Mapping[str, object], config: str, sets: list[DocumentSet],
    shown: DocumentSet, files: frozenset[str], read: Read,
) -> LinkRules:  # fmt: skip
    """Return how links are read: as browsers do, from addresses with a slash at the end, under the ``base`` of the site
    (docs.astro.build/en/reference/configuration-reference/#base). A page that a translation lacks is shown in the
    language of the site (starlight.astro.build/guides/i18n/#fallback-content): that of ``shown``.
    """
    base, top = shown.route, join_path(dirname(config), normpath(text_setting(settings, "srcDir") or "src"))
    routes = [name[len(top) + 6 :] for name in files if within(name, f"{top}/pages") and _ROUTE.search(name)]
    is_open = any("[" in name for name in routes) or not settings or bool(options.get("plugins"))
    is_open = is_open or not all(map(_PLAIN_INTEGRATIONS.match, _IMPORTED.findall(read_text(read, config))))
    return LinkRules(
        relative="address", slash=True, has_all_addresses=not is_open, knows_root=True, base=base,
        programs=frozenset(map(_route_address, routes)),
        served=(join_path(dirname(config), "public"),),
        fallbacks=tuple(
            Fallback(each.folder, each.prefix, shown.folder, shown.prefix) for each in sets if each is not shown
        ),
    )  # fmt: skip


def _route_address(name: str) -> str:
    return clean_url(re.sub(r"(?:^|/)index$", "", name.rpartition(".")[0])).rstrip("/")


def _redirects(settings: Mapping[str, object], base: str) -> Iterator[tuple[str, str]]:
    rules = settings.get("redirects")
    for source, target in list(rules.items())[:MAX_ITEMS] if isinstance(rules, dict) else ():
        goal = target.get("destination") if isinstance(target, dict) else target
        if isinstance(goal, str):
            yield base + source, goal


def _in_language(own: DocumentSet, language: str) -> DocumentSet:
    return DocumentSet(own.folder, own.prefix, own.route, language=language, style=own.style, sidebars=own.sidebars)


def _options(integrations: object) -> Mapping[str, object]:
    """Return the options of the integration that has most of Starlight's."""
    found = [one for one in integrations if isinstance(one, dict)] if isinstance(integrations, list) else []
    return max(found, key=lambda one: len(_MARKS & one.keys()), default={})


def _items(value: object, depth: int) -> Iterator[SidebarItem]:
    for item in value[:MAX_ITEMS] if isinstance(value, list) and depth < MAX_DEPTH else ():
        if isinstance(item, str):
            yield SidebarItem(_slug(item))
        elif isinstance(item, dict):
            generated = item.get("autogenerate")
            if isinstance(item.get("slug"), str):
                yield SidebarItem(_slug(text_setting(item, "slug")))
            elif isinstance(item.get("link"), str) and "://" not in text_setting(item, "link"):
                yield SidebarItem(_slug(text_setting(item, "link").partition("#")[0]), is_reference=True)
            elif isinstance(generated, dict):
                yield SidebarItem(folder=text_setting(generated, "directory").strip("/"))
            elif isinstance(item.get("items"), list):
                yield SidebarItem(items=tuple(_items(item["items"], depth + 1)))


def _slug(text: str) -> str:
    return re.sub(r"(?:^|/)index$", "", text.strip("/")) or "index"


def arranged_by_starlight(layout: Layout, pages: Mapping[str, FrontMatter]) -> tuple[dict[str, NavEntry], list[str]]:
    """Return the places of the pages, and the slugs that the sidebar names and no page has."""
    by_folder: dict[str, dict[str, str]] = {}
    for path, front_matter in pages.items():
        found = layout.document_set(path)
        if found is not None:
            inside = path[len(found.folder) :].lstrip("/")
            by_folder.setdefault(found.folder, {})[found.id_of(inside, front_matter) or "index"] = path
    entries: dict[str, NavEntry] = {}
    missing: dict[str, None] = {}
    for each in sorted(layout.documents, key=lambda one: one.original):
        slugs = by_folder.get(each.folder, {})
        tree = _Tree(each.folder, slugs, pages)
        for path in tree.paths((SidebarItem(folder=""),) if each.sidebars is None else each.sidebars):
            entries.setdefault(path, NavEntry(len(entries)))
        if not each.original and slugs:
            missing.update(dict.fromkeys(tree.missing))
    return entries, list(missing)[:MAX_FACT]


class _Tree:
    """The pages of one language."""

    def __init__(self, folder: str, slugs: Mapping[str, str], pages: Mapping[str, FrontMatter]) -> None:
        self._folder, self._slugs, self._pages = folder, slugs, pages
        self._slug_of = {path: slug for slug, path in slugs.items()}
        self.missing: list[str] = []

    def paths(self, items: tuple[SidebarItem, ...]) -> Iterator[str]:
        for item in items:
            if item.id and item.id in self._slugs:
                yield self._slugs[item.id]
            elif item.id and not item.is_reference:
                self.missing.append(item.id)
            if item.folder is not None:
                at = join_path(self._folder, item.folder)
                below = {path: path[len(at) + 1 :] for path in self._slugs.values() if path.startswith(f"{at}/")}
                yield from self._generated(below, item.folder, 0)
            yield from self.paths(item.items)

    def _generated(self, below: Mapping[str, str], at: str, depth: int) -> Iterator[str]:
        """Yield pages in the order of a folder, by their paths below it."""
        folders: dict[str, dict[str, str]] = {}
        entries: list[tuple[float, str, str]] = []
        for path, inside in below.items():
            folder, _, rest = inside.partition("/")
            if self._is_hidden(path):
                continue
            if not rest or depth > MAX_DEPTH:
                entries.append((self._order(path), self._slug_of[path].removesuffix("index"), path))
            else:
                folders.setdefault(folder, {})[path] = rest
        for folder, inner in folders.items():
            order = min(map(self._order, inner))
            entries.append((order, f"{at}/{folder}".strip("/"), folder))
        for _, _, name in sorted(entries, key=lambda entry: (entry[0], entry[1].casefold(), entry[2])):
            if name in folders:
                yield from self._generated(folders[name], f"{at}/{name}".strip("/"), depth + 1)
            else:
                yield name

    def _order(self, path: str) -> float:
        options = self._pages[path].get("sidebar")
        try:
            return float(str(options.get("order"))) if isinstance(options, dict) else _LAST
        except ValueError:
            return _LAST

    def _is_hidden(self, path: str) -> bool:
        options = self._pages[path].get("sidebar")
        return isinstance(options, dict) and str(options.get("hidden")).lower() == "true"
