"""What every event store gives to readers and followers, whatever it is made of (see backends.py)."""

import asyncio
import threading
from contextlib import aclosing
from datetime import UTC, datetime

import pytest

from eventstore import Codec, NewEvent, SubjectErased
from tests.eventstore.backends import start_appender
from tests.eventstore.shapes import CODEC, Counted, Noted, TestEvent, counted, evolve, noted, numbers, take

MANY = 5_000
"""More than a store hands to its subscribers from memory."""


# Reading


async def test_a_stream_is_read_in_parts_and_backwards(store):
    await store.append("note-1", [noted(number) for number in range(1, 1301)], expected_version=0)
    await store.append("note-2", [noted(0)], expected_version=0)
    everything = list(range(1, 1301))
    assert numbers(await store.read_stream("note-1")) == everything
    assert numbers(await store.read_stream("note-1", after_version=1290)) == everything[1290:]
    assert numbers(await store.read_stream("note-1", after_version=3, limit=600)) == everything[3:603]
    assert numbers(await store.read_stream("note-1", backwards=True)) == everything[::-1]
    assert numbers(await store.read_stream("note-1", limit=2, backwards=True)) == [1300, 1299]
    assert numbers([event async for event in store.iterate_stream("note-1", after_version=5)]) == everything[5:]
    assert await store.read_stream("note-3") == []


async def test_the_log_is_read_in_parts_backwards_and_by_category(store):
    for number in range(1, 41):
        stream = f"note-{number % 3}" if number % 2 else f"notes-{number % 3}"
        await store.append(stream, [noted(number)], expected_version=await store.stream_version(stream))
    assert numbers(await store.read_all(after=10, limit=5)) == [11, 12, 13, 14, 15]
    assert numbers(await store.read_all(limit=3, backwards=True)) == [40, 39, 38]
    assert numbers(await store.read_all(category="note")) == list(range(1, 41, 2))
    assert numbers(await store.read_all(category="notes", after=30)) == [32, 34, 36, 38, 40]
    assert numbers(await store.read_all(category="note", limit=2, backwards=True)) == [39, 37]


async def test_the_size_of_the_log_is_known(store):
    empty = await store.size()
    await store.append("note-1", [noted(number, "x" * 100) for number in range(MANY)], expected_version=0)
    assert await store.size() > empty + MANY * 100 > MANY * 100


async def test_a_stream_is_folded_where_it_is_read(store):
    await store.append("tally-1", [counted(by) for by in range(1, 2501)], expected_version=0)
    await store.append("tally-1", [NewEvent("from-the-future", b"{}")], expected_version=2500)
    folded = await store.fold_stream("tally-1", CODEC, evolve, 0)
    assert (folded.state, folded.version, folded.position) == (sum(range(2501)), 2501, 2501)
    folded = await store.fold_stream("tally-1", CODEC, evolve, 7, after_version=2501)
    assert (folded.state, folded.version, folded.position) == (7, 2501, 0)


async def test_personal_fields_are_folded_whatever_the_ids_look_like(store):
    ids = ["an id", " ", "1 2 3", "\u00e4\x01\U0001f9ea", "plain"]
    new = [noted(number, f"text {number}", event_id=event_id) for number, event_id in enumerate(ids)]
    await store.append("note-1", new, expected_version=0)
    texts = await store.fold_stream(
        "note-1", CODEC, lambda texts, event: (*texts, event.text) if isinstance(event, Noted) else texts, ()
    )
    assert texts.state == tuple(f"text {number}" for number in range(len(ids)))


async def test_fold_reads_each_schema_version_sealed_or_not(store):
    def renamed(fields: dict[str, object]) -> dict[str, object]:
        return {"by": fields.pop("amount")} if "amount" in fields else fields

    codec: Codec[TestEvent] = Codec(TestEvent, upcasters={"counted": [renamed], "noted": [dict]})
    new = [
        NewEvent("counted", b'{"amount":1}'),
        codec.encode(Counted(10)),
        NewEvent("counted", b'{"by":100}', schema_version=3),
        NewEvent("unknown", b"{}", schema_version=2),
        NewEvent("unknown", b"{}", b'{"text":"sealed"}'),
        noted(1, "old"),
        codec.encode(Noted(2, "new")),
    ]
    await store.append("tally-1", new, expected_version=0)
    folded = await store.fold_stream("tally-1", codec, lambda seen, event: (*seen, event), ())
    assert folded.state == (Counted(1), Counted(10), Noted(1, "old"), Noted(2, "new"))
    assert folded.version == 7


