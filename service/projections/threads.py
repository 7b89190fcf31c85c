"""Threads and their replies, as rows: what is under way, how each reply ended, and of which chat it is.

No text is kept here; the name that a client gave its chat only as a digest, until the thread is erased.
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from typing import assert_never

from eventstore import RecordedEvent
from service.domain.events import GONE
from service.domain.threads.feedback import FeedbackGiven
from service.domain.threads.recorded_reply import (
    ReaderLeft,
    ReaderReturned,
    ReplyCompleted,
    ReplyFailed,
    ReplyResumed,
    ReplyStarted,
    ReplyStopped,
    ReplyWritten,
    SourcesFound,
)
from service.domain.threads.threads import MessagePosted, ThreadEvent, ThreadStarted
from service.streams import ERASURES, THREADS, decoded

_UNUSED = THREADS.codec.tags_of(SourcesFound, ReplyWritten, ReaderLeft, ReaderReturned, FeedbackGiven)
"""The text of replies among them: they change no row, and are neither joined nor decoded."""


class ThreadsView:
    name = "threads-2"
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
            started_at TEXT NOT NULL,
            position INTEGER NOT NULL,
            chat TEXT,
            asker TEXT
        ) STRICT;
        CREATE INDEX replies_by_chat ON replies (chat, position) WHERE chat IS NOT NULL;
        CREATE INDEX replies_by_thread ON replies (thread_id);
        CREATE INDEX replies_active ON replies (state) WHERE state = 'active';
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for recorded in events:
            if recorded.type in _UNUSED:
                continue
            for thread_id, event in decoded(THREADS, [recorded]):
                self._apply(db, thread_id, event, recorded.position)
            for subject, _ in decoded(ERASURES, [recorded]):
                if subject.startswith(f"{THREADS.category}-"):
                    thread_id = THREADS.entity_id(subject)
                    db.execute("UPDATE replies SET chat = NULL, asker = NULL WHERE thread_id = ?", (thread_id,))

    def _apply(self, db: sqlite3.Connection, thread_id: str, event: ThreadEvent, position: int) -> None:
        match event:
            case ThreadStarted() as new:
                db.execute(
                    "INSERT INTO threads (id, organization_id, project_id, domain, started_at) VALUES (?, ?, ?, ?, ?)",
                    (thread_id, new.organization_id, new.project_id, new.domain, new.started_at.isoformat()),
                )
            case MessagePosted():
                db.execute("UPDATE threads SET messages = messages + 1 WHERE id = ?", (thread_id,))
            case ReplyStarted() as reply:
                db.execute(
                    "INSERT INTO replies (id, thread_id, message_id, instance, started_at, position, chat, asker)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        reply.reply_id, thread_id, reply.message_id, reply.instance, reply.started_at.isoformat(),
                        position, digest_of_chat(reply.chat_id), _unless_gone(reply.asker),
                    ),
                )  # fmt: skip
            case ReplyCompleted() as done:
                db.execute(
                    "UPDATE replies SET state = 'completed', resolution = ?, model = ? WHERE id = ?",
                    (done.resolution, done.model, done.reply_id),
                )
            case ReplyStopped(reply_id=reply_id, reason=reason):
                db.execute("UPDATE replies SET state = ? WHERE id = ?", (reason, reply_id))
            case ReplyResumed(reply_id=reply_id, instance=instance):
                db.execute("UPDATE replies SET instance = ? WHERE id = ?", (instance, reply_id))
            case ReplyFailed(reply_id=reply_id):
                db.execute("UPDATE replies SET state = 'failed' WHERE id = ?", (reply_id,))
            case SourcesFound() | ReplyWritten() | ReaderLeft() | ReaderReturned() | FeedbackGiven():
                pass
            case unknown:
                assert_never(unknown)


def _unless_gone(text: str) -> str | None:
    return text if text and text not in GONE else None


def digest_of_chat(chat_id: str) -> str | None:
    known = _unless_gone(chat_id)
    return None if known is None else hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()
