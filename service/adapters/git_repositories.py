"""Bare repositories of our own, read and written with dulwich but without anything of the user's git: no global or
system configuration (``insteadOf`` would send a token elsewhere), no hooks, no work tree, no automatic gc.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dulwich.config import ConfigFile, StackedConfig
from dulwich.errors import NotGitRepository, RefFormatError
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Commit, ObjectID
from dulwich.refs import Ref
from dulwich.repo import Repo, UnsupportedExtension, UnsupportedVersion

from service.domain.errors import NotFound

HEADS = b"refs/heads/"
FETCHED = b"refs/remotes/origin/"


class BareRepository(Repo):
    """Close it: its packs are open files."""

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        store = DiskObjectStore(
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
    """Raises NotFound when there is no repository at the path."""
    try:
        repository = BareRepository(path, durable=durable)
    except (NotGitRepository, FileNotFoundError, NotADirectoryError):
        raise NotFound("There is no such repository.") from None
    except (UnsupportedVersion, UnsupportedExtension) as error:
        raise NotFound(f"This repository is of a kind that cannot be read here: {error}.") from None
    try:
        if not (path / "objects").is_dir():
            raise NotFound("There is no such repository.")
        yield repository
    finally:
        repository.close()


def create(path: Path, fill: Callable[[Path], None], *, branch: str) -> None:
    """Make a bare repository under a temporary name, let ``fill`` fill it, give it its name: it exists whole or not at
    all. When another process was faster, its repository stays.
    """
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
        made.chmod(0o755)
        _sync(made)
        try:
            made.rename(path)
        except OSError:
            if not path.is_dir():
                raise
        _sync(path.parent)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def forget_unfinished(path: Path) -> None:
    """Remove what a killed ``create`` left; call it with the lock of ``path`` held."""
    for left in path.parent.glob(f".{path.name}.*.new"):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """One holder at a time, across threads and processes; the kernel frees it when its holder dies."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def commit_of(repository: Repo, commit: str) -> Commit:
    """Raises NotFound, also for an id that names something else."""
    with suppress(KeyError, ValueError):
        found = repository.object_store[ObjectID(commit.encode())]
        if isinstance(found, Commit):
            return found
    raise NotFound(f"There is no commit {commit[:12]} here.", code="commit_not_found")


def branch_commit(repository: Repo, branch: str) -> ObjectID | None:
    try:
        return repository.refs[Ref(HEADS + branch.encode())]
    except (KeyError, RefFormatError):
        return None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
