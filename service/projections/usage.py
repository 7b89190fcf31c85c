"""Accepted requests, as rows: those of the last 30 days, which is as far back as any limit looks."""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime

from eventstore import RecordedEvent, UnknownEventType, Views
from service.domain.access.usage import LONGEST_WINDOW_SECONDS, RequestAccepted, milliseconds
from service.streams import USAGE

PAGE = 20_000
"""Rows in one query."""


class UsageView:
    name = "usage-2"
    tables = """
        CREATE TABLE requests (
            version INTEGER PRIMARY KEY,  -- in the stream of accepted requests
            accepted_at INTEGER NOT NULL,  -- milliseconds since 1970
            api TEXT NOT NULL,
            organization_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            key_id TEXT NOT NULL,
            address TEXT NOT NULL,
            is_reader INTEGER NOT NULL,
            fp TEXT NOT NULL
        ) STRICT;
        CREATE INDEX requests_by_time ON requests (accepted_at);
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        rows = []
        for recorded in events:
            if USAGE.owns(recorded.stream):
                try:
                    event = USAGE.codec.decode(recorded)
                except UnknownEventType:
                    continue
                rows.append(
                    (
                        recorded.stream_version, milliseconds(event.accepted_at), event.api, event.organization_id,
                        event.project_id, event.key_id, event.address, event.is_reader, event.fp,
                    )
                )  # fmt: skip
        if rows:
            db.executemany("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            db.execute(
                "DELETE FROM requests WHERE accepted_at <= (SELECT max(accepted_at) FROM requests) - ?",
                (LONGEST_WINDOW_SECONDS * 1000,),
            )


async def accepted_since(views: Views, since: int, after_version: int) -> tuple[list[RequestAccepted], int]:
    """The next accepted requests after a version of their stream and a time, a page of them, and the version of the
    last; none when there are no more.
    """
    rows = await views.query(
        "SELECT accepted_at, api, organization_id, project_id, key_id, address, is_reader, fp, version FROM requests"
        " WHERE version > ? AND accepted_at > ? ORDER BY version LIMIT ?",
        (after_version, since, PAGE),
    )
    found = [
        RequestAccepted(
            accepted_at=datetime.fromtimestamp(at / 1000, UTC), api=api, organization_id=organization_id,
            project_id=project_id, key_id=key_id, address=address, is_reader=bool(is_reader), fp=fp,
        )
        for at, api, organization_id, project_id, key_id, address, is_reader, fp, _ in rows
    ]  # fmt: skip
    return found, rows[-1][-1] if rows else after_version


async def count_accepted(views: Views, since: datetime) -> dict[str, int]:
    """How many requests each API accepted since a time."""
    rows = await views.query(
        "SELECT api, count(*) FROM requests WHERE accepted_at > ? GROUP BY api", (milliseconds(since),)
    )
    return {row[0]: row[1] for row in rows}
