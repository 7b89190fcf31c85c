"""Jobs whose model, git server or code host is away for a while: they wait, without a slot, and go on."""

import asyncio
from contextlib import aclosing, asynccontextmanager
from datetime import datetime, timedelta

import pytest

from eventstore import Metadata, StoreCorrupt, execute
from service.agent.loop.budgets import Budgets
from service.commands.jobs.jobs import add_message, cancel_job
from service.domain.errors import Forbidden, NotFound, RateLimited, Unavailable
from service.domain.jobs.decider import Message, RequestJob
from service.domain.projects.decider import CreateProject
from service.domain.projects.settings import ProjectSettings
from service.queries.jobs.jobs import JobSlots, find_job
from service.streams import JOBS, PROJECTS, decoded
from service.workers.jobs.runner import JobPorts, JobRunner, JobSettings
from tests.fakes.clock import START, MovedClock
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.instances import FakeInstances
from tests.fakes.model import FakeModel, call, calls
from tests.fakes.search_index import FakeSearchIndex

WRITES = (
    calls(call("write", path="new.md", text="# New\n")),
    calls(call("finish", title="Add a page", summary="Added.")),
)


class Town:
    """The parts of one job's world. Each of its three outside parts is away until a time."""

    def __init__(self, *, away: str = "", minutes: float = 0) -> None:
        self.clock, self.until = MovedClock(), START + timedelta(minutes=minutes)
        self.model = Away(FakeModel(list(WRITES)), self, {"reply"} if away == "model" else set())
        self.docs = Away(FakeDocsSource({"index.md": "# Hi\n"}), self, {"fetch", "push"} if away == "git" else set())
        self.host = Away(FakeCodeHost(), self, {"open_pull_request"} if away == "code_host" else set())

    def for_agent(self, _alias):
        return self.model

    @property
    def is_away(self) -> bool:
        return self.clock.now() < self.until


class Away:
    """A part that raises at some of its uses while the town says so."""

    def __init__(self, part, town, uses, error=lambda: Unavailable("it is down")):
        self._part, self._town, self._uses, self.error = part, town, uses, error

    def __getattr__(self, name):
        if name in self._uses and self._town.is_away:
            raise self.error()
        return getattr(self._part, name)


