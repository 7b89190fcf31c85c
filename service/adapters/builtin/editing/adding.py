"""Add text to a page, at a heading or to every page; create a page, and name it in the navigation."""

import json
import re
from collections.abc import Generator, Sequence
from pathlib import PurePosixPath
from posixpath import join, normpath, relpath
from urllib.parse import unquote

from msgspec import Struct

from service.adapters.builtin.editing.forms import EVERY_PAGE, Add, Create, short
from service.adapters.builtin.editing.navigation_files.entries import distance, entry_for, is_named, names_pages
from service.adapters.builtin.editing.pages import is_page, section_of, top_of
from service.adapters.builtin.editing.reading_back import reads_as_meant
from service.adapters.builtin.editing.steps import MAX_EDITS, Call, Editing, Step, Steps, Turn, counted, named
from service.adapters.builtin.editing.tool_results import docs_folder, lines_in, number_listed, paths_in
from service.markup.addresses import link_target
from service.markup.generator_files import NAVIGATION_DATA
from service.markup.markdown import Markdown
from service.markup.writing import markdown_words, rest_heading
from service.ports.model import ToolMessage

_ITEM = re.compile(r"[ \t]*[-*+][ \t]+(?=\[)")
_SUMMARIES = frozenset(("SUMMARY.md", "_sidebar.md"))
"""Lists of links to all pages (``NAVIGATION``)."""
_LISTED_SUFFIXES = (".md", ".markdown", ".rst", ".adoc")


class _Insertion(Struct, frozen=True):
    text: str
    after_line: int | None

    def call(self, page: str) -> Call:
        place = {} if self.after_line is None else {"after_line": self.after_line}
        return "insert", {"path": page, "text": self.text, **place}


def _insertion(asked: Add, lines: Sequence[str]) -> _Insertion | None:
    """Return whole lines for the place, separated by blank ones; None when the page does not have the heading."""
    if asked.place == "top":
        after = top_of(lines)
    else:
        section = section_of(lines, asked.heading)
        if section is None:
            return None
        after = section.heading - 1 if asked.place == "before" else section.end
    before = "\n" if after and lines[after - 1].strip() else ""
    behind = "\n" if after < len(lines) and lines[after].strip() else ""
    return _Insertion(f"{before}{_block(asked.text)}\n{behind}", after)


def _block(text: str) -> str:
    return text.strip("\n")


def _where(asked: Add) -> str:
    return f" {asked.place} {short(asked.heading)}" if asked.heading else " at the top" if asked.place == "top" else ""


def add_text(editing: Editing, asked: Add) -> Steps:
    if asked.path == EVERY_PAGE:
        yield from _add_everywhere(editing, asked)
        return
    page = yield from editing.page(asked.path)
    if not page:
        return
    insertion: _Insertion | None = _Insertion(f"\n{_block(asked.text)}\n", None)
    if asked.place != "end":
        lines = yield from editing.lines(page)
        insertion = _insertion(asked, lines)
    if insertion is None:
        editing.say(f"{page} has no heading {short(asked.heading)}: nothing was added.")
        return
    (result,) = yield from editing.ask(Step(f"Adding to {page}. ", (insertion.call(page),)))
    if result.is_error:
        editing.report_errors([result])
    else:
        editing.say(f"Added {short(asked.text)} to {page}{_where(asked)}.")


def _add_everywhere(editing: Editing, asked: Add) -> Steps:
    lists = yield from editing.ask(
        Step("Listing the pages. ", tuple(("list", {"name": suffix}) for suffix in _LISTED_SUFFIXES))
    )
    pages = sorted({line for result in lists for line in paths_in(result) if is_page(line)})
    if sum(map(number_listed, lists)) > MAX_EDITS or len(pages) > MAX_EDITS:
        editing.say(f"There are more than {MAX_EDITS} pages, which is more than one instruction changes: name them.")
        return
    calls: list[Call] = []
    without: list[str] = []
    if asked.place == "end":
        calls = [_Insertion(f"\n{_block(asked.text)}\n", None).call(page) for page in pages]
    else:
        reads = yield from editing.ask(Step("Reading them. ", tuple(("read", {"path": page}) for page in pages)))
        for page, result in zip(pages, reads, strict=True):
            lines, goes_on = lines_in(result)
            whole = not goes_on and not result.is_error
            found = _insertion(asked, lines) if whole or asked.place == "top" else None
            if found is None:
                without.append(page)
            else:
                calls.append(found.call(page))
    results: tuple[ToolMessage, ...] = ()
    if calls:
        results = yield from editing.ask(Step(f"Adding to {counted(len(calls), 'page')}. ", tuple(calls)))
    done = sum(not result.is_error for result in results)
    editing.say(f"Added {short(asked.text)} to {counted(done, 'page')}{_where(asked)}.")
    if without:
        editing.say(f"Left as they were, without such a heading or too long: {named(without)}.")
    editing.report_errors(results)


