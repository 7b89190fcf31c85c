"""Keeps each site's search index at the commit of its repository: fetch, renew or build in a child process, switch.

Renewing takes the index of an earlier commit and reads what changed since; when that cannot be done, or too much has
changed, all of the commit is exported and read.

What one site takes must not delay the others:

- Fetching waits for machines elsewhere; it has slots of its own, and none for repositories that are kept here.
- Reading takes a core. Each organization has its share of the slots, and most of them are for quick work only. How long
  a site takes is known only afterwards: each begins as quick work, and begins again as long work if it was not.
- Where several instances share the log, one of them indexes a site, and the others fetch the index (``sharing``).
- A site has a time in proportion to its size. One that fails has growing pauses, also when it is asked for again and
  again. What stands still is named by ``behind``.
"""

import asyncio
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog
from msgspec import Struct

from eventstore import EventStore, Metadata, StoreUnavailable, Views, execute
from service.domain.errors import Conflict, DiskFull, Invalid, NotFound, ServiceError, Unavailable
from service.domain.sites import (
    IndexRequested,
    KeepIndex,
    RecordIndex,
    RecordIndexFailure,
    SiteCommand,
    SiteIndexed,
    SiteRegistered,
)
from service.domain.texts.times import timestamp_from
from service.ports.bounds import CountBound, ignore_bounds
from service.ports.docs_source import DocsSource, Fetched, Source
from service.queries.projects import project_of_domain, source_of
from service.queries.read_models import wait_for_rebuild
from service.queries.sites import Site, get_site, list_sites
from service.retrieval.index.atomic_folder import digest_of
from service.retrieval.index.report import IndexReport
from service.retrieval.index.stored import FORMAT
from service.retrieval.search.query import SiteIndexes
from service.runtime.processes import OUT_OF_MEMORY, TIMED_OUT
from service.runtime.scratch import scratch_folder
from service.runtime.system import now
from service.streams import SITES, decoded
from service.views.projects import ProjectView
from service.views.sites import IndexingView
from service.workers.fair_slots import FairSlots, build_slots, fetch_slots
from service.workers.indexing.missing import MissingIndexes
from service.workers.indexing.site_build import (
    MEMORY_BYTES,
    QUICK_MEMORY_BYTES,
    TIMES,
    BuildTimes,
    Limits,
    Report,
    SiteCommit,
    build_in_child,
    renew_in_child,
)
from service.workers.indexing.site_lock import site_lock
from service.workers.indexing.wanted import Failure, Wanted, at, first_of, reasons_behind, says_no_room
from service.workers.retry import retry_while_unavailable

if TYPE_CHECKING:
    from service.workers.indexing.sharing import SharedIndexing

log = structlog.get_logger()

FIRST_WAIT_SECONDS = 15.0
"""Before what failed, and may pass, is tried again; twice as long before each further try."""
LONGEST_WAIT_SECONDS = 3600.0
LET_OTHERS_SECONDS = 1.0
"""For the instance that has indexed a site before, to which only what changed is new, to go first."""

Progress = Callable[[int, int], None]
"""Called with the number of files done and of all."""


