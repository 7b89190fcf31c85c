"""Git over HTTP for the repositories of the embedded code host, so that plain ``git clone`` and ``git push`` work.

The smart protocol (gitprotocol-http(5)), version 0, which every client speaks; one that asks for version 2 takes it as
the answer. dulwich walks the objects and writes the packs; here are the door, the limits and the rules for pushes:

- A project that does not exist and one that the caller may not see look alike: the caller's rights are asked first.
- dulwich's handlers block, so they run in threads of their own (a slow client must not hold those that everything else
  shares), reading and writing the connection piece by piece: no body is ever in memory as a whole.
- dulwich reports a ref as updated although it lost the race for it, takes a pack whose objects are missing, and does
  not know the ``shallow`` lines of a push from a shallow clone. So pushes are received by our own handler.
"""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import structlog
from aiohttp import web
from dulwich.config import StackedConfig
from dulwich.errors import (
    ApplyDeltaError,
    ChecksumMismatch,
    GitProtocolError,
    HangupException,
    NotGitRepository,
    ObjectFormatException,
)
from dulwich.file import FileLocked
from dulwich.object_store import DiskObjectStore, PackInputTooLarge
from dulwich.objects import ZERO_SHA, Commit, ObjectID, ShaFile, Tag, Tree, valid_hexsha
from dulwich.pack import Pack, UnresolvedDeltas
from dulwich.protocol import ReceivableProtocol, extract_capabilities
from dulwich.refs import Ref, SymrefLoop, check_ref_format
from dulwich.repo import Repo
from dulwich.server import Backend, BackendRepo, PackHandler, ReceivePackHandler, UploadPackHandler

log = structlog.get_logger()

PROJECT = "[A-Za-z0-9][A-Za-z0-9_-]{0,99}"

MAX_PUSH_BYTES = 512 * 1024 * 1024
MAX_REQUEST_BYTES = 16 * 1024 * 1024
"""Of a request for a pack: 40 bytes for each commit that the client has."""

THREADS = 8
"""Clones and pushes at the same time; others wait."""

PIECE = 64 * 1024

UNPACK_LIMIT = 100
"""Objects in a push that are kept as single files: git's ``receive.unpackLimit``."""

NO_CACHE = {"Cache-Control": "no-cache, max-age=0, must-revalidate", "Pragma": "no-cache", "Expires": "0"}

SERVICES = ("git-upload-pack", "git-receive-pack")

Authorize = Callable[[web.Request, str], Awaitable[bool]]
Pushed = Callable[[web.Request, str], Awaitable[None]]


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

    ``authorize`` says whether the request may use the project; ``pushed`` is called after a push, to whatever branch.
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
        try:
            return await _Exchange(request, service, max_push_bytes).run(threads, path, advertise=False)
        finally:
            if service == "git-receive-pack" and pushed is not None:
                await asyncio.shield(pushed(request, request.match_info["project_id"]))

    root = f"/hosted/{{project_id:{PROJECT}}}.git"
    return [
        web.get(f"{root}/info/refs", refs, allow_head=False),
        web.post(f"{root}/{{service:{'|'.join(SERVICES)}}}", rpc),
    ]


