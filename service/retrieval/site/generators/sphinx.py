"""Sphinx: ``conf.py`` beside ``index``, toctrees, pages end in ``.html``
(sphinx-doc.org/en/master/usage/configuration).
"""

import re
from collections.abc import Iterator
from posixpath import dirname, normpath

from service.markup.blocks import blocks_of
from service.markup.dialects import Dialect
from service.markup.pages import is_markdown
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import MAX_SCRIPT, Layout, NavEntry, Read, join_path, read_text

_TOCTREE = re.compile(
    r"^([ \t]*)(?:\.\. toctree::|:::\{toctree\})[^\n]*\n"
    r"((?:[ \t]*\n|\1[ \t]+[^\n]*(?:\n|\Z)|[^\s`:.][^\n]*(?:\n|\Z))*)",
    re.MULTILINE,
)
_TOCTREE_LINE = re.compile(r"([^<\n]*)<([^<>\s]+)>|([^:`\s<]\S*)")
MAX_TOCTREE = 20_000
"""Pages."""
_EXCLUDED = re.compile(r"^exclude_patterns\s*=\s*\[([^\]]{0,5000})\]", re.MULTILINE)


def sphinx(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    """``conf.py`` is looked at, not run; the order of pages is that of the toctrees, from the root down."""
    root = dirname(config)
    index = next((name for s in (".rst", ".md") if (name := join_path(root, f"index{s}")) in files), None)
    text = read_text(read, config)[:MAX_SCRIPT]
    if index is None or not re.search(
        r"^(?:extensions|project|html_theme|master_doc|root_doc)\s*=", text, re.MULTILINE
    ):
        return None
    titles = {index: ""}
    order: dict[str, NavEntry] = {}
    stack = [index]
    while stack and len(order) < MAX_TOCTREE:
        page = stack.pop()
        if page in order:
            continue
        order[page] = NavEntry(len(order), titles[page])
        listed: list[str] = []
        for block in toctrees(page, read_text(read, page)[:MAX_SCRIPT]):
            for line in block.splitlines()[:2000]:
                match = _TOCTREE_LINE.fullmatch(line.strip())
                found = _sphinx_page(match[2] or match[3], page, root, files) if match is not None else None
                if match is not None and found is not None and found not in order:
                    titles.setdefault(found, (match[1] or "").rstrip())
                    listed.append(found)
        stack.extend(reversed(listed))
    excluded = _EXCLUDED.search(text)
    patterns = _QUOTED_GLOB.findall(excluded[1]) if excluded is not None else []
    ignored = ignore_rules((*patterns, "_build", "_templates"), file=config)
    return Layout(
        "sphinx", docs_folder, root, Dialect(slugs="docutils"), ("",), order, ignored=ignored, html_suffix=True
    )


def toctrees(path: str, text: str) -> Iterator[str]:
    """Yield the text of each list of pages in a page of Sphinx, one page a line."""
    if is_markdown(path) and "{toctree}" in text:
        yield from (block.text for block in blocks_of(text) if block.info.startswith("{toctree}"))
    yield from (block[2] for block in _TOCTREE.finditer(text))


_QUOTED_GLOB = re.compile(r"['\"]([^'\"\n]{1,300})['\"]")


def _sphinx_page(target: str, page: str, root: str, files: frozenset[str]) -> str | None:
    base = root if target.startswith("/") else dirname(page)
    name = normpath(join_path(base, target))
    return next((path for suffix in ("", ".rst", ".md", ".ipynb") if (path := name + suffix) in files), None)
