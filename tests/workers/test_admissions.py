"""Requests at the door: as many as the limits say, to the last one, whoever counts and whatever ends in between."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from eventstore import Metadata, NewEvent, OutcomeUnknown, SQLiteEventStore, Views, WrongExpectedVersion
from service.adapters.postgres.tables import Tables
from service.adapters.postgres.turns import TableTurns
from service.domain.access.usage import Limits, SearchRequest
from service.domain.errors import Unavailable
from service.projections import all_projections
from service.projections.usage import UsageView
from service.queries.access.usage import NEWEST, accepted_after
from service.runtime.system import now
from service.workers.admission.admissions import STREAM, Admissions, OverLimit
from tests.eventstore.backends import addresses, opened_tables
from tests.fakes.brief_counts import FakeBriefCounts
from tests.workers.admitter import REQUEST, admissions_of, ask, something

FULL = int(os.environ.get("LIMITS_TEST_REQUESTS", "400"))
"""The limit of the test with several processes; 10000 is the service's own."""
OVER = 50
ADMITTER = Path(__file__).with_name("admitter.py")


@asynccontextmanager
async def opened(data, limits, clock=now):
    """A store, and who lets in at it."""
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        admissions = await admissions_of(data, limits, store, clock)
        letting_in = asyncio.create_task(admissions.run())
        yield store, admissions
        letting_in.cancel()
        await asyncio.wait([letting_in])


def accepted_in_log(data):
    """Accepted requests, and what they asked for: always as many."""
    with closing(sqlite3.connect(data / "events.db")) as db:
        counts = dict(db.execute("SELECT category, count(*) FROM events GROUP BY category"))
    assert counts.get("usage", 0) == counts.get("asked", 0)
    return counts.get("usage", 0)


async def test_all_at_once_exactly_the_limit_is_accepted(tmp_path):
    async with opened(tmp_path, Limits(100, 0, 0, 0)) as (_, admissions):
        outcomes = await asyncio.gather(*(ask(admissions) for _ in range(130)))
    assert sum(outcomes) == 100
    assert accepted_in_log(tmp_path) == 100


async def test_each_of_a_batch_is_answered_with_its_own_position(tmp_path):
    async with opened(tmp_path, Limits(100, 0, 0, 0)) as (store, admissions):
        asked = [something() for _ in range(30)]
        done = await asyncio.gather(*(admissions.append(REQUEST, Metadata(), [write]) for write in asked))
        for write, appended in zip(asked, done, strict=True):
            [recorded] = await store.read_stream(write.stream)
            assert (recorded.position, recorded.stream_version) == (appended.position, appended.stream_version)


@pytest.fixture
async def instances(tmp_path):
    """Three instances of one log in PostgreSQL, which take turns."""
    async with AsyncExitStack() as stack:
        admissions = []
        for name in ("one", "two", "three"):
            store = await opened_tables(tmp_path)
            stack.push_async_callback(store.close)
            tables = await Tables.open(addresses(tmp_path)[0].text, "service_log")
            stack.push_async_callback(tables.close)
            (tmp_path / name).mkdir()
            one = await admissions_of(tmp_path / name, Limits(200, 0, 0, 0), store, turns=TableTurns(tables))
            for run in (one.run, one.follow):
                stack.push_async_callback(cancelled, asyncio.create_task(run()))
            admissions.append(one)
        yield admissions


async def cancelled(task):
    task.cancel()
    await asyncio.wait([task])


async def test_three_instances_accept_exactly_the_limit(instances):
    outcomes = await asyncio.gather(*(ask(one) for one in instances for _ in range(100)))
    assert sum(outcomes) == 200
    for one in instances:
        assert not await ask(one)


async def test_what_one_instance_accepts_shows_at_the_others(instances):
    one, *others = instances
    assert all([await ask(one) for _ in range(5)])
    async with asyncio.timeout(60):
        for other in others:
            while other.standing(REQUEST).remaining != 195:  # noqa: ASYNC110  (the events come when they come)
                await asyncio.sleep(0)


