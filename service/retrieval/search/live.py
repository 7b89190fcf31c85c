"""Search by words over texts that no index has: a commit with a job's changes on top, or another repository.

Two steps. Each text is looked through for the words' stems, which costs as much as looking for a string. The best of
them are indexed in memory and ranked as an index ranks, with one correction: how common a word is says the first step,
for among the best texts every word of the question is common.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from service.markup.pages import is_markdown, without_suffix
from service.markup.prose import words_of
from service.retrieval.readers.markdown import PageSection, ParsedPage, parse_page
from service.retrieval.search.analysis.terms import analyzer, parts_of
from service.retrieval.search.questions.question import (
    NearTerms,
    Terms,
    letters_apart,
    read_question,
    words_of_question,
)
from service.retrieval.search.ranking import Candidate, rank_pages
from service.retrieval.search.words import PAGE_SHIFT, Audience, Hit, Words, WordsWriter

MAX_CANDIDATES = 60
"""Texts that are parsed and ranked."""
MAX_PAGE_CHARACTERS = 200_000
"""Characters of a text that are parsed; the rest is not found by words."""
MAX_SECTIONS_OF_A_TEXT = 1_000
MAX_NEEDLES = 16
LEAST_NEEDLE = 3
LINES_OF_A_PART = 40
"""A text that is no Markdown is searched in parts of this number of lines."""
WRITER_BYTES = 16 << 20
"""The least that tantivy accepts is 15 MB."""
SATURATION, LENGTH = 1.2, 0.75
"""BM25's usual constants."""
NEAR_READ = 10
NAMED = 3
"""How often a word counts that is in the path."""


class LiveSection(Struct, frozen=True):
    path: str
    title: str
    heading_path: tuple[str, ...]
    text: str
    start_line: int
    end_line: int
    best_line: int = 0
    """The first of the lines that have most of the question's words."""


