"""The words of a site, by which its sections and pages are found: two tantivy indexes in a folder.

Sections have headings and a body, pages a title and what other pages call them. They are apart because BM25 compares a
field with the same field of all other documents: a title's length says something among titles only, and a sum of such
scores ranked better than weighted columns of one table (DESIGN, "Search").

What tantivy is given are terms, never its query language: no text of a page or of a reader is parsed by it. Its
searches run without Python's lock.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import tantivy
from msgspec import Struct
from tantivy import Occur, Query

from service.domain.search import SearchFilter
from service.markup.languages.detection import known_language
from service.markup.languages.kindred_words import kindred_words
from service.ports.search_index import NO_FILTER
from service.retrieval.search.analysis.compounds import compound_parts
from service.retrieval.search.analysis.terms import analyzer, folder, forms_of, indexed, joined_names
from service.retrieval.search.analysis.writing_systems import spaced

PAGE_SHIFT = 16
"""A section's id is its page's id, shifted, and its own number: sections are grouped by page without a look-up."""
WRITER_BYTES = 128_000_000
MAX_GROUPS = 50
MAX_NAME = 200
"""Characters of a page's name that are searched for."""
MAX_OF_PAGES = 3_000
"""Sections of some pages that are scored."""
MAX_STEMS = 5000
"""Words of questions whose terms are kept, and terms of which it is kept how many sections have them."""
LEFT_BY_WRITERS = (".tantivy-writer.lock", ".tantivy-meta.lock")

SectionField = Literal["body", "heading"]
_SECTION_FIELDS: tuple[SectionField, ...] = ("body", "heading")
PageField = Literal["title", "link", "text"]

_ANALYZER = "words"
ANY = "*"
"""In a filter's field: the page says nothing, so it holds for all. Values begin with ``=``."""


class Audience(Struct, frozen=True):
    """The readers whom a page names; empty means that it names none."""

    version: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    text_language: str = ""
    """The language that its words are in, for those who index them."""


class Hit(Struct, frozen=True, gc=False):
    score: float
    id: int
    """The id of a section, or of a page."""


