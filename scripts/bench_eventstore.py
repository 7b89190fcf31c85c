"""The event store, measured beside what one could write without it, and beside the eventsourcing library.

    scripts/bench eventstore [--json] [--events N] [--rounds N]
    scripts/bench eventstore --store postgresql://… [--json] [--events N] [--rounds N]

The second is ``scripts/bench postgres`` with that database: appends beside bare COPY and the library there.

Ours and the rivals take turns, round by round, on the same disk: the sqlite3 module with msgspec and nothing else, on
the same tables, indexes and durability; and the library (https://pypi.org/project/eventsourcing/) as it comes, on its
own tables. Figures are medians over the rounds. Disks and neighbours differ more than programs do: compare ratios.

The library is not among the packages that the tests need: .venv/bin/pip install eventsourcing (the extra ``bench``).
"""

import argparse
import asyncio
import resource
import sqlite3
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import msgspec
from bench_bare import (
    CODEC,
    JOBS,
    STREAM_EVENTS,
    WRITERS,
    Changed,
    Replied,
    State,
    aiosqlite_appends,
    bare_appends,
    bare_hashes,
    bare_replay,
    clock,
    event,
    evolve,
    flush_milliseconds,
    has_library,
    library_appends,
    library_replay,
)
from bench_table import report

from eventstore import NewEvent, RecordedEvent, SQLiteEventStore, Views, load, verify

SUBSCRIBERS = 1_000


# Ours


def opened(folder: Path, **options: Any) -> Awaitable[SQLiteEventStore]:
    return SQLiteEventStore.open(folder / "events.db", vault_path=folder / "keys.db", **options)


