"""Search over index files: a question's words, the pages that they find, the sections to show.

How pages are ordered, and what each step was worth, is in DESIGN ("Search"): any word may match; words that only make a
sentence a question are left out; title, headings, what other pages call this one, and body each have their own BM25; a
page is its best section and a part of the next three; adjacent words of the question found adjacent count a little
more.

A query is data: its words are letters and digits by the time FTS5 sees them, each in quotes. The number of words is
capped, so a pasted log costs what a long question costs.
"""

import asyncio
import heapq
import json
import re
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from posixpath import dirname
from typing import TypeVar

from msgspec import Struct

from service.domain.errors import Invalid, NotFound
from service.domain.projects import DOMAIN
from service.domain.threads import SearchFilter
from service.ports.search_index import NO_FILTER, Page, SearchResult, Section
from service.retrieval.index import COMMON, FORMAT, PAGE_SHIFT, TOKENIZER, searchable

MAX_QUERY = 32_768
MAX_TERMS = 24
"""Beyond it the words that stand in fewest sections are kept."""
MAX_READ_TERMS = 400
MAX_LIMIT = 100
TITLE, HEADINGS, LINKS, BODY, PAIRS = 0.75, 0.5, 0.75, 1.0, 0.25
"""DESIGN has 1, 0.5, 0.5, 1. These are the middle of a flat top in a sweep of 27 over the three labelled corpora (mean
nDCG@10 0.663 to 0.658), so the figures on those corpora flatter them a little; weights chosen on two of the corpora
gave 0.692, 0.477 and 0.817 on the third.
"""
NEXT_SECTIONS, NEXT_PART = 3, 0.3
PAIRED_PAGES = 40
SECTIONS_READ, PAGES_READ = 800, 800
"""Rows that are ranked of one query; a page beyond them is no answer."""
ROWS_RANKED, FEWEST_WORDS = 70_000, 2
"""In sections; and words asked for in any case. On a large site a common word costs much and tells little: see
``_affordable``.
"""
OLDER_VERSION = 0.8
SAME_PAGE, NEAR_PAGE = 1.15, 1.05
NEAR = 2
"""Places in the navigation."""
MAX_OF_PAGE = 3
MAX_OPEN = 64
"""Connections that wait for a query, over all domains."""

STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can could did do does
    doing don down during each every few for from further get gets getting had has have having he her here hers him
    his how i if in into is isn it its itself just let ll make me more most my need needs no nor not now of off on
    once only or other our ours out over own please possible re s same she should so some such t tell than that the
    their theirs them then there these they this those through to too under until up use used uses using ve very want
    was way we were what when where which while who whom why will with would you your yours
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
"""Function words, and the words that make a question of a subject."""

# What is formatted into these is our own: names of tables, and the condition above.
_ONLY_ALLOWED = f" AND rowid >> {PAGE_SHIFT} IN (SELECT page FROM temp.allowed)"  # noqa: S608
_SECTION_SCORES = """
    SELECT id, sum(score) FROM (
        SELECT rowid AS id, -bm25(bodies) * ? AS score FROM bodies WHERE bodies MATCH ?{only}
        UNION ALL
        SELECT rowid, -bm25(headings) * ? FROM headings WHERE headings MATCH ?{only}
    ) GROUP BY id ORDER BY 2 DESC, 1 LIMIT ?
"""
_FIELD_SCORES = "SELECT rowid, -bm25({field}) FROM {field} WHERE {field} MATCH ?{only} ORDER BY 2 DESC, 1 LIMIT ?"

_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_T = TypeVar("_T")


class _Terms(Struct, frozen=True):
    words: tuple[str, ...]
    body_words: tuple[str, ...]
    """Without those too common to tell sections of a large site apart."""
    pairs: tuple[tuple[str, str], ...]


class _PageRow(Struct, frozen=True, array_like=True):
    id: int
    path: str
    url: str
    title: str
    position: int
    is_default: int


class _Candidate(Struct):
    page: _PageRow
    score: float
    sections: Sequence[tuple[float, int]]
    """Best first; the top of the page when only its title or name matched."""


