"""One index, asked: a question's terms, the pages that they find, the sections to show.

How pages are ordered, and what each step was worth, is in DESIGN ("Search"): any word may match; title, headings, what
other pages call this one, and body each have their own BM25; a page is its best section and a part of the next three;
adjacent words of the question found adjacent count a little more.
"""

import json
import sqlite3
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from math import log1p
from pathlib import Path
from posixpath import dirname
from urllib.parse import unquote

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from tantivy import Query, Schema

from service.domain.errors import Invalid
from service.domain.search import QueryWord, SearchFilter
from service.domain.sites import Skipped
from service.markup.addresses import encoded_address, with_anchor
from service.markup.prose import words_of
from service.markup.terms import is_written_as_code, names_asked, names_in, term_key
from service.ports.search_index import Explanation, Highlights, OtherPages, Page, PageList, SearchResult, Section
from service.retrieval.index.check import SiteCheck, check_index
from service.retrieval.index.copies import Copies
from service.retrieval.index.explaining import explained
from service.retrieval.index.listing import is_for, list_pages, pages_besides, reader_groups
from service.retrieval.index.section_cache import IndexSections, ReadSection, SectionCache, read_section
from service.retrieval.index.stored import FORMAT, PAGES_FILE, RELEASE_POST, section_ids, unpack_page
from service.retrieval.index.vectors import meant
from service.retrieval.material.asked import Nearness
from service.retrieval.material.boilerplate import asks_for_history, asks_for_releases
from service.retrieval.readers.entries import decode_entries
from service.retrieval.search.entries import entry_named, narrowed
from service.retrieval.search.fusion import join_meaning
from service.retrieval.search.highlights import ranges_in
from service.retrieval.search.questions.named import has_sign, may_be_title, page_titled
from service.retrieval.search.questions.phrases import phrases_of, sections_with_phrases
from service.retrieval.search.questions.question import Terms, letters_apart, query_words, read_question
from service.retrieval.search.questions.runs import sections_with_run
from service.retrieval.search.questions.unfinished import read_unfinished
from service.retrieval.search.ranking import Ranking, coverage, rank_pages, score_sections
from service.retrieval.search.rarity import known_part, sections_among, weighed_among
from service.retrieval.search.reader import FACTORS, Languages, Open, Reader, reader_of
from service.retrieval.search.terms import TermSection, led_by_terms, mentioned, spelling, without_outer
from service.retrieval.search.words import PAGE_SHIFT, PAGES, SECTIONS, Words
from service.retrieval.site.page_addresses import AddressedPage, PageAddresses

MAX_LIMIT = 100
OLDER_VERSION = 0.8
MOST_COPIES = 4
"""Copies of a page, beside others of the same, that a ranking makes place for."""
POST = 0.6
"""The part of its score that such a post keeps, unless a question is about releases."""
HISTORY = 0.9
"""The part of its score that a change log keeps, unless a question is about what changed."""
LINKED = 0.015
"""How much more a page counts that other pages link to, times the logarithm of how often they do."""
SAME_PAGE, NEAR_PAGE = 1.15, 1.05
NEAR = 2
"""Places in the navigation."""
FUSED_PAGES = 120
"""The pages whose order their meaning may change."""
MAX_LANGUAGES = 200
"""Tags of languages in filters, whose numbers of sections are kept."""
MAX_PAGE_ROWS = 500
"""Pages whose names are kept: about 0.2 MB for each of the ``MAX_OPEN`` connections."""
MOST_PREPARED = 120
"""Ids of a query that SQLite keeps prepared."""
MAX_NAMED = 8
MAX_OF_A_TERM = 100
"""Sections of one term that are compared: more have a heading such as "Examples", which is hardly asked for."""
TITLED_PAGES = 20
"""The pages whose titles are compared with a question."""
EMPTY_SIZE = len(zlib.compress(b""))
"""Bytes of a section that has no text."""
NEAR_READ = 10
"""Pages and sections that are read for a word near to one that the site does not have."""


class _PageRow(Struct, frozen=True, array_like=True, gc=False):
    id: int
    path: str
    url: str
    title: str


_HEADINGS = msgspec.json.Decoder(tuple[str, ...])
_SectionRow = tuple[str, str, str, str, int, int, str, str, str]
"""Heading, heading path as JSON, anchor, text, first and last line, its file and its address where they are not the
page's, and its entries as JSON.
"""


