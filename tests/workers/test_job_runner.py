"""Jobs side by side: none holds up, or ends, what has nothing to do with it."""

import asyncio
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

from eventstore import execute
from service.agent.loop import Budgets
from service.domain.jobs import FailJob, Message, RequestJob
from service.domain.projects import CreateProject
from service.streams import JOBS, PROJECTS
from service.workers.job_runner import JobRunner
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
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
    def __init__(self):
        self.model = FakeModel([NOTHING_TO_DO] * 10)

    def for_agent(self, _alias):
        return self.model


@asynccontextmanager
async def running(store, views, docs, *, concurrent_jobs=2):
    runner = JobRunner(
        store, views, models=OneModel(), docs=docs, index=FakeSearchIndex(), code_hosts={"local": FakeCodeHost()},
        instance="here", is_alive=lambda _: False, concurrent_jobs=concurrent_jobs,
        concurrent_jobs_per_project=concurrent_jobs, budgets=Budgets(), author="D <d@example.com>",
    )  # fmt: skip
    task = asyncio.create_task(runner.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def make_project(store):
    await execute(store, PROJECTS, "p", CreateProject("o", "Guide", "repo", "main", "", "guide", "local", NOW))


async def request(store, job_id, branch):
    command = RequestJob(
        "o", "p", "repo", "main", "", "fake/model", (Message("user", "Look around"),), "Look around", branch,
        branch_named=True, as_draft=False, api_version=2, now=NOW,
    )  # fmt: skip
    await execute(store, JOBS, job_id, command)


async def ended(store, job_id):
    async with asyncio.timeout(20), aclosing(store.subscribe(stream=f"job-{job_id}")) as events:
        async for event in events:
            if event.type in ("job-completed", "job-failed"):
                return event.type
    raise AssertionError


async def test_jobs_that_wait_for_a_branch_leave_the_slots_to_others(store, followed):
    await make_project(store)
    docs = HeldDocsSource("docs/busy")
    async with running(store, followed, docs):
        for job_id in ("first", "second", "third"):
            await request(store, job_id, "docs/busy")
        await docs.is_held.wait()
        await request(store, "other", "docs/other")
        assert await ended(store, "other") == "job-completed"
        docs.release.set()
        assert [await ended(store, job_id) for job_id in ("first", "second", "third")] == ["job-completed"] * 3


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
        await make_project(store)
        await request(store, "job", "docs/x")
        async with asyncio.timeout(20), aclosing(store.subscribe(stream="job-job")) as events:
            async for event in events:
                if event.type == "job-started":
                    break
        following = asyncio.create_task(views.run())
        try:
            assert await ended(store, "job") == "job-completed"
        finally:
            following.cancel()
            await asyncio.wait([following])
