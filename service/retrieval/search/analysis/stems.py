"""Stemmers: the part that the forms of a word share, by language.

tantivy has Snowball's stemmers for eighteen languages; they give what the package ``snowballstemmer`` gives (compared
on the words of FastAPI's documentation in seven languages) in a fiftieth of the time. That package has the others. For
Ukrainian and Hebrew Snowball has none: there, common endings and prefixes are cut.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from threading import Lock

import tantivy

from service.retrieval.search.analysis.writing_systems import alphabets

Stemmer = Callable[[str], str]

_TANTIVY = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "es": "spanish", "fi": "finnish", "fr": "french",
    "hu": "hungarian", "it": "italian", "nb": "norwegian", "nl": "dutch", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
_SNOWBALL = {
    "bs": "serbian", "ca": "catalan", "cs": "czech", "eo": "esperanto", "et": "estonian", "eu": "basque",
    "fa": "persian", "ga": "irish", "hi": "hindi", "hr": "serbian", "hy": "armenian", "id": "indonesian",
    "lt": "lithuanian", "ms": "indonesian", "ne": "nepali", "pl": "polish", "sk": "czech", "sr": "serbian",
    "yi": "yiddish",
}  # fmt: skip
_OTHER_SCRIPTS = frozenset(("ar", "el", "fa", "he", "hi", "hy", "ne", "ru", "ta", "uk", "yi"))


@lru_cache(maxsize=64)
def stemmer_of(language: str) -> Stemmer | None:
    """Return the stemmer of a language, for words in lower case; None for those that need none, or have none."""
    if language in _TANTIVY:
        return _of_tantivy(_TANTIVY[language])
    if language in _SNOWBALL:
        return _of_snowball(_SNOWBALL[language])
    return _by_rules(language) if language in alphabets().endings else None


def stems_ascii(language: str) -> bool:
    """Return whether words in ASCII may be of the language; in a language of another script they are names."""
    return language not in _OTHER_SCRIPTS


def _of_tantivy(name: str) -> Stemmer:
    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stemmer(name)).build()
    lock = Lock()

    def stem(word: str) -> str:
        with lock:
            return analyzer.analyze(word)[0]

    return stem


def _of_snowball(name: str) -> Stemmer:
    import snowballstemmer  # all its languages: 40 ms that most sites do without

    stemmer, lock = snowballstemmer.stemmer(name), Lock()  # it keeps the word that it is at

    def stem(word: str) -> str:
        with lock:
            return str(stemmer.stemWord(word))

    return stem


def _by_rules(language: str) -> Stemmer:
    """Cut the longest ending, then suffix and prefix, each where it leaves at least three letters."""
    rules = alphabets()
    ending, suffix = (
        re.compile(rf"(?<=...)(?:{_longest_first(words.get(language, ''))})\Z")
        for words in (rules.endings, rules.suffixes)
    )
    prefix = re.compile(rf"\A(?:{_longest_first(rules.prefixes.get(language, ''))})(?=...)")
    return lambda word: prefix.sub("", suffix.sub("", ending.sub("", word)))


def _longest_first(words: str) -> str:
    return "|".join(sorted(words.split(), key=lambda word: -len(word)))