async def test_a_stream_that_is_folded_again_begins_where_it_ended(store):
    await store.append("tally-1", [counted(by) for by in range(1, 201)], expected_version=0)
    seen = []

    def evolve_and_tell(state: int, event: object) -> int:
        seen.append(event)
        return evolve(state, event)  # type: ignore[arg-type]

    for more in range(3):
        folded = await store.fold_stream("tally-1", CODEC, evolve_and_tell, 0)
        assert (folded.state, folded.version, folded.position) == (20_100 + more, 200 + more, 200 + more)
        assert await store.fold_stream("tally-1", CODEC, evolve_and_tell, 0) == folded
        await store.append("tally-1", [counted()], expected_version=200 + more)
    assert (await store.fold_stream("tally-1", CODEC, evolve, 0)).state == 20_103
    assert (await store.fold_stream("tally-1", CODEC, evolve, 1_000)).state == 21_103
    assert len(seen) in {202, 202 + 3 * 200}  # a store need not keep states


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_state_from_before_an_erasure_is_not_seen_after_it(store, open_store, elsewhere):
    def gather(texts: tuple[str, ...], event: object) -> tuple[str, ...]:
        return (*texts, event.text) if isinstance(event, Noted) else texts

    nothing: tuple[str, ...] = ()
    await store.append("note-1", [noted(number, "secret") for number in range(200)], expected_version=0)
    assert set((await store.fold_stream("note-1", CODEC, gather, nothing)).state) == {"secret"}
    await (await open_store() if elsewhere else store).erase("note-1")
    assert set((await store.fold_stream("note-1", CODEC, gather, nothing)).state) == {"[erased]"}


async def test_every_reader_sees_a_log_without_gaps(store):
    async def write(writer: int) -> None:
        for version in range(40):
            await store.append(f"note-{writer}", [noted(version)], expected_version=version)

    async def read() -> None:
        seen = 0
        while seen < 400:
            events = await store.read_all(after=seen, limit=50)
            assert [event.position for event in events] == list(range(seen + 1, seen + 1 + len(events)))
            seen += len(events)

    await asyncio.gather(*(write(writer) for writer in range(10)), read(), read())


# Following


async def test_subscription_gives_recorded_events_and_then_new_ones(store):
    await store.append("note-1", [noted(number) for number in range(1, 4)], expected_version=0)
    taking = asyncio.create_task(take(store, 5, after=1))
    await store.append("note-1", [noted(4), noted(5)], expected_version=3)
    await store.append("note-2", [noted(6)], expected_version=0)
    assert numbers(await taking) == [2, 3, 4, 5, 6]


async def test_subscriptions_to_one_stream_and_to_one_category(store):
    await store.append("note-1", [noted(1)], expected_version=0)
    of_stream = asyncio.create_task(take(store, 3, stream="note-1"))
    of_category = asyncio.create_task(take(store, 4, category="note", after=1))
    of_both = asyncio.create_task(take(store, 2, category="note", stream="note-1", after=1))
    for number in range(2, 5):
        await store.append("note-1", [noted(number)], expected_version=number - 1)
        await store.append("other-1", [noted(0)], expected_version=number - 2)
        await store.append("note-2", [noted(number * 10)], expected_version=number - 2)
    assert numbers(await of_stream) == [1, 2, 3]
    assert numbers(await of_category) == [2, 20, 3, 30]
    assert numbers(await of_both) == [2, 3]


async def test_a_subscription_may_begin_after_the_head(store):
    taking = asyncio.create_task(take(store, 1, after=2))
    await store.append("note-1", [noted(1), noted(2), noted(3)], expected_version=0)
    assert numbers(await taking) == [3]


async def test_a_slow_subscriber_misses_nothing(store):
    await store.append("note-1", [noted(1)], expected_version=0)
    async with aclosing(store.subscribe()) as events:
        seen = numbers([await anext(events)])
        for start in range(2, MANY, 500):
            new = [noted(number) for number in range(start, start + 500)]
            await store.append("note-1", new, expected_version=start - 1)
        async for event in events:
            seen += numbers([event])
            if len(seen) == await store.head():
                break
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) > MANY


async def test_many_subscribers_each_get_everything(store):
    async with asyncio.TaskGroup() as tasks:
        taking = [tasks.create_task(take(store, 20, stream=f"note-{number % 10}")) for number in range(300)]
        for number in range(10):
            for version in range(20):
                await store.append(f"note-{number}", [noted(version)], expected_version=version)
    assert all(numbers(taken.result()) == list(range(20)) for taken in taking)


