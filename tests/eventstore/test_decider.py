"""Execute reads, folds, decides and appends; again when another writer was faster."""

import asyncio

import pytest
from msgspec.structs import replace

from eventstore import (
    CommandId,
    Executed,
    Metadata,
    NewEvent,
    OutcomeUnknown,
    WrongExpectedVersion,
    execute,
    load,
    plan,
)
from tests.eventstore.shapes import COUNTER, Counted, Refused


def test_streams_are_named_by_category_and_entity():
    assert COUNTER.stream("a-b") == "counter-a-b"
    assert COUNTER.entity_id("counter-a-b") == "a-b"
    assert COUNTER.owns("counter-1")
    assert not COUNTER.owns("counters-1")
    assert not COUNTER.owns("counter")


async def test_decided_events_are_recorded_and_folded(store):
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
    executed = await asyncio.gather(*(execute(store, COUNTER, "1", 1) for _ in range(300)))
    assert sorted(outcome.state for outcome in executed) == list(range(1, 301))
    assert (await load(store, COUNTER, "1")).state == 300


async def test_events_of_a_newer_program_are_passed_over(store):
    await execute(store, COUNTER, "1", 3)
    await store.append("counter-1", [NewEvent("counter-painted", b"{}")], expected_version=1)
    await store.append("counter-1", [NewEvent("counted", b"{}", schema_version=9)], expected_version=2)
    assert await execute(store, COUNTER, "1", 4) == Executed([Counted(4)], 7, 4, 4)


async def test_the_metadata_is_recorded(store):
    metadata = Metadata(actor="key-1", correlation_id="request-1", causation=9)
    await execute(store, COUNTER, "1", 3, metadata=metadata)
    assert [event.metadata for event in await store.read_all()] == [metadata]


async def test_plans_for_several_streams_are_recorded_all_or_none(store):
    plans = [await plan(store, COUNTER, entity, 1) for entity in ("1", "2")]
    assert await plan(store, COUNTER, "3", 0) is None
    await store.append_all([made for made in plans if made is not None])
    assert await store.head() == 2
    stale = replace(plans[0], events=(NewEvent("counted", b"{}"),))
    with pytest.raises(WrongExpectedVersion):
        await store.append_all([stale])
    assert await store.head() == 2


async def test_same_plan_appended_again_is_recorded_once(store):
    plans = [made for made in [await plan(store, COUNTER, entity, 1) for entity in ("1", "2")] if made is not None]
    assert await store.append_all(plans) == await store.append_all(plans)
    assert await store.head() == 2


class Doubtful:
    """A store whose next appends end without an answer: after they were stored, or before."""

    def __init__(self, store):
        self._store, self.stores = store, []

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, stream, events, *, expected_version):
        is_stored = self.stores.pop(0) if self.stores else None
        if is_stored is not False:
            appended = await self._store.append(stream, events, expected_version=expected_version)
        if is_stored is None:
            return appended
        raise OutcomeUnknown("the connection was lost")


@pytest.mark.parametrize("stores", [[True], [False], [False, True], [False, False], [True, True]])
@pytest.mark.parametrize("meanwhile", [False, True])
async def test_command_tried_again_is_recorded_once(store, stores, meanwhile):
    doubtful = Doubtful(store)
    await execute(doubtful, COUNTER, "1", 1)
    doubtful.stores, command_id = list(stores), CommandId()
    while True:
        try:
            executed = await execute(doubtful, COUNTER, "1", 5, command_id=command_id)
            break
        except OutcomeUnknown:
            if meanwhile:
                await execute(store, COUNTER, "1", 100)
    assert list(executed.events) == [Counted(5)]
    assert executed.state == (await load(store, COUNTER, "1")).state
    counted = [COUNTER.codec.decode(event).by for event in await store.read_all()]
    assert sorted(by for by in counted if by != 100) == [1, 5]


async def test_command_cancelled_and_tried_again_is_recorded_once(store):
    for entity in range(20):
        command_id, turn = CommandId(), 0
        first = asyncio.create_task(execute(store, COUNTER, f"{entity}", 5, command_id=command_id))
        while turn < entity and not first.done():  # each time a little later
            turn += 1
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        if first.cancelled():
            await execute(store, COUNTER, f"{entity}", 5, command_id=command_id)
        assert (await load(store, COUNTER, f"{entity}")).state == 5


async def test_unknown_outcome_without_a_command_id_is_reported(store):
    doubtful = Doubtful(store)
    doubtful.stores = [True]
    with pytest.raises(OutcomeUnknown):
        await execute(doubtful, COUNTER, "1", 5)
    assert (await load(doubtful, COUNTER, "1")).state == 5


async def test_caller_with_the_last_state_reads_nothing_again(store):
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
