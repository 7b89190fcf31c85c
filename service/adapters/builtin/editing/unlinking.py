"""Take links to a page that is gone out of a text, as a careful writer would.

A list item or a card that is nothing but the link goes, and so does a sentence that only points to the page ("See …").
Of any other link its words stay, as plain text. A heading below which nothing is left may go, too.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from service.domain.tool_values import DeadLink
from service.markup.links import Link
from service.markup.markdown import Markdown
from service.markup.syntax import TAG, is_component

Edit = tuple[int, int, str]
"""From where and up to where in a text, and what is to be there."""

_LINK_END = re.compile(r">?(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?\s*\)")
_BLANK_LINE = re.compile(r"[ \t\r]*+\n")
_GAP = re.compile(r"[ \t]++")
_CLOSING = re.compile(r"\s*+</(?P<tag>[A-Z][\w.]*+)>[ \t\r]*+(?:\n|\Z)")
_REFERENCE_END = re.compile(r"\](?:\[[^\[\]\n]*\])?")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:[*_]{1,3})?")
_REST_OF_ITEM = re.compile(r"[*_]{0,3}[.;,]?[ \t\r]*(?:[ \t](?:-|–|—)[ \t].*|:[^\n]*)?")  # noqa: RUF001  dashes of all kinds
_POINTS = re.compile(
    r"(?:for [^.\[\]\n]{1,80}, )?(?:please )?(?:also )?"
    r"(?:see|read|refer to|check|check out|visit|go to|continue with|next|back to|"
    r"learn more (?:about [^.\[\]\n]{1,60} )?(?:in|at|from|on))"
    r"(?: also)?:?(?: the| our)? (?:[*_]{1,2})?\Z",
    re.IGNORECASE,
)
_REST_OF_SENTENCE = re.compile(
    r"[*_]{0,2}(?: (?:page|guide|section|documentation|docs|tutorial|article))?"
    r"(?: for (?:more|further|all|the|details?|information)[^.\[\]\n]{0,60})?[.!]?"
    r"(?=[ \t\r]*(?:\n|\Z)|[ \t]+[A-Z])",
)
_LIST = re.compile(r"(?:^|/)SUMMARY\.md$")
"""Lists of pages, where an entry that has others below it stays as one without a page."""
MAX_SENTENCE = 300
"""Characters before a link in which its sentence begins."""


class Unlinked(Struct, frozen=True):
    text: str
    plain: int
    """Number of links that became plain text."""
    gone: int
    """Number of links that went with what was around them."""


def unlinked(text: str, path: str, dead: Sequence[DeadLink]) -> Unlinked:
    """Return the text of a page without these links; those that are not found in it stay."""
    page = Markdown(text, path=path)
    edits: list[Edit] = []
    plain = gone = 0
    for link in page.links:
        if not any(_is_meant(page, link, each) for each in dead):
            continue
        found = _edit(page.text, link)
        if found is not None and found[2] == link.label and _LIST.search(path) is not None:
            found = (*found[:2], f"[{link.label}]()")
        if found is None or any(start < found[1] and found[0] < end for start, end, _ in edits):
            continue
        edits.append(found)
        if link.kind != "definition":
            plain, gone = plain + bool(found[2]), gone + (not found[2])
    left = _applied(text, edits)
    if edits and not text.endswith("\n\n"):
        left = f"{left.rstrip()}\n" if left.endswith("\n\n") else left
    return Unlinked(left, plain, gone)


def _is_meant(page: Markdown, link: Link, dead: DeadLink) -> bool:
    if link.is_image:
        return False
    if "{" in link.target and dead.found.strip("\"'`} ") in link.target:
        return page.text.count("\n", 0, link.start) + 1 == dead.line
    if link.target not in dead.found:
        return False
    for end in (link.start + len(link.target), link.start + len(link.target) + 1):
        begin = end - len(dead.found)
        if begin >= 0 and page.text[begin:end] == dead.found:
            return page.text.count("\n", 0, begin) + 1 == dead.line
    return False


def _edit(text: str, link: Link) -> Edit | None:
    match link.kind:
        case "tag":
            return _edit_of_tag(text, link)
        case "definition":
            start = text.rfind("\n", 0, link.start) + 1
            end = text.find("\n", link.start)
            return start, len(text) if end < 0 else end + 1, ""
        case "reference":
            behind = _REFERENCE_END.match(text, link.begin + 1 + len(link.label))
        case _:
            behind = _LINK_END.match(text, link.start + len(link.target))
    return None if behind is None else _widened(text, link.begin, behind.end(), link.label)


def _edit_of_tag(text: str, link: Link) -> Edit | None:
    opened = TAG.match(text, link.begin)
    if opened is None or not link.tag:
        return None
    start, end, inside = link.begin, opened.end(), ""
    if not text.endswith("/>", 0, end):
        closing = text.find(f"</{link.tag}>", end)
        if closing < 0 or f"<{link.tag}" in text[end:closing]:
            return None
        inside, end = text[end:closing], closing + len(link.tag) + 3
    before, after = text[text.rfind("\n", 0, start) + 1 : start], text[end:].partition("\n")[0]
    if is_component(link.tag) and not before.strip() and not after.strip():
        return _whole_lines(text, start, end)
    return start, end, inside


def _whole_lines(text: str, start: int, end: int) -> Edit:
    """Return the removal of whole lines, with a blank line where there would be two, and of a wrapper left empty."""
    start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    end = len(text) if line_end < 0 else line_end + 1
    while wrapper := _empty_wrapper(text, start, end):
        start, end = wrapper
    if (not start or text[:start].endswith(("\n\n", "\n\r\n"))) and (blank := _BLANK_LINE.match(text, end)):
        end = blank.end()
    return start, end, ""


def _empty_wrapper(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the lines of a component of which nothing would be left but its own tags."""
    closing = _CLOSING.match(text, end)
    if closing is None:
        return None
    opening = re.compile(rf"^[ \t]*<{re.escape(closing['tag'])}(?:[ \t][^<>\n]*)?>[ \t\r\n]*\Z", re.MULTILINE)
    found = opening.search(text, max(0, start - 1_000), start)
    return (found.start(), closing.end()) if found else None


