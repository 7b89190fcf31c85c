"""The indexes of all sites: which one answers for a domain, and who is reading it.

An index is a folder that never changes (``service.retrieval.index.build``). ``use`` switches a domain to another one
between two queries; those under way end on the one that they began with. A broken one is noticed when it is opened, by
its sums, or when a query fails on it; it then answers no more, and ``on_broken`` is called to make another.

The modules that read an index take 20 ms to import: that is done on the threads, when the first index is opened.
"""

import asyncio
import re
import shutil
import sqlite3
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import structlog

from service.domain.errors import Invalid, NotFound, ServiceError, Unavailable
from service.domain.projects.values import DOMAIN
from service.domain.search import SearchFilter, Source
from service.domain.sites import Skipped
from service.ports.search_index import (
    NO_FILTER,
    Material,
    MaterialRequest,
    OtherPages,
    Page,
    PageList,
    SearchResult,
    Section,
    SiteLinks,
)
from service.retrieval.index.atomic_folder import is_whole

if TYPE_CHECKING:
    from service.retrieval.index.check import SiteCheck
    from service.retrieval.index.section_cache import IndexSections, SectionCache
    from service.retrieval.index.site_index import SiteIndex
    from service.retrieval.material.asked import Asked
    from service.retrieval.search.meaning import Meaning

log = structlog.get_logger()

MAX_OPEN = 64
"""Connections that wait for a query, over all domains."""
MAX_KEPT_PAGES = 100_000
"""Pages in the lists that are kept, over all domains: about 60 MB."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_UNREADABLE = (sqlite3.Error, ValueError, OSError, zlib.error)
"""Errors that reading a damaged file raises; the libraries have no class of their own for it."""
_PANIC = "PanicException"
"""Name of the error that tantivy raises for an impossible file: it is no Exception, and its class cannot be imported.
"""
_T = TypeVar("_T")


class IndexBroken(Unavailable):
    """The site's index is damaged; it is being rebuilt."""

    code = "index_broken"


class _Served:
    """An index and its idle connections. Read and changed under the lock of ``SiteIndexes``."""

    def __init__(self, folder: Path, sections: "IndexSections") -> None:
        self.folder = folder
        self.sections = sections
        self.idle: list[SiteIndex] = []
        self.busy = 0
        self.retired = False
        self.links: SiteLinks | None = None
        """The site's addresses, once they were asked for: each reply asks."""
        self.pages: PageList | None = None
        """The pages for every reader, once they were asked for: strangers and their agents ask often."""


