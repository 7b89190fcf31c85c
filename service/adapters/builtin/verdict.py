"""How far the passages that would be quoted answer a question, or only share words with it.

``SIGNS`` has what is looked at, each 0 .. 1 or a small count, and its weight. The weights are those of a logistic
regression on questions about small and large sites: each asked of the site that answers it, of the same site without
the pages that answer, and of another site; and rounded. Where a question's own words are missing from the whole site,
or a name in it is, no passage surely answers it, whatever else they share.
"""

import math
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

from service.adapters.builtin.choosing import Quote
from service.adapters.builtin.pieces import Apart
from service.adapters.builtin.wanted import Wanted
from service.adapters.builtin.weighing import NEAR_PIECES, exactness, names_limit

LEAST_NEAR = 0.1
MOST_NEAR = 6
"""Words of a question; more of them in one place say no more."""


class Verdict(Enum):
    ANSWERED = "answered"
    UNSURE = "unsure"
    NOT_DOCUMENTED = "not documented"


def signs(asked: Wanted, quotes: Sequence[Quote], apart: Sequence[Apart]) -> dict[str, float]:
    """Return the signs that the best quote answers."""
    best = quotes[0].apart
    words = frozenset(asked.stems)
    everything = asked.weight_of(words) or 1.0
    found = [words.intersection(piece.stems) for piece in best.pieces]
    places = [frozenset[str]().union(*found[at : at + NEAR_PIECES]) for at in range(len(found))]
    near = max(places, key=asked.weight_of, default=frozenset[str]()) | words.intersection(best.own)
    shown = frozenset[str]().union(*(words & quote.apart.has for quote in quotes))
    known = words - asked.missing
    rarest = max((asked.weights[stem] for stem in known), default=0.0)
    headings = words.intersection(best.above)
    neighbours = set(pairwise(best.above)).union(*(pairwise(piece.stems) for piece in best.pieces))
    others = [one.score for one in apart if one.page != best.page]
    return {
        "near": asked.weight_of(near) / everything,
        "known_near": asked.weight_of(near & known) / (asked.weight_of(known) or 1.0),
        "shown": asked.weight_of(shown) / everything,
        "count": math.log1p(min(len(near), MOST_NEAR)),
        "rare": max((asked.weights[stem] for stem in near), default=0.0) / (rarest or 1.0),
        "heading": asked.weight_of(words.intersection(best.own)) / everything,
        "heading_exact": exactness(words, best.own),
        "title": asked.weight_of(words.intersection(best.title)) / everything,
        "title_exact": exactness(words, best.title),
        "headings": math.log1p(min(len(headings), 4)),
        "pairs": min(len(neighbours.intersection(pairwise(asked.stems))), 3) / 3,
        "missing": asked.weight_of(asked.missing) / everything,
        "lead": (best.score - max(others, default=0.0)) / (best.score or 1.0),
        "search": best.passage.score,
        "value": float(asked.value and names_limit(best)),
    }


def judge(asked: Wanted, quotes: Sequence[Quote], apart: Sequence[Apart]) -> Verdict:
    """Return how far the quotes answer."""
    if not quotes:
        return Verdict.NOT_DOCUMENTED
    found = signs(asked, quotes, apart)
    is_nothing = found["near"] < LEAST_NEAR
    if asked.names:
        return Verdict.NOT_DOCUMENTED
    if is_nothing:
        return Verdict.NOT_DOCUMENTED
    if asked.missing:
        is_strong = found["known_near"] > 0.9 and found["count"] > 1.3 and found["missing"] < 0.6
        is_headed = found["heading_exact"] == 1.0 and found["missing"] < 0.5
        return Verdict.ANSWERED if is_strong or is_headed else Verdict.UNSURE
    return Verdict.ANSWERED if found["near"] >= 0.4 else Verdict.UNSURE
