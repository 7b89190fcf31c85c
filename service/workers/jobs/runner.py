"""Takes up each job that waits, works on it, and records how it ended."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import structlog
from msgspec import Struct
from msgspec.structs import replace

from eventstore import EventStore, StoreCorrupt, StoreUnavailable, Undecodable, Views, execute, load
from service.agent.loop.budgets import Budgets
from service.agent.loop.job_context import JobContext
from service.domain.errors import Conflict, ServiceError, Unavailable
from service.domain.jobs.decider import (
    Finished,
    InterruptJob,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobInterrupted,
    JobReopened,
    JobRequested,
    JobResumed,
    JobStarted,
    JobWaiting,
    PostponeJob,
    Queued,
    ResumeJob,
    Running,
    branch_of,
)
from service.domain.projects.settings import CodeHostKind
from service.ports.clock import Clock
from service.ports.code_host import CodeHost
from service.ports.docs_source import DocsSource
from service.ports.link_checker import LinkChecker
from service.ports.model import Models
from service.ports.search_index import SearchIndex
from service.ports.shared.instances import Instances
from service.ports.tracer import Attribute, NoTracer, Tracer
from service.queries.jobs.jobs import active_jobs
from service.queries.projects import context_sources, get_project, source_of
from service.queries.read_models import wait_for_rebuild
from service.runtime.system import SystemClock
from service.streams import JOBS, decoded
from service.workers.jobs.queue import JobQueue
from service.workers.jobs.recorder import StepRecorder
from service.workers.jobs.waiting import Pauses, dependency_of, reason_of
from service.workers.kept_prompts import KeptPrompts
from service.workers.retry import FIRST_WAIT_SECONDS, retry_while_unavailable

if TYPE_CHECKING:
    from service.agent.commit_files import KnownCommits

log = structlog.get_logger()

NO_TRACER = NoTracer()
SYSTEM_CLOCK = SystemClock()

SWEEP_SECONDS = 5.0
"""Between two looks for jobs whose instance has ended."""
ENDS_RUN = JobInterrupted | JobWaiting | JobCompleted | JobFailed

RECORD_DAMAGED = "the job's record is damaged"
TEXT_DAMAGED = "Event {} of job-{} is damaged, and its text is needed to go on. Begin a new job."


def _everywhere() -> bool:
    return True


class JobPorts(Struct, frozen=True):
    """The parts through which jobs act."""

    models: Models
    docs: DocsSource
    index: SearchIndex
    code_hosts: Mapping[CodeHostKind, CodeHost]
    tracer: Tracer = NO_TRACER
    link_checker: LinkChecker | None = None
    clock: Clock = SYSTEM_CLOCK
    is_home: Callable[[], bool] = _everywhere
    """Returns whether the repositories of the embedded code host are here."""


class JobSettings(Struct, frozen=True):
    concurrent_jobs: int
    concurrent_jobs_per_project: int
    budgets: Budgets
    author: str
    concurrent_jobs_per_organization: int | None = None
    retry_seconds: float = FIRST_WAIT_SECONDS
    retry_hours: float = 24.0
    """Hours for which a job waits for what is away, before it fails."""
    mention: str = ""
    """The name by which comments address the agent; empty: none are read."""
    takes_up_earlier: bool = True
    """Also the jobs that wait, or were under way, when it starts."""


class JobRunner:
    """Jobs as asyncio tasks, a bounded number at a time. A job whose process died goes on from its last step.

    It follows the log for what others do with its jobs, in whichever process: one that a person has ended is stopped,
    its call of the model with it.
    """

    def __init__(
        self,
        store: EventStore,
        views: Views,
        ports: JobPorts,
        settings: JobSettings,
        instances: Instances,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``sleep``, between looks at what dead instances have left, is for tests."""
        self._store, self._views, self._ports, self._settings = store, views, ports, settings
        self._instances, self._clock = instances, ports.clock
        self._queue = JobQueue(
            in_all=settings.concurrent_jobs,
            per_project=settings.concurrent_jobs_per_project,
            per_organization=settings.concurrent_jobs_per_organization,
        )
        self._arriving: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By organization: one job at a time is read and takes its place in the queue. A short one would be read sooner
        than a long one that came before it.
        """
        self._tasks: dict[str, set[asyncio.Task[None]]] = {}
        self._pauses = Pauses(self._clock, self._resume)
        self._elsewhere: dict[str, str] = {}
        """Jobs under way in other instances, and the names of those."""
        self._started: dict[str, int] = {}
        """Jobs under way here, and the positions of their starts."""
        self._sleep = sleep
        self._prompts = KeptPrompts(store, "service.agent.loop.sent")
        self._known: KnownCommits | None = None
        """For all jobs; from the first one on."""

    async def run(self) -> None:
        """Run until cancelled: what waits now, then whatever is asked for, and what dead instances leave.

        Jobs that are under way when it is cancelled are parked: recorded as interrupted, to go on at the next start.
        """
        after = await self._store.head()
        await wait_for_rebuild(self._views, after)
        async with asyncio.TaskGroup() as running:
            for job_id, organization_id in await active_jobs(self._views) if self._settings.takes_up_earlier else ():
                running.create_task(self._take_up(job_id, organization_id, running))
            running.create_task(self._sweep(), name="jobs of dead instances")
            async for recorded in self._store.subscribe(after=after, category=JOBS.category):
                for job_id, event in decoded(JOBS, [recorded]):
                    self._note_place(job_id, event, recorded.position)
                    if isinstance(event, JobWaiting):
                        self._pauses.begin(job_id, event.next_try_at, running)
                    elif isinstance(event, JobRequested | JobInterrupted | JobReopened | JobResumed):
                        self._pauses.end(job_id)
                        organization_id = event.organization_id if isinstance(event, JobRequested) else ""
                        self._begin(job_id, running, organization_id)
                    elif isinstance(event, JobFailed):  # cancelled or erased by a person, or our own doing
                        self._pauses.end(job_id)
                        for task in self._tasks.get(job_id, ()):
                            task.cancel()

    async def _take_up(self, job_id: str, organization_id: str, running: asyncio.TaskGroup) -> None:
        """Go on with a job of an earlier process. One that is long to read holds up those of its organization alone."""
        try:
            async with self._arrival(organization_id):
                state = (await retry_while_unavailable(lambda: load(self._store, JOBS, job_id))).state
        except (StoreCorrupt, Undecodable):  # as in _run_job
            log.exception(RECORD_DAMAGED, job_id=job_id)
            return
        if isinstance(state, Queued) and state.waiting is not None:
            self._pauses.begin(job_id, state.waiting.next_try_at, running)
        elif isinstance(state, Queued):
            self._begin(job_id, running, organization_id)
        elif isinstance(state, Running) and state.instance != self._instances.name:
            self._elsewhere[job_id] = state.instance
            await self._settle(job_id)

    def _note_place(self, job_id: str, event: JobEvent, position: int) -> None:
        """Note where a job is under way. What has begun elsewhere is stopped here, after this process was paused."""
        if isinstance(event, JobStarted) and event.instance != self._instances.name:
            self._elsewhere[job_id] = event.instance
            for task in self._tasks.get(job_id, ()) if position > self._started.get(job_id, 0) else ():
                task.cancel()
        elif isinstance(event, ENDS_RUN | JobStarted):
            self._elsewhere.pop(job_id, None)

    async def _sweep(self) -> None:
        """Interrupt the jobs of instances that have ended, until cancelled; the subscription takes them up."""
        while True:
            await self._sleep(SWEEP_SECONDS)
            for job_id in list(self._elsewhere):
                await self._settle(job_id)

    async def _settle(self, job_id: str) -> None:
        """Interrupt a job whose instance has ended, so that it goes on in any that is alive."""
        name = self._elsewhere.get(job_id)
        if name is None or self._instances.is_alive(name):
            return
        try:
            await retry_while_unavailable(partial(self._interrupt, job_id, name))
        except (StoreCorrupt, Undecodable):  # as in _run_job
            log.exception(RECORD_DAMAGED, job_id=job_id)
        if self._elsewhere.get(job_id) == name:
            del self._elsewhere[job_id]

    def _arrival(self, organization_id: str) -> asyncio.Lock:
        return self._arriving.setdefault(organization_id, asyncio.Lock())

    def _begin(self, job_id: str, running: asyncio.TaskGroup, organization_id: str) -> None:
        # A job may have several: one that is ending while the next begins, one that found the job taken by the other.
        task = running.create_task(self._run_job(job_id, organization_id), name=f"job {job_id}")
        self._tasks.setdefault(job_id, set()).add(task)
        task.add_done_callback(partial(self._forget, job_id))

    def _forget(self, job_id: str, task: asyncio.Task[None]) -> None:
        self._tasks[job_id].discard(task)
        if not self._tasks[job_id]:
            del self._tasks[job_id]

    async def _run_job(self, job_id: str, organization_id: str) -> None:
        structlog.contextvars.bind_contextvars(job_id=job_id)
        try:
            await self._in_turn(job_id, organization_id)
        except (StoreCorrupt, Undecodable):  # nothing more can be recorded of this job; the others go on
            log.exception(RECORD_DAMAGED)

    async def _in_turn(self, job_id: str, organization_id: str) -> None:
        async with self._arrival(organization_id):  # left without a pause before the place is taken
            waiting = (await retry_while_unavailable(lambda: load(self._store, JOBS, job_id))).state
        if not isinstance(waiting, Queued) or waiting.waiting is not None:
            return  # another process has it, or it has ended
        if not await self._is_ours(waiting.request.project_id):
            return
        wanted = waiting.request
        async with self._queue.turn(wanted.project_id, branch_of(waiting), wanted.organization_id):
            await self._attempt(job_id)

    async def _is_ours(self, project_id: str) -> bool:
        """Return whether the job's repository is within reach: those of the embedded code host are at home alone."""
        if self._ports.is_home():
            return True
        await wait_for_rebuild(self._views, await self._store.head())  # the project may be as new as the job
        project = await get_project(self._views, project_id)
        return project is not None and project.code_host != "local"

    async def _attempt(self, job_id: str) -> None:
        """Work on the job until it ends, or waits for something that is away."""
        retry_seconds = self._settings.retry_seconds
        recorder = StepRecorder(self._store, job_id, self._instances, self._clock, retry_seconds=retry_seconds)
        try:
            state = await recorder.start()
        except Conflict:
            return  # another process was faster, or it has ended meanwhile
        if recorder.damaged:
            log.warning("a text of the job is damaged", version=recorder.damaged)
            await recorder.fail("text_damaged", TEXT_DAMAGED.format(recorder.damaged, job_id))
            return
        log.info("job started", attempt=state.attempt)
        started_at = self._started[job_id] = recorder.position
        try:
            await self._traced(job_id, state, recorder)
            log.info("job ended")
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):  # then the next start finds it interrupted
                await asyncio.shield(self._interrupt(job_id, self._instances.name, parked=True))
            raise
        except Exception as error:  # noqa: BLE001 - a job's edge
            await self._failed(recorder, error)
        finally:
            if self._started.get(job_id) == started_at:
                del self._started[job_id]

    async def _failed(self, recorder: StepRecorder, error: Exception) -> None:
        """Let the job wait after an error that may pass; else it fails."""
        if (dependency := dependency_of(error, tries=recorder.tries)) is not None:
            log.warning("something is away; the job is tried again", dependency=dependency, reason=reason_of(error))
            code = error.code if isinstance(error, ServiceError) else "unavailable"
            asked = error.retry_after_seconds if isinstance(error, Unavailable) else None
            command = PostponeJob(
                dependency, code, reason_of(error), self._settings.retry_hours, self._clock.now(),
                asked_seconds=asked, jitter=random.random(),  # noqa: S311 - no secret
            )  # fmt: skip
            await recorder.postpone(command)
        elif isinstance(error, ServiceError):
            await _fail(recorder, error)
        elif isinstance(error, MemoryError):
            log.exception("job ran out of memory")
            await recorder.fail("out_of_memory", "The service ran out of memory; give it more, then try again.")
        else:
            log.exception("job crashed")
            await recorder.fail("internal", "Something went wrong on our side; it has been logged.")

    async def _traced(self, job_id: str, state: Running, recorder: StepRecorder) -> None:
        asked_by = ""
        if self._ports.tracer.is_on:
            first = await retry_while_unavailable(lambda: self._store.read_stream(JOBS.stream(job_id), limit=1))
            asked_by = first[0].metadata.correlation_id
        told: dict[str, Attribute] = {
            "docsmith.job.id": job_id,
            "docsmith.job.attempt": state.attempt,
            "docsmith.request.id": asked_by,
        }
        with self._ports.tracer.span("docsmith.job", told, asked_by=asked_by, is_linked=True):
            await self._work(state, recorder)

    async def _work(self, state: Running, recorder: StepRecorder) -> None:
        request = state.request
        await wait_for_rebuild(self._views, recorder.position)  # the project may be as new as the job
        project = await get_project(self._views, request.project_id)
        if project is None:
            raise Unavailable("The job's project is not in the read models.", code="project_unknown")
        # The branch that it was asked to start from, whatever is the project's by now, or that branch's new name.
        ref = project.ref if request.ref in project.follows else request.ref
        source, ports = replace(source_of(project), ref=ref), self._ports
        # With the first job: a service that has none does without, and the event loop does not wait.
        for module in ("service.agent.loop.loop", "service.agent.publishing"):
            await asyncio.to_thread(import_module, module)
        from service.agent.commit_files import KnownCommits
        from service.agent.loop.loop import work
        from service.agent.publishing import publish

        await self._prompts.hash()
        if self._known is None:
            self._known = KnownCommits()
        context = JobContext(
            ports.models.for_agent(request.model_alias), ports.docs, source, ports.code_hosts[project.code_host],
            ports.index, project.domain, recorder, self._clock.now, self._settings.budgets, self._settings.author,
            self._known, contexts=context_sources(project.id, project.contexts), seconds=self._clock.seconds,
            project=project.name, link_checker=ports.link_checker,
            mention="" if project.code_host == "local" else self._settings.mention,
        )  # fmt: skip
        job: Running | Finished = state
        while isinstance(job, Running):  # again when a message came while it was handed in
            job = await work(job, context)
            job = await publish(job, context)

    async def _interrupt(self, job_id: str, instance: str, *, parked: bool = False) -> None:
        with suppress(Conflict):
            await execute(self._store, JOBS, job_id, InterruptJob(instance, self._clock.now(), parked=parked))

    async def _resume(self, job_id: str, now: datetime) -> None:
        try:
            with suppress(Conflict):
                await retry_while_unavailable(lambda: execute(self._store, JOBS, job_id, ResumeJob(now)))
        except (StoreCorrupt, Undecodable):  # as in _run_job
            log.exception(RECORD_DAMAGED, job_id=job_id)


async def _fail(recorder: StepRecorder, error: ServiceError) -> None:
    if error.code == "not_held":
        log.info("job was ended elsewhere")
        return
    log.warning("job failed", code=error.code)
    await recorder.fail(error.code, str(error))
