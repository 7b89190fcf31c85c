"""The files outside the documentation folder that its pages include, such as a changelog at the root of the repository.

A job may change their text, as far as their names allow it, since readers see it on the site. Programs that pages show
stay as they are. All is taken from the base commit: no job can make a file writable by including it.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping
from posixpath import dirname, join, normpath

from service.agent.guards.paths import checked_writable, is_hidden, is_navigation_above, is_under
from service.agent.guards.refused import Refused
from service.agent.tree import Tree
from service.markup.pages import is_page

PROSE = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc")
MAX_CANDIDATES = 5_000
"""Files outside the documentation that are looked for; a repository with more has pages of other sites there."""
MAX_LINE = 1_000
_SIGNS = re.compile(r"include|8<-|\{!|\bimport\b|readfile|<<<|snippet", re.IGNORECASE)
"""In a line that includes a file, whichever generator reads it."""
_BETWEEN = re.compile(r"[\s\"'`<>()\[\]{}=|#!;,]+|:(?=[\s\d:]|$)|--+>?")


async def included_files(tree: Tree) -> frozenset[str]:
    """Return their paths, which are worked out once for a commit."""
    files = tree.files
    if files.included is None:
        candidates = await asyncio.to_thread(_candidates, tree)
        found: set[str] = set()
        if candidates:
            pages = [path for path in tree.readable_base_paths() if is_under(path, tree.docs_folder) and is_page(path)]
            async for texts in tree.base_texts(pages):
                found |= await asyncio.to_thread(_named, texts, candidates, tree.docs_folder)
        files.included = frozenset(found)
    return files.included


def _candidates(tree: Tree) -> frozenset[str]:
    docs = tree.docs_folder
    found = [
        path
        for path in tree.readable_base_paths()
        if docs and path.lower().endswith(PROSE) and not is_under(path, docs) and _may_be_written(path, docs)
    ]
    return frozenset(found) if len(found) <= MAX_CANDIDATES else frozenset()


def _may_be_written(path: str, docs_folder: str) -> bool:
    if is_hidden(path) or is_navigation_above(path, docs_folder):
        return False
    try:
        checked_writable(path)
    except Refused:
        return False
    return True


def _named(texts: Mapping[str, str], candidates: frozenset[str], docs_folder: str) -> set[str]:
    names = {path.rpartition("/")[2] for path in candidates}
    return {
        found
        for page, text in texts.items()
        if _SIGNS.search(text) and any(name in text for name in names)
        for line in _including(text)
        for word in _BETWEEN.split(line[:MAX_LINE])
        if word.lower().endswith(PROSE)
        for found in _meant(word, page, docs_folder)
        if found in candidates
    }


def _including(text: str) -> Iterator[str]:
    """Yield the lines that may include a file: those with a sign, and the names of files between two scissors."""
    in_block = False
    for line in text.splitlines():
        is_sign = _SIGNS.search(line) is not None
        in_block = in_block != (line.strip().strip("-") == "8<")
        if is_sign or in_block:
            yield line


def _meant(word: str, page: str, docs_folder: str) -> Iterator[str]:
    """Yield the paths that a name can mean: from the page, from a folder above the documentation, or from the root."""
    name = word.removeprefix("@site/").removeprefix("@/").lstrip("/")
    yield normpath(join(dirname(page), name))
    folder = docs_folder
    while True:
        yield normpath(join(folder, name))
        if not folder:
            return
        folder = folder.rpartition("/")[0]
