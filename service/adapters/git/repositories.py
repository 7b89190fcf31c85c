"""Bare repositories of our own, read and written with dulwich but without anything of the user's git: no global or
system configuration (``insteadOf`` would send a token elsewhere), no hooks, no work tree, no automatic gc.

A repository that is opened as ``durable`` is truth, as the log is: a power cut at any moment leaves what was
acknowledged, and nothing that cannot be read. This is the one place for it. Objects and packs are flushed before they
get their names, the folders with these names before a ref names an object, the ref before it gets its name, and its
folder before the caller goes on to record an event. Each folder is flushed once for all that was added to it.
"""

import itertools
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dulwich import object_store
from dulwich.config import ConfigFile, StackedConfig
from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException, NotGitRepository, RefFormatError
from dulwich.file import FileLocked
from dulwich.object_store import DiskObjectStore
from dulwich.objects import S_ISGITLINK, Commit, ObjectID, ShaFile, Tag, Tree, valid_hexsha
from dulwich.pack import Pack, UnpackedObject
from dulwich.refs import SYMREF, DiskRefsContainer, Ref
from dulwich.repo import Repo, UnsupportedExtension, UnsupportedVersion

from service.domain.errors import Conflict, Damaged, Invalid, NotFound, Unavailable, needs_room
from service.runtime.durable import sync_all, sync_folder

HEADS = b"refs/heads/"
FETCHED = b"refs/remotes/origin/"


STALE_SECONDS = 60.0
"""After which a ref's lock, or the file of a single object, counts as that of a killed process: none is needed for
longer than a moment.
"""
ABANDONED_SECONDS = 7_200.0
"""After which the files of unfinished work count as a killed process's; twice what the longest work may take."""

UNPACK_LIMIT = 100
"""Objects in a pack that is kept as single files instead, git's ``transfer.unpackLimit``: a pack for each job would
mean two open files for each job in every reader, and there are 1,024 by default.
"""


object_store.PACK_MODE = 0o400  # dulwich's own lets every user of the machine read packs


_SIGNS_OF_DAMAGE = (
    ApplyDeltaError, AssertionError, ChecksumMismatch, FileFormatException, RefFormatError, struct.error, zlib.error,
)  # fmt: skip
"""Errors that dulwich raises for a file of a repository that is not what was written."""


