"""Reading a log in PostgreSQL: the statements."""

from collections.abc import Iterator
from typing import Any, Protocol

from eventstore.backend import Rows
from eventstore.codec import VERSION_MARK

_COLUMNS = (
    "position, stream, stream_version, id, type, schema_version, recorded_at, convert_to(metadata, 'UTF8'),"
    " convert_to(data, 'UTF8'), sealed, hash"
)
_END = 1 << 62
"""After every position and version."""


class Fetch(Protocol):
    """Runs one statement, and returns its rows."""

    def __call__(self, sql: str, *values: object) -> Rows: ...


class TableReader:
    """See LogReader."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def head(self) -> int:
        return int(self._value("SELECT position FROM head"))

    def size(self) -> int:
        return int(self._value("SELECT pg_total_relation_size('events')"))

    def first_metadata(self) -> bytes:
        rows = list(self._fetch("SELECT convert_to(metadata, 'UTF8') FROM events WHERE position = 1"))
        return bytes(rows[0][0]) if rows else b""

    def stream_version(self, stream: str) -> int:
        return int(self._value("SELECT coalesce(max(stream_version), 0) FROM events WHERE stream = $1", stream))

    def position_of(self, stream: str, version: int) -> int:
        return int(
            self._value("SELECT position FROM events WHERE stream = $1 AND stream_version = $2", stream, version)
        )

    def of_id(self, event_id: str) -> Rows:
        return self._rows("id = $1", event_id)

    def of_stream(
        self, stream: str, *, after: int, before: int | None = None, limit: int, backwards: bool = False
    ) -> Rows:
        order = "DESC" if backwards else "ASC"
        where = f"stream = $1 AND stream_version > $2 AND stream_version < $3 ORDER BY stream_version {order} LIMIT $4"
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
        values: list[object] = [after, _END if before is None else before, limit]
        where = "position > $1 AND position < $2"
        for column, value in (("stream", stream), ("category", category)):
            if value is not None:
                values.append(value)
                where += f" AND {column} = ${len(values)}"
        by = "position" if stream is None else "stream_version"  # of one stream, the same order
        return self._rows(f"{where} ORDER BY {by} {'DESC' if backwards else 'ASC'} LIMIT $3", *values)

    def folded(self, stream: str, *, after: int, limit: int) -> Rows:
        rows = self._fetch(
            "SELECT type, schema_version, id, sealed, convert_to(data, 'UTF8') FROM events"
            " WHERE stream = $1 AND stream_version > $2 ORDER BY stream_version LIMIT $3",
            stream,
            after,
            limit,
        )
        return _kinds(rows)

    def _rows(self, where: str, *values: object) -> Rows:
        """Return the rows of one statement; the callers' own text is in ``values`` only."""
        return self._fetch(f"SELECT {_COLUMNS} FROM events WHERE {where}", *values)  # noqa: S608 - our text

    def _value(self, sql: str, *values: object) -> Any:
        (row,) = self._fetch(sql, *values)
        (value,) = row
        return value


def _kinds(rows: Rows) -> Iterator[tuple[str | bytes, bytes]]:
    """Yield the rows as ``fold_rows`` takes them."""
    for type_, schema_version, id_, sealed, data in rows:
        if sealed is None:
            yield (type_ if schema_version == 1 else f"{type_}{VERSION_MARK}{schema_version}"), data
        else:
            begin = f"{schema_version} {len(type_.encode())} {len(id_.encode())} {type_}{id_}"
            yield begin.encode() + sealed, data
