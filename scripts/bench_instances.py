"""Three instances of one log in PostgreSQL behind a round robin, beside one instance: limits, streams, an outage.

    scripts/bench instances [--json] [--only limit|streams|outage] [--requests N] [--away SECONDS]

``limit``: more jobs than a project may have in an hour, asked of all instances at once; exactly the limit pass.
``streams``: processor time for a reply, its first token and its chunks, with one instance and with three, and for a
reader who follows a reply at an instance that does not write it; and how many streams there are at full load: the
chunks a second that reach the same readers, from a provider that sends faster. ``outage``: the database server is
killed for a minute, while reads and writes go on.

The database is a server of its own, whose commits wait for no disk. All runs on this machine, so compare the columns.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from scripts.bench_streaming import generated
from scripts.bench_table import report
from scripts.streaming_load import MODEL, Reader, cpu_seconds, read
from scripts.streaming_rates import LOAD, QUESTIONS, _plan, at, started
from tests.eventstore.cluster import ADDRESS, Cluster, started_cluster
from tests.instances import Instances, databases
from tests.service_process import Service

OVER = 50
"""Requests more than the limit."""
AT_ONCE = 32
STREAMS, CHUNKS, PER_SECOND = 60, 100, 25.0
FULL_CHUNKS, FULL_PER_SECOND = 400, 500.0
"""At full load: more chunks a second in all than this machine carries."""
FOLLOWED = 20
ROUNDS = 3
READY_SECONDS = 5.0
"""The most that a write may wait for, once the database is back."""


@contextmanager
def several(folder: Path, count: int, provider: str, **settings: str) -> Iterator[Instances]:
    """Start instances with a site of generated pages, each indexed."""
    environment = {
        "DOCSMITH_ASSISTANT__MODEL": "bench",
        "DOCSMITH_ASSISTANT__SUGGESTIONS": "false",
        "DOCSMITH_ASSISTANT__PLANNER": "off",
        "DOCSMITH_ASSISTANT__CONCURRENT_REPLIES": "4000",
        "DOCSMITH_THREADS__GRACE_SECONDS": "600",
        "DOCSMITH_MODELS__BENCH__MODEL": f"openai/{MODEL}",
        "DOCSMITH_MODELS__BENCH__API_BASE": f"{provider}/v1",
        "DOCSMITH_MODELS__BENCH__IDLE_TIMEOUT_SECONDS": "600",
        **settings,
    }
    with databases() as stores:
        service = Instances(folder / "data", environment, count=count, stores=stores)
        service.set_up(generated(folder / "docs", 200))
        try:
            service.start()
            yield service
        finally:
            service.kill()


# A limit


async def passed(service: Instances, requests: int) -> Counter[int]:
    """Ask for jobs, of which all but the first few wait; return the number of answers by status.

    Each has a key by which it is repeated after 503, as a client does.
    """
    found, numbers = Counter[int](), iter(range(requests))
    url = f"{service.url}/v2/agent/{service.project_id}/job"

    async def ask(http: aiohttp.ClientSession) -> None:
        for number in numbers:
            headers = {**service.admin, "Idempotency-Key": f"job-{number}"}
            status = 503
            while status == 503:
                async with http.post(url, json={"prompt": f"Job {number}"}, headers=headers) as answer:
                    await answer.read()
                    status = answer.status
                    found[status] += 1

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as http:
        await asyncio.gather(*(ask(http) for _ in range(AT_ONCE)))
    return found


def limit(folder: Path, provider: str, requests: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    allowed = requests - OVER
    settings = {
        "DOCSMITH_LIMITS__PROJECT_HOUR": str(allowed),
        "DOCSMITH_AGENT__MODEL": "bench",
        "DOCSMITH_AGENT__CONCURRENT_JOBS": "1",
    }
    with several(folder, 3, provider, **settings) as service:
        asyncio.run(_plan(provider, holds=True, hold_after=0))
        began = time.perf_counter()
        found = asyncio.run(passed(service, requests))
        seconds = time.perf_counter() - began
        asyncio.run(_plan(provider, holds=False, hold_after=1))
    rows = [{"what": f"{requests:,} requests, three instances", "seconds": round(seconds, 1), **_named(found)}]
    goals = [
        {"name": f"{requests:,} requests at a limit of {allowed:,}", "goal": f"exactly {allowed:,} pass",
         "measured": f"{found[201]:,} pass, {found[429]:,} are refused",
         "met": (found[201], found[429]) == (allowed, requests - allowed)}
    ]  # fmt: skip
    return rows, goals


def _named(found: Counter[int]) -> dict[str, int]:
    return {f"status {status}": number for status, number in sorted(found.items())}


# Streams


async def _streams(service: Instances, provider: str) -> dict[str, list[float]]:
    """Measure rounds of replies that flow together, asked through the round robin."""
    found: dict[str, list[float]] = {"cpu": [], "first": [], "chunk": []}
    url = f"{service.url}/discovery/v2/assistant/{service.domain}/message"
    for member in service.members:  # the first reply is the slowest: imports, caches
        for _ in range(3):
            await _plan(provider, chunks=5, per_second=50.0, holds=False)
            await _ended(await _ask(f"{member.url}/discovery/v2/assistant/{service.domain}/message", service), 5)
    await _plan(provider, chunks=CHUNKS, per_second=PER_SECOND)
    for _ in range(ROUNDS):
        before = _cpu(service)
        readers = []
        for _ in range(STREAMS):
            readers.append(await _ask(url, service))
            await asyncio.sleep(0.02)
        for reader in readers:
            await _ended(reader, CHUNKS)
        found["cpu"].append((_cpu(service) - before) / STREAMS)
        found["first"] += [reader.first_at - reader.asked_at for reader in readers]
        found["chunk"] += [seconds for reader in readers for seconds in reader.took]
    return found


async def _full_load(service: Instances, provider: str) -> list[float]:
    """Return how many streams of ``PER_SECOND`` the chunks make that arrive at full load, for each round."""
    found = []
    url = f"{service.url}/discovery/v2/assistant/{service.domain}/message"
    for _ in range(ROUNDS):
        await _plan(provider, chunks=FULL_CHUNKS, per_second=FULL_PER_SECOND, holds=True, hold_after=1)
        readers = [await _ask(url, service) for _ in range(STREAMS)]
        async with asyncio.timeout(60):
            await asyncio.gather(*(reader.begun for reader in readers))
        began = time.perf_counter()
        await _plan(provider, holds=False)
        for reader in readers:
            await _ended(reader, FULL_CHUNKS)
        seconds = max(reader.latest_at for reader in readers) - began
        found.append(STREAMS * (FULL_CHUNKS - 1) / seconds / PER_SECOND)
    return found


async def _following(service: Instances, provider: str) -> dict[str, list[float]]:
    """Measure how late a chunk is at the reader's own instance, and at another."""
    await _plan(provider, chunks=CHUNKS, per_second=PER_SECOND)
    found: dict[str, list[float]] = {"own": [], "foreign": []}
    for number in range(FOLLOWED):
        chat = f"followed-{random.getrandbits(40):x}"
        path = f"/discovery/v2/assistant/{service.domain}/message"
        owner, other = (service.members[(number + at) % service.count] for at in (0, 1))
        asks = await _ask(owner.url + path, service, id=chat)
        await asks.begun
        second = await _get(f"{owner.url}{path}/{chat}/stream", service)
        foreign = await _get(f"{other.url}{path}/{chat}/stream", service)
        for reader in (asks, second, foreign):
            await _ended(reader, CHUNKS)
        live = CHUNKS // 2  # the second half came live
        found["own"] += second.took[-live:]
        found["foreign"] += foreign.took[-live:]
    return found


