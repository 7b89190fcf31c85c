"""The workers of a table start in its order, and stop in the order of their numbers."""

import asyncio

from service.main.worker_table import Stop, Worker, Workers


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
    await workers.stop(Stop.JOBS)
    assert workers.ended() == ["short", "long"]