async def test_instances_count_by_one_clock_whatever_their_own_say(tmp_path):
    """One is two hours ahead: by its own clock, what the other has accepted would have left the hour."""
    async with AsyncExitStack() as stack:
        both = []
        for hours in (0, 2):
            store = await opened_tables(tmp_path)
            stack.push_async_callback(store.close)
            tables = await Tables.open(addresses(tmp_path)[0].text, "service_log")
            stack.push_async_callback(tables.close)
            (tmp_path / str(hours)).mkdir()
            both.append(
                await admissions_of(
                    tmp_path / str(hours), Limits(0, 3, 0, 0), store,
                    lambda hours=hours: now() + timedelta(hours=hours), turns=TableTurns(tables),
                )
            )  # fmt: skip
            for run in (both[-1].run, both[-1].follow):
                stack.push_async_callback(cancelled, asyncio.create_task(run()))
        one, ahead = both
        assert [await ask(one) for _ in range(2)] == [True, True]
        assert [await ask(ahead) for _ in range(3)] == [True, False, False]
        assert [await ask(one) for _ in range(2)] == [False, False]


class LockTurns:
    """Turns of instances in one process."""

    def __init__(self):
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def turn(self):
        async with self._lock:
            yield


class Counting:
    """The store, which counts appends that others were faster than."""

    def __init__(self, store):
        self._store, self.conflicts = store, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append_all(self, writes):
        try:
            return await self._store.append_all(writes)
        except WrongExpectedVersion:
            self.conflicts += 1
            raise


async def test_instance_knows_in_its_turn_what_others_accepted(tmp_path):
    turns = LockTurns()
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        counting = Counting(store)
        both = [await admissions_of(tmp_path, Limits(30, 0, 0, 0), counting, turns=turns) for _ in range(2)]
        tasks = [asyncio.create_task(one.run()) for one in both]
        outcomes = [await asyncio.gather(*(ask(one) for one in both)) for _ in range(20)]
        for task in tasks:
            await cancelled(task)
    assert sum(map(sum, outcomes)) == 30
    assert counting.conflicts == 0


def search(key_id="key"):
    return SearchRequest(now(), "project", key_id, "address")


@pytest.fixture
async def searching(tmp_path):
    """Two instances that count searches together: at most three in a minute."""
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        brief, at = FakeBriefCounts(), [now()]

        def instance():
            return Admissions(store, Limits(key_searches=3), b"secret", lambda: at[0], brief=brief)

        yield instance(), instance(), brief, at


async def test_searches_of_all_instances_are_counted_together(searching):
    one, two, _, _ = searching
    assert [(await each.count_briefly(search())).remaining for each in (one, two, one)] == [2, 1, 0]
    for each in (one, two):
        with pytest.raises(OverLimit) as refused:
            await each.count_briefly(search())
        assert refused.value.retry_after_seconds == 60
        assert each.standing(search()).remaining == 0
    assert (await two.count_briefly(search("other"))).remaining == 2


async def test_full_window_is_not_asked_again_until_it_has_room(searching):
    one, two, brief, at = searching
    for _ in range(3):
        await two.count_briefly(search())
    for _ in range(5):
        with pytest.raises(OverLimit):
            await one.count_briefly(search())
    assert brief.asked == 4
    with pytest.raises(OverLimit):
        one.require_room(search())
    at[0] += timedelta(seconds=60)
    brief.now += 60_000
    one.require_room(search())
    assert (await one.count_briefly(search())).remaining == 2


async def test_without_the_table_each_instance_counts_by_itself(searching):
    one, two, brief, _ = searching
    await one.count_briefly(search())
    brief.errors = [Unavailable("away")] * 6
    for each, more in ((one, 2), (two, 3)):
        for _ in range(more):
            assert await each.count_briefly(search()) is None
        assert each.standing(search()).remaining == 0
        with pytest.raises(OverLimit):
            await each.count_briefly(search())


