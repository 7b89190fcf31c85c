"""The event store, measured beside what one could write without it: the sqlite3 module, msgspec, and nothing else.

    python scripts/bench_eventstore.py [--json] [--events N] [--rounds N]

Ours and the rival take turns, round by round, on the same disk, with the same tables, indexes and durability; figures
are medians over the rounds. Disks and neighbours differ more than programs do, so compare ratios.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, closing
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import aiosqlite
import msgspec
from bench_table import report
from msgspec import Struct

from eventstore import Codec, Decider, NewEvent, RecordedEvent, SQLiteEventStore, Views, load, verify

WRITERS = 100
SUBSCRIBERS = 1_000
STREAM_EVENTS = 1_000
"""In each stream of the log that is replayed."""
clock = time.perf_counter


class Event(Struct, frozen=True, tag_field="type", omit_defaults=True):
    pass


class Replied(Event, frozen=True, tag="replied"):
    step: int
    text: str
    model: str
    input_tokens: int
    output_tokens: int
    tools: tuple[str, ...]


class Changed(Event, frozen=True, tag="changed"):
    path: str
    text: str
    lines: int


class State(Struct, frozen=True):
    steps: int = 0
    tokens: int = 0
    lines: int = 0


BenchEvent = Replied | Changed
CODEC: Codec[BenchEvent] = Codec(BenchEvent)


def event(number: int) -> BenchEvent:
    """About 500 bytes."""
    if number % 2:
        return Replied(number, "x" * 380, "anthropic/claude-sonnet-4-5", 1000 + number, number, ("read", "search"))
    return Changed("docs/guides/getting-started.md", "y" * 440, number)


def evolve(state: State, event: BenchEvent) -> State:
    match event:
        case Replied(input_tokens=read, output_tokens=written):
            return State(state.steps + 1, state.tokens + read + written, state.lines)
        case Changed(lines=lines):
            return State(state.steps, state.tokens, state.lines + lines)


JOBS: Decider[None, State, BenchEvent] = Decider("job", State(), lambda _command, _state: [], evolve, CODEC)

# Bare


def bare_log(folder: Path) -> sqlite3.Connection:
    """The store's own tables and indexes."""
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.executescript((resources.files("eventstore.migrations") / "0001_initial.sql").read_text("utf-8"))
    return db


INSERT = (
    "INSERT INTO events (position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data, hash)"
    " VALUES (?, ?, ?, ?, 'replied', 1, '2026-01-01T00:00:00.000000+00:00', '{}', ?, ?)"
)


def bare_row(position: int, streams: int, data: str) -> tuple[Any, ...]:
    return position, f"job-{position % streams}", position // streams + 1, f"{position:032x}", data, bytes(32)


def bare_appends(folder: Path, count: int, batch: int) -> float:
    """Events a second."""
    data = msgspec.json.encode(event(1)).decode()
    with closing(bare_log(folder)) as db:
        began = clock()
        for start in range(1, count + 1, batch):
            rows = [bare_row(position, WRITERS, data) for position in range(start, start + batch)]
            db.execute("BEGIN IMMEDIATE")
            db.executemany(INSERT, rows)
            db.execute("COMMIT")
        return count / (clock() - began)


