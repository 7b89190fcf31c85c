"""VitePress: ``.vitepress/config.ts`` and the files that it imports, which are read and never run
(vitepress.dev/reference/site-config). Every Markdown file below ``srcDir`` is a page but those of ``srcExclude`` and
routes with a parameter (``[name].md``), whose pages a program makes. ``rewrites`` give pages the paths of others.
"""

from collections.abc import Iterator, Mapping
from posixpath import normpath

from service.markup.dialects.dialect import Dialect
from service.retrieval.site.generators.vitepress.rewrites import rewritten
from service.retrieval.site.ignore_files import IgnoreRules, ignore_rules
from service.retrieval.site.javascript.script import exported
from service.retrieval.site.layout import (
    MAX_FACT,
    Layout,
    Mount,
    NavEntry,
    Read,
    clean_url,
    join_path,
    read_text,
    within,
)
from service.retrieval.site.link_rules import LinkRules
from service.retrieval.site.settings import text_setting

FOLDER = ".vitepress"
MAX_ITEMS, MAX_LANGUAGES = 50_000, 200
"""Items of all sidebars and menus; languages."""
MAX_ROUTES, MAX_MISSING = 1_000, 1_000
"""Folders of routes with a parameter; entries that lead nowhere."""
MAX_EXTENDED = 20
"""Configurations that extend each other, and tables within tables of them."""


