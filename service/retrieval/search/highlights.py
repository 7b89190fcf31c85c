"""Where the words of a question stand in a text: ranges that a client can mark.

A range is two numbers, the first character and the one after the last, counted as JavaScript and JSON's other readers
in browsers count: in UTF-16 units.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import pairwise

from service.ports.search_index import Range
from service.retrieval.search.analysis.terms import MAX_WORD, WORD, parts_of
from service.retrieval.search.analysis.writing_systems import spaced, unspaced

Forms = Callable[[str], Iterable[str]]
"""A function of a word: its terms."""
MAX_RANGES = 50
"""Ranges of one text."""
MAX_MARKED = 20_000
"""Characters of a text that are looked through."""
_ADDRESS = re.compile(r"\]\([^()\s]{0,500}|https?://[^\s<>)\"']{1,500}")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def ranges_in(text: str, terms: Set[str], forms: Forms) -> tuple[Range, ...]:
    """Return the ranges of the words of a text that are among the terms, in their order, neighbours apart. Words in
    addresses are left out, for what a reader sees of a link is its text.
    """
    text = text[:MAX_MARKED]
    found: list[Range] = []
    for start, end in _found(text, terms, forms):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif len(found) == MAX_RANGES:
            break
        else:
            found.append((start, end))
    if text.isascii():
        return tuple(found)
    astral = [match.start() for match in _ASTRAL.finditer(text)]
    return tuple((start + bisect_right(astral, start - 1), end + bisect_right(astral, end - 1)) for start, end in found)


def _found(text: str, terms: Set[str], forms: Forms) -> Iterator[Range]:
    addresses = [match.span() for match in _ADDRESS.finditer(text)]
    at = 0
    for match in WORD.finditer(text):
        start = match.start()
        while at < len(addresses) and addresses[at][1] <= start:
            at += 1
        if at < len(addresses) and addresses[at][0] <= start:
            continue
        yield from _found_in_word(match[0], start, terms, forms)


def _found_in_word(word: str, start: int, terms: Set[str], forms: Forms) -> Iterator[Range]:
    if len(word) <= MAX_WORD and not terms.isdisjoint(forms(spaced(word))):
        yield start, start + len(word)
        return
    for first, after in unspaced(word):
        run = word[first:after]
        for place, pair in enumerate(map("".join, pairwise(run)), start=start + first):
            if not terms.isdisjoint(forms(pair)):
                yield place, place + 2
        if len(run) == 1 and not terms.isdisjoint(forms(run)):
            yield start + first, start + after
    if len(word) > MAX_WORD:
        return
    parts = parts_of(word)
    for part in parts if len(parts) > 1 else ():
        if not terms.isdisjoint(forms(part)):
            yield start, start + len(part)
        start += len(part)
