"""What every event store keeps to, whatever it is made of.

A backend's test module derives a class from this one and has a fixture ``open_store``: an async function that opens
the same storage each time it is called, as another process would, and closes what it opened at the end.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import aclosing
from typing import Any

import pytest

from eventstore import (
    Append,
    Appended,
    DuplicateEventId,
    EventStore,
    InvalidEvent,
    Metadata,
    NewEvent,
    RecordedEvent,
    StoreClosed,
    SubjectErased,
    WrongExpectedVersion,
)
from tests.eventstore.shapes import CODEC, Counted, Noted, counted, evolve, noted

OpenStore = Callable[[], Awaitable[EventStore]]

MANY = 5_000
"""More than a store hands to its subscribers from memory."""


async def take(store: EventStore, count: int, **where: object) -> list[RecordedEvent]:
    """The first events of a subscription."""
    taken: list[RecordedEvent] = []
    async with asyncio.timeout(60), aclosing(store.subscribe(**where)) as events:  # type: ignore[arg-type]
        async for event in events:
            taken.append(event)
            if len(taken) == count:
                return taken
    raise AssertionError


class Woken:
    """Awaits something, and counts how often that went on waiting."""

    def __init__(self, awaited: Coroutine[Any, Any, Appended]) -> None:
        self._awaited, self.times = awaited, 0

    def __await__(self) -> Generator[Any, Any, Appended]:
        try:
            while True:
                waits_for = self._awaited.send(None)
                self.times += 1
                yield waits_for
        except StopIteration as end:
            return end.value


def numbers(events: list[RecordedEvent]) -> list[int]:
    decoded = [CODEC.decode(event) for event in events]
    return [event.number for event in decoded if isinstance(event, Noted)]


class EventStoreContract:
    @pytest.fixture
    async def store(self, open_store: OpenStore) -> EventStore:
        return await open_store()

    # Appending

    async def test_an_append_says_where_it_went(self, store):
        assert await store.append("note-1", [noted(1), noted(2)], expected_version=0) == Appended(2, 2)
        assert await store.append("note-2", [noted(3)], expected_version=0) == Appended(3, 1)
        assert await store.append("note-1", [noted(4)], expected_version=2) == Appended(4, 3)
        assert (await store.head(), await store.stream_version("note-1")) == (4, 3)

    async def test_what_was_recorded_is_what_was_appended(self, store):
        metadata = Metadata(actor="key-1", correlation_id="r1", causation=7)
        new = NewEvent("noted", b'{"number":1,"umlaut":"\xc3\xa4"}', b'{"text":"hush"}', 3, metadata, "an-id")
        await store.append("note-1", [new], expected_version=0)
        (event,) = await store.read_all()
        assert (event.type, event.data, event.personal, event.schema_version) == (
            new.type,
            new.data,
            new.personal,
            new.schema_version,
        )
        assert (event.metadata, event.id, event.erased) == (metadata, "an-id", False)
        assert event.recorded_at.tzinfo is not None
        assert len(event.hash) == 32

    @pytest.mark.parametrize("expected", [0, 1, 3])
    async def test_another_version_than_expected_is_refused(self, store, expected):
        await store.append("note-1", [noted(1), noted(2)], expected_version=0)
        with pytest.raises(WrongExpectedVersion) as refused:
            await store.append("note-1", [noted(3)], expected_version=expected)
        assert (refused.value.stream, refused.value.expected, refused.value.actual) == ("note-1", expected, 2)
        assert await store.head() == 2

    async def test_of_writers_with_the_same_expectation_one_wins(self, store):
        outcomes = await asyncio.gather(
            *(store.append("note-1", [noted(number)], expected_version=0) for number in range(50)),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, Appended) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, WrongExpectedVersion) for outcome in outcomes) == 49

    async def test_a_refused_append_does_not_touch_its_neighbours(self, store):
        await store.append("note-taken", [noted(0, event_id="taken")], expected_version=0)
        await store.append("note-erased", [noted(0, "secret")], expected_version=0)
        await store.erase("note-erased")
        appends = [store.append(f"note-{number}", [noted(number)], expected_version=0) for number in range(20)]
        refused = [
            store.append("note-taken", [noted(0)], expected_version=0),
            store.append("note-other", [noted(0, event_id="taken")], expected_version=0),
            store.append("note-erased", [noted(0, "more")], expected_version=1),
            store.append("note-broken", [NewEvent("noted", b"not JSON")], expected_version=0),
        ]
        outcomes = await asyncio.gather(*appends[:10], *refused, *appends[10:], return_exceptions=True)
        assert [type(outcome) for outcome in outcomes[10:14]] == [
            WrongExpectedVersion,
            DuplicateEventId,
            SubjectErased,
            InvalidEvent,
        ]
        assert all(isinstance(outcome, Appended) for outcome in outcomes[:10] + outcomes[14:])
        events = await store.read_all()
        assert [event.position for event in events] == list(range(1, 23))

    async def test_several_streams_are_written_together_or_not_at_all(self, store):
        await store.append("note-1", [noted(1)], expected_version=0)
        writes = [Append("note-1", (noted(2),), 1), Append("tally-1", (counted(), counted()), 0)]
        assert await store.append_all(writes) == Appended(4, 2)
        with pytest.raises(WrongExpectedVersion):
            await store.append_all([Append("note-2", (noted(3),), 0), Append("tally-1", (counted(),), 0)])
        assert await store.stream_version("note-2") == 0
        assert await store.head() == 4

    async def test_one_stream_may_be_written_twice_in_one_append(self, store):
        writes = [Append("note-1", (noted(1),), 0), Append("note-1", (noted(2),), 1)]
        assert await store.append_all(writes) == Appended(2, 2)

    @pytest.mark.parametrize("writes", [[], [Append("note-1", (), 0)], [Append("", (counted(),), 0)]])
    async def test_an_append_of_nothing_is_a_mistake(self, store, writes):
        with pytest.raises(ValueError, match="needs"):
            await store.append_all(writes)

    @pytest.mark.parametrize(
        "event",
        [
            NewEvent("noted", b"{nonsense}"),
            NewEvent("noted", b'{"number":NaN}'),
            NewEvent("noted", b'{"number":-Infinity}'),
            NewEvent("noted", b'{"number":1e999}'),
            NewEvent("noted", b'{"number":1}{"number":2}'),
            NewEvent("noted", b'{"number":1,}'),
            NewEvent("noted", b"[1]"),
            NewEvent("noted", b"null"),
            NewEvent("noted", b""),
            NewEvent("noted", b'{"text":"\xff"}'),
            NewEvent("noted", b'{"text":"\\ud800"}'),
            NewEvent("noted", b' {"number":1} '),
            NewEvent("noted", b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
            NewEvent("noted", "{}"),  # type: ignore[arg-type]
            NewEvent("noted", b"{}", b"{nonsense}"),
            NewEvent("noted", b"{}", b"[]"),
            NewEvent("noted", b"{}", schema_version=0),
            NewEvent("noted", b"{}", schema_version=1 << 70),
            NewEvent("noted", b"{}", metadata=None),  # type: ignore[arg-type]
            NewEvent("", b"{}"),
            NewEvent("n" * 300, b"{}"),
            NewEvent("\ud800", b"{}"),
            NewEvent(None, b"{}"),  # type: ignore[arg-type]
            NewEvent("noted", b"{}", id="i" * 300),
        ],
        ids=lambda event: repr((event.type, event.data))[:40],
    )
    async def test_event_that_cannot_be_read_is_refused_alone(self, store, event):
        outcomes = await asyncio.gather(
            store.append("note-1", [noted(1)], expected_version=0),
            store.append("note-2", [noted(2), event], expected_version=0),
            store.append("note-3", [noted(3)], expected_version=0),
            return_exceptions=True,
        )
        assert outcomes[0::2] == [Appended(1, 1), Appended(2, 1)]
        assert isinstance(outcomes[1], InvalidEvent)
        assert await store.stream_version("note-2") == 0

    async def test_event_as_large_as_a_reply_is_stored(self, store):
        text = "\U0001f9ea\n\u2028" * 200_000
        await store.append("note-1", [noted(1, text)], expected_version=0)
        assert [CODEC.decode(event) for event in await store.read_all()] == [Noted(1, text)]

    @pytest.mark.parametrize("stream", ["note-\ud800", "", "note-" + "n" * 1_100, "note-" + "\u00e4" * 600])
    async def test_a_name_that_cannot_be_stored_is_refused_alone(self, store, stream):
        outcomes = await asyncio.gather(
            store.append("note-1", [noted(1, "secret")], expected_version=0),
            store.append(stream, [noted(1, "secret")], expected_version=0),
            return_exceptions=True,
        )
        assert outcomes[0] == Appended(1, 1)
        assert isinstance(outcomes[1], InvalidEvent)

    # Many at once

    async def test_waiting_append_is_woken_by_its_outcome_only(self, store):
        appends = [Woken(store.append(f"note-{n}", [noted(n)], expected_version=0)) for n in range(3 * MANY)]
        outcomes = await asyncio.gather(*appends)
        assert [outcome.position for outcome in outcomes] == list(range(1, 3 * MANY + 1)), "first in, first out"
        assert {append.times for append in appends} == {1}

    async def test_outcomes_of_a_large_batch_come_in_parts(self, store):
        turn, of_turn, is_over = 0, list[int](), False

        async def count_turns() -> None:
            nonlocal turn
            while not is_over:
                turn += 1
                await asyncio.sleep(0)

        async def append(number: int) -> None:
            await store.append(f"note-{number}", [noted(number)], expected_version=0)
            of_turn.append(turn)

        counting = asyncio.create_task(count_turns())
        await asyncio.gather(*(append(number) for number in range(MANY)))
        is_over = True
        await counting
        assert max(Counter(of_turn).values()) <= 100

    # Appending again

    async def test_a_repeated_append_returns_what_the_first_returned(self, store):
        events = [noted(1, event_id="a"), noted(2, event_id="b")]
        first = await store.append("note-1", events, expected_version=0)
        await store.append("note-1", [noted(3)], expected_version=2)
        assert await store.append("note-1", events, expected_version=0) == first
        assert await store.head() == 3

    async def test_repeats_in_one_batch_are_one_append(self, store):
        outcomes = await asyncio.gather(
            *(store.append("note-1", [noted(1, event_id="a")], expected_version=0) for _ in range(10))
        )
        assert outcomes == [Appended(1, 1)] * 10
        assert await store.head() == 1

    async def test_a_repeated_append_to_several_streams_is_one_append(self, store):
        writes = [Append("note-1", (noted(1, event_id="a"),), 0), Append("note-2", (noted(2, event_id="b"),), 0)]
        assert await store.append_all(writes) == await store.append_all(writes) == Appended(2, 1)

    async def test_ids_that_are_stored_elsewhere_are_no_repeat(self, store):
        await store.append("note-1", [noted(1, event_id="a"), noted(2, event_id="b")], expected_version=0)
        with pytest.raises(WrongExpectedVersion):
            await store.append("note-1", [noted(2, event_id="b")], expected_version=0)
        with pytest.raises(DuplicateEventId):
            await store.append("note-1", [noted(2, event_id="b")], expected_version=2)
        with pytest.raises(DuplicateEventId):
            await store.append("note-2", [noted(3, event_id="c"), noted(3, event_id="c")], expected_version=0)

    @pytest.mark.parametrize(
        "other",
        [
            noted(2, "secret", event_id="a"),
            noted(1, "other", event_id="a"),
            noted(1, event_id="a"),
            NewEvent("noted", b'{"number":1}', b'{"text":"secret"}', 2, Metadata(), "a"),
            NewEvent("noted", b'{"number":1}', b'{"text":"secret"}', 1, Metadata("key-1"), "a"),
            NewEvent("noticed", b'{"number":1}', b'{"text":"secret"}', 1, Metadata(), "a"),
        ],
    )
    async def test_id_of_another_event_is_an_error(self, store, other):
        first = noted(1, "secret", event_id="a")
        await store.append("note-1", [first], expected_version=0)
        with pytest.raises(DuplicateEventId):
            await store.append("note-1", [other], expected_version=0)
        assert await store.append("note-1", [first], expected_version=0) == Appended(1, 1)
        await store.erase("note-1")
        assert await store.append("note-1", [first], expected_version=0) == Appended(1, 1)
        assert await store.head() == 1

    async def test_event_is_found_by_its_id(self, store):
        await store.append("note-1", [noted(1, event_id="a"), noted(2, "secret", event_id="b")], expected_version=0)
        found = await store.find("b")
        assert (found.position, CODEC.decode(found)) == (2, Noted(2, "secret"))
        assert await store.find("c") is None

    # Cancelling

    async def test_a_cancelled_append_leaves_no_trace_but_perhaps_its_events(self, store):
        tasks = [
            asyncio.create_task(
                store.append(f"note-{number}", [noted(number, event_id=f"id-{number}")] * 1, expected_version=0)
            )
            for number in range(100)
        ]
        for _ in range(3):  # some are queued, some with the writer
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait(tasks)
        for number, task in enumerate(tasks):
            assert task.cancelled() or task.result().stream_version == 1
            again = await store.append(f"note-{number}", [noted(number, event_id=f"id-{number}")], expected_version=0)
            assert again.stream_version == 1
        assert sorted(numbers(await store.read_all())) == list(range(100))

    # Reading

    async def test_a_stream_is_read_in_parts_and_backwards(self, store):
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

    async def test_the_log_is_read_in_parts_backwards_and_by_category(self, store):
        for number in range(1, 41):
            stream = f"note-{number % 3}" if number % 2 else f"notes-{number % 3}"
            await store.append(stream, [noted(number)], expected_version=await store.stream_version(stream))
        assert numbers(await store.read_all(after=10, limit=5)) == [11, 12, 13, 14, 15]
        assert numbers(await store.read_all(limit=3, backwards=True)) == [40, 39, 38]
        assert numbers(await store.read_all(category="note")) == list(range(1, 41, 2))
        assert numbers(await store.read_all(category="notes", after=30)) == [32, 34, 36, 38, 40]
        assert numbers(await store.read_all(category="note", limit=2, backwards=True)) == [39, 37]

    async def test_a_stream_is_folded_where_it_is_read(self, store):
        await store.append("tally-1", [counted(by) for by in range(1, 2501)], expected_version=0)
        await store.append("tally-1", [NewEvent("from-the-future", b"{}")], expected_version=2500)
        folded = await store.fold_stream("tally-1", CODEC, evolve, 0)
        assert (folded.state, folded.version, folded.position) == (sum(range(2501)), 2501, 2501)
        folded = await store.fold_stream("tally-1", CODEC, evolve, 7, after_version=2501)
        assert (folded.state, folded.version, folded.position) == (7, 2501, 0)

    async def test_personal_fields_are_folded_whatever_the_ids_look_like(self, store):
        ids = ["an id", " ", "1 2 3", "\u00e4\x00\U0001f9ea", "plain"]
        new = [noted(number, f"text {number}", event_id=event_id) for number, event_id in enumerate(ids)]
        await store.append("note-1", new, expected_version=0)
        texts = await store.fold_stream(
            "note-1", CODEC, lambda texts, event: (*texts, event.text) if isinstance(event, Noted) else texts, ()
        )
        assert texts.state == tuple(f"text {number}" for number in range(len(ids)))

    async def test_a_stream_that_is_folded_again_begins_where_it_ended(self, store):
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
    async def test_a_state_from_before_an_erasure_is_not_seen_after_it(self, store, open_store, elsewhere):
        def gather(texts: tuple[str, ...], event: object) -> tuple[str, ...]:
            return (*texts, event.text) if isinstance(event, Noted) else texts

        nothing: tuple[str, ...] = ()
        await store.append("note-1", [noted(number, "secret") for number in range(200)], expected_version=0)
        assert set((await store.fold_stream("note-1", CODEC, gather, nothing)).state) == {"secret"}
        await (await open_store() if elsewhere else store).erase("note-1")
        assert set((await store.fold_stream("note-1", CODEC, gather, nothing)).state) == {"[erased]"}

    async def test_every_reader_sees_a_log_without_gaps(self, store):
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

    async def test_a_subscription_gives_what_was_recorded_and_then_what_comes(self, store):
        await store.append("note-1", [noted(number) for number in range(1, 4)], expected_version=0)
        taking = asyncio.create_task(take(store, 5, after=1))
        await store.append("note-1", [noted(4), noted(5)], expected_version=3)
        await store.append("note-2", [noted(6)], expected_version=0)
        assert numbers(await taking) == [2, 3, 4, 5, 6]

    async def test_subscriptions_to_one_stream_and_to_one_category(self, store):
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

    async def test_a_subscription_may_begin_after_the_head(self, store):
        taking = asyncio.create_task(take(store, 1, after=2))
        await store.append("note-1", [noted(1), noted(2), noted(3)], expected_version=0)
        assert numbers(await taking) == [3]

    async def test_a_slow_subscriber_misses_nothing(self, store):
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

    async def test_many_subscribers_each_get_everything(self, store):
        async with asyncio.TaskGroup() as tasks:
            taking = [tasks.create_task(take(store, 20, stream=f"note-{number % 10}")) for number in range(300)]
            for number in range(10):
                for version in range(20):
                    await store.append(f"note-{number}", [noted(version)], expected_version=version)
        assert all(numbers(taken.result()) == list(range(20)) for taken in taking)

    async def test_a_subscription_follows_other_processes(self, store, open_store):
        other = await open_store()
        await store.append("note-1", [noted(1)], expected_version=0)
        taking = asyncio.create_task(take(store, 6))
        taking_in_other = asyncio.create_task(take(other, 6))
        for number in range(2, 7):
            writer = store if number % 2 else other
            await writer.append("note-1", [noted(number)], expected_version=number - 1)
        assert numbers(await taking) == numbers(await taking_in_other) == [1, 2, 3, 4, 5, 6]

    async def test_followers_get_as_many_as_there_are(self, store):
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

    async def test_waiting_until_the_log_reaches_a_position(self, store, open_store):
        other = await open_store()
        async with asyncio.timeout(60):
            await store.wait_until(0)
            waiting = asyncio.create_task(store.wait_until(2))
            await other.append("note-1", [noted(1)], expected_version=0)
            await store.append("note-1", [noted(2)], expected_version=1)
            await waiting
            await other.wait_until(2)

    # Erasing

    async def test_an_erased_stream_has_lost_its_personal_fields_only(self, store):
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

    async def test_nothing_personal_is_recorded_for_an_erased_subject(self, store):
        await store.erase("note-1")
        with pytest.raises(SubjectErased):
            await store.append("note-1", [noted(1, "secret")], expected_version=0)
        await store.append("note-1", [noted(1)], expected_version=0)

    async def test_an_erasure_is_effective_in_other_processes(self, store, open_store):
        other = await open_store()
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
        assert CODEC.decode((await other.read_all())[0]) == Noted(1, "secret")
        await store.erase("note-1")
        assert CODEC.decode((await other.read_all())[0]) == Noted(1, "[erased]")
        with pytest.raises(SubjectErased):
            await other.append("note-1", [noted(2, "more")], expected_version=1)

    async def test_a_subscriber_who_is_behind_gets_no_erased_text(self, store):
        async with aclosing(store.follow()) as batches:
            await store.append("note-0", [noted(0)], expected_version=0)
            await anext(batches)
            await store.append("note-1", [noted(1, "secret")], expected_version=0)
            await store.erase("note-1")
            assert [CODEC.decode(event) for event in await anext(batches)] == [Noted(1, "[erased]")]

    # Closing

    async def test_close_waits_for_the_appends_under_way(self, store, open_store):
        tasks = [
            asyncio.create_task(store.append(f"note-{number}", [noted(number)], expected_version=0))
            for number in range(20)
        ]
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        appended = await asyncio.gather(*tasks)
        assert sorted(outcome.position for outcome in appended) == list(range(1, 21))
        with pytest.raises(StoreClosed):
            await store.append("note-1", [noted(1)], expected_version=1)
        with pytest.raises(StoreClosed):
            await store.read_all()
        assert await (await open_store()).head() == 20

    async def test_close_ends_subscriptions(self, store):
        taking = asyncio.create_task(take(store, 2))
        await store.append("note-1", [noted(1)], expected_version=0)
        await asyncio.sleep(0)
        await store.close()
        with pytest.raises(StoreClosed):
            await taking
