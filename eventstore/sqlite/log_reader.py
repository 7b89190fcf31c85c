"""Reading the log in a SQLite file: the statements."""

import sqlite3
from collections.abc import Iterable
from typing import Any

_COLUMNS = (
    "position, stream, stream_version, id, type, schema_version, recorded_at, CAST(metadata AS BLOB),"
    " CAST(data AS BLOB), sealed, hash"
)
"""The casts save decoding text only to encode it again."""
_FOLDED_COLUMNS = (
    "CASE WHEN sealed IS NULL THEN CASE schema_version WHEN 1 THEN type ELSE type || x'1f' || schema_version END"
    " ELSE CAST(schema_version || ' ' || length(CAST(type AS BLOB)) || ' ' || length(CAST(id AS BLOB)) || ' ' || type"
    " || id || sealed AS BLOB) END, CAST(data AS BLOB)"
)

Rows = Iterable[tuple[Any, ...]]


class FileReader:
    """See LogReader. Raises sqlite3.Error."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def head(self) -> int:
        (head,) = self._db.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()
        return int(head)

    def size(self) -> int:
        (size,) = self._db.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
        return int(size)

    def first_metadata(self) -> bytes:
        row = self._db.execute("SELECT CAST(metadata AS BLOB) FROM events WHERE position = 1").fetchone()
        return b"" if row is None else bytes(row[0])

    def stream_version(self, stream: str) -> int:
        sql = "SELECT coalesce(max(stream_version), 0) FROM events WHERE stream = ?"
        (version,) = self._db.execute(sql, (stream,)).fetchone()
        return int(version)

    def position_of(self, stream: str, version: int) -> int:
        sql = "SELECT position FROM events WHERE stream = ? AND stream_version = ?"
        (position,) = self._db.execute(sql, (stream, version)).fetchone()
        return int(position)

    def of_id(self, event_id: str) -> Rows:
        return self._rows("id = ?", event_id)

    def of_stream(
        self, stream: str, *, after: int, before: int | None = None, limit: int, backwards: bool = False
    ) -> Rows:
        order = "DESC" if backwards else "ASC"
        where = f"stream = ? AND stream_version > ? AND stream_version < ? ORDER BY stream_version {order} LIMIT ?"
        return self._rows(where, stream, after, _END if before is None else before, limit)

    def of_log(
        self,
        *,
        after: int,
        before: int | None = None,
        category: str | None = None,
        stream: str | None = None,
        limit: int,
        backwards: bool = False,
    ) -> Rows:
        given = [(name, value) for name, value in (("stream", stream), ("category", category)) if value is not None]
        where = "".join(f"{name} = ? AND " for name, _ in given)
        by = "position" if stream is None else "stream_version"  # of one stream, the same order
        order = "DESC" if backwards else "ASC"
        where += f"position > ? AND position < ? ORDER BY {by} {order} LIMIT ?"
        return self._rows(where, *(value for _, value in given), after, _END if before is None else before, limit)

    def folded(self, stream: str, *, after: int, limit: int) -> Rows:
        return self._db.execute(
            f"SELECT {_FOLDED_COLUMNS} FROM events WHERE stream = ? AND stream_version > ?"  # noqa: S608 - our text
            " ORDER BY stream_version LIMIT ?",
            (stream, after, limit),
        )

    def _rows(self, where: str, *values: object) -> Rows:
        """Return the rows of one statement; the callers' own text is in ``values`` only."""
        return self._db.execute(f"SELECT {_COLUMNS} FROM events WHERE {where}", values)  # noqa: S608 - our text


_END = 1 << 62
"""After every position and version."""
