"""Looks whether the log of a data folder still holds what its views and its last signed checkpoint have seen."""

import os
from pathlib import Path

from eventstore import LogPlace, Loss, Witness, witnesses_in_copy, witnesses_in_views
from service.domain.errors import Conflict, Invalid
from service.integrity.checkpoints import CHECKPOINTS, parse_checkpoints
from service.integrity.log_place import log_place
from service.runtime.data_folder import LOG_COPY

TAIL_BYTES = 16 << 10
"""At the end of the file of checkpoints: some forty of them."""


class LogLost(Conflict):
    """The log is behind what was seen of it, or another one: nothing is appended."""

    code = "log_lost"

    def __init__(self, says: str, remedy: str) -> None:
        super().__init__(f"{says}; {remedy}")
        self.says, self.remedy = says, remedy


def require_continuous(data: Path) -> None:
    """Raise LogLost when the log is not what it was; EventStoreError when it cannot be read."""
    if (loss := loss_in(data)) is not None:
        raise _lost(loss, data)


def loss_in(data: Path, *, tail_bytes: int | None = TAIL_BYTES) -> Loss | None:
    """Compare the log with each view, with its copy on this machine if it is elsewhere, and with the signed checkpoints
    at the end of their file, or with all of them.

    Raises EventStoreError.
    """
    place = log_place(data)
    return place.find_loss(witnesses_of(data, place, tail_bytes=tail_bytes))


def witnesses_of(data: Path, place: LogPlace, *, tail_bytes: int | None) -> list[Witness]:
    """Return what a data folder has noted of its log: as ``loss_in`` compares it."""
    witnesses = witnesses_in_views(data / "views.db")
    signed = _checkpoints(data / CHECKPOINTS, tail_bytes)
    witnesses += signed if tail_bytes is None else signed[-1:]
    if not place.is_local:
        witnesses += witnesses_in_copy(data / LOG_COPY)
    return witnesses


def described(loss: Loss, data: Path) -> str:
    """Say in one sentence what is wrong, and what to do."""
    return str(_lost(loss, data))


def _lost(loss: Loss, data: Path) -> LogLost:
    file, one = log_place(data).name, loss.witness
    if one is None:
        says = (
            f"{file} ends at position {loss.position}, and its WAL breaks off before the end of what was acknowledged"
        )
    elif loss.is_behind:
        says = f"{file} ends at position {loss.position}, and {one.name} has seen position {one.position}"
    else:
        says = f"{file} has another event at position {one.position} than {one.name} has seen there"
    through = "on" if one is None else f"to {one.position}"
    return LogLost(
        f"{says}: events from {loss.lost_from} {through} are lost, so nothing is appended",
        f"restore a backup into a new folder (docsmith restore BACKUP --vault VAULT --data {data}-2), or go on without "
        f"them (docsmith audit accept-loss --reason TEXT --data {data}).",
    )


def _checkpoints(file: Path, tail_bytes: int | None) -> list[Witness]:
    """Return those that are what was signed, oldest first: a damaged line says nothing of the log."""
    try:
        content = file.read_bytes() if tail_bytes is None else _tail(file, tail_bytes)
    except OSError:
        return []
    found = []
    for line in content.splitlines(keepends=True):
        try:
            found += parse_checkpoints(line, file.name)
        except Invalid:
            continue
    return [one.witness() for one in found if one.is_signed_with(one.own_key())]


def _tail(file: Path, count: int) -> bytes:
    with file.open("rb") as opened:
        begin = max(opened.seek(0, os.SEEK_END) - count, 0)
        opened.seek(begin)
        return opened.read().partition(b"\n")[2] if begin else opened.read()  # the first line is not whole
