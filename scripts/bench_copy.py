"""A log copied from files to PostgreSQL and back: the same head at each end, how long it took, and the memory needed.

    scripts/bench copy [--json] [--store ADDRESS] [--events N]

Without an address it starts a server of its own, durable as servers are by default, on the disk of the temporary
folder. The copies are made by ``docsmith store copy``, each in a process of its own, and every log is verified.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import msgspec
from bench_postgres import a_server, schemas
from bench_table import report

from eventstore import FilePlace, LogPlace, NewEvent, SQLiteEventStore
from eventstore.postgres.place import TablePlace

STREAM_EVENTS = 1_000
ENCRYPTED = 10
"""Every tenth stream has its texts encrypted, under a key of its own."""
PEAK_MB = 300
"""The most that a copy may have in memory."""
TIMED = [sys.executable, "-c", """
import resource, runpy, sys
sys.argv[:] = ["docsmith", *sys.argv[1:]]
try:
    runpy.run_module("service", run_name="__main__")
finally:
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}", file=sys.stderr)
"""]  # fmt: skip


async def write(folder: Path, count: int) -> None:
    data = msgspec.json.encode({"step": 1, "text": "x" * 380, "model": "anthropic/claude-sonnet-4-5", "tokens": 1000})
    path = folder / "events.db"
    async with await SQLiteEventStore.open(path, vault_path=folder / "keys.db", synchronous="OFF") as store:
        for stream in range(-(-count // STREAM_EVENTS)):
            sealed = stream % ENCRYPTED == 0
            new = NewEvent("replied", b"{}" if sealed else data, data if sealed else None)
            events = [new] * min(STREAM_EVENTS, count - stream * STREAM_EVENTS)
            await store.append(f"job-{stream}", events, expected_version=0)


def copied(source: str, target: str, environment: dict[str, str]) -> tuple[dict[str, Any], float, float]:
    """Return what the command prints, its seconds, and the most that it had in memory, in MB."""
    began = time.perf_counter()
    done = subprocess.run(
        [*TIMED, "store", "copy", source, target, "--json"],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    peak = re.search(r"peak (\d+)", done.stderr)
    assert peak is not None
    return json.loads(done.stdout), time.perf_counter() - began, int(peak[1]) / (1 << 10)


@contextmanager
def databases(given: str | None) -> Iterator[TablePlace]:
    with nullcontext(given) if given else a_server() as server, schemas(server) as (log, vault):
        yield TablePlace(log.text, vault.text)


def keys(place: LogPlace) -> list[Any]:
    with closing(place.vault_rows(read_only=True)) as vault:
        return [tuple(row) for row in vault.keys("", 1_000_000)]


def measure(given: str | None, count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    with databases(given) as tables, tempfile.TemporaryDirectory(prefix="docsmith-copy-") as folder:
        first, back = Path(folder) / "first", Path(folder) / "back"
        first.mkdir()
        asyncio.run(write(first, count))
        environment = {"BENCH_LOG": tables.log, "DOCSMITH_VAULT": tables.vault}
        heads, peaks = [], []
        for name, source, target in (
            ("files to PostgreSQL", str(first), "env:BENCH_LOG"),
            ("PostgreSQL to files", "env:BENCH_LOG", str(back)),
        ):
            found, seconds, peak = copied(source, target, environment)
            heads.append((found["position"], found["head"], found["added"]))
            peaks.append(peak)
            rows.append(_row(name, count, seconds, peak))
            print(rows[-1], file=sys.stderr, flush=True)
        places: dict[str, LogPlace] = {
            "files": FilePlace(first / "events.db", first / "keys.db"),
            "PostgreSQL": tables,
            "files, back": FilePlace(back / "events.db", back / "keys.db"),
        }
        sound = []
        for name, place in places.items():
            began = time.perf_counter()
            verified = place.verify()
            sound.append((verified.is_sound, verified.position, verified.hash.hex()))
            rows.append(_row(f"verify, {name}", count, time.perf_counter() - began))
        kept = [keys(place) for place in places.values()]
    goals = [
        {"name": f"heads of {count:,} events there and back", "goal": "equal", "measured": heads[0][1][:16],
         "met": heads == [(count, heads[0][1], count)] * 2 and sound == [(True, count, heads[0][1])] * 3},
        {"name": "keys of the vault there and back", "goal": "equal", "measured": f"{len(kept[0]):,}",
         "met": bool(kept[0]) and kept[0] == kept[1] == kept[2]},
        {"name": "memory of a copy, MB", "goal": f"at most {PEAK_MB}", "measured": round(max(peaks)),
         "met": max(peaks) <= PEAK_MB},
    ]  # fmt: skip
    return rows, goals


def _row(name: str, count: int, seconds: float, peak: float | None = None) -> dict[str, Any]:
    shown = {"what": name, "seconds": round(seconds, 1), "events/s": round(count / seconds)}
    return shown if peak is None else {**shown, "peak MB": round(peak)}


def main() -> int:
    parser = argparse.ArgumentParser(description="A log copied to PostgreSQL and back.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--store", metavar="ADDRESS", help="a database in which schemas may be made")
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    rows, goals = measure(options.store, options.events)
    report("copy", rows, goals, as_json=options.json)
    return 0 if all(goal["met"] for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
