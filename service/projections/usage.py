"""Accepted requests, as rows: those of the last 30 days and more, as far back as any limit looks; how many there were
on each day of UTC; and how many questions of readers each site had in each hour of the last days.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from datetime import UTC

from eventstore import RecordedEvent, UnknownEventType
from service.domain.access.proof_of_work import HOURS
from service.domain.access.usage import LONGEST_WINDOW_SECONDS, milliseconds
from service.streams import USAGE, decoded

FORGETS_EVERY, NEWEST = 1_000, 10_000
"""Requests after which old rows are removed, and the last ones, which stay and say what is old."""


class UsageView:
    name = "usage-4"
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

    def __init__(self, *, every: int = FORGETS_EVERY, newest: int = NEWEST) -> None:
        self._every, self._newest = every, newest

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
            if rows[-1][0] // self._every != (rows[0][0] - 1) // self._every:
                # Before all of the last ones: the clock may be ahead for some.
                db.execute(
                    "DELETE FROM requests WHERE accepted_at <= (SELECT min(accepted_at) FROM (SELECT accepted_at"
                    " FROM requests ORDER BY version DESC LIMIT ?)) - ?",
                    (self._newest, LONGEST_WINDOW_SECONDS * 1000),
                )


class UsageDaysView:
    name = "usage-days-1"
    tables = """
        CREATE TABLE usage_days (
            organization_id TEXT NOT NULL,
            day TEXT NOT NULL,
            api TEXT NOT NULL,
            project_id TEXT NOT NULL,
            key_id TEXT NOT NULL,  -- empty for requests without a key
            requests INTEGER NOT NULL,
            PRIMARY KEY (organization_id, day, api, project_id, key_id)
        ) STRICT, WITHOUT ROWID;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        counts: Counter[tuple[str, str, str, str, str]] = Counter(
            (one.organization_id, f"{one.accepted_at.astimezone(UTC):%Y-%m-%d}", one.api, one.project_id, one.key_id)
            for _, one in decoded(USAGE, events)
            if one.api in ("assistant", "agent")
        )
        db.executemany(
            "INSERT INTO usage_days VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests",
            [(*place, count) for place, count in counts.items()],
        )


class ReaderHoursView:
    name = "reader-hours-1"
    tables = """
        CREATE TABLE reader_hours (
            project_id TEXT NOT NULL,
            hour INTEGER NOT NULL,  -- since 1970
            questions INTEGER NOT NULL,
            PRIMARY KEY (project_id, hour)
        ) STRICT, WITHOUT ROWID;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        counts = Counter(
            (one.project_id, milliseconds(one.accepted_at) // 3_600_000)
            for _, one in decoded(USAGE, events)
            if one.is_reader
        )
        db.executemany(
            "INSERT INTO reader_hours VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET questions = questions + excluded.questions",
            [(*place, count) for place, count in counts.items()],
        )
        db.executemany(
            "DELETE FROM reader_hours WHERE project_id = ? AND hour < ?",
            [(project_id, hour - HOURS - 1) for project_id, hour in counts],
        )
