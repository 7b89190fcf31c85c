"""A folder of others by its handle: what is in it is opened from there, and no link is followed. Whatever its owner
turns into a link, before or meanwhile, nothing outside of it is read.

A git repository of others is read from a copy of the files that git needs: its configuration, and what names other
places (a ``.git`` file, ``commondir``, ``objects/info/alternates``), is neither read nor followed.
"""

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from dulwich.config import StackedConfig
from dulwich.repo import Repo
from msgspec.structs import replace

from service.adapters.git.names import MAX_DEPTH
from service.adapters.git.remote.remotes import MAX_PACK_BYTES, Remote
from service.domain.errors import Forbidden, Invalid, Unavailable

FOLDER_NOT_ALLOWED = "folder_not_allowed"

MAX_FILE_BYTES = 100 * 1024 * 1024
"""GitHub's limit."""

MAX_REFS, MAX_REF_BYTES, MAX_PACKED_REFS_BYTES = 100_000, 4_096, 64 * 1024 * 1024
MAX_OBJECT_FILES = 1_000_000

PACKS, SINGLES, SINGLE = re.compile(r"\A[\w-]+\.(?:pack|idx)"), re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{38}")
REF_FILES = ("HEAD", "packed-refs", "shallow")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GONE = (errno.ELOOP, errno.ENOENT, errno.ENXIO, errno.ENOTDIR)