async def _ask(url: str, service: Service, **more: str) -> Reader:
    message = {"role": "user", "id": "q", "parts": [{"type": "text", "text": next(QUESTIONS)}]}
    return await read(url, {"fp": "anonymous", "messages": [message], **more}, service.assistant)


async def _get(url: str, service: Service) -> Reader:
    place = urlsplit(url)
    head = f"GET {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: {service.assistant['Authorization']}"
    _, reader = await asyncio.get_running_loop().create_connection(
        lambda: Reader(f"{head}\r\n\r\n".encode()), place.hostname, place.port
    )
    return reader


async def _ended(reader: Reader, chunks: int) -> None:
    async with asyncio.timeout(180):
        await reader.ended
    if len(reader.took) != chunks:
        raise SystemExit(f"a reader got {len(reader.took)} of {chunks} chunks: {reader.status!r}")


def _cpu(service: Instances) -> float:
    return sum(cpu_seconds(member.process.pid) for member in service.members if member.process is not None)


def streams(folder: Path, provider: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    found: dict[int, dict[str, list[float]]] = {}
    full: dict[int, list[float]] = {}
    following: dict[str, list[float]] = {}
    for count in (1, 3):
        place = folder / str(count)
        place.mkdir()
        with several(place, count, provider, DOCSMITH_LIMITS__ORGANIZATION_HOUR="0") as service:
            found[count] = asyncio.run(_streams(service, provider))
            full[count] = asyncio.run(_full_load(service, provider))
            if count > 1:
                following = asyncio.run(_following(service, provider))
    rows = [
        {"what": f"{STREAMS} replies at once, {count} of instances", "CPU of a reply, ms": _ms(at(one["cpu"], 0.5)),
         "first token p50 ms": _ms(at(one["first"], 0.5)), "p99 ms": _ms(at(one["first"], 0.99)),
         "chunk p50 ms": _ms(at(one["chunk"], 0.5)), "chunk p99 ms": _ms(at(one["chunk"], 0.99)),
         "streams at full load": round(at(full[count], 0.5))}
        for count, one in found.items()
    ]  # fmt: skip
    rows += [
        {"what": f"following at the {name} instance", "chunk p50 ms": _ms(at(took, 0.5)),
         "chunk p99 ms": _ms(at(took, 0.99))}
        for name, took in following.items()
    ]  # fmt: skip
    share = at(found[3]["cpu"], 0.5) / at(found[1]["cpu"], 0.5)
    first = (at(found[3]["first"], 0.99) - at(found[1]["first"], 0.99)) * 1000
    added = (at(following["foreign"], 0.5) - at(following["own"], 0.5)) * 1000
    goals = [
        {"name": "processor time of a reply, of that with one instance", "goal": "at most 1.2",
         "measured": round(share, 2), "met": share <= 1.2},
        {"name": "first token, p99, added to that of one instance", "goal": "under 10 ms",
         "measured": f"{first:.1f} ms", "met": first < 10},
        {"name": f"streams at full load, of {PER_SECOND:.0f} chunks a second each", "goal": "no fewer than with one",
         "measured": f"{at(full[3], 0.5):.0f}, with one {at(full[1], 0.5):.0f}",
         "met": at(full[3], 0.5) >= at(full[1], 0.5)},
        {"name": "following at another instance, added, p50", "goal": "under 5 ms",
         "measured": f"{added:.1f} ms", "met": added < 5},
    ]  # fmt: skip
    return rows, goals


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


# An outage


class _Outage:
    """Reads and writes through the round robin, with what became of them."""

    def __init__(self, service: Instances) -> None:
        self._service = service
        self.reads, self.writes = Counter[int](), Counter[int]()
        self.jobs: list[str] = []
        self.without_retry_after = 0
        self.slowest_read = 0.0
        self.last_failed = 0.0
        """When a write was last refused."""

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(timeout=timeout) as http:
            tasks = [asyncio.create_task(self._again(one, http, pause)) for one, pause in self._work()]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    def _work(self) -> list[tuple[Any, float]]:
        return [(self._read, 0.2), (self._read, 0.3), (self._write, 0.5)]

    async def _again(self, what: Any, http: aiohttp.ClientSession, pause: float) -> None:
        while True:
            await what(http)
            await asyncio.sleep(pause)

    async def _read(self, http: aiohttp.ClientSession) -> None:
        began = time.monotonic()
        url = f"{self._service.url}/v2/agent/{self._service.project_id}/jobs"
        async with http.get(url, headers=self._service.admin) as answer:
            await answer.read()
            self.reads[answer.status] += 1
        self.slowest_read = max(self.slowest_read, time.monotonic() - began)

    async def _write(self, http: aiohttp.ClientSession) -> None:
        url = f"{self._service.url}/v2/agent/{self._service.project_id}/job"
        body = {"prompt": f'Append "Line {len(self.jobs)}." to index.md'}
        async with http.post(url, json=body, headers=self._service.admin) as answer:
            self.writes[answer.status] += 1
            if answer.status == 201:
                self.jobs.append((await answer.json())["id"])
                return
            self.last_failed = time.monotonic()
            self.without_retry_after += "Retry-After" not in answer.headers

    async def not_ended(self) -> list[str]:
        """Return the acknowledged jobs that do not come to their end, and how."""
        found = []
        async with aiohttp.ClientSession() as http:
            for job_id in self.jobs:
                url = f"{self._service.url}/v2/agent/{self._service.project_id}/job/{job_id}?wait=30"
                status = ""
                for _ in range(8):
                    async with http.get(url, headers=self._service.admin) as answer:
                        status = (await answer.json()).get("status", f"HTTP {answer.status}")
                    if status != "active":
                        break
                if status != "completed":
                    found.append(f"{job_id}: {status}")
        return found


async def _away(service: Instances, cluster: Cluster, seconds: float) -> dict[str, Any]:
    outage = _Outage(service)
    async with outage.going_on():
        await asyncio.sleep(5)
        before = Counter(outage.writes)
        await asyncio.to_thread(cluster.kill)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(cluster.start)
        back = time.monotonic()
        await asyncio.sleep(20)
    return {
        "reads": outage.reads, "writes": outage.writes, "before": before, "jobs": len(outage.jobs),
        "lost": await outage.not_ended(), "recovery": max(0.0, outage.last_failed - back),
        "without": outage.without_retry_after, "slowest": outage.slowest_read,
    }  # fmt: skip


def outage(folder: Path, provider: str, seconds: float, cluster: Cluster) -> tuple[list[Any], list[Any]]:
    limits = {"DOCSMITH_LIMITS__PROJECT_HOUR": "0", "DOCSMITH_LIMITS__ORGANIZATION_HOUR": "0"}
    with several(folder, 3, provider, **limits) as service:
        found = asyncio.run(_away(service, cluster, seconds))
        is_sound = service.place.verify().is_sound
    rows = [
        {"what": "reads", **_named(found["reads"]), "slowest s": round(found["slowest"], 1)},
        {"what": "writes", **_named(found["writes"])},
    ]
    bad_writes = {status for status in found["writes"] if status not in (201, 503)}
    goals = [
        {"name": f"reads while PostgreSQL is away for {seconds:.0f} s", "goal": "all answered",
         "measured": str(_named(found["reads"])), "met": set(found["reads"]) == {200}},
        {"name": "writes meanwhile", "goal": "wait, or 503 with Retry-After",
         "measured": f"{_named(found['writes'])}, {found['without']} without Retry-After",
         "met": not bad_writes and not found["without"]},
        {"name": "acknowledged jobs that were lost", "goal": "0",
         "measured": f"{len(found['lost'])} of {found['jobs']}{', ' + found['lost'][0] if found['lost'] else ''}",
         "met": not found["lost"] and is_sound},
        {"name": "last refused write after its return", "goal": f"under {READY_SECONDS:.0f} s",
         "measured": f"{found['recovery']:.1f} s", "met": found["recovery"] < READY_SECONDS},
    ]  # fmt: skip
    return rows, goals


def main() -> int:
    parser = argparse.ArgumentParser(description="Three instances of one log in PostgreSQL.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", action="append", choices=["limit", "streams", "outage"], help="repeatable")
    parser.add_argument("--requests", type=int, default=10_050)
    parser.add_argument("--away", type=float, default=60.0, metavar="SECONDS")
    options = parser.parse_args()
    rows, goals = [], []
    cluster = started_cluster()
    os.environ[ADDRESS] = cluster.address
    try:
        with started(sys.executable, str(LOAD), "provider") as (_, provider):
            for name in options.only or ["limit", "streams", "outage"]:
                with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as place:
                    folder = Path(place)
                    if name == "limit":
                        found = limit(folder, provider, options.requests)
                    elif name == "streams":
                        found = streams(folder, provider)
                    else:
                        found = outage(folder, provider, options.away, cluster)
                    rows += found[0]
                    goals += found[1]
                    print(json.dumps(found), file=sys.stderr, flush=True)
    finally:
        cluster.remove()
    report("instances", rows, goals, as_json=options.json)
    return 0 if all(goal["met"] for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
