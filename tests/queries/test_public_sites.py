"""The public sites in memory, while their rows are behind."""

import asyncio

import pytest

from eventstore import SQLiteEventStore, Views, execute
from service.domain.sites import ChangeSiteAccess, RegisterSite
from service.projections import all_projections
from service.queries.sites import PublicSites
from service.runtime.system import now
from service.streams import SITES


class Late:
    """Views whose rows are waited for in time only after some tries."""

    def __init__(self, views, tries):
        self._views, self.tries = views, tries

    def __getattr__(self, name):
        return getattr(self._views, name)

    async def wait_for(self, position):
        if self.tries:
            self.tries -= 1
            raise TimeoutError
        await self._views.wait_for(position, 60)


@pytest.fixture
async def store(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        yield store


async def test_site_that_was_opened_is_found_though_its_row_came_late(tmp_path, store):
    async with await Views.open(tmp_path / "views.db", store, all_projections()) as views:
        following = asyncio.create_task(views.run())
        public = PublicSites(store, Late(views, 1))
        await execute(store, SITES, "guide", RegisterSite("p1", "acme", now()))
        await views.wait_for(await store.head(), 60)
        await public.load()
        running = asyncio.create_task(public.run())
        await execute(store, SITES, "guide", ChangeSiteAccess(now(), public=True))
        async with asyncio.timeout(60):
            while public.find("guide") is None:  # noqa: ASYNC110  (nothing tells when it is read)
                await asyncio.sleep(0.01)
        await execute(store, SITES, "guide", ChangeSiteAccess(now(), public=False))
        async with asyncio.timeout(60):
            while public.find("guide") is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert not running.done()
        for task in (running, following):
            task.cancel()
        await asyncio.wait([running, following])
