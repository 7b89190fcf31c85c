"""What people asked the assistant, and what became of it: for those who keep the documentation.

The text of a thread that was erased is gone from here, too; that something was asked, and whether it was answered,
stays.
"""

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_never, cast

from msgspec import Struct

from eventstore import RecordedEvent, Views
from service.domain.events import ERASED
from service.domain.feedback import FeedbackGiven, Rating
from service.domain.question_normalization import wording
from service.domain.threads import (
    MessagePosted,
    ReaderLeft,
    ReaderReturned,
    ReplyCompleted,
    ReplyFailed,
    ReplyStarted,
    ReplyState,
    ReplyStopped,
    ReplyWritten,
    Resolution,
    SourcesFound,
    ThreadEvent,
    ThreadStarted,
)
from service.streams import ERASURES, THREADS, decoded

NAME = "questions-1"


class QuestionsView:
    name = NAME
    tables = """
        CREATE TABLE asked_threads (
            id TEXT PRIMARY KEY,
            project_id TEXT NOT NULL,
            started_at TEXT NOT NULL
        ) STRICT;
        CREATE TABLE asked (
            position INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            thread_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            asked_at TEXT NOT NULL,
            question TEXT NOT NULL,
            wording TEXT NOT NULL,
            page TEXT NOT NULL,
            is_current INTEGER NOT NULL DEFAULT 1,
            reply_id TEXT NOT NULL DEFAULT '',
            resolution TEXT
        ) STRICT;
        CREATE INDEX asked_by_project ON asked (project_id, asked_at);
        CREATE INDEX asked_by_thread ON asked (thread_id);
        CREATE INDEX asked_in_vain ON asked (project_id, wording) WHERE resolution = 'unanswered';
        CREATE TABLE answers (
            id TEXT PRIMARY KEY,
            position INTEGER NOT NULL,
            thread_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            started_at TEXT NOT NULL,
            state TEXT NOT NULL DEFAULT 'active',
            answer TEXT NOT NULL DEFAULT '',
            resolution TEXT,
            model TEXT,
            cited TEXT NOT NULL DEFAULT '[]',
            rating TEXT,
            comment TEXT NOT NULL DEFAULT '',
            rated_at TEXT,
            rated INTEGER
        ) STRICT;
        CREATE INDEX answers_by_thread ON answers (thread_id);
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

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for recorded in events:
            for thread_id, event in decoded(THREADS, [recorded]):
                _apply(db, recorded, thread_id, event)
            for subject, _ in decoded(ERASURES, [recorded]):
                if THREADS.owns(subject):
                    _erase(db, THREADS.entity_id(subject))


def _apply(db: sqlite3.Connection, recorded: RecordedEvent, thread_id: str, event: ThreadEvent) -> None:
    match event:
        case ThreadStarted(project_id=project_id, started_at=at):
            db.execute("INSERT INTO asked_threads VALUES (?, ?, ?)", (thread_id, project_id, stamp(at)))
        case MessagePosted() as asked:
            if asked.replaces:
                _leave_from(db, thread_id, asked.replaces, itself=True)
            db.execute(
                "INSERT INTO asked (position, id, thread_id, project_id, asked_at, question, wording, page)"
                " SELECT ?, ?, id, project_id, ?, ?, ?, ? FROM asked_threads WHERE id = ?",
                (
                    recorded.position, asked.message_id, stamp(asked.posted_at), asked.text,
                    "" if recorded.erased or recorded.damaged else wording(asked.text), asked.current_path, thread_id,
                ),
            )  # fmt: skip
        case ReplyStarted(reply_id=reply_id, message_id=message_id, started_at=at):
            _leave_from(db, thread_id, message_id, itself=False)
            db.execute(
                "INSERT INTO answers (id, position, thread_id, project_id, message_id, started_at)"
                " SELECT ?, ?, id, project_id, ?, ? FROM asked_threads WHERE id = ?",
                (reply_id, recorded.position, message_id, stamp(at), thread_id),
            )
            db.execute("UPDATE asked SET reply_id = ?, resolution = NULL WHERE id = ?", (reply_id, message_id))
        case SourcesFound(reply_id=reply_id, sources=sources):
            db.executemany(
                "INSERT OR REPLACE INTO answer_sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (reply_id, s.number, s.path, s.url, s.title, s.heading, s.start_line, s.end_line, s.commit)
                    for s in sources
                ),
            )
        case ReplyWritten(reply_id=reply_id, text=text):
            before = "''" if recorded.erased else "answer"
            db.execute(f"UPDATE answers SET answer = {before} || ? WHERE id = ?", (text, reply_id))  # noqa: S608 (ours)
        case ReplyCompleted() as done:
            db.execute(
                "UPDATE answers SET state = 'completed', answer = ?, resolution = ?, model = ?, cited = ? WHERE id = ?",
                (done.text, done.resolution, done.model, json.dumps(done.cited), done.reply_id),
            )
            db.execute("UPDATE asked SET resolution = ? WHERE reply_id = ?", (done.resolution, done.reply_id))
        case ReplyStopped(reply_id=reply_id, reason=reason):
            db.execute("UPDATE answers SET state = ? WHERE id = ?", (reason, reply_id))
        case ReplyFailed(reply_id=reply_id):
            db.execute("UPDATE answers SET state = 'failed' WHERE id = ?", (reply_id,))
        case FeedbackGiven() as given:
            db.execute(
                "UPDATE answers SET rating = ?, comment = ?, rated_at = ?, rated = ? WHERE id = ?",
                (given.rating, given.comment, stamp(given.given_at), recorded.position, given.reply_id),
            )
        case ReaderLeft() | ReaderReturned():
            pass
        case unknown:
            assert_never(unknown)


def _leave_from(db: sqlite3.Connection, thread_id: str, message_id: str, *, itself: bool) -> None:
    """The turns after a message, or it as well, no longer count in their thread."""
    db.execute(
        f"UPDATE asked SET is_current = 0 WHERE thread_id = ? AND position {'>=' if itself else '>'}"  # noqa: S608 (ours)
        " (SELECT position FROM asked WHERE id = ?)",
        (thread_id, message_id),
    )


def _erase(db: sqlite3.Connection, thread_id: str) -> None:
    """As the rows are when they are made again from the log without the thread's key."""
    db.execute("UPDATE asked SET question = ?, wording = '', page = ? WHERE thread_id = ?", (ERASED, ERASED, thread_id))
    for column in ("answer", "comment"):
        db.execute(
            f"UPDATE answers SET {column} = ? WHERE thread_id = ? AND {column} != ''",  # noqa: S608  (ours)
            (ERASED, thread_id),
        )


