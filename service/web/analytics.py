"""What was asked of a project's assistant and what readers thought of it, for whoever keeps the documentation."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, date, datetime, time
from typing import Generic, Literal, TypeVar, cast

import msgspec
from aiohttp import web
from msgspec import Struct

from service.domain.errors import Invalid, NotFound
from service.domain.feedback import Rating
from service.domain.threads import ReplyState, Resolution
from service.projections import questions
from service.projections.questions import FeedbackRow, Period, QuestionRow, RatedRow, WordingRow
from service.web.access import project_for
from service.web.keys import STORE, VIEWS
from service.web.tables import CSV, JSON_LINES, Cells, as_csv, as_json_lines

routes = web.RouteTableDef()

DEFAULT_ROWS, MAX_ROWS = 100, 1000
EXPORT_PAGE = 200
"""Rows read at once."""
MAX_EXAMPLES = 3
FIRST = (1 << 62) - 1
"""A position beyond all."""

Format = Literal["json", "csv", "jsonl"]
R = TypeVar("R")
V = TypeVar("V", bound=Struct)


class SourceView(Struct, frozen=True, rename="camel"):
    """A passage that an answer cites, as of a commit."""

    number: int
    title: str
    url: str
    path: str
    start_line: int
    end_line: int
    commit: str


class FeedbackView(Struct, frozen=True, rename="camel"):
    rating: Rating
    comment: str | None
    created_at: str


class ConversationView(Struct, frozen=True, rename="camel"):
    """A question and what became of it. ``[erased]`` stands for the words of a thread that was erased."""

    id: str
    """Of the question."""
    thread_id: str
    conversation_id: str
    """The same: older clients know it by this name."""
    message_id: str
    """Of the newest reply, as its stream named it."""
    timestamp: str
    query: str
    response: str
    """As far as it was written."""
    resolution_status: Resolution
    """``unanswered`` also when there was no answer at all; ``state`` says why."""
    state: ReplyState | None
    model: str | None
    sources: tuple[SourceView, ...]
    page: str | None
    """That the reader had open."""
    feedback: FeedbackView | None


class ConversationsView(Struct, frozen=True, rename="camel"):
    conversations: tuple[ConversationView, ...]
    next_cursor: str | None
    has_more: bool


class TranscriptMessage(Struct, frozen=True, rename="camel"):
    id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: str
    resolution_status: Resolution | None = None
    """Of a reply."""
    state: ReplyState | None = None
    sources: tuple[SourceView, ...] = ()
    feedback: FeedbackView | None = None


class TranscriptView(Struct, frozen=True, rename="camel"):
    """A thread as it stands, without turns that were edited away."""

    thread_id: str
    created_at: str
    messages: tuple[TranscriptMessage, ...]


class ExampleView(Struct, frozen=True, rename="camel"):
    id: str
    thread_id: str
    query: str
    timestamp: str


class UnansweredView(Struct, frozen=True, rename="camel"):
    """Questions that were worded alike, and that the documentation does not answer."""

    wording: str
    count: int
    last_asked_at: str
    examples: tuple[ExampleView, ...]
    """The newest ones."""


class UnansweredListView(Struct, frozen=True, rename="camel"):
    questions: tuple[UnansweredView, ...]
    next_cursor: str | None
    has_more: bool


class RatedView(Struct, frozen=True, rename="camel"):
    """A reply that a reader rated; the last rating of it counts."""

    id: str
    """Of the reply."""
    thread_id: str
    message_id: str
    rating: Rating
    helpful: bool
    comment: str | None
    created_at: str
    query: str
    response: str
    path: str | None
    """That the reader had open."""


class FeedbackListView(Struct, frozen=True, rename="camel"):
    feedback: tuple[RatedView, ...]
    next_cursor: str | None
    has_more: bool


@routes.get("/v1/analytics/{projectId}/assistant")
async def list_conversations(request: web.Request) -> web.StreamResponse:
    """Newest first. As CSV or JSON lines: all of the period, unless a limit is given."""
    project = await project_for(request)
    period, resolution = _period(request), _one_of(request, "resolutionStatus", ("answered", "unanswered"))

    async def read(before: int, limit: int) -> Sequence[QuestionRow]:
        return await questions.list_questions(
            request.app[VIEWS], project.id, period,
            before=before, limit=limit, resolution=cast("Resolution | None", resolution),
        )  # fmt: skip

    listing = _Listing("conversations", read, lambda row, _: row.position, _conversation, ConversationsView, _QUESTION)
    return await listing.answer(request, FIRST)


@routes.get("/v1/analytics/{projectId}/assistant/unanswered")
async def list_unanswered(request: web.Request) -> web.StreamResponse:
    """What the documentation does not say, most asked first."""
    project, period = await project_for(request), _period(request)

    async def read(offset: int, limit: int) -> Sequence[WordingRow]:
        return await questions.list_unanswered(
            request.app[VIEWS], project.id, period, limit=limit, offset=offset, examples=MAX_EXAMPLES
        )

    listing = _Listing("unanswered", read, lambda _, place: place + 1, _unanswered, UnansweredListView, _UNANSWERED)
    return await listing.answer(request, 0)


@routes.get("/v1/analytics/{projectId}/assistant/threads/{threadId}")
async def show_thread(request: web.Request) -> web.StreamResponse:
    """The transcript of a thread, by its id or by that of a question in it."""
    project = await project_for(request)
    await _up_to_date(request)
    found = await questions.thread_with_questions(request.app[VIEWS], project.id, request.match_info["threadId"])
    if found is None:
        raise NotFound("There is no such thread.", code="thread_not_found")
    thread, rows = found
    messages = tuple(message for row in rows for message in _messages(row))
    body = await asyncio.to_thread(msgspec.json.encode, TranscriptView(thread.id, _time(thread.started_at), messages))
    return web.Response(body=body, content_type="application/json")


@routes.get("/v1/analytics/{projectId}/feedback")
async def list_feedback(request: web.Request) -> web.StreamResponse:
    """Newest first."""
    project = await project_for(request)
    period, rating = _period(request), _one_of(request, "rating", ("up", "down"))

    async def read(before: int, limit: int) -> Sequence[RatedRow]:
        return await questions.list_feedback(
            request.app[VIEWS], project.id, period, before=before, limit=limit, rating=cast("Rating | None", rating)
        )

    listing = _Listing("feedback", read, lambda row, _: row.position, _rated, FeedbackListView, _RATED)
    return await listing.answer(request, FIRST)


class _Listing(Generic[R, V]):
    """Rows in the form that the caller wants."""

    def __init__(
        self,
        name: str,
        read: Callable[[int, int], Awaitable[Sequence[R]]],
        place_of: Callable[[R, int], int],
        view: Callable[[R], V],
        page: Callable[[tuple[V, ...], str | None, bool], Struct],
        cells: Cells,
    ) -> None:
        self._name, self._read, self._place_of = name, read, place_of
        self._view, self._page, self._cells = view, page, cells

    async def answer(self, request: web.Request, start: int) -> web.StreamResponse:
        form, limit = _format(request), _limit(request)
        place = _cursor(request, start)
        await _up_to_date(request)
        if form == "json":
            body = await self._as_json(place, limit or DEFAULT_ROWS)
            return web.Response(body=body, content_type="application/json")
        media_type, suffix = (CSV, "csv") if form == "csv" else (JSON_LINES, "jsonl")
        response = web.StreamResponse(
            headers={
                "Content-Type": f"{media_type}; charset=utf-8",
                "Content-Disposition": f'attachment; filename="{self._name}.{suffix}"',
            }
        )
        await response.prepare(request)
        async with aclosing(self._pages(place, limit)) as pages:
            if form == "csv":
                await response.write(as_csv([], self._cells, head=True))
            async for rows in pages:
                views = [self._view(row) for row in rows]
                if form == "csv":
                    await response.write(await asyncio.to_thread(as_csv, views, self._cells))
                else:
                    await response.write(await asyncio.to_thread(as_json_lines, views))
        await response.write_eof()
        return response

    async def _as_json(self, place: int, limit: int) -> bytes:
        rows: list[R] = []
        async with aclosing(self._pages(place, limit + 1)) as pages:  # a few at a time: others have their turn between
            async for some in pages:
                rows += some
        shown = rows[:limit]
        more = len(rows) > limit
        for row in shown:
            place = self._place_of(row, place)

        def encoded() -> bytes:
            page = self._page(tuple(self._view(row) for row in shown), str(place) if more else None, more)
            return msgspec.json.encode(page)

        return await asyncio.to_thread(encoded)

    async def _pages(self, place: int, limit: int | None) -> AsyncGenerator[Sequence[R], None]:
        left = limit
        while left is None or left > 0:
            size = EXPORT_PAGE if left is None else min(EXPORT_PAGE, left)
            rows = await self._read(place, size)
            if rows:
                yield rows
            if len(rows) < size:
                return
            for row in rows:
                place = self._place_of(row, place)
            left = None if left is None else left - len(rows)


async def _up_to_date(request: web.Request) -> None:
    """Who has just asked, or rated, finds it."""
    await request.app[VIEWS].wait_for(await request.app[STORE].head(), projections=(questions.NAME,))


# Of the query


def _refused(name: str, sentence: str) -> Invalid:
    return Invalid(f"{name}: {sentence}", problems=((name, sentence),))


def _one_of(request: web.Request, name: str, values: Sequence[str]) -> str | None:
    value = request.query.get(name)
    if value is not None and value not in values:
        raise _refused(name, f"is one of {', '.join(values)}")
    return value


def _period(request: web.Request) -> Period:
    start, end = (_moment(request, name) for name in ("dateFrom", "dateTo"))
    if start is not None and end is not None and start > end:
        raise _refused("dateTo", "is before dateFrom")
    whole = Period()
    return Period(
        whole.start if start is None else questions.stamp(start), whole.end if end is None else questions.stamp(end)
    )


def _moment(request: web.Request, name: str) -> datetime | None:
    """A date is its first instant in UTC; a time without a zone is in UTC."""
    text = request.query.get(name)
    if not text:
        return None
    try:
        if len(text) == 10:
            return datetime.combine(date.fromisoformat(text), time(), tzinfo=UTC)
        at = datetime.fromisoformat(text.replace(" ", "+"))  # a plus sign that was not escaped
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _refused(name, "is a date (2026-01-31) or a time (2026-01-31T09:30:00Z)") from None


def _limit(request: web.Request) -> int | None:
    text = request.query.get("limit")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= len(text) <= 4 and 1 <= int(text) <= MAX_ROWS):
        raise _refused("limit", f"is a number from 1 to {MAX_ROWS}")
    return int(text)


def _cursor(request: web.Request, start: int) -> int:
    text = request.query.get("cursor")
    if text is None:
        return start
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise _refused("cursor", "is the nextCursor of an answer")
    return int(text)


def _format(request: web.Request) -> Format:
    named = _one_of(request, "format", ("json", "csv", "jsonl"))
    if named is not None:
        return cast("Format", named)
    wanted = {part.partition(";")[0].strip().lower() for part in request.headers.get("Accept", "").split(",")}
    if CSV in wanted:
        return "csv"
    return "jsonl" if wanted & {JSON_LINES, "application/x-ndjson", "application/jsonlines"} else "json"


# Views


def _time(stamp: str) -> str:
    return datetime.fromisoformat(stamp).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _feedback(row: FeedbackRow | None) -> FeedbackView | None:
    return None if row is None else FeedbackView(row.rating, row.comment or None, _time(row.given_at))


def _sources(row: QuestionRow) -> tuple[SourceView, ...]:
    return tuple(
        SourceView(one.number, one.title, one.url, one.path, one.start_line, one.end_line, one.commit)
        for one in row.sources
    )


def _conversation(row: QuestionRow) -> ConversationView:
    return ConversationView(
        id=row.id,
        thread_id=row.thread_id,
        conversation_id=row.thread_id,
        message_id=row.reply_id,
        timestamp=_time(row.asked_at),
        query=row.question,
        response=row.answer,
        resolution_status=row.resolution or "unanswered",
        state=row.state,
        model=row.model,
        sources=_sources(row),
        page=row.page or None,
        feedback=_feedback(row.feedback),
    )


def _messages(row: QuestionRow) -> Sequence[TranscriptMessage]:
    asked = TranscriptMessage(row.id, "user", row.question, _time(row.asked_at))
    if row.started_at is None:
        return [asked]
    reply = TranscriptMessage(
        row.reply_id, "assistant", row.answer, _time(row.started_at), row.resolution or "unanswered", row.state,
        _sources(row), _feedback(row.feedback),
    )  # fmt: skip
    return [asked, reply]


def _unanswered(row: WordingRow) -> UnansweredView:
    examples = tuple(ExampleView(one.id, one.thread_id, one.question, _time(one.asked_at)) for one in row.examples)
    return UnansweredView(row.wording, row.count, _time(row.last_asked_at), examples)


def _rated(row: RatedRow) -> RatedView:
    return RatedView(
        id=row.reply_id,
        thread_id=row.thread_id,
        message_id=row.reply_id,
        rating=row.feedback.rating,
        helpful=row.feedback.rating == "up",
        comment=row.feedback.comment or None,
        created_at=_time(row.feedback.given_at),
        query=row.question,
        response=row.answer,
        path=row.page or None,
    )


_QUESTION: Cells = {
    "timestamp": lambda view: view.timestamp,
    "id": lambda view: view.id,
    "threadId": lambda view: view.thread_id,
    "messageId": lambda view: view.message_id,
    "query": lambda view: view.query,
    "response": lambda view: view.response,
    "resolutionStatus": lambda view: view.resolution_status,
    "state": lambda view: view.state,
    "model": lambda view: view.model,
    "sources": lambda view: " ".join(one.url for one in view.sources),
    "page": lambda view: view.page,
    "rating": lambda view: view.feedback.rating if view.feedback else None,
    "comment": lambda view: view.feedback.comment if view.feedback else None,
}
_UNANSWERED: Cells = {
    "wording": lambda view: view.wording,
    "count": lambda view: view.count,
    "lastAskedAt": lambda view: view.last_asked_at,
    "example": lambda view: view.examples[0].query if view.examples else None,
}
_RATED: Cells = {
    "createdAt": lambda view: view.created_at,
    "threadId": lambda view: view.thread_id,
    "messageId": lambda view: view.message_id,
    "rating": lambda view: view.rating,
    "comment": lambda view: view.comment,
    "query": lambda view: view.query,
    "response": lambda view: view.response,
    "path": lambda view: view.path,
}