class ObjectStore(DiskObjectStore):
    """dulwich's, which keeps each pack it is given as one, takes an empty file for an object, and flushes no folder."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._unflushed: set[Path] = set()
        """Folders with names that a power cut would take away."""

    def settle(self) -> None:
        """Make durable under which names objects were added since the last call: before a ref names one."""
        if self.fsync_object_files:
            while self._unflushed:
                sync_folder(self._unflushed.pop())

    def added(self, folder: Path) -> None:
        """Note a folder to which a file was added."""
        self._unflushed.add(folder)

    def _get_loose_object(self, sha: ObjectID) -> ShaFile | None:
        """dulwich's, which takes whatever has an object's name for it: a power cut may have emptied or cut the file."""
        try:
            found = super()._get_loose_object(sha)
            if found is not None and ShaFile.from_raw_string(found.type_num, found.as_raw_string()).id == sha:
                return found
        except (AssertionError, FileFormatException, ValueError, zlib.error):
            pass
        return None

    def _complete_pack(self, *args: Any, **named: Any) -> Pack:
        self.added(Path(self.pack_dir))
        return super()._complete_pack(*args, **named)

    def add_object(self, obj: ShaFile) -> None:
        """dulwich's own fails when two write the same object at once, and for ever after one was killed meanwhile. A
        file that is there counts when it is the object: else it is written again.
        """
        name = obj.id.decode()
        file = Path(self.path) / name[:2] / name[2:]
        self.added(file.parent)  # also when it is there: another process may have written it just now
        if _holds(file, obj):
            return
        if not file.parent.is_dir():
            file.parent.mkdir(exist_ok=True)
            self.added(Path(self.path))
        descriptor, partial = tempfile.mkstemp(prefix="tmp_obj_", dir=file.parent)
        try:
            with os.fdopen(descriptor, "wb") as written:
                written.write(obj.as_legacy_object(compression_level=self.loose_compression_level))
                if self.fsync_object_files:
                    written.flush()
                    os.fsync(descriptor)
            Path(partial).chmod(0o400)
            Path(partial).replace(file)
        finally:
            Path(partial).unlink(missing_ok=True)

    def add_pack_data(
        self, count: int, unpacked_objects: Iterator[UnpackedObject], progress: Callable[..., None] | None = None
    ) -> Pack | None:
        if count > UNPACK_LIMIT:
            return super().add_pack_data(count, unpacked_objects, progress)
        for one in unpacked_objects:
            self.add_object(one.sha_file())
        return None

    def receive(self, read: Callable[[int], bytes], max_bytes: int) -> None:
        """Take a pack from elsewhere: only once it is whole and sound is any of it seen here."""
        incoming = Path(tempfile.mkdtemp(prefix="tmp_objdir-incoming-", dir=self.path))
        try:
            DiskObjectStore.init(incoming / "objects").close()
            quarantine = DiskObjectStore(
                incoming / "objects", alternates=[self.path], fsync_object_files=self.fsync_object_files
            )
            try:
                pack = quarantine.add_thin_pack(read, None, max_input_size=max_bytes)
                if len(pack) <= UNPACK_LIMIT:
                    for one in children_first(pack.iterobjects()):
                        self.add_object(one)
                    return
                for suffix in (".pack", ".idx"):  # in this order: a pack counts when it has an index
                    file = Path(quarantine.pack_dir) / f"pack-{pack.name().decode()}{suffix}"
                    file.rename(Path(self.pack_dir) / file.name)
                self.added(Path(self.pack_dir))
            finally:
                for alternate in quarantine.alternates:
                    alternate.close()
                quarantine.close()
        finally:
            shutil.rmtree(incoming, ignore_errors=True)


def _holds(file: Path, obj: ShaFile) -> bool:
    try:
        return (
            zlib.decompress(file.read_bytes()) == b"%b %d\0" % (obj.type_name, obj.raw_length()) + obj.as_raw_string()
        )
    except (OSError, zlib.error):
        return False


class Refs(DiskRefsContainer):
    """dulwich's, whose names a power cut may take back, and with objects that are not on the disk yet."""

    store: ObjectStore

    def _read_loose_ref_file(self, name: Ref) -> bytes | None:
        """dulwich's, which takes what a power cut has left, nothing or zeros, for a commit's id."""
        found = super()._read_loose_ref_file(name)
        if found is not None and not found.startswith(SYMREF) and not valid_hexsha(found):
            raise Damaged(f"The reference {name.decode('utf-8', 'replace')} is damaged.")
        return found

    def set_if_equals(self, name: Ref, old_ref: ObjectID | None, new_ref: ObjectID, *told: Any, **named: Any) -> bool:
        self.store.settle()
        with self._durable(name):
            return super().set_if_equals(name, old_ref, new_ref, *told, **named)

    def remove_if_equals(self, name: Ref, old_ref: ObjectID | None, *told: Any, **named: Any) -> bool:
        with self._durable(name):
            return super().remove_if_equals(name, old_ref, *told, **named)

    @contextmanager
    def _durable(self, name: Ref) -> Iterator[None]:
        if not self.store.fsync_object_files:
            yield
            return
        top = Path(os.fsdecode(self.path))
        folders = [one for one in (top / os.fsdecode(name)).parents if one.is_relative_to(top)]
        there = {one for one in folders if one.is_dir()}
        yield
        for folder in folders:  # its own, and those above that have got or lost a folder
            if folder.is_dir():
                sync_folder(folder)
                if folder in there:
                    break


def children_first(objects: Iterable[ShaFile]) -> Iterator[ShaFile]:
    """Written in this order, an object that is there has all that it names, even after a crash."""
    found = {ObjectID(one.id): one for one in objects}
    todo = list(found)
    while todo:
        one = found.get(todo[-1])
        if one is None:
            todo.pop()
            continue
        below = [name for name in linked(one) if name in found]
        if below:
            todo.extend(below)
        else:
            yield found.pop(todo.pop())


