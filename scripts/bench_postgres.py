"""The event store in PostgreSQL, measured beside bare COPY and beside the eventsourcing library, in one run.

    scripts/bench postgres [--json] [--store ADDRESS] [--events N] [--rounds N]

Without an address it starts a server of its own, durable as servers are by default, on the disk of the temporary
folder. Everything takes turns, round by round, in schemas that are dropped at the end. Figures are medians: compare
ratios, since disks and neighbours differ more than programs do.

``scripts/bench eventstore --store ADDRESS`` does the same. The library is not among the packages that the tests need,
and lives in an environment of its own: ``.venv-bench/bin/pip install 'eventsourcing[postgres]'``; ``--rivals`` names
another.
"""

import argparse
import asyncio
import importlib.util
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent.parent))

import asyncpg
import msgspec
from bench_table import report

from eventstore import NewEvent
from eventstore.postgres.connections import Address, Connections
from eventstore.postgres.postgres_store import PostgresEventStore
from eventstore.postgres.schema import prepare
from tests.eventstore.cluster import MISSING, Cluster, programs

ENVIRONMENT = Path(__file__).parent.parent / ".venv-bench"
WRITERS = 100
BATCH = 100
"""Events in a COPY: what 100 writers in step would put into one."""
DATA = msgspec.json.encode({"step": 1, "text": "x" * 380, "model": "anthropic/claude-sonnet-4-5", "tokens": 1000})
_COLUMNS = (
    "position", "stream", "stream_version", "id", "type", "schema_version", "recorded_at", "metadata", "data", "hash",
)  # fmt: skip
clock = time.perf_counter


@contextmanager
def a_server() -> Iterator[str]:
    folder = programs()
    if folder is None:
        raise SystemExit(MISSING)
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="docsmith-postgres-")), folder)
    cluster.make(durable=True)
    cluster.start()
    try:
        yield cluster.address
    finally:
        cluster.remove()


@contextmanager
def schemas(server: str) -> Iterator[tuple[Address, Address]]:
    """Give the addresses of an empty log and vault, which are dropped at the end."""
    name = f"bench_{uuid4().hex[:8]}"
    joined = "&" if "?" in server else "?"
    with closing(Connections.open(Address(server))) as connections:
        for part in ("log", "vault"):
            connections.fetch(f"CREATE SCHEMA {name}_{part}")
        try:
            yield (
                Address(f"{server}{joined}search_path={name}_log"),
                Address(f"{server}{joined}search_path={name}_vault"),
            )
        finally:
            for part in ("log", "vault"):
                connections.fetch(f"DROP SCHEMA {name}_{part} CASCADE")


async def bare_copy(server: str, count: int) -> tuple[float, float]:
    """COPY into the store's own tables, a transaction for each batch: events a second, and the p99 of a batch in ms."""
    with schemas(server) as (log, _):
        with closing(Connections.open(log)) as connections:
            prepare(connections, "log", read_only=False)
        connection = await asyncpg.connect(log.text)
        took, text = [], DATA.decode()
        began = clock()
        for start in range(1, count + 1, BATCH):
            at = clock()
            rows = [
                (position, f"job-{position % WRITERS}", position // WRITERS + 1, f"{position:032x}", "replied", 1,
                 "2026-01-01T00:00:00.000000+00:00", "{}", text, bytes(32))
                for position in range(start, start + BATCH)
            ]  # fmt: skip
            async with connection.transaction():
                await connection.execute("SELECT position FROM head FOR UPDATE")
                await connection.copy_records_to_table("events", records=rows, columns=_COLUMNS)
                await connection.execute("UPDATE head SET position = $1", start + BATCH - 1)
            took.append((clock() - at) * 1000)
        rate = count / (clock() - began)
        await connection.close()
        return rate, sorted(took)[int(len(took) * 0.99)]


