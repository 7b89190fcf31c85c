"""Whose work comes next."""

import asyncio
from contextlib import AsyncExitStack

from service.workers.fair_slots import FairSlots, reply_slots


class Queue:
    """Work that is asked for, in the order in which it begins; each piece is under way until it is ended."""

    def __init__(self, slots: FairSlots) -> None:
        self.begun: list[str] = []
        self._slots, self._ends, self._tasks = slots, {}, {}

    async def ask(self, *names: str) -> None:
        """``a1``: the first work of owner a; ``A1``: long work of the same."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._work(name))
            await self._settle()

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
            await self._tasks[name]
            await self._settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])
        await self._settle()

    async def _work(self, name: str) -> None:
        async with self._slots.held(name[0].lower(), is_long=name[0].isupper()):
            self.begun.append(name)
            await self._ends[name].wait()

    async def _settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_owner_gets_no_more_than_its_share():
    queue = Queue(FairSlots(3, share=2))
    await queue.ask("a1", "a2", "a3", "a4", "b1")
    assert queue.begun == ["a1", "a2", "b1"]


async def test_owner_without_a_slot_comes_before_others():
    queue = Queue(FairSlots(2, share=2))
    await queue.ask("a1", "a2", "a3", "a4", "b1", "c1")
    await queue.end("a1")
    await queue.end("a2")
    assert queue.begun == ["a1", "a2", "b1", "c1"]


async def test_owners_take_turns():
    queue = Queue(FairSlots(1, share=1))
    await queue.ask("a1", "a2", "a3", "b1", "b2")
    for name in ("a1", "b1", "a2", "b2"):
        await queue.end(name)
    assert queue.begun == ["a1", "b1", "a2", "b2", "a3"]


async def test_short_work_of_an_owner_comes_before_its_long_work():
    queue = Queue(FairSlots(1, share=1))
    await queue.ask("b1", "A1", "a1")
    await queue.end("b1")
    assert queue.begun == ["b1", "a1"]


async def test_long_work_leaves_a_slot_for_short_work():
    queue = Queue(FairSlots(3, share=2, long=2))
    await queue.ask("A1", "A2", "B1", "C1", "d1")
    assert queue.begun == ["A1", "B1", "d1"]
    await queue.end("A1")
    assert queue.begun == ["A1", "B1", "d1", "C1"]


async def test_cancelled_work_leaves_its_slot_and_its_place():
    queue = Queue(FairSlots(1, share=1))
    await queue.ask("a1", "b1", "c1")
    await queue.cancel("b1")
    await queue.cancel("a1")
    assert queue.begun == ["a1", "c1"]


async def test_work_cancelled_when_its_slot_was_granted_frees_it():
    slots = FairSlots(1, share=1)
    async with AsyncExitStack() as held:
        await held.enter_async_context(slots.held("a"))
        waiting = asyncio.create_task(held_for_ever(slots))
        await asyncio.sleep(0)
        await held.aclose()
        waiting.cancel()  # granted, and not yet awake
        await asyncio.wait([waiting])
    async with asyncio.timeout(60), slots.held("c"):
        pass


async def held_for_ever(slots: FairSlots) -> None:
    async with slots.held("b"):
        await asyncio.Event().wait()


async def test_flood_of_one_site_leaves_slots_for_other_organizations():
    queue = Queue(reply_slots(4))
    await queue.ask("a1", "a2", "a3", "a4", "a5", "b1", "b2")
    assert queue.begun == ["a1", "a2", "a3", "b1"]
    await queue.end("a1")
    assert queue.begun[-1] == "b2"  # it holds fewer than the flood
    for name in ("a2", "a3", "b1", "a4", "a5", "b2"):
        await queue.end(name)
