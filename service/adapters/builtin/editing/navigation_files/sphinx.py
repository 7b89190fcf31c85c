"""Names of pages in Sphinx's own markup: entries of ``toctree``, and the role ``doc``.

A name is a path without a suffix, from the folder of the page that has it, or from the folder of ``conf.py`` where it
begins with a slash (sphinx-doc.org/en/master/usage/restructuredtext/directives.html#directive-toctree).
"""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from posixpath import dirname, join, normpath, relpath

from msgspec import Struct

from service.adapters.builtin.editing.pages import is_page, stem_of
from service.adapters.builtin.editing.steps import Call, Editing, Step, Steps, Turn, counted, rewrites
from service.adapters.builtin.editing.tool_results import found_in, paths_in
from service.markup.markdown import Markdown
from service.markup.pages import is_markdown

MAX_PAGES = 50
"""Limit for the pages that are read: those with the name of the page in them."""
_DIRECTIVE = re.compile(r"([ \t]*)\.\.[ \t]+toctree::[ \t\r]*")
_TITLED = re.compile(r"(?P<title>[^<\n]*?)<(?P<name>[^<>\n]+)>")
_ROLE = re.compile(r"(?::(?:doc|any):|\{(?:doc|any)\})`(?P<written>[^`\n]+)`")
_FILE_ROLE = re.compile(r"(?::download:|\{download\})`(?P<written>[^`\n]+)`")

NewName = Callable[[str], str | None]
"""The name in place of another, which may be itself; None takes the entry or the role away."""


def leave_toctrees(editing: Editing, page: str) -> Steps:
    """Take a page that is gone out of the table of contents; of references to it the words stay."""
    root = yield from _source_folder(editing, page)
    if root is not None:
        yield from _rewrite(editing, page, lambda path: _Names(path, root, page).without, "Took it out of")


def rename_in_toctrees(editing: Editing, page: str, to: str) -> Steps:
    """Give a page that has moved its new name where Sphinx's markup names it, and mend the names in the page itself."""
    root = yield from _source_folder(editing, page)
    if root is None:
        return
    yield from _rewrite(editing, page, lambda path: _Names(path, root, page, to).renamed, "Renamed it in")
    if dirname(page) != dirname(to):
        lines = yield from editing.lines(to)
        names = _Names(to, root, page, to)
        after = [
            _FILE_ROLE.sub(lambda match: _role(match, names.carried), line)
            for line in _rewritten(to, lines, names.carried)
        ]
        if calls := rewrites(to, lines, after):
            yield from editing.ask(Step("Mending the names in it. ", tuple(calls)))


class _Names(Struct, frozen=True):
    """The changes to the names that a page has."""

    path: str
    """The page that has them."""
    root: str
    page: str
    """The page that goes, or that moves."""
    to: str = ""

    def without(self, name: str) -> str | None:
        return None if self._is_meant(name) else name

    def renamed(self, name: str) -> str:
        if not self._is_meant(name):
            return name
        suffix = name[len(stem_of(name)) :]
        if name.startswith("/"):
            return f"/{relpath(stem_of(self.to), self.root or '.')}{suffix}"
        return relpath(stem_of(self.to), dirname(self.path) or ".") + suffix

    def carried(self, name: str) -> str:
        """Return a name of the moved page itself, from its new folder."""
        if name.startswith("/") or name == "self" or "://" in name or "*" in name:
            return name
        meant = normpath(join(dirname(self.page), name))
        return relpath(stem_of(self.to) if meant == stem_of(self.page) else meant, dirname(self.to) or ".")

    def _is_meant(self, name: str) -> bool:
        stem = stem_of(name)
        folder, inside = (self.root, stem[1:]) if name.startswith("/") else (dirname(self.path), stem)
        return normpath(join(folder, inside)) == stem_of(self.page)


def _rewrite(editing: Editing, page: str, new: Callable[[str], NewName], said: str) -> Steps:
    """Change the names in the pages that have the page's own."""
    name = stem_of(page).rpartition("/")[2]
    result = yield from editing.one("Looking for its name. ", "search", query=name, exact=True)
    paths = [path for path in found_in(result)[0] if is_page(path) and path != page]
    calls: list[Call] = []
    changed = 0
    for path, lines in (yield from editing.all_lines(paths[:MAX_PAGES])).items():
        edits = rewrites(path, lines, _rewritten(path, lines, new(path)))
        changed += bool(edits)
        calls += edits
    if changed:
        editing.report_errors((yield from editing.ask(Step("", tuple(calls)))))
        editing.say(f"{said} the tables of contents and references of {counted(changed, 'page')}.")


def _source_folder(editing: Editing, page: str) -> Generator[Step, Turn, str | None]:
    """Return the nearest folder above a page with Sphinx's configuration; None where there is none."""
    result = yield from editing.one("", "list", name="conf.py")
    folders = [dirname(path) for path in paths_in(result) if path.rpartition("/")[2] == "conf.py"]
    above = [folder for folder in folders if not folder or page.startswith(f"{folder}/")]
    return max(above, key=len, default=None)


def _rewritten(path: str, lines: Sequence[str], new: NewName) -> list[str]:
    entries = set(_entries(path, lines))
    after: list[str] = []
    for at, line in enumerate(lines):
        if at not in entries:
            after.append(_ROLE.sub(lambda match: _role(match, new), line) if "`" in line else line)
            continue
        name = _name(line.strip())
        wanted = new(name)
        if wanted is not None:
            after.append(line.replace(name, wanted) if wanted != name else line)
    return after


def _name(written: str) -> str:
    titled = _TITLED.fullmatch(written)
    return titled["name"] if titled else written


def _role(match: re.Match[str], new: NewName) -> str:
    titled, name = _TITLED.fullmatch(match["written"]), _name(match["written"])
    wanted = new(name)
    if wanted is not None:
        return match[0].replace(name, wanted) if wanted != name else match[0]
    return titled["title"].strip() if titled and titled["title"].strip() else name.rpartition("/")[2].replace("-", " ")


def _entries(path: str, lines: Sequence[str]) -> Iterator[int]:
    """Yield the indexes of the lines that are entries of a table of contents."""
    blocks = _of_markdown(path, lines) if is_markdown(path) else _of_directives(lines)
    for first, after in blocks:
        yield from (at for at in range(first, after) if lines[at].strip() and not lines[at].lstrip().startswith(":"))


def _of_markdown(path: str, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    page = Markdown("\n".join(lines), path=path)
    for block in page.blocks:
        if block.kind == "fence" and block.info.strip() == "{toctree}":
            yield page.first_line + block.first + 1, page.first_line + block.after - 1


def _of_directives(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(lines):
        directive = _DIRECTIVE.fullmatch(lines[at])
        at += 1
        first = at
        while directive and at < len(lines):
            line = lines[at].rstrip()
            if line and len(line) - len(line.lstrip()) <= len(directive[1]):
                break
            at += 1
        if directive:
            yield first, at