def linked(one: ShaFile) -> Iterator[ObjectID]:
    """The objects that an object names and that belong to the same repository."""
    if isinstance(one, Commit):
        yield one.tree
        yield from one.parents
    elif isinstance(one, Tag):
        yield one.object[1]
    elif isinstance(one, Tree):
        for _, mode, name in one.iteritems():
            if not S_ISGITLINK(mode):
                yield name


class BareRepository(Repo):
    """Close it: its packs are open files."""

    object_store: ObjectStore

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        store = ObjectStore(
            path / "objects", fsync_object_files=durable, loose_compression_level=1, pack_compression_level=6
        )
        super().__init__(os.fspath(path), object_store=store, bare=True)
        self.refs = Refs(self.path)
        self.refs.store = store
        self.hooks.clear()

    def close(self) -> None:
        """An error may still hold a piece of a damaged pack, which is closed once the error is forgotten."""
        for alternate in self.object_store.alternates:
            with suppress(BufferError):
                alternate.close()  # dulwich forgets them
        with suppress(BufferError):
            super().close()

    def get_config_stack(self) -> StackedConfig:
        own = self.get_config()
        return StackedConfig([own], writable=own)

    def get_worktree_config(self) -> ConfigFile:
        return ConfigFile()


@contextmanager
def opened(path: Path, *, durable: bool = False) -> Iterator[BareRepository]:
    """Raises NotFound when there is no repository at the path, and, in the block, DiskFull for the system's error.
    Raises Damaged for a repository that cannot be read; ``durable`` ones are the truth, and it says the way back.
    """
    if not (path / "objects").is_dir():
        raise NotFound("Repository not found.")
    with _damage_named(path, durable=durable):
        try:
            repository = BareRepository(path, durable=durable)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound("Repository not found.") from None
        except (UnsupportedVersion, UnsupportedExtension) as error:
            raise NotFound(f"This repository is of a kind that cannot be read here: {error}.") from None
        except (NotGitRepository, ValueError) as error:
            raise Damaged(f"{path.name} cannot be opened: {error}.") from error
        try:
            with needs_room():
                yield repository
        finally:
            repository.close()


@contextmanager
def _damage_named(path: Path, *, durable: bool) -> Iterator[None]:
    try:
        yield
    except (Damaged, KeyError, *_SIGNS_OF_DAMAGE) as error:
        if isinstance(error, Damaged):
            if error.is_named:
                raise
            what = str(error)
        elif isinstance(error, KeyError):
            if not _is_object(error.args[0]):
                raise
            what = f"The object {error.args[0]!r} is missing"
        else:
            what = repr(error)
        raise (damaged(path, what) if durable else Damaged(f"{path.name}: {what}", is_named=True)) from error


def _is_object(name: object) -> bool:
    """Return whether a KeyError is about the id of an object, which what names it should have brought."""
    return isinstance(name, bytes) and len(name) in (20, 40)


def damaged(hosted: Path, what: str) -> Damaged:
    """Return the error for a hosted repository that is damaged or gone, with the way back."""
    return Damaged(
        f"The hosted repository {hosted.name} is damaged: {what.rstrip('.')}. The operator gets it back from a backup:"
        f" docsmith restore BACKUP --only {hosted.stem}",
        is_named=True,
        names_remedy=True,
    )


def create(path: Path, fill: Callable[[Path], None], *, branch: str, durable: bool = False) -> None:
    """Make a bare repository under a temporary name, let ``fill`` fill it, give it its name: it exists whole or not at
    all. When another process was faster, its repository stays. With ``durable`` all of it is on the disk by then.
    Raises DiskFull.
    """
    with needs_room():
        _create(path, fill, branch, durable=durable)


def _create(path: Path, fill: Callable[[Path], None], branch: str, *, durable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent))
    try:
        Repo.init_bare(made, default_branch=branch.encode(), config=StackedConfig([])).close()
        (made / "config").write_text(
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
            "[gc]\n\tauto = 0\n[http]\n\treceivepack = true\n"
        )
        shutil.rmtree(made / "hooks", ignore_errors=True)
        fill(made)
        made.chmod(0o700)
        if durable:
            sync_all(made)
        try:
            made.rename(path)
        except OSError:
            if not path.is_dir():
                raise
        if durable:
            sync_folder(path.parent)
            sync_folder(path.parent.parent)  # which has just got the folder of all of them, perhaps
    finally:
        shutil.rmtree(made, ignore_errors=True)


