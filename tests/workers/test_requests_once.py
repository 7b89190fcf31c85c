"""The same request sent twice: at once, by several processes, to a disk that is full in between."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

from eventstore import Metadata, OutcomeUnknown, SQLiteEventStore, StoreFull, execute, load
from service.commands.jobs.jobs import NewJob, add_message, request_job
from service.domain.access.idempotency import KeyReused, claim_id, fingerprint_of
from service.domain.jobs.decider import Message, RequestJob
from service.queries.projects import get_project
from service.streams import JOBS, REQUESTS
from tests.workers.test_job_runner import OneModel, make_project

NEW = NewJob((Message("user", "Look around"),), api_version=2)
OTHER = NewJob((Message("user", "Look elsewhere"),), api_version=2)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
async def project(store, followed):
    await make_project(store)
    await followed.wait_for(await store.head())
    return await get_project(followed, "p")


async def jobs_in(store):
    return {event.stream for event in await store.read_all(category="job") if event.type == "job-requested"}


async def test_requests_of_several_processes_with_one_key_are_one_job(store, project, tmp_path):
    async with AsyncExitStack() as stack:
        stores = [store]
        for _ in range(2):
            other = await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db")
            stack.push_async_callback(other.close)
            stores.append(other)
        asked = [request_job(one, OneModel(), project, NEW, Metadata(), key="k") for one in stores for _ in range(10)]
        made = await asyncio.gather(*asked)
    assert {f"job-{job.id}" for job in made} == await jobs_in(store)
    assert len({(job.id, job.branch) for job in made}) == 1


async def test_different_request_with_the_same_key_is_refused(store, project):
    asked = [request_job(store, OneModel(), project, new, Metadata(), key="k") for new in (NEW, OTHER)]
    made = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(one, KeyReused) for one in made].count(True) == 1
    assert len(await jobs_in(store)) == 1


async def test_a_request_that_was_not_recorded_left_no_claim(store, project):
    class Full:
        def __getattr__(self, name):
            return getattr(store, name)

        async def append_all(self, writes):
            raise StoreFull("no room left")

    with pytest.raises(StoreFull):
        await request_job(Full(), OneModel(), project, NEW, Metadata(), key="k")
    assert await store.stream_version(REQUESTS.stream(claim_id("p", "k"))) == 0
    assert f"job-{(await request_job(store, OneModel(), project, OTHER, Metadata(), key='k')).id}" in await jobs_in(
        store
    )


class LosingAnswers:
    """The store, which stores the next append, or does not, and gives no answer."""

    def __init__(self, store, *, stores):
        self._store, self._stores, self.left = store, stores, 1

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append_all(self, writes):
        if self.left == 0:
            return await self._store.append_all(writes)
        self.left -= 1
        if self._stores:
            await self._store.append_all(writes)
        raise OutcomeUnknown("the answer was lost")


@pytest.mark.parametrize("stores", [True, False])
async def test_request_of_unknown_outcome_sent_again_is_one_job(store, project, stores):
    losing = LosingAnswers(store, stores=stores)
    with pytest.raises(OutcomeUnknown):
        await request_job(losing, OneModel(), project, NEW, Metadata(), key="k")
    job = await request_job(losing, OneModel(), project, NEW, Metadata(), key="k")
    assert await jobs_in(store) == {f"job-{job.id}"}


async def test_messages_at_once_are_each_recorded_once(store, project):
    job = await request_job(store, OneModel(), project, NEW, Metadata())
    asked = [
        add_message(store, job.id, f"Message {number % 5}", Metadata(), key=f"k{number % 5}") for number in range(20)
    ]
    await asyncio.gather(*asked)
    state = (await load(store, JOBS, job.id)).state
    assert sorted(message.text for message in state.work.waiting) == [f"Message {number}" for number in range(5)]


async def test_keys_of_two_projects_never_meet(store, project):
    command = RequestJob(
        "o", "q", "repo", "main", "", "fake/model", NEW.messages, "x", "docs/x", False, False, 2, NOW,
    )  # fmt: skip
    await execute(store, JOBS, "theirs", command)
    await add_message(store, "theirs", "Hello", Metadata(), key="k")
    mine = await request_job(store, OneModel(), project, NEW, Metadata(), key="k")
    assert mine.id != "theirs"


async def test_log_holds_neither_the_key_nor_what_was_asked(store, project):
    await request_job(store, OneModel(), project, NEW, Metadata(), key="a-key-of-mine")
    claims = await store.read_all(category="request")
    assert len(claims) == 1
    assert b"a-key-of-mine" not in claims[0].data
    assert "a-key-of-mine" not in claims[0].stream
    assert fingerprint_of("other", b"x") != fingerprint_of("key", b"x")
