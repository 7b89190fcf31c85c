"""Takes up each job that waits, works on it, and records how it ended."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import count
from weakref import WeakValueDictionary

import structlog
from msgspec import Struct
from msgspec.structs import replace

from eventstore import (
    CommandId,
    EventStore,
    Executed,
    Metadata,
    StoreCorrupt,
    StoreUnavailable,
    Views,
    execute,
    lacks_memory,
    load,
)
from service.agent.loop.budgets import Budgets
from service.agent.loop.job_context import JobContext
from service.domain.errors import OUT_OF_DESCRIPTORS, Conflict, DiskFull, ServiceError, Unavailable
from service.domain.jobs.decider import (
    FailJob,
    Finished,
    InterruptJob,
    Job,
    JobCommand,
    JobEvent,
    JobFailed,
    JobInterrupted,
    JobReopened,
    JobRequested,
    Queued,
    Running,
    StartJob,
    StepBy,
    branch_of,
)
from service.domain.projects.settings import CodeHostKind
from service.ports.code_host import CodeHost
from service.ports.docs_source import DocsSource
from service.ports.model import Models
from service.ports.search_index import SearchIndex
from service.ports.tracer import Attribute, NoTracer, Tracer
from service.queries.jobs import active_jobs
from service.queries.projects import get_project, source_of
from service.queries.read_models import wait_for_rebuild
from service.runtime.system import now
from service.streams import JOBS, decoded
from service.workers.jobs.queue import JobQueue
from service.workers.retry import FIRST_WAIT_SECONDS, retry_while_unavailable

log = structlog.get_logger()

NO_TRACER = NoTracer()

TEXT_DAMAGED = "Event {} of job-{} is damaged, and its text is needed to go on. Begin a new job."
TRIES_WITHOUT_MEMORY = 5
"""After which a job that runs out of memory each time fails: it may be what takes it."""
LONGEST_WAIT_FOR_ROOM_SECONDS = 60.0
"""Each try is two events."""


class JobPorts(Struct, frozen=True):
    """The parts through which jobs act."""

    models: Models
    docs: DocsSource
    index: SearchIndex
    code_hosts: Mapping[CodeHostKind, CodeHost]
    tracer: Tracer = NO_TRACER


class JobSettings(Struct, frozen=True):
    concurrent_jobs: int
    concurrent_jobs_per_project: int
    budgets: Budgets
    author: str
    concurrent_jobs_per_organization: int | None = None
    retry_seconds: float = FIRST_WAIT_SECONDS
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
        *,
        instance: str,
        is_alive: Callable[[str], bool],
    ) -> None:
        self._store, self._views, self._ports, self._settings = store, views, ports, settings
        self._instance, self._is_alive = instance, is_alive
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

    async def run(self) -> None:
        """Run until cancelled: what waits now, what dead processes left, then whatever is asked for.

        Jobs that are under way when it is cancelled are parked: recorded as interrupted, to go on at the next start.
        """
        after = await self._store.head()
        await wait_for_rebuild(self._views, after)
        async with asyncio.TaskGroup() as running:
            for job_id, organization_id in await active_jobs(self._views) if self._settings.takes_up_earlier else ():
                loaded = await load(self._store, JOBS, job_id)
                if isinstance(loaded.state, Queued):
                    self._begin(job_id, running, organization_id)
                elif isinstance(loaded.state, Running) and not self._is_alive(loaded.state.instance):
                    dead = loaded.state.instance
                    await retry_while_unavailable(
                        partial(self._interrupt, job_id, dead)
                    )  # and the subscription takes it up
            async for recorded in self._store.subscribe(after=after, category=JOBS.category):
                for job_id, event in decoded(JOBS, [recorded]):
                    if isinstance(event, JobRequested | JobInterrupted | JobReopened):
                        organization_id = event.organization_id if isinstance(event, JobRequested) else ""
                        self._begin(job_id, running, organization_id)
                    elif isinstance(event, JobFailed):  # cancelled or erased by a person, or our own doing
                        for task in self._tasks.get(job_id, ()):
                            task.cancel()

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
        async with self._arriving.setdefault(
            organization_id, asyncio.Lock()
        ):  # left without a pause before the place is taken
            waiting = (await retry_while_unavailable(lambda: load(self._store, JOBS, job_id))).state
        if not isinstance(waiting, Queued):
            return  # another process has it, or it has ended
        wanted = waiting.request
        async with self._queue.turn(wanted.project_id, branch_of(waiting), wanted.organization_id):
            structlog.contextvars.bind_contextvars(job_id=job_id)
            seconds = self._settings.retry_seconds
            try:
                for tries in count(1):
                    if await self._attempt(job_id, out_of_memory_fails=tries >= TRIES_WITHOUT_MEMORY):
                        break
                    log.warning(
                        "no room on a disk, in memory or for open files; the job is tried again", seconds=seconds
                    )
                    await asyncio.sleep(seconds)
                    seconds = min(seconds * 2, LONGEST_WAIT_FOR_ROOM_SECONDS)
            except StoreCorrupt:  # nothing more can be recorded of this job; the others go on
                log.exception("the job's record is damaged")

    async def _attempt(self, job_id: str, *, out_of_memory_fails: bool) -> bool:
        """Work on the job. False: it lacked room on a disk, in memory or for open files, and waits for the
        next attempt.
        """
        recorder = _Recorder(self._store, job_id, self._instance, self._settings.retry_seconds)
        try:
            state = await recorder.start()
        except Conflict:
            return True  # another process was faster, or it has ended meanwhile
        if recorder.damaged:
            log.warning("a text of the job is damaged", version=recorder.damaged)
            await recorder.fail("text_damaged", TEXT_DAMAGED.format(recorder.damaged, job_id))
            return True
        log.info("job started", attempt=state.attempt)
        try:
            await self._traced(job_id, state, recorder)
            log.info("job ended")
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):  # then the next start finds it interrupted
                await asyncio.shield(self._interrupt(job_id, self._instance, parked=True))
            raise
        except Exception as error:  # a job's edge
            if _lacks_room(error) and not (isinstance(error, MemoryError) and out_of_memory_fails):
                await retry_while_unavailable(lambda: self._interrupt(job_id, self._instance, parked=True))
                return False
            if isinstance(error, ServiceError):
                await _fail(recorder, error)
            elif isinstance(error, MemoryError):
                log.exception("job ran out of memory")
                await recorder.fail("out_of_memory", "The service ran out of memory; give it more, then try again.")
            else:
                log.exception("job crashed")
                await recorder.fail("internal", "Something went wrong on our side; it has been logged.")
        return True

    async def _traced(self, job_id: str, state: Running, recorder: "_Recorder") -> None:
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

    async def _work(self, state: Running, recorder: "_Recorder") -> None:
        request = state.request
        await wait_for_rebuild(self._views, recorder.position)  # the project may be as new as the job
        project = await get_project(self._views, request.project_id)
        if project is None:
            raise Unavailable("The job's project is not in the read models.", code="project_unknown")
        # The branch that it was asked to start from, whatever the project's is by now.
        source, ports = replace(source_of(project), ref=request.ref), self._ports
        # With the first job: a service that has none does without, and the event loop does not wait.
        for module in ("service.agent.loop.loop", "service.agent.publishing"):
            await asyncio.to_thread(import_module, module)
        from service.agent.loop.loop import work
        from service.agent.publishing import publish

        context = JobContext(
            ports.models.for_agent(request.model_alias), ports.docs, source, ports.code_hosts[project.code_host],
            ports.index, project.domain, recorder, now, self._settings.budgets, self._settings.author,
        )  # fmt: skip
        job: Running | Finished = state
        while isinstance(job, Running):  # again when a message came while it was handed in
            job = await work(job, context)
            job = await publish(job, context)

    async def _interrupt(self, job_id: str, instance: str, *, parked: bool = False) -> None:
        with suppress(Conflict):
            await execute(self._store, JOBS, job_id, InterruptJob(instance, now(), parked=parked))


def _lacks_room(error: Exception) -> bool:
    """Return whether a disk is full, or memory or descriptors are short, which may pass."""
    if isinstance(error, OSError):
        return error.errno in OUT_OF_DESCRIPTORS
    return isinstance(error, DiskFull) or lacks_memory(error)


async def _fail(recorder: "_Recorder", error: ServiceError) -> None:
    if error.code == "not_held":
        log.info("job was ended elsewhere")
        return
    log.warning("job failed", code=error.code)
    await recorder.fail(error.code, str(error))


class _Recorder:
    """A job's steps as events, each caused by the one before, for as long as the job is ours."""

    def __init__(self, store: EventStore, job_id: str, instance: str, retry_seconds: float) -> None:
        self._store, self._job_id, self._instance, self._retry_seconds = store, job_id, instance, retry_seconds
        self._run = 0
        self.position = 0
        self.damaged = 0
        """The version of the first of the job's events whose text is damaged; 0 when all can be read."""

    @property
    def job_id(self) -> str:
        return self._job_id

    async def start(self) -> Running:
        """Take the job up. Raises Conflict when it does not wait."""
        started = await self._execute(StartJob(self._instance, now()))
        state, self.damaged = started.state, started.damaged
        if not isinstance(state, Running):
            raise Conflict("The job was not taken up.")
        self._run = state.work.runs
        return state

    async def record(self, command: JobCommand) -> Running | Finished:
        state = (await self._execute(StepBy(self._instance, self._run, command))).state
        if not isinstance(state, Running | Finished):
            raise Conflict("The job has been parked.")
        return state

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
            await self.record(FailJob(code, message, now()))