def forget_unfinished(path: Path) -> None:
    """Remove what a killed ``create`` left; call it with the lock of ``path`` held."""
    for left in path.parent.glob(f".{path.name}.*.new"):
        shutil.rmtree(left, ignore_errors=True)


def forget_killed_work(path: Path) -> None:
    """Remove what a killed process left in a repository: git's lock files, and objects that were not complete. Call it
    when no process can be at work in there, but for threads and processes that add single objects, which takes no lock:
    the file of one counts as a killed process's after a minute.
    """
    objects = path / "objects"
    for left in objects.glob("tmp_objdir-incoming-*"):
        shutil.rmtree(left, ignore_errors=True)
    packs = (objects.glob("tmp_pack_*"), (objects / "pack").glob("tmp*"))  # where the library begins them
    files = (path.glob("*.lock"), (path / "refs").glob("**/*.lock"), *packs)
    for left in itertools.chain(*files):
        left.unlink(missing_ok=True)
    if single := list(objects.glob("??/tmp_*")):
        stale = _time_there(path) - STALE_SECONDS
        for left in single:
            _remove_older(left, stale)


def forget_old_work(path: Path) -> None:
    """Do what ``forget_killed_work`` does with what is so old that no process, of whichever machine, works on it."""
    objects, now = path / "objects", _time_there(path)
    locks = itertools.chain(path.glob("*.lock"), (path / "refs").glob("**/*.lock"))
    partial = itertools.chain(objects.glob("*/tmp_*"), (path / "docsmith" / "pulls").glob(".*.new"))
    for file in locks:
        _remove_older(file, now - STALE_SECONDS)
    for file in itertools.chain(partial, objects.glob("tmp_objdir-incoming-*")):
        _remove_older(file, now - ABANDONED_SECONDS)


def _remove_older(left: Path, than: float) -> None:
    with suppress(FileNotFoundError):
        if left.stat().st_mtime >= than:
            return
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink()


def forget_stale_lock(lock: Path) -> None:
    """Remove a ref's lock whose writer was killed."""
    _remove_older(lock, _time_there(lock.parent) - STALE_SECONDS)


def _time_there(folder: Path) -> float:
    """Return the time by the clock that gives files in the folder theirs: it may be on another machine."""
    descriptor, name = tempfile.mkstemp(prefix=".time-", dir=folder)
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
        Path(name).unlink(missing_ok=True)


def commit_of(repository: Repo, commit: str) -> Commit:
    """Raises NotFound, also for an id that names something else."""
    with suppress(KeyError, ValueError):
        found = repository.object_store[ObjectID(commit.encode())]
        if isinstance(found, Commit):
            return found
    raise NotFound(f"There is no commit {commit[:12]} here.", code="commit_not_found")


def move_ref(repository: Repo, name: bytes, old: ObjectID | None, new: ObjectID) -> bool:
    """Compare-and-swap; without ``old``, set. Raises Unavailable while another writer holds the ref, DiskFull."""
    for _ in range(2):
        try:
            with needs_room():
                return repository.refs.set_if_equals(Ref(name), old, new)
        except FileLocked as error:
            forget_stale_lock(Path(os.fsdecode(error.lockfilename)))
        except RefFormatError:
            raise Invalid(f"{name.decode('utf-8', 'replace')} is not the name of a branch.", code="bad_path") from None
        except OSError as error:
            raise Conflict(
                f"There is a branch in the way of this name: {error.strerror}.", code="branch_moved"
            ) from None
    raise Unavailable("Another process is changing this branch; try again.", code="busy")


def has_moved(branch: str) -> Conflict:
    return Conflict(f"{branch} has other commits by now.", code="branch_moved")


def branch_commit(repository: Repo, branch: str) -> ObjectID | None:
    try:
        return repository.refs[Ref(HEADS + branch.encode())]
    except (KeyError, RefFormatError):
        return None
