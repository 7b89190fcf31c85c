"""MkDocs: ``docs_dir``, ``nav`` (mkdocs.org/user-guide/configuration)."""

import re
from posixpath import dirname, normpath

from service.markup.dialects import Dialect
from service.markup.front_matter import load_strings
from service.markup.slugs import SlugStyle
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import Layout, NavEntry, Read, join_path, read_text


def mkdocs(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    text = read_text(read, config)
    try:
        settings = load_strings(text)
    except ValueError:
        settings = {}
    if not isinstance(settings, dict):
        return None
    docs = join_path(root, normpath(str(settings.get("docs_dir") or "docs")))
    entries: dict[str, NavEntry] = {}
    stack: list[tuple[str, object]] = [("", settings.get("nav"))]
    for _ in range(100_000):
        if not stack:
            break
        title, node = stack.pop()
        if isinstance(node, str):
            path = join_path(docs, node)
            if path in files and path not in entries:
                entries[path] = NavEntry(len(entries), title)
        elif isinstance(node, list):
            stack.extend(("", item) for item in reversed(node))
        elif isinstance(node, dict):
            stack.extend((str(key), value) for key, value in reversed(node.items()))
    excluded = settings.get("exclude_docs")
    ignored = ignore_rules(excluded.splitlines() if isinstance(excluded, str) else (), file=config)
    folders = (root, docs, *(join_path(root, normpath(one)) for one in _BASE_PATH.findall(text)[:10]))
    return Layout(
        "mkdocs", docs_folder, docs, Dialect(slugs=_mkdocs_slugs(text)), ("",), entries, ignored=ignored,
        include_folders=tuple(dict.fromkeys(folders)),
    )  # fmt: skip


_BASE_PATH = re.compile(r"base_path:[ \t]*+(?:\[[ \t]*+)?[\"']?([\w./-]{1,200})")


def _mkdocs_slugs(text: str) -> SlugStyle:
    """Return the style of anchors that the ``toc`` extension is set to."""
    if re.search(r"slugify:\s*!!python/\S{0,200}pymdownx\.slugs", text):
        return "pymdownx"
    return "python-unicode" if re.search(r"slugify:\s*!!python/\S{0,200}slugify_unicode", text) else "python"
