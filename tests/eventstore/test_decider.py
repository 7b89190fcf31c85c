"""Execute reads, folds, decides and appends; again when another writer was faster."""

import asyncio

import pytest

from eventstore import Executed, Metadata, NewEvent, WrongExpectedVersion, execute, load, plan
from tests.eventstore.shapes import COUNTER, Counted, Refused, opened


@pytest.fixture
async def store(tmp_path):
    async with await opened(tmp_path) as store:
        yield store


def test_streams_are_named_by_category_and_entity():
    assert COUNTER.stream("a-b") == "counter-a-b"
    assert COUNTER.entity_id("counter-a-b") == "a-b"
    assert COUNTER.owns("counter-1")
    assert not COUNTER.owns("counters-1")
    assert not COUNTER.owns("counter")


async def test_what_was_decided_is_recorded_and_folded(store):
    await execute(store, COUNTER, "2", 1)
    assert await execute(store, COUNTER, "1", 5) == Executed([Counted(5)], 5, 2, 1)
    assert await execute(store, COUNTER, "1", 2) == Executed([Counted(2)], 7, 3, 2)
    loaded = await load(store, COUNTER, "1")
    assert (loaded.state, loaded.version, loaded.position) == (7, 2, 3)


async def test_deciding_on_nothing_records_nothing(store):
    assert await execute(store, COUNTER, "1", 0) == Executed([], 0, 0, 0)
    await execute(store, COUNTER, "1", 3)
    assert await execute(store, COUNTER, "1", 0) == Executed([], 3, 1, 1)
    assert await store.head() == 1


async def test_a_refusal_is_the_deciders_own(store):
    with pytest.raises(Refused):
        await execute(store, COUNTER, "1", -1)
    with pytest.raises(Refused):
        await plan(store, COUNTER, "1", -1)


async def test_every_one_of_many_writers_gets_through(store):
    executed = await asyncio.gather(*(execute(store, COUNTER, "1", 1) for _ in range(60)))
    assert sorted(outcome.state for outcome in executed) == list(range(1, 61))
    assert (await load(store, COUNTER, "1")).state == 60


async def test_events_of_a_newer_program_are_passed_over(store):
    await execute(store, COUNTER, "1", 3)
    await store.append("counter-1", [NewEvent("counter-painted", b"{}")], expected_version=1)
    await store.append("counter-1", [NewEvent("counted", b"{}", schema_version=9)], expected_version=2)
    assert await execute(store, COUNTER, "1", 4) == Executed([Counted(4)], 7, 4, 4)


async def test_the_metadata_is_recorded(store):
    metadata = Metadata(actor="key-1", correlation_id="request-1", causation=9)
    await execute(store, COUNTER, "1", 3, metadata=metadata)
    assert [event.metadata for event in await store.read_all()] == [metadata]


async def test_plans_for_several_streams_are_recorded_together_or_not_at_all(store):
    plans = [await plan(store, COUNTER, entity, 1) for entity in ("1", "2")]
    assert await plan(store, COUNTER, "3", 0) is None
    await store.append_all([made for made in plans if made is not None])
    assert await store.head() == 2
    with pytest.raises(WrongExpectedVersion):
        await store.append_all([made for made in plans if made is not None])
    assert await store.head() == 2


async def test_who_knows_what_was_executed_last_reads_nothing_again(store):
    first = await execute(store, COUNTER, "1", 5)
    asked = []

    class Counting:
        """The store, which notes that a stream is read."""

        append = store.append

        async def fold_stream(self, *arguments, **more):
            asked.append(arguments[0])
            return await store.fold_stream(*arguments, **more)

    second = await execute(Counting(), COUNTER, "1", 2, known=first)
    assert (second.state, second.version, asked) == (7, 2, [])
    await execute(store, COUNTER, "1", 10)
    third = await execute(Counting(), COUNTER, "1", 1, known=second)  # another writer was faster
    assert (third.state, third.version, asked) == (18, 4, ["counter-1"])
