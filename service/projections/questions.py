"""The questions that the assistant was asked, and their outcomes: for the authors of the documentation.

A question has a resolution only when a whole answer to it was given: one whose reply or model failed, was filtered,
stopped or interrupted shows no gap in the documentation. Neither does an ``unsure`` one, which has that for its
resolution here.

The text of an erased thread is gone from here, too. What stays: that there was a question, and whether it was answered.
"""

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_never

import msgspec

from eventstore import RecordedEvent
from service.domain.events import ERASED
from service.domain.threads.checks import ReplyChecks
from service.domain.threads.feedback import FeedbackGiven
from service.domain.threads.question_normalization import wording
from service.domain.threads.question_words import word_key, words_of
from service.domain.threads.recorded_reply import (
    CallEnd,
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
from service.projections import question_days
from service.streams import ERASURES, THREADS, decoded

NAME = "questions-8"

FILTERED = ("content_filter", "A content filter ended the answer.")
"""Code and sentence for such an answer. It has no resolution: nothing shows whether the pages answer the question."""
QUOTED = "The model failed, and passages stand in for its answer."
"""The sentence for one that has no resolution for this reason."""


class QuestionsView:
    name = NAME
    tables = (
        """
        CREATE TABLE asked_threads (
            id TEXT PRIMARY KEY,
            organization_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            domain TEXT NOT NULL,
            started_at TEXT NOT NULL
        ) STRICT;
        CREATE TABLE asked (
            position INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            thread_id TEXT NOT NULL,
            organization_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            asked_at TEXT NOT NULL,
            question TEXT NOT NULL,
            wording TEXT NOT NULL,
            page TEXT NOT NULL,
            is_current INTEGER NOT NULL DEFAULT 1,
            reply_id TEXT NOT NULL DEFAULT '',
            caller TEXT NOT NULL DEFAULT '',
            state TEXT NOT NULL DEFAULT '',
            resolution TEXT,
            rating TEXT,
            outcome TEXT NOT NULL GENERATED ALWAYS AS
                (coalesce(resolution, CASE WHEN state IN ('', 'active') THEN '' ELSE 'failed' END)) VIRTUAL
        ) STRICT;
        CREATE INDEX asked_by_project ON asked (project_id, asked_at);
        CREATE INDEX asked_newest ON asked (project_id, position, asked_at);
        CREATE INDEX asked_in_organization
            ON asked (organization_id, position, asked_at, project_id, outcome, rating, caller);
        CREATE INDEX asked_by_outcome
            ON asked (organization_id, outcome, position, asked_at, project_id, caller);
        CREATE INDEX asked_by_rating
            ON asked (organization_id, rating, position, asked_at, project_id, outcome, caller)
            WHERE rating IS NOT NULL;
        CREATE INDEX asked_by_thread ON asked (thread_id);
        CREATE INDEX asked_unanswered ON asked (project_id, wording) WHERE resolution = 'unanswered';
        CREATE INDEX asked_gaps ON asked (organization_id, asked_at, project_id, wording, position)
            WHERE resolution = 'unanswered';
        CREATE INDEX asked_answered ON asked (project_id, wording, position) WHERE resolution = 'answered';
        CREATE TABLE asked_words (
            word INTEGER NOT NULL,
            position INTEGER NOT NULL,
            PRIMARY KEY (word, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE answers (
            id TEXT PRIMARY KEY,
            position INTEGER NOT NULL,
            thread_id TEXT NOT NULL,
            organization_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            asked_by TEXT NOT NULL,
            started_at TEXT NOT NULL,
            state TEXT NOT NULL DEFAULT 'active',
            answer TEXT NOT NULL DEFAULT '',
            resolution TEXT,
            failure TEXT,
            failure_message TEXT,
            uncited INTEGER NOT NULL DEFAULT 0,
            supported INTEGER,
            partly INTEGER,
            unsupported INTEGER,
            marked TEXT NOT NULL DEFAULT '[]',
            model TEXT,
            input_tokens INTEGER NOT NULL DEFAULT 0,
            output_tokens INTEGER NOT NULL DEFAULT 0,
            cost_usd REAL,
            cited TEXT NOT NULL DEFAULT '[]',
            rating TEXT,
            comment TEXT NOT NULL DEFAULT '',
            rated_at TEXT,
            rated INTEGER
        ) STRICT;
        CREATE INDEX answers_by_thread ON answers (thread_id);
        CREATE INDEX answers_by_checks ON answers (project_id, started_at) WHERE supported IS NOT NULL;
        CREATE INDEX answers_by_rating ON answers (project_id, rated) WHERE rated IS NOT NULL;
        CREATE TABLE answer_sources (
            reply_id TEXT NOT NULL,
            number INTEGER NOT NULL,
            path TEXT NOT NULL,
            url TEXT NOT NULL,
            title TEXT NOT NULL,
            heading TEXT NOT NULL,
            start_line INTEGER NOT NULL,
            end_line INTEGER NOT NULL,
            commit_id TEXT NOT NULL,
            PRIMARY KEY (reply_id, number)
        ) STRICT, WITHOUT ROWID;
        """
        + question_days.TABLES
    )

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for recorded in events:
            for thread_id, event in decoded(THREADS, [recorded]):
                _apply(db, recorded, thread_id, event)
            for subject, _ in decoded(ERASURES, [recorded]):
                if THREADS.owns(subject):
                    _erase(db, THREADS.entity_id(subject))


def _apply(db: sqlite3.Connection, recorded: RecordedEvent, thread_id: str, event: ThreadEvent) -> None:
    match event:
        case ThreadStarted() as new:
            db.execute(
                "INSERT INTO asked_threads VALUES (?, ?, ?, ?, ?)",
                (thread_id, new.organization_id, new.project_id, new.domain, stamp(new.started_at)),
            )
        case MessagePosted() as asked:
            if asked.replaces:
                _leave_from(db, thread_id, asked.replaces, itself=True)
            db.execute(
                "INSERT INTO asked (position, id, thread_id, organization_id, project_id, asked_at, question, wording,"
                " page) SELECT ?, ?, id, organization_id, project_id, ?, ?, ?, ? FROM asked_threads WHERE id = ?",
                (
                    recorded.position, asked.message_id, stamp(asked.posted_at), asked.text,
                    "" if recorded.erased or recorded.damaged else wording(asked.text), asked.current_path, thread_id,
                ),
            )  # fmt: skip
            if not (recorded.erased or recorded.damaged):
                _add_words(db, recorded.position)
        case ReplyStarted() as begun:
            _leave_from(db, thread_id, begun.message_id, itself=False)
            db.execute(
                "INSERT INTO answers (id, position, thread_id, organization_id, project_id, message_id, asked_by,"
                " started_at) SELECT ?, ?, id, organization_id, project_id, ?, ?, ? FROM asked_threads WHERE id = ?",
                (
                    begun.reply_id, recorded.position, begun.message_id, recorded.metadata.actor,
                    stamp(begun.started_at), thread_id,
                ),
            )  # fmt: skip
            db.execute(
                "UPDATE asked SET reply_id = ?, caller = ?, state = 'active', resolution = NULL, rating = NULL"
                " WHERE id = ?",
                (begun.reply_id, begun.caller, begun.message_id),
            )
        case SourcesFound(reply_id=reply_id, sources=sources):
            db.executemany(
                "INSERT OR REPLACE INTO answer_sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (reply_id, s.number, s.path, s.url, s.title, s.heading, s.start_line, s.end_line, s.commit)
                    for s in sources
                ),
            )
        case ReplyWritten(reply_id=reply_id, text=text, call=call):
            before = "''" if recorded.erased else "answer"
            db.execute(f"UPDATE answers SET answer = {before} || ? WHERE id = ?", (text, reply_id))  # noqa: S608 (ours)
            if call is not None:
                _add_call(db, reply_id, call)
        case ReplyCompleted():
            _complete(db, event)
        case ReplyStopped(reply_id=reply_id, reason=reason):
            _end(db, reply_id, reason)
        case ReplyFailed(reply_id=reply_id, code=code, message=message):
            db.execute("UPDATE answers SET failure = ?, failure_message = ? WHERE id = ?", (code, message, reply_id))
            _end(db, reply_id, "failed")
        case FeedbackGiven() as given:
            db.execute(
                "UPDATE answers SET rating = ?, comment = ?, rated_at = ?, rated = ? WHERE id = ?",
                (given.rating, given.comment, stamp(given.given_at), recorded.position, given.reply_id),
            )
            _change_question(db, given.reply_id, rating=given.rating)
        case ReplyResumed() | ReaderLeft() | ReaderReturned():
            pass
        case unknown:
            assert_never(unknown)


