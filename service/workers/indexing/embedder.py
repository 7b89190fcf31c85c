"""Gives each section of each site its vector, in the background, where an embedding model is set.

What is done is kept by the content's hash: a restart goes on where it was, a new index needs only what changed, and
search uses what there is. Where several instances share the log, their leader alone asks the model, and the others
fetch what it has made.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from eventstore import EventStore, Views
from service.domain.errors import NotFound, ServiceError, Unavailable
from service.domain.sites import SiteIndexed
from service.ports.embeddings import TextRefused
from service.queries.sites import list_sites
from service.retrieval.search.meaning import Meaning
from service.retrieval.search.query import SiteIndexes
from service.streams import SITES, decoded

if TYPE_CHECKING:
    from service.workers.indexing.vector_sharing import SharedVectors

log = structlog.get_logger()

BATCH = 32
BATCH_SECONDS = 60.0
PAUSES_SECONDS = (1.0, 5.0, 30.0, 120.0, 600.0)
"""After failures in a row; the last one again and again."""
MAX_REFUSED = 20
"""Texts of a site that the model may refuse while it takes others; beyond it, the fault is not the texts'."""
MAX_ROUNDS = 4
"""Times that a site is embedded from its start or its end in a row. One does, and one more where the model turns out to
be another one under its name; a model whose answers change their length all the time is not asked forever.
"""


MAX_WAITS = 200
"""Times in a row that the other instances have no vector that is missing here: the model may refuse its text."""


class _LeaderFirst(Exception):
    """Sections have no vector yet, and another instance makes them."""

    def __init__(self, shared: "SharedVectors", *, is_new: bool) -> None:
        """``is_new``: some more were fetched."""
        super().__init__()
        self.shared, self.is_new = shared, is_new


class Embedder:
    def __init__(
        self,
        store: EventStore,
        views: Views,
        index: SiteIndexes,
        meaning: Meaning,
        *,
        pauses_seconds: tuple[float, ...] = PAUSES_SECONDS,
        shared: "SharedVectors | None" = None,
    ) -> None:
        self._store, self._views, self._index, self._meaning = store, views, index, meaning
        self._pauses, self._shared = pauses_seconds, shared
        self._turn = asyncio.Lock()
        self._waiting: dict[str, asyncio.Task[None]] = {}
        """By domain, where several instances share the log."""

    async def run(self) -> None:
        """Run until cancelled: every site that has an index, then each that gets a new one."""
        await self._meaning.prepare()
        async with asyncio.TaskGroup() as running:
            running.create_task(self._follow_model())
            await self._follow_sites(running)

    async def _follow_sites(self, running: asyncio.TaskGroup) -> None:
        after = await self._store.head()
        for site in await list_sites(self._views):
            if site.file is not None and self._shared is not None:
                self._begin(self._shared, site.view.domain, site.file, running)
            elif site.file is not None:
                await self._embed(site.view.domain)
        async for recorded in self._store.subscribe(after=after, category=SITES.category):
            for domain, event in decoded(SITES, [recorded]):
                if isinstance(event, SiteIndexed) and self._shared is not None:
                    self._begin(self._shared, domain, event.file, running)
                elif isinstance(event, SiteIndexed):
                    await self._use_and_embed(domain, event.file)

    def _begin(self, shared: "SharedVectors", domain: str, file: str, running: asyncio.TaskGroup) -> None:
        """Embed an index once it is here, in the place of one before it."""
        if (before := self._waiting.pop(domain, None)) is not None:
            before.cancel()
        self._waiting[domain] = running.create_task(self._embed_once_served(shared, domain, file))

    async def _embed_once_served(self, shared: "SharedVectors", domain: str, file: str) -> None:
        while self._index.served(domain) != file:  # it is being fetched
            await shared.pause()
        await self._embed(domain)

    async def _follow_model(self) -> None:
        while True:
            await self._embed(await self._meaning.outdated.get(), again=True)

    async def _use_and_embed(self, domain: str, file: str) -> None:
        try:
            await self._index.use(domain, file)  # it may not have been taken up yet
        except ServiceError:
            return  # replaced already: its event follows
        await self._embed(domain)

    async def _embed(self, domain: str, *, again: bool = False) -> None:
        """Embed until every section of the domain's index has a vector, or the model refuses the rest. ``again``: begin
        with one that has a vector, since the model seems to be another one.
        """
        refused: set[bytes] = set()
        failures = rounds = waits = 0
        while rounds < MAX_ROUNDS:
            try:
                async with self._turn:
                    if again:
                        await self._embed_first(domain)
                        again = False
                    if not await self._embed_missing(domain, refused):
                        return
                failures, rounds = 0, rounds + 1
            except _LeaderFirst as wait:
                waits = 0 if wait.is_new else waits + 1
                if waits == MAX_WAITS:
                    return
                await wait.shared.pause()
            except NotFound:
                return  # not served (yet): its event follows
            except (Unavailable, sqlite3.Error, OSError) as error:  # the last two: of a full disk, or of descriptors
                pause = self._pauses[min(failures, len(self._pauses) - 1)]
                log.warning("embedding waits", domain=domain, reason=str(error), seconds=pause)
                asked = error.retry_after_seconds if isinstance(error, Unavailable) else None
                await asyncio.sleep(max(pause, asked or 0.0))
                failures += 1
            except ServiceError as error:
                log.warning("embedding stopped", domain=domain, reason=str(error))
                return
        log.warning("embedding stopped", domain=domain, reason="the model's answers do not last")

    async def _embed_first(self, domain: str) -> None:
        sections = list((await self._index.hashes(domain)).values())[:1]
        await self._embed_batch(domain, sections, set())

    async def _embed_missing(self, domain: str, refused: set[bytes]) -> bool:
        """Embed what has no vector; False when nothing is missing any more. ``refused``: content that has been asked
        for and has none; more may be added.
        """
        sections = await self._index.hashes(domain)
        vectors = await self._meaning.vectors(domain)
        missing = [key for key in await asyncio.to_thread(vectors.missing, list(sections)) if key not in refused]
        if missing and self._shared is not None:
            found = await self._shared.fetch(domain, self._meaning.model.name, missing)
            await asyncio.to_thread(vectors.add_stored, found)
            missing = [key for key in missing if key not in found]
            if missing and not self._shared.asks_model():
                raise _LeaderFirst(self._shared, is_new=bool(found))
        if not missing:
            await asyncio.to_thread(vectors.keep_only, list(sections))
            return False
        for at in range(0, len(missing), BATCH):
            await self._embed_batch(domain, [sections[key] for key in missing[at : at + BATCH]], refused)
        log.info("sections embedded", domain=domain, sections=len(missing), refused=len(refused))
        return True

    async def _embed_batch(self, domain: str, sections: Sequence[int], refused: set[bytes]) -> None:
        texts = await self._index.meanings(domain, sections)
        if not texts:
            return  # another index has taken over
        try:
            made = await self._meaning.model.embed(list(texts.values()), timeout_seconds=BATCH_SECONDS)
        except TextRefused as error:
            if len(refused) >= MAX_REFUSED:
                raise
            if len(sections) == 1:
                log.warning("section not embedded", domain=domain, section=sections[0], reason=str(error))
                refused |= texts.keys()
                return
            middle = len(sections) // 2
            for half in (sections[:middle], sections[middle:]):
                await self._embed_batch(domain, half, refused)
            return
        vectors = await self._meaning.vectors(domain)
        refused.update(await asyncio.to_thread(vectors.add, dict(zip(texts, made, strict=True))))
