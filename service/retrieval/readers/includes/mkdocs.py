"""How pages of MkDocs name other files.

- pymdownx.snippets (facelessuser.github.io/pymdown-extensions/extensions/snippets): ``--8<-- "file"`` on a line, or the
  names of files between two lines ``--8<--``; ``file:3:9`` lines, ``file:name`` a section of it, ``;`` for none.
- mdx_include and markdown-include: ``{! file !}``, with ``[ln:1-3,5]`` and ``>`` for the indentation of the line.
- mkdocs-include-markdown-plugin and mkdocs-macros: ``{% include-markdown "file" start="…" heading-offset=1 %}``.
- markdown-include-variants: ``{* file ln[1:3] hl[2] *}`` shows a program as code, with what it leaves out said.
"""

import re
from collections.abc import Sequence
from textwrap import dedent

from service.markup.dialects.dialect import PYTHON_MARKDOWN, Dialect
from service.markup.fences import fenced
from service.markup.front_matter import split_front_matter
from service.markup.pages import is_markdown
from service.retrieval.readers.includes.files import Files, chosen_lines, number_in, separated

MAX_NESTED = 10
Line = tuple[int, str]
"""Number of the line in the page's file, from 0, and its text."""
Lines = list[Line]

_SCISSORS = re.compile(
    r"(?P<space>[ \t]*)(?P<escape>;*)-+8<-+(?:[ \t]+(?P<quote>[\"'])(?P<name>[^\n]{1,500}?)(?P=quote)[ \t]*)?$"
)
_SECTION_MARK = re.compile(
    r"(?:(?<!;)(;++)|(?<![;-]))-++8<-++[ \t]++\[[ \t]*+(start|end)[ \t]*+:[ \t]*+([a-z][-_0-9a-z]*+)[ \t]*+\]",
    re.IGNORECASE,
)
_RANGES = re.compile(r"(?::-?\d*+){1,2}+(?:,-?\d*+(?::-?\d*+)?+){0,100}+$")
_SECTION = re.compile(r":([A-Za-z][-_0-9A-Za-z]*)$")
_BRACES = re.compile(
    r"(?P<escape>\\?)\{![+-]?>?[ \t]*+(?P<name>[^\]|\[\n!]{1,500}+)(?:\[ln:(?P<lines>[\d.,-]{1,200})\])?[ \t]*+"
    r"(?:\|[^\n!]{0,50})?!\}"
)
_CALL = re.compile(
    r"(?P<before>[^\n]*?)\{%-?\s*include(?:-markdown)?\s+(?P<quote>[\"'])(?P<name>[^\"'\n]{1,500})(?P=quote)"
    r"(?P<options>(?:[^%]|%(?!\})){0,2000})%\}(?P<rest>.*)",
    re.DOTALL,
)
_CALL_OPTION = re.compile(r"(?<![\w-])([\w-]++)\s*+=\s*+(?:\"([^\"]{0,300})\"|'([^']{0,300})'|(-?\w+))")
_OFFSET = re.compile(r"-?[0-9]{1,2}")
_HEADING = re.compile(r"(#{1,6})(?=[ \t])")
MAX_CALL_LINES = 20
_CODE_FILE = re.compile(r"(?P<space>[ \t]*)\{\*[ \t]*(?P<name>[^\s*]{1,500}+)(?P<options>[^\n]{0,500}?)\*\}[ \t]*$")
_OPTION = re.compile(r"(?<!\w)(\w++)\[([^\]]{1,300})\]")


def snippets(lines: Lines, files: Files, dialect: Dialect) -> Lines:
    """Put the files of pymdownx.snippets where they are named."""
    return _Snippets(files, dialect).shown(lines, (), is_section=False)


