"""From the text that a person typed to the terms that are looked up in the index.

A query is data: what is left of it are letters and digits, and their number is capped, so a pasted log costs what a
long question costs. Words that only make a sentence a question are left out. A name is also asked for by its parts and
neighbours also as one word, so ``retryDelaySecs``, ``retry_delay`` and "retry delay" find each other. A word that the
site does not have is replaced by the nearest one that it has.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from tantivy import Query

from service.domain.search import QueryWord
from service.domain.texts.unicode_forms import normalized
from service.markup.languages.kindred_words import is_english_word, phrase_words, spelled_out
from service.markup.languages.stop_words import stop_words
from service.retrieval.search.analysis.compounds import compound_parts
from service.retrieval.search.analysis.terms import joined_names, parts_of, words_in
from service.retrieval.search.analysis.writing_systems import binds, without_phrases
from service.retrieval.search.questions.names import capital_words, parts_of_names, unknown_names
from service.retrieval.search.words import Words

MAX_QUERY = 32_768
MAX_TERMS = 24
"""Beyond it, the words that are in the fewest sections are kept."""
MAX_READ_WORDS = 400
PART, JOINED, NEAR, KINDRED = 0.5, 0.5, 0.7, 0.3
"""Weights of terms that are not words of the question itself: a part of a name, two words as one, a near word, a word
that readers use for one of the site's.
"""
FORM, BINDING, COMPOUND = 0.2, 0.2, 0.2
"""Weights of further forms of a word, as it stands or without accents; of kana that bind a sentence; of the parts of a
compound.
"""
LEAST_KINDRED = 0.02
"""Where such a word would weigh less, on a site with 1,500 sections, it changes no order and is not looked for."""
MAX_KINDRED = 6
"""Terms that stand for one word."""
ENGLISH = ("en",)
MAX_CORRECTED = 4
LEAST_SPLIT, LEAST_CORRECTED, FIRST_LETTER_FREE_FROM, TWO_LETTERS_FROM = 3, 4, 6, 8
"""Letters of a half of a word; of a stem that may be misspelt; in its first letter; in two places. A short one has many
neighbours ("cable", "table") that are not meant, and so has "swimming": it is looked up as "swim".
"""
SMALL_SITE = 400
"""Sections; with so few of them their number says little about how rare a word is."""
FEW_SECTIONS = 2
"""With no more of them, a word may be a name that most sections write as two words."""
FIRST_PAIR_MOST = 4000
"""Sections: a pair of neighbours is asked for as one word when that is a rare word, as names are."""

NearTerms = Callable[[str, int], Iterable[str]]
"""A function of a term that the site does not have and a number of letters: the site's terms within that distance."""


class Terms(Struct, frozen=True):
    weights: Mapping[str, float]
    """By term, in the question's order."""
    pairs: tuple[tuple[str, str], ...]
    """Neighbours in the question."""
    corrected: Mapping[str, str]
    """Words that were typed and are not on the site → the terms that are used instead."""
    kindred: Mapping[str, tuple[str, ...]] = {}
    """Words that were typed → the terms of the site that may stand for them."""
    languages: Sequence[str] = ENGLISH
    """In which the question was read, its own first."""
    is_unfinished: bool = False
    """The last word may go on: of what it may become titles say most, and whole pages least."""
    is_about_changes: bool = False
    """Change logs may answer."""
    is_about_releases: bool = False
    """Posts about releases may answer."""


def read_question(query: str, words: Words, near: NearTerms, languages: Sequence[str] = ENGLISH) -> Terms:
    """Terms by their first use, one per stem. ``languages``: those that the question is read in, its own first."""
    kept = words_of_question(query, languages)
    weights: dict[str, float] = {}
    further: dict[str, float] = {}
    small = _smallness(words) if languages[0] == "en" else 0.0
    for word in dict.fromkeys(kept):
        first, *others = words.forms(word, languages)
        _add(weights, [first], BINDING if binds(word) else 1.0)
        _add(further, others, FORM)
        for language in languages:
            _add(further, compound_parts(word, language, words.frequency), COMPOUND)
    for word in dict.fromkeys(kept):
        parts = parts_of(word)
        if parts:
            _add(weights, [words.stem(part) for part in parts], PART)
            _add(weights, _joined(parts, words), JOINED)
    whole = [words.stem(name) for name in joined_names(query[:MAX_QUERY])[:MAX_TERMS]]
    _add(weights, [term for term in whole if words.frequency(term)], 1.0)
    _add(weights, _joined(kept[: 2 * MAX_TERMS], words), JOINED)
    corrected = (
        _corrected(dict.fromkeys(kept), query, weights, words, near, languages) if len(weights) <= 2 * MAX_TERMS else {}
    )
    kindred = _kindred(kept, query, words) if languages[0] == "en" else {}
    weights = further | weights if further else weights
    chosen = _rarest(weights, words)
    _add_kindred(chosen, kindred, words, small)
    pairs: dict[tuple[str, str], None] = {}
    for language in languages:
        sequence = [term for word in kept if (term := words.stem(word, language))]
        for first, second in pairwise(sequence):
            if first != second and first in chosen and second in chosen:
                pairs[first, second] = None
    return Terms(chosen, tuple(pairs)[:MAX_TERMS], corrected, kindred, languages)