async def test_two_stores_on_one_file_share_a_limit(tmp_path):
    limits = Limits(60, 0, 0, 0)
    async with opened(tmp_path, limits) as (_, one), opened(tmp_path, limits) as (_, two):
        doors = [one, two]
        outcomes = await asyncio.gather(*(ask(doors[number % 2]) for number in range(100)))
        assert sum(outcomes) == 60
        assert not await ask(doors[0])
        assert not await ask(doors[1])
    assert accepted_in_log(tmp_path) == 60


async def test_failed_request_returns_its_quota(tmp_path):
    async with opened(tmp_path, Limits(10, 0, 0, 0)) as (store, admissions):
        bad = something()
        await store.append(bad.stream, [NewEvent("asked", b"{}")], expected_version=0)

        async def fail():
            with pytest.raises((WrongExpectedVersion, OverLimit)):
                await admissions.append(REQUEST, Metadata(), [bad])

        outcomes = await asyncio.gather(*(fail() if number % 3 == 0 else ask(admissions) for number in range(30)))
    assert sum(1 for outcome in outcomes if outcome) == 10


class LosingAnswers:
    """The store, which stores what it is given and answers every other time."""

    def __init__(self, store):
        self._store, self._appends = store, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append_all(self, writes):
        appended = await self._store.append_all(writes)
        self._appends += 1
        if self._appends % 2:
            raise OutcomeUnknown("the answer was lost")
        return appended


