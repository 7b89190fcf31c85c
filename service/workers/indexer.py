"""Keeps each site's search index at the commit of its repository: fetch, export, build in a child process, switch."""

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

import structlog

from eventstore import EventStore, Metadata, StoreUnavailable, Views, execute
from service.domain.errors import NotFound, ServiceError
from service.domain.sites import IndexRequested, KeepIndex, RecordIndex, RecordIndexFailure, SiteIndexed, SiteRegistered
from service.operations import source_of
from service.ports.docs_source import DocsSource
from service.processes import run_in_child
from service.projections.projects import ProjectRow, project_of_domain
from service.projections.sites import get_site, list_sites
from service.retrieval.index import IndexReport, build_index
from service.retrieval.query import SiteIndexes
from service.streams import SITES, decoded
from service.system import now
from service.workers.patience import patiently

log = structlog.get_logger()

BUILD_SECONDS = 1800.0
BUILD_MEMORY_BYTES = 4 * 1024**3
"""The builder reads what strangers wrote."""

Progress = Callable[[int, int], None]
"""Called with the number of files done and of all."""


class Indexer:
    """Follows the store: indexes what is asked for, and serves what others (the command line) have indexed."""

    def __init__(self, store: EventStore, views: Views, docs: DocsSource, index: SiteIndexes, data: Path) -> None:
        self._store, self._views, self._docs, self._index, self._data = store, views, docs, index, data
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
                if site.index_wanted or (site.file is not None and self._index.served(site.domain) is None):
                    want(site.domain)
            async for recorded in self._store.subscribe(after=after, category=SITES.category):
                for domain, event in decoded(SITES, [recorded]):
                    if isinstance(event, SiteRegistered | IndexRequested):
                        want(domain)
                    elif isinstance(event, SiteIndexed):
                        await self._serve(domain, event.file)

    async def _index_wanted(self, domain: str, pending: set[str]) -> None:
        async with self._slot:
            pending.discard(domain)
            await patiently(lambda: self._index_unless_done(domain))

    async def _index_unless_done(self, domain: str) -> None:
        await self._views.wait_for(await self._store.head(), timeout_seconds=3600)
        site = await get_site(self._views, domain)
        if site is None:
            return
        is_served = self._index.served(domain) is not None
        if not site.index_wanted and is_served:
            return  # somebody else has done it
        try:
            await self.index(domain, Metadata(), unless=site.commit if is_served else None)
        except ServiceError as error:
            log.warning("indexing failed", domain=domain, code=error.code)
        except StoreUnavailable:
            raise
        except Exception:  # a site's edge: the other sites go on
            log.exception("indexing crashed", domain=domain)
            failure = RecordIndexFailure("internal", "Indexing failed; the log has the details.", now())
            await execute(self._store, SITES, domain, failure)

    async def index(
        self, domain: str, metadata: Metadata, *, on_progress: Progress | None = None, unless: str | None = None
    ) -> IndexReport | None:
        """Index the newest commit of a site, record it, and serve it; None when that commit is ``unless``.

        Raises NotFound (``domain_not_found``), and what fetching raises; that is recorded, too.
        """
        project = await project_of_domain(self._views, domain)
        if project is None:
            raise NotFound("There is no such site.", code="domain_not_found")
        try:
            return await self._build(project, metadata, on_progress, unless)
        except ServiceError as error:
            await execute(
                self._store, SITES, domain, RecordIndexFailure(error.code, str(error), now()), metadata=metadata
            )
            raise

    async def _build(
        self, project: ProjectRow, metadata: Metadata, on_progress: Progress | None, unless: str | None
    ) -> IndexReport | None:
        source = source_of(project)
        fetched = await self._docs.fetch(source)
        if fetched.base_commit == unless:
            await execute(self._store, SITES, project.domain, KeepIndex(unless, now()), metadata=metadata)
            return None
        folder = self._data / "index" / project.domain
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{fetched.base_commit[:12]}-{secrets.token_hex(4)}"
        archive, target = folder / f".{name}.tar", folder / name
        try:
            await self._docs.export(source, fetched.base_commit, archive)
            report = await run_in_child(
                build, archive, target, project.docs_folder, fetched.base_commit,
                timeout_seconds=BUILD_SECONDS,
                memory_bytes=BUILD_MEMORY_BYTES,
                on_progress=(lambda done: on_progress(*done)) if on_progress else _ignore,
            )  # fmt: skip
        finally:
            archive.unlink(missing_ok=True)
        record = RecordIndex(
            fetched.base_commit, target.name, report.pages, report.sections, report.skipped, report.seconds, now()
        )
        await execute(self._store, SITES, project.domain, record, metadata=metadata)
        await self._index.use(project.domain, target.name)
        return report


def build(
    archive: Path, target: Path, docs_folder: str, commit: str, report: Callable[[tuple[int, int]], None]
) -> IndexReport:
    """``build_index`` as a child process runs it."""
    return build_index(
        archive, target, docs_folder=docs_folder, commit=commit, progress=lambda done, all_: report((done, all_))
    )


def _ignore(_value: object) -> None:
    pass
