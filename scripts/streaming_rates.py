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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle, permutations
from pathlib import Path
from typing import Any

from msgspec import Struct

from scripts.streaming_load import MODEL, Reader, cpu_seconds, peak_mb, read

LOAD = Path(__file__).with_name("streaming_load.py")
ENVIRONMENT = Path(__file__).parent.parent / ".venv-bench"

ROUNDS = 5
STREAMS, CHUNKS, PER_SECOND = 40, 200, 40.0
"""Sizes of one round of each rival: 1,600 chunks a second."""
FIRST_TOKENS = 15
AT_ONCE, AT_ONCE_CHUNKS, AT_ONCE_PER_SECOND = 100, 60, 10.0
"""A pace that both ours and the bare proxy sustain: else it is a queue that is measured."""
CROWD, CROWD_CHUNKS, CROWD_PER_SECOND = 500, 100, 20.0
MANY = 2_000
OPENING = 25
"""The number of streams that begin at a time."""
SECONDS_TO_BEGIN = 75.0
"""For all of them; on a busy machine there are fewer, and the result says how many."""
SECONDS_TO_START = 90.0
KEY = f"sk-{secrets.token_hex(32)}"
_THINGS = ("retry", "queue", "worker", "delay", "schedule", "backup", "cluster", "region", "volume", "policy", "deploy")
QUESTIONS = cycle([f"What is the {one} of a {other}?" for one, other in permutations(_THINGS, 2)])
"""Another for each reply, as of real readers. The generated pages have their words, so that none is searched for by a
plan, which is a second call of the model.
"""


class Rival(Struct):
    """Somebody who streams what the provider says."""

    name: str
    pid: int
    url: str
    body: Callable[[str], dict[str, Any]]
    """The body that asks a question."""
    headers: dict[str, str]


class _Carried(Struct):
    """The result of a round."""

    beginning: float
    """Seconds of processor time to begin a reply."""
    rate: float
    """Chunks for each second of processor time while all replies flow."""
    took: list[float]
    """Seconds that each of those chunks was under way."""


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

        def body(question: str) -> dict[str, Any]:
            message = {"role": "user", "parts": [{"type": "text", "text": question}]}
            return {"fp": "anonymous", "messages": [message]}

        ours = Rival(
            "docsmith, recorded", process.pid, f"{url}/discovery/v2/assistant/{domain}/message",
            body, {"Authorization": f"Bearer {key}"},
        )  # fmt: skip
        process, url = stack.enter_context(started(sys.executable, str(LOAD), "bare", provider))
        bare = _completions("bare aiohttp proxy", process.pid, url)
        return asyncio.run(_measured(provider, ours, bare, rivals))


