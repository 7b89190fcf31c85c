"""The reader of a search: the language that pages are wanted in, and the pages that may be found.

A filter's language hides the pages in others. On a site that is translated page by page, those in the site's own
language stay: they are the pages that are not translated, for of copies only one is shown (``index.copies``).

The reader's language is that of the filter; else of the page that is open; else of the question, where it is a language
of the site; else the site's own. On a site in several languages the pages in the reader's language are ranked first,
then, weighed less, the others (``FACTORS``).
"""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace
from tantivy import Occur, Query, Schema

from service.domain.search import SearchFilter
from service.markup.languages.detection import EXPECTED, chinese_script, evidence, known_language
from service.ports.search_index import NO_FILTER
from service.retrieval.search.questions.question import ENGLISH
from service.retrieval.search.words import ANY, SECTIONS, restriction

OWN, KINDRED, DEFAULT, OTHER = 3, 2, 1, 0
"""Levels of a page: in the reader's language; in another form of it; in the site's default language; in another."""
FACTORS = {OWN: 1.0, KINDRED: 0.9, DEFAULT: 0.6, OTHER: 0.3}
"""The part of its score that a page of each level keeps."""
MAX_LEVELS = 4096
"""Pairs of a reader and a kind of page whose level is kept: a site has few, and each question asks for thousands."""
FOREIGN = 1.5
"""How much more evidence a language that the site does not have needs, for the question to be in no language of it."""
DOUBT, KNOWN = 0.9, 1.5
"""How near the evidence for two languages is when it does not decide, and the weight of the words that pages have."""
WELL_KNOWN = 0.5
"""The part of a question's words that the site's own pages have, from which a language needs evidence of its own."""
_CHINESE = {"zh-hant": "zh-hant", "zh-tw": "zh-hant", "zh-hk": "zh-hant", "zh-mo": "zh-hant"}
_SIMPLIFIED = ("zh-hans", "zh-cn", "zh-sg")


class Reader(Struct, frozen=True):
    """A reader, and the query's restrictions."""

    wanted: SearchFilter = NO_FILTER
    """Without its language."""
    guarded: bool = False
    """Whether the site has pages for certain readers alone."""
    language: str = ""
    """As a tag; empty on a site in one language."""
    default: str = ""
    """The site's language."""
    is_divided: bool = False
    """The site has pages in several languages."""
    is_asked: bool = False
    """The filter says the language: pages in others are not shown."""
    version: str = ""
    """The version that the reader has open, where the site has several."""
    read_in: Sequence[str] = ENGLISH
    """The languages that the question is read in, its own first; English for names and code."""
    asks_in_own: bool = False
    """The question is in the reader's language."""
    falls_back: bool = False
    """Pages in the site's own language are shown nevertheless."""

    def only(self, schema: Schema) -> Query | None:
        """Return the pages that may be found; None when that is every page."""
        allowed = restriction(self.wanted, schema, guarded=self.guarded)
        if not self.is_asked:
            return allowed
        values = [ANY, *_values(self.language), *(_values(self.default) if self.falls_back else ())]
        return both(allowed, Query.term_set_query(schema, "language", values))

    def own(self, schema: Schema) -> Query | None:
        """Return those of them that are in the reader's language; all on a site in one language."""
        if not self.is_divided:
            return self.only(schema)
        allowed = restriction(self.wanted, schema, guarded=self.guarded)
        return both(allowed, Query.term_set_query(schema, "language", _own_values(self.language)))

    def others(self, schema: Schema) -> Query | None:
        """Return the rest of them."""
        own = Query.term_set_query(schema, "language", _own_values(self.language))
        rest = [(Occur.Must, Query.all_query()), (Occur.MustNot, own)]
        return both(self.only(schema), Query.boolean_query(rest))

    def level(self, place: str, text_language: str) -> int:
        """Return how well a page serves the reader; ``place``: the language of its place."""
        return _level(self.language, self.default, place, text_language)


@lru_cache(MAX_LEVELS)
def _level(language: str, default: str, place: str, text_language: str) -> int:
    if not language or _tag(place) == _tag(language):
        return OWN
    base = known_language(language)
    if known_language(place) == base:
        return KINDRED
    if text_language == base:
        return OWN if not place else KINDRED
    return DEFAULT if (known_language(place) or text_language) == known_language(default) else OTHER