async def test_request_of_unknown_outcome_counts_if_it_is_recorded(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        admissions = await admissions_of(tmp_path, Limits(10, 0, 0, 0), LosingAnswers(store), now)
        letting_in = asyncio.create_task(admissions.run())
        answers = []
        for _ in range(15):
            try:
                answers.append(await ask(admissions))
            except OutcomeUnknown:
                answers.append(None)
        letting_in.cancel()
        await asyncio.wait([letting_in])
    assert answers.count(True) == answers.count(None) == answers.count(False) == 5
    assert accepted_in_log(tmp_path) == 10


async def test_cancelled_request_is_counted_only_if_it_is_recorded(tmp_path):
    async with opened(tmp_path, Limits(20, 0, 0, 0)) as (_, admissions):
        tasks = [asyncio.create_task(ask(admissions)) for _ in range(30)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        more = [await ask(admissions) for _ in range(30)]
        assert not more[-1]
    assert accepted_in_log(tmp_path) == 20


async def test_refusal_says_when_to_retry_and_the_retry_is_accepted(tmp_path):
    at = datetime(2026, 1, 2, tzinfo=UTC)
    agent = REQUEST.__class__("agent", at, "org", "project", "key", "address")

    def clock():
        return at

    async with opened(tmp_path, Limits(0, 0, 0, 2), clock) as (_, admissions):
        assert await ask(admissions, agent)
        at += timedelta(minutes=10)
        assert await ask(admissions, agent)
        at += timedelta(minutes=10)
        with pytest.raises(OverLimit) as refused:
            await admissions.append(agent, Metadata(), [something()])
        assert refused.value.retry_after_seconds == 40 * 60
        at += timedelta(minutes=40, milliseconds=-1)
        assert not await ask(admissions, agent)
        at += timedelta(milliseconds=1)
        assert await ask(admissions, agent)
        assert not await ask(admissions, agent)
        other = REQUEST.__class__("agent", at, "org", "another", "key", "address")
        assert await ask(admissions, other)


async def test_request_refused_by_one_scope_is_charged_to_no_scope(tmp_path):
    other = REQUEST.__class__("assistant", REQUEST.accepted_at, "org", "project", "another key", "another address")
    async with opened(tmp_path, Limits(2, 3, 0, 0)) as (_, admissions):
        assert [await ask(admissions) for _ in range(4)] == [True, True, False, False]
        standing = admissions.standing(other)
        assert (standing.scope, standing.remaining) == ("organization", 1)
        assert [await ask(admissions, other) for _ in range(2)] == [True, False]


async def test_counting_again_from_the_log_gives_the_same(tmp_path):
    """From the rows, from rows made again, and with rows that are behind."""
    async with opened(tmp_path, Limits(50, 0, 0, 0)) as (store, admissions):
        for _ in range(7):
            assert await ask(admissions)
        known = admissions.standing(REQUEST).remaining
        assert (await admissions_of(tmp_path, Limits(50, 0, 0, 0), store)).standing(REQUEST).remaining == known
        for file in tmp_path.glob("views.db*"):
            file.unlink()
        assert (await admissions_of(tmp_path, Limits(50, 0, 0, 0), store)).standing(REQUEST).remaining == known
        async with await Views.open(tmp_path / "views.db", store, all_projections()) as views:
            await views.catch_up()
            requests, (_, version) = await accepted_after(views, (0, 0), 7)
            assert ([request.api for request in requests], version) == (["assistant"] * 7, 7)
        assert await store.stream_version(STREAM) == 7


class Reads:
    """A store or views, and the rows and events that are read of them."""

    def __init__(self, of):
        self._of, self.count = of, 0

    def __getattr__(self, name):
        return getattr(self._of, name)

    async def query(self, *statement):
        rows = await self._of.query(*statement)
        self.count += len(rows)
        return rows

    async def iterate_stream(self, *args, **kwargs):
        async for event in self._of.iterate_stream(*args, **kwargs):
            self.count += 1
            yield event


async def test_start_reads_a_month_of_requests_by_key(tmp_path):
    at, step, limits = datetime(2026, 1, 2, tzinfo=UTC), timedelta(hours=6), Limits(1000, 0, 1000, 0)

    def clock():
        return at

    async with opened(tmp_path, limits, clock) as (store, admissions):
        for _ in range(160):
            assert await ask(admissions)
            at += step
        async with await Views.open(tmp_path / "views.db", store, all_projections()) as views:
            await views.catch_up()
            for idle, of_key, of_day in ((timedelta(), 119, 3), (timedelta(days=40), 0, 0)):
                at += idle
                rows, log = Reads(views), Reads(store)
                again = Admissions(log, limits, b"", clock, steady=lambda: clock().timestamp())
                await again.load(rows)
                assert rows.count <= 1 + 4 + of_day + NEWEST
                assert log.count == 0
                for limit, used in ((Limits(1000, 0, 0, 0), of_key), (Limits(0, 0, 1000, 0), of_day)):
                    again.change_limits(limit)
                    admissions.change_limits(limit)
                    assert again.standing(REQUEST) == admissions.standing(REQUEST)
                    assert again.standing(REQUEST).remaining == 1000 - used


@pytest.mark.parametrize("ahead", [timedelta(days=40), timedelta(days=36_500)])
async def test_clock_that_is_ahead_for_one_request_turns_no_limit_off(tmp_path, ahead):
    at, limits = datetime(2026, 1, 2, tzinfo=UTC), Limits(0, 0, 5, 0)

    async def started():
        one = await admissions_of(tmp_path, limits, store, lambda: at, steady=lambda: 0.0)
        return one, asyncio.create_task(one.run())

    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        for _ in range(3):  # the second and third time after a restart, once while the clock is ahead
            admissions, letting_in = await started()
            for _ in range(7):
                await ask(admissions)
            at += ahead
            await ask(admissions)
            at -= ahead
            assert not await ask(admissions)
            await cancelled(letting_in)
            at += ahead
            admissions, letting_in = await started()
            at -= ahead
            assert not await ask(admissions)
            await cancelled(letting_in)
            for file in tmp_path.glob("views.db*"):
                file.unlink()
        at += timedelta(days=150)  # it does not stay: each start allowed a month
        admissions, letting_in = await started()
        assert await ask(admissions)
        await cancelled(letting_in)


async def test_old_requests_go_by_the_time_of_all_of_the_newest(tmp_path):
    at = datetime(2026, 1, 2, tzinfo=UTC)
    async with (
        opened(tmp_path, Limits(0, 0, 1000, 0), lambda: at) as (store, admissions),
        await Views.open(tmp_path / "rows.db", store, [UsageView(every=1, newest=2)]) as views,
    ):
        for ahead, left in ((0, 1), (40, 2), (40, 2), (0, 3), (0, 4), (80, 5), (40, 4)):
            at += timedelta(days=ahead)
            assert await ask(admissions)
            await views.catch_up()
            requests, _ = await accepted_after(views, (0, 0), 100)
            assert len(requests) == left, (ahead, left)
            at -= timedelta(days=ahead)


def admitter(data, limit, requests):
    return subprocess.Popen(
        [sys.executable, str(ADMITTER), str(data), str(limit), str(requests)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ADMITTER.parents[2])},
    )  # fmt: skip


def start_together(processes):
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def test_two_processes_a_restart_and_exactly_the_limit(tmp_path):
    tmp_path.joinpath("data").mkdir()
    data, share = tmp_path / "data", (FULL + OVER) // 4
    asked = [share, share, share, FULL + OVER - 3 * share]
    told = []
    for pair in (asked[:2], asked[2:]):
        processes = [admitter(data, FULL, requests) for requests in pair]
        start_together(processes)
        for process in processes:
            out, _ = process.communicate(timeout=600)
            assert process.returncode == 0
            told.append(json.loads(out))
    assert sum(one["accepted"] for one in told) == FULL
    assert sum(one["refused"] for one in told) == OVER
    assert accepted_in_log(data) == FULL


def test_a_process_that_is_killed_loses_and_repeats_no_count(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    killed, other = admitter(data, 150, 1000), admitter(data, 150, 100)
    start_together([killed, other])
    while accepted_in_log(data) == 0:
        time.sleep(0.02)
    killed.kill()
    killed.communicate()
    out, _ = other.communicate(timeout=600)
    last = admitter(data, 150, 200)
    start_together([last])
    out, _ = last.communicate(timeout=600)
    assert json.loads(out)["refused"] > 0
    assert accepted_in_log(data) == 150


async def test_jobs_of_an_organization_are_limited_whatever_their_projects(tmp_path):
    limits = Limits(project=1, organization_jobs=5)
    async with opened(tmp_path, limits) as (_, admissions):
        told = [
            await ask(admissions, replace(REQUEST, api="agent", project_id=f"project {number}")) for number in range(60)
        ]
        assert told == [True] * 5 + [False] * 55
        assert await ask(admissions, replace(REQUEST, api="agent", organization_id="another"))


@pytest.mark.parametrize("api", ["projects", "uploads", "keys"])
async def test_tries_to_create_something_are_limited_by_organization(tmp_path, api):
    limits = Limits(organization_projects=3, organization_uploads=3, organization_keys=3)
    async with opened(tmp_path, limits) as (store, admissions):
        outcomes = await asyncio.gather(
            *(admissions.accept(api, "org", Metadata()) for _ in range(10)), return_exceptions=True
        )
        assert [type(one) for one in outcomes if one is not None] == [OverLimit] * 7
        await admissions.accept(api, "another", Metadata())
        again = await admissions_of(tmp_path, limits, store)
        assert again.standing(replace(REQUEST, api=api)).remaining == 0
        await without_limits(store).accept(api, "org", Metadata())
        assert await store.stream_version(STREAM) == 4


def without_limits(store):
    off = Limits(organization_projects=0, organization_uploads=0, organization_keys=0)
    return Admissions(store, off, b"", now)
