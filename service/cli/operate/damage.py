"""Advice about an error of the event store, by its class and the file that it is about."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from eventstore import EventStoreError, OutcomeUnknown, StoreCorrupt, StoreDiskFailed, StoreForeign, StoreFull
from eventstore.sqlite.files import explained
from service.integrity.continuity import LogLost
from service.runtime.data_folder import full_disk


class Described(NamedTuple):
    """What is wrong, and what to do about it; the latter is empty where nothing is known."""

    says: str
    remedy: str
    code: str
    """For ``--json``."""


def described(error: Exception, data: Path) -> Described:
    """Describe an error that a command met in a data folder."""
    if isinstance(error, sqlite3.Error):
        error = explained(error, data / "events.db")  # met as the log is opened
    code = "unavailable"
    if isinstance(error, OutcomeUnknown | StoreCorrupt):
        code = "damaged" if isinstance(error, StoreCorrupt) else "outcome_unknown"
    if step := next((step for one in _with_causes(error) if (step := _next_step(one, data))), ""):
        return Described(str(error), step, code)
    if isinstance(error, EventStoreError | LogLost):
        return Described(error.says, error.remedy, code)
    return Described(str(error), "", code)


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _next_step(error: BaseException, data: Path) -> str:
    match error:
        case StoreFull() | StoreDiskFailed():
            return full_disk(data)
        case StoreForeign() | StoreCorrupt(file=""):
            return ""
        case StoreCorrupt(file="views.db"):
            return (
                "docsmith serve rebuilds this file when it starts. If it does not, delete it and start again: "
                f"rm {data / 'views.db'}*"
            )
        case StoreCorrupt(file="keys.db"):
            return (
                "without it, what people typed cannot be read. Restore a backup and its vault into a new folder: "
                f"docsmith restore BACKUP --vault VAULT --data {data}-2"
            )
        case StoreCorrupt(file="events.db"):
            return (
                f"docsmith audit verify --data {data} says where. Restore a backup into a new folder: docsmith "
                f"restore BACKUP --vault VAULT --data {data}-2"
            )
        case StoreCorrupt():
            return f"restore a backup into a new folder: docsmith restore BACKUP --vault VAULT --data {data}-2"
        case _:
            return ""