def _schema(with_positions: str, *without: str) -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(with_positions, tokenizer_name=_ANALYZER, index_option="position")
    for name in without:
        builder.add_text_field(name, tokenizer_name=_ANALYZER, index_option="freq")
    for name in ("version", "language", "tags", "groups", "entry", "term"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("id", "page"):
        builder.add_unsigned_field(name, indexed=True, fast=True)
    return builder.build()


SECTIONS = _schema("body", "heading")
PAGES = _schema("title", "link", "text")


def _open(folder: Path | None, schema: tantivy.Schema) -> tantivy.Index:
    index = tantivy.Index(schema) if folder is None else tantivy.Index(schema, str(folder))
    index.register_tokenizer(_ANALYZER, analyzer())
    return index


def _searcher(folder: Path, schema: tantivy.Schema) -> tantivy.Searcher:
    """tantivy makes a lock file to open an index, which a folder that cannot be written does not let it. There the
    files are opened by links from a folder of temporary files, which is not needed once they are open.
    """
    if os.access(folder, os.W_OK):
        return _open(folder, schema).searcher()
    with TemporaryDirectory(prefix="docsmith-index-") as links:
        for file in folder.iterdir():
            if not file.name.endswith(".lock"):
                (Path(links) / file.name).symlink_to(file.absolute())
        return _open(Path(links), schema).searcher()


class WordsWriter:
    """Writes both indexes into a folder, or into memory; they are complete after ``finish``."""

    def __init__(
        self,
        folder: Path | None,
        *,
        writer_bytes: int = WRITER_BYTES,
        vocabularies: Mapping[str, Mapping[str, int]] = {},
    ) -> None:
        """``vocabularies``: the site's words, of which compounds are made (``compounds.vocabularies``)."""
        self._folder, self._vocabularies = folder, vocabularies
        self._analyzer = analyzer()
        self._indexes: list[tantivy.Index] = []
        for name, schema in (("sections", SECTIONS), ("pages", PAGES)):
            place = None if folder is None else folder / name
            if place is not None:
                place.mkdir(parents=True, exist_ok=True)
            self._indexes.append(_open(place, schema))
        self._writers = [index.writer(writer_bytes, 1) for index in self._indexes]
        self._sections, self._pages = self._writers

    def remove(self, page: int) -> None:
        """Page and sections, from what an earlier ``finish`` has left in the folder."""
        # By query: by term, numbers are not found (tantivy-py 0.27).
        self._sections.delete_documents_by_query(Query.term_query(SECTIONS, "page", page))
        self.remove_names(page)

    def remove_names(self, page: int) -> None:
        """The page alone: ``add_page`` follows, its sections stay."""
        self._pages.delete_documents_by_query(Query.term_query(PAGES, "page", page))

    def add_section(
        self,
        section: int,
        heading: str,
        body: str,
        audience: Audience,
        entries: Iterable[str] = (),
        keys: Iterable[str] = (),
    ) -> str:
        """Return the section's words as they are indexed, for its page's ``add_page``. ``entries``: terms that it
        explains one by one; ``keys``: those of the terms that it is the section of (``service.markup.terms``).
        """
        document = _document(section, section >> PAGE_SHIFT, audience)
        if heading:
            document.add_text("heading", self.analysed(heading, audience, short=True))
        words = self.analysed(body, audience)
        document.add_text("body", words)
        for key in dict.fromkeys(self._key(entry) for entry in entries):
            document.add_text("entry", key)
        for key in dict.fromkeys(keys):
            document.add_text("term", key)
        self._sections.add_document(document)
        return words

    def _key(self, entry: str) -> str:
        return " ".join(dict.fromkeys(self._analyzer.analyze(spaced(entry))))

    def add_page(self, page: int, title: str, called: str, audience: Audience, texts: Iterable[str] = ()) -> None:
        """``texts``: what ``add_section`` has returned for the page's sections."""
        document = _document(page, page, audience)
        own = self.analysed(title, audience, short=True)
        document.add_text("title", own)
        if called:
            document.add_text("link", self.analysed(called, audience, short=True))
        document.add_text("text", "\n\n".join([own, *texts]))
        self._pages.add_document(document)

    def analysed(self, text: str, audience: Audience, *, short: bool = False) -> str:
        return indexed(text, audience.text_language, short=short, parts=self._parts)

    def _parts(self, word: str, language: str) -> Iterable[str]:
        vocabulary = self._vocabularies.get(language)
        return compound_parts(word, language, lambda stem: vocabulary.get(stem, 0)) if vocabulary else ()

    def finish(self) -> None:
        for writer in self._writers:
            writer.commit()
            writer.wait_merging_threads()
        if self._folder is not None:
            for file in (file for name in LEFT_BY_WRITERS for file in self._folder.rglob(name)):
                file.unlink()

    def words(self) -> "Words":
        """Return what ``finish`` has completed, to read."""
        for index in self._indexes:
            index.reload()
        return Words(*(index.searcher() for index in self._indexes))


def _document(id_: int, page: int, audience: Audience) -> tantivy.Document:
    document = tantivy.Document()
    document.add_unsigned("id", id_)
    document.add_unsigned("page", page)
    document.add_text("version", f"={audience.version.casefold()}" if audience.version else ANY)
    for value in _languages(audience.language):
        document.add_text("language", value)
    if audience.text_language and known_language(audience.language) != audience.text_language:
        document.add_text("language", f"@{audience.text_language}")
    for tag in audience.tags:
        document.add_text("tags", f"={tag.casefold()}")
    for group in audience.groups:
        document.add_text("groups", f"={group.casefold()}")
    if not audience.groups:
        document.add_text("groups", ANY)
    return document


def _languages(language: str) -> Iterable[str]:
    """Return ``pt-BR`` as itself and as ``~pt``, since it also serves readers who want Portuguese."""
    if not language:
        return (ANY,)
    whole = language.replace("_", "-").casefold()
    parts = whole.split("-")[:4]
    return (f"={whole}", *(f"~{'-'.join(parts[:length])}" for length in range(1, len(parts) + 1)))


def restriction(wanted: SearchFilter, schema: tantivy.Schema, *, guarded: bool) -> Query | None:
    """The pages that a search may show; None when that is every page.

    What a page does not say of itself holds for any version and language, but a page for certain readers is shown only
    to them.
    """
    if not guarded and wanted == NO_FILTER:
        return None
    allowed: list[tuple[str, list[str]]] = []
    if wanted.version:
        allowed.append(("version", [ANY, f"={wanted.version.casefold()}"]))
    if wanted.language:
        asked = wanted.language.replace("_", "-").casefold()
        allowed.append(("language", [ANY, f"~{asked}", f"={asked.partition('-')[0]}"]))
    if wanted.tag:
        allowed.append(("tags", [f"={wanted.tag.casefold()}"]))
    if guarded:
        groups = [f"={group.casefold()}" for group in wanted.groups[:MAX_GROUPS]]
        allowed.append(("groups", [ANY, *groups]))
    if not allowed:
        return None
    parts = [Query.term_set_query(schema, field, [_encodable(value) for value in values]) for field, values in allowed]
    return Query.const_score_query(Query.boolean_query([(Occur.Must, part) for part in parts]), 0.0)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class Words:
    """Both indexes, to read; for one thread at a time."""

    def __init__(self, sections: tantivy.Searcher, pages: tantivy.Searcher) -> None:
        self.sections, self.pages = sections, pages
        self._analyzer, self._folder = analyzer(), folder()
        self._stems: dict[tuple[str, str], str] = {}
        self._frequencies: dict[str, int] = {}
        self._known: dict[str, bool] = {}
        self._kindred: dict[str, Sequence[str]] = {}
        self._name_terms: dict[str, Sequence[str]] = {}

    @classmethod
    def open(cls, folder: Path) -> "Words":
        """Open the index. Raise ValueError or OSError when the folder holds none."""
        for name in ("sections", "pages"):
            if not (folder / name / "meta.json").is_file():  # tantivy would make an empty index
                raise FileNotFoundError(f"{folder.name}/{name} is missing")
        return cls(_searcher(folder / "sections", SECTIONS), _searcher(folder / "pages", PAGES))

    def stem(self, word: str, language: str = "en") -> str:
        """Return the term of one word in texts of a language; empty when it has none."""
        known = self._stems.get((language, word))
        if known is None:
            if len(self._stems) >= MAX_STEMS:
                self._stems.clear()
            terms = self._analyzer.analyze(word if language == "en" else forms_of(word, language)[0])
            known = self._stems[language, word] = terms[0] if terms else ""
        return known

    def forms(self, word: str, languages: Sequence[str]) -> list[str]:
        """Return all terms of one word in texts of these languages, that of the first language first."""
        first = self.stem(word, languages[0])
        if len(languages) == 1 and languages[0] == "en":
            return [first]
        forms = (form for language in languages for form in forms_of(word, language))
        return list(dict.fromkeys([first, *(self.stem(form) for form in forms)]))

    def terms(self, text: str) -> list[str]:
        return self._analyzer.analyze(text)

    def is_in_title(self, term: str) -> bool:
        return bool(self.pages.doc_freq("title", term))

    def kindred(self, word: str) -> Sequence[str]:
        """Return the terms of the site that may stand for a word, given in lower case."""
        known = self._kindred.get(word)
        if known is None:
            if len(self._kindred) >= MAX_STEMS:
                self._kindred.clear()
            terms = dict.fromkeys(map(self.stem, kindred_words(word)))
            known = self._kindred[word] = [term for term in terms if term and self.is_known(term)]
        return known

    def name_terms(self, name: str) -> Sequence[str]:
        """Return the terms of the name of a row or an item, which are kept: a table has many."""
        known = self._name_terms.get(name)
        if known is None:
            if len(self._name_terms) >= MAX_STEMS:
                self._name_terms.clear()
            known = self._name_terms[name] = self._analyzer.analyze(name)
        return known

    def folded(self, word: str) -> str:
        """Return a word as terms are written, in lower case and without accents, but with its ending."""
        return (self._folder.analyze(word) or [""])[0]

    def terms_beginning(
        self, beginning: str, limit: int, *, only_sections: Query | None, only_pages: Query | None, in_bodies: bool
    ) -> list[str]:
        """Return terms that begin so, in sections and pages that may be found: those of titles first, then the
        commonest of the rest. ``in_bodies``: also terms of headings and bodies.
        """
        if not beginning:
            return []
        found = self.pages.terms_with_prefix("title", beginning, only_pages, limit)
        if in_bodies:
            found += self.sections.terms_with_prefix("heading", beginning, only_sections, limit)
            found += self.sections.terms_with_prefix("body", beginning, only_sections, limit)
        return list(dict.fromkeys(term for term, _ in found))[:limit]

    def frequency(self, term: str) -> int:
        """Return the number of sections whose bodies have the term."""
        known = self._frequencies.get(term)
        if known is None:
            if len(self._frequencies) >= MAX_STEMS:
                self._frequencies.clear()
            known = self._frequencies[term] = self.sections.doc_freq("body", term)
        return known

    def is_among(self, term: str, only: Query) -> bool:
        """Return whether a section that may be found has the term in its body or its headings."""
        fields = [(Occur.Should, _term(SECTIONS, field, term, 1)) for field in _SECTION_FIELDS]
        return bool(_scores(self.sections, _any_of(fields, only), 1))

    def is_known(self, term: str) -> bool:
        known = self._known.get(term)
        if known is None:
            if len(self._known) >= MAX_STEMS:
                self._known.clear()
            known = self._known[term] = bool(
                self.frequency(term)
                or self.sections.doc_freq("heading", term)
                or self.pages.doc_freq("title", term)
                or self.pages.doc_freq("link", term)
            )
        return known

    def best_sections(
        self, weighed: Mapping[SectionField, tuple[float, Mapping[str, float]]], only: Query | None, limit: int,
        entries: Mapping[str, float] = {},
    ) -> list[Hit]:  # fmt: skip
        """Best first. ``weighed``: of each field its weight, and the terms that it is asked for with theirs;
        ``entries``: points for a section that explains these, however many it has.
        """
        clauses = [
            (Occur.Should, _term(SECTIONS, field, term, weight * each))
            for field, (weight, terms) in weighed.items()
            for term, each in terms.items()
        ]
        clauses += [
            (Occur.Should, Query.const_score_query(Query.term_query(SECTIONS, "entry", key), points))
            for key, points in entries.items()
        ]
        return _hits(self.sections, _any_of(clauses, only), limit)

    def has_entry(self, key: str) -> bool:
        """Return whether a section explains a term, or terms in this order."""
        return self.sections.doc_freq("entry", key) > 0

    def with_term(self, keys: Sequence[str], only: Query | None, limit: int) -> list[int]:
        """Return the sections of the terms with these keys."""
        known = [key for key in keys if self.sections.doc_freq("term", key)]
        if not known:
            return []
        terms = Query.boolean_query([(Occur.Should, Query.term_query(SECTIONS, "term", key, "basic")) for key in known])
        return list(_scores(self.sections, _any_of([(Occur.Must, Query.const_score_query(terms, 1.0))], only), limit))

    def with_name(self, names: Iterable[str], only: Query | None, limit: int) -> list[int]:
        """Return the best sections whose headings or bodies have a name, however its parts are written together."""
        terms = dict.fromkeys(self.stem(joined) for name in names for joined in joined_names(name) or (name,))
        known = [term for term in terms if self.is_known(term)]
        clauses = [(Occur.Should, _term(SECTIONS, field, term, 1)) for term in known for field in _SECTION_FIELDS]
        return list(_scores(self.sections, _any_of(clauses, only), limit)) if clauses else []

    def titled_with(self, names: Iterable[str], only: Query | None, limit: int) -> list[int]:
        """Return the pages whose titles have a name, however its parts are written together."""
        terms = dict.fromkeys(self.stem(joined) for name in names for joined in joined_names(name) or (name,))
        clauses = [(Occur.Should, _term(PAGES, "title", term, 1)) for term in terms if self.is_in_title(term)]
        return list(_scores(self.pages, _any_of(clauses, only), limit)) if clauses else []

    def best_pages(
        self, weighed: Mapping[PageField, tuple[float, Mapping[str, float]]], only: Query | None, limit: int
    ) -> dict[int, float]:
        """Return scores by page, best first; ``weighed`` as for ``best_sections``."""
        clauses = [
            (Occur.Should, _term(PAGES, field, term, weight * each))
            for field, (weight, terms) in weighed.items()
            for term, each in terms.items()
        ]
        return _scores(self.pages, _any_of(clauses, only), limit)

    def phrases(self, pairs: Iterable[tuple[str, str]], among: Sequence[int]) -> dict[int, float]:
        """The scores of those among the given sections where two words stand side by side."""
        wanted = frozenset(among)
        only = _of_pages(list({id_ >> PAGE_SHIFT for id_ in wanted}))
        known = [pair for pair in pairs if all(map(self.frequency, pair))]
        phrases = (Query.phrase_query(SECTIONS, "body", list(pair)) for pair in known)
        clauses = [(Occur.Should, _any_of([(Occur.Must, phrase)], only)) for phrase in phrases]
        if not clauses or not wanted:
            return {}
        found = _scores(self.sections, Query.boolean_query(clauses), MAX_OF_PAGES)
        return {id_: score for id_, score in found.items() if id_ in wanted}

    def with_run(self, terms: Sequence[str], only: Query | None, limit: int) -> list[int]:
        """Return the sections whose bodies have these terms in a row."""
        query = Query.phrase_query(SECTIONS, "body", list(terms))
        return list(_scores(self.sections, _any_of([(Occur.Should, query)], only), limit))

    def sections_of_pages(
        self, weighed: Mapping[SectionField, tuple[float, Mapping[str, float]]], pairs: Iterable[tuple[str, str]],
        pair_weight: float, pages: Sequence[int], only: Query | None,
    ) -> dict[int, float]:  # fmt: skip
        """Return the scores of the sections of these pages that have a word. ``pairs``: words that count more where
        they stand side by side.
        """
        clauses = [
            (Occur.Should, _term(SECTIONS, field, term, weight * each))
            for field, (weight, terms) in weighed.items()
            for term, each in terms.items()
        ]
        among = _of_pages(pages)
        # Each pair by itself is looked for on these pages: a union reads its parts thousands of sections ahead.
        phrases = (Query.boost_query(Query.phrase_query(SECTIONS, "body", list(pair)), pair_weight) for pair in pairs)
        clauses += [(Occur.Should, _any_of([(Occur.Must, phrase)], among)) for phrase in phrases]
        if not clauses:
            return {}
        query = _any_of([(Occur.Must, _any_of(clauses, only))], among)
        return _scores(self.sections, query, MAX_OF_PAGES)

    def coverage_of_sections(
        self, weights: Mapping[str, float], pages: Sequence[int], only: Query | None
    ) -> dict[int, float]:
        """Return the part of the words, each by its weight, that the sections of these pages have: 0 .. 1, by id."""
        whole = sum(weights.values())
        if whole <= 0:
            return {}
        clauses = [
            (
                Occur.Should,
                Query.const_score_query(
                    Query.boolean_query([(Occur.Should, _term(SECTIONS, field, term, 1)) for field in _SECTION_FIELDS]),
                    weight / whole,
                ),
            )
            for term, weight in weights.items()
            if weight > 0
        ]
        query = _any_of([(Occur.Must, _any_of(clauses, only))], _of_pages(pages))
        return {id_: min(1.0, score) for id_, score in _scores(self.sections, query, MAX_OF_PAGES).items()}

    def titled(self, name: str, only: Query | None, *, at: int | None) -> list[int]:
        """Return the page whose title has all words of a name, and the page ``at``, of those that may be found."""
        terms = self._analyzer.analyze(spaced(name[:MAX_NAME]))
        ways = [Query.term_query(PAGES, "id", at)] if at is not None else []
        if terms:
            ways.append(Query.boolean_query([(Occur.Must, _term(PAGES, "title", term, 1)) for term in terms[:12]]))
        if not ways:
            return []
        return list(_scores(self.pages, _any_of([(Occur.Should, way) for way in ways], only), len(ways)))

    def with_title(self, name: str, only: Query | None, limit: int) -> list[int]:
        """Return the pages whose titles have the words of a name, those with the fewest other words first."""
        terms = self._analyzer.analyze(spaced(name[:MAX_NAME]))[:12]
        if not terms:
            return []
        query = Query.boolean_query([(Occur.Must, _term(PAGES, "title", term, 1)) for term in terms])
        return list(_scores(self.pages, _any_of([(Occur.Must, query)], only), limit))

    def allowed_pages(self, pages: Sequence[int], only: Query | None) -> list[int]:
        """Return those of the pages that may be found."""
        ids = [(Occur.Should, Query.term_query(PAGES, "id", page)) for page in pages]
        return list(_scores(self.pages, _any_of(ids, only), len(pages))) if pages else []

    def rarity(self, term: str) -> float:
        """Return the inverse document frequency of a term among sections, as BM25 has it."""
        count, having = self.sections.num_docs, self.frequency(term)
        return math.log(1 + (count - having + 0.5) / (having + 0.5))

    def has(self, page: int, term: str) -> bool:
        """Return whether a page has a term in its title, its headings or its bodies."""
        fields = [(SECTIONS, self.sections, "body"), (SECTIONS, self.sections, "heading"), (PAGES, self.pages, "title")]
        return any(
            _scores(
                searcher,
                Query.boolean_query(
                    [
                        (Occur.Must, _term(schema, field, term, 1)),
                        (Occur.Must, Query.const_score_query(Query.term_query(schema, "page", page), 0.0)),
                    ]
                ),
                1,
            )
            for schema, searcher, field in fields
        )

    def section_score(self, section: int, field: SectionField, terms: Mapping[str, float]) -> float:
        """Return the score of one field of one section for these terms."""
        return _score_of(self.sections, SECTIONS, section, field, terms)

    def page_score(self, page: int, field: PageField, terms: Mapping[str, float]) -> float:
        return _score_of(self.pages, PAGES, page, field, terms)

    def with_near_terms(
        self, term: str, distance: int, limit: int, *, only_sections: Query | None, only_pages: Query | None
    ) -> tuple[list[int], list[int]]:
        """Return pages and sections that may be found, whose title or body has a term at most ``distance`` letters
        away.
        """
        title = [(Occur.Must, Query.fuzzy_term_query(PAGES, "title", term, distance))]
        body = [(Occur.Must, Query.fuzzy_term_query(SECTIONS, "body", term, distance))]
        pages = _scores(self.pages, _any_of(title, only_pages), limit)
        sections = _scores(self.sections, _any_of(body, only_sections), limit)
        return list(pages), list(sections)


def _term(schema: tantivy.Schema, field: str, term: str, weight: float) -> Query:
    query = Query.term_query(schema, field, term, "freq")
    return query if weight == 1 else Query.boost_query(query, weight)


def _any_of(clauses: Sequence[tuple[Occur, Query]], only: Query | None) -> Query:
    query = Query.boolean_query(clauses)
    return query if only is None else Query.boolean_query([(Occur.Must, query), (Occur.Must, only)])


def _of_pages(pages: Sequence[int]) -> Query:
    """Return the restriction to the sections of some pages."""
    among = Query.boolean_query([(Occur.Should, Query.term_query(SECTIONS, "page", page)) for page in pages])
    return Query.const_score_query(among, 0.0)


def _score_of(
    searcher: tantivy.Searcher, schema: tantivy.Schema, id_: int, field: str, terms: Mapping[str, float]
) -> float:
    clauses = [(Occur.Should, _term(schema, field, term, weight)) for term, weight in terms.items()]
    only = Query.const_score_query(Query.term_query(schema, "id", id_), 0.0)
    return next(iter(_scores(searcher, _any_of(clauses, only), 1).values()), 0.0)


def _hits(searcher: tantivy.Searcher, query: Query, limit: int) -> list[Hit]:
    return [Hit(score, id_) for id_, score in _scores(searcher, query, limit).items()]


def _scores(searcher: tantivy.Searcher, query: Query, limit: int) -> dict[int, float]:
    """Return scores by id, best first."""
    found = searcher.search(query, limit, count=False).hits
    ids = searcher.fast_field_values("id", [address for _, address in found])
    return dict(zip(ids, [score for score, _ in found], strict=True))  # type: ignore[arg-type]