def _smallness(words: Words) -> float:
    """Return how small a site is, 0 .. 1: on a large one the rarity of words speaks for itself."""
    return 1.0 / (1.0 + (words.sections.num_docs / SMALL_SITE) ** 2)


def _add_kindred(chosen: dict[str, float], kindred: Mapping[str, Sequence[str]], words: Words, small: float) -> None:
    """Add terms that may stand for words of the question, where those leave place for them."""
    for word, terms in kindred.items():
        own = words.stem(word) or word
        is_known = words.is_known(own)
        weight = small * KINDRED if is_known else NEAR if spelled_out(word) else small * NEAR
        if is_known and (weight < LEAST_KINDRED or words.is_in_title(own)):
            continue
        _add(chosen, [term for term in terms if term not in chosen][: MAX_TERMS - len(chosen)], weight)


def _kindred(kept: Sequence[str], query: str, words: Words) -> dict[str, tuple[str, ...]]:
    """Return the site's terms that may stand for words of the question, and for its phrases."""
    found: dict[str, tuple[str, ...]] = {}
    own = {words.stem(word) for word in kept}
    for word in map(str.casefold, kept[:MAX_TERMS]):
        terms = words.kindred(word)
        if (others := spelled_out(word)) and not words.is_known(words.stem(word)):
            terms = [*filter(words.is_known, map(words.stem, others)), *terms]
        _note_kindred(found, word, terms, own)
    for word in _phrase_words(query, ENGLISH):
        term = words.stem(word)
        said = [term] if words.is_known(term) else []
        _note_kindred(found, word, [*said, *(other for other in words.kindred(word) if other != term)], own)
    return found


def _note_kindred(found: dict[str, tuple[str, ...]], word: str, terms: Sequence[str], own: Collection[str]) -> None:
    others = tuple(term for term in terms if term not in own)
    if others:
        found[word] = others[:MAX_KINDRED]


def _phrase_words(query: str, languages: Sequence[str]) -> tuple[str, ...]:
    return phrase_words(query[:MAX_QUERY]) if languages[0] == "en" else ()


def query_words(query: str, words: Words, terms: Terms, only: Query | None = None) -> tuple[QueryWord, ...]:
    """Return the first words that are looked up, each once. ``terms``: those that the query was read as; ``only``: the
    sections that the reader may see, to whom other words are unknown.
    """
    languages, corrected = terms.languages, terms.corrected
    kept = dict.fromkeys([*words_of_question(query, languages), *_phrase_words(query, languages)])
    sections = max(1, words.sections.num_docs)

    def frequency(term: str) -> int:
        found = words.frequency(term) or int(words.is_known(term))
        return found if not found or only is None or words.is_among(term, only) else 0

    capitals = capital_words(query) if languages[0] != "de" else {}  # German has them for every noun
    found = [
        QueryWord(
            word.casefold(),
            min(1.0, max(map(frequency, words.forms(word, languages))) / sections),
            corrected.get(word, ""),
            terms.kindred.get(word.casefold(), ()),
        )
        for word in list(kept)[: 2 * MAX_TERMS]
    ]
    names = unknown_names(query, words, lambda term: frequency(term) > 0, only)
    in_names = parts_of_names(query)
    names += tuple(
        capitals[word.casefold()]
        for word, read in zip(kept, found, strict=False)
        if word.casefold() in capitals.keys() - in_names
        and not read.share
        and not read.kindred
        and (not read.corrected or " " in read.corrected)
    )
    return (*found, *(QueryWord(name, 0.0, is_name=True) for name in dict.fromkeys(names)))


