"""A plain folder as one commit: its files become a pack, written once, without a work tree or an index."""

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
from service.adapters.git.opened_folder import OpenedFolder, open_folder
from service.domain.errors import Invalid, Unavailable

SKIPPED = frozenset({b".git", b"node_modules"})

MAX_FOLDER_BYTES = 2 * 1024 * 1024 * 1024

OUTSIDE = b"outside-of-this-folder"
"""Stands for the target of a link that leads out of the folder by its full path."""

AUTHOR = b"Docsmith <docsmith@localhost>"


class Found(NamedTuple):
    root: OpenedFolder
    parts: tuple[str, ...]
    """From there."""
    blob: ObjectID
    mode: int
    modified: float
    target: bytes | None
    """Target of a symbolic link."""

    @property
    def path(self) -> Path:
        return self.root.path.joinpath(*self.parts)

    def content(self) -> bytes:
        """Read it again, while the root is open."""
        if self.target is not None:
            return self.target
        with self.root.folder(*self.parts[:-1]) as folder:
            return folder.file(self.parts[-1])[0]


def import_folder(repository: Path, folder: Path, branch: str, root: str = "", name: Path | None = None) -> str:
    """Put the folder's files into a new bare repository as one commit on the branch. Its time is that of the newest
    file, so the same files give the same commit. Nothing is flushed: that is the caller's (``create``).

    Special files, ``.git`` and ``node_modules`` are left out. Symbolic links are kept as git keeps them, and names that
    cannot be shown too, so that an index can list them as left out; neither is followed or used. ``root``: see
    ``open_folder``.
    """
    with open_folder(folder, root, name) as opened:
        scan = Scan(opened)
        tree = scan.tree()
        if tree is None:
            raise Invalid(f"There are no files in {name or folder}.", code="bad_repository")
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
    """``root`` stays open as long as what was found is read."""

    def __init__(self, root: OpenedFolder) -> None:
        self.files: dict[ObjectID, Found] = {}
        self.trees: dict[ObjectID, Tree] = {}
        self._entries = 0
        self._bytes = 0
        self._root = root

    def tree(self, *parts: str) -> ObjectID | None:
        """The id of the tree of a folder below the root, None for an empty one."""
        if len(parts) > MAX_DEPTH:
            path = self._root.path.joinpath(*parts)
            raise Invalid(f"Folders are nested deeper than {MAX_DEPTH}: {path}.", code="too_large")
        with self._root.folder(*parts) as folder:
            return self._tree(folder, parts)

    def _tree(self, folder: OpenedFolder, parts: tuple[str, ...]) -> ObjectID | None:
        tree = Tree()
        names: dict[str, str] = {}
        for item in folder.listed():
            name = os.fsencode(item.name)
            text = name.decode("utf-8", "surrogateescape")
            if name in SKIPPED or is_dot_git(text):
                continue
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                raise Invalid(f"The folder has more than {MAX_ENTRIES:,} files.", code="too_large")
            if item.is_dir(follow_symlinks=False):
                inner = self.tree(*parts, item.name)
                if inner is None:
                    continue
                mode, blob = stat.S_IFDIR, inner
            elif item.is_file(follow_symlinks=False):
                file = self._file(folder, parts, item.name)
                mode, blob = file.mode, file.blob
            elif item.is_symlink() and not GIT_FILES.fullmatch(HFS_IGNORED.sub("", text)):
                link = self._link(folder, parts, item.name)
                mode, blob = link.mode, link.blob
            else:
                continue
            other = names.setdefault(folded(text), text)
            if other != text:
                raise Invalid(
                    f"{shown(os.fsencode(folder.path / item.name))} differs from its neighbour"
                    f" {shown(os.fsencode(other))} {difference(text, other)} only. Rename one of them.",
                    code="bad_path",
                )
            tree.add(name, mode, blob)
        if not names:
            return None
        self.trees[ObjectID(tree.id)] = tree
        return ObjectID(tree.id)

    def _file(self, folder: OpenedFolder, parts: tuple[str, ...], name: str) -> Found:
        content, status = folder.file(name)
        self._bytes += len(content)
        if self._bytes > MAX_FOLDER_BYTES:
            raise Invalid(f"The folder has more than {MAX_FOLDER_BYTES:,} bytes.", code="too_large")
        mode = stat.S_IFREG | (0o755 if status.st_mode & stat.S_IXUSR else 0o644)
        blob = ObjectID(Blob.from_string(content).id)
        return self._keep(Found(self._root, (*parts, name), blob, mode, status.st_mtime, None))

    def _link(self, folder: OpenedFolder, parts: tuple[str, ...], name: str) -> Found:
        """Return a link with its target, but without paths of this machine."""
        target, status = folder.target(name)
        if target.startswith(b"/"):
            root = os.fsencode(self._root.path)
            inside = target == root or target.startswith(root + b"/")
            target = os.path.relpath(target, os.fsencode(folder.path)) if inside else OUTSIDE
        blob = ObjectID(Blob.from_string(target).id)
        return self._keep(Found(self._root, (*parts, name), blob, stat.S_IFLNK, status.st_mtime, target))

    def _keep(self, found: Found) -> Found:
        known = self.files.get(found.blob)
        if known is None or known.modified < found.modified:
            self.files[found.blob] = found
        return found


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
    entries = sorted((name, offset, checksum_) for name, (offset, checksum_) in written.items())
    base = f"pack-{iter_sha1(name for name, _, _ in entries).decode()}"
    with (folder / f"{base}.idx").open("wb") as index:
        write_pack_index_v2(index, entries, checksum)
    partial.rename(folder / f"{base}.pack")
