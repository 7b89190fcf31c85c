"""Bare SQLite and the eventsourcing library doing what ``bench_eventstore`` measures, and the events for all three."""

import asyncio
import hashlib
import importlib.util
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import aiosqlite
import msgspec
from msgspec import Struct

from eventstore import Codec, Decider
from eventstore.log.chain import FORMAT

WRITERS = 100
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
    db.executescript((resources.files("eventstore.sqlite.migrations") / "0001_initial.sql").read_text("utf-8"))
    return db


INSERT = (
    "INSERT INTO events (position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data, hash)"
    " VALUES (?, ?, ?, ?, 'replied', 1, '2026-01-01T00:00:00.000000+00:00', '{}', ?, ?)"
)


def bare_row(position: int, streams: int, data: str) -> tuple[Any, ...]:
    return position, f"job-{position % streams}", position // streams + 1, f"{position:032x}", data, bytes(32)


def bare_appends(folder: Path, count: int, batch: int) -> tuple[float, list[float]]:
    """Events a second, and how long each batch took in milliseconds."""
    data, took = msgspec.json.encode(event(1)).decode(), list[float]()
    with closing(bare_log(folder)) as db:
        began = last = clock()
        for start in range(1, count + 1, batch):
            rows = [bare_row(position, WRITERS, data) for position in range(start, start + batch)]
            db.execute("BEGIN IMMEDIATE")
            db.executemany(INSERT, rows)
            db.execute("COMMIT")
            took.append((clock() - last) * 1000)
            last = clock()
        return count / (last - began), took


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


def flush_milliseconds(folder: Path) -> float:
    """The time that the disk needs to make the bytes of a batch durable, written over in place as a WAL is."""
    data, times = os.urandom(100_000), []
    with (folder / "flushed").open("wb", buffering=0) as file:
        for _ in range(200):
            file.seek(0)
            file.write(data)
            began = clock()
            os.fdatasync(file.fileno())
            times.append((clock() - began) * 1000)
    return median(times)


# The eventsourcing library


def has_library() -> bool:
    return importlib.util.find_spec("eventsourcing") is not None


def library_appends(folder: Path, count: int, writers: int) -> float:
    """Single events by threads, through its SQLite recorder; events a second."""
    from eventsourcing.persistence import StoredEvent
    from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

    recorder = SQLiteApplicationRecorder(
        SQLiteDatastore(str(folder / "library.db"), pool_size=writers, lock_timeout=60, pool_timeout=60)
    )
    recorder.create_table()
    data = msgspec.json.encode(event(1))

    def write(_: int) -> None:
        stream = uuid4()
        for version in range(1, count // writers + 1):
            recorder.insert_events([StoredEvent(stream, version, "bench:Replied", data)])

    with ThreadPoolExecutor(writers) as threads:
        began = clock()
        list(threads.map(write, range(writers)))
        rate = count / (clock() - began)
    recorder.datastore.close()
    return rate


@cache
def library_aggregate() -> Any:
    """The same events as the library would have them written; made once, since it finds classes by name."""
    from eventsourcing.domain import Aggregate
    from eventsourcing.domain import event as caused

    class Job(Aggregate):
        def __init__(self) -> None:
            self.steps = self.tokens = self.lines = 0

        @caused("Replied")
        def reply(self, step: int, text: str, model: str, read: int, written: int, tools: list[str]) -> None:  # noqa: ARG002
            self.steps += 1
            self.tokens += read + written

        @caused("Changed")
        def change(self, path: str, text: str, lines: int) -> None:  # noqa: ARG002
            self.lines += lines

    Job.__qualname__ = "Job"
    for inner in ("Event", "Created", "Replied", "Changed"):
        if hasattr(Job, inner):
            getattr(Job, inner).__qualname__ = f"Job.{inner}"
    globals()["Job"] = Job
    return Job


def library_replay(folder: Path, streams: int) -> float:
    """Aggregates of a thousand events each, loaded from its repository; events a second."""
    from eventsourcing.application import Application

    aggregate = library_aggregate()
    path = str(folder / "library.db")
    app: Application[Any] = Application(env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": path})
    ids = []
    for _ in range(streams):
        job = aggregate()
        for number in range(STREAM_EVENTS - 1):
            match event(number):
                case Replied(step, text, model, read, written, tools):
                    job.reply(step, text, model, read, written, list(tools))
                case Changed(path, text, lines):
                    job.change(path, text, lines)
        app.save(job)
        ids.append(job.id)
    began = clock()
    for one in ids:
        assert app.repository.get(one).version == STREAM_EVENTS
    rate = streams * STREAM_EVENTS / (clock() - began)
    app.close()
    return rate


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


def bare_hashes(folder: Path) -> tuple[float, float]:
    """Events a second: SHA-256 over the bytes that the chain covers and nothing else; and with reading the rows."""
    hashing, began, count, rows = 0.0, clock(), 0, list[tuple[bytes]]()
    with closing(sqlite3.connect(folder / "events.db")) as db:
        covered = "stream || id || type || recorded_at || metadata || data || coalesce(sealed, '')"
        covered = f"CAST(zeroblob(120) || {covered} || '{FORMAT.decode()}' AS BLOB)"  # hash before, numbers, lengths
        reading = db.execute(f"SELECT {covered} FROM events ORDER BY position")
        while rows := reading.fetchmany(1_000):
            start = clock()
            for (text,) in rows:
                hashlib.sha256(text).digest()
            hashing += clock() - start
            count += len(rows)
        return count / hashing, count / (clock() - began)
