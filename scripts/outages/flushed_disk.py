"""A disk that can lose its power: of what was written to it, a cut keeps what was flushed, and nothing else.

An ext4 file system with its default options on a loop device, over one file that this process serves by FUSE. It sees
each write, and each flush that the file system asks of its disk. Since the last flush, the content before each write is
kept; an image of a cut has it back. Device-mapper (``dm-log-writes``, ``dm-flakey``), which many kernels lack, would do
the same. Linux, and root's rights, are needed.

The protocol of FUSE is that of ``linux/fuse.h``, version 7.31; the file is the root of the mount.
"""

import ctypes
import errno
import os
import select
import shutil
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

BLOCK = 4096
MAX_WRITE = 1 << 20
GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, DESTROY = (
    3,
    4,
    14,
    15,
    16,
    17,
    18,
    20,
    25,
    26,
    38,
)
FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36
WITHOUT_ANSWER = {FORGET, BATCH_FORGET, INTERRUPT}
BIG_WRITES, MAX_PAGES = 1 << 5, 1 << 22
MOUNTED_SECONDS = 10.0


class Server:
    """Serves the file, until it is unmounted."""

    def __init__(self, backing: Path, fuse: int) -> None:
        self._file, self._fuse = os.open(backing, os.O_RDWR), fuse
        self._size = os.fstat(self._file).st_size
        self._before: dict[int, bytes] = {}
        """The content of each block that was written since the last flush."""
        self.flushes = self.writes = 0

    def serve(self, control: int) -> None:
        """Answer the kernel, and the lines ``cut PATH`` and ``count`` on standard input."""
        while True:
            ready, _, _ = select.select([self._fuse, control], [], [])
            if control in ready:
                line = os.read(control, 4096).decode().strip()
                if not line:
                    control = self._fuse
                    continue
                if line.startswith("cut "):
                    self.cut(Path(line[4:]))
                print(self.flushes, self.writes, flush=True)
            if self._fuse in ready and not self._answer():
                return

    def cut(self, image: Path) -> None:
        """Write the disk as it would be after the power was cut now."""
        subprocess.run(["cp", "--sparse=always", f"/proc/{os.getpid()}/fd/{self._file}", image], check=True)
        with image.open("r+b") as file:
            for number, content in self._before.items():
                file.seek(number * BLOCK)
                file.write(content)

    def _answer(self) -> bool:
        try:
            request = os.read(self._fuse, MAX_WRITE + 65536)
        except OSError as error:
            return error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN)  # else ENODEV: it is unmounted
        length, operation, unique = struct.unpack_from("<IIQ", request)
        if operation in WITHOUT_ANSWER:
            return True
        code, body = self._done(operation, request[40:length])
        with suppress(OSError):
            os.write(self._fuse, struct.pack("<IiQ", 16 + len(body), -code, unique) + body)
        return operation != DESTROY

    def _done(self, operation: int, told: bytes) -> tuple[int, bytes]:
        if operation == INIT:
            major, _, ahead, flags = struct.unpack_from("<IIII", told)
            wanted = flags & (BIG_WRITES | MAX_PAGES)
            return 0, struct.pack("<IIIIHHIIHHII24x", major, 31, ahead, wanted, 12, 9, MAX_WRITE, 1, 256, 0, 0, 0)
        if operation in (GETATTR, SETATTR):
            attributes = struct.pack(
                "<QQQ36xIIIIIII", 1, self._size, self._size // 512, stat.S_IFREG | 0o600, 1, 0, 0, 0, BLOCK, 0
            )  # fmt: skip
            return 0, struct.pack("<QII", 3600, 0, 0) + attributes
        if operation == OPEN:
            return 0, struct.pack("<QIi", 1, 2, 0)  # the kernel's cache may keep what it has read
        if operation == READ:
            _, offset, size = struct.unpack_from("<QQI", told)
            return 0, os.pread(self._file, size, offset)
        if operation == WRITE:
            _, offset, size = struct.unpack_from("<QQI", told)
            for number in range(offset // BLOCK, (offset + size - 1) // BLOCK + 1):
                if number not in self._before:
                    self._before[number] = os.pread(self._file, BLOCK, number * BLOCK)
            os.pwrite(self._file, told[40 : 40 + size], offset)
            self.writes += 1
            return 0, struct.pack("<II", size, 0)
        if operation == FSYNC:
            self._before.clear()
            self.flushes += 1
            return 0, b""
        if operation == STATFS:
            return 0, struct.pack("<QQQQQIIIII24x", 1 << 20, 1 << 19, 1 << 19, 1, 1, BLOCK, 255, BLOCK, 0, 0)
        if operation in (RELEASE, FLUSH, DESTROY):
            return 0, b""
        return errno.ENOSYS, b""


class FlushedDisk:
    """A mounted file system, and how to cut its power. ``folder``: where it is."""

    def __init__(self, folder: Path, server: "subprocess.Popen[str]") -> None:
        self.folder, self._server = folder, server

    def cut(self, image: Path) -> None:
        """Write an image of the disk as it would be if the power had been cut now; the disk itself goes on."""
        self._ask(f"cut {image}")

    def count(self) -> tuple[int, int]:
        """Return how often the disk was flushed, and written to."""
        return self._ask("count")

    def _ask(self, line: str) -> tuple[int, int]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{line}\n")
        self._server.stdin.flush()
        flushes, writes = self._server.stdout.readline().split()
        return int(flushes), int(writes)


def unusable() -> str | None:
    """Return why there can be no such disk here; None where there can be one."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "it mounts file systems, which takes Linux and root"
    missing = [name for name in ("mount", "umount", "mkfs.ext4") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} cannot be found"
    if not Path("/dev/fuse").exists() or not Path("/dev/loop-control").exists():
        return "the kernel has no FUSE, or no loop devices"
    return None


@contextmanager
def flushed_disk(root: Path, megabytes: int = 256) -> Iterator[FlushedDisk]:
    """A new, empty disk, mounted below ``root``."""
    backing, file, folder = root / "backing.img", root / "disk.img", root / "disk"
    with backing.open("wb") as made:
        made.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", backing], check=True, capture_output=True)
    file.touch()
    folder.mkdir()
    command = [sys.executable, __file__, str(backing), str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            disk = FlushedDisk(folder, server)
            disk.count()  # it is mounted by then
            with mounted(file, folder):
                yield disk
        finally:
            subprocess.run(["umount", "-l", file], check=False, capture_output=True)
            server.kill()


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    """Mount an image of ext4, with the default options, as after a start of the machine."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True, capture_output=True)
    try:
        yield folder
    finally:
        until = time.monotonic() + MOUNTED_SECONDS
        while subprocess.run(["umount", folder], check=False, capture_output=True).returncode:
            if time.monotonic() > until:
                subprocess.run(["umount", "-l", folder], check=False, capture_output=True)
                break
            time.sleep(0.1)


def main(backing: str, file: str) -> None:
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=100600,user_id=0,group_id=0,allow_other,max_read={MAX_WRITE}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"docsmith", os.fsencode(file), b"fuse", 0, options.encode()):
        raise OSError(ctypes.get_errno(), "the disk cannot be mounted")
    Server(Path(backing), fuse).serve(sys.stdin.fileno())


if __name__ == "__main__":
    main(*sys.argv[1:])
