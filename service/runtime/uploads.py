"""Archives that people send: written to disk as they arrive, unpacked in a child, and removed once they were used.

A killed process leaves nothing for long: the folder of an upload is locked while its owner lives (``scratch``), and the
next upload, or the next start, removes those without one.

What arrives slowly costs a file and little else, so it holds a place of its own; the few slots are for unpacking and
importing. A slot that was held from the first byte would let a few slow senders stop the uploads of all others.
"""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from service.domain.errors import BodyTooLarge, BodyTooSlow, needs_room
from service.runtime.processes import run_in_child
from service.runtime.scratch import remove_leftovers, scratch_folder
from service.runtime.shares import Shares
from service.runtime.zip_files import MAX_ARCHIVE_BYTES, Unpacked, unpack_zip

UPLOAD = "upload://"
"""The beginning of the address of files that were uploaded, and of a project's repository that was made of them."""
PREFIX = ".upload-"
ADDRESS = re.compile(re.escape(UPLOAD) + r"([a-z0-9_]{8})/.*")
MAX_NAME_CHARACTERS = 100

ARRIVING, SLOTS, SLOTS_EACH, WAITING_EACH = 64, 8, 2, 4
"""Uploads at a time: that arrive, that are unpacked and imported, of one organization, and of one that wait."""
WAIT_SECONDS, PIECE_SECONDS, ARRIVE_SECONDS, UNPACK_SECONDS = 60.0, 60.0, 1_800.0, 300.0
"""For a place, for the next bytes, for all of them, and for unpacking them or waiting for a slot to do it."""
WRITE_BYTES = 256 * 1024
UNPACK_MEMORY_BYTES = 2 * 1024**3


class Upload(Struct, frozen=True):
    """Files that are here as long as their upload lasts."""

    repository: str
    """Their address."""
    unpacked: Unpacked


async def _accept(_owner: str) -> None:
    """Nothing is limited."""


class Uploads:
    def __init__(
        self,
        data: Path,
        on_refused: Callable[[], None] = lambda: None,
        accept: Callable[[str], Awaitable[None]] = _accept,
    ) -> None:
        """``accept`` counts an upload of an owner, and raises RateLimited."""
        self._accept = accept
        self._parent = _parent(data)
        each = (SLOTS_EACH,)
        self._arriving = Shares(ARRIVING, each, waiting=WAITING_EACH, seconds=WAIT_SECONDS, on_refused=on_refused)
        self._slots = Shares(SLOTS, each, waiting=SLOTS_EACH, seconds=UNPACK_SECONDS, on_refused=on_refused)

    @asynccontextmanager
    async def received(self, owner: str, name: str, pieces: AsyncIterator[bytes]) -> AsyncIterator[Upload]:
        """Receive an archive and unpack it; its files are there until the block ends. ``owner``: whose share it uses.

        Raises BodyTooLarge, BodyTooSlow, DiskFull, Unavailable, and what ``unpack_zip`` raises.
        """
        await self._accept(owner)
        async with self._arriving.slot(owner):
            with needs_room():
                self._parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with scratch_folder(self._parent, PREFIX) as folder:
                archive, files = folder / "sent.zip", folder / "files"
                await _receive(archive, pieces)
                async with self._slots.slot(owner):
                    files.mkdir(mode=0o700)
                    try:
                        unpacked = await run_in_child(
                            _unpack, archive, files, timeout_seconds=UNPACK_SECONDS, memory_bytes=UNPACK_MEMORY_BYTES
                        )
                        yield Upload(f"{UPLOAD}{folder.name.removeprefix(PREFIX)}/{_plain(name)}", unpacked)
                    finally:
                        await asyncio.to_thread(shutil.rmtree, files, ignore_errors=True)


def upload_folder(data: Path, repository: str) -> Path | None:
    """Return the folder of uploaded files, whether it is still there or not; None for any other repository."""
    found = ADDRESS.fullmatch(repository)
    return None if found is None else _parent(data) / f"{PREFIX}{found[1]}" / "files"


def remove_uploads(data: Path) -> None:
    """Remove what killed processes left."""
    remove_leftovers(_parent(data).glob(f"{PREFIX}*"))


def _parent(data: Path) -> Path:
    return data / "uploads"


async def _receive(archive: Path, pieces: AsyncIterator[bytes]) -> None:
    total, waiting = 0, bytearray()
    try:
        async with asyncio.timeout(ARRIVE_SECONDS):
            while piece := await _next(pieces):
                total += len(piece)
                if total > MAX_ARCHIVE_BYTES:
                    raise BodyTooLarge(MAX_ARCHIVE_BYTES)
                waiting += piece
                if len(waiting) >= WRITE_BYTES:
                    await asyncio.to_thread(_append, archive, bytes(waiting))
                    waiting.clear()
            await asyncio.to_thread(_append, archive, bytes(waiting))
    except TimeoutError:
        raise BodyTooSlow() from None


async def _next(pieces: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(PIECE_SECONDS):
        return await anext(pieces, b"")


def _append(archive: Path, content: bytes) -> None:
    with needs_room(), archive.open("ab") as written:
        written.write(content)


def _unpack(archive: Path, files: Path) -> Unpacked:
    """Unpack an archive in a child process, and remove the archive, also when that fails."""
    try:
        with needs_room():
            return unpack_zip(archive, files)
    finally:
        archive.unlink(missing_ok=True)


def _plain(name: str) -> str:
    """Return the name of a file as it can be shown."""
    plain = "".join(character for character in re.split(r"[/\\]", name)[-1] if character.isprintable())
    return plain.strip()[:MAX_NAME_CHARACTERS] or "upload.zip"
