"""Questions to a project's assistant, and readers' ratings of the replies.

Lists give each view with its place, which is the cursor of what follows it.
"""

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct

from eventstore import EventStore, Views
from service.domain.errors import NotFound
from service.domain.texts.times import timestamp_from
from service.domain.threads.checks import CheckCounts, ReplyChecks, SentenceCheck
from service.domain.threads.feedback import Rating
from service.domain.threads.question_words import word_key, words_of
from service.domain.threads.recorded_reply import Caller, Outcome, Resolution
from service.projections.gaps import GapsView
from service.projections.questions import NAME, stamp
from service.views.readers.questions import (
    AnswerChecksView,
    ChecksSummaryView,
    ConversationView,
    DoubtfulAnswerView,
    ExampleView,
    FeedbackView,
    RatedView,
    ReplyFailureView,
    SourceView,
    TranscriptMessage,
    TranscriptView,
    UnansweredView,
    checks_view,
)

V = TypeVar("V")
Placed: TypeAlias = list[tuple[int, V]]

FIRST = (1 << 62) - 1
"""A place before the newest."""

MAX_LOOKED_AT = 10_000
"""Questions with a word that one search looks at: about 20 ms."""
MAX_WORDS_SOUGHT = 10

TURNS_AT_ONCE = 200
"""Turns of a transcript whose citations are read at once: about 1 ms of the event loop."""


class Period(Struct, frozen=True):
    """From one time, inclusive, to another, exclusive, as the tables write times."""

    start: str = ""
    end: str = "9999"

    @classmethod
    def between(cls, start: datetime | None, end: datetime | None) -> "Period":
        return cls("" if start is None else stamp(start), "9999" if end is None else stamp(end))


_QUESTIONS = """
    SELECT asked.position, asked.id, asked.thread_id, asked_at, question, page, reply_id, answers.started_at,
        answers.state, coalesce(answer, '') AS answer, answers.resolution, asked.outcome, failure, failure_message,
        coalesce(uncited, 0) AS uncited, supported, partly, unsupported, marked, model, cited,
        answers.rating, comment, rated_at, asked.caller, asked.project_id
    FROM asked LEFT JOIN answers ON answers.id = asked.reply_id
"""


async def catch_up_questions(store: EventStore, views: Views) -> None:
    """Wait until what was asked or rated a moment ago is found. Raises TimeoutError, StoreUnavailable."""
    await views.wait_for(await store.head(), projections=(NAME, GapsView.name))


async def list_questions(
    views: Views,
    project_id: str,
    period: Period,
    *,
    before: int,
    limit: int,
    resolution: Resolution | None = None,
) -> Placed[ConversationView]:
    """Return the newest first, from those before a place.

    With a resolution, questions whose reply failed, was filtered, stopped or interrupted, or is under way, are left
    out.
    """
    only = "" if resolution is None else f" AND asked.resolution {'=' if resolution == 'answered' else '!='} 'answered'"
    rows = await views.query(
        f"{_QUESTIONS} WHERE asked.project_id = ? AND asked_at >= ? AND asked_at < ? AND asked.position < ?{only}"
        " ORDER BY asked.position DESC LIMIT ?",
        (project_id, period.start, period.end, before, limit),
    )
    sources = await _cited(views, rows)
    return [(row["position"], _conversation(row, sources)) for row in rows]


class QuestionFilter(Struct, frozen=True):
    """Which questions are listed; None for all."""

    outcome: Outcome | None = None
    rating: Rating | None = None
    caller: Caller | None = None
    project_id: str | None = None
    text: str | None = None
    """Those with all of its words."""
    looks_at: int = MAX_LOOKED_AT
    """Questions with the rarest of the words that are looked at for a page."""


class QuestionsPage(Struct, frozen=True):
    """Questions, the newest first."""

    questions: Sequence[ConversationView]
    next: int | None
    """The place before which the next ones are; None at the end."""


