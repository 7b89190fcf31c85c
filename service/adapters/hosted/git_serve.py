"""One request of git's, from a file with its body to a file with its answer: in a process of its own.

dulwich walks the objects and writes the packs. Others wrote both the objects and the request, so none of it runs where
the service's own requests do. Facts that this code respects:

- dulwich reports a ref as updated although it lost the race for it, takes a pack whose objects are missing, and does
  not know the ``shallow`` lines of a push from a shallow clone. So pushes are received by our own handler.
- dulwich offers ``filter``, yet in version 0 of the protocol it understands it only before ``deepen``, where git sends
  it after, and refuses the later requests for single files that a partial clone lives on. So it is not offered; git
  then says so, and clones everything.
- An empty packet, ``0004``, should not be sent (gitprotocol-common(5)).
"""

import heapq
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any, BinaryIO

from dulwich.errors import GitProtocolError, ObjectFormatException
from dulwich.file import FileLocked
from dulwich.object_filters import FilterSpec
from dulwich.objects import ZERO_SHA, Commit, ObjectID, valid_hexsha
from dulwich.protocol import CAPABILITY_FILTER, ReceivableProtocol, extract_capabilities
from dulwich.refs import Ref, SymrefLoop, check_ref_format
from dulwich.server import Backend, BackendRepo, PackHandler, ReceivePackHandler, UploadPackHandler
from msgspec import Struct

from service.adapters.git.repositories import BareRepository, forget_stale_lock, opened
from service.adapters.hosted.git_pack import Malformed, Received, receive

PIECE = 64 * 1024
NICENESS = 5
"""Others' packs come after the service's own requests."""
RECEIVE = "git-receive-pack"

BAD_BRANCH = re.compile(rb"refs/(?:heads|tags)/(?:HEAD|-.*)", re.DOTALL)
"""Names that git's own commands read as something else (git-check-ref-format(1), ``--branch``)."""

MAX_REF_BYTES = 512
"""Each slash in it is a folder."""

Report = Callable[[tuple[int, int]], None]
"""Is given how many bytes of the answer there are, and how many refs were moved."""


class SharedFile:
    """An open file as an argument for a child process. It has no name, so nothing is left of it after a crash."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __reduce__(self) -> tuple[Callable[..., "SharedFile"], tuple[Any]]:
        return _arrived, (DupFd(self.descriptor),)


def _arrived(duplicate: Any) -> SharedFile:
    return SharedFile(duplicate.detach())


class Order(Struct, frozen=True):
    """The request to serve."""

    service: str
    advertise: bool
    allow_force_push: bool


def serve(repository: Path, order: Order, body: SharedFile, answer: SharedFile, *, report: Report) -> None:
    """Write the answer. Raises Malformed, NotFound, Damaged, DiskFull."""
    if not order.advertise:
        os.nice(NICENESS)
    with os.fdopen(body.descriptor, "rb") as read, os.fdopen(answer.descriptor, "wb", buffering=0) as written:
        read.seek(0)
        _Serving(repository, order, read, written, report).run()


class _Serving:
    def __init__(self, repository: Path, order: Order, body: BinaryIO, answer: Any, report: Report) -> None:
        self._path, self._order = repository, order
        self._body, self._answer, self._report = body, answer, report
        self._outgoing = bytearray()
        self._sent = self._moved = 0

    def run(self) -> None:
        with opened(self._path, durable=True) as repo:
            try:
                self._handle(repo)
            except (GitProtocolError, ObjectFormatException, ValueError) as error:
                raise Malformed(type(error).__name__) from error
        self._flush()

    def _handle(self, repo: BareRepository) -> None:
        proto = _Wire(self._body.read, self._write)
        kind = Receive if self._order.service == RECEIVE else UploadPack
        handler: PackHandler = kind(_One(repo), [""], proto, stateless_rpc=True, advertise_refs=self._order.advertise)
        if isinstance(handler, Receive):
            handler.path, handler.body, handler.moved = self._path, self._body, self._note_moved
            handler.allow_force_push = self._order.allow_force_push
        if self._order.advertise:
            proto.write_pkt_line(f"# service={self._order.service}\n".encode())
            proto.write_pkt_line(None)
        handler.handle()

    def _write(self, data: bytes) -> int:
        self._outgoing += data
        if len(self._outgoing) >= PIECE:
            self._flush()
        return len(data)

    def _flush(self) -> None:
        data = memoryview(bytes(self._outgoing))
        self._outgoing.clear()
        while data:
            count = self._answer.write(data)
            self._sent += count
            data = data[count:]
        self._report((self._sent, self._moved))

    def _note_moved(self) -> None:
        """Report at once: what was moved counts, whatever comes after."""
        self._moved += 1
        self._report((self._sent, self._moved))


class _One(Backend):
    """The backend that dulwich's handlers ask for their repository."""

    def __init__(self, repo: BareRepository) -> None:
        self._repo = repo

    def open_repository(self, path: str) -> BackendRepo:  # noqa: ARG002 - there is only one
        return self._repo


