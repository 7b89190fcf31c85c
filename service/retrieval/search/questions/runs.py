"""Sections that say what was asked word for word: an error's text, a question that a page of questions has.

A run of words is rare where single words are not, so it is looked for in the whole site: such a section may be long,
and on a page that no word brings to the front.
"""

from collections.abc import Sequence
from itertools import product

from tantivy import Query

from service.markup.languages.stop_words import stop_words
from service.retrieval.search.analysis.terms import words_in
from service.retrieval.search.questions.question import ENGLISH
from service.retrieval.search.words import Words

RUN = 5
"""Words in a row that are looked for at once."""
LEAST_MEANT = 3
"""Words of a section's runs that are not stop words."""
MAX_RUNS = 40
MOST_SECTIONS = 4
"""With more of them, the run is a phrase that people use anyway."""


def sections_with_run(words: Words, query: str, only: Query | None, languages: Sequence[str] = ENGLISH) -> list[int]:
    """Return the sections that have a run of words of the query, as far as they are few."""
    typed = words_in(query[:2_000])
    empty = stop_words("en").union(*map(stop_words, languages))
    meant = [word.casefold() not in empty for word in typed]
    if sum(meant) < LEAST_MEANT:
        return []
    found: dict[int, set[int]] = {}
    for language, at in product(languages, range(len(typed) - RUN + 1)[:MAX_RUNS]):
        terms = [words.stem(word, language) for word in typed[at : at + RUN]]
        if not any(meant[at : at + RUN]) or not all(term and words.frequency(term) for term in terms):
            continue
        sections = words.with_run(terms, only, MOST_SECTIONS + 1)
        for section in sections if len(sections) <= MOST_SECTIONS else ():
            found.setdefault(section, set()).update(place for place in range(at, at + RUN) if meant[place])
    return [section for section, places in found.items() if len(places) >= LEAST_MEANT]
