"""A job's steps as events, while one instance runs it."""

from contextlib import suppress

from eventstore import CommandId, EventStore, Executed, Metadata, execute, load
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
from service.ports.shared.instances import RENEW_SECONDS, Instances
from service.streams import JOBS
from service.workers.retry import retry_while_unavailable

HELD_SECONDS = 2 * RENEW_SECONDS
"""A job that the log showed as ours is ours for so long, as far as our lease is certain at both ends of that time."""


class StepRecorder:
    """A job's steps as events, each caused by the one before, for as long as the job is ours."""

    def __init__(
        self, store: EventStore, job_id: str, instances: Instances, clock: Clock, *, retry_seconds: float
    ) -> None:
        self._store, self._job_id, self._instances, self._instance = store, job_id, instances, instances.name
        self._clock, self._retry_seconds = clock, retry_seconds
        self._run = 0
        self._held_at: float | None = None
        """When the log last showed the job as ours, while our lease was certain."""
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
        self._note_held()
        before = state.work.setback
        self.tries = before.tries if before is not None and before.dependency == "disk" else 0
        return state

    async def record(self, command: JobCommand) -> Running | Finished:
        state = (await self._execute(StepBy(self._instance, self._run, command))).state
        if not isinstance(state, Running | Finished):
            raise Conflict("The job has been parked.")
        self.tries = 0
        self._note_held()
        return state

    async def confirm(self) -> None:
        """Raise Conflict ``not_held`` when the job has ended, or another instance has taken it up.

        A lease that is not certain is waited for: this process was paused, or the log is away.
        """
        while not self._instances.is_certain():
            self._held_at = None
            await self._clock.sleep(RENEW_SECONDS)
        if self._held_at is not None and self._clock.seconds() - self._held_at < HELD_SECONDS:
            return
        state = (await retry_while_unavailable(lambda: load(self._store, JOBS, self._job_id))).state
        if not isinstance(state, Running) or (state.instance, state.work.runs) != (self._instance, self._run):
            raise Conflict("The job has ended, or another instance runs it by now.", code="not_held")
        self._note_held()

    def _note_held(self) -> None:
        self._held_at = self._clock.seconds() if self._instances.is_certain() else None

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
