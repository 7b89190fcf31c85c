"""Accepted requests, as rows: those of the last 30 days, which is as far back as any limit looks."""

import sqlite3
from collections.abc import Sequence

from eventstore import RecordedEvent, UnknownEventType
from service.domain.access.usage import LONGEST_WINDOW_SECONDS, milliseconds
from service.streams import USAGE


class UsageView:
    name = "usage-3"
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
            fp TEXT NOT NULL,
            is_public INTEGER NOT NULL
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
                        event.is_public,
                    )
                )  # fmt: skip
        if rows:
            db.executemany("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            db.execute(
                "DELETE FROM requests WHERE accepted_at <= (SELECT max(accepted_at) FROM requests) - ?",
                (LONGEST_WINDOW_SECONDS * 1000,),
            )
