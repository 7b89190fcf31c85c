"""The cost of work on a log that has grown: jobs, replies and searches at 10, 1,000 and 100,000 jobs and replies, a
start on that log, and a thread of 5,000 turns.

    scripts/bench growth [--sizes N,N,…] [--turns N] [--json]

One job and one reply of a real service are the pattern: their events are appended again under new names, each job with
a stream, each reply with a thread and a key of its own, and a counted request for each. Then a new service is measured
over HTTP. Processor time is the server's own, without that of its children; bytes read are those that it asked the
system for, from the cache or not. The largest size takes some minutes and 3 GB of disk, so it is run by hand.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent.parent))

from eventstore import Append, Metadata, NewEvent, SQLiteEventStore
from eventstore.events import new_event_id
from scripts.bench_streaming import command, generated
from scripts.bench_table import report
from service.domain.access.usage import RequestAccepted
from service.domain.threads.recorded_reply import ReplyStarted
from service.domain.threads.threads import MessagePosted, ThreadStarted
from service.runtime.system import new_capability, new_id, new_job_id
from service.streams import JOBS, THREADS, USAGE, decoded
from service.workers.admission.admissions import STREAM

TIMES = 40
BATCH = 400
"""Streams that one transaction appends to."""
GROWTH = 1.5
"""The most that the largest log may cost, of what the smallest costs."""
LEAST_MS = 0.5
"""Less processor time than that cannot be measured with a clock of 10 ms ticks over 40 times."""
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
CHAT = "pattern"
QUESTION = "How do I set the queue of a worker?"


class Cost(Struct):
    latency_ms: float
    processor_ms: float
    read_kb: float


class Service:
    """A server in a process of its own."""

    def __init__(self, data: Path, keys: dict[str, str], environment: Mapping[str, str] | None = None) -> None:
        self._keys, began = keys, time.perf_counter()
        limits = ("ASSISTANT_KEY_MONTH", "ORGANIZATION_HOUR", "ADDRESS_DAY", "PROJECT_HOUR", "KEY_SEARCHES_MINUTE")
        unlimited = {f"DOCSMITH_LIMITS__{name}": "1000000000" for name in limits}  # 0 would count nothing
        self._process = subprocess.Popen(
            [sys.executable, "-m", "service", "serve", "--port", "0", "--data", str(data)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **unlimited, **(environment or {})},
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().removeprefix("listening on ").strip()
        self.listening_seconds = time.perf_counter() - began
        while not self._is_ready():
            time.sleep(0.02)
        self.ready_seconds = time.perf_counter() - began
        self.processor_seconds = self.processor_ms() / 1000

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz"):
                return True
        except urllib.error.HTTPError:
            return False

    def ask(self, path: str, body: object = None, *, key: str = "admin") -> tuple[Any, Any]:
        """Return the headers and the whole body of an answer."""
        headers = {"Authorization": f"Bearer {self._keys[key]}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}{path}", sent, headers)) as answer:
            return answer.headers, answer.read()

    def cost(self, work: Callable[[int], object], times: int = TIMES) -> Cost:
        """Return the median latency, and the mean of the rest."""
        latencies, processor, read = [], self.processor_ms(), self._bytes_read()
        for number in range(times):
            began = time.perf_counter()
            work(number)
            latencies.append((time.perf_counter() - began) * 1000)
        time.sleep(0.3)  # what follows the last answer counts
        return Cost(
            median(latencies),
            (self.processor_ms() - processor) / times,
            (self._bytes_read() - read) / times / 1024,
        )

    def memory_mb(self) -> float:
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def processor_ms(self) -> float:
        """Return the processor time so far, without that of its children; it moves by ticks of 10 ms."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) * TICK_MS

    def _bytes_read(self) -> int:
        return int(Path(f"/proc/{self._process.pid}/io").read_text(encoding="utf-8").split()[1])


class Patterns(Struct):
    """The events of one job and of one reply."""

    job: list[Any]
    thread: list[Any]
    request: RequestAccepted