def _completions(name: str, pid: int, url: str) -> Rival:
    def body(question: str) -> dict[str, Any]:
        return {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": question}]}

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
    rounds: dict[str, list[_Carried]] = {rival.name: [] for rival in everybody}
    shares: dict[str, list[float]] = {rival.name: [] for rival in everybody if rival is not bare}
    for number in range(ROUNDS):
        for rival in [ours, *others] if number == 0 else [ours]:
            carried = await _round(provider, [bare, rival], STREAMS, CHUNKS)
            shares[rival.name].append(carried[rival.name].rate / carried[bare.name].rate)
            for name, one in carried.items():
                rounds[name].append(one)
    await _plan(provider, chunks=AT_ONCE_CHUNKS, per_second=AT_ONCE_PER_SECOND)
    at_once = await _round(provider, [bare, ours], AT_ONCE, AT_ONCE_CHUNKS)
    hundred = {name: one.took for name, one in at_once.items()}
    crowd = await _crowd(provider, bare, ours)
    many = await _many(provider, ours)

    begun = {name: statistics.median(seconds) * 1000 for name, seconds in first.items()}
    share = {name: statistics.median(found) for name, found in shares.items()} | {bare.name: 1.0}
    delays = {name: [took for one in found for took in one.took] for name, found in rounds.items()}
    began = {name: statistics.median(one.beginning for one in found) * 1000 for name, found in rounds.items()}
    rows = [
        {
            "what": name,
            "chunks/s of a core": round(statistics.median(one.rate for one in found)),
            "CPU of a chunk, µs": round(statistics.median(1e6 / one.rate for one in found), 1),
            "of the bare proxy": f"{share[name]:.0%}",
            "CPU to begin a reply, ms": round(began[name], 1),
            "first token, added, ms": round(begun[name] - begun[direct.name], 1),
            "chunk under way p50 ms": round(at(delays[name], 0.5) * 1000, 1),
            "p99 ms": round(at(delays[name], 0.99) * 1000, 1),
            f"{AT_ONCE} at once p50 ms": round(at(hundred[name], 0.5) * 1000, 1) if name in hundred else "",
            "p99 ms ": round(at(hundred[name], 0.99) * 1000, 1) if name in hundred else "",
        }
        for name, found in rounds.items()
    ]
    own = at(hundred[ours.name], 0.99) * 1000
    theirs = at(hundred[bare.name], 0.99) * 1000
    goals = [
        _goal("chunks a core carries, beside a bare aiohttp proxy", "at least 75 %", f"{share[ours.name]:.0%}",
              share[ours.name] >= 0.75),
        *_beside(share, ours.name, others),
        _goal("processor time to begin a reply", "6 ms", f"{began[ours.name]:.1f} ms (bare {began[bare.name]:.1f})",
              began[ours.name] <= 6),
        _goal(
            f"from the provider to the reader's socket, p99, {AT_ONCE} replies at once", "under 10 ms",
            f"{own:.1f} ms (bare proxy: {theirs:.1f} ms)", own < 10,
        ),
        *crowd,
        *many,
    ]  # fmt: skip
    return Found(rows, goals)


def _beside(share: dict[str, float], ours: str, others: list[Rival]) -> Iterator[dict[str, Any]]:
    wanted = {"LiteLLM proxy": 5.0, "FastAPI, sse-starlette": 1.0}
    for name, least in wanted.items():
        if any(rival.name == name for rival in others):
            times = share[ours] / share[name]
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
    return await read(rival.url, rival.body(next(QUESTIONS)), rival.headers)


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


async def _round(provider: str, rivals: Sequence[Rival], streams: int, chunks: int) -> dict[str, _Carried]:
    """All rivals at the same time, so that other work on the machine slows them alike."""
    await _plan(provider, holds=True, hold_after=1)
    readers: dict[str, list[Reader]] = {}
    beginning: dict[str, float] = {}
    for rival in rivals:
        before = cpu_seconds(rival.pid)
        readers[rival.name] = []
        for _ in range(streams):  # not all at the same instant: their chunks would come in bursts
            readers[rival.name].append(await _asked(rival))
            await asyncio.sleep(0.013)
        async with asyncio.timeout(60):
            await asyncio.gather(*(reader.begun for reader in readers[rival.name]))
        beginning[rival.name] = (cpu_seconds(rival.pid) - before) / streams
    await asyncio.sleep(0.5)
    before_all = {rival.name: cpu_seconds(rival.pid) for rival in rivals}
    await _plan(provider, holds=False)
    for rival in rivals:
        for reader in readers[rival.name]:
            await _whole(reader, rival, chunks)
    carried = {}
    for rival in rivals:
        used = max(0.01, cpu_seconds(rival.pid) - before_all[rival.name])  # counted in hundredths
        took = [seconds for reader in readers[rival.name] for seconds in reader.took[1:]]
        carried[rival.name] = _Carried(beginning[rival.name], streams * (chunks - 1) / used, took)
    return carried


async def _crowd(provider: str, bare: Rival, ours: Rival) -> list[dict[str, Any]]:
    """Replies that flow together, after they began one by one; and others that all begin at the same instant.

    Bare and ours are measured one after the other: two cores do not carry both.
    """
    await _plan(provider, chunks=CROWD_CHUNKS, per_second=CROWD_PER_SECOND)
    flowing, beginning = dict[str, float](), dict[str, float]()
    for rival in (bare, ours):
        carried = await _round(provider, [rival], CROWD, CROWD_CHUNKS)
        flowing[rival.name] = at(carried[rival.name].took, 0.99) * 1000
    for rival in (bare, ours):
        readers = await asyncio.gather(*(_asked(rival) for _ in range(CROWD)))
        for reader in readers:
            await _whole(reader, rival, CROWD_CHUNKS)
        beginning[rival.name] = at([took for reader in readers for took in reader.took], 0.99) * 1000
    return [
        _goal(
            f"{CROWD} replies at once, {CROWD_PER_SECOND:.0f} tokens a second each, {when}: p99 of a token",
            "at most 2 times bare's", f"{found[ours.name]:.0f} ms (bare proxy: {found[bare.name]:.0f} ms)",
            found[ours.name] <= 2 * found[bare.name],
        )
        for when, found in (("while they flow", flowing), ("beginning together", beginning))
    ]  # fmt: skip


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