def _add_words(db: sqlite3.Connection, position: int) -> None:
    """Let a question be found by its words."""
    for row in db.execute("SELECT organization_id, question FROM asked WHERE position = ?", (position,)).fetchall():
        words = ((word_key(row[0], word), position) for word in words_of(row[1]))
        db.executemany("INSERT OR IGNORE INTO asked_words VALUES (?, ?)", words)


def _remove_words(db: sqlite3.Connection, thread_id: str) -> None:
    """Remove the words of a thread's questions, while their text is there."""
    sql = "SELECT position, organization_id, question FROM asked WHERE thread_id = ?"
    for position, organization_id, question in db.execute(sql, (thread_id,)).fetchall():
        words = ((word_key(organization_id, word), position) for word in words_of(question))
        db.executemany("DELETE FROM asked_words WHERE word = ? AND position = ?", words)


def _add_call(db: sqlite3.Connection, reply_id: str, call: CallEnd) -> None:
    """Add a call's tokens and cost, for a reply that may not be completed."""
    usage = call.usage
    db.execute(
        "UPDATE answers SET model = ?, input_tokens = input_tokens + ?, output_tokens = output_tokens + ?,"
        " cost_usd = CASE WHEN ? IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0) + ? END WHERE id = ?",
        (call.model, usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.cost_usd, reply_id),
    )