def words_of_question(query: str, languages: Sequence[str] = ENGLISH) -> list[str]:
    """Return the words that are looked up, as they were typed."""
    query = normalized("NFKC", query[:MAX_QUERY])[:MAX_QUERY]  # one character may become eighteen
    typed = _words_in(query if query.isascii() else without_phrases(query)) or _words_in(query)
    empty = stop_words("en").union(*map(stop_words, languages)) if languages != ENGLISH else stop_words("en")
    return [word for word in typed if word.casefold() not in empty] or typed


def _words_in(query: str) -> list[str]:
    typed = words_in(query)
    return typed if len(typed) <= 2 * MAX_READ_WORDS else typed[:MAX_READ_WORDS] + typed[-MAX_READ_WORDS:]


def _add(weights: dict[str, float], terms: Iterable[str], weight: float) -> None:
    for term in terms:
        if term:
            weights.setdefault(term, weight)


def _joined(parts: Sequence[str], words: Words) -> list[str]:
    """Neighbours as one word, where the site has it."""
    found = (words.stem(first + second) for first, second in pairwise(parts))
    return [term for term in found if term and 0 < words.frequency(term) <= FIRST_PAIR_MOST]


def _rarest(weights: Mapping[str, float], words: Words) -> dict[str, float]:
    if len(weights) <= MAX_TERMS:
        return dict(weights)
    known = [term for term in weights if words.is_known(term)]
    rarest = set(sorted(known, key=words.frequency)[:MAX_TERMS])
    return {term: weight for term, weight in weights.items() if term in rarest}


def _corrected(
    typed: Iterable[str], query: str, weights: dict[str, float], words: Words, near: NearTerms,
    languages: Sequence[str],
) -> dict[str, str]:  # fmt: skip
    """Replace words that the site does not have by words that it has; return these by what was typed."""
    corrected: dict[str, str] = {}
    in_names: frozenset[str] | None = None
    for word in typed:
        term = words.stem(word)
        if len(corrected) >= MAX_CORRECTED or len(term) < LEAST_CORRECTED or not word.isalpha():
            continue
        if words.frequency(term) > FEW_SECTIONS:
            continue
        in_names = parts_of_names(query) if in_names is None else in_names
        if word.casefold() in in_names or parts_of(word):
            continue  # its parts are asked for
        if any(map(words.is_known, words.forms(word, languages))):
            if halves := _halves(word, words):
                _add(weights, halves if words.with_run(halves, None, 1) else (), PART)
            continue
        if languages[0] == "en" and is_english_word(word.casefold()):
            continue  # it is no slip
        found = _nearest(term, 1, words, near)
        found = found or _halves(word, words)
        if not found and len(term) >= TWO_LETTERS_FROM:
            found = _nearest(term, 2, words, near)
        if found:
            _add(weights, found, NEAR)
            corrected[word] = " ".join(found)
    return corrected


def _nearest(term: str, distance: int, words: Words, near: NearTerms) -> list[str]:
    """The commonest, rather one with the same first letter: that is where people slip least."""
    candidates = {
        each: (each[:1] == term[:1], words.frequency(each), each)
        for each in near(term, distance)
        if each[:1] == term[:1] or len(term) >= FIRST_LETTER_FREE_FROM
    }
    return [max(candidates, key=candidates.__getitem__)] if candidates else []


def _halves(word: str, words: Words) -> list[str]:
    """``retrydelay`` → retry, delay: where both are words of the site, the two whose rarer one is commonest."""
    best: tuple[int, list[str]] = (0, [])
    for at in range(LEAST_SPLIT, len(word) - LEAST_SPLIT + 1):
        terms = [words.stem(word[:at]), words.stem(word[at:])]
        best = max(best, (min(words.frequency(term) if term else 0 for term in terms), terms))
    return best[1] if best[0] else []


def letters_apart(one: str, other: str, most: int) -> bool:
    """Return whether at most ``most`` letters, added, left out, changed or swapped with the next, turn one into the
    other.
    """
    if abs(len(one) - len(other)) > most or len(set(one) - set(other)) > most:
        return False
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        before, last, row = row, before, [at]
        for place, each in enumerate(other, start=1):
            cost = min(before[place] + 1, row[place - 1] + 1, before[place - 1] + (letter != each))
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == each:
                cost = min(cost, last[place - 2] + 1)
            row.append(cost)
    return row[-1] <= most
