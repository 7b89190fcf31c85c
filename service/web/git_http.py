"""Git over HTTP for the repositories of the embedded code host, so that plain ``git clone`` and ``git push`` work.

The smart protocol (gitprotocol-http(5)), version 0, which every client speaks; one that asks for version 2 takes it as
the answer. dulwich walks the objects and writes the packs; here are the door, the limits and the rules for pushes:

- A project that does not exist and one that the caller may not see look alike: the caller's rights are asked first.
- dulwich's handlers block, so they run in threads of their own (a slow client must not hold those that everything else
  shares), reading and writing the connection piece by piece: no body is ever in memory as a whole.
- A pack that was pushed is taken apart in a child process with a memory limit (git_pack.py).
- dulwich reports a ref as updated although it lost the race for it, takes a pack whose objects are missing, and does
  not know the ``shallow`` lines of a push from a shallow clone. So pushes are received by our own handler.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog
from aiohttp import web
from dulwich.config import StackedConfig
from dulwich.errors import (
    GitProtocolError,
    HangupException,
    NotGitRepository,
    ObjectFormatException,
)
from dulwich.file import FileLocked
from dulwich.object_store import DiskObjectStore, PackInputTooLarge
from dulwich.objects import ZERO_SHA, ObjectID, valid_hexsha
from dulwich.protocol import ReceivableProtocol, extract_capabilities
from dulwich.refs import Ref, SymrefLoop, check_ref_format
from dulwich.repo import Repo
from dulwich.server import Backend, BackendRepo, PackHandler, ReceivePackHandler, UploadPackHandler

from service.domain.errors import ServiceError
from service.processes import run_in_child
from service.web.git_pack import Received, receive

log = structlog.get_logger()

PROJECT = "[A-Za-z0-9][A-Za-z0-9_-]{0,99}"

MAX_PUSH_BYTES = 512 * 1024 * 1024
MAX_REQUEST_BYTES = 16 * 1024 * 1024
"""Of a request for a pack: 40 bytes for each commit that the client has."""

THREADS = 8
"""Clones and pushes at the same time; others wait."""

PIECE = 64 * 1024

UNPACK_SECONDS = 600.0
UNPACK_BYTES = 1536 * 1024 * 1024
"""Address space, about 300 MB of it the interpreter's own."""

NO_CACHE = {"Cache-Control": "no-cache, max-age=0, must-revalidate", "Pragma": "no-cache", "Expires": "0"}

SERVICES = ("git-upload-pack", "git-receive-pack")

Authorize = Callable[[web.Request, str], Awaitable[bool]]
Pushed = Callable[[web.Request, str], Coroutine[None, None, None]]
T = TypeVar("T")


class BodyTooLarge(Exception):
    """More than this server takes."""


class HostedRepo(Repo):
    """Without the user's git configuration and without hooks."""

    def __init__(self, path: Path) -> None:
        if not (path / "objects").is_dir():
            raise NotGitRepository
        super().__init__(str(path), object_store=DiskObjectStore(path / "objects", fsync_object_files=True), bare=True)
        self.hooks.clear()

    def get_config_stack(self) -> StackedConfig:
        own = self.get_config()
        return StackedConfig([own], writable=own)


class _One(Backend):
    """What dulwich's handlers ask for their repository."""

    def __init__(self, repo: HostedRepo) -> None:
        self._repo = repo

    def open_repository(self, path: str) -> BackendRepo:  # noqa: ARG002 - there is only one
        return self._repo


def git_routes(
    hosted_root: Path, authorize: Authorize, *, pushed: Pushed | None = None, max_push_bytes: int = MAX_PUSH_BYTES
) -> list[web.RouteDef]:
    """Routes for ``/hosted/<project id>.git``.

    ``authorize`` says whether the request may use the project; ``pushed`` is called for each branch or tag that a push
    has moved.
    """
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="git-http")

    async def admitted(request: web.Request) -> Path:
        project_id = request.match_info["project_id"]
        if not await authorize(request, project_id):
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": 'Basic realm="docsmith"'}, text="Unauthorized\n")
        path = hosted_root / f"{project_id}.git"
        if not await asyncio.to_thread((path / "objects").is_dir):
            raise web.HTTPNotFound(text="There is no such repository.\n")
        return path

    async def refs(request: web.Request) -> web.StreamResponse:
        path = await admitted(request)
        service = request.query.get("service", "")
        if service not in SERVICES:
            raise web.HTTPForbidden(text="This server speaks git's smart protocol only.\n")
        return await _Exchange(request, service, max_push_bytes).run(threads, path, advertise=True)

    async def rpc(request: web.Request) -> web.StreamResponse:
        path = await admitted(request)
        service = request.match_info["service"]
        if request.content_type != f"application/x-{service}-request":  # also: no form of a browser can send it
            raise web.HTTPUnsupportedMediaType(text="This is not a request of git's.\n")
        told = None if pushed is None else partial(pushed, request, request.match_info["project_id"])
        return await _Exchange(request, service, max_push_bytes, told).run(threads, path, advertise=False)

    root = f"/hosted/{{project_id:{PROJECT}}}.git"
    return [
        web.get(f"{root}/info/refs", refs, allow_head=False),
        web.post(f"{root}/{{service:{'|'.join(SERVICES)}}}", rpc),
    ]


