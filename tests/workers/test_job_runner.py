"""Jobs side by side: none holds up, or ends, what has nothing to do with it."""

import asyncio
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

from eventstore import Metadata, SQLiteEventStore, execute
from service.agent.loop.budgets import Budgets
from service.commands.jobs.jobs import add_message, cancel_job
from service.domain.jobs.decider import FailJob, Message, RequestJob
from service.domain.model import ToolCall
from service.domain.projects.decider import ChangeProject, CreateProject
from service.domain.projects.settings import ProjectSettings
from service.queries.jobs.jobs import JobSlots, events_of, find_job
from service.streams import JOBS, PROJECTS
from service.wire.job_stream import JobStreamEncoder, live_event
from service.workers.jobs.runner import JobPorts, JobRunner, JobSettings
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.instances import FakeInstances
from tests.fakes.model import FakeModel, call, calls
from tests.fakes.search_index import FakeSearchIndex

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NOTHING_TO_DO = calls(call("finish", title="Nothing", summary="Nothing to do."))


class HeldDocsSource(FakeDocsSource):
    """Fetching one branch takes until ``release`` is set."""

    def __init__(self, held: str) -> None:
        super().__init__({"index.md": "# Hi\n"})
        self.held, self.is_held, self.release = held, asyncio.Event(), asyncio.Event()

    async def fetch(self, source, *, branch=""):
        if branch == self.held:
            self.is_held.set()
            await self.release.wait()
        return await super().fetch(source, branch=branch)


class OneModel:
    def __init__(self, model=None):
        self.model = model or FakeModel([NOTHING_TO_DO] * 10)

    def for_agent(self, _alias):
        return self.model


