"""Classify each line of a page: prose, a heading, code, HTML, or something that no reader sees.

markdown-it finds the blocks; its inline half is left off, which makes it twice as fast. MDX
(mdxjs.com/docs/what-is-mdx) has no indented code and no HTML blocks: a tag is alone on its lines, ``import`` and
``export`` are at the margin and end at a blank line at the earliest, comments are ``{/* */}``. Docusaurus reads ``.md``
as MDX too.

The time is linear in the size of the text: containers nest 20 deep at most, deeper text stays text, and a missing end
is searched for once.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock, html_block
from msgspec import Struct

from service.markup.dialects.dialect import PYTHON_MARKDOWN, Dialect
from service.markup.parsers import prepared
from service.markup.syntax import COMMENTS, ESM, TAG

MAX_NESTING = 20
_INDENTED_PROSE = re.compile(r"^[ \t]*(?:(?:!!!|\?\?\?\+?)[ \t]+\w|===[!+]?[ \t]+[\"'])", re.MULTILINE)
_RULES_ENDED: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote"]}
_MAY_BE_CODE = re.compile(r"```|~~~| {4}|\t")
_FENCE_END = re.compile(r"[ \t>]*(?P<mark>`{3,}|~{3,})[ \t]*")


class Block(Struct, frozen=True, gc=False):
    kind: Literal["text", "heading", "fence", "code", "html", "unseen"]
    """``code`` is code by its indentation. ``unseen``: comments, and what MDX imports and exports."""
    first: int
    """Lines count from 0."""
    after: int
    depth: int
    """0 for a block of the page itself; more for one in a list or quote."""
    text: str = ""
    """The text of prose and headings, without the marks of containers; the content of code."""
    level: int = 0
    """Level of a heading, from 1."""
    mark: str = ""
    """The run that opens a fence."""
    info: str = ""
    """Behind that run."""


def is_loose(text: str, dialect: Dialect, *, mdx: bool) -> bool:
    """Return whether what is indented is prose: in MDX, and in the boxes and tabs of pymdownx."""
    return mdx or (dialect.slugs in PYTHON_MARKDOWN and _INDENTED_PROSE.search(text) is not None)


def blocks_of(text: str, *, mdx: bool = False, loose: bool = False) -> list[Block]:
    """Return the blocks that hold something, in order; ``text`` has LF for line ends and no front matter."""
    tokens = _parser(loose=loose).parse(text, {"mdx": mdx})
    found: list[Block] = []
    for index, token in enumerate(tokens):
        if token.map is None:
            continue
        first, after = token.map
        match token.type:
            case "inline":
                opened = tokens[index - 1]
                level = int(opened.tag[1]) if opened.type == "heading_open" else 0
                if level and opened.map is not None:
                    first, after = opened.map  # with the line below the words that makes them a heading
                kind: Literal["text", "heading"] = "heading" if level else "text"
                found.append(Block(kind, first, after, opened.level, token.content, level))
            case "fence":
                found.append(Block("fence", first, after, token.level, token.content, 0, token.markup, token.info))
            case "code_block":
                found.append(Block("code", first, after, token.level, token.content))
            case "html_block":
                found.append(Block("html", first, after, token.level))
            case "unseen":
                found.append(Block("unseen", first, after, token.level))
    return found


def has_code(text: str) -> bool:
    """Return whether a text, not of MDX, has a block of code."""
    if _MAY_BE_CODE.search(text) is None:  # most texts: to read a long list takes a millisecond
        return False
    return any(block.kind in ("fence", "code") for block in blocks_of(text))


def unclosed_fence(text: str, blocks: Sequence[Block]) -> Block | None:
    """Return the fence that swallows the end of the text because no line closes it."""
    last = next((block for block in reversed(blocks)), None)
    if last is None or last.kind != "fence":
        return None
    lines = text.rstrip().split("\n")
    end = _FENCE_END.fullmatch(lines[-1]) if last.first < len(lines) - 1 else None
    return None if end is not None and end["mark"].startswith(last.mark) else last


@cache
def _parser(*, loose: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).disable(["inline", "text_join", "reference"])
    rules = parser.block.ruler
    if loose:
        parser.disable(["code"])
        rules.at("paragraph", _paragraph)
    rules.at("html_block", _tag if loose else _html, _RULES_ENDED)
    rules.before("fence", "comment", _comment, _RULES_ENDED)
    rules.before("fence", "esm", _esm, _RULES_ENDED)
    return prepared(parser)


def _paragraph(state: StateBlock, first: int, _last: int, _silent: bool) -> bool:
    """Read a paragraph as markdown-it does, except that a line may end it however far it is indented."""
    ending = state.md.block.ruler.getRules("paragraph")
    after = first + 1
    while after < state.lineMax and not state.isEmpty(after):
        if state.sCount[after] >= 0 and any(rule(state, after, state.lineMax, True) for rule in ending):
            break
        after += 1
    state.line = after
    state.push("paragraph_open", "p", 1).map = [first, after]
    inline = state.push("inline", "", 0)
    inline.content, inline.map = state.getLines(first, after, state.blkIndent, False).strip(), [first, after]
    state.push("paragraph_close", "p", -1)
    return True


def _line(state: StateBlock, line: int) -> tuple[int, str]:
    start = state.bMarks[line] + state.tShift[line]
    return start, state.src[start : state.eMarks[line]]


def _push(state: StateBlock, kind: str, first: int, after: int) -> bool:
    state.line = after
    state.push(kind, "", 0).map = [first, after]
    return True


def _html(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Read HTML as CommonMark does (0.31, section 4.6), but for a comment without an end, which is text."""
    at = state.bMarks[first] + state.tShift[first]
    return not state.src.startswith("<!--", at) and html_block(state, first, last, silent)


