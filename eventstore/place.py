"""The place of a log and its vault: what can be done with them beside reading and appending, in any storage."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from eventstore.core import CoreEventStore
from eventstore.errors import StoreUnavailable
from eventstore.log.chain import Checkpoint, Verified
from eventstore.log.stored import StoredEvent
from eventstore.log.whole import LogRows, Progress, VaultRows, WholeStore
from eventstore.log.witnesses import Loss, Witness
from eventstore.sqlite.continuity import find_loss, not_held
from eventstore.sqlite.missing_keys import damaged_texts, subjects_without_keys
from eventstore.sqlite.sqlite_store import SQLiteEventStore
from eventstore.sqlite.stored import log_id_of, stored_events
from eventstore.sqlite.verification import verify
from eventstore.sqlite.whole_files import FileLogRows, FileVaultRows


class Concern(NamedTuple):
    """Something about how a log is kept that its operator should know."""

    kind: Literal["rights", "cluster", "cluster_unknown", "archives", "archives_unknown"]
    says: str


class LogPlace(Protocol):
    """A log and its vault. It is a value, for other threads and processes too; all but ``open`` may block.

    Any method raises StoreUnavailable and its kinds, or StoreCorrupt.
    """

    @property
    def name(self) -> str:
        """Names the log in sentences: a file, or a database without its password."""

    @property
    def vault_name(self) -> str:
        """Names the vault as ``name`` names the log."""

    @property
    def is_local(self) -> bool:
        """Whether it is in files of this machine."""

    def exists(self) -> bool: ...

    def is_standby(self) -> bool:
        """Return whether the log or its vault is on a standby, which cannot be written until it is promoted.

        Raises StoreUnavailable and its kinds.
        """

    def served(self) -> AbstractContextManager[Callable[[], str | None]]:
        """Serve the log, as others may too. Raise StoreBusy where one has it alone.

        It gives a function that returns why this one has to stop; None while it need not.
        """

    def served_alone(self) -> AbstractContextManager[Callable[[], str | None]]:
        """Keep all others from serving the log, as ``served`` does. Raise StoreBusy where one does."""

    async def open(self, *, read_only: bool = False, local_copy: Path | None = None) -> CoreEventStore:
        """Open the store, made if need be; to read only, it must exist. Where the log is on another machine,
        ``local_copy`` is the file of this one that is read while it is away.
        """

    def hold(self, reason: str) -> None:
        """Keep all who append to the log from it, on every machine, until ``release``."""

    def release(self, reason: str | None = None) -> None:
        """Let all append again; with a reason, only where they are kept from it by that one."""

    def held(self) -> str | None:
        """Return why all are kept from appending; None where they are not."""

    def verify(
        self, *, from_position: int = 1, checkpoints: Sequence[Checkpoint] = (), progress: Progress | None = None
    ) -> Verified: ...

    def log_id(self) -> str:
        """Return the id that the first event gives the log; empty when it gives none, or there is none."""

    def stored_events(self, positions: Sequence[int]) -> Iterator[StoredEvent]:
        """Yield the events at these positions, in the order of the log."""

    def find_loss(self, witnesses: Sequence[Witness]) -> Loss | None:
        """Compare the log with its witnesses; None when it holds what all of them have seen. A standby that is still
        behind has lost nothing.
        """

    def not_held(self, witnesses: Sequence[Witness]) -> list[Witness]:
        """Return those whose event is not in the log, at its position."""

    def subjects_without_keys(self, *, after: int = 0) -> list[str]:
        """Return subjects with texts later than a position whose keys are lost, in order; at most 1,000."""

    def damaged_texts(self, *, after: int = 0) -> list[int]:
        """Return positions, later than one, of texts that their keys do not open, in order; at most 1,000."""

    def concerns(self) -> Sequence[Concern]: ...

    def log_rows(self, *, read_only: bool) -> LogRows:
        """Open the rows of the log, to be copied. It is made if need be; to read only, it must exist."""

    def vault_rows(self, *, read_only: bool) -> VaultRows:
        """Open the rows of the vault in the same way."""

    def is_away(self, error: StoreUnavailable) -> bool:
        """Return whether an error says that the log or its vault does not answer now, which may pass."""


def open_whole(place: LogPlace, *, read_only: bool) -> WholeStore:
    """Open the rows of a log and of its vault. Raise as LogPlace does."""
    log = place.log_rows(read_only=read_only)
    try:
        return WholeStore(log, place.vault_rows(read_only=read_only))
    except BaseException:
        log.close()
        raise


class FilePlace(Struct, frozen=True):
    """See LogPlace."""

    log: Path
    vault: Path

    @property
    def name(self) -> str:
        return str(self.log)

    @property
    def vault_name(self) -> str:
        return str(self.vault)

    @property
    def is_local(self) -> bool:
        return True

    def exists(self) -> bool:
        return self.log.is_file()

    def is_standby(self) -> bool:
        return False

    def served(self) -> AbstractContextManager[Callable[[], str | None]]:
        return nullcontext(lambda: None)

    def served_alone(self) -> AbstractContextManager[Callable[[], str | None]]:
        return nullcontext(lambda: None)

    def hold(self, reason: str) -> None:
        """Do nothing: those who use the file look at it themselves."""

    def release(self, reason: str | None = None) -> None: ...

    def held(self) -> str | None:
        return None

    async def open(self, *, read_only: bool = False, local_copy: Path | None = None) -> CoreEventStore:  # noqa: ARG002
        return await SQLiteEventStore.open(self.log, vault_path=self.vault, read_only=read_only)

    def verify(
        self, *, from_position: int = 1, checkpoints: Sequence[Checkpoint] = (), progress: Progress | None = None
    ) -> Verified:
        return verify(self.log, from_position=from_position, checkpoints=checkpoints, progress=progress)

    def log_id(self) -> str:
        return log_id_of(self.log)

    def stored_events(self, positions: Sequence[int]) -> Iterator[StoredEvent]:
        return stored_events(self.log, positions)

    def find_loss(self, witnesses: Sequence[Witness]) -> Loss | None:
        return find_loss(self.log, witnesses)

    def not_held(self, witnesses: Sequence[Witness]) -> list[Witness]:
        return not_held(self.log, witnesses)

    def subjects_without_keys(self, *, after: int = 0) -> list[str]:
        return subjects_without_keys(self.log, self.vault, after=after)

    def damaged_texts(self, *, after: int = 0) -> list[int]:
        return damaged_texts(self.log, self.vault, after=after)

    def concerns(self) -> Sequence[Concern]:
        return ()

    def log_rows(self, *, read_only: bool) -> LogRows:
        return FileLogRows.open(self.log, read_only=read_only)

    def vault_rows(self, *, read_only: bool) -> VaultRows:
        return FileVaultRows.open(self.vault, read_only=read_only)

    def is_away(self, error: StoreUnavailable) -> bool:  # noqa: ARG002
        return False
