"""What every event store does with what is appended to it, whatever it is made of (see backends.py)."""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventstore import (
    Append,
    Appended,
    DuplicateEventId,
    InvalidEvent,
    Metadata,
    NewEvent,
    StoreClosed,
    SubjectErased,
    WrongExpectedVersion,
)
from eventstore.appending.append_queue import SET_AT_ONCE
from tests.eventstore.backends import BACKENDS, start_appender
from tests.eventstore.shapes import CODEC, Noted, counted, noted, numbers, take

MANY = 5_000
"""More than one transaction holds."""


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


# Appending


async def test_append_returns_where_it_went(store):
    assert await store.append("note-1", [noted(1), noted(2)], expected_version=0) == Appended(2, 2)
    assert await store.append("note-2", [noted(3)], expected_version=0) == Appended(3, 1)
    assert await store.append("note-1", [noted(4)], expected_version=2) == Appended(4, 3)
    assert (await store.head(), await store.stream_version("note-1")) == (4, 3)


async def test_recorded_event_equals_the_appended_one(store):
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
async def test_another_version_than_expected_is_refused(store, expected):
    await store.append("note-1", [noted(1), noted(2)], expected_version=0)
    with pytest.raises(WrongExpectedVersion) as refused:
        await store.append("note-1", [noted(3)], expected_version=expected)
    assert (refused.value.stream, refused.value.expected, refused.value.actual) == ("note-1", expected, 2)
    assert await store.head() == 2


async def test_of_writers_with_the_same_expectation_one_wins(store):
    outcomes = await asyncio.gather(
        *(store.append("note-1", [noted(number)], expected_version=0) for number in range(50)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, Appended) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, WrongExpectedVersion) for outcome in outcomes) == 49


async def test_a_refused_append_does_not_touch_its_neighbours(store):
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


async def test_several_streams_are_written_together_or_not_at_all(store):
    await store.append("note-1", [noted(1)], expected_version=0)
    writes = [Append("note-1", (noted(2),), 1), Append("tally-1", (counted(), counted()), 0)]
    assert await store.append_all(writes) == Appended(4, 2)
    with pytest.raises(WrongExpectedVersion):
        await store.append_all([Append("note-2", (noted(3),), 0), Append("tally-1", (counted(),), 0)])
    assert await store.stream_version("note-2") == 0
    assert await store.head() == 4


async def test_stream_may_be_written_twice_in_one_append(store):
    writes = [Append("note-1", (noted(1),), 0), Append("note-1", (noted(2),), 1)]
    assert await store.append_all(writes) == Appended(2, 2)


@pytest.mark.parametrize("writes", [[], [Append("note-1", (), 0)], [Append("", (counted(),), 0)]])
async def test_an_append_of_nothing_is_a_mistake(store, writes):
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
        NewEvent("noted\0", b"{}"),
        NewEvent("noted", b"{}", id="\0"),
    ],
    ids=lambda event: repr((event.type, event.data))[:40],
)
async def test_event_that_cannot_be_read_is_refused_alone(store, event):
    outcomes = await asyncio.gather(
        store.append("note-1", [noted(1)], expected_version=0),
        store.append("note-2", [noted(2), event], expected_version=0),
        store.append("note-3", [noted(3)], expected_version=0),
        return_exceptions=True,
    )
    assert outcomes[0::2] == [Appended(1, 1), Appended(2, 1)]
    assert isinstance(outcomes[1], InvalidEvent)
    assert await store.stream_version("note-2") == 0


async def test_event_as_large_as_a_reply_is_stored(store):
    text = "\U0001f9ea\n\u2028" * 200_000
    await store.append("note-1", [noted(1, text)], expected_version=0)
    assert [CODEC.decode(event) for event in await store.read_all()] == [Noted(1, text)]


@pytest.mark.parametrize("stream", ["note-\ud800", "note-\0", "", "note-" + "n" * 1_100, "note-" + "\u00e4" * 600])
async def test_a_name_that_cannot_be_stored_is_refused_alone(store, stream):
    outcomes = await asyncio.gather(
        store.append("note-1", [noted(1, "secret")], expected_version=0),
        store.append(stream, [noted(1, "secret")], expected_version=0),
        return_exceptions=True,
    )
    assert outcomes[0] == Appended(1, 1)
    assert isinstance(outcomes[1], InvalidEvent)


# Many at once


async def test_waiting_append_is_woken_by_its_outcome_only(store):
    appends = [Woken(store.append(f"note-{n}", [noted(n)], expected_version=0)) for n in range(3 * MANY)]
    outcomes = await asyncio.gather(*appends)
    assert [outcome.position for outcome in outcomes] == list(range(1, 3 * MANY + 1)), "first in, first out"
    assert {append.times for append in appends} == {1}


async def test_outcomes_of_a_large_batch_come_in_parts(store):
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
    assert max(Counter(of_turn).values()) <= 2 * SET_AT_ONCE  # the last of a batch, and the first of the next