async def patterns(data: Path) -> Patterns:
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        jobs = [event for _, event in decoded(JOBS, await store.read_all(category=JOBS.category))]
        threads = [event for _, event in decoded(THREADS, await store.read_all(category=THREADS.category))]
        (_, request), *_ = decoded(USAGE, await store.read_all(category=USAGE.category))
    return Patterns(jobs, threads, request)


def renamed(events: Iterable[Any], *, chat: str) -> Iterator[Any]:
    """Yield the events of a turn under the names of another one."""
    message_id, reply_id = new_id(), new_id()
    for event in events:
        match event:
            case ThreadStarted():
                yield event
            case MessagePosted():
                yield replace(event, message_id=message_id, client_message_id=message_id)
            case ReplyStarted():
                yield replace(event, message_id=message_id, reply_id=reply_id, chat_id=chat)
            case _:
                yield replace(event, reply_id=reply_id)


def encoded(decider: Any, events: Iterable[Any]) -> tuple[NewEvent, ...]:
    return tuple(decider.codec.encode(event, Metadata(), new_event_id()) for event in events)


async def fill(data: Path, pattern: Patterns, count: int) -> int:
    """Append a number of jobs and replies, and the requests that asked for them; return the log's head."""
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        version, since = await store.stream_version(STREAM), datetime.now(UTC) - timedelta(days=29)
        step = timedelta(days=28) / max(1, 2 * count)
        numbers = iter(range(count))
        while batch := list(islice(numbers, BATCH)):
            writes = []
            for _ in batch:
                writes.append(Append(JOBS.stream(new_job_id()), encoded(JOBS, pattern.job), 0))
                turn = renamed(pattern.thread, chat=new_id())
                writes.append(Append(THREADS.stream(new_capability()), encoded(THREADS, turn), 0))
            requests = [
                replace(pattern.request, accepted_at=since + (2 * batch[0] + at) * step) for at in range(2 * len(batch))
            ]
            writes.append(Append(STREAM, encoded(USAGE, requests), version))
            version += len(requests)
            await store.append_all(writes)
        return await store.head()


async def add_thread(data: Path, pattern: Patterns, turns: int) -> str:
    """Append a thread with this number of turns; return its id."""
    thread_id, version = new_capability(), 0
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        for number in range(turns):
            turn = renamed(pattern.thread[bool(number) :], chat="long")
            version = (
                await store.append(THREADS.stream(thread_id), encoded(THREADS, turn), expected_version=version)
            ).stream_version
    return thread_id


def until_ended(service: Service, jobs: str, job: str) -> None:
    while json.loads(service.ask(f"{jobs}/{job}")[1])["status"] == "active":
        time.sleep(0.05)


def question(number: int, **fields: object) -> dict[str, object]:
    message = {"role": "user", "parts": [{"type": "text", "text": f"{QUESTION} {number}"}]}
    return {"fp": "anonymous", "messages": [message], **fields}


def costs(service: Service, project: str) -> dict[str, Cost]:
    made: list[str] = []
    jobs, reply = f"/v2/agent/{project}/job", "/discovery/v2/assistant/bench/message"

    def create(number: int) -> None:
        made.append(json.loads(service.ask(jobs, {"prompt": f"Say nothing {number}"})[1])["id"])

    def search(number: int) -> None:
        service.ask("/discovery/v1/search/bench", {"query": f"{QUESTION} {number}"}, key="assistant")

    for warm in range(3):
        create(warm)
        service.ask(reply, question(warm), key="assistant")
        search(warm)
    for job in made:
        until_ended(service, jobs, job)
    found = {
        "search": service.cost(search),
        "reply": service.cost(lambda n: service.ask(reply, question(n, id=f"chat-{n}"), key="assistant")),
        "GET job": service.cost(lambda n: service.ask(f"{jobs}/{made[n % len(made)]}")),
        "list jobs": service.cost(lambda _: service.ask(f"/v2/agent/{project}/jobs?limit=20")),
        "list failed jobs": service.cost(lambda _: service.ask(f"/v2/agent/{project}/jobs?limit=20&status=failed")),
        "create a job": service.cost(create),
    }  # fmt: skip
    for job in made:
        until_ended(service, jobs, job)
    return found