class OpenedFolder:
    """Close it. ``path`` is for messages alone."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor, self.path = descriptor, path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def listed(self) -> list[os.DirEntry[str]]:
        """Return what is in it, by the bytes of the names. Their own ``stat`` follows no link with
        ``follow_symlinks=False``. Raises Forbidden.
        """
        with self._checked(self.path), os.scandir(self._descriptor) as listing:
            return sorted(listing, key=lambda item: os.fsencode(item.name))

    def mode(self, name: str) -> int:
        """Return the mode of what has that name, a link's own for a link; 0 for nothing."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def is_folder(self, name: str) -> bool:
        return stat.S_ISDIR(self.mode(name))

    def folder(self, *names: str) -> "OpenedFolder":
        """Open a folder in it, through folders. Raises Unavailable for a link and for what is no folder, Forbidden."""
        descriptor, path = os.dup(self._descriptor), self.path
        for name in names:
            path = path / name
            try:
                with self._checked(path):
                    inner = os.open(name, _FOLDER, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = inner
        return OpenedFolder(descriptor, path)

    def target(self, name: str) -> tuple[bytes, os.stat_result]:
        """Return where a link in it leads, as it says."""
        with self._checked(self.path / name):
            return (
                os.fsencode(os.readlink(name, dir_fd=self._descriptor)),
                os.stat(name, dir_fd=self._descriptor, follow_symlinks=False),
            )

    def file(self, name: str, limit: int = MAX_FILE_BYTES) -> tuple[bytes, os.stat_result]:
        """Return the content of a regular file of at most ``limit`` bytes. Raises Unavailable for anything else, even
        if it became that since it was seen, Forbidden, Invalid.
        """
        with self._opened(name, limit) as (file, status):
            return _read(file, limit), status

    def copy(self, name: str, to: Path, limit: int) -> int:
        """Copy a file as ``file`` reads it, and return its bytes."""
        with self._opened(name, limit) as (file, _), to.open("xb") as copy:
            with os.fdopen(os.dup(file), "rb") as source:
                shutil.copyfileobj(source, copy)
            return copy.tell()

    @contextmanager
    def _opened(self, name: str, limit: int) -> Iterator[tuple[int, os.stat_result]]:
        path = self.path / name
        with self._checked(path):
            descriptor = os.open(name, _FILE, dir_fd=self._descriptor)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _changed(path)
            if status.st_size > limit:
                raise Invalid(f"{path} is larger than {limit:,} bytes.", code="too_large")
            yield descriptor, status
        finally:
            os.close(descriptor)

    @staticmethod
    @contextmanager
    def _checked(path: Path) -> Iterator[None]:
        try:
            yield
        except PermissionError:
            raise Forbidden(f"{path} may not be read by the user that runs this service.") from None
        except OSError as error:
            if error.errno in _GONE:
                raise _changed(path) from None
            raise


def _read(descriptor: int, limit: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read(limit)


def _changed(path: Path) -> Unavailable:
    return Unavailable(f"{path} changed while it was being read, or is a link.")


def open_folder(path: Path, root: str = "", name: Path | None = None) -> OpenedFolder:
    """Open a folder, called by its path or by a ``name`` in messages. With ``root``, a folder of this machine that the
    operator has named, no part of the path below it may be a link. Raises Invalid where there is no folder, Forbidden
    for a link and for what may not be read.
    """
    beginning = Path(root) if root else path
    try:
        with OpenedFolder._checked(path):
            descriptor = os.open(beginning, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with OpenedFolder(descriptor, beginning if name is None else name) as opened:
            return opened.folder(*path.relative_to(beginning).parts)
    except Unavailable:
        if root and os.path.lexists(path):
            raise Forbidden(f"{path} is a link by now, or leads through one.", code=FOLDER_NOT_ALLOWED) from None
        raise Invalid(f"{path} is not a folder.", code="no_such_repository") from None


class Folders(NamedTuple):
    """The folders of this machine that people may make projects of, with what is below them."""

    allowed: Sequence[str] = ()
    taken_back: Sequence[str] = ()
    """That were allowed once."""


def others_folder(remote: Remote, folders: Folders, own: Iterable[Path], *, guarded: bool) -> Remote:
    """Return a folder with its root, if it is one that others may write to or have named (``guarded``).

    Raises Forbidden where it is below none that is allowed now, and for the service's own data in ``own``.
    """
    found = _below(remote.path, folders.allowed)
    if found is None:
        if guarded or _below(remote.path, folders.taken_back):
            raise Forbidden(f"The folder {remote.path!r} may not be read any more.", code=FOLDER_NOT_ALLOWED)
        return remote
    root, path = found
    for kept in (one.resolve() for one in own):
        if Path(path).is_relative_to(kept) or kept.is_relative_to(path):
            raise Forbidden(f"The folder {remote.path!r} holds the service's own data.", code=FOLDER_NOT_ALLOWED)
    return replace(remote, path=path, root=root)


def _below(path: str, roots: Sequence[str]) -> tuple[str, str] | None:
    """Return the folder of the roots that a path is below, by its name or by where its links lead now, and the path as
    it is from there; None where it is below none.
    """
    named, real = _plain(path), Path(path).resolve()
    for root in roots:
        there = Path(root).resolve()
        for beginning in (there, _plain(root)):
            if named.is_relative_to(beginning):
                return str(there), str(there / named.relative_to(beginning))
        if real.is_relative_to(there):
            return str(there), str(real)
    return None


def _plain(path: str) -> Path:
    """Return a full path without ``..``, as it is written: no link is followed."""
    return Path(os.path.normpath(Path(path).absolute()))


def git_folder(folder: OpenedFolder) -> tuple[str, ...] | None:
    """Return where git's own files of a folder are, from there; None for a folder that is no repository.

    Raises Invalid where they are elsewhere.
    """
    mode = folder.mode(".git")
    if mode:
        if not stat.S_ISDIR(mode):
            raise _elsewhere(folder.path, "its .git is a link or a file that names another folder")
        return (".git",)
    return () if folder.is_folder("objects") and folder.is_folder("refs") else None


def copy_repository(path: Path, root: str, to: Path, *, objects: bool) -> None:
    """Make a bare repository of the references of a repository of others and, if wanted, its objects.

    Raises Invalid where there is none, and for one whose files are elsewhere or too large, Unavailable, Forbidden.
    """
    with open_folder(path, root) as folder:
        inside = git_folder(folder)
        if inside is None:
            raise Invalid(f"There is no git repository at {path}.", code="no_such_repository")
        with folder.folder(*inside) as git:
            if git.mode("commondir"):
                raise _elsewhere(path, "its commondir names another folder")
            Repo.init_bare(to, mkdir=True, config=StackedConfig([])).close()
            (to / "HEAD").unlink()
            _copy_refs(git, to)
            if objects:
                _copy_objects(git, path, to / "objects")


def _elsewhere(path: Path, why: str) -> Invalid:
    return Invalid(
        f"The files of the repository at {path} are not all in it: {why}. Name a clone that has all its files.",
        code="bad_repository",
    )


def _copy_refs(git: OpenedFolder, to: Path) -> None:
    if git.mode("reftable"):
        raise Invalid(f"{git.path} keeps its references as a table, which cannot be read here.", code="bad_repository")
    for name in REF_FILES:
        if git.mode(name):
            git.copy(name, to / name, MAX_PACKED_REFS_BYTES)
    left = MAX_REFS
    todo: list[tuple[str, ...]] = [("refs",)]
    while todo:
        parts = todo.pop()
        with git.folder(*parts) as folder:
            to.joinpath(*parts).mkdir(exist_ok=True)
            for item in folder.listed():
                left -= 1
                if left < 0 or len(parts) > MAX_DEPTH:
                    raise Invalid(f"{git.path} has more than {MAX_REFS:,} references.", code="too_large")
                if item.is_dir(follow_symlinks=False):
                    todo.append((*parts, item.name))
                elif not item.name.endswith(".lock"):
                    with suppress(Unavailable):  # a link, or removed just now
                        folder.copy(item.name, to.joinpath(*parts, item.name), MAX_REF_BYTES)


def _copy_objects(git: OpenedFolder, path: Path, to: Path) -> None:
    with git.folder("objects") as objects:
        if objects.is_folder("info"):
            with objects.folder("info") as info:
                if info.mode("alternates"):
                    raise _elsewhere(path, "its objects/info/alternates names other folders")
        bytes_left, files_left = MAX_PACK_BYTES, MAX_OBJECT_FILES
        for outer in objects.listed():
            wanted = PACKS if outer.name == "pack" else SINGLE if SINGLES.fullmatch(outer.name) else None
            if wanted is None:
                continue
            with objects.folder(outer.name) as folder:
                (to / outer.name).mkdir(exist_ok=True)
                for item in folder.listed():
                    if not wanted.fullmatch(item.name):
                        continue
                    files_left -= 1
                    if bytes_left <= 0 or files_left < 0:
                        raise Invalid(
                            f"The repository at {path} is larger than {MAX_PACK_BYTES:,} bytes.", code="too_large"
                        )
                    bytes_left -= folder.copy(item.name, to / outer.name / item.name, MAX_PACK_BYTES)