def _complete(db: sqlite3.Connection, done: ReplyCompleted) -> None:
    failure: tuple[str | None, str | None] = (None, None)
    if done.finish_reason == "content_filter":
        failure = FILTERED
    elif done.finish_reason == "error":
        failure = (done.failure, QUOTED)
    resolution = done.outcome if failure[0] is None else None
    db.execute(
        "UPDATE answers SET answer = ?, resolution = ?, failure = ?, failure_message = ?, uncited = ?, model = ?,"
        " cited = ?, supported = ?, partly = ?, unsupported = ?, marked = ?, input_tokens = ?, output_tokens = ?,"
        " cost_usd = ? WHERE id = ?",
        (
            done.text, resolution, *failure, done.uncited, done.model,
            json.dumps(done.cited), *_checks(done.checks), done.usage.input_tokens, done.usage.output_tokens,
            done.usage.cost_usd, done.reply_id,
        ),
    )  # fmt: skip
    _end(db, done.reply_id, "failed" if done.finish_reason == "error" else "completed", resolution)
    question_days.count_citations(db, done.reply_id)
    if done.first_text_at is not None:
        question_days.count_first_text(db, done.reply_id, done.first_text_at)


def _end(db: sqlite3.Connection, reply_id: str, state: str, resolution: str | None = None) -> None:
    db.execute("UPDATE answers SET state = ? WHERE id = ?", (state, reply_id))
    _change_question(db, reply_id, state=state, resolution=resolution)
    question_days.count_reply(db, reply_id)


def _change_question(db: sqlite3.Connection, reply_id: str, **changed: str | None) -> None:
    """Change these columns of the reply's question, if it has no newer reply."""
    db.execute(  # by the message's id, which has an index: without one each reply reads all questions
        f"UPDATE asked SET {', '.join(f'{name} = ?' for name in changed)}"  # noqa: S608  (our own names)
        " WHERE id = (SELECT message_id FROM answers WHERE id = ?) AND reply_id = ?",
        (*changed.values(), reply_id, reply_id),
    )


def _leave_from(db: sqlite3.Connection, thread_id: str, message_id: str, *, itself: bool) -> None:
    """The turns after a message, or it as well, no longer count in their thread."""
    db.execute(
        f"UPDATE asked SET is_current = 0 WHERE thread_id = ? AND position {'>=' if itself else '>'}"  # noqa: S608 (ours)
        " (SELECT position FROM asked WHERE id = ?)",
        (thread_id, message_id),
    )


def _checks(checks: ReplyChecks | None) -> tuple[int | None, int | None, int | None, str]:
    if checks is None:
        return None, None, None, "[]"
    counts = checks.counts
    return counts.supported, counts.partly, counts.unsupported, msgspec.json.encode(checks.sentences).decode()


def _erase(db: sqlite3.Connection, thread_id: str) -> None:
    """Change the rows to what a rebuild from the log makes of them without the thread's key."""
    _remove_words(db, thread_id)
    db.execute("UPDATE asked SET question = ?, wording = '', page = ? WHERE thread_id = ?", (ERASED, ERASED, thread_id))
    for column in ("answer", "comment"):
        db.execute(
            f"UPDATE answers SET {column} = ? WHERE thread_id = ? AND {column} != ''",  # noqa: S608  (ours)
            (ERASED, thread_id),
        )
    db.execute(
        "UPDATE answers SET supported = NULL, partly = NULL, unsupported = NULL, marked = '[]' WHERE thread_id = ?",
        (thread_id,),
    )


def stamp(at: datetime) -> str:
    """Return a time as text that sorts as times do."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")
