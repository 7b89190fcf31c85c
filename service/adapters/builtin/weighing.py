"""How much each passage, and each piece of it, has to do with a question.

The search has found the right page nearly always; the question is which of its sections answers. A section is judged by
the question's words in its nearest heading, in its page's title and in its text, by how many of them stand together in
one place, by its rank in the search, and by its form: steps for "how do I", code for "show me", a sentence that begins
with the thing for "what is". The weights were chosen on half of the questions about ten sites; the other half agreed.
"""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from service.adapters.builtin.pieces import Apart, Piece
from service.adapters.builtin.wanted import Wanted
from service.markup.prose import plain
from service.markup.terms import (
    SAME,
    SAME_KEY,
    SAME_LETTERS,
    is_name,
    is_written_as_code,
    mention,
    names_asked,
    names_in,
    nearness,
    term_key,
)

HEADING_WEIGHT = 0.6
NEIGHBOUR_WEIGHT = 0.35
NEAR_PIECES = 3
"""Successive pieces that count as one place."""
WORDLESS = 0.5
"""The part of its rank in the search that a section keeps that has no word of the question."""
LEAD_OVER = 3
"""Passages before the one that a lead is counted over."""
SHORT = 120
"""Characters; a shorter passage says little by itself."""
_DEFINES = re.compile(
    r"\A(?:[*_\"'(]*+(?:an?|the|each|every|ein|eine|der|die|das|une?|le|la|les|el|los|las|uno?|os?|um|uma|il|lo|de|het|een)"
    r"\s++)?(?P<subject>[^.:,;]{1,80}?)(?:\s{1,9}\([^)]{1,40}\))?[*_\"']{0,9}\s{1,9}(?:is|are|was|were|represents?|ensures?|provides?|lets?"
    r"|allows?|means|refers|describes?|defines?|controls?|runs?|manages?|ist|sind|est|sont|es|son|é|são|è|sono|zijn)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(r"\d|\bdefaults?\b|\bmaximum\b|\bminimum\b|\blimit(?:ed|s)?\b|\bunlimited\b", re.IGNORECASE)
_LIMITS = re.compile(r"\b(?:limits?|defaults?|maximum|minimum|quotas?)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d")
_CELL = re.compile(r"(?<!\\)\|")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}\.) (?:\*\*|__)?(?:`(?P<code>[^`]++)`|(?P<name>[^*`:]++)(?=:|\*\*))")
"""The name that an item begins with."""


SPELLED = {SAME: 1.0, SAME_LETTERS: 0.9, SAME_KEY: 0.6}
"""How surely a heading, a row or an item is that of a term, by the nearness of their spellings."""
PROSE = 0.5
"""The part that is left where the name is no name in code: a heading of plain words is often on many pages."""
MENTIONED = 0.4
"""The same part for the text of a section that has a name in code."""
OF_THE_TERM = 5.0
"""How much more a row or an item counts that is that of the term."""


class Weights(Struct, frozen=True):
    """The worth of each sign that a passage answers."""

    body: float = 0.4
    near: float = 0.9
    own: float = 0.3
    own_exact: float = 0.25
    title: float = 1.0
    title_exact: float = 1.0
    pairs: float = 0.3
    search: float = 3.3
    page: float = 0.8
    code: float = 0.8
    steps: float = 0.3
    definition: float = 2.0
    value: float = 0.7
    short: float = 0.25
    term: float = 8.0


WEIGHTS = Weights()


def weigh(apart: Sequence[Apart], wanted: Wanted) -> None:
    """Set the scores of the passages and of their pieces."""
    local = _local_weights(apart, wanted)
    everything = sum(local.values()) or 1.0
    pages = {page: rank for rank, page in enumerate(dict.fromkeys(one.page for one in apart))}
    words = set(wanted.stems)
    pairs = set(pairwise(wanted.stems))
    names = names_asked(wanted.question)
    for one in apart:
        above = frozenset(one.above)
        for at, piece in enumerate(one.pieces):
            piece.score = _piece_score(piece, above, wanted, local) * (1.1 if at == 0 else 1.0)
        one.explains = _explains(one, names) if names else 0.0
        share = _Share(local, everything)
        found = [words.intersection(piece.stems) for piece in one.pieces]
        near = max(share.of(set[str]().union(*found[at : at + NEAR_PIECES])) for at in range(len(found)))
        neighbours = set(pairwise(one.above)).union(*(pairwise(piece.stems) for piece in one.pieces))
        has_code = any(piece.kind == "code" for piece in one.pieces)
        has_steps = any(piece.kind == "item" and piece.text.lstrip()[:1].isdigit() for piece in one.pieces)
        one.score = (
            WEIGHTS.body * share.of(words & one.body)
            + WEIGHTS.near * near
            + WEIGHTS.own * share.of(words.intersection(one.own))
            + WEIGHTS.own_exact * exactness(words, one.own)
            + WEIGHTS.title * share.of(words.intersection(one.title))
            + WEIGHTS.title_exact * exactness(words, one.title)
            + WEIGHTS.pairs * (len(pairs & neighbours) / len(pairs) if pairs else near)
            + WEIGHTS.search * one.passage.score * (1.0 if words & one.has or one.explains else WORDLESS)
            + WEIGHTS.page / (1 + pages[one.page])
            + WEIGHTS.code * (has_code and (wanted.code or wanted.steps))
            + WEIGHTS.steps * (has_steps and wanted.steps)
            + WEIGHTS.definition * (wanted.definition and _defining(one, words) is not None)
            + WEIGHTS.value
            * (wanted.value and (names_limit(one) or any(_has_value(piece, words) for piece in one.pieces)))
            + WEIGHTS.term * one.explains
            - WEIGHTS.short * (one.size < SHORT and not wanted.value)
        )


