"""The language of a short text: a question of a few words, half of them names that belong to no language.

Three kinds of evidence are added up: the script, words that only make a sentence, each weighted by how few languages
share it ("es" is German as well as Spanish, "de" is in six), and letters and endings that few languages have. Code,
addresses and names are no evidence. Where that is too little, the languages that the caller expects decide: a short
question is in the language of the documentation or of the questions before it, more often than not.

A library was measured and turned down: py3langid takes 122 MB of memory, lingua 283 MB and a file of 96 MB, and both
take "configure de-duplication" for French.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from math import sqrt

import msgspec
from msgspec import Struct

MAX_CHARACTERS = 2_000
"""Beginning of a text that is looked at."""
EXPECTED = 0.58
"""Weight of the first language that is expected, in words that only it has; of each further one, half of it."""
ENDING, LETTER = 0.45, 0.9
LEAST_ENDED = 6
"""Letters of a word whose ending counts."""
LEAST_WORDS, ENGLISH_SHARE = 20, 0.25
"""Words of a page, and the part of them that only make an English sentence, by which it is in English for sure. Pages
in languages that share such words, as Dutch does, have less than half of that.
"""
LEAST_EVIDENCE, CLEAR = 4.0, 1.5
"""Evidence for the language of a page, in words, and how often that of the next language it is."""
KEPT_WORDS = 8_192
"""Words whose weights are kept: most of what a site's pages say."""
COMMON, UNCOMMON = 1.0, 0.6
"""Weights of the words that make a sentence, and of words that documentation is full of."""

