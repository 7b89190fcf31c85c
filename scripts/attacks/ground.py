"""The ground of a siege: two organizations at one service, and what A has elsewhere: a git server that stalls, a
website that dribbles, an address that takes webhooks and never answers, a model that says what it should not.
"""

import asyncio
import contextlib
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from scripts.attacks.git import basic
from tests.fakes.gitea import FakeGitea
from tests.fakes.provider import Asked, Call, Failure, Reply, ScriptedProvider
from tests.service_process import Service, write_docs

DOCS_A = {"docs.json": '{"name":"A","navigation":{"pages":["index"]}}', "index.md": "# A\n\nKite flies. Wait!\n"}
SETTINGS = {
    "DOCSMITH_NETWORK__ALLOW_PRIVATE": "true",
    "DOCSMITH_INDEX__POLL_MINUTES": "0.05",
    "DOCSMITH_ASSISTANT__MODEL": "builtin",
    "DOCSMITH_AGENT__MODEL": "builtin",
    "DOCSMITH_LIMITS__PROJECT_HOUR": "100000",
    "DOCSMITH_LIMITS__ORGANIZATION_JOBS_DAY": "1000000",
    "DOCSMITH_LIMITS__ADDRESS_DAY": "1000000",
    "DOCSMITH_LIMITS__ORGANIZATION_HOUR": "1000000",
    "DOCSMITH_LIMITS__ASSISTANT_KEY_MONTH": "1000000",
    "DOCSMITH_MODELS__SCRIPTED__MODEL": "openai/gpt-5.2",
    "DOCSMITH_MODELS__SCRIPTED__API_KEY_ENV": "SCRIPTED_KEY",
    "SCRIPTED_KEY": "sk-scripted",
}
"""Limits of requests are high, so that attacks meet the other bounds; those of searches are as they are by default."""


@dataclass(frozen=True)
class Tenant:
    """One organization, with its project and its keys."""

    project_id: str
    domain: str
    admin_key: str
    assistant_key: str
    hook_secret: str = ""
    remote_id: str = ""

    @property
    def admin(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.admin_key}"}

    @property
    def assistant(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.assistant_key}"}

    @property
    def git(self) -> dict[str, str]:
        return basic(self.admin_key)


@dataclass(frozen=True)
class Target:
    """The knowledge of attackers: the service's address, and all of A's."""

    url: str
    a: Tenant
    scale: float = 1.0
    """Factor on the numbers and sizes of an attack."""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def many(self, number: int) -> int:
        return max(2, round(number * self.scale))

    def job(self, version: int = 2) -> str:
        return f"{self.url}/v{version}/agent/{self.a.project_id}/job"

    def repository(self) -> str:
        return f"/hosted/{self.a.project_id}.git"

    def assistant(self, what: str = "v2/assistant/{}/message") -> str:
        return f"{self.url}/discovery/{what.format(self.a.domain)}"

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def of_json(text: str) -> "Target":
        found = json.loads(text)
        return Target(found["url"], Tenant(**found["a"]), found["scale"])


