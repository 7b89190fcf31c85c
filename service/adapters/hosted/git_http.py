"""Git over HTTP for the repositories of the embedded code host, so that plain ``git clone`` and ``git push`` work.

The smart protocol (gitprotocol-http(5)), version 0, which every client speaks; one that asks for version 2 takes it as
the answer. Here are the admission, the limits and the connection; the work itself is a child process's (git_serve.py):

- A project that does not exist and one that the caller may not see look alike: the caller's rights are asked first.
- The body is read into a file before anything is done with it, and what is answered is written into a file, which is
  sent as it grows. So a client that stalls, either way, holds its connection and nothing else.
- Each organization and project has a share of the work that goes on at once; what is beyond it waits.
- A push goes on when its client has left, for then its branches have moved and the service has to know.
"""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO

import structlog
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage
from msgspec import Struct

from service.adapters.hosted.git_pack import Malformed
from service.adapters.hosted.git_serve import RECEIVE, Order, SharedFile, serve
from service.domain.errors import BodyBroken, BodyTooLarge, BodyTooSlow, NotFound, ServiceError, needs_room
from service.ports.bounds import CountBound, ignore_bounds
from service.runtime.content_coding import Unpacking
from service.runtime.processes import OUT_OF_MEMORY, TIMED_OUT, run_in_child
from service.runtime.shares import Shares

log = structlog.get_logger()

PROJECT = "[A-Za-z0-9][A-Za-z0-9_-]{0,99}"
SERVICES = ("git-upload-pack", RECEIVE)

PIECE = 64 * 1024
WRITTEN_AT_ONCE = 1024 * 1024
"""Bytes of a body that are written in one call: most bodies are smaller."""

MEMORY_BYTES = 1536 * 1024 * 1024
"""Address space, about 300 MB of it the interpreter's own."""

NO_CACHE = {"Cache-Control": "no-cache, max-age=0, must-revalidate", "Pragma": "no-cache", "Expires": "0"}

Authorize = Callable[[web.Request, str], Awaitable[str | None]]
"""Return the organization that a request may act for in a project, or None to refuse it."""
Owners = tuple[str, str]
"""An organization and its project."""
Pushed = Callable[[web.Request, str], Coroutine[None, None, None]]


class GitLimits(Struct, frozen=True):
    """Bounds on what git clients may ask for."""

    push_bytes: int = 512 * 1024 * 1024
    request_bytes: int = 16 * 1024 * 1024
    """Limit for a request for a pack: 40 bytes for each commit that the client has."""
    piece_seconds: float = 30
    """For the next piece of a body to arrive, and for a piece of an answer to be taken."""
    body_seconds: float = 900
    work_seconds: float = 600
    answer_seconds: float = 3600
    """From the beginning of the work to the last byte sent."""
    waiting_seconds: float = 300
    """For a turn."""
    receiving: int = 64
    """Bodies that are read at once: each may take push_bytes of the disk."""
    receiving_each: tuple[int, int] = (16, 8)
    """Limits for one organization, and for one project."""
    working: int = 8
    """Processes at once."""
    working_each: tuple[int, int] = (4, 3)
    waiting: int = 50
    """Requests of one project that wait for a turn; further ones are refused."""


def git_routes(
    repository_of: Callable[[str], Path],
    authorize: Authorize,
    *,
    pushed: Pushed | None = None,
    limits: GitLimits = GitLimits(),  # noqa: B008  (frozen)
    allow_force_push: bool = False,
    count_bound: CountBound = ignore_bounds,
) -> list[web.RouteDef]:
    """Return the routes for ``/hosted/<project id>.git``.

    ``repository_of`` returns the place of a project's repository, or raises ServiceError. ``pushed`` is called after a
    push that has moved branches or tags. ``allow_force_push`` is about the default branch alone.
    """

    def shares(slots: int, each: tuple[int, int]) -> Shares:
        return Shares(
            slots, each, waiting=limits.waiting, seconds=limits.waiting_seconds,
            on_refused=partial(count_bound, "git_turns"),
        )  # fmt: skip

    receiving = shares(limits.receiving, limits.receiving_each)
    working = shares(limits.working, limits.working_each)
    pushes: set[asyncio.Task[web.StreamResponse]] = set()

    async def admitted(request: web.Request) -> tuple[Path, Owners]:
        project_id = request.match_info["project_id"]
        organization_id = await authorize(request, project_id)
        if organization_id is None:
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": 'Basic realm="docsmith"'}, text="Unauthorized\n")
        path = repository_of(project_id)
        if not await asyncio.to_thread((path / "objects").is_dir):
            raise web.HTTPNotFound(text="Repository not found.\n")
        return path, (organization_id, project_id)

    def exchange(request: web.Request, repository: tuple[Path, Owners], order: Order) -> "_Exchange":
        path, owners = repository
        told = None if pushed is None else partial(pushed, request, request.match_info["project_id"])
        return _Exchange(request, path, order, limits, owners, working, count_bound, told)

    async def refs(request: web.Request) -> web.StreamResponse:
        repository = await admitted(request)
        service = request.query.get("service", "")
        if service not in SERVICES:
            raise web.HTTPForbidden(text="This server speaks git's smart protocol only.\n")
        with exchange(request, repository, Order(service, True, allow_force_push)) as one:
            return await one.answer()

    async def rpc(request: web.Request) -> web.StreamResponse:
        repository = await admitted(request)
        service = request.match_info["service"]
        if request.content_type != f"application/x-{service}-request":  # also: no form of a browser can send it
            raise web.HTTPUnsupportedMediaType(text="This is not a request of git's.\n")
        with ExitStack() as stack:
            one = stack.enter_context(exchange(request, repository, Order(service, False, allow_force_push)))
            async with receiving.slot(*one.owners):
                await one.take_body()
            if service != RECEIVE:
                return await one.answer()
            stack.pop_all()
        push = asyncio.create_task(_answer_and_close(one), name="git-push")
        pushes.add(push)
        push.add_done_callback(pushes.discard)
        return await asyncio.shield(push)

    root = f"/hosted/{{project_id:{PROJECT}}}.git"
    return [
        web.get(f"{root}/info/refs", refs, allow_head=False),
        web.post(f"{root}/{{service:{'|'.join(SERVICES)}}}", rpc),
    ]


