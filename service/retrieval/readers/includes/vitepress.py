"""Files that pages of VitePress show: Markdown that stands where ``<!--@include: ./part.md{1,9}-->`` names it, and code
by ``<<< @/file.ts#region{3,5 ts} [title]`` (vitepress.dev/guide/markdown). Numbers in the second are lines to colour.

Regions stand between the comments ``#region name`` and ``#endregion name``, in the manner of many languages.
In Markdown the name may be the anchor of a heading.
"""

import re
from collections.abc import Sequence
from posixpath import dirname, normpath

from service.markup.blocks import blocks_of
from service.markup.dialects.dialect import Dialect
from service.markup.fences import fenced
from service.markup.front_matter import lines_of
from service.markup.prose import unmarked
from service.markup.slugs import Anchors
from service.retrieval.readers.includes.files import Files
from service.retrieval.readers.includes.mkdocs import Lines

MAX_DEPTH = 5
"""Files within files."""
MAX_NAMED = 1_000
"""Characters of a line that names a file."""

_COMMENT = re.compile(r"<!--\s{0,20}@include:\s{0,20}(?P<target>[^\n]{1,500}?)\s{0,20}-->")
_RANGE = re.compile(r"\{(\d{0,7}),(\d{0,7})\}$")
_REGION = re.compile(r"#([\w-]+)$")
_HEADING_ID = re.compile(r"\{#([^\s{}]++)[^{}]*+\}\s*+$")
_TITLE = re.compile(r" ?\[([^\[\]\n]+)\]$")
_BRACES = re.compile(r" ?\{([^{}\n]*)\}$")
_LANGUAGE = re.compile(r"(?:\d[\d,-]*)? ?([A-Za-z][\w+-]*)?")
_MARKS = (
    re.compile(r"// ?#?((?:end)?region) ([\w*-]+)"),
    re.compile(r"/\* ?#((?:end)?region) ([\w*-]+) ?\*/"),
    re.compile(r"#pragma ((?:end)?region) ([\w*-]+)"),
    re.compile(r"<!-- #?((?:end)?region) ([\w*-]+) -->"),
    re.compile(r"#((?:End )?Region) ([\w*-]+)"),
    re.compile(r"::#((?:end)?region) ([\w*-]+)"),
    re.compile(r"# ?((?:end)?region) ([\w*-]+)"),
)


def markdown_files(lines: Lines, files: Files, dialect: Dialect) -> Lines:
    """Put the lines of Markdown files where comments name them."""
    if not dialect.vue:
        return lines
    found: Lines = []
    for number, line in lines:
        if "@include:" in line:
            found += ((number, each) for each in _included(line, files, "", 0))
        else:
            found.append((number, line))
    return found


def _included(line: str, files: Files, folder: str, depth: int) -> list[str]:
    """Return a line with what it names: a file that does not exist is a comment, which no reader sees."""
    shown: list[str] = []
    at = 0
    text = ""
    for comment in _COMMENT.finditer(line):
        part = _part(comment["target"], files, folder, depth)
        if part is not None:
            pieces = [text + line[at : comment.start()] + (part[0] if part else ""), *part[1:]]
            shown += pieces[:-1]
            text, at = pieces[-1], comment.end()
    return [*shown, text + line[at:]]


def _part(target: str, files: Files, folder: str, depth: int) -> list[str] | None:
    lines_wanted = _RANGE.search(target)
    target = target[: lines_wanted.start()] if lines_wanted is not None else target
    region = _REGION.search(target)
    target = target[: region.start()] if region is not None else target
    name = _name(target, folder)
    lines = files.lines(name) if depth < MAX_DEPTH else None
    if lines is None:
        return None
    if region is not None:
        lines = _between_marks(lines, region[1]) or _below_heading(lines, region[1]) or lines
    if lines_wanted is not None:
        first, last = lines_wanted.groups()
        lines = lines[max(int(first or 1), 1) - 1 : int(last) if last else None]
    if region is None and lines_wanted is None and name.endswith(".md"):
        lines = lines[lines_of("\n".join(lines)) :]
    inner = dirname(name)
    return [each for line in lines for each in (_included(line, files, inner, depth + 1) if "@in" in line else [line])]


def _name(target: str, folder: str) -> str:
    """Return a file's name for the page, of a name in a file of this folder; ``@`` is the site's folder of pages."""
    if target.startswith("@") or not folder:
        return target
    return normpath(f"{folder}/{target}")


def code_files(lines: Lines, files: Files, dialect: Dialect) -> Lines:
    """Put blocks of code where ``<<<`` names their files; a line that names none that exists is left out."""
    if not dialect.vue:
        return lines
    code = _lines_of_code([line for _, line in lines])
    found: Lines = []
    for at, (number, line) in enumerate(lines):
        words = line.lstrip(" \t>")
        if not words.startswith("<<<") or words.startswith("<<<<") or at in code or len(line) > MAX_NAMED:
            found.append((number, line))
            continue
        indent = line[: len(line) - len(words)]
        found += ((number, each) for each in files.indented(_block(words[3:].strip(), files), indent))
    return found


def _lines_of_code(lines: Sequence[str]) -> set[int]:
    blocks = blocks_of("\n".join(lines))
    return {line for block in blocks if block.kind in ("fence", "code") for line in range(block.first, block.after)}


def _block(named: str, files: Files) -> list[str]:
    title = _TITLE.search(named)
    named = named[: title.start()] if title is not None else named
    braces = _BRACES.search(named)
    named = named[: braces.start()] if braces is not None else named
    region = _REGION.search(named)
    named = named[: region.start()] if region is not None else named
    lines = files.lines(named.strip())
    if lines is None:
        return []
    if region is not None:
        lines = _dedented(_between_marks(lines, region[1])) or lines
    wanted = _LANGUAGE.match(braces[1]) if braces is not None else None
    language = (wanted and wanted[1]) or named.rpartition("/")[2].rpartition(".")[2]
    info = f"{language} [{title[1]}]" if title is not None else language
    return fenced("\n".join(lines), info).split("\n")


def _between_marks(lines: Sequence[str], name: str) -> list[str]:
    """Return the lines of a region, without the marks of others in it."""
    for first, line in enumerate(lines):
        for mark in _MARKS:
            begin = mark.fullmatch(line.strip())
            if begin is None or begin[2] != name or begin[1].lower() != "region":
                continue
            kept: list[str] = []
            for following in lines[first + 1 :]:
                found = mark.fullmatch(following.strip())
                if found is None:
                    kept.append(following)
                elif found[2] == name and found[1].lower().startswith("end"):
                    return kept
            return kept
    return []


def _below_heading(lines: list[str], anchor: str) -> list[str]:
    """Return the lines below the heading with an anchor, up to the next that is as high (VitePress 2)."""
    anchors = Anchors("vitepress")
    level = first = 0
    for block in blocks_of("\n".join(lines)):
        if block.kind != "heading":
            continue
        if level and block.level <= level:
            return lines[first : block.first]
        custom = _HEADING_ID.search(block.text)
        found = custom[1] if custom is not None else anchors.of(unmarked(block.text))
        if not level and found == anchor:
            level, first = block.level, block.after
    return lines[first:] if level else []


def _dedented(lines: Sequence[str]) -> list[str]:
    least = min((len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()), default=0)
    return [line[least:] for line in lines]
