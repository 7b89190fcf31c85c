"""Words that only make a sentence, and those that make a question of a subject, by language: none is searched for.

``stop_words.json`` has them, words of a language separated by blanks, in addition to those by which ``detection``
recognizes it. The English list is complete by itself: it was measured with search. ``questions`` is of no language.
"""

import unicodedata
from functools import cache
from importlib import resources

import msgspec

from service.markup.languages.detection import sentence_words


@cache
def _lists() -> dict[str, str]:
    return msgspec.json.decode(resources.files(__package__).joinpath("stop_words.json").read_bytes(), type=dict)


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language in lower case, with and without accents; none where none are known."""
    listed = frozenset(_lists().get(language, "").split())
    if language == "en":
        return listed
    words = {word.rstrip("'’") for word in listed | sentence_words(language)}  # noqa: RUF001
    return frozenset(words | {_plain(word) for word in words} - {""})


@cache
def question_words() -> frozenset[str]:
    """Return words that say nothing in a question, in English, German, French and Spanish, whichever it is in."""
    return frozenset(_lists()["questions"].split())


def _plain(word: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFD", word) if not unicodedata.combining(each))