async def ours(
    server: str, count: int, *, writers: int, instances: int = 1, personal: bool = False
) -> tuple[float, float]:
    """Single events by writers of one or several instances: events a second, and the p99 of an append in ms."""
    with schemas(server) as (log, vault):
        async with AsyncExitStack() as stack:
            stores = [
                await stack.enter_async_context(await PostgresEventStore.open(log, vault=vault))
                for _ in range(instances)
            ]
            took: list[float] = []
            new = NewEvent("replied", b"{}" if personal else DATA, DATA if personal else None)

            async def write(number: int) -> None:
                store = stores[number % instances]
                for version in range(count // writers):
                    at = clock()
                    await store.append(f"job-{number}", [new], expected_version=version)
                    took.append((clock() - at) * 1000)

            began = clock()
            await asyncio.gather(*(write(number) for number in range(writers)))
            return len(took) / (clock() - began), sorted(took)[int(len(took) * 0.99)]


def add_rivals(environment: Path) -> None:
    """Let the packages of an environment be imported where this one has none of that name."""
    sys.path += sorted(map(str, environment.glob("lib/python3*/site-packages")))


def has_library() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("eventsourcing", "psycopg"))


def library(server: str, count: int, writers: int) -> float:
    """Single events by threads, through the library's own recorder; events a second."""
    from eventsourcing.persistence import StoredEvent
    from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
    from psycopg.conninfo import conninfo_to_dict

    given = conninfo_to_dict(server)
    datastore = PostgresDatastore(
        dbname=given.get("dbname", ""), host=given.get("host", ""), port=given.get("port", 5432),
        user=given.get("user", ""), password=given.get("password", ""), pool_size=writers,
    )  # fmt: skip
    recorder = PostgresApplicationRecorder(datastore, events_table_name=f"bench_{uuid4().hex[:8]}")
    recorder.create_table()

    def write(_: int) -> None:
        stream = uuid4()
        for version in range(1, count // writers + 1):
            recorder.insert_events([StoredEvent(stream, version, "bench:Replied", DATA)])

    with ThreadPoolExecutor(writers) as threads:
        began = clock()
        list(threads.map(write, range(writers)))
        rate = count / (clock() - began)
    datastore.close()
    return rate


def measure(server: str, events: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        done = {
            "bare COPY, batches of 100": asyncio.run(bare_copy(server, events)),
            "100 writers": asyncio.run(ours(server, events, writers=WRITERS)),
            "100 writers, encrypted": asyncio.run(ours(server, events, writers=WRITERS, personal=True)),
            "100 writers, two instances": asyncio.run(ours(server, events, writers=WRITERS, instances=2)),
            "one writer": asyncio.run(ours(server, max(events // 50, 20), writers=1)),
        }
        if has_library():
            done["the library, 20 threads"] = (library(server, max(events // 10, 100), 20), 0.0)
        for name, figures in done.items():
            found.setdefault(name, []).append(figures)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="The event store in PostgreSQL beside bare COPY.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--store", metavar="ADDRESS", help="a database in which schemas may be made")
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rivals", type=Path, default=ENVIRONMENT, help="the environment of the library")
    options = parser.parse_args()
    add_rivals(options.rivals)
    with nullcontext(options.store) if options.store else a_server() as server:
        run(server, options.events, options.rounds, as_json=options.json)
    return 0


def run(server: str, events: int, rounds: int, *, as_json: bool, name: str = "postgres") -> None:
    found = measure(server, events, rounds)
    middle = {name: (median(one[0] for one in runs), median(one[1] for one in runs)) for name, runs in found.items()}
    bare = middle["bare COPY, batches of 100"]
    rows: list[dict[str, Any]] = [
        {
            "what": name,
            "events/s": round(rate),
            "of bare COPY": round(rate / bare[0], 2),
            "p99, ms": round(p99, 1) if p99 else "",
        }
        for name, (rate, p99) in middle.items()
    ]
    share = middle["100 writers"][0] / bare[0]
    goals = [{"name": "100 writers, of bare COPY", "goal": "0.5", "measured": round(share, 2), "met": share >= 0.5}]
    if (library := middle.get("the library, 20 threads")) is not None:
        times = middle["100 writers"][0] / library[0]
        goals.append(
            {"name": "100 writers, of the library", "goal": "1", "measured": round(times, 2), "met": times >= 1}
        )
    report(name, rows, goals, as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