class _Exchange:
    """One request, its handler in a thread and the connection on the event loop."""

    def __init__(self, request: web.Request, service: str, max_push_bytes: int) -> None:
        self._request = request
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
            if advertise:
                self._kind = "advertisement"
                proto.write_pkt_line(f"# service={self._service}\n".encode())
                proto.write_pkt_line(None)
            handler.handle()
            self._flush()
        finally:
            repo.close()

    _kind = "result"

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
        if any(new != ZERO_SHA for _, new, _ in commands):
            problem = self._unpack()
            if problem is not None:
                yield b"unpack", problem
                for _, _, name in commands:
                    yield name, b"unpacker error"
                return
        yield b"unpack", b"ok"
        problems = {name: self._problem(new, name) for _, new, name in commands}
        if self.has_capability(b"atomic") and any(problems.values()):
            for name, problem in problems.items():
                yield name, problem or b"atomic push failed"
            return
        for old, new, name in commands:
            yield name, problems[name] or self._update(old, new, name) or b"ok"

    def _unpack(self) -> bytes | None:
        """Store the pack, or say why not. What is refused is never seen, as in git's quarantine: whatever is in the
        store is complete.
        """
        store = self.repo.object_store
        assert isinstance(store, DiskObjectStore)
        assert isinstance(self.proto, ReceivableProtocol)
        incoming = Path(tempfile.mkdtemp(prefix="tmp_objdir-incoming-", dir=store.path))
        try:
            DiskObjectStore.init(incoming / "objects").close()
            quarantine = DiskObjectStore(incoming / "objects", alternates=[store.path], fsync_object_files=True)
            try:
                pack = quarantine.add_thin_pack(self.proto.read, self.proto.recv, max_input_size=self.max_input_bytes)
                problem = _fsck(pack, store)
                if problem is None:
                    _move_in(pack, Path(quarantine.pack_dir), store)
                return problem
            finally:
                for alternate in quarantine.alternates:
                    alternate.close()
                quarantine.close()
        except (PackInputTooLarge, HangupException):
            raise
        except (
            ChecksumMismatch, ApplyDeltaError, UnresolvedDeltas, ObjectFormatException, GitProtocolError,
            AssertionError, ValueError, KeyError, OSError, EOFError,
        ) as error:  # fmt: skip
            log.info("pack refused", reason=type(error).__name__)
            return b"index-pack abnormal exit"
        finally:
            shutil.rmtree(incoming, ignore_errors=True)

    def _problem(self, new: ObjectID, name: Ref) -> bytes | None:
        if not check_ref_format(name) or not name.startswith((b"refs/heads/", b"refs/tags/")):
            return b"deny updating a hidden ref" if name.startswith(b"refs/") else b"funny refname"
        if new == ZERO_SHA:
            with suppress(KeyError, SymrefLoop):
                if self.repo.refs.follow(Ref(b"HEAD"))[0][-1] == name:
                    return b"deletion of the current branch prohibited"
            return None
        try:
            found = self.repo.object_store[new]
        except KeyError:
            return b"missing necessary objects"
        if name.startswith(b"refs/heads/") and not isinstance(found, Commit):
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
        return None if done else b"fetch first"


def _fsck(pack: Pack, store: DiskObjectStore) -> bytes | None:
    """What git's fsck would refuse in the new objects, and whether what they name is there."""
    names = set(pack)
    for one in pack.iterobjects():
        try:
            if not isinstance(one, (Commit, Tree, Tag)):
                continue
            one.check()
            if isinstance(one, Tree) and any(_looks_like_dot_git(name) for name, _, _ in one.iteritems()):
                return b"hasDotgit: contains '.git'"
        except (ObjectFormatException, ValueError, AssertionError):
            return b"fsck error in packed object"
        if any(name not in names and name not in store for name in _links(one)):
            return b"missing necessary objects"
    return None


def _links(one: ShaFile) -> Iterator[ObjectID]:
    if isinstance(one, Commit):
        yield one.tree
        yield from one.parents
    elif isinstance(one, Tag):
        yield one.object[1]
    elif isinstance(one, Tree):
        for _, mode, name in one.iteritems():
            if mode & 0o170000 != 0o160000:
                yield name


def _looks_like_dot_git(name: bytes) -> bool:
    """``.git`` on HFS+ or NTFS (git's fsck.c: hasDotgit)."""
    plain = re.sub("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]", "", name.decode("utf-8", "replace"))
    return any(re.fullmatch(r"(?:\.git|git~1)[ .]*(?::.*)?", part, re.IGNORECASE) for part in plain.split("\\"))


def _move_in(pack: Pack, folder: Path, store: DiskObjectStore) -> None:
    """A small pack as single files, children first: a pack for each push would mean two open files for each."""
    if len(pack) > UNPACK_LIMIT:
        for suffix in (".pack", ".idx"):  # in this order: a pack counts when it has an index
            file = folder / f"pack-{pack.name().decode()}{suffix}"
            file.rename(Path(store.pack_dir) / file.name)
        return
    found = {ObjectID(one.id): one for one in pack.iterobjects()}
    todo = list(found)
    while todo:
        one = found.get(todo[-1])
        below = [] if one is None else [name for name in _links(one) if name in found]
        if one is None:
            todo.pop()
        elif below:
            todo.extend(below)
        else:
            _add(store, found.pop(todo.pop()))


def _add(store: DiskObjectStore, one: ShaFile) -> None:
    """dulwich's own fails when two write the same object at once, and for ever after one was killed meanwhile."""
    name = one.id.decode()
    file = Path(store.path) / name[:2] / name[2:]
    if file.exists():
        return
    file.parent.mkdir(exist_ok=True)
    descriptor, partial = tempfile.mkstemp(prefix="tmp_obj_", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(one.as_legacy_object())
            written.flush()
            os.fsync(descriptor)
        Path(partial).chmod(0o444)
        Path(partial).replace(file)
    finally:
        Path(partial).unlink(missing_ok=True)
