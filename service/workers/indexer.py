"""Keeps each site's search index at the commit of its repository: fetch, renew or build in a child process, switch.

Renewing takes the index of an earlier commit and reads what changed since; when that cannot be done, or too much has
changed, all of the commit is exported and read.
"""

import asyncio
import secrets
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import structlog

from eventstore import EventStore, Metadata, StoreUnavailable, Views, execute
from service.domain.errors import NO_ROOM, DiskFull, Invalid, NotFound, ServiceError, Unavailable
from service.domain.sites import IndexRequested, KeepIndex, RecordIndex, RecordIndexFailure, SiteIndexed, SiteRegistered
from service.operations import source_of
from service.ports.docs_source import Changes, DocsSource
from service.processes import TIMED_OUT, run_in_child
from service.projections.projects import ProjectRow, project_of_domain
from service.projections.sites import SiteRow, get_site, list_sites
from service.retrieval.query import SiteIndexes
from service.retrieval.report import IndexReport
from service.streams import SITES, decoded
from service.system import now
from service.workers.patience import patiently

log = structlog.get_logger()

BUILD_SECONDS = 1800.0
BUILD_MEMORY_BYTES = 4 * 1024**3
"""The builder reads what strangers wrote."""

FIRST_WAIT_SECONDS = 15.0
"""Before what failed, and may pass, is tried again; twice as long before each further try."""
LONGEST_WAIT_SECONDS = 3600.0

Progress = Callable[[int, int], None]
"""Called with the number of files done and of all."""


class Indexer:
    """Follows the store: indexes what is asked for, and serves what others (the command line) have indexed."""

    def __init__(
        self,
        store: EventStore,
        views: Views,
        docs: DocsSource,
        index: SiteIndexes,
        data: Path,
        *,
        retry_seconds: float = FIRST_WAIT_SECONDS,
    ) -> None:
        self._store, self._views, self._docs, self._index, self._data = store, views, docs, index, data
        self._retry_seconds = retry_seconds
        self._newest: dict[str, object] = {}
        """By domain, for whoever wanted its index last: nobody else tries again."""
        self._slot = asyncio.Semaphore(1)  # parsing takes a whole core

    async def load(self) -> None:
        """Serve every index that is there."""
        for site in await list_sites(self._views):
            if site.file is not None:
                await self._serve(site.domain, site.file)

    async def _serve(self, domain: str, file: str) -> None:
        try:
            await self._index.use(domain, file)
        except ServiceError as error:  # removed: a newer one follows, or it is built again
            log.info("index not served", domain=domain, code=error.code)

    async def run(self) -> None:
        """Until cancelled: index what wants it now, then whatever is asked for."""
        after = await self._store.head()
        await self._views.wait_for(after, timeout_seconds=3600)  # views may be rebuilt at this very start
        async with asyncio.TaskGroup() as group:
            pending: set[str] = set()

            def want(domain: str) -> None:
                if domain not in pending:  # one that waits for its turn will see the newest commit anyway
                    pending.add(domain)
                    group.create_task(self._index_wanted(domain, pending), name=f"index {domain}")

            self._index.on_broken = want
            for site in await list_sites(self._views):
                is_lost = site.file is not None and self._index.served(site.domain) is None
                if site.index_wanted or site.failure_code is not None or is_lost:
                    want(site.domain)
            async for recorded in self._store.subscribe(after=after, category=SITES.category):
                for domain, event in decoded(SITES, [recorded]):
                    if isinstance(event, SiteRegistered | IndexRequested):
                        want(domain)
                    elif isinstance(event, SiteIndexed):
                        await self._serve(domain, event.file)

    async def _index_wanted(self, domain: str, pending: set[str]) -> None:
        me = self._newest[domain] = object()
        seconds = self._retry_seconds
        while True:
            async with self._slot:
                pending.discard(domain)
                if await patiently(lambda: self._index_if_due(domain)):
                    return
            log.info("indexing is tried again", domain=domain, seconds=seconds)
            await asyncio.sleep(seconds)
            if self._newest[domain] is not me:
                return
            seconds = min(seconds * 2, LONGEST_WAIT_SECONDS)

    def _is_due(self, site: SiteRow) -> bool:
        return site.index_wanted or site.failure_code is not None or self._index.served(site.domain) is None

    async def _index_if_due(self, domain: str) -> bool:
        """False: it failed in a way that may pass."""
        await self._views.wait_for(await self._store.head(), timeout_seconds=3600)
        site = await get_site(self._views, domain)
        if site is None or not self._is_due(site):
            return True  # somebody else has done it
        is_served = self._index.served(domain) is not None
        try:
            await self.index(domain, Metadata(), unless=site.commit if is_served else None)
        except ServiceError as error:
            log.warning("indexing failed", domain=domain, code=error.code)
            return not isinstance(error, Unavailable) or error.code == TIMED_OUT
        except StoreUnavailable:
            raise
        except Exception:  # a site's edge: the other sites go on
            log.exception("indexing crashed", domain=domain)
            failure = RecordIndexFailure("internal", "Indexing failed; the log has the details.", now())
            await execute(self._store, SITES, domain, failure)
        return True

    async def index(
        self,
        domain: str,
        metadata: Metadata,
        *,
        on_progress: Progress | None = None,
        unless: str | None = None,
        whole: bool = False,
    ) -> IndexReport | None:
        """Index the newest commit of a site, record it, and serve it; None when that commit is ``unless``. ``whole``:
        read everything, also what has not changed since the last time.

        Raises NotFound (``domain_not_found``), and what fetching raises; that is recorded, too.
        """
        project = await project_of_domain(self._views, domain)
        if project is None:
            raise NotFound("There is no such site.", code="domain_not_found")
        try:
            return await self._build(project, metadata, on_progress, unless, whole=whole)
        except ServiceError as error:
            failure = error
        except (OSError, sqlite3.Error) as error:
            if not _says_no_room(error):
                raise
            failure = DiskFull()
        record = RecordIndexFailure(failure.code, str(failure), now())
        await execute(self._store, SITES, domain, record, metadata=metadata)
        raise failure

    async def _build(
        self,
        project: ProjectRow,
        metadata: Metadata,
        on_progress: Progress | None,
        unless: str | None,
        *,
        whole: bool,
    ) -> IndexReport | None:
        source = source_of(project)
        fetched = await self._docs.fetch(source)
        if fetched.base_commit == unless:
            await execute(self._store, SITES, project.domain, KeepIndex(unless, now()), metadata=metadata)
            return None
        folder = self._data / "index" / project.domain
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = folder / f"{fetched.base_commit[:12]}-{secrets.token_hex(4)}"
        archive = folder / f".{target.name}.tar"
        site = _Site(project.docs_folder, fetched.base_commit)
        tell = (lambda done: on_progress(*done)) if on_progress else _ignore
        before = None if whole else await self._before(project)
        report = None
        try:
            if before is not None:
                changes = await self._docs.changes(source, before.commit, fetched.base_commit)
                if changes is None:
                    await self._docs.export(source, fetched.base_commit, archive)
                report = await _renewed(tell, before.folder, target, changes or archive, site)
            is_renewed = report is not None
            if report is None:
                if not archive.exists():
                    await self._docs.export(source, fetched.base_commit, archive)
                report = await _in_child(tell, build, target, archive, site)
        finally:
            archive.unlink(missing_ok=True)
        record = RecordIndex(
            fetched.base_commit, target.name, report.pages, report.sections, report.skipped, report.seconds, now()
        )
        await execute(self._store, SITES, project.domain, record, metadata=metadata)
        try:
            await self._index.use(project.domain, target.name)
        except Invalid:
            if not is_renewed:
                raise
            return await self._build(project, metadata, on_progress, None, whole=True)  # it shares a damaged file
        return report

    async def _before(self, project: ProjectRow) -> "_Before | None":
        """The index that the site has, if any."""
        site = await get_site(self._views, project.domain)
        if site is None or site.file is None or site.commit is None:
            return None
        return _Before(site.commit, self._index.path_of(project.domain, site.file))


