"""How much one process carries: tokens a second before they come late, and open slow replies in how much memory.

Tokens: replies flow faster and faster, ours and those of a bare aiohttp proxy taking turns, each before a provider of
its own in another process. The figure is the last rate at which a token's p99 delay is under twice the bare proxy's.

Slow replies: 10,000 replies with a token each 10 seconds, the model's provider inside the process
(``capacity_service``), a question of its own for each. Memory is the process's peak (VmHWM), with all that it needs
besides them. Raised for it: ``server.max_connections`` (10,000 and some), ``assistant.concurrent_replies``, the limits
of questions, and the number of descriptors, of which the process takes one for each reader and some hundred more.
"""

import argparse
import asyncio
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import Struct

from scripts.bench_streaming import command, generated
from scripts.bench_table import report
from scripts.streaming_load import MODEL, Reader, cpu_seconds, peak_mb, read
from scripts.streaming_rates import LOAD, at, started

STREAMS, PACE_SECONDS = 10_000, 10.0
OPENING = 50
"""The number of replies that begin at a time."""
BEGIN_SECONDS = 300.0
"""The time after which a reply that has not begun is taken for a failure."""
ENDING_SECONDS = 600.0
PROGRESS_SECONDS = 15.0
FLOWING = 250
"""Replies at once, where tokens a second are counted."""
FIRST_RATE, FASTER, SECONDS = 1_000, 1.25, 6.0
"""Tokens a second of the first step, the growth from step to step, and the length of each."""
MAX_STEPS = 15
IDLE = 1.0
"""Tokens a second of a reply whose turn it is not: it notices a new pace only at its next token."""
UNLIMITED = {
    "DOCSMITH_LIMITS__ASSISTANT_KEY_MONTH": "0",
    "DOCSMITH_LIMITS__ORGANIZATION_HOUR": "0",
    "DOCSMITH_LIMITS__ADDRESS_DAY": "0",
}
ASSISTANT = {
    "DOCSMITH_ASSISTANT__MODEL": "bench",
    "DOCSMITH_ASSISTANT__PLANNER": "off",
    "DOCSMITH_ASSISTANT__SUGGESTIONS": "false",
    "DOCSMITH_MODELS__BENCH__MODEL": f"openai/{MODEL}",
    "DOCSMITH_MODELS__BENCH__IDLE_TIMEOUT_SECONDS": "600",
}
_THINGS = ("queue", "worker", "schedule", "backup", "cluster", "token", "region", "volume", "network", "policy")


class Carrier(Struct):
    """A process that passes replies on, and how it is asked for one."""

    process: "subprocess.Popen[str]"
    url: str
    headers: dict[str, str]
    body: Callable[[], dict[str, Any]]
    provider: str = ""


_numbers = count()


def _question() -> dict[str, Any]:
    number = next(_numbers)
    one, other = _THINGS[number % 10], _THINGS[number // 10 % 10]
    text = f"How do I set the {one} of a {other} number {number}?"
    return {"fp": "anonymous", "messages": [{"role": "user", "parts": [{"type": "text", "text": text}]}]}


def _completion() -> dict[str, Any]:
    return {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "How?"}]}


async def _open(carrier: Carrier, streams: int, until: float) -> list[Reader]:
    """Begin replies until there are enough, or the time is over."""
    readers: list[Reader] = []
    reported_at = time.monotonic()
    while len(readers) < streams and time.monotonic() < until:
        some = min(OPENING, streams - len(readers))
        opened = [await read(carrier.url, carrier.body(), carrier.headers) for _ in range(some)]
        _, late = await asyncio.wait([reader.begun for reader in opened], timeout=BEGIN_SECONDS)
        if late:
            raise RuntimeError(f"{len(late)} of {some} replies did not begin in {BEGIN_SECONDS:g} s")
        refused = next((reader.status for reader in opened if not reader.took), None)
        if refused is not None:
            raise RuntimeError(f"a reply did not begin: {refused!r}")
        readers += opened
        if time.monotonic() - reported_at > PROGRESS_SECONDS:
            reported_at = time.monotonic()
            _tell(f"{len(readers):,} more replies open, {peak_mb(carrier.process.pid):,.0f} MB")
    return readers


