"""The certainty that the passages answer a question, and do not only share words with it.

Words of a question are on any site. What sets a site that answers it apart: its rare words are in a title or a heading,
next to each other, in one place of a passage, the rest on the same page; and none of them is missing from the site.
Counts matter as well as shares, since half of ten words is more than half of two. The weights are those of a logistic
regression on questions, each asked of the site that answers it and of others, and rounded.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from service.adapters.builtin.pieces import Apart
from service.adapters.builtin.question_words import stemmer_of, stop_words
from service.adapters.builtin.wanted import MAX_QUESTION_READ, Wanted, weight
from service.adapters.builtin.weighing import NEAR_PIECES, exactness

MIN_CERTAINTY = 6.2
"""With less, the answer is that the documentation does not say."""
COMPARED = 6
"""Passages, the best, that are compared."""
FEW = 8
"""Passages, all of a tiny site. The words of a question in one place of so little text are hardly there by chance."""
COMMON = 1 / 12
"""The part of the sections that each word is in which a tiny site has at all."""
_NAME_INSIDE = re.compile(r"[^\s.!?:;\"'(`]\s+(?P<name>[A-Z][A-Za-z]{2,})\b")


class _Signs(Struct, frozen=True):
    """The signs of one passage."""

    near: frozenset[str]
    """The question's words that are in one place of it, or in its nearest heading."""
    headings: frozenset[str]
    """Those that are in its title and headings."""
    title: float
    """Part of the question's weight that is in its title."""
    pairs: int
    """Neighbouring words of the question that are neighbours in it."""
    own_exact: float
    title_exact: float
    """Part of the words of its nearest heading, and of its title, that the question has."""
    title_fit: float
    headings_fit: float
    """How much the title, and all headings together, say what the question says: 0 .. 1."""


def is_answered(asked: Wanted, apart: Sequence[Apart]) -> bool:
    """Return whether the passages, which have their scores, answer the question."""
    return bool(apart) and certainty(asked, apart) >= MIN_CERTAINTY


def certainty(asked: Wanted, apart: Sequence[Apart]) -> float:
    """Return how sure it is that the passages have the question's subject: about 0 .. 15."""
    best = sorted(apart, key=lambda one: (-one.score, one.passage.number))[:COMPARED]
    signs = [_signs(asked, one) for one in best]
    everything = asked.weight_of(asked.stems)
    count = len(asked.stems)
    near = max(len(sign.near) for sign in signs)
    fitting = max(
        asked.weight_of(sign.near) / everything
        * max(sign.own_exact, sign.title_exact, asked.weight_of(sign.headings) / everything)
        for sign in signs
    )  # fmt: skip
    return (
        0.3 * (near == count) * min(count, 4) / 4
        + 1.2 * max(asked.weight_of(sign.near) / everything for sign in signs) ** 2 * min(count, 5) / 5
        + 0.6 * max(sign.title for sign in signs)
        + 1.6 * max(sign.title_fit for sign in signs)
        + 0.8 * max(sign.headings_fit for sign in signs)
        + 2.4 * min(max(sign.pairs for sign in signs), 4) / 4
        + 3.4 * min(near, 6) / 6
        + 1.1 * min(max(len(sign.headings) for sign in signs), 4) / 4
        + 2.3 * fitting
        + 1.8 * _on_one_page(asked, best) / count
        + 0.9 * sum(one.page == best[0].page for one in best) / len(best)
        + 3.0 * _is_of_tiny_site(asked, apart) * max(asked.weight_of(sign.near) / everything for sign in signs) ** 2
        - 1.2 * asked.weight_of(asked.missing) / everything
        - 2.0 * min(_strange_names(asked, apart), 2) / 2
    )


def _signs(asked: Wanted, one: Apart) -> _Signs:
    words = frozenset(asked.stems)
    found = [words.intersection(piece.stems) for piece in one.pieces]
    places = [frozenset[str]().union(*found[at : at + NEAR_PIECES]) for at in range(len(found))]
    neighbours = set(pairwise(one.above)).union(*(pairwise(piece.stems) for piece in one.pieces))
    return _Signs(
        max(places, key=asked.weight_of) | words.intersection(one.own),
        words.intersection(one.above),
        asked.weight_of(words.intersection(one.title)) / asked.weight_of(words),
        len(neighbours.intersection(pairwise(asked.stems))),
        exactness(words, one.own),
        exactness(words, one.title),
        _fit(asked, one.title),
        _fit(asked, one.above),
    )


def _on_one_page(asked: Wanted, best: Sequence[Apart]) -> int:
    """Return how many of the question's words the page has that has the most of them."""
    pages: dict[str, set[str]] = {}
    for one in best:
        pages.setdefault(one.page, set()).update(one.has.intersection(asked.stems))
    return max(map(len, pages.values()))


def _is_of_tiny_site(asked: Wanted, apart: Sequence[Apart]) -> bool:
    """Return whether the passages are those of a site of few sections, which has all words as they were typed."""
    rarest = max(asked.weights[stem] for stem in asked.stems)
    return len(apart) <= FEW and not asked.missing and not asked.corrected and rarest <= weight(COMMON)


def _fit(asked: Wanted, heading: Sequence[str]) -> float:
    """Return the harmonic mean of the heading's part that the question has, and the question's that the heading has."""
    exact = exactness(set(asked.stems), heading)
    covered = asked.weight_of({*asked.stems}.intersection(heading)) / asked.weight_of(asked.stems)
    return 2 * exact * covered / (exact + covered) if exact and covered else 0.0


def _strange_names(asked: Wanted, apart: Sequence[Apart]) -> int:
    """Return how many words with a capital inside of a sentence no passage has: names of other products. German has too
    many of them.
    """
    if asked.language == "de":
        return 0
    names = {match["name"].casefold() for match in _NAME_INSIDE.finditer(asked.question[:MAX_QUESTION_READ])}
    stem = stemmer_of(asked.language)
    return sum(1 for name in names - stop_words() - asked.corrected if not any(stem(name) in one.has for one in apart))