class WordSearch:
    """One question over texts that come in batches; for one thread at a time."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._needles = _needles(query)
        self._counts: dict[str, tuple[int, ...]] = {}
        self._lengths: dict[str, int] = {}
        self._texts = 0
        self._characters = 0

    def add(self, texts: Mapping[str, str], lowered: Mapping[str, str]) -> None:
        """Look for the words in some of the texts, which are given in lower case, too."""
        for path, text in texts.items():
            self._texts += 1
            self._characters += len(text)
            searched, name = lowered[path], path.lower()
            counts = tuple(searched.count(one) + NAMED * (one in name) for one in self._needles)
            if any(counts):
                self._counts[path], self._lengths[path] = counts, len(text)

    def candidates(self, others: Iterable[str] = ()) -> list[str]:
        """Return the texts to rank, best first, and these others."""
        average = self._characters / self._texts if self._texts else 1.0
        rarity = [_rarity(self._texts, count) for count in self._frequencies()]

        def score(path: str) -> float:
            norm = SATURATION * (1 - LENGTH + LENGTH * self._lengths[path] / max(average, 1))
            return sum(rare * n / (n + norm) for rare, n in zip(rarity, self._counts[path], strict=True))

        best = sorted(self._counts, key=lambda path: (-score(path), path))[:MAX_CANDIDATES]
        return list(dict.fromkeys([*best, *others]))

    def ranked(self, texts: Mapping[str, str], known: Sequence[str] = (), *, limit: int) -> list[LiveSection]:
        """Return the best sections of the candidates. ``known``: paths in the order in which an index of all pages has
        them, which counts as much as the order found here.
        """
        pages = [page for path in texts if (page := _parsed(path, texts[path])) is not None]
        if not pages:
            return []
        words = _indexed(pages)
        sections = sum(len(page.sections) for page in pages)
        terms = self._reweighed(read_question(self._query, words, _near_terms(words, pages)), words, sections)
        if not terms.weights and not known:
            return []
        ranking, first = rank_pages(words, terms, count=limit)
        ranking.choose(first)
        if known:
            places = {path: place for place, path in enumerate(known, 1)}
            last = len(ranking.candidates) + 1
            ranking.candidates += [
                Candidate(number, 0.0, (Hit(0.0, number << PAGE_SHIFT),), last)
                for number, page in enumerate(pages)
                if page.path in places and number not in ranking.scores
            ]
            for candidate in ranking.candidates:
                candidate.meaning_rank = places.get(pages[candidate.page].path, 0)
            ranking.fuse()
        found = [_found(pages, section) for _, section, _ in ranking.best_sections(limit)]
        return [replace(one, best_line=self._best_line(one, texts[one.path])) for one in found]

    def _best_line(self, section: LiveSection, text: str) -> int:
        lines = text[:MAX_PAGE_CHARACTERS].split("\n")[section.start_line - 1 : section.end_line]
        having = [sum(needle in line for needle in self._needles) for line in map(str.lower, lines)]
        return section.start_line + (having.index(max(having)) if having else 0)

    def _frequencies(self) -> list[int]:
        return [sum(1 for counts in self._counts.values() if counts[at]) for at in range(len(self._needles))]

    def _reweighed(self, terms: Terms, words: Words, sections: int) -> Terms:
        """Weigh each term as if it were as common among the ranked texts as it is among all."""
        weights = dict(terms.weights)
        for needle, count in zip(self._needles.values(), self._frequencies(), strict=True):
            if needle in weights and count:
                here = _rarity(sections, min(words.frequency(needle), sections))
                weights[needle] *= _rarity(self._texts, count) / here
        return replace(terms, weights=weights)


def _rarity(texts: int, having: int) -> float:
    return math.log(1 + (texts - having + 0.5) / (having + 0.5))


def _needles(query: str) -> dict[str, str]:
    """Return what to look for in a text in lower case, each with its term: the part of a word that its stem keeps."""
    found: dict[str, str] = {}
    words, stems = words_of_question(query), analyzer()
    for word in dict.fromkeys([*words, *(part for name in words for part in parts_of(name))]):
        lowered = word.lower()
        term = next(iter(stems.analyze(word)), lowered)
        kept = 0
        while kept < min(len(lowered), len(term)) and lowered[kept] == term[kept]:
            kept += 1
        found.setdefault(lowered[: max(kept, LEAST_NEEDLE)], term)
    return dict(list(found.items())[:MAX_NEEDLES])


def _parsed(path: str, text: str) -> ParsedPage | None:
    """A text as a page: Markdown by its headings, another one in parts."""
    text = text[:MAX_PAGE_CHARACTERS]
    if is_markdown(path):
        page = parse_page(text.encode(errors="replace"), path)
        if isinstance(page, ParsedPage) and page.sections:
            return page
    lines = text.split("\n")
    parts = ((start, lines[start : start + LINES_OF_A_PART]) for start in range(0, len(lines), LINES_OF_A_PART))
    sections = tuple(
        PageSection("", (), "", "\n".join(part), start + 1, start + len(part))
        for start, part in parts
        if any(line.strip() for line in part)
    )
    return ParsedPage(path, "", "", {}, sections, frozenset(), (), text) if sections else None


def _indexed(pages: Sequence[ParsedPage]) -> Words:
    """Index pages under their places, and their sections."""
    writer = WordsWriter(None, writer_bytes=WRITER_BYTES)
    for number, page in enumerate(pages):
        texts = []
        for place, section in enumerate(page.sections[:MAX_SECTIONS_OF_A_TEXT]):
            body = words_of(section.text)
            heading = " / ".join(section.heading_path)
            texts.append(writer.add_section(number << PAGE_SHIFT | place, heading, body, Audience()))
        title = page.title or without_suffix(page.path).rpartition("/")[2]
        writer.add_page(number, title, "", Audience(), texts)
    writer.finish()
    return writer.words()


def _near_terms(words: Words, pages: Sequence[ParsedPage]) -> NearTerms:
    def near(term: str, distance: int) -> Iterable[str]:
        titled, sections = words.with_near_terms(term, distance, NEAR_READ, only_sections=None, only_pages=None)
        texts = [pages[page].title for page in titled] + [_section(pages, one).text for one in sections]
        found = {each for text in texts for each in words.terms(text)}
        return [each for each in found if not each.isdigit() and letters_apart(term, each, distance)]

    return near


def _section(pages: Sequence[ParsedPage], section: int) -> PageSection:
    return pages[section >> PAGE_SHIFT].sections[section & ((1 << PAGE_SHIFT) - 1)]


def _found(pages: Sequence[ParsedPage], section: int) -> LiveSection:
    page, one = pages[section >> PAGE_SHIFT], _section(pages, section)
    return LiveSection(page.path, page.title, one.heading_path, one.text, one.start_line, one.end_line)
