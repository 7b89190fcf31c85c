"""The cost of admission: requests per second of ``GET job`` beside a bare aiohttp handler that returns the same bytes,
and the microseconds of authentication and limits.

Server, bare server and client are processes of their own over loopback, on connections that are kept; the two servers
take turns, round by round, so that a noisy machine is noisy for both, and the ratio is the median of the rounds'. It is
that of requests per second, and beside it that of requests per second of processor time, which other work on the
machine changes less.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from aiohttp.web_urldispatcher import UrlMappingMatchInfo
from msgspec import Struct

from eventstore import Append, Metadata, NewEvent, SQLiteEventStore, Views
from scripts.bench_table import report
from scripts.streaming_load import cpu_seconds
from service.domain.access.usage import RequestAccepted
from service.projections import all_projections
from service.runtime.system import new_id
from service.web.http.access.access import project_for, site_for
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.connections.admission import Admission, AdmissionSettings
from service.web.http.connections.limits import ADMISSIONS, COUNTED, fields_of, metered_store
from service.web.http.problems import REQUEST_ID

CONNECTIONS = 16
ROUNDS = 9
ROUND_SECONDS = 1.5
TIMES = 3_000


def command(data: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "service", *arguments, "--data", str(data), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def started(*arguments: str) -> tuple["subprocess.Popen[str]", str]:
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().removeprefix("listening on ").strip()


async def serve_bare(body: bytes) -> None:
    """A handler that does nothing, as aiohttp's documentation writes one."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_get("/v2/agent/{projectId}/job/{id}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"listening on http://{host}:{port}", flush=True)
    await asyncio.Event().wait()


async def load(url: str, key: str, seconds: float) -> int:
    """Answers in that time. A client of a few lines, so that it is not what is measured."""
    address, _, path = url.removeprefix("http://").partition("/")
    host, port = address.split(":")
    ask = f"GET /{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    end = time.perf_counter() + seconds

    async def one() -> int:
        reader, writer = await asyncio.open_connection(host, int(port))
        answers = 0
        while time.perf_counter() < end:
            writer.write(ask)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
            await reader.readexactly(int(length))
            answers += 1
        writer.close()
        return answers

    return sum(await asyncio.gather(*(one() for _ in range(CONNECTIONS))))


def finished_job(base: str, project: str, key: str) -> str:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    url = f"{base}/v2/agent/{project}/job"
    ask = urllib.request.Request(url, json.dumps({"prompt": "Fix broken links"}).encode(), headers)
    with urllib.request.urlopen(ask) as answer:
        job = json.load(answer)["id"]
    while True:
        with urllib.request.urlopen(urllib.request.Request(f"{url}/{job}", headers=headers)) as answer:
            if json.load(answer)["status"] != "active":
                return f"{url}/{job}"
        time.sleep(0.1)


class Rate(Struct):
    per_second: float
    """Requests."""
    cpu_us: float
    """Microseconds of the server's processor time for each."""