@asynccontextmanager
async def running(store, views, town, *, retry_hours=24.0, jobs=2):
    runner = JobRunner(
        store, views, JobPorts(town, town.docs, FakeSearchIndex(), {"local": town.host}, clock=town.clock),
        JobSettings(jobs, jobs, Budgets(minutes=5), "D <d@example.com>", retry_hours=retry_hours),
        FakeInstances(),
    )  # fmt: skip
    task = asyncio.create_task(runner.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def request(store, job_id="j"):
    command = RequestJob(
        "o", "p", "repo", "main", "", "fake/model", (Message("user", "Add a page"),), "Add a page", f"docs/{job_id}",
        branch_named=False, as_draft=False, api_version=2, now=START,
    )  # fmt: skip
    await execute(store, JOBS, job_id, command)


async def make_project(store):
    await execute(
        store, PROJECTS, "p", CreateProject(ProjectSettings("o", "Guide", "repo", "main", "", "guide", "local"), START)
    )


async def events_until(store, tag, job_id="j"):
    found = []
    async with asyncio.timeout(180), aclosing(store.subscribe(stream=f"job-{job_id}")) as events:
        async for recorded in events:
            found += [event for _, event in decoded(JOBS, [recorded])]
            if recorded.type in (tag, "job-failed"):
                return found
    raise AssertionError


def tags(events):
    return [event.__struct_config__.tag for event in events]


def waits(events):
    return [event for event in events if event.__struct_config__.tag == "job-waiting"]


@pytest.mark.parametrize("away", ["model", "git", "code_host"])
@pytest.mark.parametrize("minutes", [2, 10, 60])
async def test_job_outlasts_an_outage(store, followed, away, minutes):
    town = Town(away=away, minutes=minutes)
    await make_project(store)
    await request(store)
    async with running(store, followed, town):
        events = await events_until(store, "job-completed")
    assert tags(events)[-1] == "job-completed"
    assert len(town.host.pull_requests) == 1
    assert len(town.docs.pushes) == 1
    waited = waits(events)
    assert {event.dependency for event in waited} == {away}
    assert [event.tries for event in waited] == list(range(1, len(waited) + 1))
    assert {event.since for event in waited} == {START}
    assert minutes * 60 <= town.clock.seconds() <= minutes * 60 * 2 + 10


@pytest.mark.parametrize(
    "error", [Forbidden("no"), NotFound("gone"), Unavailable("The reply has no end.", code="model_reply_too_long")]
)
async def test_what_cannot_pass_fails_at_once(store, followed, error):
    town = Town(away="model", minutes=60)
    town.model.error = lambda: error
    await make_project(store)
    await request(store)
    async with running(store, followed, town):
        events = await events_until(store, "job-failed")
    assert (events[-1].code, waits(events)) == (error.code, [])


async def test_outage_of_more_hours_than_set_fails_the_job(store, followed):
    town = Town(away="model", minutes=600)
    await make_project(store)
    await request(store)
    async with running(store, followed, town, retry_hours=2):
        events = await events_until(store, "job-completed")
    assert (events[-1].code, events[-1].message) == ("unavailable", "it is down")
    assert events[-1].failed_at == START + timedelta(hours=2)


async def test_pause_is_what_the_provider_asks_for(store, followed):
    town = Town(away="model", minutes=5)
    town.model.error = lambda: RateLimited("later", retry_after_seconds=1234)
    await make_project(store)
    await request(store)
    async with running(store, followed, town):
        events = await events_until(store, "job-completed")
    (wait,) = waits(events)
    assert wait.next_try_at == START + timedelta(seconds=1234)


async def waiting_job(store, followed, town):
    """A job that waits, with the clock held."""
    town.clock.is_held = True
    await make_project(store)
    await request(store)
    await events_until(store, "job-waiting")
    await followed.wait_for(await store.head())
    return (await find_job(followed, "j", JobSlots(9, 9))).waiting


async def test_job_shows_what_it_waits_for(store, followed):
    town = Town(away="code_host", minutes=60)
    async with running(store, followed, town):
        shown = await waiting_job(store, followed, town)
    assert (shown.waits_for, shown.reason) == ("code_host", "it is down")
    assert shown.since == "2026-01-02T00:00:00.000Z"
    assert timedelta(seconds=1) <= datetime.fromisoformat(shown.next_try_at) - START <= timedelta(seconds=2)


async def test_job_that_waits_holds_no_slot(store, followed):
    town = Town(away="code_host", minutes=60)
    async with running(store, followed, town, jobs=1):
        await waiting_job(store, followed, town)
        town.model = FakeModel([calls(call("finish", title="Nothing", summary="Nothing to do."))])
        await request(store, "other")
        assert tags(await events_until(store, "job-completed", "other"))[-1] == "job-completed"


async def test_wait_goes_on_after_a_restart(store, followed):
    town = Town(away="model", minutes=60)
    async with running(store, followed, town):
        await waiting_job(store, followed, town)
        town.clock.move(hours=2)
    town.clock = MovedClock(town.clock.now())
    async with running(store, followed, town):
        events = await events_until(store, "job-completed")
    assert tags(events)[-1] == "job-completed"
    assert len(waits(events)) == 1
    assert "job-interrupted" not in tags(events)


async def test_message_ends_the_pause_at_once(store, followed):
    town = Town(away="model", minutes=60)
    async with running(store, followed, town):
        await waiting_job(store, followed, town)
        town.until = START
        await add_message(store, "j", "Now", Metadata())
        events = await events_until(store, "job-completed")
    assert (tags(events)[-1], town.clock.slept) == ("job-completed", [])


async def test_cancelled_job_stops_waiting(store, followed):
    town = Town(away="model", minutes=60)
    async with running(store, followed, town) as runner:
        await waiting_job(store, followed, town)
        await cancel_job(store, "j", Metadata())
        town.clock.release()
        events = await events_until(store, "job-failed")
        assert (events[-1].code, runner.done()) == ("cancelled", False)
    assert "job-resumed" not in tags(events)


class DamagedStore:
    """The record of one job cannot be read once ``is_damaged`` is set."""

    def __init__(self, store):
        self._store, self.is_damaged = store, False

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def fold_stream(self, stream, *arguments, **more):
        if self.is_damaged and stream == "job-j":
            raise StoreCorrupt("its record is damaged")
        return await self._store.fold_stream(stream, *arguments, **more)


async def test_damaged_job_that_waits_ends_no_other(store, followed):
    town, damaged = Town(away="model", minutes=60), DamagedStore(store)
    async with running(damaged, followed, town) as runner:
        await waiting_job(store, followed, town)
        damaged.is_damaged = True
        town.clock.release()
        await request(store, "other")
        assert tags(await events_until(store, "job-completed", "other"))[-1] == "job-completed"
        assert not runner.done()


@pytest.mark.parametrize("is_earlier", [True, False])
async def test_damaged_job_that_is_taken_up_ends_no_other(store, followed, is_earlier):
    await make_project(store)
    damaged = DamagedStore(store)
    damaged.is_damaged = True
    if is_earlier:
        await request(store)
    async with running(damaged, followed, Town()) as runner:
        if not is_earlier:
            await request(store)
        await request(store, "other")
        assert tags(await events_until(store, "job-completed", "other"))[-1] == "job-completed"
        assert not runner.done()


class LostAnswers(FakeDocsSource):
    """It takes the push, and the answer is lost."""

    def __init__(self, times):
        super().__init__({"index.md": "# Hi\n"})
        self.times = times

    async def push(self, source, *, branch, commit):
        await super().push(source, branch=branch, commit=commit)
        if self.times:
            self.times -= 1
            raise Unavailable("hung up")


async def test_push_whose_answer_was_lost_is_looked_up(store, followed):
    town = Town()
    town.docs = LostAnswers(1)
    await make_project(store)
    await request(store)
    async with running(store, followed, town):
        events = await events_until(store, "job-completed")
    assert tags(events).count("branch-pushed") == tags(events).count("committed") == 1
    assert (waits(events), len(town.docs.pushes), len(town.host.pull_requests)) == ([], 1, 1)
