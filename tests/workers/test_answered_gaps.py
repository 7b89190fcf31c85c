"""Gaps are looked at once a site's new index can be searched, however late that is."""

import asyncio

import pytest

from eventstore import execute
from service.domain.sites import RecordIndex, RegisterSite
from service.runtime.system import now
from service.streams import SITES
from service.workers.answered_gaps import MAX_LOOKS, OPEN_TRIES, AnsweredGaps
from tests.fakes.model import FakeModel
from tests.fakes.search_index import FakeSearchIndex


@pytest.fixture
async def index(store, followed):
    await execute(store, SITES, "kite", RegisterSite("p", "o", now()))
    await execute(store, SITES, "kite", RecordIndex("c1", "f1", 1, 1, (), 0.1, now()))
    index = LateIndex()
    index.put("kite", {"a.md": "# A\n\nText.\n"}, commit="c0")
    gaps = AnsweredGaps(store, followed, index, lambda: FakeModel([]), pause_seconds=0, open_seconds=0)
    running = asyncio.create_task(gaps.run())
    yield index
    running.cancel()
    await asyncio.wait([running])


class LateIndex(FakeSearchIndex):
    def __init__(self):
        super().__init__()
        self.searched = asyncio.Condition()

    async def search(self, *args, **more):
        found = await super().search(*args, **more)
        async with self.searched:
            self.searched.notify_all()
        return found

    async def until(self, queries):
        async with asyncio.timeout(60), self.searched:
            await self.searched.wait_for(lambda: len(self.queries) >= queries)


async def test_an_index_that_opens_late_is_looked_at_again(index):
    await index.until(3 * OPEN_TRIES)


async def test_an_index_that_never_opens_is_given_up(index):
    await index.until(MAX_LOOKS * OPEN_TRIES)
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert len(index.queries) == MAX_LOOKS * OPEN_TRIES