def stamp(at: datetime) -> str:
    """Times as text that sorts as they do."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


class AnswerSource(Struct, frozen=True):
    number: int
    path: str
    url: str
    title: str
    heading: str
    start_line: int
    end_line: int
    commit: str


class FeedbackRow(Struct, frozen=True):
    rating: Rating
    comment: str
    given_at: str


class QuestionRow(Struct, frozen=True):
    """A question, with the newest reply to it."""

    position: int
    id: str
    thread_id: str
    asked_at: str
    question: str
    page: str
    reply_id: str
    started_at: str | None
    state: ReplyState | None
    answer: str
    resolution: Resolution | None
    model: str | None
    feedback: FeedbackRow | None
    sources: tuple[AnswerSource, ...]
    """Those that the answer cites, as it cites them."""


class RatedRow(Struct, frozen=True):
    """A reply that somebody rated."""

    position: int
    reply_id: str
    thread_id: str
    question: str
    answer: str
    page: str
    feedback: FeedbackRow


class ThreadRow(Struct, frozen=True):
    id: str
    started_at: str


class WordingRow(Struct, frozen=True):
    """Questions of one wording that the documentation did not answer."""

    wording: str
    count: int
    last_asked_at: str
    examples: tuple[QuestionRow, ...]


class Period(Struct, frozen=True):
    start: str = ""
    """Inclusive; as ``stamp`` writes it."""
    end: str = "9999"
    """Exclusive."""


EVER = Period()

_QUESTIONS = """
    SELECT asked.position, asked.id, asked.thread_id, asked_at, question, page, reply_id, answers.started_at, state,
        coalesce(answer, '') AS answer, answers.resolution, model, cited, rating, comment, rated_at
    FROM asked LEFT JOIN answers ON answers.id = asked.reply_id
