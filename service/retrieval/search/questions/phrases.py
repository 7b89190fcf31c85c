"""Words of a question that are meant side by side: in quotation marks, or as code between backticks.

Sections that have them so go before all others, as far as there are any; nothing is left out, since a phrase is often
quoted from memory.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product

from tantivy import Query

from service.retrieval.search.analysis.terms import words_in
from service.retrieval.search.questions.question import ENGLISH
from service.retrieval.search.words import PAGE_SHIFT, Hit, Words

MAX_PHRASES, MAX_PHRASE = 4, 200
"""Phrases of one question, and the characters of each."""
MOST_SECTIONS = 200
_QUOTED = re.compile(
    rf'"([^"]{{1,{MAX_PHRASE}}})"|“([^“”]{{1,{MAX_PHRASE}}})”|„([^„“”]{{1,{MAX_PHRASE}}})[“”]'
    rf"|«([^«»]{{1,{MAX_PHRASE}}})»|「([^「」]{{1,{MAX_PHRASE}}})」|`([^`]{{1,{MAX_PHRASE}}})`"
)
MAX_LOOKED_THROUGH = 2_000
"""Characters of a question."""


def phrases_of(query: str) -> list[str]:
    """Return what stands between quotation marks or backticks, and has at least two words."""
    found = (next(filter(None, match.groups())) for match in _QUOTED.finditer(query[:MAX_LOOKED_THROUGH]))
    phrases = dict.fromkeys(phrase for phrase in found if len(words_in(phrase)) > 1)
    return list(phrases)[:MAX_PHRASES]


def sections_with_phrases(
    words: Words, phrases: Sequence[str], only: Query | None, languages: Sequence[str] = ENGLISH
) -> Mapping[int, Mapping[int, Hit]]:
    """Return the sections that have phrases, by page: of each page the sections by their ids, with the number of
    phrases that they have as the score.
    """
    found: dict[int, dict[int, Hit]] = {}
    for phrase, language in product(phrases, languages):
        typed = words_in(phrase)
        terms = [words.stem(word, language) for word in typed]
        if len(terms) < 2 or not all(term and words.frequency(term) for term in terms):
            continue
        for section in words.with_run(terms, only, MOST_SECTIONS):
            sections = found.setdefault(section >> PAGE_SHIFT, {})
            sections[section] = Hit(1.0 + (sections[section].score if section in sections else 0.0), section)
    return found