async def appends(
    folder: Path, count: int, writers: int, *, subscribers: int = 0, streams: int = WRITERS
) -> tuple[float, list[float]]:
    """Events a second, and how long each append took in milliseconds."""
    async with await opened(folder) as store:
        seen, took = Seen(count), list[float]()
        new = [(CODEC.encode(event(number)),) for number in range(count // writers)]

        async def subscribe(number: int) -> None:
            async with aclosing(store.subscribe(stream=f"job-{number}")) as events:
                async for _ in events:
                    seen.note()

        async def write(writer: int) -> None:
            mine = range(writer, streams, writers)
            for number, events in enumerate(new):
                began = clock()
                stream, version = mine[number % len(mine)], number // len(mine)
                await store.append(f"job-{stream}", events, expected_version=version)
                took.append((clock() - began) * 1000)

        async with asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(subscribe(number)) for number in range(subscribers)]
            await asyncio.sleep(0.5 if subscribers else 0)  # until each of them has read its stream
            began = clock()
            await asyncio.gather(*(write(writer) for writer in range(writers)))
            rate = count / (clock() - began)
            if subscribers:
                await seen.all.wait()
            for task in following:
                task.cancel()
        return rate, took


async def loop_lag(folder: Path, count: int) -> float:
    """The longest time that the event loop was held up by a hundred writers, in milliseconds."""
    lag = Lag()
    watching = asyncio.create_task(lag.watch())
    await appends(folder, count, WRITERS)
    watching.cancel()
    await asyncio.wait([watching])
    return lag.worst * 1000


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


async def replay_streams(folder: Path, count: int) -> tuple[float, float]:
    """Events a second, and by how many megabytes the process grew after the first tenth."""
    async with await opened(folder) as store:
        began, streams, before = clock(), count // STREAM_EVENTS, 0.0
        for stream in range(streams):
            assert (await load(store, JOBS, str(stream))).version == STREAM_EVENTS
            if stream == streams // 10:
                before = peak_megabytes()
        return count / (clock() - began), peak_megabytes() - before


def peak_megabytes() -> float:
    """The most that this process has had in memory; the kernel counts in kilobytes, that of macOS in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


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
        note("flush", fresh(flush_milliseconds))
        rate, took = fresh(lambda folder: bare_appends(folder, 20_000, WRITERS))
        note("bare batches", rate)
        note("bare p50", at(took, 0.5))
        note("bare p99", at(took, 0.99))
        rate, took = fresh(lambda folder: asyncio.run(appends(folder, 20_000, WRITERS)))
        note("writers", rate)
        note("p50", at(took, 0.5))
        note("p99", at(took, 0.99))
        note("p99 of bare", seen["p99"][-1] / seen["bare p99"][-1])
        note("lag", fresh(lambda folder: asyncio.run(loop_lag(folder, 10_000))))
        note("ten writers", fresh(lambda folder: asyncio.run(appends(folder, 5_000, 10)))[0])
        note("aiosqlite", fresh(lambda folder: asyncio.run(aiosqlite_appends(folder, 1_000, 10))))
        note("personal", fresh(lambda folder: asyncio.run(personal_appends(folder, 10_000))))
        note("bare commit", 1000 / fresh(lambda folder: bare_appends(folder, 1_000, 1))[0])
        note("lone writer", 1000 / fresh(lambda folder: asyncio.run(appends(folder, 1_000, 1)))[0])
        if has_library():
            note("library", fresh(lambda folder: library_appends(folder, 2_000, WRITERS)))
            note("library replay", fresh(lambda folder: library_replay(folder, 20)))
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
            rate, grown = asyncio.run(replay_streams(folder, events))
            note("streams", rate)
            note("grown", grown)
            note("log", asyncio.run(replay_log(folder, events)))
            hashing, reading = bare_hashes(folder)
            note("bare hashes", hashing)
            note("bare reading and hashes", reading)
            note("verify", verified(folder, events))
            note("sizes", asyncio.run(projected(folder, events, Sizes())))
            note("tokens", asyncio.run(projected(folder, events, Tokens())))

    fresh(long)
    middle = {name: median(values) for name, values in seen.items()}
    library = middle.get("library")
    library_replays = middle.get("library replay")
    rows = [
        {**row("append, batches of 100, bare sqlite3", middle["bare batches"]), "p50 ms": round(middle["bare p50"], 2),
         "p99 ms": round(middle["bare p99"], 2)},
        {**row("append, 100 writers", middle["writers"], middle["bare batches"]), "p50 ms": round(middle["p50"], 2),
         "p99 ms": round(middle["p99"], 2)},
        row("append, 100 writers, encrypted", middle["personal"], middle["bare batches"]),
        *([] if library is None else [row("append, 100 threads, eventsourcing", library, middle["bare batches"])]),
        row("append, 10 writers", middle["ten writers"]),
        row("append, 10 writers, aiosqlite, a commit each", middle["aiosqlite"]),
        row("append, one at a time, bare sqlite3", 1000 / middle["bare commit"]),
        row("append, one writer", 1000 / middle["lone writer"], 1000 / middle["bare commit"]),
        row("append, 100 writers to 1,000 streams", middle["not followed"]),
        row("the same, each stream with a subscriber", middle["followed"], middle["not followed"]),
        row("replay, bare sqlite3 and msgspec", middle["bare replay"]),
        row("replay, stream by stream (load)", middle["streams"], middle["bare replay"]),
        row("replay, the log with all of its columns (read_all)", middle["log"], middle["bare replay"]),
        *([] if library_replays is None else [row("replay, eventsourcing", library_replays, middle["bare replay"])]),
        row("verify, SHA-256 of the same bytes alone", middle["bare hashes"]),
        row("verify, SHA-256 and reading the rows, bare sqlite3", middle["bare reading and hashes"]),
        row("verify the chain and the file", middle["verify"], middle["bare hashes"]),
        row("projection, a row for each event", middle["sizes"]),
        row("projection, decoded, a row for each stream", middle["tokens"]),
        {"what": "flush of 100 kB", "p50 ms": round(middle["flush"], 2)},
        {"what": "append to subscriber, same process", "p50 ms": at(here, 0.5), "p99 ms": at(here, 0.99)},
        {"what": "append to subscriber, another process", "p50 ms": at(there, 0.5), "p99 ms": at(there, 0.99)},
        {"what": "event loop held up by 100 writers", "p50 ms": round(middle["lag"], 2)},
    ]  # fmt: skip
    goals = [
        at_least("100 writers, of bare batches of 100", 0.7, middle["writers"] / middle["bare batches"]),
        at_least("100 writers, encrypted, of bare batches of 100", 0.55, middle["personal"] / middle["bare batches"]),
        compared("100 writers, of the eventsourcing library", 10, middle["writers"], library),
        at_most("100 writers, p99, of the p99 of bare batches", 1.5, middle["p99 of bare"]),
        at_most("one writer, of a bare commit", 1.3, middle["lone writer"] / middle["bare commit"]),
        at_least(f"replay of {events:,} events, of bare", 0.85, middle["streams"] / middle["bare replay"]),
        at_least("replay of the log with all of its columns, of bare", 0.7, middle["log"] / middle["bare replay"]),
        compared("replay, of the eventsourcing library", 4, middle["streams"], library_replays),
        at_most("replay, memory grown after a tenth of it, MB", 20, middle["grown"]),
        at_least("chain verification, of hashing the same bytes alone", 0.8, middle["verify"] / middle["bare hashes"]),
        at_least("projections, events a second", 150_000, min(middle["sizes"], middle["tokens"])),
        at_most("append to subscriber, p99, ms", 2, at(here, 0.99)),
        at_least("append rate with 1,000 subscribers, of without", 0.5, middle["followed"] / middle["not followed"]),
        at_most("event loop held up by 100 writers, ms", 10, middle["lag"]),
    ]
    return rows, goals


def compared(name: str, goal: float, ours: float, theirs: float | None) -> dict[str, Any]:
    if theirs is None:
        missing = "not measured; .venv/bin/pip install eventsourcing"
        return {"name": name, "goal": f"at least {goal:,}", "measured": missing, "met": False}
    return at_least(name, goal, ours / theirs)


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
    parser.add_argument("--events", type=int, help="in the log that is replayed, or appended with --store")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", metavar="ADDRESS", help="a database in which schemas may be made")
    parser.add_argument("--rivals", type=Path, help="the environment of the library, with --store")
    options = parser.parse_args()
    if options.store:
        import bench_postgres

        bench_postgres.add_rivals(options.rivals or bench_postgres.ENVIRONMENT)
        bench_postgres.run(
            options.store, options.events or 10_000, options.rounds, as_json=options.json, name="eventstore"
        )
        return
    events = (options.events or 1_000_000) // STREAM_EVENTS * STREAM_EVENTS
    rows, goals = measure(events, options.rounds)
    report("eventstore", rows, goals, as_json=options.json)


if __name__ == "__main__":
    main()
