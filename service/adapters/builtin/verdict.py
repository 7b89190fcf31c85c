"""How far the passages that would be quoted answer a question, or only share words with it.

What counts is how many of the question's words, by their weight, stand in one place of the best passage or in its
heading. A word that no page of the site has makes an answer doubtful, unless three others stand together or a heading
is made of the question's words alone. A name that no page has rules it out; the section of the term that is asked for
answers. A question of how or when is about something that there is, so its missing word is likely another word for it;
any other may be about what there is not. Where one passage is far before the others, less is enough. The limits
were chosen on questions about small sites, a third of them about what no page says.
"""

from collections.abc import Sequence
from enum import Enum

from service.adapters.builtin.choosing import Quote
from service.adapters.builtin.pieces import Apart
from service.adapters.builtin.wanted import Wanted
from service.adapters.builtin.weighing import NEAR_PIECES, PROSE, exactness

FIRST_QUOTES = 3
"""Quotes that are looked at: each of them is an answer."""
LEAST_NEAR = 0.1
"""The part of the question's weight in one place; with less, nothing is near."""
ENOUGH_NEAR = 0.4
"""Enough for an answer, where the site has all of the question's words."""
TOGETHER, TOGETHER_NEAR = 3, 0.28
"""Words in one place, and their part of the question's weight, that answer although the site lacks another one."""
OTHER_WORDS_NEAR = 0.28
"""Enough for an answer to a question of how, what or when, although the site lacks one of its words."""
LEAD, LED_NEAR = 3.0, 0.2
"""The lead of the best passage with which less is enough, where the site has all of the question's words or the
question is one of how, what or when.
"""
LITTLE_ASKED = 0.3
"""The weight of a question whose one word says little by itself, such as the name of the product."""
MOST_MISSING = 0.7
"""The part of the question's weight that may be missing from the site below a heading of its words."""
NAME_NEAR = 0.25
"""The least near passages that are shown beside the word that a name like "Brest" is on no page."""


class Verdict(Enum):
    ANSWERED = "answered"
    UNSURE = "unsure"
    NOT_DOCUMENTED = "not documented"


def judge(asked: Wanted, quotes: Sequence[Quote], lead: float) -> Verdict:
    """Return how far the quotes, best first, answer. ``lead``: how far the best passage is before the others."""
    if not quotes:
        return Verdict.NOT_DOCUMENTED
    words = frozenset(asked.stems)
    everything = asked.weight_of(words) or 1.0
    near_by = [(_together(quote.apart, words, asked), quote.apart) for quote in quotes[:FIRST_QUOTES]]
    together, best = max(near_by, key=lambda each: asked.weight_of(each[0]))
    near = asked.weight_of(together) / everything
    if asked.names:
        is_nothing = near < NAME_NEAR or not all(map(_is_plain_word, asked.names))
        return Verdict.NOT_DOCUMENTED if is_nothing else Verdict.UNSURE
    if asked.commands:
        return Verdict.NOT_DOCUMENTED if near < NAME_NEAR else Verdict.UNSURE
    if quotes[0].apart.explains >= PROSE:
        return Verdict.ANSWERED
    if near < LEAST_NEAR:
        return Verdict.NOT_DOCUMENTED
    is_led = lead >= LEAD and near >= LED_NEAR
    if not asked.missing:
        says_much = len(words) > 1 or everything >= LITTLE_ASKED or asked.language != "en"  # others share names alone
        return Verdict.ANSWERED if (is_led or near >= ENOUGH_NEAR) and says_much else Verdict.UNSURE
    if (is_led or near >= OTHER_WORDS_NEAR) and asked.of_what_is:
        return Verdict.ANSWERED
    known = words - asked.missing
    is_headed = exactness(words, best.own) == 1.0 and known <= together
    is_answered = (len(together) >= TOGETHER and near >= TOGETHER_NEAR) or (
        is_headed and asked.weight_of(asked.missing) / everything < MOST_MISSING
    )
    return Verdict.ANSWERED if is_answered else Verdict.UNSURE


def _together(one: Apart, words: frozenset[str], asked: Wanted) -> frozenset[str]:
    """Return the most of the question's words, by their weight, that one place of a passage has, with its heading."""
    found = [words.intersection(piece.stems) for piece in one.pieces]
    places = [frozenset[str]().union(*found[at : at + NEAR_PIECES]) for at in range(len(found))]
    return max(places, key=asked.weight_of, default=frozenset[str]()) | words.intersection(one.own)


def _is_plain_word(name: str) -> bool:
    """Return whether a name is one of people, places or products rather than one of code."""
    is_one_word = name.isalpha() and (name.isupper() or name.islower())
    return is_one_word or (name.istitle() and name.replace(" ", "").isalpha())