_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("fa", re.compile(r"[\u067e\u0686\u0698\u06a9\u06af\u06cc]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("uk", re.compile(r"[іїєґІЇЄҐ]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
)
"""The first whose letters a text has, in its order: Japanese has Chinese letters, Ukrainian has Russian ones."""
LEAST_OF_SCRIPT = 0.2
"""Share of the letters of a text, without its code and names, that a script has at least."""

_CODE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|(?:https?://|www\.)[!-~]+"
    r"|(?<!\S)(?:--?[a-z][\w-]*|[@#/~.][\w./-]+)"
    r"|(?<![\w$])_*+[A-Za-z0-9$]++(?:[./:_=\\@#]++[A-Za-z0-9$-]++)+(?:\(\))?"
    r"|(?<!\w)(?=\w)(?:[A-Za-z_]*+[0-9]\w*|[a-z]++[A-Z]\w*|[A-Z]{2,}s?(?!\w)|[A-Z][a-z]++[A-Z]\w*)",
    re.DOTALL | re.ASCII,
)
_WORD = re.compile(r"(?<!['’])[^\W\d_]+(?:[-'’][^\W\d_]+)*")  # noqa: RUF001
_ELIDED = re.compile(r"(?P<elided>[cdjlmnst]|qu|dell|all|nell|sull|dall|un|cos|dov|com)['’](?P<word>.+)")  # noqa: RUF001


NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fa": "Persian", "fr": "French", "he": "Hebrew", "hi": "Hindi", "id": "Indonesian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The languages that are known, with their names in English."""


_SAME = {"no": "nb", "nn": "nb", "iw": "he", "in": "id", "cn": "zh", "jp": "ja", "kr": "ko", "ua": "uk"}
"""Codes that stand for another one; the last ones are countries, which sites name folders by."""
_OTHERS = frozenset("bg bn ca et fi hr hu lt lv ms sk sl sr ur".split())  # noqa: SIM905
"""Languages that sites are in, without a list of words here."""


def _weights(words: Mapping[str, str], each: float) -> dict[str, dict[str, float]]:
    """Return, by word, its weight for each language that has it."""
    having: dict[str, list[str]] = {}
    for language, listed in words.items():
        for word in dict.fromkeys(listed.split()):
            having.setdefault(word, []).append(language)
    return {word: dict.fromkeys(languages, each / sqrt(len(languages))) for word, languages in having.items()}


class _Lists(Struct, frozen=True):
    """``languages.json``; each list by language, its words separated by blanks."""

    sentence_words: dict[str, str]
    documentation_words: dict[str, str]
    endings: dict[str, str]
    letters: dict[str, str]


@cache
def _lists() -> _Lists:
    return msgspec.json.decode(resources.files(__package__).joinpath("languages.json").read_bytes(), type=_Lists)


class _Tables:
    """The weights of words, endings and letters, for each language that has them."""

    def __init__(self) -> None:
        lists = _lists()
        self.words = _weights(lists.documentation_words, UNCOMMON) | _weights(lists.sentence_words, COMMON)
        self.endings = _weights(lists.endings, ENDING)
        self.letters = _weights({language: " ".join(found) for language, found in lists.letters.items()}, LETTER)


@cache
def _tables() -> _Tables:
    return _Tables()


@cache
def sentence_words(language: str) -> frozenset[str]:
    """Return the words of a language that only make a sentence; none for a language without such a list."""
    return frozenset(_lists().sentence_words.get(language, "").split())


def language_of(text: str, *, expected: Sequence[str] = ("en",)) -> str:
    """Return the language of a text, as ``NAMES`` has it; when in doubt one of those expected, the likeliest first."""
    scores = defaultdict(float, evidence(text))
    for place, language in enumerate(dict.fromkeys(map(base_language, filter(None, expected)))):
        scores[language] += EXPECTED if place == 0 else EXPECTED / 2
    return max(scores, key=lambda language: (scores[language], language == "en"), default="en")


def page_language(text: str) -> str:
    """Return the language that a page's text shows by itself; empty for one with too little text, or mostly code."""
    words = text[:MAX_CHARACTERS].casefold().split()
    english = sentence_words("en")
    if len(words) >= LEAST_WORDS and sum(word in english for word in words) >= ENGLISH_SHARE * len(words):
        return "en"  # most pages, and at a tenth of the time
    found = evidence(text)
    ordered = sorted(found, key=lambda language: -found[language])
    if not ordered or found[ordered[0]] < LEAST_EVIDENCE:
        return ""
    others = found[ordered[1]] if len(ordered) > 1 else 0.0
    return ordered[0] if found[ordered[0]] >= CLEAR * others else ""


def base_language(tag: str) -> str:
    """Return the language of a tag such as ``pt-BR``."""
    return re.split(r"[-_]", tag.strip().casefold(), maxsplit=1)[0]


@lru_cache(maxsize=512)
def known_language(tag: str) -> str:
    """Return the language of a tag, ``pt`` for ``pt_BR``; empty for what is none, such as a language of code."""
    base = base_language(tag) if tag else ""
    if base in NAMES:
        return base
    return _SAME.get(base, base if base in _OTHERS else "")


def chinese_script(text: str) -> str:
    """Return ``zh-hant`` for a text in traditional characters, else ``zh``: by the characters that only one of the two
    national standards has.
    """
    traditional = sum(_is_encoded(one, "big5") - _is_encoded(one, "gb2312") for one in text[:MAX_CHARACTERS])
    return "zh-hant" if traditional > 0 else "zh"


def _is_encoded(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def evidence(text: str) -> dict[str, float]:
    """Return, by language, how many words speak for it; one that several languages share counts in part."""
    prose = _CODE.sub(" ", text[:MAX_CHARACTERS])
    scripts = () if prose.isascii() else _SCRIPTS
    letters = sum(map(str.isalpha, prose)) if scripts else 0
    for language, script in scripts:
        if (of_script := len(script.findall(prose))) and (language == "ja" or of_script >= _least(language, letters)):
            if language == "ru" and sentence_words("uk").intersection(_WORD.findall(prose.casefold())):
                language = "uk"
            return {language: float(of_script)}
    tables, scores = _tables(), defaultdict[str, float](float)
    words = (weights for word in _WORD.findall(prose.casefold()) for weights in _weights_of(word))
    for weights in (*words, *(tables.letters.get(letter, {}) for letter in {*prose.casefold()})):
        for language, weight in weights.items():
            scores[language] += weight
    return dict(scores)


def _least(language: str, letters: int) -> float:
    """Return how many characters of a script a text of that many letters needs; letters of one language are rare."""
    return 1 if language in ("uk", "fa") else LEAST_OF_SCRIPT * letters


@lru_cache(maxsize=KEPT_WORDS)
def _weights_of(word: str) -> tuple[Mapping[str, float], ...]:
    """Return the weights of a word, or of the two that it is."""
    listed = _tables().words
    parts = [word]
    if word not in listed and (match := _ELIDED.fullmatch(word)) is not None:
        parts = [f"{match['elided']}'", match["word"]]
    return tuple(listed.get(part) or _ending(part) for part in parts)


def _ending(word: str) -> Mapping[str, float]:
    endings = _tables().endings
    places = range(3, len(word) - 1) if len(word) >= LEAST_ENDED else ()
    return next((endings[word[at:]] for at in places if word[at:] in endings), {})