async def aiosqlite_appends(folder: Path, count: int, writers: int) -> float:
    """Each writer its own commit, one after the other, as it is usually written."""
    bare_log(folder).close()
    data = msgspec.json.encode(event(1)).decode()
    lock, position = asyncio.Lock(), 0
    async with aiosqlite.connect(folder / "bare.db", isolation_level=None) as db:
        await db.execute("PRAGMA synchronous = FULL")

        async def write() -> None:
            nonlocal position
            for _ in range(count // writers):
                async with lock:
                    position += 1
                    await db.execute("BEGIN IMMEDIATE")
                    await db.execute(INSERT, bare_row(position, WRITERS, data))
                    await db.execute("COMMIT")

        began = clock()
        await asyncio.gather(*(write() for _ in range(writers)))
        return position / (clock() - began)


# Ours


def opened(folder: Path, **options: Any) -> Awaitable[SQLiteEventStore]:
    return SQLiteEventStore.open(folder / "events.db", vault_path=folder / "keys.db", **options)


async def appends(
    folder: Path, count: int, writers: int, *, subscribers: int = 0, streams: int = WRITERS
) -> tuple[float, float]:
    """Events a second, and the longest time that the event loop was held up, in milliseconds."""
    async with await opened(folder) as store:
        seen, lag = Seen(count), Lag()

        async def subscribe(number: int) -> None:
            async with aclosing(store.subscribe(stream=f"job-{number}")) as events:
                async for _ in events:
                    seen.note()

        async def write(writer: int) -> None:
            mine = range(writer, streams, writers)
            for number in range(count // writers):
                stream, version = mine[number % len(mine)], number // len(mine)
                await store.append(f"job-{stream}", (CODEC.encode(event(number)),), expected_version=version)

        async with asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(subscribe(number)) for number in range(subscribers)]
            background.append(tasks.create_task(lag.watch()))
            await asyncio.sleep(0.5 if subscribers else 0)  # until each of them has read its stream
            lag.worst = 0.0
            began = clock()
            await asyncio.gather(*(write(writer) for writer in range(writers)))
            rate = count / (clock() - began)
            if subscribers:
                await seen.all.wait()
            for task in background:
                task.cancel()
        return rate, lag.worst * 1000


class Seen:
    """When events were seen, and whether all have been."""

    def __init__(self, count: int) -> None:
        self.times: list[float] = []
        self.all = asyncio.Event()
        self._count = count

    def note(self) -> None:
        self.times.append(clock())
        if len(self.times) == self._count:
            self.all.set()


class Lag:
    """How late the event loop is for a millisecond's sleep."""

    worst = 0.0

    async def watch(self) -> None:
        while True:
            began = clock()
            await asyncio.sleep(0.001)
            self.worst = max(self.worst, clock() - began - 0.001)


async def latencies(folder: Path, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds from an append's return to its event at a subscriber: in this process, and as in another."""
    here, there = Seen(count), Seen(count)
    async with await opened(folder) as store, await opened(folder) as other:

        async def watch(store: SQLiteEventStore, seen: Seen) -> None:
            async with aclosing(store.subscribe()) as events:
                async for _ in events:
                    seen.note()

        tasks = [asyncio.create_task(watch(store, here)), asyncio.create_task(watch(other, there))]
        returned = []
        for number in range(count):
            await store.append("job-1", (CODEC.encode(event(number)),), expected_version=number)
            returned.append(clock())
            await asyncio.sleep(0.01 + (number % 25) / 1000)
        await asyncio.gather(here.all.wait(), there.all.wait())
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    def late(seen: Seen) -> list[float]:
        return [max(time - back, 0) * 1000 for time, back in zip(seen.times, returned, strict=True)]

    return late(here), late(there)


async def write_log(folder: Path, count: int) -> None:
    async with await opened(folder, synchronous="OFF") as store:
        for stream in range(count // STREAM_EVENTS):
            new = [CODEC.encode(event(number)) for number in range(STREAM_EVENTS)]
            await store.append(f"job-{stream}", new, expected_version=0)


def bare_replay(folder: Path) -> float:
    """Events a second: select, decode by the tag, fold. The tag is put back into the data first, as it would be."""
    decode = msgspec.json.Decoder(BenchEvent).decode
    with closing(sqlite3.connect(folder / "replay.db")) as db:
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            db.execute("ATTACH ? AS log", (str(folder / "events.db"),))
            db.execute("CREATE TABLE events (position INTEGER PRIMARY KEY, data TEXT)")
            db.execute(
                "INSERT INTO events SELECT position, '{\"type\":\"' || type || '\",' || substr(data, 2) FROM log.events"
            )
            db.commit()
        began, state, count = clock(), State(), 0
        for (data,) in db.execute("SELECT data FROM events ORDER BY position"):
            state = evolve(state, decode(data))
            count += 1
        return count / (clock() - began)


async def replay_streams(folder: Path, count: int) -> float:
    async with await opened(folder) as store:
        began = clock()
        for stream in range(count // STREAM_EVENTS):
            assert (await load(store, JOBS, str(stream))).version == STREAM_EVENTS
        return count / (clock() - began)


async def replay_log(folder: Path, count: int) -> float:
    async with await opened(folder) as store:
        began, state, position = clock(), State(), 0
        while events := await store.read_all(after=position):
            for recorded in events:
                state = evolve(state, CODEC.decode(recorded))
            position = events[-1].position
        return count / (clock() - began)


def verified(folder: Path, count: int) -> float:
    began = clock()
    assert verify(folder / "events.db").position == count
    return count / (clock() - began)


class Sizes:
    """A row for each event."""

    name = "sizes-1"
    tables = "CREATE TABLE sizes (position INTEGER PRIMARY KEY, stream TEXT, type TEXT, size INTEGER);"

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        rows = [(event.position, event.stream, event.type, len(event.data)) for event in events]
        db.executemany("INSERT INTO sizes VALUES (?, ?, ?, ?)", rows)


class Tokens:
    """A row for each stream, from decoded events."""

    name = "tokens-1"
    tables = "CREATE TABLE tokens (stream TEXT PRIMARY KEY, tokens INTEGER) WITHOUT ROWID;"

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        added: dict[str, int] = {}
        for recorded in events:
            match CODEC.decode(recorded):
                case Replied(input_tokens=read, output_tokens=written):
                    added[recorded.stream] = added.get(recorded.stream, 0) + read + written
                case Changed():
                    pass
        db.executemany(
            "INSERT INTO tokens VALUES (?, ?) ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens",
            added.items(),
        )


async def projected(folder: Path, count: int, projection: Sizes | Tokens) -> float:
    (folder / "views.db").unlink(missing_ok=True)
    async with await opened(folder) as store:
        began = clock()
        async with await Views.open(folder / "views.db", store, [projection]) as views:
            await views.catch_up()
            assert views.status()[0].position == count
            return count / (clock() - began)


async def personal_appends(folder: Path, count: int) -> float:
    """A hundred writers of events that are encrypted."""
    async with await opened(folder) as store:

        async def write(writer: int) -> None:
            for number in range(count // WRITERS):
                new = NewEvent("said", b"{}", msgspec.json.encode({"text": "x" * 500}))
                await store.append(f"thread-{writer}", (new,), expected_version=number)

        began = clock()
        await asyncio.gather(*(write(writer) for writer in range(WRITERS)))
        return count / (clock() - began)


# The whole


def measure(events: int, rounds: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    seen: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        seen.setdefault(name, []).append(value)

    def fresh(run: Callable[[Path], Any]) -> Any:
        with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as folder:
            return run(Path(folder))

    for _ in range(rounds):
        note("bare batches", fresh(lambda folder: bare_appends(folder, 20_000, WRITERS)))
        rate, lag = fresh(lambda folder: asyncio.run(appends(folder, 20_000, WRITERS)))
        note("writers", rate)
        note("lag", lag)
        note("ten writers", fresh(lambda folder: asyncio.run(appends(folder, 5_000, 10)))[0])
        note("aiosqlite", fresh(lambda folder: asyncio.run(aiosqlite_appends(folder, 1_000, 10))))
        note("personal", fresh(lambda folder: asyncio.run(personal_appends(folder, 10_000))))
        note("bare commit", 1000 / fresh(lambda folder: bare_appends(folder, 1_000, 1)))
        note("lone writer", 1000 / fresh(lambda folder: asyncio.run(appends(folder, 1_000, 1)))[0])
        alone, _ = fresh(lambda folder: asyncio.run(appends(folder, 10_000, WRITERS, streams=SUBSCRIBERS)))
        followed, _ = fresh(
            lambda folder: asyncio.run(appends(folder, 10_000, WRITERS, streams=SUBSCRIBERS, subscribers=SUBSCRIBERS))
        )
        note("not followed", alone)
        note("followed", followed)
    here, there = fresh(lambda folder: asyncio.run(latencies(folder, 200)))

    def long(folder: Path) -> None:
        asyncio.run(write_log(folder, events))
        for _ in range(rounds):
            note("bare replay", bare_replay(folder))
            note("streams", asyncio.run(replay_streams(folder, events)))
            note("log", asyncio.run(replay_log(folder, events)))
            note("verify", verified(folder, events))
            note("sizes", asyncio.run(projected(folder, events, Sizes())))
            note("tokens", asyncio.run(projected(folder, events, Tokens())))

    fresh(long)
    middle = {name: median(values) for name, values in seen.items()}
    rows = [
        row("append, batches of 100, bare sqlite3", middle["bare batches"]),
        row("append, 100 writers", middle["writers"], middle["bare batches"]),
        row("append, 100 writers, encrypted", middle["personal"], middle["bare batches"]),
        row("append, 10 writers", middle["ten writers"]),
        row("append, 10 writers, aiosqlite, a commit each", middle["aiosqlite"]),
        row("append, one at a time, bare sqlite3", 1000 / middle["bare commit"]),
        row("append, one writer", 1000 / middle["lone writer"], 1000 / middle["bare commit"]),
        row("append, 100 writers to 1,000 streams", middle["not followed"]),
        row("the same, each stream with a subscriber", middle["followed"], middle["not followed"]),
        row("replay, bare sqlite3 and msgspec", middle["bare replay"]),
        row("replay, stream by stream (load)", middle["streams"], middle["bare replay"]),
        row("replay, the log with all of its columns (read_all)", middle["log"], middle["bare replay"]),
        row("verify the chain", middle["verify"]),
        row("projection, a row for each event", middle["sizes"]),
        row("projection, decoded, a row for each stream", middle["tokens"]),
        {"what": "append to subscriber, same process", "p50 ms": at(here, 0.5), "p99 ms": at(here, 0.99)},
        {"what": "append to subscriber, another process", "p50 ms": at(there, 0.5), "p99 ms": at(there, 0.99)},
        {"what": "event loop held up by 100 writers", "p50 ms": round(middle["lag"], 2)},
    ]
    goals = [
        at_least("100 writers, of bare batches of 100", 0.6, middle["writers"] / middle["bare batches"]),
        at_most("one writer, of a bare commit", 1.3, middle["lone writer"] / middle["bare commit"]),
        at_least(f"replay of {events:,} events, of bare", 0.7, middle["streams"] / middle["bare replay"]),
        at_least("chain verification, events a second", 200_000, middle["verify"]),
        at_least("projections, events a second", 100_000, min(middle["sizes"], middle["tokens"])),
        at_most("append to subscriber, p99, ms", 2, at(here, 0.99)),
        at_least("append rate with 1,000 subscribers, of without", 0.5, middle["followed"] / middle["not followed"]),
        at_most("event loop held up by 100 writers, ms", 10, middle["lag"]),
    ]
    return rows, goals


def row(what: str, rate: float, of: float | None = None) -> dict[str, Any]:
    shown = {"what": what, "events/s": round(rate)}
    return shown if of is None else {**shown, "of the above": round(rate / of, 2)}


def at(values: list[float], share: float) -> float:
    return round(sorted(values)[min(len(values) - 1, int(len(values) * share))], 2)


def at_least(name: str, goal: float, measured: float) -> dict[str, Any]:
    return {"name": name, "goal": f"at least {goal:,}", "measured": figure(measured), "met": measured >= goal}


def at_most(name: str, goal: float, measured: float) -> dict[str, Any]:
    return {"name": name, "goal": f"at most {goal:,}", "measured": figure(measured), "met": measured <= goal}


def figure(value: float) -> str:
    return f"{value:,.0f}" if value > 1000 else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the event store.")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--events", type=int, default=1_000_000, help="in the log that is replayed")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows, goals = measure(options.events // STREAM_EVENTS * STREAM_EVENTS, options.rounds)
    report("eventstore", rows, goals, as_json=options.json)


if __name__ == "__main__":
    main()
