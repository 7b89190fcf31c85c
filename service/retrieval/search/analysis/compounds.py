"""Compounds: words written as one, as German and its kin write them (``Datenbankverbindung``).

A compound is found by its parts and a part by its compound. What is a part is not asked of a dictionary but of the
site: a page's words are compared with those of all titles and headings, a question's with the words that pages have.
"""

from collections.abc import Callable, Iterable, Mapping

from service.markup.languages.stop_words import stop_words
from service.retrieval.search.analysis.terms import forms_of, words_in

LANGUAGES = frozenset(("da", "de", "fi", "hu", "nb", "nl", "sv"))
LEAST_COMPOUND, LEAST_PART = 9, 4
"""Letters."""
_LINKS = {
    "da": ("", "s", "e"), "de": ("", "s", "es", "n", "en", "er"), "fi": ("", "n"), "hu": ("",), "nb": ("", "s", "e"),
    "nl": ("", "s", "en", "n"), "sv": ("", "s"),
}  # fmt: skip
"""Letters between two parts."""

Commonness = Callable[[str], int]
"""A function of a stem: how often the site has it; 0 where it does not."""


def compound_parts(word: str, language: str, commonness: Commonness) -> tuple[str, ...]:
    """Return the stems of the two parts of a word, the pair whose rarer one is commonest; nothing for other words."""
    if language not in LANGUAGES or len(word) < LEAST_COMPOUND or not word.isalpha():
        return ()
    lowered = word.lower()
    best: tuple[int, tuple[str, ...]] = (0, ())
    for at in range(LEAST_PART, len(lowered) - LEAST_PART + 1):
        last = lowered[at:]
        if not (common := _commonness(last, language, commonness)):
            continue
        for link in _LINKS[language]:
            first = lowered[:at].removesuffix(link)
            if lowered[:at].endswith(link) and len(first) >= LEAST_PART:
                rarer = min(common, _commonness(first, language, commonness))
                best = max(best, (rarer, (_stem(first, language), _stem(last, language))))
    return best[1]


def vocabularies(headings: Iterable[tuple[str, str]]) -> Mapping[str, Mapping[str, int]]:
    """Return how often each stem is in titles and headings, by language; from pairs of a language and a heading."""
    found: dict[str, dict[str, int]] = {}
    for language, heading in headings:
        counts = found.setdefault(language, {})
        for word in words_in(heading):
            if len(word) >= LEAST_PART and word.isalpha():
                stem = _stem(word, language)
                counts[stem] = counts.get(stem, 0) + 1
    return found


def _commonness(part: str, language: str, commonness: Commonness) -> int:
    return 0 if part in stop_words(language) else commonness(_stem(part, language))


def _stem(word: str, language: str) -> str:
    return forms_of(word, language)[0]
