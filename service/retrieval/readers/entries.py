"""The terms that a section explains one by one: rows of a table, options in a list, definitions, questions in bold.

A table stays whole, since a row says little without the others and the table little without its rows. What is kept
beside the section is where each entry stands, so that a search for one finds it and shows its lines alone.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from service.markup.blocks import blocks_of
from service.markup.fences import may_have_fences
from service.markup.prose import plain

MAX_ENTRIES, MAX_TERM = 300, 80
"""Limit for one section; characters."""
FEWEST = 2
"""A single row or item is no list of terms."""

_MAY_HAVE = re.compile(r"^[ \t]*(?:\||[-*+] (?:`|\*\*|[^\n]{1,80}\n\s*[-*+] : )|: |\*\*)|\|[ \t]*:?-", re.MULTILINE)
_RULE = re.compile(r"[ \t]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)++(?:\|[ \t]*+)?")
_ITEM = re.compile(r"([ \t]*)[-*+] +(\S.*)")
_NAMED = re.compile(r"(?:\*\*|__)?(?:`([^`]{1,80})`|(?<=\*\*)([^*`]{1,80}?)(?=:?\*\*))")
_ASKED = re.compile(r"\*\*([^*]{3,200}\?)\*\*[ \t]*")
_DEFINES = re.compile(r"[ \t]*[-*+] : |:[ \t]+\S")
_CELL = re.compile(r"(?<!\\)\|")


class Entry(Struct, frozen=True, array_like=True):
    term: str
    first: int
    """Its first line in the section's text, from 0."""
    after: int
    """The line after its last one."""
    head: int = -1
    """The line of its table's header, which a rule follows; -1 outside of tables."""
    start_line: int = 0
    """In the page's file, from 1; 0 where they are not known."""
    end_line: int = 0


_DECODER = msgspec.json.Decoder(tuple[Entry, ...])


def decode_entries(text: str) -> tuple[Entry, ...]:
    """Return the entries that JSON has; none for an empty text."""
    return _DECODER.decode(text) if text else ()


def entries_of(text: str) -> tuple[Entry, ...]:
    """Return the entries of a section's text, in their order; none where there are too few for a list."""
    if _MAY_HAVE.search(text) is None:
        return ()
    found = [entry for entry in _found(text.split("\n")) if any(map(str.isalnum, entry.term))]
    if len(found) < FEWEST:
        return ()
    if not may_have_fences(text):
        return tuple(found[:MAX_ENTRIES])
    code = {line for block in blocks_of(text) if block.kind == "fence" for line in range(block.first, block.after)}
    found = [entry for entry in found if entry.first not in code]
    return tuple(found[:MAX_ENTRIES]) if len(found) >= FEWEST else ()


def _found(lines: Sequence[str]) -> Iterator[Entry]:
    at = 0
    while at < len(lines):
        line = lines[at]
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if "|" in line and "-" in following and _RULE.fullmatch(following):
            last = at + 2
            while last < len(lines) and "|" in lines[last] and lines[last].strip():
                yield from _row(lines[last], last, at)
                last += 1
            at = last
            continue
        yield from _term(lines, at, line.lstrip())
        at += 1


def _row(line: str, at: int, head: int) -> Iterator[Entry]:
    cells = [cell.strip() for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))]
    term = plain(cells[0])
    if len(term) <= MAX_TERM and any(cells[1:]):
        yield Entry(term, at, at + 1, head)


def _term(lines: Sequence[str], at: int, words: str) -> Iterator[Entry]:
    """Yield the entry that begins in a line, if one does."""
    item = _ITEM.fullmatch(lines[at])
    following = next((line for line in lines[at + 1 : at + 3] if line.strip()), "")
    if item is not None and not item[2].startswith(": "):
        named = _NAMED.match(item[2])
        if _DEFINES.match(following) and following.lstrip().startswith(("- :", "* :", "+ :")):
            term = item[2]
        elif named is not None:
            term = named[1] or named[2]
        else:
            return
        yield from _entry(term, at, _end(lines, at, len(item[1])))
    elif words and following.startswith(":") and _DEFINES.match(following) and len(words) <= MAX_TERM:
        yield from _entry(words, at, _end(lines, at, -1))
    elif (asked := _ASKED.fullmatch(words)) is not None:
        after = next((n for n in range(at + 1, len(lines)) if _ASKED.fullmatch(lines[n].lstrip())), len(lines))
        yield Entry(plain(asked[1]), at, after)


def _entry(term: str, first: int, after: int) -> Iterator[Entry]:
    term = plain(term).strip(" :")
    if len(term) <= MAX_TERM:
        yield Entry(term, first, after)


def _end(lines: Sequence[str], at: int, indent: int) -> int:
    """Return the line after an item: the next one that is not indented below it, or after a definition's blank line."""
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if not line.strip() or (indent < 0 and line.startswith(":")):
            continue
        if len(line) - len(line.lstrip()) <= indent or (indent < 0 and line[:1] not in (" ", "\t")):
            if indent >= 0 and not _ITEM.fullmatch(line) and lines[number - 1].strip():
                continue  # a paragraph of the item that goes on without indentation
            return _without_blank(lines, at, number)
    return _without_blank(lines, at, len(lines))


def _without_blank(lines: Sequence[str], at: int, after: int) -> int:
    while after > at + 1 and not lines[after - 1].strip():
        after -= 1
    return after


def located(entries: Sequence[Entry], source: Sequence[str], numbers: Sequence[int]) -> tuple[Entry, ...]:
    """Return entries with their lines in the file. ``source``: the lines that the section was made from;
    ``numbers``: their numbers in the file, from 1.
    """
    placed, at = [], 0
    letters = [_letters(line) for line in source]
    for entry in entries:
        wanted = _letters(entry.term)
        found = next((n for n in range(at, len(letters)) if wanted in letters[n]), -1)
        if found < 0:
            placed.append(entry)
            continue
        last = min(len(source), found + entry.after - entry.first) - 1
        placed.append(replace(entry, start_line=numbers[found], end_line=max(numbers[found], numbers[last])))
        at = found + 1
    return tuple(placed)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
