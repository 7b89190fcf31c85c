"""The part of ``bench_streaming`` with a provider: rates, delays, and very many streams at once."""

import asyncio
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from scripts.streaming_load import MODEL, Reader, cpu_seconds, peak_mb, read

LOAD = Path(__file__).with_name("streaming_load.py")
ENVIRONMENT = Path(__file__).parent.parent / ".venv-bench"

ROUNDS = 2
STREAMS, CHUNKS, PER_SECOND = 20, 200, 40.0
"""Of one round of each rival; 800 chunks a second in all."""
FIRST_TOKENS = 15
AT_ONCE = 100
MANY = 2_000
OPENING = 25
"""Of the many, so many begin at a time."""
SECONDS_TO_BEGIN = 75.0
"""For all of them; on a busy machine there are fewer, and the result says how many."""
SECONDS_TO_START = 90.0
KEY = f"sk-{secrets.token_hex(32)}"
QUESTION = "How do I set the retry of a queue?"


class Rival(Struct):
    """Somebody who streams what the provider says."""

    name: str
    pid: int
    url: str
    body: dict[str, Any]
    headers: dict[str, str]


class Found(Struct):
    rows: list[dict[str, Any]]
    goals: list[dict[str, Any]]


def at(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


@contextmanager
def started(*command: str, line: bool = True, **environment: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A process, and the address that it says it listens on. Ends with the block."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE if line else subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    try:
        told = ""
        if process.stdout is not None:
            told = process.stdout.readline().removeprefix("listening on ").strip()
            if not told:
                raise RuntimeError(f"{command[0]} did not start")
        yield process, told
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def measure(data: Path, domain: str, key: str, *, environment: Path = ENVIRONMENT, folder: Path) -> Found:
    """``environment``: of the rivals' packages; ``folder``: for what they need on disk."""
    with ExitStack() as stack:
        _, provider = stack.enter_context(started(sys.executable, str(LOAD), "provider"))
        rivals = list(_library_rivals(stack, provider, environment, folder))
        settings = {
            "DOCSMITH_ASSISTANT__MODEL": "bench",
            "DOCSMITH_ASSISTANT__SUGGESTIONS": "false",
            "DOCSMITH_ASSISTANT__CONCURRENT_REPLIES": str(MANY * 2),
            "DOCSMITH_MODELS__BENCH__MODEL": f"openai/{MODEL}",
            "DOCSMITH_MODELS__BENCH__API_BASE": f"{provider}/v1",
            "DOCSMITH_MODELS__BENCH__IDLE_TIMEOUT_SECONDS": "600",  # the first of very many wait for the last
        }
        process, url = stack.enter_context(
            started(sys.executable, "-m", "service", "serve", "--port", "0", "--data", str(data), **settings)
        )
        message = {"role": "user", "parts": [{"type": "text", "text": QUESTION}]}
        ours = Rival(
            "docsmith, recorded", process.pid, f"{url}/discovery/v2/assistant/{domain}/message",
            {"fp": "anonymous", "messages": [message]}, {"Authorization": f"Bearer {key}"},
        )  # fmt: skip
        process, url = stack.enter_context(started(sys.executable, str(LOAD), "bare", provider))
        bare = _completions("bare aiohttp proxy", process.pid, url)
        return asyncio.run(_measured(provider, ours, bare, rivals))


def _completions(name: str, pid: int, url: str) -> Rival:
    body = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
    return Rival(name, pid, f"{url}/v1/chat/completions", body, {"Authorization": f"Bearer {KEY}"})


def _library_rivals(stack: ExitStack, provider: str, environment: Path, folder: Path) -> Iterator[Rival]:
    python, litellm = environment / "bin" / "python", environment / "bin" / "litellm"
    if not litellm.exists():
        return
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
    process, url = stack.enter_context(started(str(python), str(LOAD), "fastapi", provider, **quiet))
    yield _completions("FastAPI, sse-starlette", process.pid, url)
    params = {"model": f"openai/{MODEL}", "api_base": f"{provider}/v1", "api_key": "none"}
    config = folder / "litellm.yaml"
    config.write_text(json.dumps({"model_list": [{"model_name": MODEL, "litellm_params": params}]}))  # JSON is YAML
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [str(litellm), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    process, _ = stack.enter_context(started(*command, line=False, LITELLM_MASTER_KEY=KEY, **quiet))
    url, began = f"http://127.0.0.1:{port}", time.monotonic()
    while process.poll() is None and time.monotonic() - began < SECONDS_TO_START:
        with suppress(OSError), urllib.request.urlopen(f"{url}/health/liveliness", timeout=5):
            break
        time.sleep(0.5)
    else:
        raise RuntimeError("the proxy of LiteLLM did not start")
    yield _completions("LiteLLM proxy", process.pid, url)


async def _measured(provider: str, ours: Rival, bare: Rival, others: list[Rival]) -> Found:
    everybody = [bare, ours, *others]
    await _plan(provider, chunks=5, per_second=50.0)
    for rival in everybody:  # the first is the slowest: imports, caches
        for _ in range(3):
            await _whole(await _asked(rival), rival, 5)
    direct = _completions("the provider", 0, provider)
    first = {rival.name: await _first_tokens(rival) for rival in [direct, *everybody]}
    await _plan(provider, chunks=CHUNKS, per_second=PER_SECOND)
    rates: dict[str, list[float]] = {rival.name: [] for rival in everybody}
    delays: dict[str, list[float]] = {rival.name: [] for rival in everybody}
    costs: dict[str, list[float]] = {rival.name: [] for rival in everybody}
    for number in range(ROUNDS):
        for rival in everybody if number == 0 else [bare, ours]:
            cost, rate, took = await _round(provider, rival, STREAMS, CHUNKS)
            costs[rival.name].append(cost)
            rates[rival.name].append(rate)
            delays[rival.name] += took
    await _plan(provider, chunks=100, per_second=20.0)
    hundred = {rival.name: (await _round(provider, rival, AT_ONCE, 100))[2] for rival in (bare, ours)}
    many = await _many(provider, ours)

    begun = {name: statistics.median(seconds) * 1000 for name, seconds in first.items()}
    rate = {name: statistics.median(found) for name, found in rates.items()}
    rows = [
        {
            "what": name,
            "chunks/s of a core": round(rate[name]),
            "of the bare proxy": f"{rate[name] / rate[bare.name]:.0%}",
            "CPU to begin a reply, ms": round(statistics.median(costs[name]) * 1000, 1),
            "first token, added, ms": round(begun[name] - begun[direct.name], 1),
            "chunk under way p50 ms": round(at(delays[name], 0.5) * 1000, 1),
            "p99 ms": round(at(delays[name], 0.99) * 1000, 1),
            f"{AT_ONCE} at once p50 ms": round(at(hundred[name], 0.5) * 1000, 1) if name in hundred else "",
            "p99 ms ": round(at(hundred[name], 0.99) * 1000, 1) if name in hundred else "",
        }
        for name in rate
    ]
    share = statistics.median(mine / theirs for mine, theirs in zip(rates[ours.name], rates[bare.name], strict=True))
    own = at(hundred[ours.name], 0.99) * 1000
    theirs = at(hundred[bare.name], 0.99) * 1000
    goals = [
        _goal("chunks a core carries, beside a bare aiohttp proxy", "at least 70 %", f"{share:.0%}", share >= 0.7),
        *_beside(rate, ours.name, others),
        _goal(
            f"from the provider to the reader's socket, p99, {AT_ONCE} replies at once", "under 10 ms",
            f"{own:.1f} ms (bare proxy: {theirs:.1f} ms)", own < 10,
        ),
        *many,
    ]  # fmt: skip
    return Found(rows, goals)


def _beside(rate: dict[str, float], ours: str, others: list[Rival]) -> Iterator[dict[str, Any]]:
    wanted = {"LiteLLM proxy": 5.0, "FastAPI, sse-starlette": 1.0}
    for name, least in wanted.items():
        if any(rival.name == name for rival in others):
            times = rate[ours] / rate[name]
            yield _goal(f"chunks a core carries, beside {name}", f"over {least:g} times", f"{times:.1f} times",
                        times > least)  # fmt: skip
        else:
            yield _goal(f"chunks a core carries, beside {name}", f"over {least:g} times",
                        "not measured; see the head of this script", False)  # fmt: skip


def _goal(name: str, goal: str, measured: str, met: bool) -> dict[str, Any]:
    return {"name": name, "goal": goal, "measured": measured, "met": met}


async def _plan(provider: str, **plan: Any) -> int:
    """How many replies are under way."""
    request = urllib.request.Request(f"{provider}/plan", json.dumps(plan).encode())
    with await asyncio.to_thread(urllib.request.urlopen, request, timeout=20) as answer:
        return int(answer.read())


async def _asked(rival: Rival) -> Reader:
    return await read(rival.url, rival.body, rival.headers)


async def _whole(reader: Reader, rival: Rival, chunks: int) -> Reader:
    async with asyncio.timeout(120):
        await reader.ended
    if len(reader.took) != chunks:
        raise RuntimeError(f"{rival.name} sent {len(reader.took)} of {chunks} chunks: {reader.status!r}")
    return reader


async def _first_tokens(rival: Rival) -> list[float]:
    found = []
    for _ in range(FIRST_TOKENS):
        reader = await _whole(await _asked(rival), rival, 5)
        found.append(reader.first_at - reader.asked_at)
    return found


async def _round(provider: str, rival: Rival, streams: int, chunks: int) -> tuple[float, float, list[float]]:
    """Seconds of its processor time to begin a reply; chunks for each second of it while all of them flow; seconds that
    each of those was under way.
    """
    await _plan(provider, holds=True, hold_after=1)
    before = cpu_seconds(rival.pid)
    readers = []
    for _ in range(streams):  # not all at the same instant: their chunks would come in bursts
        readers.append(await _asked(rival))
        await asyncio.sleep(0.013)
    async with asyncio.timeout(60):
        await asyncio.gather(*(reader.begun for reader in readers))
    await asyncio.sleep(0.5)
    begun = cpu_seconds(rival.pid)
    await _plan(provider, holds=False)
    for reader in readers:
        await _whole(reader, rival, chunks)
    used = max(0.01, cpu_seconds(rival.pid) - begun)  # counted in hundredths
    took = [seconds for reader in readers for seconds in reader.took[1:]]
    return (begun - before) / streams, streams * (chunks - 1) / used, took


async def _many(provider: str, ours: Rival) -> list[dict[str, Any]]:
    """All are begun and wait for the rest of their reply; then all go on at once, slowly."""
    chunks = 8
    await _plan(provider, chunks=chunks, per_second=1.0, holds=True, hold_after=chunks // 2)
    readers: list[Reader] = []
    began = time.monotonic()
    while len(readers) < MANY and time.monotonic() - began < SECONDS_TO_BEGIN:
        opened = [await _asked(ours) for _ in range(OPENING)]
        async with asyncio.timeout(60):
            await asyncio.gather(*(reader.begun for reader in opened))
        readers += opened
    under_way = await _plan(provider, holds=False)
    gone_on = time.perf_counter()
    for reader in readers:
        async with asyncio.timeout(60):
            await reader.ended
    whole = sum(len(reader.took) == chunks for reader in readers)
    late = max(reader.took[-1] for reader in readers if reader.took)
    seconds = max(reader.latest_at for reader in readers) - gone_on
    memory = peak_mb(ours.pid)
    return [
        _goal(f"memory with {under_way} replies at once", f"{MANY} within 600 MB", f"{memory:.0f} MB",
              under_way >= MANY and memory <= 600),
        _goal(f"{MANY} slow replies told to their end", "all, none starved",
              f"{whole}, in {seconds:.1f} s (the provider's pace: 4 s), no last chunk later than {late * 1000:.0f} ms",
              whole == MANY and seconds < 8),
    ]  # fmt: skip