class SiteIndexes:
    """``service.ports.search_index.SearchIndex`` over the folders ``<root>/<domain>/<name>``.

    Queries run on threads of its own.
    """

    def __init__(
        self, root: Path, *, threads: int = 2, max_open: int = MAX_OPEN, meaning: "Meaning | None" = None
    ) -> None:
        self._max_open = max_open
        self._meaning = meaning
        self._root = root
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="search")
        self._lock = threading.Lock()
        self._sections: SectionCache | None = None
        self._served: dict[str, _Served] = {}  # the least recently asked first
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._broken: dict[str, str] = {}
        self.on_broken: Callable[[str], None] | None = None  # called on the event loop, with the domain

    def by_words(self) -> "SiteIndexes":
        """Return the same indexes without meaning, for work that no one waits for: an embedding model costs money."""
        indexes = copy(self)
        indexes._meaning = None
        return indexes

    def path_of(self, domain: str, name: str) -> Path:
        """Return the folder of an index of that name. Raise Invalid when it is not a domain or not a plain name."""
        if not DOMAIN.fullmatch(domain) or ".." in domain:
            raise Invalid(f"{domain!r} is not a domain.")
        if not _NAME.fullmatch(name) or ".." in name:
            raise Invalid(f"{name!r} is not the name of an index.")
        return self._root / domain / name

    async def use(self, domain: str, name: str) -> None:
        """Answer for the domain from this index from now on; older ones of it are removed.

        Raises NotFound (``not_indexed``) when there is none of that name, Invalid when it is not an index of ours, or
        not whole (``index_broken``); the domain then stays with the one it had.
        """
        await self._run(self._use, domain, self.path_of(domain, name))

    def use_after(self, moment: asyncio.Event, domain: str, name: str) -> None:
        """Do what ``use`` does once the moment has come; queries about the domain wait for that.
        An index that cannot be used is logged.
        """
        self._opening[domain] = asyncio.create_task(self._use_after(moment, domain, name), name=f"open {domain}")

    async def _use_after(self, moment: asyncio.Event, domain: str, name: str) -> None:
        await moment.wait()
        try:
            await self.use(domain, name)
        except ServiceError as error:  # removed: a newer one follows, or it is built again
            log.info("index not served", domain=domain, code=error.code)
        del self._opening[domain]  # one that failed otherwise stays: its error is for those who ask

    def opening(self) -> Collection[asyncio.Task[None]]:
        """Return a task for each index that ``use_after`` has still to open."""
        return tuple(self._opening.values())

    def broken(self) -> Mapping[str, str]:
        """Domains that had an index and have none now, and why."""
        with self._lock:
            return dict(self._broken)

    async def forget(self, domain: str) -> None:
        """Answer no more for the domain. Its files stay."""
        with self._lock:
            self._broken.pop(domain, None)
            served = self._served.pop(domain, None)
            closing = self._retire(served) if served is not None else []
        for index in closing:
            index.close()

    def served(self, domain: str) -> str | None:
        """The name of the index that answers for the domain."""
        with self._lock:
            served = self._served.get(domain)
        return served.folder.name if served is not None else None

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
        explain: bool = False,
        prefix: bool = False,
        highlight: bool = False,
    ) -> SearchResult:
        meaning = self._meaning if query.strip() and not prefix else None  # half a word has no meaning
        nearness = await meaning.nearness(domain, query) if meaning is not None else None
        return await self._asked(
            domain,
            lambda index: index.search(
                query,
                limit,
                filter,
                current_path,
                explain=explain,
                nearness=nearness,
                prefix=prefix,
                highlight=highlight,
            ),
        )

    async def find_material(self, domain: str, request: MaterialRequest) -> Material:
        await self._until_open(domain)
        from service.retrieval.material.asked import Asked, queries_of  # imported already, with the first index

        asked = [
            Asked(query, await self._meaning.nearness(domain, query) if self._meaning is not None else None)
            for query in queries_of(request)
        ]
        return await self._asked(domain, lambda index: _gathered(index, request, asked))

    async def sections_at(
        self, domain: str, sources: Sequence[Source], *, readers: Sequence[str] | None = None
    ) -> tuple[Section | None, ...]:
        return await self._asked(domain, lambda index: _sections_at(index, sources, readers))

    async def hashes(self, domain: str) -> dict[bytes, int]:
        """Return the content hashes of all sections of the domain, each with a section that has it."""
        return await self._asked(domain, lambda index: index.hashes())

    async def skipped(self, domain: str) -> list[Skipped]:
        """Files of the domain that are not in its index, and why."""
        return await self._asked(domain, lambda index: index.skipped())

    async def check(self, domain: str) -> "SiteCheck":
        """Return how well the domain's site was read."""
        return await self._asked(domain, lambda index: index.check())

    async def restricted_pages(self, domain: str) -> int:
        """Return how many pages of the domain are for certain groups of readers alone."""
        return await self._asked(domain, lambda index: index.restricted_pages())

    async def meanings(self, domain: str, sections: Sequence[int]) -> dict[bytes, str]:
        """Return the texts to embed for these sections, by the hash of their content: others, and fewer, when another
        index has taken over meanwhile.
        """
        return await self._asked(domain, lambda index: index.meanings(sections))

    async def links(self, domain: str) -> SiteLinks:
        with self._lock:
            served = self._served.get(domain)
        if served is not None and served.links is not None:
            return served.links
        links = await self._asked(domain, lambda index: index.links())
        with self._lock:
            if served is not None and served is self._served.get(domain):  # the same before and after: they are its own
                served.links = links
        return links

    async def pages_besides(self, domain: str, paths: Sequence[str], *, limit: int) -> OtherPages:
        return await self._asked(domain, lambda index: index.pages_besides(paths, limit=limit))

    async def read_page(self, domain: str, path: str, *, readers: Sequence[str] | None = None) -> Page | None:
        return await self._asked(domain, lambda index: index.read_page(path, readers))

    async def reader_groups(self, domain: str) -> Sequence[str]:
        return await self._asked(domain, lambda index: index.reader_groups())

    async def list_pages(self, domain: str, *, readers: Sequence[str] | None = None) -> PageList:
        if readers is None or readers:
            return await self._asked(domain, lambda index: index.list_pages(readers))
        with self._lock:
            served = self._served.get(domain)
        if served is not None and served.pages is not None:
            return served.pages
        pages = await self._asked(domain, lambda index: index.list_pages(()))
        with self._lock:
            if served is not None and served is self._served.get(domain):
                self._keep(served, pages)
                return served.pages or pages
        return pages

    def _keep(self, served: _Served, pages: PageList) -> None:
        """Keep a list with its index, and drop those of the domains that were asked longest ago."""
        if served.pages is not None or len(pages.pages) > MAX_KEPT_PAGES:
            return
        kept = [one for one in self._served.values() if one.pages is not None]
        count = sum(len(one.pages.pages) for one in kept if one.pages is not None) + len(pages.pages)
        for one in kept:
            if count > MAX_KEPT_PAGES and one.pages is not None:
                count -= len(one.pages.pages)
                one.pages = None
        served.pages = pages

    async def read_pages(
        self, domain: str, paths: Sequence[str], *, readers: Sequence[str] | None = None
    ) -> tuple[Page | None, ...]:
        return await self._asked(domain, lambda index: tuple(index.read_page(path, readers) for path in paths))

    async def _until_open(self, domain: str) -> None:
        if (opening := self._opening.get(domain)) is not None:
            await asyncio.shield(opening)

    async def _asked(self, domain: str, ask: "Callable[[SiteIndex], _T]") -> _T:
        await self._until_open(domain)
        try:
            return await self._run(self._ask, domain, ask)
        except IndexBroken:
            if self.on_broken is not None:
                self.on_broken(domain)
            raise

    async def close(self) -> None:
        """Wait for the queries under way, then close every file."""
        for task in self._opening.values():
            task.cancel()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        if self._meaning is not None:
            self._meaning.close()
        with self._lock:
            closing = [index for served in self._served.values() for index in self._retire(served)]
            self._served.clear()
        for index in closing:
            index.close()

    async def _run(self, call: Callable[..., _T], *arguments: object) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    # On the threads

    def _use(self, domain: str, folder: Path) -> None:
        with self._lock:
            now = self._served.get(domain)
            if now is not None and now.folder == folder:
                return
        sections = self._section_cache().of_index()
        try:
            first = _opened(folder, sections, check=True)
        except Invalid as error:
            sections.close()
            if now is None:
                with self._lock:
                    self._broken[domain] = str(error)
            raise
        served = _Served(folder, sections)
        served.idle.append(first)
        with self._lock:
            before = self._served.pop(domain, None)
            self._served[domain] = served
            self._broken.pop(domain, None)
            closing = [*(self._retire(before) if before is not None else ()), *self._surplus()]
        for index in closing:
            index.close()
        _remove_older(folder)

    def _section_cache(self) -> "SectionCache":
        from service.retrieval.index.section_cache import SectionCache

        with self._lock:
            self._sections = self._sections or SectionCache()
            return self._sections

    def _ask(self, domain: str, ask: "Callable[[SiteIndex], _T]") -> _T:
        while True:
            with self._lock:
                served = self._served.pop(domain, None)
                if served is None:
                    if domain in self._broken:
                        raise IndexBroken(_BROKEN)
                    raise NotFound("This site has not been indexed yet.", code="not_indexed")
                self._served[domain] = served
            try:
                with self._borrowed(served) as index:
                    return ask(index)
            except BaseException as error:
                if not isinstance(error, (NotFound, Invalid, *_UNREADABLE)) and type(error).__name__ != _PANIC:
                    raise
                if served.retired:
                    continue  # it was removed before we had it open: there is a newer one
                if is_whole(served.folder):
                    raise
            with self._lock:
                closing = self._retire(served)
                if self._served.get(domain) is served:
                    del self._served[domain]
                    self._broken[domain] = _BROKEN
            for each in closing:
                each.close()

    @contextmanager
    def _borrowed(self, served: _Served) -> "Iterator[SiteIndex]":
        with self._lock:
            index = served.idle.pop() if served.idle else None
            served.busy += 1
        try:
            if index is None:
                index = _opened(served.folder, served.sections, check=False)
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

    def _surplus(self) -> "list[SiteIndex]":
        """Idle connections over the limit, of the domains that were asked longest ago."""
        over = sum(len(served.idle) for served in self._served.values()) - self._max_open
        closing: list[SiteIndex] = []
        for served in self._served.values():
            while over > len(closing) and served.idle:
                closing.append(served.idle.pop())
        return closing

    def _retire(self, served: _Served) -> "list[SiteIndex]":
        served.retired = True
        served.sections.close()
        closing, served.idle = served.idle, []
        return closing