async def _answer_and_close(one: "_Exchange") -> web.StreamResponse:
    with one:
        return await one.answer()


class _Exchange:
    """One request: its body, its work, its answer. The files are closed by ``with``."""

    def __init__(
        self,
        request: web.Request,
        path: Path,
        order: Order,
        limits: GitLimits,
        owners: tuple[str, str],
        working: Shares,
        count_bound: CountBound,
        pushed: Callable[[], Coroutine[None, None, None]] | None,
    ) -> None:
        self.owners = owners
        self._request, self._path, self._order, self._limits = request, path, order, limits
        self._working, self._count_bound, self._pushed = working, count_bound, pushed
        self._most = limits.push_bytes if order.service == RECEIVE else limits.request_bytes
        with needs_room():
            self._body, self._out = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  (by __exit__)
        self._received = 0
        self._response: web.StreamResponse | None = None
        self._written = self._moved = self._sent = 0
        self._grown = asyncio.Event()

    def __enter__(self) -> "_Exchange":
        return self

    def __exit__(self, *_: object) -> None:
        self._body.close()
        self._out.close()

    async def take_body(self) -> None:
        """Read the body into its file. Raises an HTTP error when it is too large, too slow, or not what it says."""
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                await self._read_all()
        except TimeoutError:
            self._count_bound("git_bodies")
            raise BodyTooSlow() from None
        except BodyTooLarge:
            self._count_bound("git_bodies")
            raise
        except (web.RequestPayloadError, BadHttpMessage):
            raise BodyBroken() from None

    async def _read_all(self) -> None:
        pending = bytearray()
        unpacking = Unpacking(self._request.headers.get("Content-Encoding", ""), self._most)
        while True:
            async with asyncio.timeout(self._limits.piece_seconds):
                piece = await self._request.content.read(PIECE)
            self._received += len(piece)
            if self._received > self._most:
                raise BodyTooLarge(self._most)
            pending += piece
            if not piece or len(pending) >= WRITTEN_AT_ONCE:
                await asyncio.to_thread(_write_all, self._body, unpacking, bytes(pending))
                pending.clear()
            if not piece:
                unpacking.end()
                return

    async def answer(self) -> web.StreamResponse:
        """Do the work, and send the answer while it is made. Raises an HTTP error, or ServiceError, before any of it is
        sent; after that the connection is cut, which is an error to git.
        """
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                return await self._answer()
        except ConnectionResetError:
            return self._response or web.Response()  # the client has left: no one reads it
        except (web.HTTPException, ServiceError, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                self._count_bound("git_answers")
            if self._response is None:
                raise
            self._response.force_close()
            if self._request.transport is not None:
                self._request.transport.abort()
            return self._response

    async def _answer(self) -> web.StreamResponse:
        work = asyncio.create_task(self._work(), name="git-work")
        work.add_done_callback(lambda _: self._grown.set())
        try:
            while not work.done():
                await self._grown.wait()
                self._grown.clear()
                await self._send()
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait([work])
        work.result()
        await self._send()
        response = self._response or await self._begin()
        async with asyncio.timeout(self._limits.piece_seconds):
            await response.write_eof()
        return response

    async def _work(self) -> None:
        try:
            async with self._working.slot(*self.owners):
                await self._serve()
        finally:
            if self._moved and self._pushed is not None:
                await self._pushed()

    async def _serve(self) -> None:
        limits = self._limits
        try:
            await run_in_child(
                serve, self._path, self._order, SharedFile(self._body.fileno()), SharedFile(self._out.fileno()),
                timeout_seconds=limits.work_seconds, memory_bytes=MEMORY_BYTES, on_progress=self._note,
            )  # fmt: skip
        except NotFound:
            raise web.HTTPNotFound(text="Repository not found.\n") from None
        except Malformed as error:
            log.info("git request refused", service=self._order.service, reason=str(error))
            raise web.HTTPBadRequest(text="This is not what a git client sends.\n") from None
        except ServiceError as error:
            log.info("git request refused", service=self._order.service, reason=error.code)
            if error.code in (TIMED_OUT, OUT_OF_MEMORY):
                self._count_bound("git_work")
            raise

    def _note(self, progress: tuple[int, int]) -> None:
        self._written, self._moved = progress
        self._grown.set()

    async def _send(self) -> None:
        """Send what there is and has not been sent."""
        while self._sent < self._written:
            piece = await asyncio.to_thread(os.pread, self._out.fileno(), PIECE, self._sent)
            self._sent += len(piece)
            response = self._response or await self._begin()
            async with asyncio.timeout(self._limits.piece_seconds):
                await response.write(piece)

    async def _begin(self) -> web.StreamResponse:
        kind = "advertisement" if self._order.advertise else "result"
        self._response = web.StreamResponse(
            headers={"Content-Type": f"application/x-{self._order.service}-{kind}", **NO_CACHE}
        )
        await self._response.prepare(self._request)
        return self._response


def _write_all(file: BinaryIO, unpacking: Unpacking, data: bytes) -> None:
    with needs_room():
        for piece in unpacking.feed(data):
            file.write(piece)
        file.flush()