def both(one: Query | None, other: Query) -> Query:
    """Return a restriction to what two allow."""
    parts = [(Occur.Must, part) for part in (one, other) if part is not None]
    return Query.const_score_query(Query.boolean_query(parts), 0.0)


class Open(Struct, frozen=True):
    """The page that the reader has open: the language of its place, and its version; empty when they are not known."""

    language: str = ""
    version: str = ""


class Languages(Struct, frozen=True):
    """The languages of a site, as ``known_language`` has them."""

    all: Collection[str]
    default: str
    translated: Collection[str]
    """Those that have a copy of a page in another one."""


Known = Callable[[str, str, Query], float]
"""A function of a question, a language and a restriction to it: the part of its words that is on its pages, 0 .. 1."""
IsTerm = Callable[[str, Query], bool]
"""A function of a question and a restriction to a language: whether the question is a term that its pages explain."""


def reader_of(
    query: str, wanted: SearchFilter, site: Languages, known: Known, is_term: IsTerm, *, current: Open, guarded: bool
) -> Reader:
    """Return the reader of a query."""
    asked = wanted.language or ""
    several = len(site.all) > 1
    reader = Reader(replace(wanted, language=None), guarded, asked, site.default, several, version=current.version)
    if asked:
        base = known_language(asked)
        falls_back = bool(site.translated) and (base in site.translated or base not in site.all)
        reader = replace(reader, is_asked=True, falls_back=falls_back)
    if not several:
        return replace(reader, read_in=_languages(*site.all))
    question = language_asked_in(query, site, known, is_term)
    language = asked or current.language or question
    question = known_language(question)
    return replace(
        reader,
        language=language,
        read_in=_languages(question, known_language(language)),
        asks_in_own=known_language(language) == question,
    )


def _languages(*languages: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*filter(None, languages), *ENGLISH]))


def language_asked_in(query: str, site: Languages, known: Known, is_term: IsTerm) -> str:
    """Return the language of the site that a question is in; the site's own when in doubt.

    A few words may be of several languages, or of none for sure: then the words that the pages have decide. A term of
    the site's own pages, such as ``pagination`` or ``dir``, is a name in all of its languages.
    """
    found, default = evidence(query), site.default
    if is_term(query, Query.term_set_query(SECTIONS, "language", _own_values(default))):
        return default
    scores = {language: found.get(language, 0.0) for language in site.all}
    scores[default] = scores.get(default, 0.0) + EXPECTED
    if max(found.values(), default=0.0) > FOREIGN * max(scores.values()):
        return default
    near = [language for language, score in scores.items() if score > max(scores.values()) - DOUBT]
    if len(near) > 1:
        parts = {
            language: known(query, language, Query.term_set_query(SECTIONS, "language", _own_values(language)))
            for language in near
        }
        if parts.get(default, 0.0) >= WELL_KNOWN:  # a stem of another language may be that of this word by chance
            parts = {language: part for language, part in parts.items() if language == default or found.get(language)}
        for language, part in parts.items():
            scores[language] += KNOWN * part
    best = max(scores, key=lambda language: (scores[language], language == default))
    return chinese_script(query) if best == "zh" else best


def _values(language: str) -> Sequence[str]:
    """Return the values of the field ``language`` that pages in a language have."""
    base = known_language(language) or language.casefold()
    return [f"~{language.replace('_', '-').casefold()}", f"~{base}", f"@{base}"]


def _own_values(language: str) -> Sequence[str]:
    """Return those of pages in this form of the language, where it is a form: Chinese has two, in two scripts."""
    tag, base = _tag(language), known_language(language) or language.casefold()
    if tag == "zh":
        return [f"={tag}", *(f"~{form}" for form in _SIMPLIFIED), f"@{base}"]
    forms = [form for form, same in _CHINESE.items() if same == tag] or [tag]
    return [*(f"~{form}" for form in forms), f"@{base}"]


def _tag(tag: str) -> str:
    tag = tag.replace("_", "-").casefold()
    return _CHINESE.get(tag, "zh" if tag in _SIMPLIFIED else tag)
