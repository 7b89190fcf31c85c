"""VitePress: ``.vitepress/config.ts`` and the files that it imports, which are read and never run
(vitepress.dev/reference/site-config). Every Markdown file below ``srcDir`` is a page but those of ``srcExclude`` and
routes with a parameter (``[name].md``), whose pages a program makes. ``rewrites`` give pages the paths of others.
"""

from collections.abc import Iterator, Mapping
from posixpath import normpath

from service.markup.dialects import Dialect
from service.retrieval.site.generators.vitepress_rewrites import rewritten
from service.retrieval.site.ignore_files import IgnoreRules, ignore_rules
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
from service.retrieval.site.script import exported

FOLDER = ".vitepress"
MAX_ITEMS, MAX_LANGUAGES = 50_000, 200
"""Items of all sidebars and menus; languages."""


def vitepress(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    top = config[: config.rindex(f"{FOLDER}/")].rstrip("/")
    if config.partition(f"{FOLDER}/")[2].startswith("config.") and any(
        name in files for name in _instead_of(join_path(top, FOLDER))
    ):
        return None  # the folder's index is read before it
    found = exported(config, lambda name: read_text(read, name) if name in files else None)
    settings: Mapping[str, object] = found if isinstance(found, dict) else {}
    source = normpath(join_path(top, normpath(_text(settings, "srcDir") or ".")))
    root = "" if source == "." else source
    if source.startswith(".."):
        return None
    base = clean_url(_text(settings, "base")).rstrip("/")
    locales = settings.get("locales")
    languages = locales if isinstance(locales, dict) else {}
    moved = rewritten(settings.get("rewrites"), root, files)
    entries = _Entries(root, files, moved)
    entries.add(settings.get("themeConfig"))
    for locale in list(languages.values())[:MAX_LANGUAGES]:
        entries.add(locale.get("themeConfig") if isinstance(locale, dict) else None)
    return Layout(
        "vitepress", docs_folder, root, Dialect(slugs="vitepress", vue=True), (base,), entries.found,
        ignored=_excluded(settings.get("srcExclude"), config), mounts=tuple(_languages(languages, root, base)),
        default_language=_text(settings, "lang"), html_suffix=settings.get("cleanUrls") is not True,
        moved=moved, link_prefix=base,
    )  # fmt: skip


def _instead_of(folder: str) -> Iterator[str]:
    for suffix in ("js", "ts", "mjs", "mts"):
        yield join_path(folder, f"config/index.{suffix}")


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    return value.encode("utf-8", "replace").decode()[:MAX_FACT] if isinstance(value, str) else ""


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
            yield join_path(root, name), f"{base}/{name.strip('/')}", "", _text(locale, "lang") or name.strip("/")


class _Entries:
    """The pages in the order of the sidebars, then those that only the menu names; the home page is first."""

    def __init__(self, root: str, files: frozenset[str], moved: Mapping[str, str]) -> None:
        self._root, self._files = root, files
        self._moved = {path: original for original, path in moved.items()}
        self._left = MAX_ITEMS
        self.found: dict[str, NavEntry] = {}
        self._add("/", "")

    def add(self, theme: object) -> None:
        if isinstance(theme, dict):
            sidebar = theme.get("sidebar")
            for group in sidebar.values() if isinstance(sidebar, dict) else (sidebar,):
                if isinstance(group, dict):
                    self._items(group.get("items"), _text(group, "base"), 0)
                else:
                    self._items(group, "", 0)
            self._items(theme.get("nav"), "", 0)

    def _items(self, items: object, base: str, depth: int) -> None:
        for item in items if isinstance(items, list) and depth < 20 else ():
            self._left -= 1
            if self._left < 0:
                return
            if isinstance(item, dict):
                own = _text(item, "base") or base
                if _text(item, "link"):
                    self._add(own + _text(item, "link"), _text(item, "text"))
                self._items(item.get("items"), own, depth + 1)

    def _add(self, link: str, title: str) -> None:
        path = self._page(link)
        if path is not None and path not in self.found:
            self.found[path] = NavEntry(len(self.found), title)

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
