"""Sealed texts of SQLite files that can never be opened (missing_keys.py)."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from eventstore.log import missing_keys
from eventstore.log.missing_keys import PAGE, SealedRow
from eventstore.sqlite import files
from eventstore.sqlite.vault_file import VaultFile


def subjects_without_keys(log: Path, vault: Path, *, after: int = 0) -> list[str]:
    """Look at the events later than a position; see ``missing_keys``.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    try:
        with ExitStack() as close:
            events = close.enter_context(closing(files.connect_offline(log)))
            keys = close.enter_context(closing(files.connect_offline(vault))) if vault.exists() else None

            def key_ids(subjects: Collection[str]) -> Mapping[str, bytes | None]:
                if keys is None:
                    return {}
                sql = "SELECT subject, key_id FROM keys WHERE subject IN (SELECT value FROM json_each(?))"
                return dict(keys.execute(sql, (json.dumps(sorted(subjects)),)))

            return missing_keys.subjects_without_keys(_sealed(events, after), key_ids)
    except sqlite3.Error as error:
        raise files.explained(error, log) from error


def damaged_texts(log: Path, vault: Path, *, after: int = 0) -> list[int]:
    """Look at the events later than a position; see ``missing_keys``.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    try:
        with closing(files.connect_offline(log)) as events, closing(VaultFile.open(vault, read_only=True)) as keys:
            return missing_keys.damaged_texts(_sealed(events, after), keys)
    except sqlite3.Error as error:
        raise files.explained(error, log) from error


def _sealed(events: sqlite3.Connection, after: int) -> Iterator[Sequence[SealedRow]]:
    while rows := events.execute(
        "SELECT position, stream, stream_version, id, sealed FROM events"
        " WHERE position > ? AND sealed IS NOT NULL ORDER BY position LIMIT ?",
        (after, PAGE),
    ).fetchall():
        yield rows
        after = rows[-1][0]
