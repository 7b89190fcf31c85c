"""Sidebars that are programs, of Docusaurus and VitePress: their literal entries are changed, and nothing else.

Facts: Docusaurus names a page by its path below the docs folder without the suffix, with ``id`` of its front matter in
place of the file's name (docusaurus.io/docs/create-doc). VitePress links to its address (vitepress.dev/reference).
"""

import re
from collections.abc import Generator, Iterator, Sequence
from posixpath import dirname

from service.adapters.builtin.editing.addresses import front_matter_end
from service.adapters.builtin.editing.navigation_files.nesting import without_entry
from service.adapters.builtin.editing.pages import stem_of
from service.adapters.builtin.editing.steps import Call, Editing, Step, Steps, Turn, rewrites
from service.adapters.builtin.editing.tool_results import lines_in, paths_in
from service.markup.generator_files import SIDEBARS_PROGRAM, VITEPRESS_PROGRAM

_ID = re.compile(r"id\s*+:\s*+[\"']?([\w./-]+)")
_IS_WORDS = re.compile(r"\b(?:label|title|text|type|description|className)[\"']?\s*+:\s*+\Z")
"""Before a string that names no page."""
MAX_LEAD = 60
"""Characters before a literal that tell it from others of its line."""
HEAD_LINES = 40
"""Lines of a page in which its id is looked for."""


def document_id(editing: Editing, page: str) -> Generator[Step, Turn, str]:
    """Return the id that the front matter of a page gives it; empty if it gives none."""
    result = yield from editing.one("", "read", path=page, start_line=1, end_line=HEAD_LINES)
    lines, _ = lines_in(result)
    fields = lines[1 : front_matter_end(lines) or 0]
    return next((match[1] for line in fields if (match := _ID.match(line))), "")


def leave_sidebars(editing: Editing, page: str, own_id: str) -> Steps:
    """Take a page that is gone out of the sidebars that name it."""
    for path, lines in (yield from _sidebars(editing)):
        text = "\n".join(lines)
        for place, literal, _ in reversed(_named(path, text, page, own_id)):
            text = without_entry(text, text.count("\n", 0, place) + 1, literal) or text
        yield from _write(editing, rewrites(path, lines, text.split("\n")), f"Took it out of {path}.")
        for place, literal, _ in _named(path, text, page, own_id):
            editing.say(
                f"{path} still names it, for people to change: {literal}, line {text.count(chr(10), 0, place) + 1}."
            )


def rename_in_sidebars(editing: Editing, page: str, to: str, own_id: str) -> Steps:
    """Give a page that has moved its new name in the sidebars that name it."""
    for path, lines in (yield from _sidebars(editing)):
        text = "\n".join(lines)
        calls: list[Call] = []
        for place, literal, name in reversed(_named(path, text, page, own_id)):
            line = text.count("\n", 0, place) + 1
            new = literal.replace(name, _names(path, to, own_id)[_names(path, page, own_id).index(name)], 1)
            begin = text.rfind("\n", 0, place) + 1
            lead = next((lead for lead in _leads(text[begin:place]) if _is_alone(text, place, lead + literal)), "")
            if new != literal:
                calls.append(("replace", {"path": path, "old": lead + literal, "new": lead + new, "line": line}))
        yield from _write(editing, calls, f"Renamed it in {path}.")


def _leads(text: str) -> Iterator[str]:
    """Yield what stands before a literal on its line, the shortest first."""
    yield from (text[at:] for at in range(len(text), max(-1, len(text) - MAX_LEAD), -1))


def _is_alone(text: str, place: int, words: str) -> bool:
    """Return whether words are on the line of a place once."""
    end = text.find("\n", place)
    return text[text.rfind("\n", 0, place) + 1 : end if end >= 0 else len(text)].count(words) == 1


def _sidebars(editing: Editing) -> Generator[Step, Turn, list[tuple[str, list[str]]]]:
    found = yield from editing.ask(
        Step("Looking for sidebars. ", (("list", {"name": "sidebars."}), ("list", {"name": ".vitepress/"})))
    )
    paths = dict.fromkeys(line for result in found for line in paths_in(result))
    files: dict[str, list[str]] = {}
    for path in paths:
        if SIDEBARS_PROGRAM.search(path) or VITEPRESS_PROGRAM.search(path):
            files[path] = yield from editing.lines(path)
    return list(files.items())


def _write(editing: Editing, calls: Sequence[Call], said: str) -> Steps:
    if not calls:
        return
    results = yield from editing.ask(Step("", tuple(calls)))
    editing.report_errors(results)
    if not all(result.is_error for result in results):
        editing.say(said)


def _names(path: str, page: str, own_id: str) -> list[str]:
    """Return what a sidebar may call a page."""
    stem = stem_of(page)
    if VITEPRESS_PROGRAM.search(path):
        root = path.partition(".vitepress/")[0]
        inside = stem.removeprefix(root)
        return [f"{inside.removesuffix('index')}" if inside.endswith("/index") else inside]
    root = f"{dirname(path)}/" if dirname(path) else ""
    inside = stem.removeprefix(root).removeprefix("docs/")
    folder = dirname(inside)
    return [inside, f"{folder}/{own_id}" if folder else own_id] if own_id else [inside]


def _named(path: str, text: str, page: str, own_id: str) -> list[tuple[int, str, str]]:
    """Return each literal that names the page: its place, the literal, and the name in it."""
    found: list[tuple[int, str, str]] = []
    for name in _names(path, page, own_id):
        pattern = re.compile(rf"(?P<quote>['\"`])/?{re.escape(name)}(?:\.md|\.html)?(?P=quote)")
        found += [
            (match.start(), match[0], name)
            for match in pattern.finditer(text)
            if name and not _IS_WORDS.search(text, max(0, match.start() - 40), match.start())
        ]
    return sorted(set(found))
