"""How far the passages that would be quoted answer a question, or only share words with it.

What counts is how many of the question's words, by their weight, stand in one place of the best passage or in its
heading. A word that no page of the site has makes an answer doubtful, unless three others stand together or a heading
is made of the question's words alone. A name that no page has rules it out; the section of the term that is asked for
answers. The limits were chosen on questions about small sites, half of them about what no page says.
"""

from collections.abc import Sequence
from enum import Enum

from service.adapters.builtin.choosing import Quote
from service.adapters.builtin.wanted import Wanted
from service.adapters.builtin.weighing import NEAR_PIECES, PROSE, exactness

LEAST_NEAR = 0.1
"""The part of the question's weight in one place; with less, nothing is near."""
ENOUGH_NEAR = 0.4
"""Enough for an answer, where the site has all of the question's words."""
TOGETHER, TOGETHER_NEAR = 3, 0.28
"""Words in one place, and their part of the question's weight, that answer although the site lacks another one."""
MOST_MISSING = 0.7
"""The part of the question's weight that may be missing from the site below a heading of its words."""
NAME_NEAR = 0.25
"""The least near passages that are shown beside the word that a name like "Brest" is on no page."""


class Verdict(Enum):
    ANSWERED = "answered"
    UNSURE = "unsure"
    NOT_DOCUMENTED = "not documented"


def judge(asked: Wanted, quotes: Sequence[Quote]) -> Verdict:
    """Return how far the quotes, best first, answer."""
    if not quotes:
        return Verdict.NOT_DOCUMENTED
    best, words = quotes[0].apart, frozenset(asked.stems)
    everything = asked.weight_of(words) or 1.0
    found = [words.intersection(piece.stems) for piece in best.pieces]
    places = [frozenset[str]().union(*found[at : at + NEAR_PIECES]) for at in range(len(found))]
    together = max(places, key=asked.weight_of, default=frozenset[str]()) | words.intersection(best.own)
    near = asked.weight_of(together) / everything
    if asked.names:
        is_nothing = near < NAME_NEAR or not all(map(_is_plain_word, asked.names))
        return Verdict.NOT_DOCUMENTED if is_nothing else Verdict.UNSURE
    if best.explains >= PROSE:
        return Verdict.ANSWERED
    if near < LEAST_NEAR:
        return Verdict.NOT_DOCUMENTED
    if not asked.missing:
        return Verdict.ANSWERED if near >= ENOUGH_NEAR else Verdict.UNSURE
    known = words - asked.missing
    is_headed = exactness(words, best.own) == 1.0 and known <= together
    is_answered = (len(together) >= TOGETHER and near >= TOGETHER_NEAR) or (
        is_headed and asked.weight_of(asked.missing) / everything < MOST_MISSING
    )
    return Verdict.ANSWERED if is_answered else Verdict.UNSURE


def _is_plain_word(name: str) -> bool:
    """Return whether a name is one of people, places or products rather than one of code."""
    return name.isalpha() and (name.istitle() or name.isupper() or name.islower())
