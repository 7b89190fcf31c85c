"""Outcomes of gaps: which were dismissed, and which questions the pages answer by now.

The rows name questions by their ids. Whether a question is in a gap is found out when it is read, from the words that
the questions have then: so the rows are the same after a rebuild, and an erased question decides nothing.
"""

import sqlite3
from collections.abc import Sequence
from typing import assert_never

from eventstore import RecordedEvent
from service.domain.threads.gaps import GapAnswered, GapDismissed, GapEvent, GapRestored
from service.projections.questions import stamp
from service.streams import GAPS, decoded

FOREVER = 1 << 62
"""A position after all others."""


class GapsView:
    name = "gaps-1"
    tables = """
        CREATE TABLE dismissed_gaps (
            id TEXT PRIMARY KEY,
            organization_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            dismissed_by TEXT NOT NULL,
            dismissed_at TEXT NOT NULL,
            position INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX dismissed_gaps_newest ON dismissed_gaps (organization_id, position);
        CREATE TABLE settled_questions (
            organization_id TEXT NOT NULL,
            gap_id TEXT NOT NULL,
            question_id TEXT NOT NULL,
            until INTEGER NOT NULL,  -- questions in the same words are settled that were asked before this position
            PRIMARY KEY (organization_id, gap_id, question_id, until)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX settled_questions_gap ON settled_questions (gap_id, until);
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for recorded in events:
            for gap_id, event in decoded(GAPS, [recorded]):
                _apply(db, gap_id, event, recorded)


def _apply(db: sqlite3.Connection, gap_id: str, event: GapEvent, recorded: RecordedEvent) -> None:
    match event:
        case GapDismissed() as done:
            db.execute(
                "INSERT OR REPLACE INTO dismissed_gaps VALUES (?, ?, ?, ?, ?, ?)",
                (
                    gap_id, done.organization_id, done.project_id, recorded.metadata.actor, stamp(done.dismissed_at),
                    recorded.position,
                ),
            )  # fmt: skip
            _settle(db, gap_id, done.organization_id, done.questions, FOREVER)
        case GapAnswered() as found:
            _settle(db, gap_id, found.organization_id, found.questions, recorded.position)
        case GapRestored():
            db.execute("DELETE FROM dismissed_gaps WHERE id = ?", (gap_id,))
            db.execute("DELETE FROM settled_questions WHERE gap_id = ? AND until = ?", (gap_id, FOREVER))
        case unknown:
            assert_never(unknown)


def _settle(db: sqlite3.Connection, gap_id: str, organization_id: str, questions: Sequence[str], until: int) -> None:
    db.executemany(
        "INSERT OR IGNORE INTO settled_questions VALUES (?, ?, ?, ?)",
        [(organization_id, gap_id, question, until) for question in questions],
    )
