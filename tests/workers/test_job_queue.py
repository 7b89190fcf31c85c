"""Whose turn it is."""

import asyncio
from contextlib import AsyncExitStack

from service.workers.jobs.queue import JobQueue


class Waiting:
    """One that waits for its turn, and gives it back when told to."""

    def __init__(self, queue, project, branch, organization=""):
        self.has_turn, self.may_leave = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._run(queue, project, branch, organization))

    async def _run(self, queue, project, branch, organization):
        async with queue.turn(project, branch, organization):
            self.has_turn.set()
            await self.may_leave.wait()

    async def leave(self):
        self.may_leave.set()
        await self.task


async def settled(*all_of):
    """Whether each has its turn, once nothing moves any more."""
    for _ in range(5):
        await asyncio.sleep(0)
    return [one.has_turn.is_set() for one in all_of]


async def ended(*all_of):
    for one in all_of:
        one.task.cancel()
    await asyncio.gather(*(one.task for one in all_of), return_exceptions=True)


async def test_turns_are_given_in_order():
    queue = JobQueue(in_all=1, per_project=1)
    first, second, third = (Waiting(queue, "p", f"b{n}") for n in range(3))
    assert await settled(first, second, third) == [True, False, False]
    await first.leave()
    assert await settled(second, third) == [True, False]
    await ended(second, third)


async def test_a_project_that_is_full_holds_up_no_other():
    queue = JobQueue(in_all=3, per_project=2)
    mine = [Waiting(queue, "mine", f"b{n}") for n in range(3)]
    other = Waiting(queue, "other", "b")
    assert await settled(*mine, other) == [True, True, False, True]
    await other.leave()
    assert await settled(mine[2]) == [False]
    await mine[0].leave()
    assert await settled(mine[2]) == [True]
    await ended(*mine)


async def test_branch_has_one_job_at_a_time_and_waiting_takes_no_slot():
    queue = JobQueue(in_all=2, per_project=2)
    one, two, three = Waiting(queue, "p", "b"), Waiting(queue, "p", "b"), Waiting(queue, "p", "c")
    assert await settled(one, two, three) == [True, False, True]
    await one.leave()
    assert await settled(two) == [True]
    await ended(two, three)


async def test_cancelled_job_gives_its_turn_or_place_back():
    queue = JobQueue(in_all=1, per_project=1)
    one, two, three = (Waiting(queue, "p", f"b{n}") for n in range(3))
    await settled(one)
    await ended(two)
    await ended(one)
    assert await settled(three) == [True]
    await ended(three)


async def test_a_turn_that_comes_with_the_cancellation_is_not_lost():
    queue = JobQueue(in_all=1, per_project=1)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(queue.turn("p", "a"))
        two, three = Waiting(queue, "p", "b"), Waiting(queue, "p", "c")
        await settled(two, three)
        two.task.cancel()  # and in the same breath the turn becomes its own
    await asyncio.gather(two.task, return_exceptions=True)
    assert await settled(three) == [True]
    await ended(three)


async def test_stuck_organization_leaves_turns_to_others():
    queue = JobQueue(in_all=4, per_project=2, per_organization=3)
    theirs = [Waiting(queue, f"p{n % 4}", f"b{n}", "theirs") for n in range(20)]
    assert sum(await settled(*theirs)) == 3
    mine = [Waiting(queue, "mine", f"b{n}", "mine") for n in range(2)]
    assert await settled(*mine) == [True, False]
    await mine[0].leave()
    assert await settled(mine[1]) == [True]
    await ended(*theirs, mine[1])


async def test_next_turn_goes_to_the_organization_with_the_fewest():
    queue = JobQueue(in_all=2, per_project=2)
    theirs = [Waiting(queue, f"p{n}", "b", "theirs") for n in range(20)]
    mine, other = Waiting(queue, "mine", "b", "mine"), Waiting(queue, "other", "b", "other")
    assert await settled(theirs[0], theirs[1], theirs[2], mine, other) == [True, True, False, False, False]
    await theirs[0].leave()
    assert await settled(theirs[2], mine, other) == [False, True, False]
    await mine.leave()
    assert await settled(theirs[2], other) == [False, True]
    await ended(*theirs[1:], other)