class _Exchange:
    """One request, its handler in a thread and the connection on the event loop."""

    def __init__(
        self,
        request: web.Request,
        service: str,
        max_push_bytes: int,
        pushed: Callable[[], Coroutine[None, None, None]] | None = None,
    ) -> None:
        self._request = request
        self._pushed = pushed
        self._service = service
        self._limit = max_push_bytes if service == "git-receive-pack" else MAX_REQUEST_BYTES
        self._loop = asyncio.get_running_loop()
        self._abandoned = False
        self._response: web.StreamResponse | None = None
        self._received = 0
        self._incoming = b""
        self._outgoing = bytearray()

    async def run(self, threads: ThreadPoolExecutor, path: Path, *, advertise: bool) -> web.StreamResponse:
        try:
            await self._loop.run_in_executor(threads, self._handle, path, advertise)
        except asyncio.CancelledError:
            self._abandoned = True  # the thread ends at its next piece
            raise
        except ConnectionResetError:
            return self._response or web.Response()  # the client has left: nobody reads it
        except NotGitRepository:
            raise web.HTTPNotFound(text="There is no such repository.\n") from None
        except (BodyTooLarge, PackInputTooLarge):
            return await self._failed(web.HTTPRequestEntityTooLarge(self._limit, self._received, text="Too large.\n"))
        except (GitProtocolError, ObjectFormatException, ValueError) as error:
            log.info("git request refused", service=self._service, reason=type(error).__name__)
            return await self._failed(web.HTTPBadRequest(text="This is not what a git client sends.\n"))
        with suppress(ConnectionResetError):  # a client may leave as soon as it has what it wanted
            response = self._response or await self._begin()
            await response.write_eof()
        return self._response or web.Response()

    async def _failed(self, error: web.HTTPException) -> web.StreamResponse:
        if self._response is None:
            raise error
        self._response.force_close()  # too late for a status: a cut-off answer is an error to git
        if self._request.transport is not None:
            self._request.transport.abort()
        return self._response

    async def _begin(self, kind: str = "result") -> web.StreamResponse:
        self._response = web.StreamResponse(
            headers={"Content-Type": f"application/x-{self._service}-{kind}", **NO_CACHE}
        )
        await self._response.prepare(self._request)
        return self._response

    # From here on: in the thread.

    def _handle(self, path: Path, advertise: bool) -> None:
        repo = HostedRepo(path)
        try:
            proto = ReceivableProtocol(self._read, self._write)
            kind = Receive if self._service == "git-receive-pack" else UploadPackHandler
            handler: PackHandler = kind(_One(repo), [""], proto, stateless_rpc=True, advertise_refs=advertise)
            if isinstance(handler, Receive):
                handler.max_input_bytes = self._limit
                handler.path, handler.apart, handler.moved = path, self._apart, self._moved
            if advertise:
                self._kind = "advertisement"
                proto.write_pkt_line(f"# service={self._service}\n".encode())
                proto.write_pkt_line(None)
            handler.handle()
            self._flush()
        finally:
            repo.close()

    _kind = "result"

    def _apart(self, function: Callable[..., T], *args: object) -> T:
        run = run_in_child(function, *args, timeout_seconds=UNPACK_SECONDS, memory_bytes=UNPACK_BYTES)
        return asyncio.run_coroutine_threadsafe(run, self._loop).result()

    def _moved(self) -> None:
        """Also when the client has left meanwhile: what it pushed is there."""
        if self._pushed is not None:
            asyncio.run_coroutine_threadsafe(self._pushed(), self._loop).result()

    def _read(self, size: int) -> bytes:
        if not self._incoming:
            self._check()
            self._incoming = asyncio.run_coroutine_threadsafe(self._request.content.read(PIECE), self._loop).result()
            self._received += len(self._incoming)
            if self._received > self._limit:
                raise BodyTooLarge
        data, self._incoming = self._incoming[:size], self._incoming[size:]
        return data

    def _write(self, data: bytes) -> int:
        self._outgoing += data
        if len(self._outgoing) >= PIECE:
            self._flush()
        return len(data)

    def _flush(self) -> None:
        self._check()
        data, self._outgoing = bytes(self._outgoing), bytearray()
        asyncio.run_coroutine_threadsafe(self._send(data), self._loop).result()

    async def _send(self, data: bytes) -> None:
        response = self._response or await self._begin(self._kind)
        await response.write(data)

    def _check(self) -> None:
        if self._abandoned:
            raise HangupException