def vitepress(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    top = config[: config.rindex(f"{FOLDER}/")].rstrip("/")
    if config.partition(f"{FOLDER}/")[2].startswith("config.") and any(
        name in files for name in _instead_of(join_path(top, FOLDER))
    ):
        return None  # the folder's index is read before it
    found = exported(config, lambda name: read_text(read, name) if name in files else None)
    settings: Mapping[str, object] = _extended(found, 0) if isinstance(found, dict) else {}
    source = normpath(join_path(top, normpath(text_setting(settings, "srcDir") or ".")))
    root = "" if source == "." else source
    if source.startswith(".."):
        return None
    base = clean_url(text_setting(settings, "base")).rstrip("/")
    locales = settings.get("locales")
    languages = locales if isinstance(locales, dict) else {}
    moved = rewritten(settings.get("rewrites"), root, files)
    is_known = settings.get("rewrites") is None or isinstance(settings.get("rewrites"), dict)
    has_routes = any("[" in name and within(name, root) for name in files)
    entries = _Entries(root, files, moved)
    entries.add(settings.get("themeConfig"))
    for locale in list(languages.values())[:MAX_LANGUAGES]:
        entries.add(locale.get("themeConfig") if isinstance(locale, dict) else None)
    return Layout(
        "vitepress", docs_folder, root, Dialect(slugs="vitepress", vue=True), (base,), entries.found,
        ignored=_excluded(settings.get("srcExclude"), config), mounts=tuple(_languages(languages, root, base)),
        default_language=text_setting(settings, "lang"), html_suffix=settings.get("cleanUrls") is not True,
        moved=moved, link_prefix=base, missing_entries=tuple(entries.missing) if is_known else (),
        links=LinkRules(  # src/node/markdownToVue.ts: a link without a suffix counts from the file, too
            relative="file", knows_root=True, reads_files=True, served=(join_path(root, "public"),),
            has_all_addresses=is_known and isinstance(found, dict) and not has_routes, has_all_files=not has_routes,
        ),
    )  # fmt: skip


def _extended(settings: Mapping[str, object], depth: int) -> Mapping[str, object]:
    """Return the settings with those that they extend: lists are joined, of other values the nearer one counts."""
    base = settings.get("extends")
    if not isinstance(base, dict) or depth >= MAX_EXTENDED:
        return settings
    return _merged(_extended(base, depth + 1), settings, 0)


def _merged(base: Mapping[str, object], own: Mapping[str, object], depth: int) -> Mapping[str, object]:
    merged = dict(base)
    for key, value in own.items():
        before = merged.get(key)
        if isinstance(before, list) and isinstance(value, list):
            merged[key] = [*before, *value]
        elif isinstance(before, dict) and isinstance(value, dict) and depth < MAX_EXTENDED:
            merged[key] = _merged(before, value, depth + 1)
        elif value is not None:
            merged[key] = value
    return merged


def _instead_of(folder: str) -> Iterator[str]:
    for suffix in ("js", "ts", "mjs", "mts"):
        yield join_path(folder, f"config/index.{suffix}")


def _excluded(patterns: object, config: str) -> IgnoreRules:
    lines = ["/**/dist/"]
    for pattern in patterns[:MAX_FACT] if isinstance(patterns, list) else ():
        if isinstance(pattern, str):
            lines += (each if each.startswith(("**/", "/")) else f"/{each}" for each in _without_braces(pattern))
    return ignore_rules(lines, file=config)


def _without_braces(pattern: str) -> list[str]:
    """Return the patterns that a pattern with ``{a,b}`` stands for; the first such list of it."""
    before, opened, rest = pattern.partition("{")
    inside, closed, after = rest.partition("}")
    return [f"{before}{one}{after}" for one in inside.split(",")[:100]] if opened and closed else [pattern]


def _languages(locales: Mapping[str, object], root: str, base: str) -> Iterator[Mount]:
    for name, locale in list(locales.items())[:MAX_LANGUAGES]:
        if name != "root" and isinstance(locale, dict) and name.strip("/"):
            yield (
                join_path(root, name),
                f"{base}/{name.strip('/')}",
                "",
                text_setting(locale, "lang") or name.strip("/"),
            )


class _Entries:
    """The pages in the order of the sidebars, then those that only the menu names; the home page is first."""

    def __init__(self, root: str, files: frozenset[str], moved: Mapping[str, str]) -> None:
        self._root, self._files = root, files
        self._moved = {path: original for original, path in moved.items()}
        self._left = MAX_ITEMS
        routes = sorted(name.partition("[")[0] for name in files if name.endswith(".md") and "[" in name)
        self._routes = tuple(dict.fromkeys(routes))[:MAX_ROUTES]
        self.found: dict[str, NavEntry] = {}
        self.missing: dict[str, None] = {}
        home = self._page("/")
        if home is not None:
            self.found[home] = NavEntry(0)

    def add(self, theme: object) -> None:
        if isinstance(theme, dict):
            sidebar = theme.get("sidebar")
            for group in sidebar.values() if isinstance(sidebar, dict) else (sidebar,):
                if isinstance(group, dict):
                    self._items(group.get("items"), text_setting(group, "base"), 0)
                else:
                    self._items(group, "", 0)
            self._items(theme.get("nav"), "", 0)

    def _items(self, items: object, base: str, depth: int) -> None:
        for item in items if isinstance(items, list) and depth < 20 else ():
            self._left -= 1
            if self._left < 0:
                return
            if isinstance(item, dict):
                own = text_setting(item, "base") or base
                if text_setting(item, "link"):
                    self._add(own + text_setting(item, "link"), text_setting(item, "text"))
                self._items(item.get("items"), own, depth + 1)

    def _add(self, link: str, title: str) -> None:
        path = self._page(link)
        if path is None and len(self.missing) < MAX_MISSING and self._names_page(link):
            self.missing[link] = None
        if path is not None and path not in self.found:
            self.found[path] = NavEntry(len(self.found), title)

    def _names_page(self, link: str) -> bool:
        """Return whether a link ought to be to a page whose file is known: none of a route, no other file."""
        name = link.partition("#")[0].partition("?")[0]
        last = name.rpartition("/")[2].removesuffix(".html").removesuffix(".md")
        if ":" in link or not name.startswith("/") or "." in last:
            return False
        inside = join_path(self._root, name)
        public = join_path(self._root, "public", name.removesuffix(".html"))
        if f"{public}.html" in self._files or f"{public}/index.html" in self._files:
            return False
        return not any(inside.startswith(route) for route in self._routes)

    def _page(self, link: str) -> str | None:
        if "://" in link:
            return None
        link = link.partition("#")[0].partition("?")[0]
        name = link.strip("/").removesuffix(".html").removesuffix(".md")
        is_folder = not name or link.endswith("/")
        for found in (f"{name}/index", name) if is_folder else (name, f"{name}/index"):
            path = join_path(self._root, f"{found.lstrip('/')}.md")
            original = self._moved.get(path, path)
            if original in self._files and within(original, self._root):
                return original
        return None