def _explains(one: Apart, names: Sequence[str]) -> float:
    """Return how surely a passage is the section of a term that is asked for, 0 .. 1, and raise its rows and items."""
    heading = one.passage.heading.rpartition(" › ")[2] or one.passage.title  # noqa: RUF001
    best = _spelled(heading, names)
    for piece in one.pieces:
        if piece.kind in ("row", "item"):
            spelled = _spelled(_term(piece), names)
            piece.score *= 1 + OF_THE_TERM * spelled
            best = max(best, spelled)
    if not best and (written := [name for name in names if is_written_as_code(name)]):
        near = [mention(name, piece.text, piece.text.casefold()) for name in written for piece in one.pieces]
        best = MENTIONED * max((SPELLED[each] for each in near if each is not None), default=0.0)
    return best


def _term(piece: Piece) -> str:
    """Return the first cell of a row, or the name that an item begins with; empty without one."""
    text = piece.text.lstrip()
    if piece.kind == "row":
        return plain(_CELL.split(text.removeprefix("|"), 1)[0])
    item = _ITEM.match(text)
    return plain(item["code"] or item["name"]) if item is not None else ""


def _spelled(text: str, names: Sequence[str]) -> float:
    """Return how surely a text is a spelling of one of the names, 0 .. 1."""
    return max(
        (
            SPELLED[nearness(name, one)] * (1.0 if is_name(name) else PROSE)
            for name in names_in(text)
            for one in names
            if term_key(name) == term_key(one)
        ),
        default=0.0,
    )


class _Share(Struct, frozen=True):
    weights: Mapping[str, float]
    everything: float

    def of(self, stems: set[str] | frozenset[str]) -> float:
        """Return the part of the question's weight that these stems have."""
        return sum(self.weights[stem] for stem in sorted(stems)) / self.everything


def lead(apart: Sequence[Apart]) -> float:
    """Return by how much the best passage's score is above the fourth's: a question of the documentation has a place,
    one of something else is as near to many.
    """
    scores = sorted((one.score for one in apart), reverse=True)
    return scores[0] - scores[LEAD_OVER] if len(scores) > LEAD_OVER else 0.0


def exactness(words: set[str] | frozenset[str], heading: Sequence[str]) -> float:
    """Return the part of a heading's words that the question has."""
    return len(words.intersection(heading)) / len(set(heading)) if heading else 0.0


def _defining(one: Apart, words: set[str]) -> int | None:
    """Return the place of a sentence that says what the thing is."""
    for at, piece in enumerate(one.pieces[:8]):
        if defines(piece, words):
            return at
    return None


def defines(piece: Piece, words: set[str]) -> bool:
    """Return whether a sentence begins with the thing, and goes on to say what it is."""
    if piece.kind == "code" or piece.kind == "row":
        return False
    match = _DEFINES.match(piece.text.lstrip("- *_`"))
    if match is None:
        return False
    count = len(match["subject"].split())
    return bool(words.intersection(piece.stems[: max(1, count)])) and words.issubset(piece.stems[: count + 3])


def names_limit(one: Apart) -> bool:
    """Return whether the nearest heading says that a default or a limit follows."""
    return _LIMITS.search(one.passage.heading.rpartition(" › ")[2]) is not None  # noqa: RUF001


def _has_value(piece: Piece, words: set[str]) -> bool:
    return _VALUE.search(piece.text) is not None and len(words.intersection(piece.stems)) * 2 >= min(len(words), 4)


def _local_weights(apart: Sequence[Apart], wanted: Wanted) -> dict[str, float]:
    """Return how much each word of the question sets one of these passages apart, and how rare it is on the site."""
    pieces = [(piece, frozenset(one.above)) for one in apart for piece in one.pieces]
    weights: dict[str, float] = {}
    for stem in wanted.stems:
        having = sum(1 for piece, above in pieces if stem in piece.stems or stem in above)
        local = math.log(1 + (len(pieces) + 1) / (having + 1)) if having else 0.0
        weights[stem] = local * (0.3 + wanted.weights[stem])
    return weights


def _piece_score(piece: Piece, above: frozenset[str], wanted: Wanted, weights: Mapping[str, float]) -> float:
    there = set(piece.stems)
    score = 0.0
    for stem, weight in weights.items():
        if stem in there:
            score += weight
        elif stem in above or stem in piece.headings:
            score += HEADING_WEIGHT * weight
    neighbours = set(pairwise(piece.stems))
    for pair in pairwise(wanted.stems):
        if pair in neighbours:
            score += NEIGHBOUR_WEIGHT * (weights[pair[0]] + weights[pair[1]])
    if wanted.definition and defines(piece, set(wanted.stems)):
        score *= 1.6
    if wanted.value and _NUMBER.search(piece.text):
        score *= 1.2
    length = len(piece.stems)
    if piece.kind == "code":
        return score * (1.0 if wanted.code or wanted.steps else 0.8)
    if length < 4 or piece.is_link:
        return score * 0.4
    return score / (1 + max(0, length - 35) / 70)
