"""A job's steps as events, while one instance runs it."""

from contextlib import suppress

from eventstore import CommandId, EventStore, Executed, Metadata, execute
from service.domain.errors import Conflict
from service.domain.jobs.decider import (
    FailJob,
    Finished,
    Job,
    JobCommand,
    JobEvent,
    PostponeJob,
    Running,
    StartJob,
    StepBy,
)
from service.ports.clock import Clock
from service.streams import JOBS
from service.workers.retry import retry_while_unavailable


class StepRecorder:
    """A job's steps as events, each caused by the one before, for as long as the job is ours."""

    def __init__(self, store: EventStore, job_id: str, instance: str, clock: Clock, *, retry_seconds: float) -> None:
        self._store, self._job_id, self._instance = store, job_id, instance
        self._clock, self._retry_seconds = clock, retry_seconds
        self._run = 0
        self.tries = 0
        """How often in a row the job had to wait for its machine, without a new step between."""
        self.position = 0
        self.damaged = 0
        """The version of the first of the job's events whose text is damaged; 0 when all can be read."""

    @property
    def job_id(self) -> str:
        return self._job_id

    async def start(self) -> Running:
        """Take the job up. Raises Conflict when it does not wait."""
        started = await self._execute(StartJob(self._instance, self._clock.now()))
        state, self.damaged = started.state, started.damaged
        if not isinstance(state, Running):
            raise Conflict("The job was not taken up.")
        self._run = state.work.runs
        before = state.work.setback
        self.tries = before.tries if before is not None and before.dependency == "disk" else 0
        return state

    async def record(self, command: JobCommand) -> Running | Finished:
        state = (await self._execute(StepBy(self._instance, self._run, command))).state
        if not isinstance(state, Running | Finished):
            raise Conflict("The job has been parked.")
        self.tries = 0
        return state

    async def postpone(self, command: PostponeJob) -> None:
        """Let the job wait; it fails when it has waited for too long."""
        with suppress(Conflict):  # it was ended meanwhile
            await self._execute(StepBy(self._instance, self._run, command))

    async def _execute(self, command: JobCommand) -> Executed[Job, JobEvent]:
        metadata, command_id = Metadata(causation=self.position or None), CommandId()
        done = await retry_while_unavailable(
            lambda: execute(self._store, JOBS, self._job_id, command, metadata=metadata, command_id=command_id),
            first_seconds=self._retry_seconds,
        )
        self.position = max(self.position, done.position)
        return done

    async def fail(self, code: str, message: str) -> None:
        with suppress(Conflict):  # it was ended meanwhile
            await self.record(FailJob(code, message, self._clock.now()))
