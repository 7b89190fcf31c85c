"""Bare repositories of our own, read and written with dulwich but without anything of the user's git: no global or
system configuration (``insteadOf`` would send a token elsewhere), no hooks, no work tree, no automatic gc.
"""

import fcntl
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dulwich import object_store
from dulwich.config import ConfigFile, StackedConfig
from dulwich.errors import NotGitRepository, RefFormatError
from dulwich.file import FileLocked
from dulwich.object_store import DiskObjectStore
from dulwich.objects import S_ISGITLINK, Commit, ObjectID, ShaFile, Tag, Tree
from dulwich.pack import Pack, UnpackedObject
from dulwich.refs import Ref
from dulwich.repo import Repo, UnsupportedExtension, UnsupportedVersion

from service.domain.errors import Conflict, Invalid, NotFound, Unavailable, needs_room

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


class ObjectStore(DiskObjectStore):
    """dulwich's, which keeps every pack it is given as one."""

    def add_object(self, obj: ShaFile) -> None:
        """dulwich's own fails when two write the same object at once, and for ever after one was killed meanwhile."""
        name = obj.id.decode()
        file = Path(self.path) / name[:2] / name[2:]
        if file.exists():
            return
        file.parent.mkdir(exist_ok=True)
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
            finally:
                for alternate in quarantine.alternates:
                    alternate.close()
                quarantine.close()
        finally:
            shutil.rmtree(incoming, ignore_errors=True)


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
        self.hooks.clear()

    def close(self) -> None:
        for alternate in self.object_store.alternates:
            alternate.close()  # dulwich forgets them
        super().close()

    def get_config_stack(self) -> StackedConfig:
        own = self.get_config()
        return StackedConfig([own], writable=own)

    def get_worktree_config(self) -> ConfigFile:
        return ConfigFile()


@contextmanager
def opened(path: Path, *, durable: bool = False) -> Iterator[BareRepository]:
    """Raises NotFound when there is no repository at the path, and, in the block, DiskFull for the system's error."""
    try:
        repository = BareRepository(path, durable=durable)
    except (NotGitRepository, FileNotFoundError, NotADirectoryError):
        raise NotFound("Repository not found.") from None
    except (UnsupportedVersion, UnsupportedExtension) as error:
        raise NotFound(f"This repository is of a kind that cannot be read here: {error}.") from None
    try:
        if not (path / "objects").is_dir():
            raise NotFound("Repository not found.")
        with needs_room():
            yield repository
    finally:
        repository.close()


def create(path: Path, fill: Callable[[Path], None], *, branch: str) -> None:
    """Make a bare repository under a temporary name, let ``fill`` fill it, give it its name: it exists whole or not at
    all. When another process was faster, its repository stays. Raises DiskFull.
    """
    with needs_room():
        _create(path, fill, branch)


def _create(path: Path, fill: Callable[[Path], None], branch: str) -> None:
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
        sync_folder(made)
        try:
            made.rename(path)
        except OSError:
            if not path.is_dir():
                raise
        sync_folder(path.parent)
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


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """One holder at a time, across threads and processes; the kernel frees it when its holder dies."""
    with needs_room():
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def only_if_free(file: Path) -> Iterator[bool]:
    """Lock the file without waiting; yield whether it was free."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


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


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
