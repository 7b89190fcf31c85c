"""Nextra: pages below ``content`` or ``pages``, and ``page.mdx`` below ``app``, in the order of ``_meta`` files: what
they name, then the others by name, an ``index`` first (nextra.site/docs/file-conventions; nextra/src/server/page-map).

A language is a folder of ``content``, or stands before the suffix of a page (``page.de.mdx``, until version 3).
"""

import json
import re
from collections.abc import Mapping
from posixpath import dirname

from msgspec import Struct

from service.markup.dialects.dialect import Dialect
from service.markup.pages import is_markdown
from service.retrieval.site.ignore_files import ignore_rules
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

MAX_META, MAX_LANGUAGES, MAX_DEPTH = 2_000, 200, 40
_META = re.compile(r"_meta(?:\.([A-Za-z]{2}(?:-[A-Za-z]{2,4})?))?\.(?:[jt]sx?|json)")
_GLOBAL = re.compile(r"_meta\.global\.[jt]sx?")
_NAMES = re.compile(r"nextra", re.IGNORECASE)
_TOLD = re.compile(r"\bbasePath\s*:\s*['\"]([^'\"\n]{0,200})['\"]")
_LOCALES = re.compile(r"\blocales\s*:\s*\[([^\]]{0,5000})\]")
_DEFAULT = re.compile(r"\bdefaultLocale\s*:\s*['\"]([\w-]{1,50})['\"]")
_BASE = re.compile(r"\bcontentDirBasePath\s*:\s*['\"]([^'\"\n]{0,200})['\"]")
_ASIDE = re.compile(r"\(.*\)")
"""Folders of ``app`` that addresses leave out."""


class _Named(Struct, frozen=True):
    title: str
    is_hidden: bool = False