def create_page(editing: Editing, asked: Create) -> Steps:
    counts = yield from editing.ask(
        Step(
            "Looking at how pages are written here. ",
            tuple(("list", {"name": name}) for name in (".mdx", ".md", ".rst")),
        )
    )
    mdx, both, rest = map(number_listed, counts)
    path = asked.path.strip("/")
    if not is_page(PurePosixPath(path).suffix):
        path += ".rst" if rest > both else ".mdx" if mdx > both - mdx else ".md"
    folder, _, name = path.rpartition("/")
    (folders,) = (yield from editing.folders([folder])) if folder else ((),)
    if len(folders) == 1:
        path = f"{folders[0]}/{name}"
    existing = yield from editing.one("", "read", path=path, start_line=1, end_line=1)
    if docs := docs_folder(existing):
        path = f"{docs}/{path}"
        existing = yield from editing.one("", "read", path=path, start_line=1, end_line=1)
    if not existing.is_error:
        editing.say(f"{path} exists already: it was left as it is.")
        return
    folder = path.rpartition("/")[0]
    near = yield from editing.one("", "list", **({"folder": folder} if folder else {}), name=PurePosixPath(path).suffix)
    pages = [line for line in paths_in(near) if is_page(line)]
    siblings = pages or [line for line in paths_in(counts[1]) if is_page(line)]
    mark = "---"
    if siblings:
        first = yield from editing.one("", "read", path=siblings[0], start_line=1, end_line=1)
        mark = "".join(lines_in(first)[0]).strip("\ufeff \r")
    title = asked.title or PurePosixPath(path).stem.replace("-", " ").replace("_", " ").capitalize()
    head = _head(path, title, mark)
    text = f"{head}\n{asked.text.strip(chr(10))}\n" if asked.text.strip() else head
    result = yield from editing.one(f"Writing {path}. ", "write", path=path, text=text)
    if result.is_error:
        editing.report_errors([result])
    else:
        if not (yield from reads_as_meant(editing, path, title, None)):
            return
        editing.say(f"Created {path} with the title {short(title)}.")
        yield from _name_in_navigation(editing, path, title)


def _head(path: str, title: str, mark: str) -> str:
    """Return the beginning of a new page, in its own markup; ``mark``: the first line of a page beside it."""
    written = json.dumps(title, ensure_ascii=False)
    if path.endswith(".rst"):
        return "\n".join(rest_heading(title)) + "\n"
    if path.endswith(".adoc"):
        return f"= {title}\n"
    if mark == "---":
        return f"---\ntitle: {written}\n---\n"
    if mark == "+++":
        return f"+++\ntitle = {written}\n+++\n"
    if mark == "{":
        return f'{{\n  "title": {written}\n}}\n'
    return f"# {markdown_words(title, mdx=path.endswith('.mdx'))}\n"


def navigation_of(editing: Editing, page: str) -> Generator[Step, Turn, tuple[str, list[str], list[str]]]:
    """Return the nearest navigation file above a page, its lines, and the files that were seen on the way."""
    above = [folder.as_posix() for folder in PurePosixPath(page).parents]
    folders: list[Call] = [("list", {} if folder == "." else {"folder": folder}) for folder in above]
    names: list[Call] = [("list", {"name": name}) for name in NAVIGATION_DATA]
    found = yield from editing.ask(Step("Looking for a navigation file. ", (*names, *folders)))
    known = [line for result in found for line in paths_in(result)]
    files = [path for path in known if _is_navigation_of(path, page)]
    if not files:
        return "", [], known
    file = max(files, key=len)
    lines = yield from editing.lines(file)
    return file, lines, known


def _name_in_navigation(editing: Editing, page: str, title: str) -> Steps:
    """Add the page to the nearest navigation file above it, if there is one."""
    file, lines, known = yield from navigation_of(editing, page)
    if not file:
        yield from _name_in_summary(editing, page, title, known)
        return
    if not names_pages(file, lines) or is_named(file, lines, page):
        return
    entry = entry_for(file, lines, page, title, [path for path in known if is_page(path)])
    if entry is None:
        editing.say(f"{file} does not name it yet: no page near it stands there.")
        return
    new = entry.new.replace("\n", "\r\n") if lines[0].endswith("\r") else entry.new
    result = yield from editing.one("", "replace", path=file, old=entry.old, new=new, line=entry.line)
    if result.is_error:
        editing.report_errors([result])
    else:
        editing.say(f"Named it in {file}.")


def _name_in_summary(editing: Editing, page: str, title: str, known: Sequence[str]) -> Steps:
    """Add the page to the nearest list of links above it, behind the nearest page that the list names."""
    above = [path for path in known if PurePosixPath(path).name in _SUMMARIES]
    file = max((path for path in above if _is_below(page, PurePosixPath(path).parent.as_posix())), key=len, default="")
    if not file:
        return
    lines = yield from editing.lines(file)
    text, folder = "\n".join(lines), PurePosixPath(file).parent.as_posix()
    links = [link for link in Markdown(text).links if link.kind == "inline" and not link.is_image]
    named = {normpath(join(folder, unquote(link.target.partition("#")[0]))): link for link in links}
    items = {path: text.count("\n", 0, link.begin) for path, link in named.items() if is_page(path)}
    items = {path: line for path, line in items.items() if _ITEM.match(lines[line])}
    if page in named or not items:
        return
    near = min(items, key=lambda path: distance(path, page))
    line = items[near]
    item = _ITEM.match(lines[line])
    assert item is not None
    target = link_target(relpath(page, folder), named[near].target)
    new = f"{lines[line].rstrip()}\n{item[0]}[{markdown_words(title)}]({target})"
    new = new.replace("\n", "\r\n") if lines[0].endswith("\r") else new
    result = yield from editing.one("", "replace", path=file, old=lines[line].rstrip(), new=new, line=line + 1)
    if result.is_error:
        editing.report_errors([result])
    else:
        editing.say(f"Named it in {file}.")


def _is_below(page: str, folder: str) -> bool:
    return folder == "." or page.startswith(f"{folder}/")


def _is_navigation_of(path: str, page: str) -> bool:
    folder, _, name = path.rpartition("/")
    return name in NAVIGATION_DATA and (not folder or page.startswith(f"{folder}/"))