async def test_a_subscription_follows_other_processes(store, open_store):
    other = await open_store()
    await store.append("note-1", [noted(1)], expected_version=0)
    taking = asyncio.create_task(take(store, 6))
    taking_in_other = asyncio.create_task(take(other, 6))
    for number in range(2, 7):
        writer = store if number % 2 else other
        await writer.append("note-1", [noted(number)], expected_version=number - 1)
    assert numbers(await taking) == numbers(await taking_in_other) == [1, 2, 3, 4, 5, 6]


async def test_followers_get_every_event_in_batches(store):
    await store.append("note-1", [noted(1), noted(2)], expected_version=0)
    async with asyncio.timeout(60), aclosing(store.follow()) as batches:
        assert numbers(list(await anext(batches))) == [1, 2]
        await store.append("note-1", [noted(3)], expected_version=2)
        await store.append("note-1", [noted(4)], expected_version=3)
        seen: list[int] = []
        while len(seen) < 2:  # of which the first may come alone, if the store was looked at in between
            batch = await anext(batches)
            assert batch
            seen += numbers(list(batch))
        assert seen == [3, 4]


async def test_waiting_until_the_log_reaches_a_position(store, open_store):
    other = await open_store()
    async with asyncio.timeout(60):
        await store.wait_until(0)
        waiting = asyncio.create_task(store.wait_until(2))
        await other.append("note-1", [noted(1)], expected_version=0)
        await store.append("note-1", [noted(2)], expected_version=1)
        await waiting
        await other.wait_until(2)


async def test_a_subscriber_follows_another_process_live(backend_name, store, tmp_path):
    async with asyncio.timeout(60):
        child = start_appender(backend_name, tmp_path, "a", 300)
        seen = []
        async for event in store.subscribe(category="load"):
            seen.append(event.position)
            if len(seen) == 300:
                break
        assert seen == list(range(1, 301))
        await asyncio.to_thread(child.communicate)


# Erasing


async def test_an_erased_stream_has_lost_its_personal_fields_only(store):
    await store.append("note-1", [noted(1, "secret"), counted(), noted(2)], expected_version=0)
    await store.append("note-2", [noted(3, "kept")], expected_version=0)
    before = [event.hash for event in await store.read_all()]
    await store.erase("note-1")
    await store.erase("note-1")
    events = await store.read_all()
    decoded = [CODEC.decode(event) for event in events]
    assert decoded == [Noted(1, "[erased]"), Counted(), Noted(2), Noted(3, "kept")]
    assert [event.erased for event in events] == [True, False, False, False]
    assert [event.hash for event in events] == before


async def test_nothing_personal_is_recorded_for_an_erased_subject(store):
    await store.erase("note-1")
    with pytest.raises(SubjectErased):
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
    await store.append("note-1", [noted(1)], expected_version=0)


async def test_an_erasure_is_effective_in_other_processes(store, open_store):
    other = await open_store()
    await store.append("note-1", [noted(1, "secret")], expected_version=0)
    assert CODEC.decode((await other.read_all())[0]) == Noted(1, "secret")
    await store.erase("note-1")
    assert CODEC.decode((await other.read_all())[0]) == Noted(1, "[erased]")
    with pytest.raises(SubjectErased):
        await other.append("note-1", [noted(2, "more")], expected_version=1)


async def test_late_subscriber_gets_no_erased_text(store):
    async with aclosing(store.follow()) as batches:
        await store.append("note-0", [noted(0)], expected_version=0)
        await anext(batches)
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
        await store.erase("note-1")
        assert [CODEC.decode(event) for event in await anext(batches)] == [Noted(1, "[erased]")]


async def test_subscriber_gets_no_text_sealed_before_an_erasure(open_store):
    is_sealing, may_go_on = threading.Event(), threading.Event()
    may_go_on.set()

    def clock():
        if threading.current_thread().name == "eventstore-writer":  # it has the key already
            is_sealing.set()
            may_go_on.wait(60)
        return datetime.now(UTC)

    store = await open_store(clock=clock)
    async with aclosing(store.subscribe()) as events:
        for number in range(3):
            await store.append("note-1", [noted(number, "secret")], expected_version=number)
            await anext(events)
        is_sealing.clear()
        may_go_on.clear()
        appending = asyncio.create_task(store.append("note-1", [noted(3, "secret")], expected_version=3))
        assert await asyncio.to_thread(is_sealing.wait, 60)
        await store.erase("note-1")
        may_go_on.set()
        await appending
        assert CODEC.decode(await anext(events)) == Noted(3, "[erased]")
