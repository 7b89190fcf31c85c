"""An attack, and the tools of those who make one."""

import asyncio
import contextlib
import io
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from scripts.attacks.git import FETCH_CAPABILITIES, FLUSH, files_push, line
from scripts.attacks.ground import Target

Answers = Counter[str]
"""How often A was answered with which status; ``cut``: the connection was closed without one."""
Run = Callable[[Target, Answers], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Attack:
    """``run`` is ended when its time is over. ``mood`` is that of A's machines elsewhere meanwhile."""

    name: str
    what: str
    run: Run
    answers: frozenset[str]
    """Statuses that A should get, and no others; 429 and 503 are always right."""
    mood: str = ""


ALWAYS = frozenset({"408", "429", "503"})


def attack(what: str, *answers: str, mood: str = "") -> Callable[[Run], Attack]:
    """Name an attack after its function: ``slow_heads`` is ``slow-heads``."""

    def named(run: Run) -> Attack:
        name = run.__name__.strip("_").replace("_", "-")  # type: ignore[attr-defined]
        return Attack(name, what, run, frozenset(answers) | ALWAYS, mood)

    return named


async def at_once(number: int, one: Callable[[int], Awaitable[None]]) -> None:
    """Do the same a number of times at once; a connection that breaks is the defender's good right."""

    async def guarded(place: int) -> None:
        with contextlib.suppress(OSError, aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError):
            await one(place)

    await asyncio.gather(*(guarded(place) for place in range(number)))


async def again_and_again(number: int, one: Callable[[int], Awaitable[None]]) -> None:
    """As ``at_once``, each again as soon as it is done, until the attack's time is over."""

    async def on(place: int) -> None:
        while True:
            with contextlib.suppress(OSError, aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError):
                await one(place)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(on(place) for place in range(number)))


def session() -> aiohttp.ClientSession:
    """Connections without a number, that say what they get as it is."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=600), auto_decompress=False
    )


async def send(
    http: aiohttp.ClientSession, answers: Answers, method: str, url: str, *, reads: bool = True, **more: Any
) -> bytes:
    """Send a request, count its answer, and return the body."""
    if isinstance(more.get("data"), bytes):
        more["data"] = io.BytesIO(more["data"])  # else aiohttp warns of large ones
    try:
        async with http.request(method, url, **more) as response:
            body = await response.read() if reads else b""
            answers[str(response.status)] += 1
            return body
    except (aiohttp.ClientError, OSError):
        answers["cut"] += 1
        return b""


@contextlib.asynccontextmanager
async def connection(target: Target) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def read_status(reader: asyncio.StreamReader, answers: Answers) -> None:
    """Count the first answer, up to its blank line."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        head = b""
    found = re.match(rb"HTTP/1\.[01] (\d{3}) ", head)
    answers[found[1].decode() if found else "cut"] += 1


async def until_answered(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: Answers, piece: bytes
) -> None:
    """Send the same piece each second until there is an answer, and count that."""
    reading = asyncio.create_task(read_status(reader, answers))
    try:
        while not reading.done():
            writer.write(piece)
            await asyncio.wait([reading], timeout=1)
    finally:
        reading.cancel()


def head_of(target: Target, method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{target.port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def main_commit(http: aiohttp.ClientSession, target: Target) -> bytes:
    """Return the commit of A's branch, as a push asks for it."""
    url = f"{target.url}{target.repository()}/info/refs"
    async with http.get(url, params={"service": "git-receive-pack"}, headers=target.a.git) as response:
        found = re.search(rb"([0-9a-f]{40}) refs/heads/main", await response.read())
    assert found is not None
    return found[1]


async def push(http: aiohttp.ClientSession, target: Target, answers: Answers, body: bytes) -> bytes:
    headers = {**target.a.git, "Content-Type": "application/x-git-receive-pack-request"}
    url = f"{target.url}{target.repository()}/git-receive-pack"
    return await send(http, answers, "POST", url, data=body, headers=headers)


async def publish(target: Target, answers: Answers, files: Mapping[str, bytes]) -> None:
    """Push these files, and these only, to the branch that A's site shows; then wait while they are indexed."""
    async with session() as http:
        for _ in range(10):
            body = await asyncio.to_thread(lambda old: files_push(files, old)[1], await main_commit(http, target))
            if b"ok refs/heads/main" in await push(http, target, answers, body):
                break
    await asyncio.Event().wait()


async def fetch(http: aiohttp.ClientSession, target: Target, answers: Answers, **more: Any) -> bytes:
    """Ask for the whole repository, as a clone does."""
    commit = await main_commit(http, target)
    body = line(b"want " + commit + FETCH_CAPABILITIES) + FLUSH + line(b"done\n")
    headers = {**target.a.git, "Content-Type": "application/x-git-upload-pack-request"}
    url = f"{target.url}{target.repository()}/git-upload-pack"
    return await send(http, answers, "POST", url, data=body, headers=headers, **more)
