"""The folder of the embedded code host's repositories: in the data folder, shared by all instances, or elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from service.domain.errors import KeptElsewhere, NotShared

HOSTED = "hosted"


class Asked:
    """Whether a repository that is elsewhere was asked for, even if KeptElsewhere became another error."""

    def __init__(self) -> None:
        self.for_repository = False


_ASKED: ContextVar[Asked | None] = ContextVar("asked", default=None)


@contextmanager
def noting_asked() -> Iterator[Asked]:
    """Note, in the block, whether a repository that is elsewhere is asked for."""
    asked = Asked()
    before = _ASKED.set(asked)
    try:
        yield asked
    finally:
        _ASKED.reset(before)


class HostedPlace:
    """``shared``: a folder that all instances of the log use, in place of ``hosted/`` in the data folder."""

    def __init__(self, data: Path, shared: str = "", *, is_here: bool = True) -> None:
        self.root = Path(shared).absolute() if shared else data / HOSTED
        self.is_shared = bool(shared)
        self.is_here = is_here
        """Whether the repositories are in that folder; else another instance has them."""
        self.trouble: str | None = None
        """Why the folder is not safely shared: two instances could write to a repository at once. None while it is."""
        self._data = data

    @property
    def is_home(self) -> bool:
        """Whether other instances pass requests for the repositories on to this one."""
        return self.is_here and not self.is_shared

    def repository(self, project_id: str) -> Path:
        """Return the place of a project's repository, which may not exist. Raises KeptElsewhere, NotShared."""
        if not self.is_here:
            if (asked := _ASKED.get()) is not None:
                asked.for_repository = True
            raise KeptElsewhere
        if self.trouble is not None:
            raise NotShared
        return self.root / f"{project_id}.git"

    def heads_of(self, repository: Path) -> Path:
        """Return the derived folder with the numbers of the pull requests of each branch of a repository."""
        return (self.root / ".heads" if self.is_shared else self._data / "repos") / f"{repository.stem}.heads"

    def borrowed(self, repository: Path) -> Path:
        """Return the repository's objects as a clone in ``repos/`` of the data folder names them."""
        if self.is_shared:
            return repository / "objects"
        return Path("..", "..", "..", HOSTED, repository.name, "objects")  # the data folder may move