class _Snippets:
    def __init__(self, files: Files, dialect: Dialect) -> None:
        self._files, self._is_python = files, dialect.slugs in PYTHON_MARKDOWN

    def shown(self, lines: Lines, above: tuple[str, ...], *, is_section: bool) -> Lines:
        found: Lines = []
        in_block = False
        for number, line in lines:
            match = _SCISSORS.match(line) if "8<-" in line else None
            if match is None and not in_block:
                kept = line if is_section or "8<-" not in line else _without_mark(line)
                if kept is not None:
                    found.append((number, kept))
            elif match is not None and match["escape"]:
                found.append((number, line.replace(";", "", 1)))
            elif match is None:
                name = line.strip()
                indent = line[: len(line) - len(line.lstrip())]
                found += self._file(name, indent, number, above) or [] if name else [(number, "")]
            elif match["name"] is None:
                in_block = not in_block
            elif not in_block:
                shown = self._file(match["name"].strip(), match["space"], number, above)
                found += shown if shown is not None else [] if self._is_python else [(number, line)]
        return found

    def _file(self, name: str, indent: str, number: int, above: tuple[str, ...]) -> Lines | None:
        """Return the lines of a file as its name says which; None where it is not found."""
        if name.startswith(";"):
            return []
        ranges, section = _RANGES.search(name), _SECTION.search(name)
        file = name[: (ranges or section or re.search("$", name)).start()]  # type: ignore[union-attr]  # "$" fits
        lines = self._files.lines(file) if file and file not in above and len(above) < MAX_NESTED else None
        if lines is None:
            return None
        if ranges is not None:
            whole = lines
            lines = _dedented(chosen_lines(_range(whole, one) for one in separated(ranges[0][1:])))
        elif section is not None:
            lines = _dedented(_section(lines, section[1]))
        elif is_markdown(file):
            lines = _without_front_matter(lines)
        nested = self.shown([(number, line) for line in lines], (*above, file), is_section=section is not None)
        return [(number, line) for line in self._files.indented([line for _, line in nested], indent)]


def _without_mark(line: str) -> str | None:
    """Return a line that is not the mark of a section; None for a mark."""
    mark = _SECTION_MARK.search(line)
    if mark is None:
        return line
    return line[: mark.start()] + line[mark.start() + 1 :] if mark[1] else None


def _range(lines: Sequence[str], written: str) -> Sequence[str]:
    """``3:9``, ``3``, ``:9`` or ``-3:-1``: lines from 1, or from the end."""
    first, _, last = written.partition(":")
    start = number_in(first) if first not in ("", "-") else 1
    end = number_in(last) if last not in ("", "-") else None
    begin = max(len(lines) + start, 0) if start < 0 else max(start - 1, 0)
    return lines[begin : max(len(lines) + 1 + end, 0) if end is not None and end < 0 else end]


def _section(lines: Sequence[str], name: str) -> list[str]:
    found: list[str] = []
    is_inside = False
    for line in lines:
        mark = _SECTION_MARK.search(line)
        if mark is None or mark[1]:
            if is_inside:
                found.append(line if mark is None else line[: mark.start()] + line[mark.start() + 1 :])
        elif mark[3] == name:
            if mark[2].lower() == "end":
                break
            is_inside = True
    return found


def _dedented(lines: Sequence[str]) -> list[str]:
    """Return the lines without the indentation that all of them have, so that code in a list can be shown anywhere."""
    return dedent("\n".join(lines)).split("\n") if lines else []


def _without_front_matter(lines: list[str]) -> list[str]:
    text = "\n".join(lines)
    return text[split_front_matter(text)[1] :].split("\n") if text.startswith("---") else lines


def files_in_braces(lines: Lines, files: Files, dialect: Dialect) -> Lines:
    """Put the files of ``{! file !}`` where they are named; one that does not exist leaves nothing in MkDocs."""
    return _in_braces(lines, files, dialect, ())


def _in_braces(lines: Lines, files: Files, dialect: Dialect, above: tuple[str, ...]) -> Lines:
    found: Lines = []
    for number, line in lines:
        texts, at = [""], 0
        for match in _BRACES.finditer(line) if "{!" in line else ():
            texts[-1] += line[at : match.start()]
            at = match.end()
            shown = _file_in_braces(match, files, dialect, above)
            indent = texts[-1] if not texts[-1].strip() else ""
            texts[-1] += shown[0]
            texts += files.indented(shown[1:], indent)
        texts[-1] += line[at:]
        found += [(number, text) for text in texts]
    return found


def _file_in_braces(match: re.Match[str], files: Files, dialect: Dialect, above: tuple[str, ...]) -> list[str]:
    """Return at least one line."""
    if match["escape"]:
        return [match[0][1:]]
    name = match["name"].strip()
    lines = files.lines(name) if name not in above and len(above) < MAX_NESTED else None
    if lines is None:
        return ["" if dialect.slugs in PYTHON_MARKDOWN else match[0]]
    if match["lines"]:
        lines = _slices(lines, match["lines"])
    elif is_markdown(name):
        lines = _without_front_matter(lines)
    return [text for _, text in _in_braces([(0, line) for line in lines], files, dialect, (*above, name))] or [""]


