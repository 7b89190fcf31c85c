"""Jobs, answers, readers that leave, indexing, reloads, and kill -9 at intervals, for some minutes on end.

What was acknowledged must be there in the end: each job with its one pull request, each answer on its thread, the log
as it was signed. The kills come in the first third of the time, so that the last process lives for the rest: what it
holds is looked at after a third of that life, so that what is filled once (caches, compiled code) is no leak. A slope
is the median of the slopes between any two moments (Theil and Sen), of the least that was held in every stretch of some
seconds: collections and requests make the rest go up and down. Minutes give it a rough figure; 20 a fair one.
"""

import argparse
import asyncio
import contextlib
import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import IO, Any

import aiohttp

from scripts.bench_table import report
from tests.service_process import DOCS, PROGRAM, Service, write_docs

READERS = 4
SAMPLE_SECONDS = 1.0
STRETCH = 10
"""Samples of which the least counts."""
LEAST_POINTS = 6
"""Stretches that a slope takes."""
END_SECONDS = 120
"""For what is under way to end, once no more is asked for."""


@dataclass
class Life:
    """One process, from its start to its end."""

    seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    """Bytes of it that are its own, and mapped from no file: what a leak would be in."""
    threads: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    tasks: list[float] = field(default_factory=list)
    wal: list[float] = field(default_factory=list)
    delays: dict[float, float] = field(default_factory=dict)
    """Waits of the event loop: how many were at most so long."""

    def settled(self, values: list[Any]) -> list[Any]:
        return values[len(values) // 3 :]

    def slope(self, values: list[Any], *, since: float = 1 / 3) -> float | None:
        """Return an hour's growth, of the least in every stretch after this part of its life; None where it did not
        live for long enough.
        """
        begin = int(len(values) * since)
        seconds, kept = self.seconds[begin:], values[begin:]
        points = [
            min(zip(kept[at : at + STRETCH], seconds[at : at + STRETCH], strict=True))
            for at in range(0, len(kept) - STRETCH + 1, STRETCH)
        ]
        if len(points) < LEAST_POINTS:
            return None
        between = [
            (later - sooner) / (then - before)
            for number, (sooner, before) in enumerate(points)
            for later, then in points[number + 1 :]
        ]
        return median(between) * 3600

    def growth(self, values: list[Any]) -> float:
        """From the first tenth after the warm-up to the last one, by their medians."""
        kept = self.settled(values)
        tenth = max(1, len(kept) // 10)
        return float(median(kept[-tenth:]) - median(kept[:tenth])) if kept else 0.0

    def delay_p99(self) -> float:
        total = self.delays.get(float("inf"), 0)
        return next((most for most, count in sorted(self.delays.items()) if count >= 0.99 * total), 0.0)


class RealService(Service):
    """Started as its users start it; the tests' own way forks it from a process that has imported more than it does."""

    def _begin(self, command: list[str], log: IO[bytes]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*PROGRAM, *command], stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment()
        )


class Soak:
    def __init__(self, service: Service, file: Path) -> None:
        self.service, self._file = service, file
        self.jobs: list[str] = []
        self.broken: list[str] = []
        """The ends of answers that reported an error."""
        self.answers = self.left = self.kills = self.reloads = self.indexed = self.refused = 0
        self.lives = [Life()]
        self._up = asyncio.Event()
        self._up.set()
        self._page = 0

    async def run(self, seconds: float, kills: int) -> None:
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(timeout=timeout) as http:
            work = [
                *(self._again(lambda: self._ask(http), 0.2) for _ in range(READERS)),
                self._again(lambda: self._leave(http), 0.5),
                self._again(lambda: self._give_job(http), 1.0),
                self._again(self._reload, 15.0),
                self._again(self._index, 20.0),
                self._again(lambda: self._sample(http), SAMPLE_SECONDS),
                self._kill(kills, within=seconds / 3),
            ]
            tasks = [asyncio.create_task(each) for each in work]
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for task in done:
                task.result()
            if self.service.process is None:
                await asyncio.to_thread(self.service.start)

    async def _again(self, what: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds * random.uniform(0.5, 1.5))
            await self._up.wait()
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):  # it was killed under our hands
                await what()

    def _question(self) -> dict[str, Any]:
        text = random.choice(["How do I install Kite?", "How long is the delay between two tries?", "Is there tea?"])
        return {"fp": "anonymous", "messages": [{"id": "q", "role": "user", "parts": [{"type": "text", "text": text}]}]}

    def _message(self, http: aiohttp.ClientSession) -> Any:
        service = self.service
        url = f"{service.url}/discovery/v2/assistant/{service.domain}/message"
        return http.post(url, json=self._question(), headers=service.assistant)

    async def _ask(self, http: aiohttp.ClientSession) -> None:
        async with self._message(http) as response:
            text = await response.text()
            if found := re.search(r'"type":"error".*', text):
                self.broken.append(found[0])
            elif response.status == 200 and "[DONE]" in text:
                self.answers += 1
            else:
                self.refused += 1

    async def _leave(self, http: aiohttp.ClientSession) -> None:
        async with self._message(http) as response:
            await response.content.readany()
            response.close()
        self.left += 1

    async def _give_job(self, http: aiohttp.ClientSession) -> None:
        self._page += 1
        prompt = f'create page soak-{self._page}.md with title "Soak {self._page}" and text "Page {self._page}."'
        url = f"{self.service.url}/v2/agent/{self.service.project_id}/job"
        async with http.post(url, json={"prompt": prompt}, headers=self.service.admin) as response:
            if response.status == 201:
                self.jobs.append((await response.json())["id"])
            else:
                self.refused += 1

    async def _reload(self) -> None:
        self._file.write_text(_settings(random.randint(50_000, 99_999)))
        process = self.service.process
        if process is not None:
            process.send_signal(signal.SIGHUP)
            self.reloads += 1

    async def _index(self) -> None:
        done = await asyncio.to_thread(self.service.run, "index", self.service.domain)
        self.indexed += done.returncode == 0

    async def _kill(self, times: int, *, within: float) -> None:
        for _ in range(times):
            await asyncio.sleep(within / times * random.uniform(0.7, 1.3))
            self._up.clear()
            self.service.kill()
            self.kills += 1
            await asyncio.to_thread(self.service.start)
            self.lives.append(Life())
            self._up.set()
        await asyncio.Event().wait()

    async def _sample(self, http: aiohttp.ClientSession) -> None:
        process, life = self.service.process, self.lives[-1]
        if process is None:
            return
        async with http.get(f"{self.service.url}/metrics") as response:
            text = await response.text()
        memory, own, threads, descriptors = await asyncio.to_thread(_of_process, process.pid)
        life.seconds.append(time.monotonic())
        life.memory.append(memory)
        life.own.append(own)
        life.threads.append(threads)
        life.descriptors.append(descriptors)
        life.tasks.append(_value(text, "docsmith_tasks"))
        life.wal.append(_value(text, "docsmith_log_wal_bytes"))
        found = re.findall(r'docsmith_event_loop_delay_seconds_bucket\{le="([^"]+)"\} (\S+)', text)
        life.delays = {float(most): float(count) for most, count in found}

    async def lost(self) -> list[str]:
        """Acknowledged things that are not there."""
        deadline, url = time.monotonic() + END_SECONDS, f"{self.service.url}/v2/agent/{self.service.project_id}/job"
        lost = []
        async with aiohttp.ClientSession() as http:
            for job_id in self.jobs:
                while True:
                    async with http.get(f"{url}/{job_id}", headers=self.service.admin) as response:
                        job = await response.json()
                    if job.get("status") not in ("active", "queued", "running") or time.monotonic() > deadline:
                        break
                    await asyncio.sleep(0.2)
                if job.get("status") != "completed" or not job.get("prLink"):
                    lost.append(f"job {job_id}: {json.dumps(job)[:200]}")
        return lost


