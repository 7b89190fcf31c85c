"""Searches by MCP beside the same searches by REST: requests per second, how long each takes, and the memory that a
thousand clients leave behind.

The server is a process of its own over loopback, and the two kinds of requests take turns, round by round, so that a
noisy machine is noisy for both; the ratio is the median of the rounds'. It is that of requests per second, and beside
it that of requests per second of processor time. The client is a few lines, so that it is not what is measured.
"""

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.bench_http import command, started
from scripts.bench_table import report
from scripts.streaming_load import cpu_seconds

CONNECTIONS, FEW = 16, 4
"""Clients at once, for the requests per second, and for how long one takes."""
ROUNDS, ROUND_SECONDS = 7, 2.0
CLIENTS, CALLS, WAVES = 1_000, 5, 4
"""Clients that are connected at once, the calls of each, and how often they come again."""
SHARE, P99_MS, GROWTH = 0.6, 20.0, 0.02
QUERIES = 200
UNLIMITED = {
    "DOCSMITH_LIMITS__KEY_SEARCHES_MINUTE": "0",
    "DOCSMITH_LIMITS__ADDRESS_SEARCHES_MINUTE": "0",
    "DOCSMITH_SERVER__MAX_CONNECTIONS_PER_ADDRESS": "0",
}
META = "io.modelcontextprotocol/"


def written(folder: Path, pages: int) -> list[str]:
    """Write a site; return questions that its pages answer."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randrange(4, 10))) for _ in range(5_000)]
    weights = [1 / (number + 5) for number in range(len(words))]
    for number in range(pages):
        sections = (
            f"## {' '.join(chance.choices(words, weights, k=3)).capitalize()}\n\n"
            f"{' '.join(chance.choices(words, weights, k=120)).capitalize()}.\n"
            for _ in range(4)
        )
        file = folder / f"part-{number % 40}" / f"page-{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Page {number}\n\n" + "\n".join(sections), encoding="utf-8")
    return [" ".join(chance.sample(words[20:1_000], 3)) for _ in range(QUERIES)]


class Kind(Struct):
    """A way to search."""

    name: str
    path: str
    headers: str
    bodies: list[bytes]

    def requests(self, address: str, key: str) -> list[bytes]:
        """Return the bytes of each request."""
        head = f"POST {self.path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n{self.headers}"
        return [
            f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            for body in self.bodies
        ]


def kinds(questions: list[str]) -> list[Kind]:
    def call(question: str, **more: Any) -> bytes:
        params = {"name": "search", "arguments": {"query": question}, **more}
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()

    meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
    named = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: search\r\n"
    rest = [json.dumps({"query": question, "pageSize": 10}).encode() for question in questions]
    return [
        Kind("REST", "/discovery/v1/search/bench", "", rest),
        Kind("MCP, 2026-07-28", "/mcp/bench", named, [call(question, _meta=meta) for question in questions]),
        Kind("MCP, 2025-11-25", "/mcp/bench", "", [call(question) for question in questions]),
    ]


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
    return await reader.readexactly(int(length))


async def load(address: str, requests: list[bytes], seconds: float, connections: int) -> list[float]:
    """Return how long each answer took that came in that time, in milliseconds."""
    host, port = address.split(":")
    end, took = time.perf_counter() + seconds, []

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        while (began := time.perf_counter()) < end:
            number += 1
            await ask(reader, writer, requests[number % len(requests)])
            took.append((time.perf_counter() - began) * 1e3)
        writer.close()

    await asyncio.gather(*(one(number * 7) for number in range(connections)))
    return took


async def wave(address: str, requests: list[bytes]) -> None:
    """Have many clients connected at once, each of which searches some times and goes."""
    host, port = address.split(":")
    all_here = asyncio.Barrier(CLIENTS)

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        await all_here.wait()
        for at in range(CALLS):
            answer = await ask(reader, writer, requests[(number + at) % len(requests)])
            assert b'"isError":false' in answer, answer
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(one(number) for number in range(CLIENTS)))


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"RssAnon:\s+(\d+)", status)[0]) / 1024


class Rate(Struct):
    per_second: float
    cpu_us: float
    """Microseconds of the server's processor time for each."""


