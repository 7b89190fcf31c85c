"""Where a new page belongs in a site's navigation file, as an edit of its text.

It is put after a page that the file names already, the nearest one, in the same form as that one. So the rest of the
file stays as its authors wrote it, and what no neighbour shows how to do is left to people.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from service.adapters.builtin.editing.pages import is_index, stem_of


class Entry(Struct, frozen=True):
    """Text to put in place of other text that begins on a line, counted from 1."""

    line: int
    old: str
    new: str


def entry_for(navigation: str, lines: Sequence[str], page: str, title: str, pages: Iterable[str]) -> Entry | None:
    """Return the edit that adds the page; None when the file names no page of the site that could serve as an example.

    ``navigation`` is the file's path, ``lines`` its text, ``pages`` the site's other pages.
    """
    root, named = _root(navigation, lines), _finder(navigation)
    if not page.startswith(root):
        return None
    for other in sorted(pages, key=lambda path: distance(path, page)):
        found = named(lines, other[len(root) :]) if other.startswith(root) and other != page else None
        if found is None:
            continue
        line, name = found
        if named is _yaml_named:
            return _yaml_entry(lines, line, page[len(root) :], title)
        bare = name.lstrip("/")
        new = page[len(root) :] if other.endswith(bare) else stem_of(page[len(root) :])
        return _json_entry(lines, line, name, name[: len(name) - len(bare)] + new)
    return None


def is_named(navigation: str, lines: Sequence[str], page: str) -> bool:
    root = _root(navigation, lines)
    return page.startswith(root) and _finder(navigation)(lines, page[len(root) :]) is not None


def names_pages(navigation: str, lines: Sequence[str]) -> bool:
    """Return whether it is the file's business: MkDocs finds the pages itself where no ``nav`` is given."""
    return navigation.endswith(".json") or any(line.startswith("nav:") for line in lines)


def relabelled(navigation: str, lines: Sequence[str], page: str, old: str, new: str) -> list[str] | None:
    """Return the lines with another label for the page; None where its label does not repeat the old title."""
    root = _root(navigation, lines)
    if not page.startswith(root):
        return None
    if navigation.endswith(".json"):
        return _json_relabelled("\n".join(lines), stem_of(page[len(root) :]), old, new)
    found = _yaml_named(lines, page[len(root) :])
    match = _YAML_ITEM.fullmatch(lines[found[0] - 1].rstrip()) if found else None
    if found is None or match is None or not match["title"] or match["title"].strip("\"' ") != old.strip():
        return None
    line = lines[found[0] - 1]
    start, end = match.span("title")
    return [*lines[: found[0] - 1], f"{line[:start]}{yaml_text(new)}{line[end:]}", *lines[found[0] :]]


def _json_relabelled(text: str, name: str, old: str, new: str) -> list[str] | None:
    """Change the label in the object that has this id, as in sidebars.json."""
    label = re.compile(rf"\"label\"\s*+:\s*+({re.escape(json.dumps(old, ensure_ascii=False))})")
    for match in re.finditer(rf"\"id\"\s*+:\s*+{re.escape(json.dumps(name, ensure_ascii=False))}", text):
        start, end = text.rfind("{", 0, match.start()), text.find("}", match.end())
        if start >= 0 and (found := label.search(text, start, len(text) if end < 0 else end)):
            after = f"{text[: found.start(1)]}{json.dumps(new, ensure_ascii=False)}{text[found.end(1) :]}"
            return after.split("\n")
    return None


def _finder(navigation: str) -> Callable[[Sequence[str], str], tuple[int, str] | None]:
    return _json_named if navigation.endswith(".json") else _yaml_named


_DOCS_DIR = re.compile(r"docs_dir:\s*[\"']?([^\"'#\s]+)")


def _root(navigation: str, lines: Sequence[str]) -> str:
    """The folder that the names in the file begin at, with a slash at its end; empty for the repository's root."""
    folder, _, name = navigation.rpartition("/")
    if name.startswith("mkdocs"):
        docs_folder = (
            next((match[1] for line in lines if (match := _DOCS_DIR.match(line))), "docs").removeprefix("./").strip("/")
        )
        folder = f"{folder}/{docs_folder}" if folder else docs_folder
    elif name == "sidebars.json":
        folder = f"{folder}/docs" if folder else "docs"
    return f"{folder}/" if folder else ""


def distance(path: str, page: str) -> tuple[int, bool]:
    """Return how many folders lie between two pages. The page of a folder comes after its others: it mostly stands
    first.
    """
    one, other = path.split("/")[:-1], page.split("/")[:-1]
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    return len(one) + len(other) - 2 * common, is_index(path)


def _json_named(lines: Sequence[str], page: str) -> tuple[int, str] | None:
    for name in (stem_of(page), f"/{stem_of(page)}", page):
        # In a list, as pages stand: neither a key nor the value of one.
        pattern = re.compile(rf"(?:^|[\[,])\s*{re.escape(json.dumps(name, ensure_ascii=False))}\s*(?:[\],]|$)")
        for number, line in enumerate(lines, 1):
            if pattern.search(line):
                return number, name
    return None


def _json_entry(lines: Sequence[str], number: int, name: str, new: str) -> Entry:
    line = lines[number - 1]
    old, added = json.dumps(name, ensure_ascii=False), json.dumps(new, ensure_ascii=False)
    if line.strip().rstrip(",") == old:  # a line of its own
        indent = line[: len(line) - len(line.lstrip())]
        return Entry(number, old, f"{old},\n{indent}{added}")
    return Entry(number, old, f"{old}, {added}")


_YAML_ITEM = re.compile(
    r"(?P<indent>\s*-\s++)(?:(?P<title>[^:#]+|\"[^\"]*\"|'[^']*'):\s++)?(?P<quote>[\"']?)(?P<name>[^\"'#]+)(?P=quote)"
)


def _yaml_named(lines: Sequence[str], page: str) -> tuple[int, str] | None:
    for number, line in enumerate(lines, 1):
        match = _YAML_ITEM.fullmatch(line.rstrip())
        if match and match["name"] == page:
            return number, page
    return None


def _yaml_entry(lines: Sequence[str], number: int, new: str, title: str) -> Entry:
    line = lines[number - 1].rstrip("\r")
    match = _YAML_ITEM.fullmatch(line.rstrip())
    assert match is not None
    named = f"{yaml_text(title)}: " if match["title"] else ""
    return Entry(number, line, f"{line}\n{match['indent']}{named}{yaml_text(new)}")


_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def yaml_text(text: str) -> str:
    """Plain where that means the text itself."""
    is_plain = re.fullmatch(r"[A-Za-z][\w ./()+-]*[\w.)]|[A-Za-z]", text) and text.lower() not in _YAML_WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)
