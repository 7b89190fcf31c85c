"""Threads and their replies, as rows: what is under way, and how each reply ended. No text is kept here."""

import sqlite3
from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from eventstore import RecordedEvent, Views
from service.domain.threads import (
    MessagePosted,
    ReplyCompleted,
    ReplyFailed,
    ReplyStarted,
    ReplyStopped,
    ReplyWritten,
    SourcesFound,
    ThreadStarted,
)
from service.streams import THREADS, decoded


class ActiveReply(Struct, frozen=True):
    thread_id: str
    reply_id: str
    instance: str


class ThreadsView:
    name = "threads-1"
    tables = """
        CREATE TABLE threads (
            id TEXT PRIMARY KEY,
            organization_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            domain TEXT NOT NULL,
            messages INTEGER NOT NULL DEFAULT 0,
            started_at TEXT NOT NULL
        ) STRICT;
        CREATE TABLE replies (
            id TEXT PRIMARY KEY,
            thread_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            instance TEXT NOT NULL,
            state TEXT NOT NULL DEFAULT 'active',
            resolution TEXT,
            model TEXT,
            started_at TEXT NOT NULL
        ) STRICT;
        CREATE INDEX replies_active ON replies (state) WHERE state = 'active';
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for thread_id, event in decoded(THREADS, events):
            match event:
                case ThreadStarted() as new:
                    db.execute(
                        "INSERT INTO threads (id, organization_id, project_id, domain, started_at)"
                        " VALUES (?, ?, ?, ?, ?)",
                        (thread_id, new.organization_id, new.project_id, new.domain, new.started_at.isoformat()),
                    )
                case MessagePosted():
                    db.execute("UPDATE threads SET messages = messages + 1 WHERE id = ?", (thread_id,))
                case ReplyStarted() as reply:
                    db.execute(
                        "INSERT INTO replies (id, thread_id, message_id, instance, started_at) VALUES (?, ?, ?, ?, ?)",
                        (
                            reply.reply_id, thread_id, reply.message_id, reply.instance, reply.started_at.isoformat()
                        ),
                    )  # fmt: skip
                case ReplyCompleted() as done:
                    db.execute(
                        "UPDATE replies SET state = 'completed', resolution = ?, model = ? WHERE id = ?",
                        (done.resolution, done.model, done.reply_id),
                    )
                case ReplyStopped(reply_id=reply_id, reason=reason):
                    db.execute("UPDATE replies SET state = ? WHERE id = ?", (reason, reply_id))
                case ReplyFailed(reply_id=reply_id):
                    db.execute("UPDATE replies SET state = 'failed' WHERE id = ?", (reply_id,))
                case SourcesFound() | ReplyWritten():
                    pass
                case unknown:
                    assert_never(unknown)


async def active_replies(views: Views) -> list[ActiveReply]:
    """Replies that were begun and have not ended, oldest first."""
    rows = await views.query(
        "SELECT thread_id, id, instance FROM replies WHERE state = 'active' ORDER BY started_at, id", ()
    )
    return [ActiveReply(*row) for row in rows]