def _tag(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """One or more tags that have their lines for themselves."""
    at = state.bMarks[first] + state.tShift[first]
    if not state.src.startswith("<", at):
        return False
    end, limit = at, state.eMarks[last - 1]
    while (found := TAG.match(state.src, end, limit)) is not None:
        end = found.end()
    after = _after(state, first, last, end)
    if end == at or state.src[end : state.eMarks[after - 1]].strip():
        return False
    return silent or _push(state, "html_block", first, after)


def _comment(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A comment that begins a line. In MDX, prose may follow on that line; CommonMark takes that for HTML."""
    if state.is_code_block(first):
        return False
    at = state.bMarks[first] + state.tShift[first]
    if not state.src.startswith(("<!--", "{"), at):
        return False
    opening = next((opening for opening in COMMENTS if state.src.startswith(opening, at)), None)
    if opening is None:
        return False
    end = _end_of_comment(state, opening, at, state.eMarks[last - 1])
    if end < 0:
        return False
    after = _after(state, first, last, end)
    has_more = bool(state.src[end : state.eMarks[after - 1]].strip())
    if has_more and after == first + 1 and opening != "<!--":
        return False  # prose with a comment in it
    if has_more and after == first + 1 and not state._code_enabled:
        return False
    return silent or _push(state, "html_block" if has_more else "unseen", first, after)


def _end_of_comment(state: StateBlock, opening: str, at: int, limit: int) -> int:
    """The place behind a comment; -1 when it has no end. That is looked for once."""
    endless: set[tuple[str, int]] = state.env.setdefault("endless", set())
    if (opening, limit) in endless:
        return -1
    closing = COMMENTS[opening]
    end = state.src.find(closing, at + len(opening), limit)
    if end < 0:
        endless.add((opening, limit))
        return -1
    return end + len(closing)


def _after(state: StateBlock, first: int, last: int, end: int) -> int:
    """The line after the one that a place is on."""
    line = first
    while line + 1 < last and state.eMarks[line] < end:
        line += 1
    return line + 1


def _esm(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    start = state.bMarks[first]
    if state.src[start : start + 6] not in ("import", "export") or state.level or state.env.get("endless_esm"):
        return False
    _, line = _line(state, first)
    mdx = state.env["mdx"]
    if not ESM.match(line) or not (mdx or line.rstrip(";").endswith(("'", '"'))):
        return False
    braces = _braces(line)
    goes_on = braces > 0 or (mdx and line.startswith("import") and not line.rstrip("; ").endswith(("'", '"')))
    after = first + 1
    while goes_on and after < last:
        line = state.src[state.bMarks[after] : state.eMarks[after]]
        braces += _braces(line)
        goes_on = bool(line.strip()) or braces > 0
        after += 1
    if goes_on and braces > 0:
        state.env["endless_esm"] = True  # so it is none: a reader sees all of it
        return False
    return silent or _push(state, "unseen", first, after)


def _braces(line: str) -> int:
    return sum(line.count(c) for c in "{[(") - sum(line.count(c) for c in "}])")
