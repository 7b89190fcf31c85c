"""The workers of a table start in its order, and stop in the order of their numbers."""

import asyncio

import pytest

from eventstore import StoreUnavailable
from service.main.worker_table import Stop, Worker, Workers, while_leading
from tests.fakes.instances import FakeInstances


class Recorded:
    def __init__(self):
        self.seen = []

    def worker(self, name, stop):
        async def run():
            self.seen.append(f"{name} began")
            try:
                await asyncio.Event().wait()
            finally:
                self.seen.append(f"{name} stopped")

        return Worker(name, run, stop)


async def test_workers_stop_by_their_numbers():
    recorded, workers = Recorded(), Workers()
    workers.begin([recorded.worker("views", Stop.VIEWS), recorded.worker("jobs", Stop.JOBS)])
    await asyncio.sleep(0)
    for number in Stop:
        await workers.stop(number)
    assert recorded.seen == ["views began", "jobs began", "jobs stopped", "views stopped"]


async def test_worker_that_ends_by_itself_is_named():
    async def end():
        pass

    workers = Workers()
    workers.begin([Worker("short", end, Stop.JOBS), Recorded().worker("long", Stop.JOBS)])
    while not workers.ended():  # noqa: ASYNC110  (it tells nothing when one ends)
        await asyncio.sleep(0)
    assert workers.ended() == ["short"]


async def test_stopped_worker_is_not_named_as_ended():
    workers = Workers()
    workers.begin([Recorded().worker("long", Stop.JOBS)])
    await workers.stop(Stop.JOBS)
    await workers.stop(Stop.JOBS)
    assert workers.ended() == []


class Turns:
    """A worker that says when it begins and when it is cancelled."""

    def __init__(self):
        self.began, self.stopped = asyncio.Event(), asyncio.Event()

    async def run(self):
        self.stopped.clear()
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.began.clear()
            self.stopped.set()


async def test_worker_of_the_leader_runs_while_it_leads():
    instances, worker = FakeInstances(), Turns()
    instances.be(leads=False)
    running = asyncio.create_task(while_leading(instances, worker.run))
    for _ in range(2):
        assert not worker.began.is_set()
        instances.be(leads=True)
        await worker.began.wait()
        instances.be(is_certain=False)
        await worker.stopped.wait()
        instances.be(leads=False, is_certain=True)
    instances.be(leads=True)
    await worker.began.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert worker.stopped.is_set()


async def test_error_of_a_worker_of_the_leader_ends_it():
    async def fail():
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        await while_leading(FakeInstances(), fail)


async def test_worker_of_the_leader_begins_again_after_an_outage():
    worker, away = Turns(), [StoreUnavailable("away"), ExceptionGroup("tasks", [StoreUnavailable("away")])]

    async def run():
        if away:
            raise away.pop()
        await worker.run()

    running = asyncio.create_task(while_leading(FakeInstances(), run, retry_seconds=0.0))
    await asyncio.wait_for(worker.began.wait(), 60)
    running.cancel()
    await asyncio.wait([running])


async def test_worker_that_ends_before_it_is_ready_is_reported():
    """Who starts the service would else wait for it for good."""

    async def fail():
        raise ValueError("no")

    workers = Workers()
    workers.begin([Worker("short", fail, Stop.JOBS), Recorded().worker("long", Stop.JOBS)])
    with pytest.raises(RuntimeError, match="short has ended"):
        await workers.until(asyncio.Event(), "short")
    ready = asyncio.Event()
    asyncio.get_running_loop().call_soon(ready.set)
    await workers.until(ready, "long")
    await workers.stop(Stop.JOBS)
