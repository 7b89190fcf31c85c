"""A plain folder as one commit: its files become a pack, written once, without a work tree or an index."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from dulwich.pack import UnpackedObject, full_unpacked_object, iter_sha1, write_pack_data, write_pack_index_v2

from service.adapters.git.names import GIT_FILES, HFS_IGNORED, MAX_DEPTH, difference, folded, is_dot_git, shown
from service.adapters.git.objects import MAX_ENTRIES
from service.domain.errors import Forbidden, Invalid, Unavailable

SKIPPED = frozenset({b".git", b"node_modules"})

MAX_FILE_BYTES = 100 * 1024 * 1024
"""GitHub's limit."""

MAX_FOLDER_BYTES = 2 * 1024 * 1024 * 1024

OUTSIDE = b"outside-of-this-folder"
"""Stands for the target of a link that leads out of the folder by its full path."""

AUTHOR = b"Docsmith <docsmith@localhost>"


class Found(NamedTuple):
    path: Path
    blob: ObjectID
    mode: int
    modified: float
    target: bytes | None
    """Target of a symbolic link."""

    def content(self) -> bytes:
        """Read it again."""
        return self.target if self.target is not None else read_plain(self.path)[0]


def import_folder(repository: Path, folder: Path, branch: str) -> str:
    """Put the folder's files into a new bare repository as one commit on the branch. Its time is that of the newest
    file, so the same files give the same commit.

    Special files, ``.git`` and ``node_modules`` are left out. Symbolic links are kept as git keeps them, and names that
    cannot be shown too, so that an index can list them as left out; neither is followed or used.
    """
    scan = Scan()
    tree = scan.tree(folder, 0)
    if tree is None:
        raise Invalid(f"There are no files in {folder}.", code="bad_repository")
    commit = Commit()
    commit.tree, commit.parents = tree, []
    commit.author = commit.committer = AUTHOR
    commit.author_time = commit.commit_time = max(0, int(max(file.modified for file in scan.files.values())))
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"Import a folder\n"
    _write_pack(repository / "objects" / "pack", [commit, *scan.trees.values()], list(scan.files.values()))
    ref = repository / "refs" / "heads" / branch
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_bytes(commit.id + b"\n")
    return commit.id.decode()


class Scan:
    def __init__(self) -> None:
        self.files: dict[ObjectID, Found] = {}
        self.trees: dict[ObjectID, Tree] = {}
        self._entries = 0
        self._bytes = 0
        self._root = b""

    def tree(self, folder: Path, depth: int) -> ObjectID | None:
        """The id of the folder's tree, None for an empty one."""
        if depth > MAX_DEPTH:
            raise Invalid(f"Folders are nested deeper than {MAX_DEPTH}: {folder}.", code="too_large")
        if depth == 0:
            self._root = os.fsencode(folder)
        tree = Tree()
        names: dict[str, str] = {}
        try:
            with os.scandir(os.fsencode(folder)) as listing:
                items = sorted(listing, key=lambda item: item.name)
        except PermissionError:
            raise Forbidden(f"{folder} may not be read by the user that runs this service.") from None
        for item in items:
            text = item.name.decode("utf-8", "surrogateescape")
            if item.name in SKIPPED or is_dot_git(text):
                continue
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                raise Invalid(f"The folder has more than {MAX_ENTRIES:,} files.", code="too_large")
            inside = folder / os.fsdecode(item.name)
            if item.is_dir(follow_symlinks=False):
                inner = self.tree(inside, depth + 1)
                if inner is None:
                    continue
                mode, name = stat.S_IFDIR, inner
            elif item.is_file(follow_symlinks=False):
                file = self._file(inside)
                mode, name = file.mode, file.blob
            elif item.is_symlink() and not GIT_FILES.fullmatch(HFS_IGNORED.sub("", text)):
                link = self._link(inside)
                mode, name = link.mode, link.blob
            else:
                continue
            other = names.setdefault(folded(text), text)
            if other != text:
                raise Invalid(
                    f"{shown(os.fsencode(inside))} differs from its neighbour {shown(os.fsencode(other))}"
                    f" {difference(text, other)} only. Rename one of them.",
                    code="bad_path",
                )
            tree.add(item.name, mode, name)
        if not names:
            return None
        self.trees[ObjectID(tree.id)] = tree
        return ObjectID(tree.id)

    def _file(self, path: Path) -> Found:
        content, status = read_plain(path)
        self._bytes += len(content)
        if self._bytes > MAX_FOLDER_BYTES:
            raise Invalid(f"The folder has more than {MAX_FOLDER_BYTES:,} bytes.", code="too_large")
        mode = stat.S_IFREG | (0o755 if status.st_mode & stat.S_IXUSR else 0o644)
        return self._keep(Found(path, ObjectID(Blob.from_string(content).id), mode, status.st_mtime, None))

    def _link(self, path: Path) -> "Found":
        """Return a link with its target, but without paths of this machine."""
        target = os.fsencode(path.readlink())
        if target.startswith(b"/"):
            inside = target == self._root or target.startswith(self._root + b"/")
            target = os.path.relpath(target, os.fsencode(path.parent)) if inside else OUTSIDE
        blob = ObjectID(Blob.from_string(target).id)
        return self._keep(Found(path, blob, stat.S_IFLNK, path.lstat().st_mtime, target))

    def _keep(self, found: "Found") -> "Found":
        known = self.files.get(found.blob)
        if known is None or known.modified < found.modified:
            self.files[found.blob] = found
        return found


def read_plain(path: Path) -> tuple[bytes, os.stat_result]:
    """The content of a regular file, even if it became a link or a pipe since it was seen."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        raise Forbidden(f"{path} may not be read by the user that runs this service.") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOENT, errno.ENXIO):
            raise Unavailable(f"{path} changed while it was being read.") from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unavailable(f"{path} changed while it was being read.")
        if status.st_size > MAX_FILE_BYTES:
            raise Invalid(f"{path} is larger than {MAX_FILE_BYTES:,} bytes.", code="too_large")
        return file.read(MAX_FILE_BYTES), status


def _write_pack(folder: Path, objects: list[ShaFile], files: list[Found]) -> None:
    """dulwich's own way in indexes and inflates the pack it has just written, twice; here nothing needs checking."""

    def records() -> Iterator[UnpackedObject]:
        for one in objects:
            yield full_unpacked_object(one)
        for file in files:
            blob = Blob.from_string(file.content())
            if blob.id != file.blob:
                raise Unavailable(f"{file.path} changed while it was being read.")
            yield full_unpacked_object(blob)

    partial = folder / "import.new"
    with partial.open("wb") as pack:
        written, checksum = write_pack_data(
            pack.write,
            records(),
            DEFAULT_OBJECT_FORMAT,
            num_records=len(objects) + len(files),
            compression_level=4,
        )
        pack.flush()
        os.fsync(pack.fileno())
    entries = sorted((name, offset, checksum_) for name, (offset, checksum_) in written.items())
    base = f"pack-{iter_sha1(name for name, _, _ in entries).decode()}"
    with (folder / f"{base}.idx").open("wb") as index:
        write_pack_index_v2(index, entries, checksum)
        index.flush()
        os.fsync(index.fileno())
    partial.rename(folder / f"{base}.pack")
