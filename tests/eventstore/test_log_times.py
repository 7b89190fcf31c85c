"""Times in the log never go back, and a time is found in logs in which they did."""

import asyncio
import sqlite3
from contextlib import aclosing, closing
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventstore import position_at
from tests.eventstore.shapes import noted, opened

BEGIN = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
EVENTS = 24


def minutes(number: float) -> datetime:
    return BEGIN + timedelta(minutes=number)


async def test_times_never_go_back_whatever_the_clock_does(backend, tmp_path):
    readings = [minutes(n) for n in (0, 5, 3, -1e6, 4, 6, 6, 2)]

    def clock():
        return readings.pop(0) if len(readings) > 1 else readings[0]

    for _ in range(2):  # as two processes, one after the other
        async with await backend.open(tmp_path, clock=clock) as store:
            for _ in range(4):
                version = await store.stream_version("note-1")
                await store.append("note-1", [noted(version)] * (1 + version % 2), expected_version=version)
    async with await backend.open(tmp_path, clock=lambda: minutes(1)) as one, await backend.open(tmp_path) as other:
        await one.append("note-2", [noted(1)], expected_version=0)
        await other.append("note-2", [noted(2)], expected_version=1)  # by the machine's own clock
        await one.append("note-2", [noted(3)], expected_version=2)
        times = [event.recorded_at for event in await one.read_all()]
    assert times == sorted(times)
    assert times[0] == minutes(0)
    assert max(times[:-2]) == minutes(6)
    assert times[-2] == times[-1]
    assert backend.is_sound(tmp_path)


async def test_subscriber_and_reader_see_the_same_time(open_store):
    readings = [minutes(5), minutes(1)]
    store = await open_store(clock=lambda: readings.pop(0) if len(readings) > 1 else readings[0])
    async with aclosing(store.subscribe()) as events:
        for version in range(3):
            await store.append("note-1", [noted(version)], expected_version=version)
            live = await anext(events)
            (stored,) = await store.read_all(after=version)
            assert live.recorded_at == stored.recorded_at == minutes(5)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    async def write():
        async with await opened(folder) as store:
            await store.append("note-1", [noted(number) for number in range(EVENTS)], expected_version=0)

    folder = tmp_path_factory.mktemp("log")
    asyncio.run(write())
    return folder


async def found(folder, readings, until, head=EVENTS):
    """Where a time is in a log that an older program wrote, with these readings of its clock."""
    with closing(sqlite3.connect(folder / "events.db")) as db, db:
        texts = [(time.isoformat(timespec="microseconds"), at) for at, time in enumerate(readings, 1)]
        db.executemany("UPDATE events SET recorded_at = ? WHERE position = ?", texts)
    async with await opened(folder, read_only=True) as store:
        return await position_at(store, until, head)


@given(
    first=st.integers(1, EVENTS - 2),
    wrong=st.integers(1, 5),
    off=st.sampled_from([-1e6, -7.5, -2.5, 2.5, 7.5, 1e6]),
    until=st.integers(-1, EVENTS + 1),
)
@settings(max_examples=60, deadline=None)
def test_time_is_found_despite_wrong_readings(log, first, wrong, off, until):
    readings = [minutes(number) for number in range(EVENTS)]
    last = min(first + wrong, EVENTS - 1)  # the clock is right again before the end
    for number in range(first, last):
        readings[number] += timedelta(minutes=off)
    at = asyncio.run(found(log, readings, minutes(until)))
    if until < first or until >= last:  # nothing can tell it of a time at which the clock was wrong
        believed = max(0, min(until + 1, EVENTS))
        assert at == believed or first <= at <= last


@pytest.mark.parametrize("off", [-1e6, 1e6])
@pytest.mark.parametrize("bad", [1, 11, 12, EVENTS - 2])
async def test_bad_clock_reading_moves_no_other_time(log, off, bad):
    readings = [minutes(number) for number in range(EVENTS)]
    readings[bad] += timedelta(minutes=off)
    for until in range(EVENTS):
        if until != bad:
            at = await found(log, readings, minutes(until + 0.5))
            assert at == until + 1 or (until == bad - 1 and at == until + 2)  # the bad one may go with the one before


async def test_time_in_an_ordered_log_is_its_last_event_until_then(log):
    readings = [minutes(number // 3) for number in range(EVENTS)]
    assert [await found(log, readings, minutes(until)) for until in (-1, 0, 0.5, 2, 99)] == [0, 3, 3, 9, EVENTS]
    assert await found(log, readings, minutes(99), head=5) == 5
    assert await found(log, readings, minutes(0), head=2) == 2
    assert await found(log, readings, minutes(0), head=0) == 0