@asynccontextmanager
async def running(store, views, docs, *, concurrent_jobs=2, model=None):
    runner = JobRunner(
        store, views, JobPorts(OneModel(model), docs, FakeSearchIndex(), {"local": FakeCodeHost()}),
        JobSettings(concurrent_jobs, concurrent_jobs, Budgets(), "D <d@example.com>"),
        FakeInstances(),
    )  # fmt: skip
    task = asyncio.create_task(runner.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_job_keeps_to_its_requested_start_branch(store, followed):
    docs = FakeDocsSource({"index.md": "# Hi\n"})
    await make_project(store)
    await request(store, "j", "docs/one")
    await execute(store, PROJECTS, "p", ChangeProject(NOW, ref="gone"))
    async with running(store, followed, docs):
        assert await ended(store, "j") == "job-completed"


async def make_project(store, project_id="p", organization_id="o"):
    created = CreateProject(
        ProjectSettings(organization_id, "Guide", "repo", "main", "", f"guide-{project_id}", "local"), NOW
    )
    await execute(store, PROJECTS, project_id, created)


async def request(store, job_id, branch, *, project_id="p", organization_id="o"):
    command = RequestJob(
        organization_id, project_id, "repo", "main", "", "fake/model", (Message("user", "Look around"),), "Look around",
        branch, branch_named=True, as_draft=False, api_version=2, now=NOW,
    )  # fmt: skip
    await execute(store, JOBS, job_id, command)


async def ended(store, job_id, after=0):
    async with asyncio.timeout(60), aclosing(store.subscribe(stream=f"job-{job_id}", after=after)) as events:
        async for event in events:
            if event.type in ("job-completed", "job-failed"):
                return event.type
    raise AssertionError


class ThinkingModel(FakeModel):
    """Its replies take until ``release`` is set; it knows whether somebody stopped it."""

    def __init__(self, script):
        super().__init__(script)
        self.thinks, self.stopped, self.release = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def reply(self, request):
        self.thinks.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        async for chunk in super().reply(request):
            yield chunk


async def places(views, names, slots):
    return [(await find_job(views, name, slots)).queue_position for name in names]


async def test_jobs_that_wait_for_a_branch_leave_the_slots_to_others(store, followed):
    await make_project(store)
    docs = HeldDocsSource("docs/busy")
    for job_id in ("first", "second", "third"):
        await request(store, job_id, "docs/busy")
    await followed.wait_for(await store.head())
    async with running(store, followed, docs):
        await docs.is_held.wait()
        await request(store, "other", "docs/other")
        await followed.wait_for(await store.head())
        assert await places(followed, ("second", "third"), JobSlots(9, 9)) == [1, 2]
        assert await ended(store, "other") == "job-completed"
        docs.release.set()
        assert [await ended(store, job_id) for job_id in ("first", "second", "third")] == ["job-completed"] * 3


class StoreThatReadsOneSlowly:
    """The first job's stream takes as long to read as some twenty others do."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def fold_stream(self, stream, *arguments, **more):
        if stream == "job-first":
            for _ in range(20):
                await self._store.head()
        return await self._store.fold_stream(stream, *arguments, **more)


async def test_jobs_run_in_request_order_however_long_reading_takes(store, followed):
    await make_project(store)
    names = ("first", "second", "third")
    for name in names:
        await request(store, name, f"docs/{name}")
    await followed.wait_for(await store.head())
    docs, slow = FakeDocsSource({"index.md": "# Hi\n"}), StoreThatReadsOneSlowly(store)
    async with running(slow, followed, docs, concurrent_jobs=1):
        assert [await ended(store, name) for name in names] == ["job-completed"] * 3
    started = [event.stream for event in await store.read_all(category="job") if event.type == "job-started"]
    assert started == [f"job-{name}" for name in names]


class StoreThatHoldsOne(StoreThatReadsOneSlowly):
    """The first job's stream is not read until ``release`` is set."""

    def __init__(self, store):
        super().__init__(store)
        self.release = asyncio.Event()

    async def fold_stream(self, stream, *arguments, **more):
        if stream == "job-first":
            await self.release.wait()
        return await self._store.fold_stream(stream, *arguments, **more)


async def test_job_waits_for_no_other_organization_to_be_read(store, followed):
    await make_project(store)
    await make_project(store, "p2", "o2")
    holding = StoreThatHoldsOne(store)
    async with running(holding, followed, FakeDocsSource({"index.md": "# Hi\n"})):
        await request(store, "first", "docs/first")
        await request(store, "other", "docs/other", project_id="p2", organization_id="o2")
        assert await ended(store, "other") == "job-completed"
        holding.release.set()
        assert await ended(store, "first") == "job-completed"


async def test_job_taken_up_waits_for_no_other_organization(store, followed):
    await make_project(store)
    await make_project(store, "p2", "o2")
    await request(store, "first", "docs/first")
    await request(store, "other", "docs/other", project_id="p2", organization_id="o2")
    await followed.wait_for(await store.head(), 60)
    holding = StoreThatHoldsOne(store)
    async with running(holding, followed, FakeDocsSource({"index.md": "# Hi\n"})):
        assert await ended(store, "other") == "job-completed"
        holding.release.set()
        assert await ended(store, "first") == "job-completed"


async def test_a_job_that_somebody_ended_meanwhile_ends_no_other(store, followed):
    await make_project(store)
    docs = HeldDocsSource("docs/busy")
    async with running(store, followed, docs) as runner:
        await request(store, "ended", "docs/busy")
        await docs.is_held.wait()
        await execute(store, JOBS, "ended", FailJob("cancelled", "Not wanted any more.", NOW))
        docs.release.set()
        await request(store, "next", "docs/busy")
        assert await ended(store, "next") == "job-completed"
        assert not runner.done()


async def test_a_job_may_be_as_new_as_its_project(store, views):
    async with running(store, views, FakeDocsSource({"index.md": "# Hi\n"})):
        async with following(views):
            await make_project(store, "old")
            await request(store, "first", "docs/x", project_id="old")
            await ended(store, "first")
        await make_project(store)
        await request(store, "job", "docs/x")
        async with asyncio.timeout(60), aclosing(store.subscribe(stream="job-job")) as events:
            async for event in events:
                if event.type == "job-started":
                    break
        async with following(views):
            assert await ended(store, "job") == "job-completed"


@asynccontextmanager
async def following(views):
    task = asyncio.create_task(views.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_cancelling_stops_the_model_and_starts_the_next_job(store, followed):
    await make_project(store)
    model = ThinkingModel([NOTHING_TO_DO])
    async with running(store, followed, FakeDocsSource({"index.md": "# Hi\n"}), concurrent_jobs=1, model=model):
        await request(store, "cancelled", "docs/a")
        await model.thinks.wait()
        await request(store, "next", "docs/b")
        await cancel_job(store, "cancelled", Metadata())
        async with asyncio.timeout(60):
            await model.stopped.wait()
        model.release.set()
        assert await ended(store, "next") == "job-completed"
    types = [event.type for event in await store.read_stream("job-cancelled")]
    assert types[-1] == "job-failed"
    assert "job-interrupted" not in types


class StoreThatWasEmpty:
    """Its head is what it was before anything was appended, as when a request comes while a runner starts."""

    def __init__(self, store):
        self._store = store

    async def head(self):
        return 0

    def __getattr__(self, name):
        return getattr(self._store, name)


async def test_job_requested_as_the_runner_starts_can_be_cancelled(store, followed):
    await make_project(store)
    await request(store, "job", "docs/a")
    await followed.wait_for(await store.head())
    model = ThinkingModel([])
    async with running(StoreThatWasEmpty(store), followed, FakeDocsSource({"index.md": "# Hi\n"}), model=model):
        await model.thinks.wait()
        await cancel_job(store, "job", Metadata())
        async with asyncio.timeout(60):
            await model.stopped.wait()


async def test_another_process_can_cancel_a_job(store, followed, tmp_path):
    await make_project(store)
    model = ThinkingModel([])
    async with running(store, followed, FakeDocsSource({"index.md": "# Hi\n"}), model=model):
        await request(store, "job", "docs/a")
        await model.thinks.wait()
        other = await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db")
        await cancel_job(other, "job", Metadata())
        await other.close()
        async with asyncio.timeout(60):
            await model.stopped.wait()


async def test_a_job_that_waits_can_be_cancelled_and_is_never_begun(store, followed):
    await make_project(store)
    model = ThinkingModel([NOTHING_TO_DO])
    async with running(store, followed, FakeDocsSource({"index.md": "# Hi\n"}), concurrent_jobs=1, model=model):
        await request(store, "first", "docs/a")
        await model.thinks.wait()
        await request(store, "second", "docs/b")
        await cancel_job(store, "second", Metadata())
        model.release.set()
        assert await ended(store, "first") == "job-completed"
    assert [event.type for event in await store.read_stream("job-second")] == ["job-requested", "job-failed"]


async def test_job_cancelled_and_continued_at_once_runs_once(store, followed):
    await make_project(store)
    model = ThinkingModel([NOTHING_TO_DO] * 2)  # the call that is stopped may have got its reply just before
    async with running(store, followed, FakeDocsSource({"index.md": "# Hi\n"}), model=model):
        await request(store, "job", "docs/a")
        await model.thinks.wait()
        await cancel_job(store, "job", Metadata())
        position = (await add_message(store, "job", "Go on", Metadata())).position
        model.release.set()
        assert await ended(store, "job", after=position) == "job-completed"
    types = [event.type for event in await store.read_stream("job-job")]
    assert types.count("job-failed") == types.count("job-completed") == 1
    assert types.count("job-started") == 2


async def test_a_message_reopens_a_job_of_this_runner(store, followed):
    await make_project(store)
    async with running(store, followed, FakeDocsSource({"index.md": "# Hi\n"})):
        await request(store, "job", "docs/a")
        assert await ended(store, "job") == "job-completed"
        position = (await add_message(store, "job", "And now?", Metadata())).position
        assert await ended(store, "job", after=position) == "job-completed"
    await followed.wait_for(await store.head())
    row = await find_job(followed, "job", JobSlots(1, 1))
    assert (row.status, row.queue_position) == ("completed", None)


async def test_jobs_that_wait_know_their_place(store, followed):
    await make_project(store)
    model = ThinkingModel([NOTHING_TO_DO] * 3)
    async with running(store, followed, FakeDocsSource({"index.md": "# Hi\n"}), concurrent_jobs=1, model=model):
        await request(store, "a", "docs/a")
        await model.thinks.wait()
        for name in ("b", "c"):
            await request(store, name, f"docs/{name}")
        await followed.wait_for(await store.head())
        assert await places(followed, "abc", JobSlots(1, 1)) == [None, 1, 2]
        assert await places(followed, "abc", JobSlots(2, 2)) == [None, None, 2]
        assert await places(followed, "abc", JobSlots(3, 3)) == [None, None, None]
        assert await places(followed, "abc", JobSlots(3, 1)) == [None, 1, 2]
        assert await places(followed, "abc", JobSlots(3, 3, 1)) == [None, 1, 2]
        await cancel_job(store, "b", Metadata())
        await followed.wait_for(await store.head())
        assert await places(followed, "c", JobSlots(1, 1)) == [1]
        model.release.set()
        assert await ended(store, "c") == "job-completed"


async def test_deeply_nested_tool_arguments_spoil_no_job(store, followed):
    nested = ToolCall("deep", "write", '{"path": "new.md", "text": ' + "[" * 3000 + "]" * 3000 + "}")
    await make_project(store)
    await request(store, "j", "docs/j")
    model = ThinkingModel([calls(nested), *[NOTHING_TO_DO] * 2])  # the first runner may ask again before it ends
    async with running(store, followed, FakeDocsSource({"index.md": "# Hi\n"}), model=model):
        model.release.set()
        async with asyncio.timeout(60), aclosing(store.subscribe(stream="job-j")) as events:
            async for event in events:
                if event.type == "tool-returned":
                    break
    async with running(store, followed, FakeDocsSource({"index.md": "# Hi\n"}), model=model):
        assert await ended(store, "j") == "job-completed"
    encoder = JobStreamEncoder("j")
    async with aclosing(events_of(store, await find_job(followed, "j", JobSlots(9, 9)), 0)) as events:
        told = [line async for at, event in events for line in [live_event(at, event), *encoder.encode(event)]]
    assert b"nested deeper than 100" in b"".join(told)