def rates(data: Path, project: str, key: str) -> list[tuple[Rate, Rate]]:
    """Rates of each round: ours, and the bare handler's."""
    server, base = started("-m", "service", "serve", "--port", "0", "--data", str(data))
    bare = None
    try:
        ours = finished_job(base, project, key)
        ask = urllib.request.Request(ours, headers={"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(ask) as answer:
            body = answer.read().decode()
        bare, bare_base = started(__file__, "--bare", body)
        theirs = bare_base + ours.removeprefix(base)
        found = []
        for number in range(ROUNDS + 1):
            pair = rate_of(server.pid, ours, key), rate_of(bare.pid, theirs, key)
            if number:  # the first warms both up
                found.append(pair)
        return found
    finally:
        for process in (server, bare):
            if process is not None:
                process.terminate()
                process.wait()
                assert process.stdout is not None
                process.stdout.close()


def rate_of(pid: int, url: str, key: str) -> Rate:
    began = cpu_seconds(pid)
    answers = asyncio.run(load(url, key, ROUND_SECONDS))
    return Rate(answers / ROUND_SECONDS, (cpu_seconds(pid) - began) / answers * 1e6)


async def much_like_a_handler(_: web.Request) -> web.Response:
    return web.Response()


async def costs(data: Path, project: str, domain: str, admin: str, assistant: str) -> dict[str, list[float]]:
    """Microseconds of each step, one after the other in this process, without waiting for the disk: an append is made
    with and without limits, and flushing it takes ten times what is to be seen, and never the same.
    """
    seen: dict[str, list[float]] = {}
    async with (
        await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db", synchronous="OFF") as store,
        await Views.open(data / "views.db", store, all_projections()) as views,
    ):
        await views.catch_up()
        admission = Admission(store, views, b"secret", AdmissionSettings())
        await admission.load()
        tasks = [asyncio.create_task(run()) for _, run, _ in admission.workers()]
        app = web.Application()
        app[STORE], app[VIEWS] = store, views
        admission.install(app)

        routes = {
            "admin": app.router.add_get("/v2/agent/{projectId}/job/{id}", much_like_a_handler),
            "assistant": app.router.add_post("/discovery/v2/assistant/{domain}/message", much_like_a_handler),
        }

        def request(kind: str, key: str, **match: str) -> web.Request:
            route = routes[kind]
            made = make_mocked_request(route.method, "/", headers={"Authorization": f"Bearer {key}"}, app=app)
            # what is mocked of these takes longer than all else
            made._match_info = UrlMappingMatchInfo(match, route)
            made._transport_peername = ("127.0.0.1", 50_000)
            made._match_info.add_app(app)
            made[REQUEST_ID] = "bench"
            return made

        async def timed(name: str, work: Any) -> None:
            began = time.perf_counter()
            await work
            seen.setdefault(name, []).append((time.perf_counter() - began) * 1e6)

        admissions = app[ADMISSIONS]
        asked = RequestAccepted("assistant", datetime.now(UTC), "org", project, "key", "address")
        for _ in range(TIMES):
            await timed("authentication, admin key", project_for(request("admin", admin, projectId=project)))
            await timed("authentication, assistant key", site_for(request("assistant", assistant, domain=domain)))
            began = time.perf_counter()
            standing = admissions.standing(asked)
            assert standing is not None
            fields_of(standing)
            seen.setdefault("RateLimit fields", []).append((time.perf_counter() - began) * 1e6)
        for _ in range(TIMES // 3):
            write = Append(f"bench-{new_id()}", (NewEvent("asked", b"{}"),), 0)
            await timed("append without limits", store.append_all([write]))
            ask = request("assistant", assistant, domain=domain)
            ask[COUNTED] = asked
            write = Append(f"bench-{new_id()}", (NewEvent("asked", b"{}", metadata=Metadata()),), 0)
            await timed("append with limits", metered_store(ask).append_all([write]))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bare", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        asyncio.run(serve_bare(options.bare.encode()))
        return
    with tempfile.TemporaryDirectory() as folder:
        data, docs = Path(folder) / "data", Path(folder) / "docs"
        docs.mkdir()
        (docs / "index.md").write_text("# Bench\n\nSee [the other page](/nowhere).\n", encoding="utf-8")
        command(data, "organization", "create", "--name", "Bench")
        project = command(data, "project", "create", "--name", "Bench", "--repository", str(docs), "--domain", "bench")[
            "id"
        ]
        admin = command(data, "key", "create", "--kind", "admin")["token"]
        assistant = command(data, "key", "create", "--kind", "assistant", "--domain", "bench")["token"]
        rounds = rates(data, project, admin)
        seen = asyncio.run(costs(data, project, "bench", admin, assistant))
    ours, bare = (
        {
            "requests/s": round(statistics.median(one.per_second for one in column)),
            "CPU µs of a request": round(statistics.median(one.cpu_us for one in column), 1),
        }
        for column in zip(*rounds, strict=True)
    )
    share = statistics.median(one.per_second / two.per_second for one, two in rounds)
    cpu_share = statistics.median(two.cpu_us / one.cpu_us for one, two in rounds)
    p50 = {name: statistics.median(times) for name, times in seen.items()}
    limits = max(p50["append with limits"] - p50["append without limits"], 0) + p50["RateLimit fields"]
    cost = p50["authentication, assistant key"] + limits
    rows: list[dict[str, Any]] = [
        {"what": "GET job", **ours},
        {"what": "bare aiohttp handler, same bytes", **bare},
        *({"what": name, "p50 µs": round(value, 1), "p99 µs": round(sorted(seen[name])[len(seen[name]) * 99 // 100], 1)}
          for name, value in p50.items()),
    ]  # fmt: skip
    goals = [
        {"name": "GET job, of the bare handler's requests per second, median of rounds", "goal": "at least 65 %",
         "measured": f"{share:.0%} ({cpu_share:.0%} by processor time)", "met": share >= 0.65},
        {"name": "authentication and limits of a counted request, p50", "goal": "under 150 µs",
         "measured": f"{cost:.0f} µs", "met": cost < 150},
    ]  # fmt: skip
    report("http", rows, goals, as_json=options.json)


if __name__ == "__main__":
    main()