def _gathered(index: "SiteIndex", request: MaterialRequest, asked: "Sequence[Asked]") -> Material:
    from service.retrieval.material.gathering import gather

    return gather(index, request, asked)


def _sections_at(
    index: "SiteIndex", sources: Sequence[Source], readers: Sequence[str] | None
) -> tuple[Section | None, ...]:
    from service.retrieval.material.gathering import sections_at

    return sections_at(index, sources, readers)


_BROKEN = "This site's index is damaged; it is being rebuilt."


def _opened(folder: Path, sections: "IndexSections", *, check: bool) -> "SiteIndex":
    from service.retrieval.index.site_index import SiteIndex

    if not folder.is_dir():
        raise NotFound("This site has not been indexed yet.", code="not_indexed")
    if check and not is_whole(folder):
        raise Invalid(f"The index {folder.name} is damaged, or is not an index.", code="index_broken")
    try:
        return SiteIndex(folder, sections)
    except _UNREADABLE as error:
        raise Invalid(f"{folder.name} is not an index: {error}") from error


def _remove_older(folder: Path) -> None:
    """Remove other indexes of the domain that are not newer: one that has just been built waits for its turn. A reader
    of a removed one keeps its files until it closes them.
    """
    written = folder.stat().st_mtime_ns
    for other in folder.parent.iterdir():
        try:
            if other == folder or other.name.startswith(".") or other.stat().st_mtime_ns > written:
                continue
            if other.is_dir():
                hidden = other.with_name(f".{other.name}.removed")  # out of sight at once, or not at all
                other.rename(hidden)
                shutil.rmtree(hidden, ignore_errors=True)
            elif other.suffix == ".db":  # of a format before this one
                other.unlink()
        except FileNotFoundError:
            continue  # another process was faster
