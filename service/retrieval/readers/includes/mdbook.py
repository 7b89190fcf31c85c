"""Files that pages of mdBook show, by ``{{#include file.rs:2:10}}``, ``{{#rustdoc_include …}}``, ``{{#playground …}}``
(rust-lang.github.io/mdBook/format/mdbook.html). ``\\{{#include}}`` shows the words themselves.
"""

import re
from collections.abc import Iterator, Sequence
from posixpath import dirname, normpath

from service.markup.dialects.dialect import Dialect
from service.markup.fences import fenced
from service.retrieval.readers.includes.files import Files
from service.retrieval.readers.includes.mkdocs import Lines

MAX_DEPTH = 10
_CALL = re.compile(r"\\?\{\{#(?P<what>\w{1,30})[ \t]{1,20}(?P<named>[^{}\n]{1,500})\}\}")
_ANCHOR = re.compile(r"ANCHOR(?P<end>_END)?:\s{0,20}(?P<name>[\w-]+)")


def files_in_calls(lines: Lines, files: Files, dialect: Dialect) -> Lines:
    """Put the lines of files where calls name them."""
    if not dialect.book:
        return lines
    found: Lines = []
    for number, line in lines:
        found += ((number, each) for each in _shown(line, files, "", 0))
    return found


def _shown(line: str, files: Files, folder: str, depth: int) -> list[str]:
    if "{{#" not in line:
        return [line]
    shown: list[str] = []
    text, at = "", 0
    for call in _CALL.finditer(line):
        if call[0].startswith("\\"):
            text, at = text + line[at : call.start()] + call[0][1:], call.end()
            continue
        pieces = _part(call["what"], call["named"].strip(), files, folder, depth) or [""]
        whole = [text + line[at : call.start()] + pieces[0], *pieces[1:]]
        shown += whole[:-1]
        text, at = whole[-1], call.end()
    return [*shown, text + line[at:]]


def _part(what: str, named: str, files: Files, folder: str, depth: int) -> list[str]:
    """Return the lines that a call stands for; none for calls that show nothing, such as ``title``."""
    if what not in ("include", "rustdoc_include", "playground", "playpen") or depth >= MAX_DEPTH:
        return []
    path, _, part = (named.split() or [""])[0].partition(":")
    name = normpath(f"{folder}/{path}") if folder else path
    lines = files.lines(name) if path else None
    if lines is None:
        return []
    chosen = list(_chosen(lines, part))
    if what in ("playground", "playpen"):
        return fenced("\n".join(chosen), "rust").split("\n")
    return [each for line in chosen for each in _shown(line, files, dirname(name), depth + 1)]


def _chosen(lines: Sequence[str], part: str) -> Iterator[str]:
    """Yield the lines of ``2``, ``2:10``, ``:10``, ``2:`` or between the marks of an anchor, and no marks."""
    first, colon, last = part.partition(":")
    if first and not first.isdecimal():
        yield from _anchored(lines, first)
        return
    begin = max(int(first[:7] or 1), 1) - 1
    end = int(last[:7]) if last.isdecimal() else None if colon or not first else begin + 1
    yield from (line for line in lines[begin:end] if _ANCHOR.search(line) is None)


def _anchored(lines: Sequence[str], name: str) -> Iterator[str]:
    inside = False
    for line in lines:
        mark = _ANCHOR.search(line)
        if mark is None:
            if inside:
                yield line
        elif mark["name"] == name:
            inside = mark["end"] is None
            if not inside:
                return