def rate_of(pid: int, address: str, requests: list[bytes]) -> Rate:
    began = cpu_seconds(pid)
    answers = len(asyncio.run(load(address, requests, ROUND_SECONDS, CONNECTIONS)))
    return Rate(answers / ROUND_SECONDS, (cpu_seconds(pid) - began) / answers * 1e6)


def measured(pid: int, address: str, key: str, questions: list[str]) -> tuple[list[Any], list[Any]]:
    """Return rows and goals."""
    searches = {kind.name: kind.requests(address, key) for kind in kinds(questions)}
    rounds: list[dict[str, Rate]] = []
    took: dict[str, list[float]] = {name: [] for name in searches}
    for number in range(ROUNDS + 1):
        found = {name: rate_of(pid, address, requests) for name, requests in searches.items()}
        for name, requests in searches.items():
            times = asyncio.run(load(address, requests, ROUND_SECONDS, FEW))
            if number:  # the first warms up
                took[name] += times
        if number:
            rounds.append(found)
    rows, goals = [], []
    for name, times in took.items():
        times.sort()
        share = statistics.median(one[name].per_second / one["REST"].per_second for one in rounds)
        cpu_share = statistics.median(one["REST"].cpu_us / one[name].cpu_us for one in rounds)
        p99 = times[len(times) * 99 // 100]
        rows.append(
            {
                "searches by": name,
                "requests/s": round(statistics.median(one[name].per_second for one in rounds)),
                "CPU µs of a request": round(statistics.median(one[name].cpu_us for one in rounds)),
                f"p50 ms, {FEW} at once": round(statistics.median(times), 2),
                f"p99 ms, {FEW} at once": round(p99, 2),
            }
        )
        if name != "REST":
            said = f"{share:.0%} ({cpu_share:.0%} by processor time)"
            goals += [
                {"name": f"{name}: of REST's requests per second, median of rounds", "goal": f"at least {SHARE:.0%}",
                 "measured": said, "met": share >= SHARE},
                {"name": f"{name}: p99 with {FEW} at once", "goal": f"under {P99_MS:.0f} ms",
                 "measured": f"{p99:.1f} ms", "met": p99 < P99_MS},
            ]  # fmt: skip
    return rows, goals


def memory(pid: int, address: str, requests: list[bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    for _ in range(2):
        asyncio.run(wave(address, requests))
    before = memory_mb(pid)
    for _ in range(WAVES):
        asyncio.run(wave(address, requests))
    after = memory_mb(pid)
    row = {"searches by": f"{CLIENTS:,} clients at once, {WAVES} times", "MB before": round(before, 1),
           "MB after": round(after, 1)}  # fmt: skip
    goal = {"name": f"memory after {WAVES} times {CLIENTS:,} clients at once", "goal": f"at most {GROWTH:.0%} more",
            "measured": f"{(after - before) / before:+.1%}", "met": after <= before * (1 + GROWTH)}  # fmt: skip
    return row, goal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pages", type=int, default=2_000)
    options = parser.parse_args()
    os.environ |= UNLIMITED
    with tempfile.TemporaryDirectory() as folder:
        data, docs = Path(folder) / "data", Path(folder) / "docs"
        questions = written(docs, options.pages)
        command(data, "organization", "create", "--name", "Bench")
        command(data, "project", "create", "--name", "Bench", "--repository", str(docs), "--domain", "bench")
        command(data, "index", "bench")
        key = command(data, "key", "create", "--kind", "assistant", "--domain", "bench", "--server")["token"]
        server, base = started("-m", "service", "serve", "--port", "0", "--data", str(data))
        try:
            address = base.removeprefix("http://")
            rows, goals = measured(server.pid, address, key, questions)
            newest = kinds(questions)[1].requests(address, key)
            row, goal = memory(server.pid, address, newest)
        finally:
            server.terminate()
            server.wait()
            assert server.stdout is not None
            server.stdout.close()
    report("mcp", [*rows, row], [*goals, goal], as_json=options.json)


if __name__ == "__main__":
    main()