def nextra(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    text = read_text(read, config)
    if not _NAMES.search(text):
        return None
    root = dirname(config)
    told = _TOLD.search(text)  # of several functions around it, the first argument is not always the one
    base = clean_url(told[1] if told is not None else "").rstrip("/")
    folder = next(
        (
            one
            for part in ("content", "src/content", "pages", "src/pages")
            if _holds(one := join_path(root, part), files)
        ),
        "",
    )
    app = next((one for part in ("app", "src/app") if _holds(one := join_path(root, part), files)), "")
    if not folder and not app:
        return None
    below = _BASE.search(text)
    prefix = base + (clean_url(below[1]).rstrip("/") if below is not None else "")
    listed, first = _LOCALES.search(text), _DEFAULT.search(text)
    languages = re.findall(r"['\"]([\w-]{1,50})['\"]", listed[1])[:MAX_LANGUAGES] if listed is not None else []
    default = first[1] if first is not None else ""
    in_folders = [name for name in languages if _holds(join_path(folder, name), files)] if folder else []
    mounts: list[Mount] = [(join_path(folder, name), f"{prefix}/{name}", "", name) for name in in_folders]
    moved = {}
    if app:
        moved = {path: _routed(path, app) for path in files if _is_app_page(path, app)}
        if folder:
            mounts.append((app, base, "", ""))
    if folder and not in_folders:
        mounts.append((folder, prefix, "", ""))
    tree = _Tree(files, read, moved)
    at = prefix[len(base) :].strip("/")
    for name in in_folders:
        tree.add(join_path(folder, name), "", at)
    if not in_folders:
        tree.add(folder or app, app if folder else "", at)
    return Layout(
        "nextra", docs_folder, folder or app, Dialect(mdx=True), (prefix if folder else base,), tree.entries,
        ignored=ignore_rules(("_*", "404.*", "500.*"), file=config), mounts=tuple(mounts), default_language=default,
        moved=moved, link_prefix=base, language_suffixes=() if in_folders else tuple(languages),
        missing_entries=tuple(tree.missing[:MAX_FACT]),
        links=LinkRules(reads_files=True, served=(join_path(root, "public"),)),
    )  # fmt: skip


def _holds(folder: str, files: frozenset[str]) -> bool:
    return any(within(name, folder) and is_markdown(name) for name in files)


def _is_app_page(path: str, app: str) -> bool:
    if not within(path, app) or path.rpartition("/")[2] not in ("page.md", "page.mdx"):
        return False
    return not any(part.startswith(("_", "[")) for part in path[len(app) :].split("/"))


def _routed(path: str, app: str) -> str:
    """Return the path that a page of ``app`` would have if folders were named by addresses alone."""
    folders = [part for part in path[len(app) :].strip("/").split("/")[:-1] if not _ASIDE.fullmatch(part)]
    return join_path(app, *folders, "index.mdx")


class _Tree:
    """The pages in the order of their folders."""

    def __init__(self, files: frozenset[str], read: Read, moved: Mapping[str, str]) -> None:
        self._files, self._read, self._moved = files, read, moved
        self._meta: dict[str, dict[str, _Named]] = {}
        for name in sorted(files):
            file = name.rpartition("/")[2]
            if file.startswith("_meta.") and len(self._meta) < MAX_META:
                match = _META.fullmatch(file)
                value = self._value(name) if match is not None or _GLOBAL.fullmatch(file) else None
                if isinstance(value, dict):
                    self._add_meta(dirname(name), value, nested=_GLOBAL.fullmatch(file) is not None)
        self.entries: dict[str, NavEntry] = {}
        self.missing: list[str] = []

    def _value(self, name: str) -> object:
        text = read_text(self._read, name)
        if name.endswith(".json"):
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                return None
        return exported(name, lambda other: read_text(self._read, other) if other in self._files else None)

    def _add_meta(self, folder: str, value: Mapping[str, object], *, nested: bool, depth: int = 0) -> None:
        named = self._meta.setdefault(folder, {})
        for key, item in value.items():
            options: Mapping[str, object] = item if isinstance(item, dict) else {}
            title = item if isinstance(item, str) else text_setting(options, "title")
            if key == "*" or options.get("type") == "separator" or "href" in options:
                continue
            named.setdefault(key, _Named(title[:MAX_FACT], is_hidden=options.get("display") == "hidden"))
            below = options.get("items")
            if nested and isinstance(below, dict) and depth < MAX_DEPTH:
                self._add_meta(join_path(folder, key), below, nested=True, depth=depth + 1)

    def add(self, top: str, beside: str, at: str) -> None:
        """Add the pages of a folder; ``beside`` is one whose pages stand among them, ``at``: where in that."""
        lead = at if beside else ""
        paths: dict[tuple[str, ...], str] = {}
        for path in sorted(self._files):
            if path in self._moved or (is_markdown(path) and not path.rpartition("/")[2].startswith("_")):
                place = self._moved.get(path, path)
                if within(place, top):
                    paths.setdefault(_parts(join_path(lead, place[len(top) :])), path)
                elif beside and within(place, beside):
                    paths.setdefault(_parts(place[len(beside) :]), path)
        named: dict[str, dict[str, _Named]] = {}
        for folder, found in self._meta.items():
            if within(folder, top):
                named.setdefault(join_path(lead, folder[len(top) :]), {}).update(found)
            elif beside and within(folder, beside):
                named.setdefault(folder[len(beside) :].strip("/"), {}).update(found)
        self._folder(paths, named, "", 0)

    def _folder(
        self, paths: Mapping[tuple[str, ...], str], named: Mapping[str, dict[str, _Named]], at: str, depth: int
    ) -> None:
        """Add the pages of a folder, given by their addresses below it."""
        names: dict[str, dict[tuple[str, ...], str]] = {}
        for parts, path in paths.items():
            names.setdefault(parts[0] if parts else "index", {})[parts[1:]] = path
        own = named.get(at, {})
        first = [] if "index" in own else ["index"]
        rest = sorted(name for name in names if name not in own and name not in first)
        for name in [*first, *own, *rest]:
            about = own.get(name, _Named(""))
            if name not in names:
                if name in own:
                    self.missing.append(join_path(at, name))
            elif names[name].keys() == {()}:
                if not about.is_hidden:
                    self.entries.setdefault(names[name][()], NavEntry(len(self.entries), about.title))
            elif not about.is_hidden and depth < MAX_DEPTH:
                self._folder(names[name], named, join_path(at, name), depth + 1)


def _parts(inside: str) -> tuple[str, ...]:
    """Return the parts of a page's address below its folder."""
    parts = inside.strip("/").rpartition(".")[0].split("/")
    return tuple(parts[:-1] if parts[-1] == "index" else parts)