class Refused(Exception):
    """Why a ref is not updated, in git's words."""


class Receive(ReceivePackHandler):
    """git-receive-pack with git's own rules (``receive.fsckObjects``, ``receive.denyDeleteCurrent``), without hooks."""

    max_input_bytes = MAX_PUSH_BYTES
    path: Path
    """Of the repository."""
    apart: Callable[..., Received]
    """Runs a function in a process of its own."""
    moved: Callable[[], None]
    """Is told of each ref that was updated."""

    def handle(self) -> None:
        if self.advertise_refs:
            super().handle()
            return
        commands: list[tuple[ObjectID, ObjectID, Ref]] = []
        line = self.proto.read_pkt_line()
        while line:
            if not commands and b"\0" in line:
                line, capabilities = extract_capabilities(line)
                self.set_client_capabilities(capabilities)
            words = line.rstrip(b"\n").split(b" ", 2)
            if words[0] != b"shallow":  # what a shallow clone lacks does not matter: we look at what we have
                if len(words) != 3 or not valid_hexsha(words[0]) or not valid_hexsha(words[1]):
                    raise GitProtocolError("not a command")
                commands.append((ObjectID(words[0]), ObjectID(words[1]), Ref(words[2])))
            line = self.proto.read_pkt_line()
        if not commands:
            return
        status = list(self._apply(commands))
        if self.has_capability(b"report-status"):
            self._report_status(status)

    def set_client_capabilities(self, caps: Iterable[bytes]) -> None:
        super().set_client_capabilities(
            [cap for cap in caps if not cap.startswith((b"object-format=", b"session-id="))]
        )

    def _apply(self, commands: list[tuple[ObjectID, ObjectID, Ref]]) -> Iterator[tuple[bytes, bytes]]:
        tips = [new for _, new, _ in commands if new != ZERO_SHA]
        received = self._receive(tips) if tips else Received()
        if received.problem is not None:
            yield b"unpack", received.problem
            for _, _, name in commands:
                yield name, b"unpacker error"
            return
        yield b"unpack", b"ok"
        problems = {name: self._problem(new, name, received.kinds) for _, new, name in commands}
        if self.has_capability(b"atomic") and any(problems.values()):
            for name, problem in problems.items():
                yield name, problem or b"atomic push failed"
            return
        for old, new, name in commands:
            yield name, problems[name] or self._update(old, new, name) or b"ok"

    def _receive(self, tips: list[ObjectID]) -> Received:
        """Keep the pack in a file, however large, and take it apart in a process of its own: a few bytes of it may be
        gigabytes of an object.
        """
        assert isinstance(self.proto, ReceivableProtocol)
        with tempfile.TemporaryDirectory(prefix="docsmith-push-") as folder:
            spool = Path(folder) / "incoming.pack"
            size = 0
            with spool.open("wb") as file:
                while piece := self.proto.recv(PIECE):
                    size += len(piece)
                    if size > self.max_input_bytes:
                        raise PackInputTooLarge
                    file.write(piece)
            try:
                return self.apart(receive, self.path, spool, tuple(tips))
            except ServiceError as error:
                log.info("pack refused", code=error.code)
                return Received(b"the pack takes more memory or time than a push may")

    def _problem(self, new: ObjectID, name: Ref, kinds: Mapping[ObjectID, str]) -> bytes | None:
        if not check_ref_format(name) or not name.startswith((b"refs/heads/", b"refs/tags/")):
            return b"deny updating a hidden ref" if name.startswith(b"refs/") else b"funny refname"
        if new == ZERO_SHA:
            with suppress(KeyError, SymrefLoop):
                if self.repo.refs.follow(Ref(b"HEAD"))[0][-1] == name:
                    return b"deletion of the current branch prohibited"
            return None
        if new not in kinds:
            return b"missing necessary objects"
        if name.startswith(b"refs/heads/") and kinds[new] != "commit":
            return b"not a commit"
        return None

    def _update(self, old: ObjectID, new: ObjectID, name: Ref) -> bytes | None:
        try:
            if new == ZERO_SHA:
                done = self.repo.refs.remove_if_equals(name, old)
            else:
                done = self.repo.refs.set_if_equals(name, old, new)
        except (OSError, KeyError, FileLocked):
            return b"failed to update ref"
        if not done:
            return b"fetch first"
        self.moved()
        return None
