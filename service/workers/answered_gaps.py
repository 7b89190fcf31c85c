"""Finds out which gaps a site's pages close: their questions are asked again each time that the site is indexed.

The builtin model judges, which costs nothing. Of a reply that another model has written it is believed only where it
cites a passage that the reply did not have: else it would overrule a stricter judge on the same pages.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress

import structlog
from msgspec import Struct

from eventstore import EventStore, StoreUnavailable, Views, load
from service.assistant.judging import cited_in_answer
from service.commands.gaps import record_answered
from service.domain.errors import ServiceError
from service.domain.threads.threads import Thread
from service.ports.model import Model
from service.ports.search_index import SearchIndex
from service.queries.read_models import wait_for_head, wait_for_rebuild
from service.queries.readers.gaps import AskedAgain, Gap, GapQuery, GapReader, asked_again
from service.queries.readers.questions import Period
from service.queries.sites import get_site, list_sites
from service.streams import SITES, THREADS
from service.views.sites import SiteView
from service.workers.reply_question import question_of

log = structlog.get_logger()

MAX_GAPS, MAX_WORDINGS = 30, 10
"""Gaps of a site, and wordings of each, that are asked again after an indexing: those that most readers met."""
PAUSE_SECONDS = 30.0
"""From one look at a site to the next, however often it is indexed."""
OPEN_TRIES, OPEN_SECONDS = 20, 0.5
"""An index that was recorded just now is searched a moment later."""
MAX_LOOKS = 10
"""Looks at an index that cannot be searched yet, or whose questions cannot be read, one after each pause."""


class _Seen(Struct):
    """The index of a site at the last look, and the questions that were asked again of it."""

    commit: str
    questions: set[str]


class AnsweredGaps:
    def __init__(
        self,
        store: EventStore,
        views: Views,
        index: SearchIndex,
        builtin: Callable[[], Model],
        *,
        pause_seconds: float = PAUSE_SECONDS,
        open_seconds: float = OPEN_SECONDS,
    ) -> None:
        self._store, self._views, self._index, self._builtin = store, views, index, builtin
        self._reader = GapReader(store, views)
        self._pause_seconds, self._open_seconds = pause_seconds, open_seconds
        self._due: dict[str, None] = {}
        """Domains, in their order."""
        self._woken = asyncio.Event()
        self._seen: dict[str, _Seen] = {}
        self._looks: dict[str, int] = {}
        """By domain: the looks in a row that failed."""

    async def run(self) -> None:
        """Run until cancelled: all sites once, then each that is indexed."""
        after = await self._store.head()
        await wait_for_rebuild(self._views, after)
        self._wake(*[site.view.domain for site in await list_sites(self._views) if site.view.commit is not None])
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(after), name="answered gaps: sites")
            while True:
                await self._woken.wait()
                self._woken.clear()
                while self._due:
                    domain = next(iter(self._due))
                    del self._due[domain]
                    looks = 0 if await self._look(domain) else self._looks.get(domain, 0) + 1
                    self._looks[domain] = looks
                await asyncio.sleep(self._pause_seconds)
                self._wake(*[domain for domain, looks in self._looks.items() if 0 < looks < MAX_LOOKS])

    def _wake(self, *domains: str) -> None:
        self._due.update(dict.fromkeys(domains))
        if self._due:
            self._woken.set()

    async def _listen(self, after: int) -> None:
        async with aclosing(self._store.follow(after=after, category=SITES.category)) as batches:
            async for batch in batches:
                indexed = [SITES.entity_id(one.stream) for one in batch if one.type == "site-indexed"]
                for domain in indexed:
                    self._looks.pop(domain, None)
                self._wake(*indexed)

    async def _look(self, domain: str) -> bool:
        """Ask the questions of a site's gaps again, and record those that are answered. False: it could not be done."""
        try:
            await wait_for_head(self._store, self._views)
            site = await get_site(self._views, domain)
            if site is None or site.view.commit is None:
                return True
            if not await self._is_open(site.view):
                return False
            seen = self._seen.get(domain)
            if seen is None or seen.commit != site.view.commit:
                seen = self._seen[domain] = _Seen(site.view.commit, set())
            query = GapQuery(site.view.organization_id, Period(), site.view.project_id)
            for gap in await self._reader.largest(query, limit=MAX_GAPS):
                await self._ask_again(gap, site.view, seen)
        except (ServiceError, StoreUnavailable, TimeoutError) as error:
            log.info("gaps not looked at", domain=domain, error=type(error).__name__)
            return False
        return True

    async def _is_open(self, site: SiteView) -> bool:
        """Return whether searches are in the index that was recorded last; wait for it for a moment."""
        for _ in range(OPEN_TRIES):
            with suppress(ServiceError):
                if (await self._index.search(site.domain, "gap", limit=1)).commit == site.commit:
                    return True
            await asyncio.sleep(self._open_seconds)
        return False

    async def _ask_again(self, gap: Gap, site: SiteView, seen: _Seen) -> None:
        answered, looked_at = [], []
        for asked in await asked_again(self._views, gap.questions[:MAX_WORDINGS]):
            if asked.id not in seen.questions:
                if await self._is_answered(asked):
                    answered.append(asked.id)
                looked_at.append(asked.id)
        if answered:
            log.info("gap answered", domain=site.domain, gap_id=gap.view.id, questions=len(answered))
            await record_answered(self._store, site.organization_id, gap, tuple(answered), seen.commit)
        seen.questions.update(looked_at)

    async def _is_answered(self, asked: AskedAgain) -> bool:
        thread = (await load(self._store, THREADS, asked.thread_id)).state
        if not isinstance(thread, Thread) or thread.index_of(asked.reply_id) is None:
            return False
        question = question_of(thread, asked.reply_id)
        cited = await cited_in_answer(question, index=self._index, model=self._builtin())
        if cited is None:
            return False
        return asked.by_builtin or any((one.path, one.start_line, one.end_line) not in asked.passages for one in cited)