async def questions_page(
    views: Views, organization_id: str, period: Period, chosen: QuestionFilter, *, before: int, limit: int
) -> QuestionsPage:
    """Return an organization's questions from those before a place.

    With a text there may be fewer than ``limit`` on a page that is not the last, since not all are looked at.
    """
    conditions, given = ["organization_id = ?", "asked_at >= ?", "asked_at < ?"], [organization_id]
    given += [period.start, period.end]
    for column in ("outcome", "rating", "caller", "project_id"):
        value = getattr(chosen, column)
        if value is not None:
            conditions.append(f"{column} = ?")
            given.append(value)
    where, end = " AND ".join(conditions), None
    if chosen.text is None:
        found = f"SELECT position FROM asked INDEXED BY {_index(chosen)} WHERE {where} AND position < ?"  # noqa: S608  (ours)
        parameters: tuple[object, ...] = (*given, before)
    else:
        words = [word_key(organization_id, word) for word in words_of(chosen.text)]
        if not words or len(words) > MAX_WORDS_SOUGHT:
            return QuestionsPage((), None)
        rarest, end = await _rarest(views, words, before, chosen.looks_at)
        others = [word for word in words if word != rarest]
        has_word = "AND EXISTS (SELECT 1 FROM asked_words other WHERE other.word = ? AND other.position = w.position)"
        found = (
            f"SELECT w.position FROM asked_words w CROSS JOIN asked ON asked.position = w.position WHERE {where}"  # noqa: S608  (ours)
            f" AND w.word = ? AND w.position < ? AND w.position >= ? {' '.join([has_word] * len(others))}"
        )
        parameters = (*given, rarest, before, end or 0, *others)
    rows = await views.query(
        f"{_QUESTIONS} WHERE asked.position IN (SELECT position FROM ({found} ORDER BY 1 DESC LIMIT ?))"  # noqa: S608  (ours)
        " ORDER BY asked.position DESC",
        (*parameters, limit + 1),
    )
    sources = await _cited(views, rows[:limit])
    shown = [_conversation(row, sources) for row in rows[:limit]]
    return QuestionsPage(shown, rows[limit - 1]["position"] if len(rows) > limit else end)


async def _rarest(views: Views, words: Sequence[int], before: int, looks_at: int) -> tuple[int, int | None]:
    """Return the word that the fewest questions have, and the place of the last of them that is looked at; None where
    that is the first question.
    """
    counts: dict[int, int] = {}
    of_word = "FROM asked_words WHERE word = ? AND position < ?"
    for word in words:
        row = await views.query_one(
            f"SELECT count(*) FROM (SELECT 1 {of_word} LIMIT ?)",  # noqa: S608  (ours)
            (word, before, looks_at + 1),
        )
        counts[word] = 0 if row is None else row[0]
    rarest = min(words, key=counts.__getitem__)
    if counts[rarest] <= looks_at:
        return rarest, None
    row = await views.query_one(
        f"SELECT position {of_word} ORDER BY position DESC LIMIT 1 OFFSET ?",
        (rarest, before, looks_at - 1),
    )
    return rarest, None if row is None else row[0]


def _index(chosen: QuestionFilter) -> str:
    """Return the index that has the fewest rows of other questions. Each has all columns of the filter."""
    if chosen.rating is not None:
        return "asked_by_rating"
    return "asked_in_organization" if chosen.outcome in (None, "answered") else "asked_by_outcome"


async def project_of_thread(views: Views, organization_id: str, thread_id: str) -> str | None:
    """Return the project of an organization's thread, by its id or a question's."""
    row = await views.query_one(
        "SELECT project_id FROM asked_threads WHERE organization_id = ?"
        " AND id = coalesce((SELECT thread_id FROM asked WHERE asked.id = ?), ?)",
        (organization_id, thread_id, thread_id),
    )
    return None if row is None else str(row[0])


def thread_not_found() -> NotFound:
    """Return the error for a thread that does not exist, or is not the caller's to read."""
    return NotFound("Thread not found. List the questions to see their threads.", code="thread_not_found")


async def read_transcript(views: Views, project_id: str, thread_id: str) -> TranscriptView | None:
    """Return a thread as it is now, by its id or a question's: without turns that were edited or asked again."""
    thread = await _thread(views, project_id, thread_id)
    if thread is None:
        return None
    rows = await views.query(
        f"{_QUESTIONS} WHERE asked.thread_id = ? AND is_current ORDER BY asked.position", (thread["id"],)
    )
    return await _transcript(views, thread, rows)


class TranscriptPage(Struct, frozen=True):
    """Some turns of a thread, in their order."""

    transcript: TranscriptView
    next: int | None
    """The place before which the earlier ones are; None at the beginning."""


