"""Words of a question that no page has: with most of its meaning in them, the rest of its words finds little."""

import math
from collections.abc import Iterable, Sequence
from itertools import islice

from service.domain.search import QueryWord
from service.markup.languages.detection import language_of, page_language
from service.markup.languages.kindred_words import common_words

SAMPLED_TEXTS, MAX_SAMPLE = 60, 200
"""Texts that a language is read from, and characters of each."""
LEAST_SHARE = 0.0005
"""The share of sections that a word counts as having which none has."""
FAR = 0.45
"""The part of a question, by the rarity of its words, from which the documentation is likely about something else. None
of the 210 questions of ``scripts/answers`` loses its answer to the fewer tokens that it then has.
"""
LEAST_SCORE = 0.5
"""The score below which a section is no help to a language model. Of the 210 questions, 1 loses its answer to it; at
0.6 it is 6, at 0.7 it is 14.
"""


def language_of_texts(texts: Iterable[str]) -> str:
    """Return the language that most of the texts are in; empty where there are none."""
    samples = " ".join(text[:MAX_SAMPLE] for text in islice(texts, SAMPLED_TEXTS))
    return (page_language(samples) or language_of(samples)) if samples.strip() else ""


def lacking_words(question: str, words: Sequence[QueryWord], texts: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a question that no page has, nor another word for, as they were typed. ``texts``: those that
    were found. Empty where they are in another language than the question.
    """
    found = {word.typed.casefold(): word.typed for word in words if _is_lacking(word)}
    if not found:
        return ()
    language = language_of_texts(texts)
    return tuple(found.values()) if language == language_of(question, expected=(language,)) else ()


def lacking_part(words: Sequence[QueryWord]) -> float:
    """Return the part of a question that words are which no page has, each weighed by its rarity: 0 .. 1."""
    typed = [word for word in words if not word.is_name]
    weights = {word.typed: math.log(1 + 1 / max(word.share, LEAST_SHARE)) for word in typed}
    whole = sum(weights.values())
    return sum(weights[word.typed] for word in typed if _is_lacking(word)) / whole if whole else 0.0


def _is_lacking(word: QueryWord) -> bool:
    return not word.share and not word.corrected and not word.kindred and word.typed.casefold() not in common_words()
