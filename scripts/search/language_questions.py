"""Questions in many languages, made by rule from pages that were really translated (``bench languages``).

The documentation has a folder for each language (``docs/<language>/docs``), and its headings have the same anchors in
all. So a heading and its translations are known to be of one section. The rule:

1. Headings of levels 1 to 3 that all languages have, with at least two words in English, and of which no other page has
   one of the same words, in English or in the language.
2. One heading from each of ``count`` pages. Pages and headings are ordered by a hash of their path and
   anchor, so they are the same on every machine, and the same in all languages. The answer is the heading's page.
3. Marks of code and tags are left out. Words of letters that are not code, and in the translation not the English word,
   are inflected: at most two, the longest first, by the first pattern of the language that fits
   (``scripts/search/inflections.json``): another case, number, person or tense, or, where words are not parted by
   blanks, another particle or verb. Capitals at the beginning of a word of German stay, all others are lowered.
4. The heading goes into one of five templates of the language, in turn, that put particles before or after it.
5. Every third question has the spelling of a keyboard without the language's letters, where it has any: ``ä`` as
   ``ae``, ``é`` as ``e``.

English questions are made by the same rule from the English headings of the same sections.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

INFLECTIONS = Path(__file__).parent / "inflections.json"
ENGLISH = "en"
UNSPACED = ("ja", "zh", "zh-hant")
"""Languages whose patterns are of the whole heading."""
MOST_INFLECTED = 2
LEAST_LETTERS = 3
"""Letters of a word that is inflected."""
WITHOUT_LETTERS = 3
"""One question of this number is spelt without the letters of the language."""

_HEADING = re.compile(r"^#{1,3} (.+?) \{ ?#([\w-]+) ?\}[ \t]*$", re.MULTILINE)
_FENCED = re.compile(r"^(`{3,})[^\n]*\n.*?^\1", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"</?[a-z][^>\n]*>")
_CODE = re.compile(r"`[^`]*`|[\w.]*[_.()/\d]\w*|\w*[a-z][A-Z]\w*|[A-Z]{2,}\w*")

_LOWER_TURKISH = {ord("İ"): "i", ord("I"): "ı"}  # noqa: RUF001  (its letter)

Section = tuple[str, str]
"""Path of a page below its language's folder, and the anchor of a heading."""


class Inflections(Struct, frozen=True):
    """The templates and patterns of a language."""

    templates: list[str]
    words: list[tuple[str, str]]
    spelling: list[tuple[str, str]] = []


class LanguageQuestion(Struct, frozen=True):
    query: str
    page: str
    """Path below the folder of the language."""


def inflections() -> dict[str, Inflections]:
    return msgspec.json.decode(INFLECTIONS.read_bytes(), type=dict[str, Inflections])


def headings_of(folder: Path) -> dict[Section, str]:
    """Return the headings of a language's pages."""
    found = {}
    for file in sorted(folder.rglob("*.md")):
        text = _FENCED.sub("", file.read_text(encoding="utf-8"))
        for match in _HEADING.finditer(text):
            found[file.relative_to(folder).as_posix(), match[2]] = _TAG.sub("", match[1])
    return found


def questions_by_language(folders: Mapping[str, Path], count: int) -> dict[str, list[LanguageQuestion]]:
    """Return the questions of each language. ``folders``: the folder of pages of each."""
    headings = {language: headings_of(folder) for language, folder in folders.items()}
    rules = inflections()
    sections = _chosen(headings, count)
    return {
        language: [
            LanguageQuestion(
                question_of(found[section], headings[ENGLISH][section], language, rules[language], number), section[0]
            )
            for number, section in enumerate(sections)
        ]
        for language, found in headings.items()
    }


def _chosen(headings: Mapping[str, Mapping[Section, str]], count: int) -> list[Section]:
    common = set(headings[ENGLISH]).intersection(*headings.values())
    pages_with = {
        language: Counter(heading for heading, _ in {(_same(text), page) for (page, _), text in found.items()})
        for language, found in headings.items()
    }
    fit = [
        section
        for section in common
        if len(headings[ENGLISH][section].split()) > 1
        and all(pages_with[language][_same(found[section])] == 1 for language, found in headings.items())
    ]
    of_page: dict[str, Section] = {}
    for section in sorted(fit, key=_hash):
        of_page.setdefault(section[0], section)
    return sorted(of_page.values(), key=lambda section: _hash((section[0], "")))[:count]


def _same(heading: str) -> str:
    return " ".join(heading.casefold().replace("`", "").split())


def _hash(section: Section) -> bytes:
    return hashlib.sha256("#".join(section).encode()).digest()


def question_of(heading: str, english: str, language: str, rules: Inflections, number: int) -> str:
    """Return a heading as a question: inflected, and put into the template of its number."""
    text = _inflected(heading, english, language, rules)
    if number % WITHOUT_LETTERS == WITHOUT_LETTERS - 1:
        for pattern, other in rules.spelling:
            text = re.sub(pattern, other, text)
    return rules.templates[number % len(rules.templates)].replace("{}", text.replace("`", ""))


def _inflected(heading: str, english: str, language: str, rules: Inflections) -> str:
    if language in UNSPACED:
        return _first_of(rules.words, heading) or heading
    code = {word for match in _CODE.finditer(heading) for word in re.findall(r"[^\W\d_]+", match[0])}
    foreign = set() if language == ENGLISH else set(re.findall(r"\w+", english.casefold()))
    words = [
        word
        for word in dict.fromkeys(re.findall(r"[^\W\d_](?:[^\W\d_]|[\u0900-\u097f])*", heading))
        if len(word) >= LEAST_LETTERS and word not in code and word.casefold() not in foreign
    ]
    changed = {word: other for word in words if (other := _first_of(rules.words, word))}
    text = heading
    for word in sorted(changed, key=lambda word: (-len(word), word))[:MOST_INFLECTED]:
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", changed[word], text)
    if language == "de":
        return text
    lowered = (word[:1].translate(_LOWER_TURKISH) if language == "tr" else word[:1] for word in text.split(" "))
    pairs = zip(text.split(" "), lowered, strict=True)
    return " ".join(word if _CODE.fullmatch(word) else first.lower() + word[1:] for word, first in pairs)


def _first_of(patterns: list[tuple[str, str]], text: str) -> str:
    """Return the text changed by the first pattern that fits; empty when none does."""
    return next((re.sub(pattern, other, text) for pattern, other in patterns if re.search(pattern, text)), "")
