"""Words of a question and of documentation, comparable: by language, without those that say nothing, by their stems."""

import re
from functools import lru_cache
from itertools import pairwise
from threading import Lock

from service.markup.languages.detection import sentence_words

MAX_KNOWN_STEMS = 50_000

_STOP_WORD_LIST = """
a about after all also am an and any are as at be because been before being best between both but by can cannot could
did do does doing don down each else ever every few for from further get gets getting give go got had happen happens
has have having here how however i if in into is isn it its just know let like ll look make makes many may me mean
means might more most much must my need needs no nor not now of off on once one only or other our out over own please
possible re s same see should show so some something such t tell than that the their them then there these they thing
things this those through to too try trying under until up use used uses using very want was way ways we were what
when where which while who why will with within without work works would you your
der das ein eine einen einer und oder ist sind wie was kann ich man mit für auf von zu den dem im wo warum es nicht
le la les un une des et ou est sont que qui pour dans avec sur je du de puis pourquoi quel quelle ce
el los las una unos y o es son cómo como qué para en con por del se puedo cuál
hello hey hi thank thanks hallo danke bonjour merci hola gracias olá obrigado
os as um uma é são que para em com por do da no na como posso qual
"""
STOP_WORDS = frozenset(_STOP_WORD_LIST.split())

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


def stems_of(text: str, language: str) -> tuple[str, ...]:
    """Return the stems of the words with a meaning, in order; then compounds (``a.b``, ``a_b``) as they are."""
    stem = stemmer_of(language)
    empty = sentence_words(language)
    folded = text.casefold()
    spaced = folded if folded.isascii() else _UNSPACED.sub(_pairs, folded)
    words = [
        word
        for word in _WORD.findall(_AMOUNT.sub(r"\g<number> \g<unit>", spaced))
        if word not in STOP_WORDS and word not in empty
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
