"""Jobs of several instances that share a log."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from eventstore import execute, load
from service.agent.loop.budgets import Budgets
from service.domain.errors import Conflict
from service.domain.jobs.decider import FailJob, InterruptJob, Running, StartJob
from service.ports.shared.instances import LEASE_SECONDS
from service.streams import JOBS
from service.workers.jobs.recorder import HELD_SECONDS, StepRecorder
from service.workers.jobs.runner import JobPorts, JobRunner, JobSettings
from tests.fakes.clock import MovedClock
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.instances import FakeInstances
from tests.fakes.search_index import FakeSearchIndex
from tests.workers.test_job_runner import NOTHING_TO_DO, NOW, OneModel, ThinkingModel, ended, make_project, request


class Turns:
    """A sleep that ends when the test says so."""

    def __init__(self):
        self._waiting = asyncio.Queue()

    async def sleep(self, _seconds):
        turn = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait(turn)
        await turn

    async def next(self):
        (await self._waiting.get()).set_result(None)


@asynccontextmanager
async def running(store, views, instances, *, model=None, turns=None):
    docs = FakeDocsSource({"index.md": "# Hi\n"})
    runner = JobRunner(
        store, views, JobPorts(OneModel(model), docs, FakeSearchIndex(), {"local": FakeCodeHost()}),
        JobSettings(2, 2, Budgets(), "D <d@example.com>"), instances, sleep=(turns or Turns()).sleep,
    )  # fmt: skip
    task = asyncio.create_task(runner.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def take_over(store, *, by="there"):
    """Do what another instance does that counts this one as ended."""
    await execute(store, JOBS, "j", InterruptJob("here", NOW))
    await execute(store, JOBS, "j", StartJob(by, NOW))


@pytest.mark.parametrize("is_early", [True, False], ids=["begun before this one", "begun beside this one"])
async def test_job_of_an_instance_that_ends_goes_on_here(store, followed, is_early):
    instances, turns = FakeInstances(), Turns()
    instances.begin("there")
    await make_project(store)
    thinking = ThinkingModel([NOTHING_TO_DO])
    if is_early:
        await request(store, "j", "docs/j")
        await execute(store, JOBS, "j", StartJob("there", NOW))
        await followed.wait_for(await store.head())
    async with running(store, followed, instances, turns=turns, model=thinking):
        if not is_early:
            await request(store, "j", "docs/j")
            await thinking.thinks.wait()
            await take_over(store)
            await thinking.stopped.wait()
        thinking.release.set()
        await turns.next()
        await turns.next()
        assert (await load(store, JOBS, "j")).state.instance == "there"
        instances.end("there")
        await turns.next()
        assert await ended(store, "j") == "job-completed"


async def test_job_that_another_instance_took_over_stops_here(store, followed):
    instances, model = FakeInstances(), ThinkingModel([NOTHING_TO_DO])
    instances.begin("there")
    await make_project(store)
    await request(store, "j", "docs/j")
    async with running(store, followed, instances, model=model):
        await model.thinks.wait()
        await take_over(store)
        await model.stopped.wait()
    state = (await load(store, JOBS, "j")).state
    assert isinstance(state, Running)
    assert state.instance == "there"


@pytest.fixture
async def held(store):
    """Return a job that runs here, as its recorder, with the instances and the clock."""
    await make_project(store)
    await request(store, "j", "docs/j")
    instances, clock = FakeInstances(), MovedClock()
    recorder = StepRecorder(store, "j", instances, clock, retry_seconds=0.0)
    await recorder.start()
    return recorder, instances, clock


async def test_paused_job_goes_on_once_its_lease_is_certain(held):
    recorder, instances, clock = held
    instances.be(is_certain=False)
    confirming = asyncio.create_task(recorder.confirm())
    while clock.seconds() < LEASE_SECONDS:  # noqa: ASYNC110 - the clock says nothing
        await asyncio.sleep(0)
    assert not confirming.done()
    instances.be(is_certain=True)
    await confirming


async def test_paused_job_that_was_taken_over_does_not_go_on(store, held):
    recorder, instances, _ = held
    instances.be(is_certain=False)
    confirming = asyncio.create_task(recorder.confirm())
    await take_over(store)
    instances.be(is_certain=True)
    with pytest.raises(Conflict) as refused:
        await confirming
    assert refused.value.code == "not_held"


async def test_job_that_was_taken_over_long_ago_does_not_go_on(store, held):
    recorder, _, clock = held
    await take_over(store, by="here")  # in another run
    clock.move(seconds=HELD_SECONDS)
    with pytest.raises(Conflict) as refused:
        await recorder.confirm()
    assert refused.value.code == "not_held"


async def test_ended_job_is_not_confirmed(store, held):
    recorder, _, clock = held
    await execute(store, JOBS, "j", FailJob("cancelled", "The job was cancelled.", NOW))
    clock.move(seconds=HELD_SECONDS)
    with pytest.raises(Conflict):
        await recorder.confirm()


async def test_parked_job_goes_on_elsewhere_before_its_instance_ends(store, followed):
    leaving, staying = FakeInstances("leaving"), FakeInstances("staying")
    staying.begin("leaving")  # and does not end: nothing is taken over after a lease
    await make_project(store)
    await request(store, "j", "docs/j")
    thinking = ThinkingModel([NOTHING_TO_DO])
    async with running(store, followed, leaving, model=thinking) as draining:
        await thinking.thinks.wait()
        other = ThinkingModel([NOTHING_TO_DO])
        other.release.set()
        async with running(store, followed, staying, model=other):
            draining.cancel()
            assert await ended(store, "j") == "job-completed"
