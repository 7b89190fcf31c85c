"""A question that is still being typed: its last word may be the beginning of one.

The words of the site that begin so are looked up for it, those of titles first: a reader who types three letters
mostly means a page by its name.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace
from tantivy import Query

from service.retrieval.search.analysis.terms import MAX_WORD
from service.retrieval.search.questions.question import NearTerms, Terms, read_question
from service.retrieval.search.words import Words

MAX_COMPLETIONS = 8
COMPLETED = 0.6
"""Weight of a word that goes on; the word as it was typed has 1."""
LEAST_IN_BODIES, LEAST_STEM, LONGEST_ENDING = 2, 3, 6
"""Letters from which words of bodies are looked for, and not only those of titles; of a stem and an ending: what is
typed may be longer than the stem of its word, as ``installat`` is longer than that of *installation*.
"""
_LAST = re.compile(r"(?<![^\W_])[^\W_]++\Z")


def read_unfinished(
    query: str,
    words: Words,
    near: NearTerms,
    languages: Sequence[str],
    *,
    only_sections: Query | None,
    only_pages: Query | None,
) -> Terms:
    """Return the terms of a question whose last word may be unfinished; of the sections and pages that may be found."""
    last = _LAST.search(query)
    if last is None or len(last[0]) > MAX_WORD:
        return read_question(query, words, near, languages)
    completions = list(dict.fromkeys(_completions(last[0], words, only_sections, only_pages)))[:MAX_COMPLETIONS]
    if not completions:
        return read_question(query, words, near, languages)
    typed = words.stem(last[0])
    head = read_question(query[: last.start()], words, near, languages)
    weights = {term: 1.0 if term == typed else COMPLETED for term in completions}
    return replace(head, weights={**weights, **head.weights}, is_unfinished=True)


def _completions(typed: str, words: Words, only_sections: Query | None, only_pages: Query | None) -> Iterator[str]:
    """Yield terms that the word may become, the likeliest first."""
    stem = words.stem(typed)
    if stem and words.is_known(stem):
        yield stem
    beginning = words.folded(typed)
    found = words.terms_beginning(
        beginning, MAX_COMPLETIONS, only_sections=only_sections, only_pages=only_pages,
        in_bodies=len(beginning) >= LEAST_IN_BODIES,
    )  # fmt: skip
    yield from found
    if not found and not words.is_known(stem):
        for length in range(len(beginning) - 1, max(LEAST_STEM, len(beginning) - LONGEST_ENDING) - 1, -1):
            if words.is_known(beginning[:length]):
                yield beginning[:length]
                return