def thread_costs(service: Service, project: str, thread_id: str, thread_key: str) -> dict[str, Cost]:
    path = "/discovery/v2/assistant/bench/message"
    known = {"threadId": thread_id, "threadKey": thread_key, "id": "long"}
    return {
        "its first question": service.cost(lambda n: service.ask(path, question(n, **known), key="assistant"), times=1),
        "its next questions": service.cost(lambda n: service.ask(path, question(n, **known), key="assistant"), 20),
        "resuming its chat": service.cost(
            lambda _: service.ask(f"{path}/long/stream?threadKey={thread_key}", key="assistant"), 20
        ),
        "its transcript": service.cost(
            lambda _: service.ask(f"/v1/analytics/{project}/assistant/threads/{thread_id}"), 5
        ),
        "list questions": service.cost(lambda _: service.ask(f"/v1/analytics/{project}/assistant?limit=20"), 20),
    }


def row(what: str, size: int, cost: Cost) -> dict[str, Any]:
    return {
        "what": what, "of": size, "median ms": round(cost.latency_ms, 1), "processor ms": round(cost.processor_ms, 2),
        "read kB": round(cost.read_kb),
    }  # fmt: skip


def start_row(what: str, service: Service, head: int) -> dict[str, Any]:
    return {
        "what": what, "of": head, "listening s": round(service.listening_seconds, 2),
        "ready s": round(service.ready_seconds, 2), "processor s": round(service.processor_seconds, 2),
        "MB": round(service.memory_mb()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default="10,1000,100000")
    parser.add_argument("--turns", type=int, default=5000)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    rows: list[dict[str, Any]] = []
    measured: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory() as folder:
        data, docs = Path(folder) / "data", generated(Path(folder) / "docs", 200)
        command(data, "organization", "create", "--name", "Bench")
        project = command(data, "project", "create", "--name", "B", "--repository", str(docs), "--domain", "bench")[
            "id"
        ]
        command(data, "index", "bench")
        keys = {
            "admin": command(data, "key", "create", "--kind", "admin")["token"],
            "assistant": command(data, "key", "create", "--kind", "assistant", "--domain", "bench")["token"],
        }
        with Service(data, keys) as service:
            jobs = f"/v2/agent/{project}/job"
            until_ended(service, jobs, json.loads(service.ask(jobs, {"prompt": "Say nothing"})[1])["id"])
            headers, _ = service.ask("/discovery/v2/assistant/bench/message", question(0, id=CHAT), key="assistant")
            thread_key = headers["x-thread-key"]
        pattern, filled = asyncio.run(patterns(data)), 0
        for size in map(int, options.sizes.split(",")):
            began = time.perf_counter()
            head = asyncio.run(fill(data, pattern, size - filled))
            filled = size
            print(f"{size}: {head} events, filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
            with Service(data, keys) as service:
                rows.append(start_row("start, views behind", service, head))
                for what, cost in costs(service, project).items():
                    rows.append(row(what, size, cost))
                    measured.setdefault(what, []).append(cost)
        for what in ("start, views current", "start, views rebuilt"):
            if what.endswith("rebuilt"):
                for name in ("views.db", "views.db-wal", "views.db-shm"):
                    (data / name).unlink(missing_ok=True)
            with Service(data, keys) as service:
                rows.append(start_row(what, service, head))
        for turns in (5, options.turns):
            thread_id = asyncio.run(add_thread(data, pattern, turns))
            with Service(data, keys) as service:
                for what, cost in thread_costs(service, project, thread_id, thread_key).items():
                    rows.append(row(f"a thread: {what}", turns, cost))
                    measured.setdefault(f"a thread: {what}", []).append(cost)
    goals = [goal(what, found) for what, found in measured.items()]
    report("growth", rows, goals, as_json=options.json)


def goal(what: str, found: Sequence[Cost]) -> dict[str, Any]:
    first, last = found[0].processor_ms, found[-1].processor_ms
    return {
        "name": f"{what}: processor time of the largest", "goal": f"at most {GROWTH:g} times that of the smallest",
        "measured": f"{last:.2f} ms, {first:.2f} ms of the smallest", "met": last <= max(first, LEAST_MS) * GROWTH,
    }  # fmt: skip


if __name__ == "__main__":
    main()