def _tell(progress: str) -> None:
    """Thousands of replies take minutes to open, on a machine that does other work too many minutes."""
    print(f"capacity: {progress}", file=sys.stderr, flush=True)


def _planned(provider: str, **plan: Any) -> None:
    with urllib.request.urlopen(urllib.request.Request(f"{provider}/plan", json.dumps(plan).encode())) as answer:
        answer.read()


async def _delay(carrier: Carrier, readers: list[Reader], rate: float) -> tuple[float, float]:
    """Return the p99 delay of a token in seconds, and the tokens a second that came, at a rate that the provider tries
    to keep.
    """
    await asyncio.to_thread(_planned, carrier.provider, holds=False, per_second=rate / len(readers))
    await asyncio.sleep(SECONDS / 3)  # the pace before has ended
    before, began = [len(reader.took) for reader in readers], time.monotonic()
    await asyncio.sleep(SECONDS)
    took = [seconds for reader, place in zip(readers, before, strict=True) for seconds in reader.took[place:]]
    lasted = time.monotonic() - began
    await asyncio.to_thread(_planned, carrier.provider, per_second=IDLE)  # its turn is over
    await asyncio.sleep(SECONDS / 3)
    return at(took, 0.99) if took else float("inf"), len(took) / lasted


async def _flowing(ours: Carrier, bare: Carrier) -> tuple[list[dict[str, Any]], float]:
    """Return a row for each step, and the last rate that is carried."""
    for carrier in (ours, bare):
        _planned(carrier.provider, chunks=10**9, per_second=IDLE)
    readers = {id(carrier): await _open(carrier, FLOWING, time.monotonic() + 600) for carrier in (ours, bare)}
    rows: list[dict[str, Any]] = []
    carried, missed, rate = 0.0, 0, float(FIRST_RATE)
    while missed < 2 and len(rows) < MAX_STEPS:  # one step may be late by chance
        theirs, _ = await _delay(bare, readers[id(bare)], rate)
        used = cpu_seconds(ours.process.pid)
        own, came = await _delay(ours, readers[id(ours)], rate)
        used = cpu_seconds(ours.process.pid) - used
        rows.append(
            {"what": f"{rate:,.0f} tokens/s, {FLOWING} replies", "p99 ms": round(own * 1000, 1),
             "bare p99 ms": round(theirs * 1000, 1), "came, tokens/s": round(came),
             "processor": f"{used / (SECONDS * 5 / 3):.0%}"}
        )  # fmt: skip
        _tell(f"{rate:,.0f} tokens/s, p99 {own * 1000:.1f} ms, bare {theirs * 1000:.1f} ms")
        if own < 2 * theirs and came > 0.95 * rate:
            carried, missed = rate, 0
        else:
            missed += 1
        rate *= FASTER
    return rows, carried


