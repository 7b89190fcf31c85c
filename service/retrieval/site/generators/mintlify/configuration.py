"""Mintlify's docs.json (mint.json before). A page's URL is its path; ``snippets`` and the default ignores are no pages
(mintlify.com/docs/organize/mintignore).
"""

import json
import re
from collections.abc import Mapping
from posixpath import dirname, normpath

from msgspec.structs import replace

from service.markup.dialects.dialect import Dialect
from service.retrieval.site.generators.mintlify.endpoints import Files, endpoints
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import MAX_FACT, Layout, NavEntry, Read, join_path, read_text
from service.retrieval.site.link_rules import LinkRules

MAX_REFERENCES, MAX_NODES = 100, 200_000
"""Files that the navigation is split into, and parts of it."""
_HIDDEN, _UNSEARCHED = "The navigation hides it.", "The navigation keeps it out of search."
_SHOWN = "shown"
"""Stands for pages that the navigation hides and search finds."""
_NAVIGATION_KEYS = (
    "root", "pages", "groups", "tabs", "anchors", "dropdowns", "products", "menu", "versions", "languages", "global",
)  # fmt: skip


def mintlify(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    try:
        settings = json.loads(read_text(read, config))
    except (ValueError, RecursionError):
        settings = {}
    if not isinstance(settings, dict) or not (
        {"navigation", "theme", "$schema", "name"} & settings.keys() or not settings
    ):
        return None
    navigation = _Navigation(root, files, read)
    navigation.add(config, settings.get("navigation"))
    made = endpoints(
        config, settings.get("navigation"), _NAVIGATION_KEYS, navigation.resolved, Files(root, files, read)
    )
    redirects = {}
    rules = navigation.resolved(config, settings.get("redirects"))[1]
    for rule in rules if isinstance(rules, list) else ():
        if isinstance(rule, dict) and isinstance(rule.get("source"), str) and isinstance(rule.get("destination"), str):
            redirects[rule["source"]] = rule["destination"]
    patterns = tuple((source, goal) for source, goal in redirects.items() if re.search(r":\w|\*", source))
    seo = settings.get("seo")
    every = isinstance(seo, dict) and seo.get("indexing") == "all"
    file = join_path(root, ".mintignore")
    ignored = ignore_rules(read_text(read, file).splitlines(), file=file)
    return Layout(
        "mintlify", docs_folder, root, Dialect(mdx=True), ("",), navigation.entries, redirects, ignored,
        missing_entries=tuple(navigation.missing)[:MAX_FACT],
        hidden_pages={path: why for path, why in navigation.hidden.items() if why == _UNSEARCHED or not every},
        links=LinkRules(
            has_all_addresses=True, knows_root=True, made=made.unknown, patterns=patterns, served=(root,)
        ),
        made_pages=made.pages,
    )  # fmt: skip


class _Navigation:
    """The pages in the order of the navigation: groups, tabs, versions and languages nest in any order there; strings
    are pages, ``$ref`` names another file. What is said of a group holds for all that is in it.
    """

    def __init__(self, root: str, files: frozenset[str], read: Read) -> None:
        self._root, self._files, self._read = root, files, read
        self._loaded: dict[str, object] = {}
        self.entries: dict[str, NavEntry] = {}
        self.hidden: dict[str, str] = {}
        """Pages that readers do not find by themselves, and why."""
        self.missing: dict[str, None] = {}

    def add(self, config: str, navigation: object) -> None:
        stack: list[tuple[str, object, NavEntry, str]] = [(config, navigation, NavEntry(0), "")]
        hidden: dict[str, str] = {}
        for _ in range(MAX_NODES):
            if not stack:
                break
            file, node, told, why = stack.pop()
            file, node = self.resolved(file, node)
            if isinstance(node, str):
                self._page(node, told, why, hidden)
            elif isinstance(node, list):
                items = [self.resolved(file, item) for item in node]
                ranked = _ranked([item for _, item in items], told)
                found = [(at, item, each, why) for (at, _), (item, each) in zip(items, ranked, strict=True)]
                stack.extend(reversed(found))
            elif isinstance(node, dict):
                readers = _readers(node, self._root, self._files)
                children = [node[key] for key in _NAVIGATION_KEYS if key in node and not (key == "groups" and readers)]
                told, why = _described(node, told, readers), _hidden(node) or why
                stack.extend((file, child, told, why) for child in reversed(children))
        self.hidden = {path: reason for path, reason in hidden.items() if path not in self.entries and reason != _SHOWN}

    def _page(self, name: str, told: NavEntry, why: str, hidden: dict[str, str]) -> None:
        path = _page_named(name, self._root, self._files)
        if path is None:
            if name.strip() and "://" not in name and " " not in name.strip():
                self.missing.setdefault(name[:MAX_FACT])
        elif why:
            hidden.setdefault(path, why)
        elif path not in self.entries:
            self.entries[path] = replace(told, order=len(self.entries))

    def resolved(self, file: str, node: object) -> tuple[str, object]:
        """Return a node with what its ``$ref`` names, and the file that says it."""
        for _ in range(MAX_REFERENCES):
            target = node.get("$ref") if isinstance(node, dict) else None
            if not isinstance(node, dict) or not isinstance(target, str):
                break
            path = normpath(f"{dirname(file)}/{target}".lstrip("/"))
            if path not in self._loaded and len(self._loaded) < MAX_REFERENCES and path in self._files:
                try:
                    self._loaded[path] = json.loads(read_text(self._read, path))
                except (ValueError, RecursionError):
                    self._loaded[path] = None
            found = self._loaded.get(path)
            beside = {key: value for key, value in node.items() if key != "$ref"}
            file, node = path, {**found, **beside} if isinstance(found, dict) else found
        return file, node


def _hidden(node: Mapping[str, object]) -> str:
    """Return why the pages of a part are not found; empty where it does not say so."""
    if node.get("searchable") is False:
        return _UNSEARCHED
    if node.get("hidden") is True:
        return _SHOWN if node.get("searchable") is True else _HIDDEN
    return ""


def _ranked(items: list[object], told: NavEntry) -> list[tuple[object, NavEntry]]:
    """Return the items of a list; of several versions or languages only one is the default."""
    ranked = [item for item in items if isinstance(item, dict) and ("version" in item or "language" in item)]
    first = next((item for item in ranked if item.get("default") is True), ranked[0] if ranked else None)
    later = {id(item) for item in ranked if item is not first}
    return [(item, replace(told, is_default=False) if id(item) in later else told) for item in items]


def _described(node: Mapping[str, object], told: NavEntry, readers: tuple[str, ...]) -> NavEntry:
    version, language, tag = node.get("version"), node.get("language"), node.get("tag")
    return replace(
        told,
        version=version[:MAX_FACT] if isinstance(version, str) else told.version,
        language=language[:MAX_FACT] if isinstance(language, str) else told.language,
        tags=(tag.strip()[:MAX_FACT],) if isinstance(tag, str) and tag.strip() else told.tags,
        groups=readers or told.groups,
    )


def _page_named(name: str, root: str, files: frozenset[str]) -> str | None:
    return next((p for s in (".mdx", ".md", "") if (p := join_path(root, name) + s) in files), None)


def _readers(node: Mapping[str, object], root: str, files: frozenset[str]) -> tuple[str, ...]:
    listed = node.get("groups")
    words = [word.strip()[:MAX_FACT] for word in listed if isinstance(word, str)] if isinstance(listed, list) else []
    if (
        not isinstance(listed, list)
        or len(words) < len(listed)
        or any(_page_named(word, root, files) for word in words)
    ):
        return ()
    return tuple(word for word in words[:100] if word)
