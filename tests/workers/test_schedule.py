"""Things done at their times: one after the other for an organization, and none in the way of others."""

import asyncio
from contextlib import asynccontextmanager

from service.workers.fair_slots import FairSlots
from service.workers.reviews.schedule import Schedule


class Acts:
    """What was done, and how long each takes until its next time; a name that is held does not end."""

    def __init__(self, **again):
        self.done, self.again = [], again
        self.held: dict[str, asyncio.Event] = {}
        self.changed = asyncio.Condition()

    async def act(self, key):
        async with self.changed:
            self.done.append(key)
            self.changed.notify_all()
        if key in self.held:
            await self.held[key].wait()
        return self.again.get(key)

    async def until(self, count):
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(lambda: len(self.done) >= count)


@asynccontextmanager
async def running(acts, *, slots=4):
    schedule = Schedule(acts.act, FairSlots(slots, share=2))
    task = asyncio.create_task(schedule.run())
    yield schedule
    task.cancel()
    await asyncio.wait([task])


async def test_each_thing_is_done_again_as_it_says():
    acts = Acts(a=0.0)
    async with running(acts) as schedule:
        schedule.add("a", "o")
        schedule.add("b", "o")
        await acts.until(6)
    assert acts.done.count("b") == 1


async def test_stalled_organization_does_not_delay_others():
    acts = Acts()
    acts.held["stalled"] = asyncio.Event()
    async with running(acts) as schedule:
        schedule.add("stalled", "one")
        schedule.add("next", "one")
        schedule.add("other", "two")
        await acts.until(2)
        assert acts.done == ["stalled", "other"]
        acts.held["stalled"].set()
        await acts.until(3)
    assert acts.done == ["stalled", "other", "next"]


async def test_what_is_added_meanwhile_is_done_afterwards():
    acts = Acts()
    acts.held["a"] = asyncio.Event()
    async with running(acts) as schedule:
        schedule.add("a", "o")
        await acts.until(1)
        schedule.add("a", "o")
        acts.held["a"].set()
        await acts.until(2)
    assert acts.done == ["a", "a"]


async def test_sooner_time_wins():
    acts = Acts()
    async with running(acts) as schedule:
        schedule.add("a", "o", seconds=3600)
        schedule.add("a", "o")
        schedule.add("b", "o", seconds=3600)
        await acts.until(1)
    assert acts.done == ["a"]
