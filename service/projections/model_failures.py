"""The last failure of the assistant's model, until a reply of a model is whole again.

The reason is a provider's, and may quote the question: it goes with the thread when that is erased.
"""

import sqlite3
from collections.abc import Sequence

from eventstore import RecordedEvent
from service.domain.texts.times import timestamp
from service.domain.threads.recorded_reply import ModelTrouble, ReplyCompleted, ReplyFailed
from service.streams import ERASURES, THREADS, decoded

EVENTS = frozenset({"reply-completed", "reply-failed"})
BOUND_REACHED = "cost_bound_reached"
"""The code of a model that was not asked, since the day's cost bound is reached: nothing is wrong with it."""
BUILTIN = "builtin/"


class ModelFailuresView:
    name = "model-failures-1"
    tables = """
        CREATE TABLE model_failure (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            thread_id TEXT NOT NULL,
            model TEXT NOT NULL,
            code TEXT NOT NULL,
            reason TEXT NOT NULL,
            failed_at TEXT NOT NULL,
            since TEXT NOT NULL,
            replies INTEGER NOT NULL
        ) STRICT;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for recorded in events:
            if recorded.type in EVENTS:
                for thread_id, event in decoded(THREADS, [recorded]):
                    _apply(db, recorded, thread_id, event)
            for subject, _ in decoded(ERASURES, [recorded]):
                if THREADS.owns(subject):
                    thread_id = THREADS.entity_id(subject)
                    db.execute("UPDATE model_failure SET reason = '' WHERE id = 1 AND thread_id = ?", (thread_id,))


def _apply(db: sqlite3.Connection, recorded: RecordedEvent, thread_id: str, event: object) -> None:
    match event:
        case ReplyCompleted(trouble=ModelTrouble() as trouble) | ReplyFailed(trouble=ModelTrouble() as trouble) if (
            trouble.code != BOUND_REACHED
        ):
            at = timestamp(recorded.recorded_at)
            db.execute(
                "INSERT INTO model_failure VALUES (1, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (id) DO UPDATE SET"
                " thread_id = excluded.thread_id, code = excluded.code, reason = excluded.reason,"
                " failed_at = excluded.failed_at, replies = iif(model = excluded.model, replies + 1, 1),"
                " since = iif(model = excluded.model, since, excluded.since), model = excluded.model",
                (thread_id, trouble.model, trouble.code, trouble.reason, at, at),
            )
        case ReplyCompleted(failure="", model=model) if not model.startswith(BUILTIN):
            db.execute("DELETE FROM model_failure WHERE id = 1")
