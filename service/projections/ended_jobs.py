"""Jobs that have ended, in memory: the ones that are asked for again and again, and hardly ever change."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from eventstore import EventStore
from service.projections.jobs import JobRow
from service.streams import ERASURES, JOBS

MAX_JOBS = 2_000


class EndedJobs:
    """Rows of ended jobs as they are in the read models, until the next event of the job.

    ``run`` follows the log: an event of this process is seen at once, one of another within 25 ms or so.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._position = 0
        self._rows: OrderedDict[str, JobRow] = OrderedDict()
        self._encoded: dict[str, tuple[bytes, str]] = {}
        """What ``encoded`` has made of them."""
        self.changes = 0
        """Grows with each change of a job; a row that was read before the last one is not remembered."""

    async def load(self) -> None:
        self._position = await self._store.head()

    async def run(self) -> None:
        """Follow the log until cancelled."""
        async with asyncio.TaskGroup() as following:
            following.create_task(self._follow_jobs())
            following.create_task(self._follow_erasures())

    async def _follow_jobs(self) -> None:
        async for batch in self._store.follow(after=self._position, category=JOBS.category):
            self.changes += 1
            for event in batch:
                self._drop(JOBS.entity_id(event.stream))

    async def _follow_erasures(self) -> None:
        """What was erased is in memory no more."""
        async for _ in self._store.follow(after=self._position, category=ERASURES.category):
            self.changes += 1
            self._rows.clear()
            self._encoded.clear()

    def find(self, project_id: str, job_id: str) -> JobRow | None:
        row = self._rows.get(job_id)
        return row if row is not None and row.project_id == project_id else None

    def forget(self, job_id: str) -> None:
        """Who has just changed a job reads what it changed."""
        self.changes += 1
        self._drop(job_id)

    def remember(self, row: JobRow, changes: int) -> None:
        """Keep a row, which was read when ``changes`` was so, if it is of an ended job."""
        if row.status != "active" and changes == self.changes:
            self._drop(row.id)
            self._rows[row.id] = row
            if len(self._rows) > MAX_JOBS:
                self._drop(next(iter(self._rows)))

    def encoded(self, row: JobRow, encode: Callable[[JobRow], tuple[bytes, str]]) -> tuple[bytes, str]:
        """A row as its readers get it, with the tag of that: made once for a row that is kept."""
        if self._rows.get(row.id) is not row:
            return encode(row)
        made = self._encoded.get(row.id)
        if made is None:
            made = self._encoded[row.id] = encode(row)
        return made

    def _drop(self, job_id: str) -> None:
        self._rows.pop(job_id, None)
        self._encoded.pop(job_id, None)