def _says_no_room(error: OSError | sqlite3.Error) -> bool:
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


class _Before(NamedTuple):
    commit: str
    folder: Path


class _Site(NamedTuple):
    docs_folder: str
    commit: str


Tell = Callable[[tuple[int, int]], None]
_T = TypeVar("_T")


async def _renewed(tell: Tell, before: Path, target: Path, changes: Changes | Path, site: _Site) -> IndexReport | None:
    """None when everything has to be read: whatever an index that cannot be read comes to in its reader, a whole one
    made anew is the cure.
    """
    try:
        return await _in_child(tell, renew, before, target, changes, site)
    except (ServiceError, RuntimeError, sqlite3.Error, ValueError, LookupError, OSError, zlib.error) as error:
        log.warning("index not renewed", index=before.name, error=f"{type(error).__name__}: {error}"[:500])
        return None


async def _in_child(tell: Tell, work: Callable[..., _T], *arguments: object) -> _T:
    return await run_in_child(
        work, *arguments, timeout_seconds=BUILD_SECONDS, memory_bytes=BUILD_MEMORY_BYTES, on_progress=tell
    )


def renew(before: Path, target: Path, changes: Changes | Path, site: _Site, report: Tell) -> IndexReport | None:
    """``renew_index`` as a child process runs it; ``changes`` may also be an archive of all files."""
    from service.retrieval.index import renew_from_archive, renew_index  # here alone: this process does without

    docs_folder, commit = site

    def progress(done: int, total: int) -> None:
        report((done, total))

    if isinstance(changes, Path):
        return renew_from_archive(before, changes, target, docs_folder=docs_folder, commit=commit, progress=progress)
    with changes.open() as read:
        return renew_index(
            before, target, read, changes.blobs, docs_folder=docs_folder, commit=commit, progress=progress
        )


def build(target: Path, archive: Path, site: _Site, report: Tell) -> IndexReport:
    """``build_index`` as a child process runs it."""
    from service.retrieval.index import build_index

    def progress(done: int, total: int) -> None:
        report((done, total))

    return build_index(archive, target, docs_folder=site.docs_folder, commit=site.commit, progress=progress)


def _ignore(_value: object) -> None:
    pass
