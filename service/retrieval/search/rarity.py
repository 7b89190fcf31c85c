"""How rare terms are among the sections in one language.

On a site in many languages every word of one is rare: "with" in Dutch as rare as the name of a setting in English. So
the words of a question are weighed as if the sections in its language were all that there are.
"""

import math

from msgspec.structs import replace
from tantivy import Occur, Query

from service.retrieval.search.questions.question import Terms, words_of_question
from service.retrieval.search.words import SECTIONS, Words

MOST_KNOWN = 8
"""Words of a question that are looked for in a language."""
FEW = 3.0
"""Sections that have a word, from which it is at least half known."""


def weighed_among(terms: Terms, words: Words, own: Query, count: int) -> Terms:
    """Return terms with the weights that make up for their rarity on the whole site. ``own``: the sections in the
    language; ``count``: their number.
    """
    weights = {}
    for term, weight in terms.weights.items():
        among = _rarity(_count(words, Query.boolean_query([(Occur.Must, _body(term)), (Occur.Must, own)])), count)
        weights[term] = weight * among / words.rarity(term)
    return replace(terms, weights=weights)


def known_part(query: str, words: Words, language: str, own: Query) -> float:
    """Return the part of a question's first words that the sections in a language have, as they are typed and by their
    stems: 0 .. 1. Kindred languages share stems.
    """
    typed = dict.fromkeys(words_of_question(query)[:MOST_KNOWN])
    terms = [term for word in typed for term in (words.stem(word), words.stem(word, language)) if term]
    counts = [_count(words, Query.boolean_query([(Occur.Must, _body(term)), (Occur.Must, own)])) for term in terms]
    return sum(count / (count + FEW) for count in counts) / len(counts) if counts else 0.0


def sections_among(words: Words, own: Query) -> int:
    """Return the number of sections that a query allows."""
    return _count(words, own)


def _body(term: str) -> Query:
    return Query.term_query(SECTIONS, "body", term, "basic")


def _rarity(having: int, count: int) -> float:
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def _count(words: Words, query: Query) -> int:
    return int(words.sections.search(query, 1, count=True).count or 0)  # type: ignore[attr-defined]  # its stub lacks it