async def transcript_page(
    views: Views, project_id: str, thread_id: str, *, before: int, limit: int, most_characters: int
) -> TranscriptPage | None:
    """Return the last of a thread's turns before a place: those whose words fit, and at least one."""
    thread = await _thread(views, project_id, thread_id)
    if thread is None:
        return None
    rows = await views.query(
        f"{_QUESTIONS} WHERE asked.thread_id = ? AND is_current AND asked.position < ?"
        " ORDER BY asked.position DESC LIMIT ?",
        (thread["id"], before, limit + 1),
    )
    shown: list[sqlite3.Row] = []
    for row in rows[:limit]:
        most_characters -= len(row["question"]) + len(row["answer"])
        if shown and most_characters < 0:
            break
        shown.append(row)
    transcript = await _transcript(views, thread, shown[::-1])
    return TranscriptPage(transcript, shown[-1]["position"] if len(shown) < len(rows) else None)


async def _thread(views: Views, project_id: str, thread_id: str) -> sqlite3.Row | None:
    return await views.query_one(
        "SELECT id, started_at FROM asked_threads WHERE project_id = ?"
        " AND id = coalesce((SELECT thread_id FROM asked WHERE asked.id = ?), ?)",
        (project_id, thread_id, thread_id),
    )


async def _transcript(views: Views, thread: sqlite3.Row, rows: Sequence[sqlite3.Row]) -> TranscriptView:
    messages: list[TranscriptMessage] = []
    for at in range(0, len(rows), TURNS_AT_ONCE):
        some = rows[at : at + TURNS_AT_ONCE]
        sources = await _cited(views, some)
        messages += await asyncio.to_thread(_messages, some, sources)
    return TranscriptView(thread["id"], timestamp_from(thread["started_at"]), tuple(messages))


async def list_unanswered(
    views: Views, project_id: str, period: Period, *, limit: int, offset: int, examples: int
) -> Placed[UnansweredView]:
    """Return the wordings that were asked most and not answered; erased questions are left out."""
    groups = await views.query(
        "SELECT wording, count(*), max(asked_at), max(position) FROM asked"
        " WHERE project_id = ? AND resolution = 'unanswered' AND asked_at >= ? AND asked_at < ? AND wording != ''"
        " GROUP BY wording ORDER BY 2 DESC, 4 DESC LIMIT ? OFFSET ?",
        (project_id, period.start, period.end, limit, offset),
    )
    found: Placed[UnansweredView] = []
    for place, (words, count, last, _) in enumerate(groups, start=offset + 1):
        rows = await views.query(
            f"{_QUESTIONS} WHERE asked.project_id = ? AND wording = ? AND asked.resolution = 'unanswered'"
            " AND asked_at >= ? AND asked_at < ? ORDER BY asked.position DESC LIMIT ?",
            (project_id, words, period.start, period.end, examples),
        )
        shown = tuple(
            ExampleView(row["id"], row["thread_id"], row["question"], timestamp_from(row["asked_at"])) for row in rows
        )
        found.append((place, UnansweredView(words, count, timestamp_from(last), shown)))
    return found


async def list_feedback(
    views: Views, project_id: str, period: Period, *, before: int, limit: int, rating: Rating | None = None
) -> Placed[RatedView]:
    """Return the newest first, from what was given before a place."""
    only = "" if rating is None else " AND answers.rating = ?"
    rows = await views.query(
        "SELECT rated, answers.id, answers.thread_id, coalesce(question, '') AS question, answer,"  # noqa: S608  (ours)
        " coalesce(page, '') AS page, answers.rating, comment, rated_at"
        " FROM answers LEFT JOIN asked ON asked.id = answers.message_id"
        f" WHERE answers.project_id = ? AND rated_at >= ? AND rated_at < ? AND rated IS NOT NULL AND rated < ?{only}"
        " ORDER BY rated DESC LIMIT ?",
        (project_id, period.start, period.end, before, *(() if rating is None else (rating,)), limit),
    )
    return [(row["rated"], _rated(row)) for row in rows]


async def summarize_checks(views: Views, project_id: str, period: Period, *, worst: int) -> ChecksSummaryView:
    """Return how far the answers of a period are supported, and those with the most unsupported sentences."""
    of_period = "asked.project_id = ? AND asked_at >= ? AND asked_at < ? AND supported + partly + unsupported > 0"
    given = (project_id, period.start, period.end)
    totals = await views.query_one(
        "SELECT count(*), coalesce(sum(unsupported > 0), 0), coalesce(sum(supported), 0), coalesce(sum(partly), 0),"  # noqa: S608  (ours)
        f" coalesce(sum(unsupported), 0) FROM asked JOIN answers ON answers.id = asked.reply_id WHERE {of_period}",
        given,
    )
    assert totals is not None
    rows = await views.query(
        f"{_QUESTIONS} WHERE {of_period} AND unsupported > 0 ORDER BY unsupported DESC, asked.position DESC LIMIT ?",
        (*given, worst),
    )
    answers, doubtful, *counts = (int(total) for total in totals)
    share = round(counts[0] / sum(counts), 4) if sum(counts) else None
    return ChecksSummaryView(answers, doubtful, counts[0], counts[1], counts[2], share, tuple(map(_doubtful, rows)))


