"""Files that name the pages of a site in order: docs.json and mint.json, mkdocs.yml, sidebars.json."""

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from posixpath import dirname, normpath

import yaml
from msgspec import Struct

from service.agent.guards import configurations
from service.markup.front_matter import load_strings
from service.markup.generator_files import NAVIGATION_DATA
from service.markup.pages import PAGE_SUFFIXES, without_suffix

MAX_ENTRIES = 50_000
MAX_FOLDER = 500
"""Characters of the name of a folder."""
MAX_SEARCHES = 200
"""Limit for searches of a whole text, for names that are in it in another order; after that, no name is found."""

_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)(?:"|\\?\Z)', re.DOTALL)

# The keys of docs.json under which pages stand or nest (mintlify.com/docs/organize/navigation).
_NESTING = frozenset(
    {"navigation", "root", "pages", "groups", "tabs", "anchors", "dropdowns", "products", "menu", "versions",
     "languages", "global"}
)  # fmt: skip
_SIDEBAR_NESTING = frozenset({"items", "id"})


class Entry(Struct, frozen=True):
    page: str
    """As the file names it."""
    line: int
    found: str
    """With its quotes, where it has them."""
    files: tuple[str, ...]
    """The paths it may mean; the first that exists is meant."""

    def exists(self, files: Collection[str]) -> bool:
        return any(file in files for file in self.files)

    def renamed(self, path: str, to: str) -> str:
        """``found`` for a page that went from one path to another."""
        base = path.removesuffix(self.page) if path.endswith(self.page) else ""
        suffix = next((s for s in PAGE_SUFFIXES if path.endswith(self.page + s)), "")
        if suffix:
            base = path.removesuffix(self.page + suffix)
            to = without_suffix(to)
        return self.found.replace(self.page, to.removeprefix(base), 1)


def is_navigation(path: str) -> bool:
    return path.rpartition("/")[2] in NAVIGATION_DATA


def root_of_code(path: str) -> str:
    """Return the folder that a sidebar written as a program names pages from."""
    return path.rpartition(".vitepress/")[0].rstrip("/") if configurations.is_vitepress(path) else dirname(path)


def parse_problem(path: str, text: str) -> tuple[int, str] | None:
    """Line and sentence when the file cannot be read as what it is."""
    try:
        value = json.loads(text) if path.endswith(".json") else load_strings(text)
    except json.JSONDecodeError as error:
        return error.lineno, f"It is not JSON: {error.msg}."
    except ValueError as error:
        cause = error.__cause__
        mark = cause.problem_mark if isinstance(cause, yaml.MarkedYAMLError) else None
        return (mark.line + 1 if mark is not None else 1), f"It is {error}."
    except RecursionError:
        return 1, "It is nested too deeply."
    return None if isinstance(value, dict | list) else (1, "It names no pages.")


def entries(path: str, text: str) -> Sequence[Entry]:
    """The pages that the file names; none when it cannot be read."""
    is_json = path.endswith(".json")
    try:
        value = json.loads(text) if is_json else load_strings(text)
    except (ValueError, RecursionError):
        return ()
    root, places = dirname(path), _Places(text, quoted=is_json)
    ends = [match.start() for match in re.finditer("\n", text)]
    found: list[Entry] = []
    for page in _pages(path, value):
        if "://" in page or " " in page or not page or page.startswith("#"):
            continue
        place = places.next_of(page)
        if place is None:
            continue
        line = bisect_left(ends, place) + 1
        written = f'"{page}"' if is_json else page
        found.append(Entry(page, line, written, _files(path, root, page, value)))
        if len(found) >= MAX_ENTRIES:
            break
    return found


class _Places:
    """The places of pages' names in a text, which is not searched from its start for each of them."""

    def __init__(self, text: str, *, quoted: bool) -> None:
        self._text, self._at, self._searches = text, 0, MAX_SEARCHES
        self._quoted: dict[str, list[int]] | None = None
        if quoted:
            self._quoted = {}
            for match in _STRING.finditer(text):
                self._quoted.setdefault(match[1], []).append(match.start())
            for places in self._quoted.values():
                places.reverse()

    def next_of(self, name: str) -> int | None:
        """The next place of this name, which is the last one when there is no further; None when it is not there."""
        if self._quoted is not None:
            places = self._quoted.get(name, [])
            return None if not places else places.pop() if len(places) > 1 else places[0]
        if not self._searches:
            return None
        place = self._find(name, self._at)
        if place < 0:  # names come in order, but for those of a hostile file
            self._searches -= 1
            place = self._find(name, 0)
        if place < 0:
            return None
        self._at = place + 1
        return place

    def _find(self, name: str, at: int) -> int:
        """Return the next place of a name by itself, and not at the end of an address; -1 for none."""
        place = self._text.find(name, at)
        while place > 0 and self._text[place - 1] in "/.-_" and self._searches:
            self._searches -= 1
            place = self._text.find(name, place + 1)
        return place


def named_in_code(text: str, page: str, root: str) -> int | None:
    """The line on which a sidebar written as a program names this page."""
    inside = page[len(root) :].lstrip("/") if page.startswith(root) else page
    name = without_suffix(inside).removeprefix("docs/")
    match = re.search(rf"['\"]/?{re.escape(name)}(?:\.md)?['\"]", text)
    return text.count("\n", 0, match.start()) + 1 if match else None


def _pages(path: str, value: object) -> Iterator[str]:
    name = path.rpartition("/")[2]
    if name in ("docs.json", "mint.json"):
        yield from _strings(value.get("navigation") if isinstance(value, dict) else None, _NESTING)
    elif name == "sidebars.json":
        yield from _strings(list(value.values()) if isinstance(value, dict) else value, _SIDEBAR_NESTING)
    elif isinstance(value, dict):
        yield from _strings(value.get("nav"), None)


def _strings(node: object, nesting: Collection[str] | None) -> Iterator[str]:
    stack = [node]
    for _ in range(10 * MAX_ENTRIES):
        if not stack:
            return
        here = stack.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, list):
            stack.extend(reversed(here))
        elif isinstance(here, dict):
            stack.extend(value for key, value in reversed(here.items()) if nesting is None or key in nesting)


def _files(path: str, root: str, page: str, value: object) -> tuple[str, ...]:
    name = path.rpartition("/")[2]
    page = page.lstrip("/")
    if name.startswith("mkdocs"):
        docs = value.get("docs_dir") if isinstance(value, dict) else None
        folder = _join(root, normpath(str(docs or "docs")[:MAX_FOLDER]))
        return (_join(folder, page), _join(folder, page, "index.md"), _join(folder, page, "README.md"))
    if name == "sidebars.json":
        folders = (_join(root, "docs"), root)
        return tuple(_join(folder, page) + suffix for folder in folders for suffix in (".md", ".mdx"))
    return tuple(_join(root, page) + suffix for suffix in (".mdx", ".md", ""))


def _join(*parts: str) -> str:
    return "/".join(part.strip("/") for part in parts if part.strip("/") and part != ".")