class _Wire(ReceivableProtocol):
    """Reads no further into the file than it was asked to: the pack is read from there."""

    def read(self, size: int) -> bytes:
        if size <= 0:
            raise GitProtocolError("an empty packet")
        return self._recv(size)


class UploadPack(UploadPackHandler):
    def capabilities(self) -> list[bytes]:
        return [capability for capability in super().capabilities() if capability != CAPABILITY_FILTER]

    def set_client_capabilities(self, caps: Iterable[bytes]) -> None:
        """Git names the filter among its capabilities also where it was not offered, and says that it is ignored."""
        super().set_client_capabilities([cap for cap in caps if cap != CAPABILITY_FILTER])

    @property
    def filter_spec(self) -> None:
        return None

    @filter_spec.setter
    def filter_spec(self, asked: FilterSpec | None) -> None:
        if asked is not None:
            raise GitProtocolError("a filter that was not offered")


class Receive(ReceivePackHandler):
    """git-receive-pack with git's own rules (``receive.fsckObjects``, ``receive.denyDeleteCurrent``, and for the
    default branch ``receive.denyNonFastForwards``), without hooks.
    """

    path: Path
    """Path of the repository."""
    body: BinaryIO
    """The pack stands behind the commands."""
    moved: Callable[[], None]
    """Is called for each ref that was updated."""
    allow_force_push = False
    """Whether a push may remove commits from the default branch."""

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
        received = receive(self.path, self.body, tuple(tips)) if tips else Received()
        if received.problem is not None:
            yield b"unpack", received.problem
            for _, _, name in commands:
                yield name, b"unpacker error"
            return
        yield b"unpack", b"ok"
        problems = {name: self._problem(old, new, name, received.kinds) for old, new, name in commands}
        if self.has_capability(b"atomic") and any(problems.values()):
            for name, problem in problems.items():
                yield name, problem or b"atomic push failed"
            return
        for old, new, name in commands:
            yield name, problems[name] or self._update(old, new, name) or b"ok"

    def _problem(self, old: ObjectID, new: ObjectID, name: Ref, kinds: Mapping[ObjectID, str]) -> bytes | None:
        if not check_ref_format(name) or not name.startswith((b"refs/heads/", b"refs/tags/")):
            return b"deny updating a hidden ref" if name.startswith(b"refs/") else b"funny refname"
        is_default = name == self._default_branch()
        if new == ZERO_SHA:
            return b"deletion of the current branch prohibited" if is_default else None
        if BAD_BRANCH.fullmatch(name) or len(name) > MAX_REF_BYTES:
            return b"funny refname"
        if new not in kinds:
            return b"missing necessary objects"
        if name.startswith(b"refs/heads/") and kinds[new] != "commit":
            return b"not a commit"
        if is_default and not self.allow_force_push and old != ZERO_SHA and not self._is_ancestor(old, new):
            is_newest = self.repo.refs.read_ref(name) == old
            return b"non-fast-forward: the default branch takes no forced pushes" if is_newest else b"fetch first"
        return None

    def _default_branch(self) -> Ref | None:
        with suppress(KeyError, SymrefLoop):
            return self.repo.refs.follow(Ref(b"HEAD"))[0][-1]
        return None

    def _is_ancestor(self, old: ObjectID, new: ObjectID) -> bool:
        """Newest first, since what is looked for is seldom far; dates, which others wrote, only give the order."""
        todo, seen = [(0, new)], {new}
        while todo:
            _, name = heapq.heappop(todo)
            if name == old:
                return True
            if name not in self.repo.object_store:
                continue
            commit = self.repo.object_store[name]
            if not isinstance(commit, Commit):
                continue
            for parent in set(commit.parents) - seen:
                seen.add(parent)
                heapq.heappush(todo, (-commit.commit_time, parent))
        return False

    def _update(self, old: ObjectID, new: ObjectID, name: Ref) -> bytes | None:
        try:
            done = self._set(old, new, name)
        except FileLocked as error:
            try:
                forget_stale_lock(Path(os.fsdecode(error.lockfilename)))
                done = self._set(old, new, name)
            except (OSError, KeyError, FileLocked):
                return b"failed to update ref"
        except (OSError, KeyError):
            return b"failed to update ref"
        if not done:
            return b"fetch first"
        self.moved()
        return None

    def _set(self, old: ObjectID, new: ObjectID, name: Ref) -> bool:
        if new == ZERO_SHA:
            return self.repo.refs.remove_if_equals(name, old)
        return self.repo.refs.set_if_equals(name, old, new)