class _Index:
    """One connection to an index file; used by one thread at a time."""

    def __init__(self, file: Path) -> None:
        # Immutable is true of a finished index, and spares SQLite locks and checks.
        uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
        self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        self._db.execute("PRAGMA mmap_size = 268435456")
        self._db.execute("PRAGMA temp_store = MEMORY")
        meta = dict(self._db.execute("SELECT key, value FROM meta"))
        if meta.get("format") != FORMAT:
            raise Invalid(f"The index has format {meta.get('format')!r}; this is made for {FORMAT!r}.")
        self.commit = str(meta["commit"])
        self._sections = int(meta["sections"])
        self._instructions = str(meta.get("instructions", ""))
        self._guarded = self._db.execute("SELECT 1 FROM pages WHERE groups != '' LIMIT 1").fetchone() is not None
        # The tokenizer's own view of a query's words: the same stems as in the index, by construction.
        self._db.execute(f"CREATE VIRTUAL TABLE temp.asked USING fts5(words, content='', tokenize=\"{TOKENIZER}\")")
        self._db.execute("CREATE VIRTUAL TABLE temp.stems USING fts5vocab('temp', 'asked', 'instance')")
        self._db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'bodies', 'row')")
        self._db.execute("CREATE TEMP TABLE allowed(page INTEGER PRIMARY KEY)")

    def close(self) -> None:
        self._db.close()

    # Questions

    def search(self, query: str, limit: int, wanted: SearchFilter, current_path: str) -> SearchResult:
        terms = self._terms(query)
        limit = min(limit, MAX_LIMIT)
        if not terms.words or limit < 1:
            return SearchResult(self.commit, (), self._instructions)
        restricted = self._restrict(wanted)
        ranked = self._ranked(terms, current_path, restricted=restricted, count=limit)
        return SearchResult(self.commit, self._shown(ranked, limit), self._instructions)

    def _terms(self, query: str) -> _Terms:
        """Words of the question by their first use, one per stem."""
        read = [word for word in _WORD.findall(searchable(query[:MAX_QUERY].casefold())) if len(word) <= 64]
        read = read[:MAX_READ_TERMS] + read[-MAX_READ_TERMS:] if len(read) > 2 * MAX_READ_TERMS else read
        kept = [word for word in read if word not in STOP_WORDS] or read
        stems = self._stems(list(dict.fromkeys(kept)))
        by_stem: dict[str, str] = {}
        for word in kept:
            if word in stems:
                by_stem.setdefault(stems[word], word)
        counts = self._counts(list(by_stem))
        if len(by_stem) > MAX_TERMS:
            known = [stem for stem in by_stem if stem in counts or self._stands_somewhere(stem)]
            rarest = set(sorted(known, key=lambda stem: counts.get(stem, 0))[:MAX_TERMS])
        else:
            rarest = set(by_stem)
        chosen = {stem: word for stem, word in by_stem.items() if stem in rarest}
        body = self._affordable(list(chosen), counts)
        sequence = [word for word in kept if stems.get(word) in chosen]
        pairs = dict.fromkeys((first, second) for first, second in pairwise(sequence) if first != second)
        return _Terms(
            tuple(chosen.values()), tuple(chosen[stem] for stem in body), tuple(pairs)[:MAX_TERMS]
        )  # fmt: skip

    def _stems(self, words: Sequence[str]) -> Mapping[str, str]:
        self._db.execute("INSERT INTO temp.asked(asked) VALUES ('delete-all')")
        self._db.executemany("INSERT INTO temp.asked(rowid, words) VALUES (?, ?)", enumerate(words))
        return {
            words[row]: stem
            for stem, row in self._db.execute("SELECT term, doc FROM temp.stems ORDER BY doc, offset DESC")
        }

    def _affordable(self, stems: Sequence[str], counts: Mapping[str, int]) -> Sequence[str]:
        """The words that bodies are asked for: the rarest, until the sections that they stand in are many."""
        rare = COMMON * self._sections / 2
        left: float = ROWS_RANKED
        kept: list[str] = []
        for stem in sorted(stems, key=lambda stem: counts.get(stem, 0)):
            left -= counts.get(stem, rare)
            if left < 0 and len(kept) >= FEWEST_WORDS:
                break
            kept.append(stem)
        return kept

    def _counts(self, stems: Sequence[str]) -> dict[str, int]:
        """In how many sections the common ones among these stand."""
        marks = ",".join("?" * len(stems))
        return dict(self._db.execute(f"SELECT term, sections FROM common WHERE term IN ({marks})", stems))  # noqa: S608

    def _stands_somewhere(self, stem: str) -> bool:
        return self._db.execute("SELECT 1 FROM temp.vocabulary WHERE term = ?", (stem,)).fetchone() is not None

    def _restrict(self, wanted: SearchFilter) -> bool:
        """Fill ``allowed``; False when every page is. What a page does not say of itself holds for any version
        and language, but a page for certain readers is shown only to them.
        """
        if not self._guarded and wanted == NO_FILTER:
            return False
        conditions: list[str] = ["1"]
        values: list[object] = []
        if wanted.version:
            conditions.append("version IN ('', ?) COLLATE NOCASE")
            values.append(wanted.version)
        if wanted.language:
            asked = wanted.language.replace("_", "-").casefold()
            general = asked.partition("-")[0]  # what is in Portuguese will do for Brazil, and the other way round
            conditions.append(
                "(language = '' OR replace(lower(language), '_', '-') IN (?, ?) OR instr(lower(language), ?) = 1)"
            )
            values += [asked, general, f"{asked}-"]
        if wanted.tag:
            conditions.append("instr(tags, ?)")
            values.append(f"\n{wanted.tag.casefold()}\n")
        groups = [f"\n{group.casefold()}\n" for group in wanted.groups[:50]]
        conditions.append("(groups = ''" + " OR instr(groups, ?)" * len(groups) + ")")
        values += groups
        self._db.execute("DELETE FROM temp.allowed")
        self._db.execute(f"INSERT INTO temp.allowed SELECT id FROM pages WHERE {' AND '.join(conditions)}", values)  # noqa: S608
        return True

    def _ranked(self, terms: _Terms, current_path: str, *, restricted: bool, count: int) -> list[_Candidate]:
        by_page: dict[int, list[tuple[float, int]]] = {}
        for section, score in self._section_scores(terms, restricted=restricted):
            by_page.setdefault(section >> PAGE_SHIFT, []).append((score, section))  # best first, as they come
        scores = {
            page: best[0][0] + NEXT_PART * sum(score for score, _ in best[1 : 1 + NEXT_SECTIONS])
            for page, best in by_page.items()
        }
        for field, weight in (("titles", TITLE), ("links", LINKS)):
            for section, score in self._field(field, terms.words, PAGES_READ, restricted=restricted):
                page = section >> PAGE_SHIFT
                scores[page] = scores.get(page, 0.0) + weight * score
        first = heapq.nlargest(max(PAIRED_PAGES, count), scores, key=scores.__getitem__)
        self._reward_pairs(terms, scores, by_page, first)
        rows = self._pages(first)
        self._reward_place(scores, rows, current_path)
        first.sort(key=lambda page: (-scores[page], page))
        return [
            _Candidate(rows[page], scores[page], by_page.get(page) or ((scores[page], page << PAGE_SHIFT),))
            for page in first
        ]

    def _section_scores(self, terms: _Terms, *, restricted: bool) -> Iterator[tuple[int, float]]:
        only = _ONLY_ALLOWED if restricted else ""
        return self._db.execute(
            _SECTION_SCORES.format(only=only),
            (BODY, _any_of(terms.body_words), HEADINGS, _any_of(terms.words), SECTIONS_READ),
        )

    def _field(self, field: str, words: Sequence[str], limit: int, *, restricted: bool) -> Iterator[tuple[int, float]]:
        only = _ONLY_ALLOWED if restricted else ""
        return self._db.execute(_FIELD_SCORES.format(field=field, only=only), (_any_of(words), limit))

    def _reward_pairs(
        self,
        terms: _Terms,
        scores: dict[int, float],
        by_page: Mapping[int, Sequence[tuple[float, int]]],
        first: Sequence[int],
    ) -> None:
        if not terms.pairs:
            return
        phrases = " OR ".join(f'"{one} {other}"' for one, other in terms.pairs)
        found = dict(
            self._db.execute(
                "SELECT rowid, -bm25(bodies) AS score FROM bodies WHERE bodies MATCH ? ORDER BY score DESC LIMIT 2000",
                (phrases,),
            )
        )
        for page in sorted(first, key=lambda page: -scores[page])[:PAIRED_PAGES]:
            best = (found.get(section, 0.0) for _, section in by_page.get(page, ())[: 1 + NEXT_SECTIONS])
            scores[page] += PAIRS * max(best, default=0.0)

    def _reward_place(self, scores: dict[int, float], rows: Mapping[int, _PageRow], current_path: str) -> None:
        current = self._page_at(current_path) if current_path else None
        for page, row in rows.items():
            if not row.is_default:
                scores[page] *= OLDER_VERSION
            if current is None:
                continue
            if row.id == current.id:
                scores[page] *= SAME_PAGE
            elif dirname(row.url) == dirname(current.url) or (
                row.position >= 0 and current.position >= 0 and abs(row.position - current.position) <= NEAR
            ):
                scores[page] *= NEAR_PAGE

    def _pages(self, ids: Sequence[int]) -> dict[int, _PageRow]:
        asked = ",".join(map(str, ids))
        rows = self._db.execute(f"SELECT id, path, url, title, position, is_default FROM pages WHERE id IN ({asked})")  # noqa: S608
        return {row[0]: _PageRow(*row) for row in rows}

    def _shown(self, ranked: Sequence[_Candidate], limit: int) -> tuple[Section, ...]:
        """The best section of each of the best pages, then further sections of the very best."""
        further = max(0, (limit - 5) // 3)
        pages = ranked[: limit - further]
        picked = [(candidate.score, candidate.sections[0][1], candidate) for candidate in pages]
        if len(picked) < limit and picked:
            floor = picked[-1][0]
            rest = [
                (candidate.score * score / candidate.sections[0][0], section, candidate)
                for candidate in pages
                for score, section in candidate.sections[1:MAX_OF_PAGE]
                if candidate.sections[0][0] > 0
            ]
            best = heapq.nlargest(limit - len(picked), rest, key=lambda item: item[0])
            picked += [(min(score, floor), section, candidate) for score, section, candidate in best]
        top = picked[0][0] if picked else 1.0
        return tuple(
            self._section(section, candidate.page, score / top if top > 0 else 1.0)
            for score, section, candidate in picked
        )

    def _section(self, section: int, page: _PageRow, score: float) -> Section:
        row = self._db.execute(
            "SELECT heading, heading_path, anchor, text, start_line, end_line FROM sections WHERE id = ?", (section,)
        ).fetchone()
        heading, path, anchor, text, start, end = row
        return Section(
            path=page.path,
            url=f"{page.url}#{anchor}" if anchor else page.url,
            title=page.title,
            heading=heading,
            heading_path=tuple(json.loads(path)),
            text=text,
            start_line=start,
            end_line=end,
            score=round(min(1.0, max(0.0, score)), 4),
        )

    # Pages

    def read_page(self, path: str, readers: Sequence[str] | None) -> Page | None:
        row = self._page_at(path)
        if row is None:
            return None
        content, groups = self._db.execute("SELECT content, groups FROM pages WHERE id = ?", (row.id,)).fetchone()
        if readers is not None and groups and not any(f"\n{group.casefold()}\n" in groups for group in readers):
            return None
        return Page(row.path, row.url, row.title, zlib.decompress(content).decode())

    def _page_at(self, path: str) -> _PageRow | None:
        key = "/" + "/".join(part for part in path[:2000].partition("#")[0].partition("?")[0].split("/") if part)
        row = self._db.execute(
            "SELECT id, path, url, title, position, is_default FROM pages"
            " WHERE id = (SELECT page FROM addresses WHERE key = ?)",
            (key.casefold(),),
        ).fetchone()
        return _PageRow(*row) if row is not None else None


def _any_of(words: Sequence[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


class _Served:
    """An index file and its idle connections. Every method runs under ``FtsIndex``'s lock."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.idle: list[_Index] = []
        self.busy = 0
        self.retired = False


class FtsIndex:
    """``service.ports.search_index.SearchIndex`` over the files ``<root>/<domain>/<file>.db``.

    Queries run on threads of its own. ``use`` switches a domain to another file between two queries: those under
    way end on the file they began with, which then goes.
    """

    def __init__(self, root: Path, *, threads: int = 2, max_open: int = MAX_OPEN) -> None:
        self._max_open = max_open
        self._root = root
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="search")
        self._lock = threading.Lock()
        self._served: dict[str, _Served] = {}  # the least recently asked first

    def path_of(self, domain: str, file: str) -> Path:
        """Where an index of that name lies. Raises Invalid for what is no domain or no plain name."""
        if not DOMAIN.fullmatch(domain) or ".." in domain:
            raise Invalid(f"{domain!r} is not a domain.")
        name = file.removesuffix(".db")
        if not _NAME.fullmatch(name) or ".." in name:
            raise Invalid(f"{file!r} is not the name of an index.")
        return self._root / domain / f"{name}.db"

    async def use(self, domain: str, file: str) -> None:
        """Answer for the domain from this file from now on; older files of it are removed once nothing reads them.

        Raises NotFound (``not_indexed``) when there is no such file, Invalid when it is not an index of ours;
        the domain then stays with the file it had.
        """
        await self._run(self._use, domain, self.path_of(domain, file))

    async def forget(self, domain: str) -> None:
        """Answer no more for the domain. Its files stay."""
        with self._lock:
            served = self._served.pop(domain, None)
            closing = self._retire(served) if served is not None else []
        for index in closing:
            index.close()

    def served(self, domain: str) -> str | None:
        """The name of the file that answers for the domain."""
        with self._lock:
            served = self._served.get(domain)
        return served.file.stem if served is not None else None

    @property
    def open_files(self) -> int:
        with self._lock:
            return sum(len(served.idle) + served.busy for served in self._served.values())

    async def search(
        self,
        domain: str,
        query: str,
        *,
        limit: int = 10,
        filter: SearchFilter = NO_FILTER,  # noqa: A002  (the port's own word)
        current_path: str = "",
    ) -> SearchResult:
        return await self._run(self._ask, domain, lambda index: index.search(query, limit, filter, current_path))

    async def read_page(self, domain: str, path: str, *, readers: Sequence[str] | None = None) -> Page | None:
        return await self._run(self._ask, domain, lambda index: index.read_page(path, readers))

    async def close(self) -> None:
        """Wait for the queries under way, then close every file."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        with self._lock:
            closing = [index for served in self._served.values() for index in self._retire(served)]
            self._served.clear()
        for index in closing:
            index.close()

    async def _run(self, call: Callable[..., _T], *arguments: object) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    # On the threads

    def _use(self, domain: str, file: Path) -> None:
        with self._lock:
            now = self._served.get(domain)
            if now is not None and now.file == file:
                return
        first = _opened(file)
        served = _Served(file)
        served.idle.append(first)
        with self._lock:
            before = self._served.pop(domain, None)
            self._served[domain] = served
            closing = [*(self._retire(before) if before is not None else ()), *self._surplus()]
        for index in closing:
            index.close()
        _remove_older(file)

    def _ask(self, domain: str, ask: Callable[[_Index], _T]) -> _T:
        with self._borrowed(domain) as index:
            return ask(index)

    @contextmanager
    def _borrowed(self, domain: str) -> Iterator[_Index]:
        with self._lock:
            served = self._served.pop(domain, None)
            if served is None:
                raise NotFound("This site has not been indexed yet.", code="not_indexed")
            self._served[domain] = served
            index = served.idle.pop() if served.idle else None
            served.busy += 1
        try:
            if index is None:
                index = _opened(served.file)
            yield index
        finally:
            with self._lock:
                served.busy -= 1
                if index is not None and not served.retired:
                    served.idle.append(index)
                    index = None
                closing = self._surplus()
            for each in (*closing, *([index] if index is not None else ())):
                each.close()

    def _surplus(self) -> list[_Index]:
        """Idle connections over the limit, of the domains that were asked longest ago."""
        over = sum(len(served.idle) for served in self._served.values()) - self._max_open
        closing: list[_Index] = []
        for served in self._served.values():
            while over > len(closing) and served.idle:
                closing.append(served.idle.pop())
        return closing

    def _retire(self, served: _Served) -> list[_Index]:
        served.retired = True
        closing, served.idle = served.idle, []
        return closing


def _opened(file: Path) -> _Index:
    if not file.is_file():
        raise NotFound("This site has not been indexed yet.", code="not_indexed")
    try:
        return _Index(file)
    except sqlite3.Error as error:
        raise Invalid(f"{file.name} is not an index: {error}") from error


def _remove_older(file: Path) -> None:
    """Other indexes of the domain that are not newer: one that has just been built waits for its turn. Whoever
    still reads a removed file keeps it until they close it.
    """
    written = file.stat().st_mtime_ns
    for other in file.parent.glob("*.db"):
        if other != file and other.stat().st_mtime_ns <= written:
            other.unlink(missing_ok=True)