class SiteIndex:
    """The connections to one index; used by one thread at a time."""

    def __init__(self, folder: Path, sections: IndexSections | None = None) -> None:
        """``sections``: those that other connections have read of the same index.

        Raises Invalid for an index of another format, and sqlite3.Error, ValueError, OSError for what is none.
        """
        self._sections = sections or SectionCache().of_index()
        # Immutable is true of a finished index, and spares SQLite locks and checks.
        uri = f"{(folder / PAGES_FILE).absolute().as_uri()}?mode=ro&immutable=1"
        self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            self._open(folder)
        except BaseException:
            self._db.close()
            raise

    def _open(self, folder: Path) -> None:
        self._db.execute("PRAGMA mmap_size = 268435456")
        meta = dict(self._db.execute("SELECT key, value FROM meta"))
        if meta.get("format") != FORMAT:
            raise Invalid(f"The index has format {meta.get('format')!r}; this is made for {FORMAT!r}.")
        self.commit = str(meta["commit"])
        self.instructions = str(meta.get("instructions", ""))
        self._guarded = self._db.execute("SELECT 1 FROM pages WHERE groups != '' LIMIT 1").fetchone() is not None
        self._words = Words.open(folder)
        self._copies = Copies(self._db)
        default = str(meta.get("language") or "en")
        self._languages = Languages(self._copies.languages, default, self._copies.translated)
        self._links: PageAddresses | None = None
        self._page_rows: dict[int, _PageRow] = {}
        self._sections_in: dict[str, int] = {}
        """By the language of readers, the number of sections for them."""
        self._positions = array("i", [-1])  # by page id, which are counted from 1
        self._older: set[int] = set()
        shown_first = {place for (place,) in self._db.execute("SELECT DISTINCT language FROM pages WHERE is_default")}
        self._linked = array("f", [1.0])
        self._history: set[int] = set()
        self._posts: set[int] = set()
        for page, position, is_default, linked, is_history in self._db.execute(
            "SELECT id, position, is_default, linked, is_history FROM pages ORDER BY id"
        ):
            missing = page - len(self._positions)
            self._positions.extend([-1] * missing)
            self._positions.append(position)
            self._linked.extend([1.0] * missing)
            self._linked.append(1 + LINKED * log1p(linked))
            kind = self._copies.kind_of(page)
            if not is_default and kind.version and kind.place in shown_first:  # else all of its language are not
                self._older.add(page)
            if is_history == RELEASE_POST:
                self._posts.add(page)
            elif is_history:
                self._history.add(page)

    def close(self) -> None:
        self._db.close()

    def search(
        self,
        query: str,
        limit: int,
        wanted: SearchFilter,
        current_path: str,
        *,
        explain: bool = False,
        nearness: Nearness | None = None,
        prefix: bool = False,
        highlight: bool = False,
    ) -> SearchResult:
        """Without ``nearness`` words alone decide."""
        limit = min(limit, MAX_LIMIT)
        if limit < 1:
            return SearchResult(self.commit, (), self.instructions)
        reader = self.reader(query, wanted, current_path)
        ranking = self.ranking(query, reader, current_path, nearness, count=limit, prefix=prefix)
        shown = self._shown(ranking, limit, reader if explain else None) if ranking is not None else ()
        if highlight and ranking is not None:
            shown = tuple(self._highlighted(section, ranking.terms) for section in shown)
        return SearchResult(self.commit, shown, self.instructions)

    def _near_terms(self, term: str, distance: int, *, reader: Reader) -> Iterator[str]:
        pages, sections = self._words.with_near_terms(
            term, distance, NEAR_READ, only_sections=reader.only(SECTIONS), only_pages=reader.only(PAGES)
        )
        texts = [row.title for row in self._pages(pages).values()]
        texts += [text for row in self._rows(sections).values() for text in (row[0], row[3])]
        for each in {each for text in texts for each in self._words.terms(text)}:
            if not each.isdigit() and letters_apart(term, each, distance):
                yield each

    # Ranking

    def reader(self, query: str, wanted: SearchFilter, current_path: str) -> Reader:
        """Return the reader of a question, for whom pages are ranked."""
        row = self._page_at(current_path) if current_path else None
        current = self._copies.reader_on(row.id) if row is not None else Open()
        return reader_of(
            query, wanted, self._languages, lambda text, language, own: known_part(text, self._words, language, own),
            lambda text, own: bool(self._words.with_term(_keys(names_in(text)), own, 1)),
            current=current, guarded=self._guarded,
        )  # fmt: skip

    def shown(self, pages: Sequence[int], reader: Reader) -> list[int]:
        """Return pages without their copies, as the reader is shown them."""
        return self._copies.shown(pages, reader, partial(self._allowed, reader=reader))

    def _allowed(self, pages: Sequence[int], reader: Reader) -> Sequence[int]:
        only = reader.only(PAGES)
        return pages if only is None else self._words.allowed_pages(pages, only)

    def ranking(
        self,
        query: str,
        reader: Reader,
        current_path: str,
        nearness: Nearness | None,
        *,
        count: int,
        prefix: bool = False,
    ) -> Ranking | None:
        """Return at least ``count`` pages, if they match, best first; None for a query without a word to search for."""
        near = partial(self._near_terms, reader=reader)
        if prefix:
            terms = read_unfinished(
                query, self._words, near, reader.read_in,
                only_sections=reader.only(SECTIONS), only_pages=reader.only(PAGES),
            )  # fmt: skip
        else:
            terms = read_question(query, self._words, near, reader.read_in)
        if not terms.weights:
            return None
        terms = replace(
            terms,
            is_about_changes=bool(self._history) and asks_for_history(query),
            is_about_releases=bool(self._posts) and asks_for_releases(query),
        )
        ranking = self._ranked(terms, reader, current_path, count=count if nearness is None else FUSED_PAGES)
        if nearness is not None:
            self._fuse(ranking, nearness)
        phrases = phrases_of(query)
        if phrases:
            found = sections_with_phrases(self._words, phrases, reader.own(SECTIONS), reader.read_in)
            if reader.is_divided and not found:
                found = sections_with_phrases(self._words, phrases, reader.only(SECTIONS), reader.read_in)
            ranking.lead({page: found[page] for page in self.shown(list(found), reader) if page in found})
        self._lead_by_title(ranking, query)
        sections = self.term_sections(query, reader)
        leading = led_by_terms([each for each in sections if each.leads])
        ranking.lead(leading)
        ranking.lead_on_pages(
            [each.id for each in sections if each.is_heading and each.id >> PAGE_SHIFT not in leading]
        )
        return ranking

    def _lead_by_title(self, ranking: Ranking, query: str) -> None:
        pages = [candidate.page for candidate in ranking.candidates[:TITLED_PAGES]]
        rows = self._pages(pages) if len(pages) > 1 and may_be_title(query) else {}
        ranking.put_first(page_titled(query, {page: rows[page].title for page in pages if page in rows}))

    def term_sections(self, query: str, reader: Reader) -> list[TermSection]:
        """Return the sections of the term that a query is or asks for, the best first; for a name in code that has no
        section of its own those that have it in their page's title, heading or text. They are in the reader's language
        if any are, and no copies of one another.
        """
        names = names_asked(query)
        keys, written = _keys(names), [name for name in names if is_written_as_code(name)]
        found: list[TermSection] = []
        for only in (reader.own, reader.only) if reader.is_divided else (reader.only,):
            found += self._of_terms(self._words.with_term(keys, only(SECTIONS), MAX_OF_A_TERM), query)
            if written and not any(each.leads for each in found):
                found += self._naming(written, only)
            if found:
                break
        found.sort(key=lambda each: (not each.leads, each.place, each.id))
        shown = set(self.shown([each.id >> PAGE_SHIFT for each in found], reader))
        return [each for each in found if each.id >> PAGE_SHIFT in shown]

    def _of_terms(self, sections: Sequence[int], query: str) -> list[TermSection]:
        """Return those of the sections that are about the term that a query is or asks for."""
        first = [id_ for id_ in sections if id_ & ((1 << PAGE_SHIFT) - 1) == 0]
        titles = self._pages([id_ >> PAGE_SHIFT for id_ in first]) if first else {}
        rows = self._where(
            "SELECT id, heading_path, entries, is_code, length(text) FROM sections WHERE id IN ({}) ORDER BY id",
            sections,
        )
        found = []
        for id_, path, entries, is_code, size in rows if sections else ():
            title = titles[id_ >> PAGE_SHIFT].title if id_ in first else ""
            headings = _HEADINGS.decode(path)
            spelled = spelling(
                query, title, headings, decode_entries(entries) if entries else (), is_code=bool(is_code)
            )
            if spelled is not None:
                place = (*self._aside(id_, has_text=size > EMPTY_SIZE), spelled.nearness, spelled.kind)
                found.append(
                    TermSection(id_, place, headings, leads=not spelled.is_prose, is_heading=spelled.is_heading)
                )
        return without_outer(found)

    def _naming(self, names: Sequence[str], only: Callable[[Schema], Query | None]) -> list[TermSection]:
        """Return the sections that have a name in the title of their page, their heading or their text, except for
        change logs and other versions.
        """
        titled = self._words.titled_with(names, only(PAGES), MAX_OF_A_TERM)
        sections = {page << PAGE_SHIFT: None for page in titled}
        sections |= dict.fromkeys(self._words.with_name(names, only(SECTIONS), MAX_OF_A_TERM))
        titles = self._pages(titled)
        found = []
        for id_, (heading, _, _, text, *_) in self._rows(list(sections)).items():
            page = titles.get(id_ >> PAGE_SHIFT) if id_ & ((1 << PAGE_SHIFT) - 1) == 0 else None
            spelled = mentioned(names, page.title if page is not None else "", f"{heading}\n{text}")
            older, of_releases, _ = self._aside(id_, has_text=True)
            if spelled is not None and not older and not of_releases:
                found.append(TermSection(id_, (spelled.nearness, spelled.kind)))
        return found

    def _aside(self, section: int, *, has_text: bool) -> tuple[bool, bool, bool]:
        """Return what puts a section behind others of the same term."""
        page = section >> PAGE_SHIFT
        return page in self._older, page in self._history or page in self._posts, not has_text

    def section_scores(self, ranking: Ranking, pages: Sequence[int], reader: Reader) -> dict[int, float]:
        """Return the scores of all sections of these pages that match, by id."""
        return score_sections(self._words, ranking.terms, pages, reader.only(SECTIONS))

    def sections_with_run(self, query: str, reader: Reader) -> list[int]:
        """Return the few sections that have several words of a query in a row; none where many have them."""
        found = sections_with_run(self._words, query, reader.own(SECTIONS), reader.read_in)
        if found or not reader.is_divided:
            return found
        return sections_with_run(self._words, query, reader.only(SECTIONS), reader.read_in)

    def coverage(self, ranking: Ranking, page: int) -> float:
        """Return the part of the question's words, weighed by rarity, that a page has: 0 .. 1."""
        return coverage(self._words, ranking.terms, page)

    def _ranked(self, terms: Terms, reader: Reader, current_path: str, *, count: int) -> Ranking:
        """Rank the pages in the reader's language by themselves, so that the many others do not crowd them out."""
        count *= min(MOST_COPIES, self._copies.most)
        terms = self._weighed(terms, reader)
        ranking, first = self._rank(terms, reader.own, count)
        if reader.is_divided:
            others, further = self._rank(terms, reader.others, count)
            ranking.add(others)
            if further and not first and reader.asks_in_own:
                reader = self._copies.reader_as_found(max(further, key=ranking.scores.__getitem__), reader)
            first += self._copies.foreign(further, reader)
        self._reward_place(ranking, first, current_path, reader)
        if self._copies.exist:
            allowed = partial(self._allowed, reader=reader)
            first = self._copies.collapse(ranking, first, reader, allowed, self._section_count)
        ranking.choose(first)
        return ranking

    def _rank(self, terms: Terms, only: Callable[[Schema], Query | None], count: int) -> tuple[Ranking, list[int]]:
        return rank_pages(self._words, terms, only_sections=only(SECTIONS), only_pages=only(PAGES), count=count)

    def _weighed(self, terms: Terms, reader: Reader) -> Terms:
        own = reader.own(SECTIONS) if reader.is_divided else None
        if own is None:
            return terms
        count = self._sections_in.get(reader.language)
        if count is None:
            count = sections_among(self._words, own)
            if len(self._sections_in) < MAX_LANGUAGES:
                self._sections_in[reader.language] = count
        return weighed_among(terms, self._words, own, max(1, count))

    def _section_count(self, page: int) -> int:
        (count,) = self._db.execute(
            "SELECT count(*) FROM sections WHERE id BETWEEN ? AND ?", section_ids(page)
        ).fetchone()
        return int(count)

    def _reward_place(self, ranking: Ranking, first: Sequence[int], current_path: str, reader: Reader) -> None:
        current = self._page_at(current_path) if current_path else None
        rows = self._pages(first) if current is not None else {}
        for page in first:
            factor = self._linked[page] * (OLDER_VERSION if page in self._older else 1.0)
            if page in self._history and not ranking.terms.is_about_changes:
                factor *= HISTORY
            if page in self._posts and not ranking.terms.is_about_releases:
                factor *= POST
            factor *= FACTORS[self._copies.level(page, reader)] if reader.is_divided else 1.0
            if current is not None:
                here, there = self._positions[current.id], self._positions[page]
                if page == current.id:
                    factor *= SAME_PAGE
                elif dirname(rows[page].url) == dirname(current.url) or (
                    here >= 0 and there >= 0 and abs(here - there) <= NEAR
                ):
                    factor *= NEAR_PAGE
            ranking.places[page] = factor
            ranking.scores[page] *= factor

    def _fuse(self, ranking: Ranking, nearness: Nearness) -> None:
        """Join the order of the first pages with their nearness in meaning, which is that of their nearest section."""
        hashes = self._hashes([hit.id for candidate in ranking.candidates for hit in candidate.sections])
        near = nearness(list({key for key in hashes.values() if key}))
        pages: dict[int, float] = {}
        for section, key in hashes.items():
            if key in near:
                page = section >> PAGE_SHIFT
                pages[page] = max(pages.get(page, -1.0), near[key])
        join_meaning(ranking, pages)

    def _hashes(self, sections: Sequence[int]) -> dict[int, bytes]:
        return dict(self._where("SELECT id, hash FROM sections WHERE id IN ({})", sections))

    def hashes(self) -> dict[bytes, int]:
        """Return the content hashes of all sections, each with a section that has it, in their order."""
        rows = self._db.execute("SELECT hash, id FROM sections ORDER BY id DESC")
        return dict(reversed([(key, section) for key, section in rows if key]))

    def skipped(self) -> list[Skipped]:
        """Files that are not in the index, and why."""
        return [Skipped(*row) for row in self._db.execute("SELECT path, reason FROM skipped ORDER BY path")]

    def check(self) -> SiteCheck:
        """Return how well the site was read."""
        return check_index(self._db)

    def restricted_pages(self) -> int:
        """Return how many pages are for certain groups of readers alone."""
        (count,) = self._db.execute("SELECT count(*) FROM pages WHERE groups != ''").fetchone()
        return int(count)

    def meanings(self, sections: Sequence[int]) -> dict[bytes, str]:
        """Return the texts to embed for these sections, by the hash of their content."""
        rows = self._where(
            "SELECT sections.hash, pages.title, heading_path, text FROM sections"  # noqa: S608  (a number)
            f" JOIN pages ON pages.id = sections.id >> {PAGE_SHIFT} WHERE sections.id IN ({{}}) ORDER BY sections.id",
            sections,
        )
        return {
            key: meant(title, json.loads(path), words_of(zlib.decompress(text).decode()))
            for key, title, path, text in rows
        }

    # What is shown

    def _shown(self, ranking: Ranking, limit: int, explained_to: Reader | None) -> tuple[Section, ...]:
        picked = ranking.best_sections(limit)
        top = picked[0][0] if picked else 1.0
        rows = self._pages([candidate.page for _, _, candidate in picked])
        ids = [section for _, section, _ in picked]
        texts = self._rows(ids)
        shown = []
        for score, id_, candidate in picked:
            why = None
            if explained_to is not None:
                why = explained(self._words, self._copies, ranking, candidate, id_, explained_to)
            section = self._section(texts[id_], rows[candidate.page], score / top if top > 0 else 1.0, why)
            entry = entry_named(decode_entries(texts[id_][-1]), section, ranking.terms, self._words)
            shown.append(narrowed(section, entry) if entry is not None else section)
        return tuple(shown)

    def _highlighted(self, section: Section, terms: Terms) -> Section:
        wanted, forms = terms.weights.keys(), partial(self._words.forms, languages=terms.languages)
        shown = (ranges_in(each, wanted, forms) for each in (section.title, section.heading, section.text))
        return replace(section, highlights=Highlights(*shown))

    def _section(self, row: _SectionRow, page: _PageRow, score: float, explanation: Explanation | None) -> Section:
        heading, headings, anchor, text, start, end, path, url, _ = row
        return Section(
            path=path or page.path,
            url=with_anchor(url or page.url, "" if url else anchor),
            title=page.title,
            heading=heading,
            heading_path=_HEADINGS.decode(headings),
            text=text,
            start_line=start,
            end_line=end,
            score=round(min(1.0, max(0.0, score)), 4),
            explanation=explanation,
            language=self._copies.kind_of(page.id).text,
        )

    def _rows(self, sections: Sequence[int]) -> dict[int, _SectionRow]:
        return {
            id_: (heading, headings, anchor, zlib.decompress(text).decode(), start, end, path, url, entries)
            for id_, heading, headings, anchor, text, start, end, path, url, entries in self._where(
                "SELECT id, heading, heading_path, anchor, text, start_line, end_line, path, url, entries"
                " FROM sections WHERE id IN ({}) ORDER BY id",
                sections,
            )
        }

    def _where(self, query: str, ids: Sequence[int]) -> sqlite3.Cursor:
        """Run a query over some ids, which it has as ``{}``. Their number is made a round one: to prepare another query
        takes SQLite longer than to find a few rows.
        """
        if len(ids) > MOST_PREPARED:
            return self._db.execute(query.format(",".join(map(str, ids))))
        values = [*ids, *[ids[-1] for _ in range(-len(ids) % 10)]]
        return self._db.execute(query.format(",".join("?" * len(values))), values)

    # Pages

    def query_words(self, query: str, ranking: Ranking | None, reader: Reader) -> tuple[QueryWord, ...]:
        """Return the words of a query as its ranking read them."""
        terms = ranking.terms if ranking is not None else Terms({}, (), {})
        return query_words(query, self._words, terms, reader.only(SECTIONS) if reader.guarded else None)

    def page_id(self, path: str, readers: Sequence[str] | None) -> int | None:
        """Return a page by its path or URL, if it is for these readers."""
        row = self._page_at(path)
        return row.id if row is not None and self._is_for(row.id, readers) else None

    def start_title(self, readers: Sequence[str] | None) -> str:
        """Return the title of the page at the site's root; empty where it has none for these readers."""
        row = self._page_at("/")
        return row.title if row is not None and self._is_for(row.id, readers) else ""

    def named_pages(self, names: Sequence[str], reader: Reader) -> list[int]:
        """Return the pages that may be found, by title, path or URL."""
        found: dict[int, None] = {}
        only = reader.only(PAGES)
        for name in names[:MAX_NAMED]:
            row = self._page_at(name)
            for page in self._words.titled(name, only, at=row.id if row is not None else None):
                found[page] = None
        return self.shown(list(found), reader)

    def titled_pages(self, title: str, reader: Reader) -> list[int]:
        """Return the pages whose title is this one, but for endings such as a plural's."""
        only = reader.only(PAGES)
        rows = self._pages(self._words.with_title(title, only, MAX_NAMED))
        terms = sorted(self._words.terms(title))
        same = [page for page, row in rows.items() if sorted(self._words.terms(row.title)) == terms]
        return self.shown(same, reader)

    def pages_with_sign(self, sign: str, reader: Reader) -> list[int]:
        """Return pages whose titles have a sign, such as ``===``, by itself."""
        rows = self._db.execute("SELECT id, title FROM pages WHERE instr(title, ?) LIMIT 200", (sign,))
        pages = [page for page, title in rows if has_sign(title, sign)][:MAX_NAMED]
        return self.shown(self._words.allowed_pages(pages, reader.only(PAGES)), reader)

    def sections_of(self, pages: Sequence[int], matched: Set[int], long: int) -> list[ReadSection]:
        """Return the sections of pages; of a page with more than ``long`` only those that matched."""
        return self._sections.of_pages(pages, matched, long, self._section_ids, self._read)

    def _read(self, sections: Sequence[int]) -> Iterator[ReadSection]:
        pages = self._pages(list({id_ >> PAGE_SHIFT for id_ in sections}))
        for id_, row in self._rows(sections).items():
            yield read_section(id_, self._section(row, pages[id_ >> PAGE_SHIFT], 0.0, None))

    def _section_ids(self, page: int) -> tuple[int, ...]:
        rows = self._db.execute("SELECT id FROM sections WHERE id BETWEEN ? AND ?", section_ids(page))
        return tuple(id_ for (id_,) in rows)

    def sections_of_page(self, page: int) -> tuple[Section, ...]:
        """Return the sections of a page in their order."""
        row = self._pages([page])[page]
        return tuple(self._section(each, row, 0.0, None) for each in self._rows(self._section_ids(page)).values())

    def read_page(self, path: str, readers: Sequence[str] | None) -> Page | None:
        row = self._page_at(path)
        if row is None or not self._is_for(row.id, readers):
            return None
        (content,) = self._db.execute("SELECT content FROM pages WHERE id = ?", (row.id,)).fetchone()
        sections = self.sections_of_page(row.id)
        whole = unpack_page(content, [section.text for section in sections])
        return Page(row.path, encoded_address(row.url), row.title, whole, sections, self.commit)

    def links(self) -> PageAddresses:
        """Return the addresses of the pages; they are read once."""
        if self._links is None:
            pages = {
                page: AddressedPage(url, path, anchors, frozenset(groups.split("\n")) - {""})
                for page, url, path, anchors, groups in self._db.execute(
                    "SELECT id, url, path, anchors, groups FROM pages ORDER BY id"
                )
            }
            aliases = self._db.execute("SELECT key, page FROM addresses WHERE is_url")
            made = self._db.execute(
                f"SELECT DISTINCT sections.id >> {PAGE_SHIFT}, url FROM sections WHERE url != ''"  # noqa: S608  (a number)
            )
            own = [replace(pages[page], url=url, path=url, anchors="[]") for page, url in made if page in pages]
            self._links = PageAddresses(
                [*pages.values(), *own], {key: pages[page] for key, page in aliases if page in pages}
            )
        return self._links

    def pages_besides(self, paths: Sequence[str], *, limit: int) -> OtherPages:
        return pages_besides(self._db, paths, limit)

    def reader_groups(self) -> list[str]:
        """Return the groups of readers that pages are restricted to, sorted: the first hundred."""
        return reader_groups(self._db)

    def list_pages(self, readers: Sequence[str] | None) -> PageList:
        return list_pages(self._db, readers)

    def _is_for(self, page: int, readers: Sequence[str] | None) -> bool:
        (groups,) = self._db.execute("SELECT groups FROM pages WHERE id = ?", (page,)).fetchone()
        return is_for(groups, readers)

    def _pages(self, ids: Sequence[int]) -> dict[int, _PageRow]:
        """Return the rows of pages, in the order asked for."""
        kept = self._page_rows
        missing = [id_ for id_ in ids if id_ not in kept]
        if missing:
            if len(kept) + len(missing) > MAX_PAGE_ROWS:
                kept.clear()
                missing = list(ids)
            rows = self._where("SELECT id, path, url, title FROM pages WHERE id IN ({})", missing)
            kept.update((row[0], _PageRow(*row)) for row in rows)
        return {id_: kept[id_] for id_ in ids if id_ in kept}

    def _page_at(self, path: str) -> _PageRow | None:
        """Return the page with a path or an address, which may be percent-encoded and have a query and an anchor."""
        bare = path[:2000].partition("#")[0].partition("?")[0]
        for each in dict.fromkeys((bare, unquote(bare), path[:2000])):
            key = "/" + "/".join(part for part in each.split("/") if part)
            row = self._db.execute(
                "SELECT id, path, url, title FROM pages WHERE id = (SELECT page FROM addresses WHERE key = ?)",
                (key.casefold().encode("utf-8", "replace").decode(),),
            ).fetchone()
            if row is not None:
                return _PageRow(*row)
        return None


def _keys(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, map(term_key, names))))