_Cited: TypeAlias = dict[str, tuple[SourceView, ...]]


async def _cited(views: Views, rows: Sequence[sqlite3.Row]) -> _Cited:
    """Return the passages that each reply cites, in its order."""
    cited = {str(row["reply_id"]): cast("list[int]", json.loads(row["cited"] or "[]")) for row in rows}
    replies = [reply_id for reply_id, numbers in cited.items() if numbers]
    found: dict[str, dict[int, SourceView]] = {}
    for at in range(0, len(replies), 500):
        some = replies[at : at + 500]
        sources = await views.query(
            "SELECT reply_id, number, title, url, path, start_line, end_line, commit_id FROM answer_sources"  # noqa: S608  (marks)
            f" WHERE reply_id IN ({','.join('?' * len(some))})",
            some,
        )
        for reply_id, *source in sources:
            found.setdefault(reply_id, {})[source[0]] = SourceView(*source)
    return {
        reply_id: tuple(sources[number] for number in cited[reply_id] if number in sources)
        for reply_id, sources in found.items()
    }


def _feedback(row: sqlite3.Row) -> FeedbackView | None:
    return (
        FeedbackView(row["rating"], row["comment"] or None, timestamp_from(row["rated_at"])) if row["rating"] else None
    )


def _checks(row: sqlite3.Row) -> AnswerChecksView | None:
    if row["supported"] is None:
        return None
    marked = msgspec.json.decode(row["marked"], type=tuple[SentenceCheck, ...])
    counts = CheckCounts(row["supported"], row["partly"], row["unsupported"])
    return checks_view(ReplyChecks(counts, marked))


def _doubtful(row: sqlite3.Row) -> DoubtfulAnswerView:
    checks = _checks(row)
    assert checks is not None
    return DoubtfulAnswerView(
        row["id"], row["thread_id"], row["reply_id"], timestamp_from(row["asked_at"]), row["question"], checks
    )


def _failure(row: sqlite3.Row) -> ReplyFailureView | None:
    return ReplyFailureView(row["failure"], row["failure_message"]) if row["failure"] else None


def _resolution(row: sqlite3.Row) -> Resolution:
    return "answered" if row["resolution"] == "answered" else "unanswered"


def _conversation(row: sqlite3.Row, sources: _Cited) -> ConversationView:
    return ConversationView(
        id=row["id"],
        thread_id=row["thread_id"],
        conversation_id=row["thread_id"],
        message_id=row["reply_id"],
        timestamp=timestamp_from(row["asked_at"]),
        query=row["question"],
        response=row["answer"],
        resolution_status=_resolution(row),
        outcome=row["outcome"] or None,
        is_gap=row["resolution"] == "unanswered",
        state=row["state"],
        failure=_failure(row),
        uncited=bool(row["uncited"]),
        checks=_checks(row),
        model=row["model"],
        sources=sources.get(row["reply_id"], ()),
        page=row["page"] or None,
        feedback=_feedback(row),
        caller=row["caller"],
        project_id=row["project_id"],
    )


def _messages(rows: Sequence[sqlite3.Row], sources: _Cited) -> list[TranscriptMessage]:
    messages = []
    for row in rows:
        messages.append(TranscriptMessage(row["id"], "user", row["question"], timestamp_from(row["asked_at"])))
        if row["started_at"] is not None:
            reply = TranscriptMessage(
                row["reply_id"], "assistant", row["answer"], timestamp_from(row["started_at"]),
                _resolution(row), row["state"], sources.get(row["reply_id"], ()), _feedback(row),
                _failure(row), bool(row["uncited"]), _checks(row), row["outcome"] or None,
            )  # fmt: skip
            messages.append(reply)
    return messages


def _rated(row: sqlite3.Row) -> RatedView:
    return RatedView(
        id=row["id"],
        thread_id=row["thread_id"],
        message_id=row["id"],
        rating=row["rating"],
        helpful=row["rating"] == "up",
        comment=row["comment"] or None,
        created_at=timestamp_from(row["rated_at"]),
        query=row["question"],
        response=row["answer"],
        path=row["page"] or None,
    )