"""


async def list_questions(
    views: Views,
    project_id: str,
    period: Period,
    *,
    before: int,
    limit: int,
    resolution: Resolution | None = None,
) -> list[QuestionRow]:
    """Newest first, from those before a position. Whatever was not answered counts as unanswered here."""
    only = {
        None: "",
        "answered": " AND asked.resolution = 'answered'",
        "unanswered": " AND asked.resolution IS NOT 'answered'",
    }[resolution]
    rows = await views.query(
        f"{_QUESTIONS} WHERE asked.project_id = ? AND asked_at >= ? AND asked_at < ? AND asked.position < ?{only}"
        " ORDER BY asked.position DESC LIMIT ?",
        (project_id, period.start, period.end, before, limit),
    )
    return await _questions(views, rows)


async def thread_with_questions(
    views: Views, project_id: str, thread_id: str
) -> tuple[ThreadRow, list[QuestionRow]] | None:
    """A thread as it stands, by its id or a question's: without turns that were edited away or asked anew."""
    row = await views.query_one(
        "SELECT id, started_at FROM asked_threads WHERE project_id = ?"
        " AND id = coalesce((SELECT thread_id FROM asked WHERE asked.id = ?), ?)",
        (project_id, thread_id, thread_id),
    )
    if row is None:
        return None
    rows = await views.query(
        f"{_QUESTIONS} WHERE asked.thread_id = ? AND is_current ORDER BY asked.position", (row[0],)
    )
    return ThreadRow(*row), await _questions(views, rows)


async def list_unanswered(
    views: Views, project_id: str, period: Period, *, limit: int, offset: int, examples: int
) -> list[WordingRow]:
    """Of what the documentation did not say, the wordings that were asked most; erased questions are left out."""
    groups = await views.query(
        "SELECT wording, count(*), max(asked_at), max(position) FROM asked"
        " WHERE project_id = ? AND resolution = 'unanswered' AND asked_at >= ? AND asked_at < ? AND wording != ''"
        " GROUP BY wording ORDER BY 2 DESC, 4 DESC LIMIT ? OFFSET ?",
        (project_id, period.start, period.end, limit, offset),
    )
    found: list[WordingRow] = []
    for words, count, last, _ in groups:
        rows = await views.query(
            f"{_QUESTIONS} WHERE asked.project_id = ? AND wording = ? AND asked.resolution = 'unanswered'"
            " AND asked_at >= ? AND asked_at < ? ORDER BY asked.position DESC LIMIT ?",
            (project_id, words, period.start, period.end, examples),
        )
        found.append(WordingRow(words, count, last, tuple(await _questions(views, rows))))
    return found


async def list_feedback(
    views: Views, project_id: str, period: Period, *, before: int, limit: int, rating: Rating | None = None
) -> list[RatedRow]:
    """Newest first, from what was given before a position."""
    only = "" if rating is None else " AND rating = ?"
    rows = await views.query(
        "SELECT rated, answers.id, answers.thread_id, coalesce(question, ''), answer, coalesce(page, ''), rating,"  # noqa: S608  (ours)
        " comment, rated_at FROM answers LEFT JOIN asked ON asked.id = answers.message_id"
        f" WHERE answers.project_id = ? AND rated_at >= ? AND rated_at < ? AND rated IS NOT NULL AND rated < ?{only}"
        " ORDER BY rated DESC LIMIT ?",
        (project_id, period.start, period.end, before, *(() if rating is None else (rating,)), limit),
    )
    return [
        RatedRow(row[0], row[1], row[2], row[3], row[4], row[5], FeedbackRow(row[6], row[7], row[8])) for row in rows
    ]


async def _questions(views: Views, rows: Sequence[sqlite3.Row]) -> list[QuestionRow]:
    cited = {str(row["reply_id"]): cast("list[int]", json.loads(row["cited"] or "[]")) for row in rows}
    sources = await _sources(views, [reply_id for reply_id, numbers in cited.items() if numbers])
    found: list[QuestionRow] = []
    for row in rows:
        known = sources.get(row["reply_id"], {})
        found.append(
            QuestionRow(
                position=row["position"],
                id=row["id"],
                thread_id=row["thread_id"],
                asked_at=row["asked_at"],
                question=row["question"],
                page=row["page"],
                reply_id=row["reply_id"],
                started_at=row["started_at"],
                state=row["state"],
                answer=row["answer"],
                resolution=row["resolution"],
                model=row["model"],
                feedback=FeedbackRow(row["rating"], row["comment"], row["rated_at"]) if row["rating"] else None,
                sources=tuple(known[number] for number in cited[row["reply_id"]] if number in known),
            )
        )
    return found


async def _sources(views: Views, replies: Sequence[str]) -> dict[str, dict[int, AnswerSource]]:
    found: dict[str, dict[int, AnswerSource]] = {}
    for at in range(0, len(replies), 500):
        some = replies[at : at + 500]
        rows = await views.query(
            f"SELECT * FROM answer_sources WHERE reply_id IN ({','.join('?' * len(some))})",  # noqa: S608  (marks)
            some,
        )
        for reply_id, *source in rows:
            found.setdefault(reply_id, {})[source[0]] = AnswerSource(*source)
    return found
