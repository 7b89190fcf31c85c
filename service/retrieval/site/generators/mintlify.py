"""Mintlify's docs.json (mint.json before). A page's URL is its path; ``snippets`` and the default ignores are no pages
(mintlify.com/docs/organize/mintignore).
"""

import json
from collections.abc import Mapping
from posixpath import dirname

from msgspec.structs import replace

from service.markup.dialects import Dialect
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import MAX_FACT, Layout, NavEntry, Read, join_path, read_text

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
    entries = _entries(settings.get("navigation"), root, files)
    redirects = {}
    rules = settings.get("redirects")
    for rule in rules if isinstance(rules, list) else ():
        if isinstance(rule, dict) and isinstance(rule.get("source"), str) and isinstance(rule.get("destination"), str):
            redirects[rule["source"]] = rule["destination"]
    file = join_path(root, ".mintignore")
    ignored = ignore_rules(read_text(read, file).splitlines(), file=file)
    language = next((entry.language for entry in entries.values() if entry.is_default and entry.language), "")
    return Layout(
        "mintlify", docs_folder, root, Dialect(mdx=True), ("",), entries, redirects, ignored, default_language=language
    )


def _entries(navigation: object, root: str, files: frozenset[str]) -> dict[str, NavEntry]:
    """Return the pages in the order of the navigation: groups, tabs, versions and languages nest in any order there;
    strings are pages. What is said of a group holds for all that is in it.
    """
    entries: dict[str, NavEntry] = {}
    stack: list[tuple[object, NavEntry]] = [(navigation, NavEntry(0))]
    for _ in range(200_000):
        if not stack:
            break
        node, told = stack.pop()
        if isinstance(node, str):
            path = _page_named(node, root, files)
            if path is not None and path not in entries:
                entries[path] = replace(told, order=len(entries))
        elif isinstance(node, list):
            stack.extend(reversed(_ranked(node, told)))
        elif isinstance(node, dict):
            readers = _readers(node, root, files)
            children = [node[key] for key in _NAVIGATION_KEYS if key in node and not (key == "groups" and readers)]
            told = _described(node, told, readers)
            stack.extend((child, told) for child in reversed(children))
    return entries


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
