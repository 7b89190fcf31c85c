"""Replaces three instances over PostgreSQL one by one, under reads, questions, jobs and their live events.

A small proxy is in front, with health checks and a retry of what is safe to repeat. Afterwards everything that was
acknowledged must be there: each answer on its thread, each job with one pull request, each event of a job once, the log
whole. No request may have been refused. PostgreSQL is a throw-away server of the run's own.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from scripts.bench_table import report
from scripts.rolling.load import Load
from scripts.rolling.proxy import Proxy, Upstream
from tests.instances import Instances, instances_in
from tests.service_process import Service, free_port, write_docs

LIMITS = (
    "assistant_key_month", "organization_hour", "address_day", "project_hour", "key_searches_minute",
    "address_searches_minute",
)  # fmt: skip
BETWEEN_SECONDS = 2.0
CADDY_DRAIN_SECONDS = 15.0
"""Caddy does not report what it has noticed, so its checks need their time."""
LONG_DRAIN_SECONDS = 3600.0


@dataclass
class Outcome:
    load: Load
    counts: Counter[str]
    """See Proxy."""
    lost: list[str]
    seconds: list[float]
    """How long each replacement took, from SIGTERM until the proxy sends requests there again."""


def settings(drain_seconds: float) -> Mapping[str, str]:
    return {
        "DOCSMITH_SERVER__DRAIN_SECONDS": str(drain_seconds),
        **{f"DOCSMITH_LIMITS__{name.upper()}": "0" for name in LIMITS},
    }


async def upgrade(
    folder: Path,
    *,
    rounds: int,
    drain_seconds: float | None,
    between_seconds: float = BETWEEN_SECONDS,
    uses_caddy: bool = False,
) -> Outcome:
    """Start three instances and replace each of them ``rounds`` times under load. Without ``drain_seconds`` each drain
    lasts until the instance has nothing to answer but event streams. ``uses_caddy``: the load goes through Caddy, set
    up by the file that ``docsmith init --compose`` writes. Raise what their start raises.
    """
    chosen = settings(LONG_DRAIN_SECONDS if drain_seconds is None else drain_seconds)
    with instances_in(folder, dict(chosen), count=3) as service:
        await asyncio.to_thread(service.set_up, write_docs(folder / "docs"))
        await asyncio.to_thread(start, service)
        proxy = Proxy([lambda member=member: member.url for member in service.members])  # type: ignore[misc]
        timeout = aiohttp.ClientTimeout(total=None, sock_read=120)
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
            await stack.enter_async_context(proxy.serving())
            url = await stack.enter_async_context(caddy(folder, service)) if uses_caddy else proxy.url
            load = Load(http, service, url)
            for member in service.members:
                await load.until_indexed(member.url)
            seconds: list[float] = []

            async def work() -> None:
                for _ in range(rounds):
                    for member, upstream in reversed(list(zip(service.members, proxy.upstreams, strict=True))):
                        await asyncio.sleep(between_seconds)
                        begun = time.monotonic()
                        if drain_seconds is None:
                            await drain_until_idle(member, proxy, upstream)
                        if (status := await asyncio.to_thread(member.stop)) != 0:
                            raise RuntimeError(f"an instance ended with {status}: {member.log()[-2000:]}")
                        await asyncio.to_thread(member.start, "--port", str(urlsplit(member.url).port))
                        await proxy.until(upstream, is_healthy=True)
                        seconds.append(time.monotonic() - begun)
                await asyncio.sleep(between_seconds)

            await load.run(work)
            lost = await load.lost()
            if not service.place.verify().is_sound:
                lost.append("the log does not verify")
        return Outcome(load, proxy.counts, lost, seconds)


def start(service: Instances) -> None:
    """Start the instances without the harness's own round robin."""
    service.port = ""
    service.begin_proxy = lambda: None  # type: ignore[method-assign]
    service.start()


@asynccontextmanager
async def caddy(folder: Path, service: Instances) -> AsyncIterator[str]:
    """Run Caddy before the instances; yield its address."""
    text = (resources.files("service") / "deploy" / "compose" / "Caddyfile").read_text("utf-8")
    for number, member in enumerate(service.members, 1):
        text = text.replace(f"docsmith-{number}:8080", urlsplit(member.url).netloc)
    (folder / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text, encoding="utf-8")
    url = f"http://127.0.0.1:{free_port()}"
    with (folder / "caddy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            "caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile"),
            env={**os.environ, "HOME": str(folder), "DOCSMITH_ADDRESS": url}, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        async with aiohttp.ClientSession() as http, asyncio.timeout(60):
            while True:
                with suppress(aiohttp.ClientError):
                    async with http.get(f"{url}/healthz") as answer:
                        if answer.status == 200:
                            break
                await asyncio.sleep(0.1)
        yield url
    finally:
        process.terminate()
        await process.wait()


async def drain_until_idle(member: Service, proxy: Proxy, upstream: Upstream) -> None:
    """Begin a drain, which the next signal ends, and wait until there is nothing to answer but event streams."""
    assert member.process is not None
    member.process.send_signal(signal.SIGTERM)
    await proxy.until(upstream, is_healthy=False)
    await proxy.until_idle(upstream)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="replacements of each instance (default: %(default)s)")
    parser.add_argument(
        "--drain",
        type=float,
        help=f"drain_seconds (default: until the instance has nothing to answer, {CADDY_DRAIN_SECONDS:g} with --caddy)",
    )
    parser.add_argument(
        "--caddy", action="store_true", help="load through Caddy, as docsmith init --compose sets it up"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.caddy and options.drain is None:
        options.drain = CADDY_DRAIN_SECONDS
    with tempfile.TemporaryDirectory(prefix="docsmith-rolling-") as folder:
        rolling = upgrade(Path(folder), rounds=options.rounds, drain_seconds=options.drain, uses_caddy=options.caddy)
        found = asyncio.run(rolling)
    rows: list[dict[str, Any]] = [
        {"what": kind, "done": number, "refused": sum(n for name, n in found.load.refused.items() if kind in name)}
        for kind, number in found.load.done.items()
    ]
    refused = sum(found.load.refused.values())
    goals = [
        {"name": "requests that a client saw refused", "goal": "0", "measured": dict(found.load.refused) or 0,
         "met": not refused},
        {"name": "acknowledged and lost, or done twice", "goal": "nothing", "measured": found.lost or "nothing",
         "met": not found.lost},
        {"name": "instances replaced", "goal": f"{3 * options.rounds}", "measured": len(found.seconds),
         "met": len(found.seconds) == 3 * options.rounds},
    ]  # fmt: skip
    report("rolling upgrade", rows, goals, as_json=options.json)
    if not options.json:
        print(f"proxy: {dict(found.counts)}; reconnects of event streams: {found.load.reconnects}")
        print(f"seconds of a replacement: {[round(one, 1) for one in found.seconds]}")
    return 0 if all(goal["met"] for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