def _widened(text: str, start: int, end: int, label: str) -> Edit:
    """Return the removal of the list item or sentence that is there for this link; else the link's words."""
    line = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    if (item := _ITEM.match(text, line)) and item.end() == start:
        rest = _REST_OF_ITEM.fullmatch(text, end, line_end)
        if rest and "](" not in rest[0] and not _goes_on(text, line_end + 1, item.end() - line):
            return _whole_lines(text, line, line_end)
        first = start
    else:
        first = max(line, start - MAX_SENTENCE)
    after = _REST_OF_SENTENCE.match(text, end)
    if after is None:
        return start, end, label
    points = _POINTS.search(text, first, start)
    if points is None or text[first : points.start()].rstrip(" \t")[-1:] not in ("", ".", "!", "?", ":", ")"):
        return start, end, label
    if not text[line : points.start()].strip() and not text[after.end() : line_end].strip():
        return _whole_lines(text, start, after.end())
    gap = _GAP.match(text, after.end())
    before = points.start() if gap else len(text[: points.start()].rstrip(" \t"))
    return before, gap.end() if gap else after.end(), ""


def _goes_on(text: str, at: int, width: int) -> bool:
    """Return whether a list item goes on, or has others in it, on the next line."""
    line = text[at:].partition("\n")[0]
    return bool(line.strip()) and len(line) - len(line.lstrip()) >= max(2, width - 1)


def _applied(text: str, edits: Iterable[Edit]) -> str:
    kept: list[str] = []
    at = 0
    for start, end, new in sorted(edits):
        kept += [text[at:start], new]
        at = end
    return "".join([*kept, text[at:]])


def without_emptied_headings(before: str, after: str, path: str) -> str:
    """Return the text after an edit without the headings below which nothing is left of what was there before."""
    was = {heading for heading, is_empty in _sections(before, path) if is_empty}
    emptied = [heading for heading, is_empty in _sections(after, path) if is_empty and heading not in was]
    page = Markdown(after, path=path)
    lines = after.split("\n")
    for block in reversed([each for each in page.headings if (each.level, each.text) in emptied]):
        first, last = page.first_line + block.first, page.first_line + block.after
        while last < len(lines) and not lines[last].strip():
            last += 1
        if last == len(lines):  # the end of the page
            while first and not lines[first - 1].strip():
                first -= 1
            lines[first:] = [""]
        else:
            del lines[first:last]
    return "\n".join(lines)


def _sections(text: str, path: str) -> Iterator[tuple[tuple[int, str], bool]]:
    """Yield each heading below the title, and whether nothing follows it up to the next of its level or above."""
    page = Markdown(text, path=path)
    headings = page.headings
    lines = text.split("\n")
    for at, block in enumerate(headings):
        following = headings[at + 1] if at + 1 < len(headings) else None
        end = len(lines) if following is None else page.first_line + following.first
        own = lines[page.first_line + block.after : end]
        has_parts = following is not None and following.level > block.level
        if block.level > 1:
            yield (block.level, block.text), not has_parts and not "".join(own).strip()
