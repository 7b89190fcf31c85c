"""MyST as Markdown that says what a reader sees: directives in fences of backticks or colons, roles, targets,
substitutions, comments (myst-parser.readthedocs.io/en/latest/syntax/reference.html).

It is a step before a page is read (``expansion``). Lines that a directive stands for have its line's number.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from service.domain.sites import Skipped
from service.markup.dialects.directives import Opening, is_closing, opening
from service.markup.fences import fenced
from service.markup.pages import is_markdown
from service.retrieval.readers.includes.files import Files
from service.retrieval.readers.includes.mkdocs import Lines
from service.retrieval.readers.sphinx.facts import SphinxFacts
from service.retrieval.readers.sphinx.language import (
    ADMONITIONS,
    CODE,
    OBJECTS,
    SILENT,
    TITLED,
    VERSIONED,
    document_name,
    identifier,
    is_shown,
    object_ids,
    role_words,
    selected,
    shown_signature,
    signature_name,
)

MAX_NESTED = 20
_OPTION = re.compile(r"[ \t]*:([\w-]+):(?:[ \t]+(.*))?$")
_ROLE = re.compile(
    r"\{(?P<role>[A-Za-z][\w:.+-]{0,60})\}(?P<ticks>`{1,3})(?P<text>[^`]{1,1000}?)(?P=ticks)(?!`)"
    r"|(?P<code>``[^\n]{1,1000}?``|`[^`\n]{1,2000}`)"
    r"|\{\{[ \t]*(?P<key>[\w.-]{1,100})[ \t]*\}\}"
    r"|(?<!!)\[\]\((?P<link>[^()\s]{1,500})\)"
    r"|\[\^[\w.-]{1,100}\](?::[ \t]*)?"
    r"|(?<=[)\]*_`])\{[.#\w][^{}\n]{0,300}\}"
    r"|^(?P<target>[ \t]*\((?P<label>[^()\n]{1,200})\)=[ \t]*)$"
    r"|^(?:[ \t]*\{[.#][^{}\n]{0,300}\}|[ \t]*%[^\n]*|\+\+\+(?:[ \t][^\n]*)?)$"
    r"|^:[ \t]{1,4}(?=\S)",
    re.MULTILINE,
)
_CELL = re.compile(r"(?:([*-])[ \t]+)?-[ \t]*(.*)")


class SphinxPage(Struct, frozen=True):
    """A page of a Sphinx site, as a step of reading is given it."""

    facts: SphinxFacts
    name: str
    """Path from the folder of ``conf.py``."""


class _Directive(Struct, frozen=True):
    name: str
    argument: str
    options: Mapping[str, str]
    body: Lines
    number: int

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.body)


def shown(lines: Lines, files: Files, page: SphinxPage) -> Lines:
    """Return the lines of a page in MyST as plain Markdown."""
    return _Reader(files, page).lines(lines, 0)


class _Reader:
    def __init__(self, files: Files, page: SphinxPage) -> None:
        self._files, self._page = files, page
        self._module = self._program = ""
        self._classes: list[str] = []

    def lines(self, lines: Lines, depth: int) -> Lines:
        found: Lines = []
        prose: Lines = []
        at = 0
        while at < len(lines):
            opened = opening(lines[at][1])
            if opened is None or (opened.mark[0] == ":" and opened.info):
                prose.append(lines[at])
                at += 1
                continue
            if not opened.is_code and not opened.name:
                at += 1  # the end of one that does not begin here
                continue
            found += self._prose(prose)
            prose = []
            after = _closing(lines, at, opened.mark)
            if opened.is_code or depth >= MAX_NESTED:
                found += lines[at : after + 1]
            else:
                found += self._directive(lines[at : after + 1], opened, depth)
            at = after + 1
        return found + self._prose(prose)

    def _prose(self, lines: Lines) -> Lines:
        text = "\n".join(line for _, line in lines)
        if not lines or _SIGNS.search(text) is None:
            return lines
        replaced = _ROLE.sub(self._replaced, text).split("\n")
        found: Lines = []
        for (number, _), line in zip(lines, replaced, strict=True):
            found.append((number, line))
            if line.startswith("<a id="):
                found.append((number, ""))
        return found

    def _replaced(self, match: re.Match[str]) -> str:
        """Return the words for a sign; the sign where the page has shown too much: a short one may stand for many."""
        shown = self._words_for(match)
        further = len(shown) - len(match[0])
        return shown if further <= 0 or len(self._files.within_room(shown)) == len(shown) else match[0]

    def _words_for(self, match: re.Match[str]) -> str:
        facts = self._page.facts
        if match["code"] is not None:
            return match[0]
        if match["role"] is not None:
            words, is_code = role_words(match["role"], " ".join(match["text"].split()), facts, self._page.name)
            return (f"`{words}`" if is_code else words) + "\n" * match[0].count("\n")
        if match["key"] is not None:
            return " ".join(facts.substitutions.get(match["key"], match[0]).split())
        if match["link"] is not None:
            target = match["link"]
            name = document_name(target.partition("#")[0], self._page.name)
            words = facts.titles.get(f"ref {target[1:]}" if target.startswith("#") else f"doc {name}") or target
            return f"[{words}]({target})"
        return _anchors([re.sub(r"[^a-z0-9]+", "-", match["label"].lower()).strip("-")]) if match["target"] else ""

    def _directive(self, lines: Lines, opened: Opening, depth: int) -> Lines:
        indent = len(opened.indent)
        is_closed = len(lines) > 1 and is_closing(lines[-1][1], opened.mark)
        body = [(number, line[min(indent, len(line) - len(line.lstrip())) :]) for number, line in lines[1:]]
        options, body = _options(body[:-1] if is_closed else body)
        one = _Directive(opened.name.lower(), opened.argument, options, body, lines[0][0])
        found = [(one.number, ""), *self._shown(one, depth), (lines[-1][0], "")]
        indented = self._files.indented([line for _, line in found], opened.indent)
        return [(number, line) for (number, _), line in zip(found, indented, strict=True)]

    def _shown(self, one: _Directive, depth: int) -> Lines:
        special = _SPECIAL.get(one.name)
        if special is not None:
            return special(self, one, depth)
        if one.name in CODE:
            caption = [f"**{one.options['caption']}**", ""] if one.options.get("caption") else []
            return _at(one, [*caption, fenced(one.text, one.argument.split(" ")[0])])
        if one.name in SILENT:
            return self._context(one)
        if one.name in VERSIONED:
            version, rest = (*one.argument.split(None, 1), "", "")[:2]
            return self._with(one, f"{VERSIONED[one.name]} {version}: {rest}".rstrip(": "), depth)
        if one.name in ADMONITIONS:
            return self._with(one, f"**{one.name.capitalize()}**\n\n{one.argument}".rstrip(), depth)
        if one.name in TITLED or one.name in ("sidebar", "margin", "table"):
            return self._with(one, f"**{one.argument}**" if one.argument else "", depth)
        if OBJECTS.fullmatch(one.name):
            return self._object(one, depth)
        return self.lines(_without_rules(one.body), depth + 1)

    def _with(self, one: _Directive, lead: str, depth: int) -> Lines:
        return [*self._prose(_at(one, [lead, ""])), *self.lines(_without_rules(one.body), depth + 1)]

    def _context(self, one: _Directive) -> Lines:
        kind = one.name.rpartition(":")[2]
        if kind in ("module", "currentmodule"):
            self._module = "" if one.argument == "None" else one.argument
        elif kind == "program":
            self._program = "-".join(one.argument.split())
        return _at(one, [_anchors([f"module-{one.argument}"]), ""]) if kind == "module" else []

    def _object(self, one: _Directive, depth: int) -> Lines:
        is_python = one.name.rpartition(":")[0] in ("", "py")
        above = ".".join(filter(None, (self._module, *self._classes))) if is_python else ""
        ids = object_ids(one.name, [one.argument], program=self._program, above=above)
        signature = shown_signature(one.name, one.argument, "" if any(self._classes) else self._module)
        head = _at(one, [_anchors(ids), "", f"`{signature}`", ""])
        self._classes.append(signature_name(one.argument) if is_python else "")
        try:
            return [*head, *self.lines(one.body, depth + 1)]
        finally:
            self._classes.pop()

    def _rst(self, one: _Directive, _depth: int, text: str | None = None) -> Lines:
        from service.retrieval.readers.sphinx.rst import parse_rst  # late, as in ``pages``: docutils takes 8 MB

        text = one.text if text is None else text
        if self._module:
            text = f".. currentmodule:: {self._module}\n\n{text}"
        module = re.findall(r"^\.\. (?:py:)?(?:current)?module:: (\S+)", text, re.MULTILINE)
        self._module = module[-1] if module else self._module
        facts = self._page.facts
        page = parse_rst(text.encode(), self._page.name, self._files.data, facts, page=self._page.name)
        if isinstance(page, Skipped):
            return []
        title = [f"**{page.title}**", ""] if page.title else []
        return _at(one, [_anchors(sorted(page.anchors)), "", *title, *page.content.split("\n")])

    def _include(self, one: _Directive, depth: int) -> Lines:
        text = self._read(one)
        if "literal" in one.options or "code" in one.options:
            return _at(one, [fenced(text, one.options.get("code", ""))]) if text else []
        if not is_markdown(one.argument) and (one.argument.endswith(".rst") or "rst" in one.options.get("parser", "")):
            return self._rst(one, depth, text) if text else []
        return self.lines([(one.number, line) for line in text.split("\n")], depth + 1)

    def _literal_include(self, one: _Directive, _depth: int) -> Lines:
        text = self._read(one)
        caption = [f"**{one.options['caption'] or one.argument}**", ""] if "caption" in one.options else []
        suffix = one.argument.rpartition(".")[2] if "." in one.argument else ""
        language = one.options.get("language") or ("python" if suffix == "py" else suffix)
        return _at(one, [*caption, fenced(text, language)]) if text else []

    def _read(self, one: _Directive) -> str:
        lines = self._files.lines(one.argument) if one.argument else None
        return selected("\n".join(lines), one.options) if lines is not None else ""

    def _only(self, one: _Directive, depth: int) -> Lines:
        return self.lines(one.body, depth + 1) if is_shown(one.argument) else []

    def _see_also(self, one: _Directive, depth: int) -> Lines:
        return self._with(one, f"See also: {one.argument}".rstrip(), depth)

    def _image(self, one: _Directive, depth: int) -> Lines:
        image = _at(one, [f"![{one.options.get('alt', '')}]({one.argument})", ""])
        return [*image, *self.lines(one.body, depth + 1)]

    def _button(self, one: _Directive, depth: int) -> Lines:
        return self.lines(one.body, depth + 1) if one.text.strip() else _at(one, [one.argument])

    def _raw(self, one: _Directive, _depth: int) -> Lines:
        return one.body if one.argument == "html" else []

    def _glossary(self, one: _Directive, depth: int) -> Lines:
        found: Lines = []
        definition: Lines = []
        for number, line in one.body:
            if not line.strip() or line[0].isspace() or line.startswith(": "):
                definition.append((number, line.removeprefix(": ").strip()))
                continue
            found += self.lines(definition, depth + 1)
            definition = []
            term = line.partition(" : ")[0].strip()
            found += [(number, text) for text in ("", _anchors([identifier("term", term)]), "", f"**{term}**", "")]
        return found + self.lines(definition, depth + 1)

    def _list_table(self, one: _Directive, _depth: int) -> Lines:
        rows: list[list[str]] = []
        for _, line in self._prose(one.body):
            cell = _CELL.match(line.strip())
            if cell is not None and cell[1] is not None:
                rows.append([cell[2]])
            elif cell is not None and rows:
                rows[-1].append(cell[2])
            elif line.strip() and rows:
                rows[-1][-1] += f" {line.strip()}"
        return _at(one, [*_title(one), *_table(rows)])

    def _csv_table(self, one: _Directive, _depth: int) -> Lines:
        lines = self._files.lines(one.options["file"]) if one.options.get("file") else None
        body = lines if lines is not None else [line for _, line in self._prose(one.body) if line.strip()]
        head = [one.options["header"]] if one.options.get("header") else []
        try:
            rows = list(
                csv.reader([*head, *body], skipinitialspace=True, delimiter=one.options.get("delim", ",")[:1] or ",")
            )
        except csv.Error:
            rows = []
        return _at(one, [*_title(one), *_table(rows)])


def _closing(lines: Lines, at: int, mark: str) -> int:
    """Return the line that ends a fence, or the last one."""
    return next((number for number in range(at + 1, len(lines)) if is_closing(lines[number][1], mark)), len(lines) - 1)


def _options(body: Lines) -> tuple[Mapping[str, str], Lines]:
    """Return the options at the head of a directive, as ``:name: value`` or YAML between ``---``, and its content."""
    options: dict[str, str] = {}
    at = 0
    if body and body[0][1].strip() == "---":
        end = next((number for number in range(1, len(body)) if body[number][1].strip() == "---"), 0)
        for _, line in body[1:end]:
            name, _, value = line.partition(":")
            options[name.strip()] = value.strip().strip("\"'")
        at = end + 1
    else:
        while at < len(body) and (option := _OPTION.match(body[at][1])) is not None:
            options[option[1]] = (option[2] or "").strip()
            at += 1
    return options, body[at:]


def _at(one: _Directive, texts: Sequence[str]) -> Lines:
    return [(one.number, line) for text in texts for line in text.split("\n")]


def _without_rules(body: Lines) -> Lines:
    """Cards have lines of signs between their head, body and foot."""
    return [(number, "" if re.fullmatch(r"\^{3,}|\+{3,}", line.strip()) else line) for number, line in body]


def _anchors(ids: Sequence[str]) -> str:
    return "".join(f'<a id="{one}"></a>' for one in ids if one and '"' not in one and "<" not in one)


def _title(one: _Directive) -> Iterator[str]:
    if one.argument:
        yield from (f"**{one.argument}**", "")


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [lines[0], "|" + " --- |" * max(len(cells[0]), 1), *lines[1:]]


_SIGNS = re.compile(r"\{|\[\]\(|\[\^|^[ \t]*(?:\(|%|\+\+\+|: )", re.MULTILINE)
_SPECIAL: Mapping[str, Callable[[_Reader, _Directive, int], Lines]] = {
    "eval-rst": _Reader._rst,
    "include": _Reader._include,
    "literalinclude": _Reader._literal_include,
    "only": _Reader._only,
    "seealso": _Reader._see_also,
    "image": _Reader._image,
    "figure": _Reader._image,
    "button-link": _Reader._button,
    "button-ref": _Reader._button,
    "raw": _Reader._raw,
    "glossary": _Reader._glossary,
    "list-table": _Reader._list_table,
    "csv-table": _Reader._csv_table,
}
