"""Finds sealed texts that can never be opened: their keys are neither in the vault nor erased, or do not open them.

A vault that is older than its log lacks the keys of the newest subjects. What they sealed reads as if it were erased,
so the difference has to be reported. A text that its key does not open is damaged, or the key is.
"""

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

from eventstore.errors import StoreCorrupt
from eventstore.sqlite import files
from eventstore.sqlite.vault_file import VaultFile

PAGE = 2_000
LIMIT = 1_000


def subjects_without_keys(log: Path, vault: Path, *, after: int = 0) -> list[str]:
    """Return subjects with texts later than a position that are sealed under a lost key, in order; at most 1,000.

    May be asked of files in use: the log is read by pages, and the vault after each page, for a key is older than the
    events that need it.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    found: dict[str, None] = {}
    try:
        with ExitStack() as close:
            events = close.enter_context(closing(files.connect_offline(log)))
            keys = close.enter_context(closing(files.connect_offline(vault))) if vault.exists() else None
            while rows := events.execute(
                "SELECT position, stream, substr(sealed, 2, 8) FROM events"
                " WHERE position > ? AND sealed IS NOT NULL ORDER BY position LIMIT ?",
                (after, PAGE),
            ).fetchall():
                after = rows[-1][0]
                for subject, key_id in dict.fromkeys((stream, key_id) for _, stream, key_id in rows):
                    if subject not in found and not _is_known(keys, subject, key_id):
                        found[subject] = None
                        if len(found) == LIMIT:
                            return list(found)
    except sqlite3.Error as error:
        raise files.explained(error, log) from error
    return list(found)


def damaged_texts(log: Path, vault: Path, *, after: int = 0) -> list[int]:
    """Return positions, later than one, of texts that their keys do not open, in order; at most 1,000.

    May be asked of files in use, as ``subjects_without_keys``.

    Raises:
        StoreUnavailable and its kinds, StoreCorrupt.
    """
    found: list[int] = []
    try:
        with closing(files.connect_offline(log)) as events, closing(VaultFile.open(vault, read_only=True)) as keys:
            while rows := events.execute(
                "SELECT position, stream, stream_version, id, sealed FROM events"
                " WHERE position > ? AND sealed IS NOT NULL ORDER BY position LIMIT ?",
                (after, PAGE),
            ).fetchall():
                after = rows[-1][0]
                keys.refresh()
                for position, stream, version, event_id, sealed in rows:
                    key = keys.find(stream)
                    try:
                        if key is not None:
                            key.open(sealed, stream.encode(), version, event_id.encode())
                    except StoreCorrupt:
                        found.append(position)
                        if len(found) == LIMIT:
                            return found
    except sqlite3.Error as error:
        raise files.explained(error, log) from error
    return found


def _is_known(keys: sqlite3.Connection | None, subject: str, key_id: bytes) -> bool:
    row = None if keys is None else keys.execute("SELECT key_id FROM keys WHERE subject = ?", (subject,)).fetchone()
    return row is not None and row[0] in (None, key_id)  # without one it is erased