def _slices(lines: Sequence[str], written: str) -> list[str]:
    """``1-3,5``: lines from 1. What mdx_include allows besides (columns, steps backwards) shows the lines."""

    def part(one: str) -> Sequence[str]:
        first, dash, last = re.sub(r"\.\d*", "", one).partition("-")
        start = number_in(first) if first.isdecimal() else 1
        end = number_in(last) if last.isdecimal() else len(lines) if dash else start
        return lines[max(start - 1, 0) : end]

    return chosen_lines(map(part, separated(written)))


def files_in_calls(lines: Lines, files: Files, dialect: Dialect) -> Lines:
    """Put the files of ``{% include-markdown "file" %}`` where they are named; a missing one leaves nothing."""
    return _in_calls(lines, files, ()) if dialect.slugs in PYTHON_MARKDOWN else lines


def _in_calls(lines: Lines, files: Files, above: tuple[str, ...]) -> Lines:
    found: Lines = []
    at = 0
    while at < len(lines):
        number, line = lines[at]
        at += 1
        if "{%" not in line or "include" not in line + (lines[at][1] if at < len(lines) else ""):
            found.append((number, line))
            continue
        after = next(
            (one for one in range(at - 1, min(at + MAX_CALL_LINES, len(lines))) if "%}" in lines[one][1]), at - 1
        )
        match = _CALL.fullmatch("\n".join(text for _, text in lines[at - 1 : after + 1]))
        if match is None:
            found.append((number, line))
            continue
        at = after + 1
        shown = files.indented(_called(match, files, above), match["before"])
        shown[-1] += match["rest"].rstrip()
        found += [(number, text) for text in shown]
    return found


def _called(match: re.Match[str], files: Files, above: tuple[str, ...]) -> list[str]:
    """Return at least one line."""
    name = match["name"]
    lines = files.lines(name) if name not in above and len(above) < MAX_NESTED else None
    if lines is None:
        return [""]
    options = {key: one or other or bare for key, one, other, bare in _CALL_OPTION.findall(match["options"])}
    text = "\n".join(_without_front_matter(lines) if is_markdown(name) else lines)
    start, end = (options.get(key, "").replace("\\n", "\n") for key in ("start", "end"))
    text = text.partition(start)[2] if start and start in text else text
    text = text.partition(end)[0] if end else text
    text = dedent(text) if options.get("dedent") == "true" else text
    offset = int(options["heading-offset"]) if _OFFSET.fullmatch(options.get("heading-offset", "")) else 0
    nested = [one for _, one in _in_calls([(0, line) for line in text.strip("\n").split("\n")], files, (*above, name))]
    if offset:
        nested = [
            _HEADING.sub(lambda mark: "#" * min(max(len(mark[1]) + offset, 1), 6), one, count=1) for one in nested
        ]
    return nested


def code_files(lines: Lines, files: Files, dialect: Dialect) -> Lines:
    """Show the programs of ``{* file *}`` as code: the lines that it names, else the whole file."""
    found: Lines = []
    for number, line in lines:
        match = _CODE_FILE.match(line) if "{*" in line else None
        shown = files.lines(match["name"]) if match is not None else None
        if match is None or (shown is None and dialect.slugs not in PYTHON_MARKDOWN):
            found.append((number, line))
        elif shown is not None:
            options = dict(_OPTION.findall(match["options"]))
            suffix = match["name"].rpartition(".")[2]
            title = options.get("title", "").strip("\"'")
            code = _with_gaps(shown, options.get("ln", ""))
            head = [f"**{title}**", ""] if title else []
            block = ["", *head, *fenced("\n".join(code), "python" if suffix == "py" else suffix).split("\n"), ""]
            found += [(number, text) for text in files.indented(block, match["space"])]
    return found


def _with_gaps(lines: Sequence[str], written: str) -> list[str]:
    """``1:3,7``: lines from 1; ``0:0`` stands for all of them."""
    ranges = sorted(
        (number_in(first), number_in(last or first))
        for first, _, last in (one.strip().partition(":") for one in separated(written))
        if first.strip().isdecimal() and (not last or last.strip().isdecimal())
    )
    if not ranges or ranges == [(0, 0)]:
        return list(lines)
    parts: list[Sequence[str]] = [["# Code above omitted", ""]] if ranges[0][0] > 1 else []
    for index, (first, last) in enumerate(ranges):
        parts += [["", "# Code here omitted", ""]] if index else []
        parts.append(lines[max(first - 1, 0) : last])
    found = chosen_lines(parts)
    return [*found, "", "# Code below omitted"] if ranges[-1][1] < len(lines) else found
