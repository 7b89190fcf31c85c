"""How the instances that share a log share the work of indexing: each index is built by one, and fetched by the others.

The builder claims the indexing by an event, so that the log refuses what a second one records, and another takes over
once the builder has ended. Repositories that are kept here are read where they are. A live website is visited by the
leader alone: it knows which of the pages it has already.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from urllib.parse import quote

import structlog

from eventstore import EventStore, execute, load
from service.domain.errors import Conflict, ServiceError, Unavailable, needs_room
from service.domain.projects.settings import CodeHostKind
from service.domain.sites import Site, StartIndexing
from service.ports.shared.instances import RENEW_SECONDS, Instances, Peer
from service.ports.shared.internal_http import InstanceUnreachable, InternalHttp, InternalRequest, ask_instance
from service.retrieval.index.atomic_folder import building
from service.retrieval.index.stored import FORMAT
from service.retrieval.index.transfer import BadArchive, Unpacking
from service.runtime.hosted_place import HostedPlace
from service.runtime.system import now
from service.streams import SITES
from service.views.sites import IndexingView

log = structlog.get_logger()

FETCH_SECONDS = 1_800.0
"""Limit for an archive to arrive."""
INDEX_PATH = "/internal/indexes/{domain}/{name}"
PROGRESS_PATH = "/internal/indexing/{domain}"
PROGRESS_SECONDS = 1.0
"""For another instance to say how far it is; pages are shown without it then."""
MAX_PROGRESS_BYTES = 4_096


class SharedIndexing:
    """Decides for one instance which sites it indexes, and fetches the indexes that others built."""

    def __init__(self, store: EventStore, instances: Instances, http: InternalHttp, place: HostedPlace) -> None:
        self._store, self._instances, self._http, self._place = store, instances, http, place

    @property
    def instance(self) -> str:
        return self._instances.name

    def may_index(self, code_host: CodeHostKind) -> bool:
        """Return whether this instance may index the sites of that code host."""
        if code_host == "local":
            return self._place.is_here
        return code_host != "website" or self._instances.leads()

    async def changes(self, sleep: Callable[[float], Awaitable[None]]) -> AsyncIterator[None]:
        """Yield once, and again when instances come or go, or when this one begins or ceases to lead."""
        before: tuple[frozenset[tuple[str, str]], bool] | None = None
        while True:
            await sleep(RENEW_SECONDS)
            if (others := self._others()) != before:
                before = others
                yield

    def _others(self) -> tuple[frozenset[tuple[str, str]], bool]:
        """An instance has no address before it serves."""
        return frozenset((peer.name, peer.url) for peer in self._instances.others()), self._instances.leads()

    def others_start(self) -> bool:
        """Return whether others are alive that serve nothing yet: instances that start, or commands."""
        return any(not peer.url for peer in self._instances.others())

    async def state(self, domain: str) -> Site | None:
        found = (await load(self._store, SITES, domain, may_be_old=True)).state
        return found if isinstance(found, Site) else None

    async def is_with_other(self, domain: str) -> bool:
        """Return whether another instance that is alive has indexed the site last, or is about to."""
        site = await self.state(domain)
        return site is not None and self._is_with_other(site)

    def _is_with_other(self, site: Site) -> bool:
        return site.indexer not in ("", self.instance) and self._instances.is_alive(site.indexer)

    async def claim(self, domain: str, seen: str | None) -> bool:
        """Claim the indexing; return False where another instance has it, or has replaced the index that was seen."""
        site = await self.state(domain)
        if site is None or (site.is_claimed and self._is_with_other(site)):
            return False
        command = StartIndexing(self.instance, site.indexer if site.is_claimed else "", seen, now())
        try:
            await execute(self._store, SITES, domain, command)
        except Conflict:
            return False
        return True

    async def progress(self, domain: str) -> IndexingView | None:
        """Return how far another instance is with the indexing of a site; None where it is with none, or not known.

        Raises StoreUnavailable.
        """
        site = await self.state(domain)
        peer = self._instances.find(site.indexer) if site is not None and self._is_with_other(site) else None
        if peer is None or not peer.url:
            return None
        asked = InternalRequest("GET", PROGRESS_PATH.format(domain=quote(domain, safe="")))
        try:
            found: IndexingView | None = await ask_instance(
                self._http, peer, asked, IndexingView | None, seconds=PROGRESS_SECONDS, most=MAX_PROGRESS_BYTES
            )
        except InstanceUnreachable as error:
            log.info("progress of an indexing not known", domain=domain, instance=peer.name, reason=str(error))
            return None
        return found

    async def fetch(self, domain: str, target: Path) -> bool:
        """Fetch the site's index into its folder, from the instance that built it or any other. Return False where none
        of them has it, or it is of a format that this version does not read.

        Raises Unavailable where an instance cannot be asked, or its answer is not the index in the log; DiskFull.
        """
        site = await self.state(domain)
        if site is None or site.file != target.name or site.format not in (0, int(FORMAT)):
            return False
        trouble: ServiceError | None = None
        for peer in self._holders(site):
            try:
                if await self._fetch_from(peer, domain, target, site.digest):
                    log.info("index fetched", domain=domain, instance=peer.name)
                    return True
            except Unavailable as error:
                log.warning("index not fetched", domain=domain, instance=peer.name, reason=str(error))
                trouble = error
        if trouble is not None:
            raise trouble
        return False

    async def is_newer_format(self, domain: str) -> bool:
        """Return whether the site's index was made by a newer version than this one, which serves what it has."""
        site = await self.state(domain)
        return site is not None and site.format > int(FORMAT)

    def _holders(self, site: Site) -> Sequence[Peer]:
        """Return the other instances, the builder first. A command serves nothing."""
        return sorted(
            (peer for peer in self._instances.others() if peer.url), key=lambda peer: peer.name != site.indexer
        )

    async def _fetch_from(self, peer: Peer, domain: str, target: Path, digest: str) -> bool:
        path = INDEX_PATH.format(domain=quote(domain, safe=""), name=quote(target.name, safe=""))
        try:
            async with asyncio.timeout(FETCH_SECONDS), self._http.send(peer, InternalRequest("GET", path)) as answer:
                if answer.status == 404:
                    return False
                if answer.status != 200:
                    raise Unavailable(f"The instance {peer.name} answered with status {answer.status}.")
                with needs_room(), building(target) as folder, Unpacking(folder, digest) as unpacking:
                    async for part in answer.parts():
                        await asyncio.to_thread(unpacking.feed, part)
                    await asyncio.to_thread(unpacking.finish)
        except BadArchive as error:
            raise Unavailable(
                f"The index of {domain} that {peer.name} sent is not the one in the log: {error}."
            ) from None
        except TimeoutError:
            raise Unavailable(f"The instance {peer.name} took too long to send the index of {domain}.") from None
        return True
