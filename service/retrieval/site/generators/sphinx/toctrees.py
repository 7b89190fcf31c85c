"""The lists of pages in Sphinx: ``toctree`` in reStructuredText and MyST, with its options
(sphinx-doc.org/en/master/usage/restructuredtext/directives.html#directive-toctree), and the one list of a site in
``_toc.yml`` (sphinx-external-toc.readthedocs.io/en/latest/user_guide/sphinx.html).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from posixpath import dirname, normpath
from typing import NamedTuple

from service.markup.blocks import blocks_of
from service.markup.front_matter import load_strings
from service.markup.pages import is_markdown
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import join_path

MAX_LINES = 2_000
"""Limit for one list."""
_RST = re.compile(
    r"^([ \t]*)\.\.[ \t]+toctree::[^\n]*\n((?:[ \t]*\n|\1[ \t]+[^\n]*(?:\n|\Z))*)", re.MULTILINE
)  # fmt: skip
_COLONS = re.compile(r"^([ \t]*)(:{3,})\{toctree\}[^\n]*\n((?:(?!\1\2[ \t]*$)[^\n]*(?:\n|\Z))*)", re.MULTILINE)
_OPTION = re.compile(r":([\w-]+):[ \t]*([^\n]*)")
_ENTRY = re.compile(r"([^<\n]*[^<\s])?[ \t]*<([^<>\n]+)>|(\S[^\n]*)")


EXTERNAL = "_toc.yml"
"""The usual name of a list of all pages."""
_BELOW = ("parts", "subtrees", "chapters", "sections", "entries", "items")
"""Keys of the lists in such a file."""


class Listed(NamedTuple):
    path: str
    title: str
    """That the list gives the page, or nothing."""


def toctrees(path: str, text: str) -> Iterator[str]:
    """Yield the text of each list of pages in a page, options included."""
    if "toctree" not in text:
        return
    if is_markdown(path):
        yield from (block.text for block in blocks_of(text) if block.info.startswith("{toctree}"))
        yield from (match[3] for match in _COLONS.finditer(text))
        for block in blocks_of(text):
            if block.info.startswith("{eval-rst}"):
                yield from (match[2] for match in _RST.finditer(block.text))
    else:
        yield from (match[2] for match in _RST.finditer(text))


def external_pages(text: str, root: str, pages: Collection[str]) -> list[Listed]:
    """Return the pages that a list of all pages names, in its order, the root document first; empty for other YAML."""
    try:
        found = load_strings(text)
    except ValueError:
        return []
    if not isinstance(found, dict) or not isinstance(found.get("root"), str):
        return []
    names = {path.rpartition(".")[0]: path for path in sorted(pages)}
    listed = [_external_page({**found, "file": found["root"]}, root, pages), *_external(found, root, names, pages)]
    unique = {one.path: one for one in reversed(listed) if one is not None}
    return list(unique.values())[::-1]


def _external(
    item: Mapping[str, object], root: str, names: Mapping[str, str], pages: Collection[str]
) -> Iterator[Listed | None]:
    for key in _BELOW:
        below = item.get(key)
        for each in below if isinstance(below, list) else ():
            if not isinstance(each, dict):
                continue
            if isinstance(each.get("glob"), str):
                fits = ignore_rules([f"/{normpath(join_path(root, each['glob']))}"])
                yield from (Listed(path, "") for name, path in names.items() if fits.ignores(name))
            yield _external_page(each, root, pages)
            yield from _external(each, root, names, pages)


def _external_page(item: Mapping[str, object], root: str, pages: Collection[str]) -> Listed | None:
    file, title = item.get("file"), item.get("title")
    if not isinstance(file, str):
        return None
    name = normpath(join_path(root, file))
    path = name if name in pages else _page(name, pages)
    return Listed(path, title if isinstance(title, str) else "") if path is not None else None


def listed_pages(page: str, text: str, root: str, pages: Collection[str]) -> list[Listed]:
    """Return the pages that the lists of one page name, in the order that readers see."""
    names: Mapping[str, str] | None = None
    found: list[Listed] = []
    for block in toctrees(page, text):
        options, entries = _parts(block)
        listed: list[Listed] = []
        for entry in entries:
            match = _ENTRY.fullmatch(entry)
            title, target = ((match[1] or "").strip(), match[2] or match[3]) if match is not None else ("", entry)
            name = normpath(join_path(root if target.startswith("/") else dirname(page), target.strip()))
            if "glob" in options and any(sign in target for sign in "*?["):
                names = names if names is not None else {path.rpartition(".")[0]: path for path in sorted(pages)}
                fits = ignore_rules([f"/{name}"])
                listed += [Listed(path, "") for one, path in names.items() if path != page and fits.ignores(one)]
            elif (path := _page(name, pages)) is not None:
                listed.append(Listed(path, title))
        unique = list({one.path: one for one in reversed(listed)}.values())[::-1]
        found += reversed(unique) if "reversed" in options else unique
    return found


def _parts(block: str) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the options, in lines ``:name: value`` or YAML between ``---``, and the entries."""
    options: dict[str, str] = {}
    entries: list[str] = []
    is_yaml = False
    for line in (line.strip() for line in block.split("\n")[:MAX_LINES]):
        option = _OPTION.fullmatch(line)
        if line == "---" and not entries:
            is_yaml = not is_yaml
        elif is_yaml:
            options[line.partition(":")[0].strip()] = line.partition(":")[2].strip()
        elif option is not None and not entries:
            options[option[1]] = option[2]
        elif line and not line.startswith((".. ", "% ")):
            entries.append(line)
    return options, entries


def _page(name: str, pages: Collection[str]) -> str | None:
    return next((path for suffix in (".rst", ".md", ".ipynb", ".txt", "") if (path := name + suffix) in pages), None)