@dataclass
class Elsewhere:
    """A's machines. ``mood`` says how each of them behaves; without one it is well-behaved."""

    mood: str = ""
    service_url: str = ""
    """Where the git server gets what it serves."""
    provider: ScriptedProvider = field(init=False)
    gitea: FakeGitea = field(init=False)
    port: int = 0
    black_hole_port: int = 0
    repository: str = ""

    def __post_init__(self) -> None:
        self.provider = ScriptedProvider(self._say)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Elsewhere"]:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", "/octo/guide.git/{path:.*}", self._git)
        app.router.add_get("/{path:.*}", self._site)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        hole = await asyncio.start_server(self._black_hole, "127.0.0.1", 0)
        self.black_hole_port = hole.sockets[0].getsockname()[1]
        try:
            async with self.provider:
                yield self
        finally:
            hole.close()
            await runner.cleanup()

    async def _black_hole(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):  # cancelled when all of this ends
            if self.mood == "webhook-dribble":
                writer.write(b"HTTP/1.1 200 OK\r\n")
                while True:
                    writer.write(b"X: y\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.2)
            elif self.mood:
                while await reader.read(1 << 16):
                    pass
            else:
                writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    # A git server: the service's own copy of A's repository, handed on as badly as the mood has it

    async def _git(self, request: web.Request) -> web.StreamResponse:
        if self.mood == "remote-stall":
            await asyncio.Event().wait()
        if self.mood == "remote-endless":
            return await self._endless(request, b"0032" + b"a" * 46, "application/x-git-upload-pack-advertisement")
        url = f"{self.service_url}/hosted/{self.repository}.git/{request.match_info['path']}"
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        try:
            async with (
                aiohttp.ClientSession() as http,
                http.request(
                    request.method, url, params=request.query, headers=headers, data=await request.read()
                ) as answer,
            ):
                body = await answer.read()
        except aiohttp.ClientError:  # the service is restarting
            return web.Response(status=502)
        response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
        await response.prepare(request)
        if self.mood == "remote-dribble":
            for place in range(len(body)):
                await response.write(body[place : place + 1])
                await asyncio.sleep(1)
        elif self.mood == "remote-half":
            await response.write(body[: len(body) // 2])
            await asyncio.Event().wait()
        else:
            await response.write(body)
        await response.write_eof()
        return response

    # A website

    async def _site(self, request: web.Request) -> web.StreamResponse:
        path, base = request.path, f"http://127.0.0.1:{self.port}"
        if path == "/llms.txt":
            many = 90 if self.mood.startswith("site-") else 2
            if self.mood == "site-endless-list":
                return await self._endless(request, f"- [p]({base}/p0.md)\n".encode(), "text/plain")
            return web.Response(text="# A\n\n" + "".join(f"- [Page {n}]({base}/p{n}.md)\n" for n in range(many)))
        if path.startswith("/p"):
            return await self._page(request, path)
        return web.Response(status=404)

    async def _page(self, request: web.Request, path: str) -> web.StreamResponse:
        if self.mood == "site-slow":
            await asyncio.sleep(20)
        if self.mood == "site-redirects":
            return web.Response(status=302, headers={"Location": f"{path}x"})
        if self.mood == "site-endless-page":
            return await self._endless(request, b"# Page\n\nwords and words\n" * 100, "text/markdown")
        if self.mood == "site-gzip-bomb":
            headers = {"Content-Type": "text/markdown", "Content-Encoding": "gzip"}
            return web.Response(body=_gzip_bomb(), headers=headers)
        if self.mood == "site-hostile-pages":
            return web.Response(text=f"# {path}\n\n" + "[" * 50_000 + "*_" * 50_000, content_type="text/markdown")
        return web.Response(text=f"# Page {path}\n\nKite flies.\n", content_type="text/markdown")

    async def _endless(self, request: web.Request, piece: bytes, kind: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(piece)
                await asyncio.sleep(0.001)
        return response

    # A model, by what it is asked to do

    def _say(self, asked: Asked) -> Reply | Failure:
        told = json.dumps(asked.body.get("messages", asked.body.get("input", "")))
        done = sum(message.get("role") == "assistant" for message in asked.body.get("messages", []))
        for word, answer in _SPEECHES.items():
            if word in told:
                return answer(done)
        return Reply(("Nothing to do.",), (Call("finish", ('{"title":"Nothing","summary":"Nothing to do."}',)),))


def _nested(done: int) -> Reply:
    deep = '{"path":' + '{"a":' * 3_000 + "1" + "}" * 3_000 + "}"
    return Reply((), (Call("read", (deep,), id=f"c{done}"), Call("plan", ("[" * 100_000,), id=f"d{done}")))


def _many_calls(done: int) -> Reply:
    calls = tuple(Call("read", ('{"path":"index.md"}',), id=f"c{done}-{n}") for n in range(2_000))
    return Reply((), calls)


def _regexes(_: int) -> Reply:
    queries = ("(a+)+$", "(.*)*x", "(a|a)*b", "(?:(?:(?:a*)*)*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$")
    calls = (Call("search", (json.dumps({"query": query, "exact": False, "regex": True}),)) for query in queries)
    return Reply((), tuple(calls))


def _large_write(done: int) -> Reply:
    text = "word " * 900_000
    return Reply((), (Call("write", (json.dumps({"path": f"big{done}.md", "text": text}),), id=f"c{done}"),))


_SPEECHES = {
    "siege-nested": _nested,
    "siege-many-calls": _many_calls,
    "siege-regexes": _regexes,
    "siege-large-write": _large_write,
    "siege-stall": lambda _: Reply(("To ", "be "), after=1, hold=asyncio.Event()),
    "siege-dribble": lambda _: Reply(tuple("x" * 5_000), delay_seconds=0.2),
    "siege-endless": lambda _: Reply(tuple("word " * 40 for _ in range(20_000))),
    "siege-errors": lambda _: Failure(500, "api_error", "x" * 100_000),
}


def _gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    piece = bytes(1 << 20)
    return b"".join([*(packer.compress(piece) for _ in range(200)), packer.flush()])


class Ground:
    """The service before it is attacked: B's site and A's, and what A has elsewhere."""

    def __init__(self, service: Service, elsewhere: Elsewhere) -> None:
        self.service, self.elsewhere = service, elsewhere
        self.a = self.b = Tenant("", "", "", "")

    async def set_up(self, folder: Path) -> None:
        service = self.service
        service.environment |= SETTINGS
        service.environment["DOCSMITH_MODELS__SCRIPTED__API_BASE"] = self.elsewhere.provider.openai_base
        await asyncio.to_thread(service.set_up, write_docs(folder / "docs"))
        self.b = Tenant(service.project_id, service.domain, service.admin_key, service.assistant_key)
        own = (await self._cli("organization", "create", "--name", "Mallory"))["id"]
        docs = write_docs(folder / "docs-a", DOCS_A)
        project = await self._cli(
            "project", "create", "--name", "a", "--repository", str(docs), "--domain", "a", "--organization", own
        )
        admin = (await self._cli("key", "create", "--kind", "admin", "--organization", own))["token"]
        assistant = await self._cli("key", "create", "--kind", "assistant", "--organization", own, "--domain", "a")
        service.environment["SIEGE_TOKEN"] = admin
        self.elsewhere.repository = project["id"]
        self.a = Tenant(project["id"], "a", admin, assistant["token"])
        await self._cli("index", "a")
        await asyncio.to_thread(service.start)
        self.elsewhere.service_url = service.url
        self.elsewhere.gitea = FakeGitea(lambda: {"main": "0" * 40}, token=admin)
        await self.elsewhere.gitea.server.start_server()
        here = f"http://127.0.0.1:{self.elsewhere.port}"
        remote = await self._cli(
            "project", "create", "--name", "a-remote", "--repository", f"{here}/octo/guide.git", "--domain", "a-remote",
            "--code-host", "gitea", "--api-url", f"{self.elsewhere.gitea.url}/api/v1", "--git-token-env", "SIEGE_TOKEN",
            "--organization", own,
        )  # fmt: skip
        await self._cli(
            "project", "create", "--name", "a-site", "--website", here, "--domain", "a-site", "--organization", own
        )
        hole = f"http://127.0.0.1:{self.elsewhere.black_hole_port}/hook"
        await self._cli("webhook", "create", "--url", hole, "--organization", own)
        secret = await self._cli("webhook", "incoming", "a")
        self.a = Tenant(project["id"], "a", admin, assistant["token"], secret["secret"], remote["id"])

    async def _cli(self, *arguments: str) -> Any:
        return await asyncio.to_thread(self.service.cli, *arguments)

    async def restart(self) -> None:
        await asyncio.to_thread(self.service.start)
        self.elsewhere.service_url = self.service.url

    def target(self, scale: float) -> Target:
        return Target(self.service.url, self.a, scale)

    async def close(self) -> None:
        with contextlib.suppress(AttributeError):
            await self.elsewhere.gitea.server.close()

    def processor_seconds(self) -> float:
        """Return the processor seconds of the service's process and all below it, those that have ended included."""
        assert self.service.process is not None
        return sum(_seconds_of(pid) for pid in _below(self.service.process.pid))


def _below(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _seconds_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / 100