class IndexerContext(Struct, frozen=True):
    """The shares, the waits and the counters that sites are indexed with."""

    fetches: FairSlots | None = None
    count_bound: CountBound = ignore_bounds
    retry_seconds: float = FIRST_WAIT_SECONDS
    times: BuildTimes = TIMES
    shared: "SharedIndexing | None" = None
    """Where other instances share the log."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Indexer:
    """Follows the store: indexes what is asked for, and serves what others (the command line) have indexed."""

    def __init__(
        self,
        store: EventStore,
        views: Views,
        docs: DocsSource,
        index: SiteIndexes,
        data: Path,
        context: IndexerContext | None = None,
    ) -> None:
        self._store, self._views, self._docs, self._index, self._data = store, views, docs, index, data
        self._context = context or IndexerContext()
        self._fetches, self._slots = self._context.fetches or fetch_slots(), build_slots()
        self._sites: dict[str, Wanted] = {}
        """By domain, what is behind."""
        self._missing = MissingIndexes()

    async def load(self, announced: asyncio.Event) -> None:
        """Serve every index that is there, once the service has said that it listens."""
        for site in await list_sites(self._views):
            if site.file is not None:
                self._index.use_after(announced, site.view.domain, site.file)

    async def _serve(self, domain: str, file: str) -> None:
        try:
            await self._index.use(domain, file)
        except ServiceError as error:  # removed: a newer one follows, or it is built again
            log.info("index not served", domain=domain, code=error.code)

    def progress(self, domain: str) -> IndexingView | None:
        """Return how far the indexing of a site is; None while none is under way or waits here."""
        site = self._sites.get(domain)
        if site is None:
            return None
        return IndexingView(site.stage, timestamp_from(site.since.isoformat()), *site.done)

    def fetching(self) -> str | None:
        """Return why this instance should not be asked yet: its first indexes are on their way. None: it may be."""
        return self._missing.explain() if self._context.shared is not None else None

    def behind(self) -> Mapping[str, str]:
        """Return the sites whose index is older than it should be, and why; those that wait the longest."""
        return reasons_behind(self._sites)

    async def run(self) -> None:
        """Run until cancelled: index what wants it now, then whatever is asked for."""
        after = await self._store.head()
        await wait_for_rebuild(self._views, after)
        await asyncio.gather(*map(asyncio.shield, self._index.opening()))  # a stop ends no query that waits
        async with asyncio.TaskGroup() as group:

            def want(domain: str) -> None:
                site = self._sites.setdefault(domain, Wanted())
                site.wanted.set()
                if not site.has_task:
                    site.has_task = True
                    group.create_task(self._index_wanted(domain, site), name=f"index {domain}")

            self._index.on_broken = want
            sites = await list_sites(self._views)
            lost = {site.view.domain for site in sites if site.file and self._index.served(site.view.domain) is None}
            self._missing.find(lost)
            for site in sites:
                if site.is_behind or site.view.domain in lost:
                    want(site.view.domain)
            if self._context.shared is not None:
                group.create_task(self._watch_others(self._context.shared, want), name="watch other indexers")
                group.create_task(self._missing.await_no_more(self._context.sleep), name="await no more indexes")
            async for recorded in self._store.subscribe(after=after, category=SITES.category):
                for domain, event in decoded(SITES, [recorded]):
                    if isinstance(event, SiteRegistered | IndexRequested):
                        want(domain)
                    elif isinstance(event, SiteIndexed):
                        self._note_indexed(domain)
                        if self._context.shared is None:
                            await self._serve(domain, event.file)
                        else:
                            want(domain)  # which fetches it

    async def _watch_others(self, shared: "SharedIndexing", want: Callable[[str], None]) -> None:
        """Go on with what another instance left undone, or brings."""
        async for _ in shared.changes(self._context.sleep):
            for site in await retry_while_unavailable(partial(list_sites, self._views)):
                if site.is_behind or self._index.served(site.view.domain) != site.file:
                    want(site.view.domain)

    def _note_indexed(self, domain: str) -> None:
        """Another process may have done what failed here."""
        site = self._sites.get(domain)
        if site is not None and site.has_task:
            site.indexed.set()
        elif site is not None:
            del self._sites[domain]

    async def _index_wanted(self, domain: str, site: "Wanted") -> None:
        """Index a site until its index is the newest, or it has failed for good."""
        try:
            while site.wanted.is_set():
                site.wanted.clear()
                site.indexed.clear()
                site.done = (0, 0)
                began = asyncio.get_running_loop().time()
                failure = await retry_while_unavailable(lambda: self._index_if_due(domain))
                if failure is None:
                    site.failures = 0
                    continue
                site.failures, site.code = site.failures + 1, failure.code
                await self._pause(domain, site, failure, asyncio.get_running_loop().time() - began)
            if not site.failures:
                del self._sites[domain]
            else:
                site.stage = "it is tried again when it changes"
        finally:
            site.has_task = False

    async def _pause(self, domain: str, site: "Wanted", failure: "Failure", spent: float) -> None:
        """Wait before the next try, twice as long each time: no site spends more than half of its time on tries that
        fail. What costs little is tried at once when it is asked for again.
        """
        if not failure.may_pass and not failure.rests:
            return
        seconds = max(self._context.retry_seconds, spent) * 2 ** min(site.failures - 1, 16)
        seconds = max(min(seconds, LONGEST_WAIT_SECONDS), min(failure.after_seconds, LONGEST_WAIT_SECONDS))
        site.stage = f"it is tried again after {at(now() + timedelta(seconds=seconds))}"
        log.info("indexing pauses", domain=domain, code=failure.code, seconds=round(seconds, 1))
        await first_of(
            [self._context.sleep(seconds), site.indexed.wait(), *([] if failure.rests else [site.wanted.wait()])]
        )
        if failure.may_pass:
            site.wanted.set()

    async def _index_if_due(self, domain: str) -> "Failure | None":
        await wait_for_rebuild(self._views, await self._store.head())
        site = await get_site(self._views, domain)
        if site is None:
            return None
        try:
            if self._context.shared is not None:
                is_due = await self._is_ours(self._context.shared, site)
                has_it = self._index.served(domain) == site.file
            else:
                has_it = self._index.served(domain) is not None
                is_due = site.is_behind or not has_it  # else another process has done it
            if is_due:
                await self.index(domain, Metadata(), unless=site.view.commit if has_it else None)
        except _Claimed:
            log.info("another instance indexes the site", domain=domain)
        except ServiceError as error:
            log.warning("indexing failed", domain=domain, code=error.code)
            after = error.retry_after_seconds if isinstance(error, Unavailable) else None
            return Failure(error.code, isinstance(error, Unavailable), after or 0.0)
        except StoreUnavailable:
            raise
        except Exception:  # a site's edge: the other sites go on
            log.exception("indexing crashed", domain=domain)
            failure = RecordIndexFailure("internal", "Indexing failed; the log has the details.", now(), self._instance)
            with suppress(_Claimed):
                await self._record(domain, failure)
            return Failure("internal", may_pass=False)
        finally:
            shared = self._context.shared
            may_come = shared is not None and shared.others_start() and self._index.served(domain) is None
            self._missing.note_tried(domain, may_come=may_come)
        return None

    async def _is_ours(self, shared: "SharedIndexing", site: Site) -> bool:
        """Fetch the site's index where another instance has it; return whether to index the site here and now.

        Raises Unavailable, and DiskFull.
        """
        domain = site.view.domain
        self._sites[domain].seen = site.file
        project = await project_of_domain(self._views, domain)
        may_index = project is not None and shared.may_index(project.code_host)
        if site.file is not None and self._index.served(domain) != site.file:
            target, is_damaged = self._index.path_of(domain, site.file), domain in self._index.broken()
            may_build = site.is_behind or (is_damaged and may_index)
            with suppress(*(Unavailable,) if may_build else ()):  # then it is built from the repository
                if (target.is_dir() and not is_damaged) or await shared.fetch(domain, target):
                    await self._serve(domain, site.file)
        if not site.is_behind and (self._index.served(domain) == site.file or await shared.is_newer_format(domain)):
            return False
        if not may_index:
            return False
        if await shared.is_with_other(domain):
            await self._context.sleep(LET_OTHERS_SECONDS)
        return True

    @property
    def _instance(self) -> str:
        return self._context.shared.instance if self._context.shared is not None else ""

    async def _record(self, domain: str, command: SiteCommand, metadata: Metadata | None = None) -> None:
        """Record how an indexing went. Raises _Claimed."""
        try:
            await execute(self._store, SITES, domain, command, metadata=metadata or Metadata())
        except Conflict as error:
            if error.code != "claimed":
                raise
            raise _Claimed from None

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
        read everything, also what has not changed since the last time. Waits while another process indexes the site.

        Raises NotFound (``domain_not_found``), and what fetching raises; that is recorded, too.
        """
        project = await project_of_domain(self._views, domain)
        if project is None:
            raise NotFound(
                f"Site not found: {domain}. List the projects to see the names of their sites.", code="domain_not_found"
            )
        wanted = self._sites.get(domain, Wanted())

        def report_progress(done: tuple[int, int]) -> None:
            wanted.done = done
            if on_progress is not None:
                on_progress(*done)

        try:
            async with site_lock(self._data / "index", domain):
                return await self._build(project, metadata, report_progress, unless, whole=whole)
        except ServiceError as error:
            failure = error
        except (OSError, sqlite3.Error) as error:
            if not says_no_room(error):
                raise
            failure = DiskFull()
        if failure.code == TIMED_OUT:
            self._context.count_bound("indexing_time")
        elif failure.code == OUT_OF_MEMORY:
            self._context.count_bound("indexing_memory")
        record = RecordIndexFailure(failure.code, str(failure), now(), self._instance)
        await self._record(domain, record, metadata)
        raise failure

    async def _build(
        self, project: ProjectView, metadata: Metadata, report_progress: Report, unless: str | None, *, whole: bool
    ) -> IndexReport | None:
        source, stage = source_of(project), self._sites.get(project.domain, Wanted())
        fetched = await self._fetch(source, project, stage)
        if fetched.base_commit == unless:
            await self._record(project.domain, KeepIndex(unless, now(), self._instance), metadata)
            return None
        folder = self._data / "index" / project.domain
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        build = _Build(
            project,
            source,
            folder / f"{fetched.base_commit[:12]}-{secrets.token_hex(4)}",
            fetched.base_commit,
            report_progress,
        )
        before = None if whole else await self._before(project)
        report = await self._renewed(build, before, stage) if before is not None else None
        is_renewed = report is not None
        if report is None:
            report, is_renewed = await self._read(build, before, stage)
        self._count(report)
        record = RecordIndex(
            build.commit, build.target.name, report.pages, report.sections, report.skipped, report.seconds, now(),
            digest_of(build.target), int(FORMAT), self._instance,
        )  # fmt: skip
        await self._record(project.domain, record, metadata)
        try:
            await self._index.use(project.domain, build.target.name)
        except Invalid:
            if not is_renewed:
                raise
            stage.seen = build.target.name
            return await self._build(project, metadata, report_progress, None, whole=True)  # it shares a damaged file
        return report

    def _count(self, report: IndexReport) -> None:
        if report.late:
            self._context.count_bound("page_time", report.late)
        if report.left_out:
            self._context.count_bound("site_files", report.left_out)

    async def _fetch(self, source: Source, project: ProjectView, stage: "Wanted") -> Fetched:
        slot: AbstractAsyncContextManager[object] = nullcontext()
        if source.code_host != "local":
            stage.stage = "it waits to be fetched"
            slot = self._fetches.held(project.organization_id)
        async with slot:
            if self._context.shared is not None and not await self._context.shared.claim(project.domain, stage.seen):
                raise _Claimed
            stage.stage = "its newest commit is being fetched"
            return await self._docs.fetch(source)

    async def _renewed(self, build: "_Build", before: "_Before", stage: "Wanted") -> IndexReport | None:
        """Renew the index from what changed; return None when everything has to be read."""
        stage.stage = "it waits for its turn to be read"
        async with self._slots.held(build.project.organization_id):
            stage.stage = "what changed is being read"
            try:
                async with asyncio.timeout(self._context.times.quick):
                    changes = await self._docs.changes(build.source, before.commit, build.commit)
            except TimeoutError:
                changes = None
            if changes is None:
                return None
            limits = Limits(self._context.times.quick, QUICK_MEMORY_BYTES)
            return await renew_in_child(build.report_progress, before.folder, build.target, changes, build.site, limits)

    async def _read(self, build: "_Build", before: "_Before | None", stage: "Wanted") -> tuple[IndexReport, bool]:
        """Read the site from an archive of all its files, as quick work if it can be; and whether what did not change
        was taken from the index before.
        """
        domain = build.project.domain
        is_long = domain not in self._sites or stage.is_long  # a command shares its slots with no other work
        while True:
            stage.stage = "it waits for its turn to be read"
            async with self._slots.held(build.project.organization_id, is_long=is_long):
                stage.stage = "its pages are being read"
                try:
                    with scratch_folder(build.target.parent, ".files-") as work:
                        return await self._read_archive(build, before, work / "files.tar", is_long=is_long)
                except _TakesLong:
                    log.info("indexing takes long", domain=domain)
            is_long = stage.is_long = True

    async def _read_archive(
        self, build: "_Build", before: "_Before | None", archive: Path, *, is_long: bool
    ) -> tuple[IndexReport, bool]:
        """Raise _TakesLong for work that is not quick, unless long work is allowed."""
        times = self._context.times
        try:
            async with asyncio.timeout(None if is_long else times.quick):
                await self._docs.export(build.source, build.commit, archive)
                site = await self._with_outside(build)
            size = (await asyncio.to_thread(archive.stat)).st_size
            limits = Limits(times.for_site(size), MEMORY_BYTES)
            if not is_long:
                if size > times.quick_bytes:
                    raise _TakesLong
                limits = Limits(min(limits.seconds, times.quick), QUICK_MEMORY_BYTES)
            if before is not None:
                renewed = await renew_in_child(
                    build.report_progress, before.folder, build.target, archive, site, limits
                )
                if renewed is not None:
                    return renewed, True
            return await build_in_child(build.report_progress, build.target, archive, site, limits), False
        except TimeoutError:
            raise _TakesLong from None
        except ServiceError as error:
            if is_long or error.code not in (TIMED_OUT, OUT_OF_MEMORY):
                raise
            raise _TakesLong from None

    async def _with_outside(self, build: "_Build") -> SiteCommit:
        """Return the commit with a reader of the files that are not in its archive: no change is that of all files."""
        if not build.site.docs_folder:
            return build.site
        return build.site._replace(outside=await self._docs.changes(build.source, build.commit, build.commit))

    async def _before(self, project: ProjectView) -> "_Before | None":
        """The index that the site has, if any."""
        site = await get_site(self._views, project.domain)
        if site is None or site.file is None or site.view.commit is None:
            return None
        return _Before(site.view.commit, self._index.path_of(project.domain, site.file))


class _Claimed(Exception):
    """Another instance indexes the site, or has taken this indexing over."""


class _TakesLong(Exception):
    """A site is not read within the time, size and memory of quick work."""


class _Build(NamedTuple):
    project: ProjectView
    source: Source
    target: Path
    commit: str
    report_progress: Report

    @property
    def site(self) -> SiteCommit:
        return SiteCommit(self.project.docs_folder, self.commit)


class _Before(NamedTuple):
    commit: str
    folder: Path
