"""What was asked of a project's assistant and what readers thought of it, for whoever keeps the documentation."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, date, datetime, time
from typing import Annotated, Generic, Literal, TypeVar, cast

import msgspec
from aiohttp import web
from msgspec import Struct

from service.domain.errors import Invalid, NotFound
from service.domain.feedback import Rating
from service.domain.threads import ReplyState, Resolution
from service.projections import questions
from service.projections.questions import FeedbackRow, Period, QuestionRow, RatedRow, WordingRow
from service.web.http.access import project_for
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.query_params import query_param, read_whole
from service.web.http.schemas import Reference, Timestamp, described
from service.web.http.tables import CSV, JSON_LINES, Cells, as_csv, as_json_lines

routes = web.RouteTableDef()

DEFAULT_ROWS, MAX_ROWS = 100, 1000
EXPORT_PAGE = 200
"""Rows read at once."""
MAX_EXAMPLES = 3
_LEAP_SECOND = re.compile(r"(.{10}T..:..:)60(\..*|[Z+-].*)?")
FIRST = (1 << 62) - 1
"""A position beyond all."""

Format = Literal["json", "csv", "jsonl"]
R = TypeVar("R")
V = TypeVar("V", bound=Struct)

NextCursor = Annotated[str | None, described("Send it back as `cursor` for the next rows; null when there are none.")]
HasMore = Annotated[bool, described("Whether there are more rows.")]


class SourceView(Struct, frozen=True, rename="camel"):
    """A passage that an answer cites, as of a commit."""

    number: Annotated[int, described("What the answer cites it as.")]
    title: Annotated[str, described("The page's title.")]
    url: Annotated[Reference, described("Where it is on the site.")]
    path: Annotated[str, described("The page's path in the repository.")]
    start_line: Annotated[int, described("Where it begins in the file, from 1.")]
    end_line: Annotated[int, described("Where it ends in the file.")]
    commit: Annotated[str, described("The commit that it was read from.")]


class FeedbackView(Struct, frozen=True, rename="camel"):
    """What a reader thought of a reply."""

    rating: Annotated[Rating, described("Whether it was of use.")]
    comment: Annotated[str | None, described("In the reader's words.")]
    created_at: Annotated[Timestamp, described("When it was said.")]


class ConversationView(Struct, frozen=True, rename="camel"):
    """A question and what became of it. ``[erased]`` stands for the words of a thread that was erased,
    ``[damaged]`` for words that cannot be read any more.
    """

    id: Annotated[str, described("Of the question.")]
    thread_id: Annotated[str, described("Of the thread that it is in.")]
    conversation_id: Annotated[str, described("The same: older clients know it by this name.")]
    message_id: Annotated[str, described("Of the newest reply, as its stream named it.")]
    timestamp: Annotated[Timestamp, described("When it was asked.")]
    query: Annotated[str, described("The question.")]
    response: Annotated[str, described("The answer, as far as it was written.")]
    resolution_status: Annotated[
        Resolution, described("`unanswered` also when there was no answer at all; `state` says why.")
    ]
    state: Annotated[ReplyState | None, described("How far the answer came; null when it was never begun.")]
    model: Annotated[str | None, described("The model that wrote it.")]
    sources: Annotated[tuple[SourceView, ...], described("What the answer cites.")]
    page: Annotated[str | None, described("The page that the reader had open.")]
    feedback: Annotated[FeedbackView | None, described("The last one of this answer.")]


class ConversationsView(Struct, frozen=True, rename="camel"):
    """Some of what was asked."""

    conversations: Annotated[tuple[ConversationView, ...], described("The newest first.")]
    next_cursor: NextCursor
    has_more: HasMore


class TranscriptMessage(Struct, frozen=True, rename="camel"):
    """A question, or a reply to one."""

    id: Annotated[str, described("Of the question, or of the reply.")]
    role: Annotated[Literal["user", "assistant"], described("Whose words they are.")]
    content: Annotated[str, described("The words.")]
    created_at: Annotated[Timestamp, described("When it was asked, or begun.")]
    resolution_status: Annotated[Resolution | None, described("Of a reply.")] = None
    state: Annotated[ReplyState | None, described("Of a reply: how far it came.")] = None
    sources: Annotated[tuple[SourceView, ...], described("Of a reply: what it cites.")] = ()
    feedback: Annotated[FeedbackView | None, described("Of a reply: the last one.")] = None


class TranscriptView(Struct, frozen=True, rename="camel"):
    """A thread as it stands, without turns that were edited away."""

    thread_id: Annotated[str, described("The thread's id.")]
    created_at: Annotated[Timestamp, described("When it began.")]
    messages: Annotated[tuple[TranscriptMessage, ...], described("In their order.")]


class ExampleView(Struct, frozen=True, rename="camel"):
    """A question of a wording."""

    id: Annotated[str, described("Of the question.")]
    thread_id: Annotated[str, described("Of the thread that it is in.")]
    query: Annotated[str, described("The question as it was put.")]
    timestamp: Annotated[Timestamp, described("When it was asked.")]


class UnansweredView(Struct, frozen=True, rename="camel"):
    """Questions that were worded alike, and that the documentation does not answer."""

    wording: Annotated[str, described("What the questions have in common.")]
    count: Annotated[int, described("How often it was asked.")]
    last_asked_at: Annotated[Timestamp, described("When it was asked last.")]
    examples: Annotated[tuple[ExampleView, ...], described("The newest ones.")]


class UnansweredListView(Struct, frozen=True, rename="camel"):
    """Some of what the documentation does not say."""

    questions: Annotated[tuple[UnansweredView, ...], described("What was asked most first.")]
    next_cursor: NextCursor
    has_more: HasMore


class RatedView(Struct, frozen=True, rename="camel"):
    """A reply that a reader rated; the last rating of it counts."""

    id: Annotated[str, described("Of the reply.")]
    thread_id: Annotated[str, described("Of the thread that it is in.")]
    message_id: Annotated[str, described("The same as `id`: the name that its stream gave it.")]
    rating: Annotated[Rating, described("Whether it was of use.")]
    helpful: Annotated[bool, described("Whether the rating is `up`.")]
    comment: Annotated[str | None, described("In the reader's words.")]
    created_at: Annotated[Timestamp, described("When it was said.")]
    query: Annotated[str, described("The question.")]
    response: Annotated[str, described("The reply.")]
    path: Annotated[str | None, described("The page that the reader had open.")]


class FeedbackListView(Struct, frozen=True, rename="camel"):
    """Some of what readers thought."""

    feedback: Annotated[tuple[RatedView, ...], described("The newest first.")]
    next_cursor: NextCursor
    has_more: HasMore


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
    value = query_param(request, name)
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
    text = query_param(request, name)
    if text is None:
        return None
    text = text.upper().replace(" ", "+")  # a plus sign that was not escaped
    if text.startswith("0000-"):  # a leap year of RFC 3339, which Python has not
        text = f"0004{text[4:]}"
    if leap := _LEAP_SECOND.fullmatch(text):
        text = f"{leap[1]}59{leap[2]}"
    try:
        if len(text) == 10:
            return datetime.combine(date.fromisoformat(text), time(), tzinfo=UTC)
        at = datetime.fromisoformat(text)
    except ValueError:
        raise _refused(name, "is a date (2026-01-31) or a time (2026-01-31T09:30:00Z)") from None
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:  # its zone takes it out of the years that there are
        return at.replace(tzinfo=UTC)


def _limit(request: web.Request) -> int | None:
    text = query_param(request, "limit")
    limit = None if text is None else read_whole(text, least=1, most=MAX_ROWS)
    if text is not None and limit is None:
        raise _refused("limit", f"is a number from 1 to {MAX_ROWS}")
    return limit


def _cursor(request: web.Request, start: int) -> int:
    text = query_param(request, "cursor")
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