async def _slow(ours: Carrier, streams: int, seconds_to_open: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    pid = ours.process.pid
    until = time.monotonic() + seconds_to_open
    first = await _open(ours, min(OPENING, streams), until)  # what is imported and cached once is not theirs
    at_rest, used, began = peak_mb(pid), cpu_seconds(pid), time.monotonic()
    more = await _open(ours, streams - len(first), until)
    readers = [*first, *more]
    opened, used = time.monotonic() - began, cpu_seconds(pid) - used
    before, since = cpu_seconds(pid), time.monotonic()
    places = [len(reader.took) for reader in readers]
    await asyncio.sleep(2 * PACE_SECONDS)
    busy = (cpu_seconds(pid) - before) / (time.monotonic() - since)
    took = [late for reader, place in zip(readers, places, strict=True) for late in reader.took[place:]]
    memory, descriptors = peak_mb(pid), _descriptors(pid)
    _tell(f"all {len(readers):,} end")
    ours.process.send_signal(signal.SIGUSR1)
    ending = time.monotonic()
    _, open_still = await asyncio.wait([reader.ended for reader in readers], timeout=ENDING_SECONDS)
    if open_still:
        raise RuntimeError(f"{len(open_still)} of {len(readers)} replies did not end in {ENDING_SECONDS:g} s")
    ended, peak = time.monotonic() - ending, peak_mb(pid)
    each = (memory - at_rest) * 1024 / max(1, len(more))
    row = {
        "what": f"{len(readers):,} replies, a token each {PACE_SECONDS:g} s", "memory, MB": round(memory),
        f"with {len(first)}, MB": round(at_rest), "each, kB": round(each), "once all have ended, peak MB": round(peak),
        "opened in s": round(opened), "processor to open one, ms": round(used * 1000 / max(1, len(more)), 1),
        "processor": f"{busy:.0%}", "p99 ms": round(at(took, 0.99) * 1000, 1), "ended in s": round(ended, 1),
        "descriptors": descriptors,
    }  # fmt: skip
    is_whole = len(readers) >= STREAMS
    goals = [
        {"name": f"memory with {len(readers):,} open slow replies", "goal": f"{STREAMS:,} within 1,024 MB",
         "measured": f"{memory:.0f} MB", "met": is_whole and memory <= 1024},
    ]  # fmt: skip
    return row, goals


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--streams", type=int, default=STREAMS, help="slow replies; 0 leaves that part out")
    parser.add_argument("--seconds-to-open", type=float, default=1_800.0, help="then those that are open count")
    parser.add_argument("--no-rates", action="store_true", help="leave the tokens a second out")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    rows: list[dict[str, Any]] = []
    goals: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        data = Path(folder) / "data"
        docs = generated(Path(folder) / "docs", 1000)
        command(data, "organization", "create", "--name", "Bench")
        command(data, "project", "create", "--name", "Bench", "--repository", str(docs), "--domain", "bench")
        command(data, "index", "bench")
        token = command(data, "key", "create", "--kind", "assistant", "--domain", "bench")["token"]
        headers = {"Authorization": f"Bearer {token}"}
        many = max(STREAMS, options.streams) + 500
        raised = {
            "DOCSMITH_SERVER__MAX_CONNECTIONS": str(many),
            "DOCSMITH_ASSISTANT__CONCURRENT_REPLIES": str(many * 4 // 3 + 1),  # one organization gets three quarters
        }
        path = "/discovery/v2/assistant/bench/message"
        if not options.no_rates:
            rated, carried = _rates(stack, data, headers, path)
            rows += rated
            goals.append(
                {"name": "tokens/s that one process carries, p99 under twice the bare proxy's", "goal": "state it",
                 "measured": f"{carried:,.0f}", "met": carried > 0}
            )  # fmt: skip
            stack.close()
        if options.streams:
            base = {"DOCSMITH_MODELS__BENCH__API_BASE": "http://provider.invalid/v1", "PACE_SECONDS": str(PACE_SECONDS)}
            environment: dict[str, Any] = {**ASSISTANT, **UNLIMITED, **raised, **base, "DOCSMITH_SERVER__PORT": "0"}
            process, url = stack.enter_context(
                started(sys.executable, "-m", "scripts.capacity_service", str(data), **environment)
            )
            time.sleep(5)  # until litellm is imported
            row, found = asyncio.run(
                _slow(Carrier(process, url + path, headers, _question), options.streams, options.seconds_to_open)
            )
            rows.append(row)
            goals += found
    report("capacity", rows, goals, as_json=options.json)


def _rates(stack: ExitStack, data: Path, headers: dict[str, str], path: str) -> tuple[Sequence[dict[str, Any]], float]:
    """Return the steps, and the last rate that is carried."""
    _, own = stack.enter_context(started(sys.executable, str(LOAD), "provider"))
    _, other = stack.enter_context(started(sys.executable, str(LOAD), "provider"))
    environment: dict[str, Any] = {**ASSISTANT, **UNLIMITED, "DOCSMITH_MODELS__BENCH__API_BASE": f"{own}/v1"}
    process, url = stack.enter_context(
        started(sys.executable, "-m", "service", "serve", "--port", "0", "--data", str(data), **environment)
    )
    ours = Carrier(process, url + path, headers, _question, own)
    process, url = stack.enter_context(started(sys.executable, str(LOAD), "bare", other))
    bare = Carrier(process, f"{url}/v1/chat/completions", {}, _completion, other)
    time.sleep(5)  # until litellm is imported
    return asyncio.run(_flowing(ours, bare))


if __name__ == "__main__":
    main()
