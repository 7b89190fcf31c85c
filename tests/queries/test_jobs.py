"""Jobs as they are read: ended ones from memory, until the next event of the job or an erasure."""

import asyncio
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from eventstore import NewEvent, SQLiteEventStore, Views, execute
from service.domain.errors import NotFound
from service.domain.jobs.decider import ArchiveJob, CancelJob, Message, RequestJob
from service.queries.jobs.jobs import JobReader, JobSlots
from service.queries.jobs.organization_jobs import follow_organization_jobs, follow_pull_request
from service.queries.read_models import read_models
from service.streams import JOBS
from tests.wire.sample_jobs import FAILED, STEPS, WITH_PULL_REQUEST

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REQUEST = RequestJob(
    "org", "project", "/repository", "main", "", "builtin/editor", (Message("user", "Look"),), "Title", "docs/x", False,
    False, 2, NOW,
)  # fmt: skip


async def opened(folder):
    return await SQLiteEventStore.open(folder / "events.db", vault_path=folder / "keys.db")


@pytest.fixture
async def store(tmp_path):
    async with await opened(tmp_path) as store:
        yield store


@pytest.fixture
async def views(store, tmp_path):
    async with await Views.open(tmp_path / "views.db", store, read_models()) as views, running(views.run()):
        yield views


@pytest.fixture
async def reader(store, views):
    reader = JobReader(store, views, JobSlots(9, 9))
    await reader.load()
    async with running(reader.run()):
        yield reader


@asynccontextmanager
async def running(work):
    task = asyncio.create_task(work)
    yield
    task.cancel()
    await asyncio.wait([task])


async def end(store, job_id="one"):
    await execute(store, JOBS, job_id, REQUEST)
    await execute(store, JOBS, job_id, CancelJob(NOW))


@pytest.mark.parametrize("stream", ["job-one", "erasure-job-one"])
async def test_ended_job_is_kept_until_it_changes_or_is_erased(tmp_path, store, reader, stream):
    await end(store)
    while (kept := await reader.read("project", "one")) is not await reader.read("project", "one"):  # noqa: ASYNC110
        await asyncio.sleep(0)  # what was just recorded is still on its way to the reader
    async with await opened(tmp_path) as other:
        version = await other.stream_version(stream)
        await other.append(stream, [NewEvent("anything", b"{}")], expected_version=version)
        async with asyncio.timeout(60):
            while await reader.read("project", "one") is kept:  # noqa: ASYNC110  (it reports to nothing)
                await asyncio.sleep(0.01)


async def test_active_job_is_read_again_each_time(store, reader):
    await execute(store, JOBS, "one", REQUEST)
    assert (await reader.read("project", "one")).view.status == "active"
    await execute(store, JOBS, "one", CancelJob(NOW))
    assert (await reader.read("project", "one")).view.status == "failed"


async def test_job_of_another_project_is_not_found(store, reader):
    await end(store)
    for _ in range(2):
        await reader.read("project", "one")
        with pytest.raises(NotFound):
            await reader.read("another", "one")


async def test_changed_job_shows_the_callers_own_change(store, reader):
    await end(store)
    assert (await reader.read("project", "one")).view.archived_at is None
    await execute(store, JOBS, "one", ArchiveJob(NOW))
    assert (await reader.read_changed("project", "one")).view.archived_at == "2026-01-02T00:00:00.000Z"


async def test_job_is_encoded_once(store, reader):
    await end(store)
    job = await reader.read("project", "one")
    assert job.encoded()[0] is job.encoded()[0]
    assert job.as_begun().encoded() != job.encoded()


async def test_jobs_of_others_wake_no_follower_of_an_organization(store, views):
    changes = follow_organization_jobs(store, views, "org", after=0, pause_seconds=0)
    async with aclosing(changes), asyncio.timeout(60):
        await execute(store, JOBS, "theirs", replace(REQUEST, organization_id="another"))
        seen = asyncio.ensure_future(anext(changes))
        await views.wait_for(await store.head())
        await execute(store, JOBS, "theirs", CancelJob(NOW))
        await execute(store, JOBS, "one", REQUEST)
        assert await seen == await store.head()
        await execute(store, JOBS, "one", CancelJob(NOW))
        assert await anext(changes) == await store.head()


async def recorded(store, job_id, events):
    await store.append(JOBS.stream(job_id), [JOBS.codec.encode(event) for event in events], expected_version=0)


async def test_page_of_a_pull_request_hears_of_a_job_that_came_and_ended_between_two_looks(store, views):
    await recorded(store, "one", WITH_PULL_REQUEST)
    changes = follow_pull_request(store, views, "p1", 7, pause_seconds=0)
    async with aclosing(changes), asyncio.timeout(60):
        await anext(changes)
        await recorded(store, "another", [*STEPS[:2], FAILED[-1]])
        await anext(changes)
