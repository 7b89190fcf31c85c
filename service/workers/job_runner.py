"""Takes up each job that waits, works on it, and records how it ended."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from weakref import WeakValueDictionary

import structlog

from eventstore import EventStore, Executed, Metadata, StoreUnavailable, Views, execute, load
from service.agent.loop import Budgets, publish, work
from service.domain.errors import Conflict, ServiceError, Unavailable
from service.domain.jobs import (
    FailJob,
    Finished,
    InterruptJob,
    Job,
    JobCommand,
    JobEvent,
    JobInterrupted,
    JobRequested,
    Queued,
    Running,
    StartJob,
)
from service.domain.projects import CodeHostKind
from service.operations import source_of
from service.ports.code_host import CodeHost
from service.ports.docs_source import DocsSource
from service.ports.model import Models
from service.ports.search_index import SearchIndex
from service.projections.jobs import active_jobs
from service.projections.projects import get_project
from service.streams import JOBS, decoded
from service.system import now
from service.workers.patience import FIRST_WAIT_SECONDS, patiently

log = structlog.get_logger()


class JobRunner:
    """Jobs as asyncio tasks, a bounded number at a time. A job whose process died goes on from its last step."""

    def __init__(
        self,
        store: EventStore,
        views: Views,
        *,
        models: Models,
        docs: DocsSource,
        index: SearchIndex,
        code_hosts: Mapping[CodeHostKind, CodeHost],
        instance: str,
        is_alive: Callable[[str], bool],
        concurrent_jobs: int,
        budgets: Budgets,
        author: str,
        retry_seconds: float = FIRST_WAIT_SECONDS,
    ) -> None:
        self._store, self._views = store, views
        self._models, self._docs, self._index, self._code_hosts = models, docs, index, code_hosts
        self._instance, self._is_alive = instance, is_alive
        self._slots = asyncio.Semaphore(concurrent_jobs)
        self._budgets, self._author = budgets, author
        self._retry_seconds = retry_seconds
        self._branches: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def run(self) -> None:
        """Until cancelled: what waits now, what dead processes left, then whatever is asked for.

        Jobs that are under way when it is cancelled are parked: recorded as interrupted, to go on at the next start.
        """
        after = await self._store.head()
        await self._views.wait_for(after, timeout_seconds=3600)  # views may be rebuilt at this very start
        async with asyncio.TaskGroup() as running:
            for job_id in await active_jobs(self._views):
                loaded = await load(self._store, JOBS, job_id)
                if isinstance(loaded.state, Queued):
                    running.create_task(self._run_job(job_id), name=f"job {job_id}")
                elif isinstance(loaded.state, Running) and not self._is_alive(loaded.state.instance):
                    dead = loaded.state.instance
                    await patiently(partial(self._interrupt, job_id, dead))  # and the subscription takes it up
            async for recorded in self._store.subscribe(after=after, category=JOBS.category):
                for job_id, event in decoded(JOBS, [recorded]):
                    if isinstance(event, JobRequested | JobInterrupted):
                        running.create_task(self._run_job(job_id), name=f"job {job_id}")

    async def _run_job(self, job_id: str) -> None:
        waiting = (await load(self._store, JOBS, job_id)).state
        if not isinstance(waiting, Queued):
            return  # somebody else has it, or it has ended
        request = waiting.request
        async with self._branch(request.project_id, request.branch), self._slots:  # no slot while it waits for another
            recorder = _Recorder(self._store, job_id, self._retry_seconds)
            try:
                state = _running(await recorder.execute(StartJob(self._instance, now())))
            except Conflict:
                return  # somebody else was faster, or it has ended meanwhile
            structlog.contextvars.bind_contextvars(job_id=job_id)
            log.info("job started", attempt=state.attempt)
            try:
                await self._work(state, recorder)
                log.info("job ended")
            except asyncio.CancelledError:
                with suppress(StoreUnavailable):  # then the next start finds it interrupted
                    await asyncio.shield(self._interrupt(job_id, self._instance, parked=True))
                raise
            except ServiceError as error:
                log.warning("job failed", code=error.code)
                await recorder.fail(error.code, str(error))
            except Exception:  # a job's edge
                log.exception("job crashed")
                await recorder.fail("internal", "Something went wrong on our side; it has been logged.")

    async def _work(self, state: Running, recorder: "_Recorder") -> None:
        request = state.request
        await self._views.wait_for(recorder.position, timeout_seconds=3600)  # the project may be as new as the job
        project = await get_project(self._views, request.project_id)
        if project is None:
            raise Unavailable("The job's project is not in the read models.", code="project_unknown")
        source = source_of(project)
        state = await work(
            state,
            model=self._models.for_agent(request.model_alias),
            docs=self._docs,
            source=source,
            index=self._index,
            domain=project.domain,
            recorder=recorder,
            now=now,
            budgets=self._budgets,
        )
        await publish(
            state,
            docs=self._docs,
            source=source,
            host=self._code_hosts[project.code_host],
            recorder=recorder,
            now=now,
            author=self._author,
        )

    def _branch(self, project_id: str, branch: str) -> asyncio.Lock:
        """One job at a time on a branch."""
        return self._branches.setdefault((project_id, branch), asyncio.Lock())

    async def _interrupt(self, job_id: str, instance: str, *, parked: bool = False) -> None:
        with suppress(Conflict):
            await execute(self._store, JOBS, job_id, InterruptJob(instance, now(), parked=parked))


class _Recorder:
    """A job's steps as events, each caused by the one before."""

    def __init__(self, store: EventStore, job_id: str, retry_seconds: float) -> None:
        self._store, self._job_id, self._retry_seconds = store, job_id, retry_seconds
        self.position = 0

    @property
    def job_id(self) -> str:
        return self._job_id

    async def record(self, command: JobCommand) -> Running | Finished:
        state = (await self.execute(command)).state
        if not isinstance(state, Running | Finished):
            raise Conflict("The job has been parked.")
        return state

    async def execute(self, command: JobCommand) -> Executed[Job, JobEvent]:
        metadata = Metadata(causation=self.position or None)
        done = await patiently(
            lambda: execute(self._store, JOBS, self._job_id, command, metadata=metadata),
            first_seconds=self._retry_seconds,
        )
        self.position = max(self.position, done.position)
        return done

    async def fail(self, code: str, message: str) -> None:
        with suppress(Conflict):  # it was ended meanwhile
            await self.execute(FailJob(code, message, now()))


def _running(done: Executed[Job, JobEvent]) -> Running:
    if not isinstance(done.state, Running):
        raise Conflict("The job was not taken up.")
    return done.state
