"""Words of a question and of documentation, comparable: by language, without those that say nothing, by their stems."""

import re
from functools import cache, lru_cache
from itertools import pairwise
from threading import Lock

from service.markup.languages.detection import sentence_words
from service.markup.languages.stop_words import question_words

MAX_KNOWN_STEMS = 50_000

_MORE_STOP_WORDS = """
after all because before being best between both cannot don down each else ever every few further gets getting give go
got happen happens having here however isn know let ll look makes many may mean means might more most much must needs
no nor now off once only other out over own possible re s same see show something such t thing things through try
trying under until up uses very way ways while within without work works einen einer sind man nicht sont quel quelle
ce unos son cuál hello hey hi thank thanks hallo danke bonjour merci hola gracias olá obrigado os um uma é são em com
da na posso qual
"""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")  # noqa: RUF001
_COMPOUND = re.compile(r"(?<!\w)(?:\w++(?:[-./:]\w++)++|\w*_\w+)")
_AMOUNT = re.compile(r"(?<![\w.])(?P<number>\d+)(?P<unit>[a-z]{1,3})\b")
"""``200MB`` is 200 MB."""
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
"""Scripts that write no spaces between words."""
_HIRAGANA = re.compile(r"[\u3040-\u309f]+")

_SNOWBALL = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "pt": "portuguese",
    "it": "italian",
    "nl": "dutch",
    "sv": "swedish",
    "da": "danish",
    "nb": "norwegian",
    "pl": "polish",
    "cs": "czech",
    "ro": "romanian",
    "tr": "turkish",
    "ru": "russian",
}
"""Others are compared as English is; a pair of characters is its own stem."""


@cache
def stop_words() -> frozenset[str]:
    return question_words().union(_MORE_STOP_WORDS.split())


def stems_of(text: str, language: str) -> tuple[str, ...]:
    """Return the stems of the words with a meaning, in order; then compounds (``a.b``, ``a_b``) as they are."""
    stem = stemmer_of(language)
    empty, always_empty = sentence_words(language), stop_words()
    folded = text.casefold()
    spaced = folded if folded.isascii() else _UNSPACED.sub(_pairs, folded)
    words = [
        word
        for word in _WORD.findall(_AMOUNT.sub(r"\g<number> \g<unit>", spaced))
        if word not in empty and word not in always_empty
    ]
    return (
        *(stem(word) for word in words),
        *_COMPOUND.findall(folded if spaced is folded else _UNSPACED.sub(" ", folded)),
    )


def _pairs(match: re.Match[str]) -> str:
    """Return each two neighbouring characters; of the kana alone that bind words in Japanese, none."""
    run = match[0]
    pairs = [first + second for first, second in pairwise(run)] or [run]
    return " " + " ".join(pair for pair in pairs if not _HIRAGANA.fullmatch(pair)) + " "


@lru_cache
def stemmer_of(language: str) -> "_Stemmer":
    return _Stemmer(language)


class _Stemmer:
    """Remembers what it stemmed; Snowball's own objects are not for two threads at once."""

    def __init__(self, language: str) -> None:
        import snowballstemmer  # when it is wanted: its languages take 3 MB

        self._snowball = snowballstemmer.stemmer(_SNOWBALL.get(language, "english"))
        self._known: dict[str, str] = {}
        self._lock = Lock()

    def __call__(self, word: str) -> str:
        stem = self._known.get(word)
        if stem is None:
            with self._lock:
                stem = str(self._snowball.stemWord(word))
                if len(self._known) > MAX_KNOWN_STEMS:
                    self._known.clear()
            self._known[word] = stem
        return stem