async def test_writers_in_step_share_each_commit(store):
    writers = range(2 * SET_AT_ONCE - 1)

    async def write(writer: int) -> None:
        for number in range(3):
            await store.append(f"note-{writer}", [noted(number)], expected_version=number)

    await asyncio.gather(*(write(writer) for writer in writers))
    commits = Counter(event.recorded_at for event in await store.read_all())
    assert list(commits.values()) == [len(writers)] * 3


# Appending again


async def test_a_repeated_append_returns_what_the_first_returned(store):
    events = [noted(1, event_id="a"), noted(2, event_id="b")]
    first = await store.append("note-1", events, expected_version=0)
    await store.append("note-1", [noted(3)], expected_version=2)
    assert await store.append("note-1", events, expected_version=0) == first
    assert await store.head() == 3


async def test_repeats_in_one_batch_are_one_append(store):
    outcomes = await asyncio.gather(
        *(store.append("note-1", [noted(1, event_id="a")], expected_version=0) for _ in range(10))
    )
    assert outcomes == [Appended(1, 1)] * 10
    assert await store.head() == 1


async def test_a_repeated_append_to_several_streams_is_one_append(store):
    writes = [Append("note-1", (noted(1, event_id="a"),), 0), Append("note-2", (noted(2, event_id="b"),), 0)]
    assert await store.append_all(writes) == await store.append_all(writes) == Appended(2, 1)


async def test_ids_that_are_stored_elsewhere_are_no_repeat(store):
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
async def test_id_of_another_event_is_an_error(store, other):
    first = noted(1, "secret", event_id="a")
    await store.append("note-1", [first], expected_version=0)
    with pytest.raises(DuplicateEventId):
        await store.append("note-1", [other], expected_version=0)
    assert await store.append("note-1", [first], expected_version=0) == Appended(1, 1)
    await store.erase("note-1")
    assert await store.append("note-1", [first], expected_version=0) == Appended(1, 1)
    assert await store.head() == 1


async def test_event_is_found_by_its_id(store):
    await store.append("note-1", [noted(1, event_id="a"), noted(2, "secret", event_id="b")], expected_version=0)
    found = await store.find("b")
    assert (found.position, CODEC.decode(found)) == (2, Noted(2, "secret"))
    assert await store.find("c") is None


# Cancelling


async def test_cancelled_append_leaves_at_most_its_events(store):
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


# Several processes


async def test_processes_write_one_log_without_gaps(backend_name, backend, tmp_path):
    async with await backend.open(tmp_path) as store:
        children = [start_appender(backend_name, tmp_path, name, 150) for name in ("a", "b", "c")]
        outputs = await asyncio.gather(*(asyncio.to_thread(child.communicate) for child in children))
        assert [child.returncode for child in children] == [0, 0, 0]
        events = await store.read_all(limit=10_000)
    assert [event.position for event in events] == list(range(1, 451))
    told = {tuple(json.loads(line)) for output, _ in outputs for line in output.splitlines()}
    assert told == {(event.stream, event.stream_version, event.position) for event in events}
    assert backend.is_sound(tmp_path)


# Closing


async def test_close_waits_for_the_appends_under_way(store, open_store):
    tasks = [
        asyncio.create_task(store.append(f"note-{number}", [noted(number)], expected_version=0)) for number in range(20)
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


async def test_close_ends_subscriptions(store):
    taking = asyncio.create_task(take(store, 2))
    await store.append("note-1", [noted(1)], expected_version=0)
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StoreClosed):
        await taking


# Against a model


@pytest.mark.parametrize("name", BACKENDS)
@given(
    rounds=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(-1, 1)), min_size=1, max_size=6),
        max_size=6,
    )
)
@settings(max_examples=25, deadline=None)
def test_concurrent_appends_do_what_some_order_of_them_does(name, rounds):
    """Each round's appends are made at once: (stream, how many events, how far the expectation is off)."""

    async def run(folder: Path) -> None:
        versions = dict.fromkeys(range(4), 0)
        async with await BACKENDS[name].open(folder) as store:
            for round_ in rounds:
                expectations = [max(versions[stream] + off, 0) for stream, _, off in round_]
                outcomes = await asyncio.gather(
                    *(
                        store.append(f"note-{stream}", [noted(0)] * count, expected_version=expected)
                        for (stream, count, _), expected in zip(round_, expectations, strict=True)
                    ),
                    return_exceptions=True,
                )
                for (stream, count, _), expected, outcome in zip(round_, expectations, outcomes, strict=True):
                    if versions[stream] == expected:
                        assert isinstance(outcome, Appended)
                        versions[stream] += count
                        assert outcome.stream_version == versions[stream]
                    else:
                        assert isinstance(outcome, WrongExpectedVersion)
                        assert outcome.actual == versions[stream]
            events = await store.read_all(limit=1000)
            assert [event.position for event in events] == list(range(1, sum(versions.values()) + 1))
            for stream, version in versions.items():
                mine = [event.stream_version for event in events if event.stream == f"note-{stream}"]
                assert mine == list(range(1, version + 1))
        assert BACKENDS[name].is_sound(folder)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