def _settings(project_hour: int) -> str:
    return f'[agent]\nmodel = "builtin"\n[limits]\nproject_hour = {project_hour}\n'


def _of_process(pid: int) -> tuple[int, int, int, int]:
    """Return bytes of memory, of its own memory, threads and file descriptors."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory, own, threads = (int(re.findall(rf"{name}:\s+(\d+)", status)[0]) for name in ("VmRSS", "RssAnon", "Threads"))
    return memory * 1024, own * 1024, threads, len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _mapped(pid: int) -> dict[str, int]:
    """Return bytes in memory by what is mapped: the databases, the search index, all else."""
    found = {"databases": 0, "search index": 0, "other files": 0}
    kind = ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head = line.split(maxsplit=5)
        if "-" in head[0] and not head[0].endswith(":"):
            path = head[5] if len(head) > 5 else ""
            kind = "other files" if path.startswith("/") else ""
            if "/data/" in path:
                kind = "databases" if ".db" in path else "search index" if "/index/" in path else kind
        elif kind and head[0] == "Rss:":
            found[kind] += int(head[1]) * 1024
    return found


def _value(text: str, name: str) -> float:
    return float(re.findall(rf"(?m)^{name} (\S+)$", text)[0])


def _completed(data: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{data / 'events.db'}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM events WHERE type = 'reply-completed'").fetchone()[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--kills", type=int, default=5, help="kill -9, in the first third of the time")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="docsmith-soak-") as folder:
        root = Path(folder)
        file = root / "docsmith.toml"
        file.write_text(_settings(50_000))
        environment = {
            "DOCSMITH_CONFIG": str(file),
            "DOCSMITH_LIMITS__ADDRESS_DAY": "0",
            "DOCSMITH_LIMITS__ASSISTANT_KEY_MONTH": "0",
        }
        environment |= {"DOCSMITH_LIMITS__ORGANIZATION_HOUR": "0"}
        service = RealService(root / "data", environment)
        try:
            service.set_up(write_docs(root / "docs", DOCS))
            service.start()
            soak = Soak(service, file)
            asyncio.run(soak.run(options.minutes * 60, options.kills))
            lost = asyncio.run(soak.lost())
            completed = _completed(service.data)
            if completed < soak.answers:
                lost.append(f"answers: {soak.answers} were read to their end, {completed} are in the log")
            mapped = _mapped(service.process.pid) if service.process is not None else {}
            sizes = {path.name: path.stat().st_size for path in sorted(service.data.glob("*.db*"))}
            begun = time.monotonic()
            status, took = service.stop(), time.monotonic() - begun
            verified = service.run("audit", "verify").returncode == 0
            problems = [line for line in service.log().splitlines() if '"level":"error"' in line or "Traceback" in line]
        finally:
            service.kill()
    sizes |= {f"mapped: {name}": size for name, size in mapped.items()}
    _tell(soak, lost, sizes, verified=verified, status=status, took=took, problems=problems, as_json=options.json)
    return 0 if not lost and verified and status == 0 else 1


def _hourly(slope: float | None) -> str:
    return "too short to tell" if slope is None else f"{slope / 2**20:+.1f} MiB an hour"


def _tell(
    soak: Soak, lost: list[str], sizes: dict[str, int], *,
    verified: bool, status: int, took: float, problems: list[str], as_json: bool,
) -> None:  # fmt: skip
    life = soak.lives[-1]
    rows = [
        {"what": name, "value": value}
        for name, value in {
            "jobs": len(soak.jobs), "answers": soak.answers, "readers that left": soak.left, "indexed": soak.indexed,
            "reloads": soak.reloads, "kills": soak.kills, "refused": soak.refused,
            "answers broken off": len(soak.broken),
            "lines of errors": len(problems),
            "last life, s": round(life.seconds[-1] - life.seconds[0]) if life.seconds else 0,
            "memory at its end, MiB": (life.memory or [0])[-1] >> 20,
            "own memory at its end, MiB": (life.own or [0])[-1] >> 20,
            "own memory, last half": _hourly(life.slope(life.own, since=1 / 2)),
            "memory, last half": _hourly(life.slope(life.memory, since=1 / 2)),
            "threads, most": max(max(one.threads, default=0) for one in soak.lives),
            "descriptors, most": max(max(one.descriptors, default=0) for one in soak.lives),
            "tasks, most": max(max(one.tasks, default=0) for one in soak.lives),
            **{f"{name}, MiB": round(size / 2**20, 1) for name, size in sizes.items()},
        }.items()
    ]  # fmt: skip
    slope, delay = life.slope(life.memory, since=1 / 2), life.delay_p99()
    hourly = _hourly(slope)
    wal = max(max(one.wal, default=0) for one in soak.lives) / 2**20
    descriptors, tasks = life.growth(life.descriptors), life.growth(life.tasks)
    goals = [
        {"name": "lost", "goal": "nothing", "measured": "; ".join(lost) or "nothing", "met": not lost},
        {"name": "the log's chain", "goal": "whole", "measured": "whole" if verified else "broken", "met": verified},
        {"name": "stop", "goal": "status 0 within 10 s", "measured": f"status {status} in {took:.1f} s",
         "met": status == 0 and took < 10},
        {"name": "kill -9", "goal": "at least 5", "measured": str(soak.kills), "met": soak.kills >= 5},
        {"name": "memory, over the last half of the last life", "goal": "under 1 MiB an hour", "measured": hourly,
         "met": slope is not None and slope < 2**20},
        {"name": "descriptors after warm-up", "goal": "at most 10 more", "measured": f"{descriptors:+.0f}",
         "met": descriptors <= 10},
        {"name": "tasks after warm-up", "goal": "at most 10 more", "measured": f"{tasks:+.0f}", "met": tasks <= 10},
        {"name": "write-ahead file, most", "goal": "under 64 MiB", "measured": f"{wal:.1f} MiB", "met": wal < 64},
        {"name": "event loop delay, p99", "goal": "at most 25 ms", "measured": f"{delay * 1000:.0f} ms",
         "met": delay <= 0.025},
    ]  # fmt: skip
    report("soak", rows, goals, as_json=as_json)
    for line in [*problems[:10], *sorted(set(soak.broken))[:10]]:
        print(line[:300], file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
