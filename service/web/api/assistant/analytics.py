"""Analytics of a project's assistant: questions with their answers, and what readers thought of them."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, Generic, Literal, TypeVar, cast

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from service.domain.errors import Invalid
from service.domain.threads.feedback import Rating
from service.domain.threads.recorded_reply import Resolution
from service.queries.readers import questions
from service.queries.readers.questions import Period, Placed
from service.views.readers.questions import (
    ChecksSummaryView,
    ConversationsView,
    ConversationView,
    FeedbackListView,
    RatedView,
    TranscriptView,
    UnansweredListView,
    UnansweredView,
)
from service.web.api.assistant.feedback import EXAMPLE_MESSAGE_ID, EXAMPLE_THREAD_ID
from service.web.api.description.operations import Answer, Parameter, Routes
from service.web.http.access.access import project_for
from service.web.http.answers.tables import CSV, JSON_LINES, Cells, as_csv, as_json_lines
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.query_params import query_param, read_whole

DEFAULT_ROWS, MAX_ROWS = 100, 1000
EXPORT_PAGE = 200
"""Rows read at once."""
MAX_EXAMPLES = 3
_LEAP_SECOND = re.compile(r"(.{10}T..:..:)60(\..*|[Z+-].*)?")

Format = Literal["json", "csv", "jsonl"]
V = TypeVar("V", bound=Struct)

Moment = Annotated[str, Meta(extra_json_schema={"anyOf": [{"format": "date"}, {"format": "date-time"}]})]
RowCount = Annotated[int, Meta(ge=1, le=MAX_ROWS)]
RowCursor = Annotated[str, Meta(pattern="^[0-9]{1,18}$")]

SOURCE_EXAMPLE = {
    "number": 1,
    "title": "Retries",
    "url": "/guides/retries#delay",
    "path": "guides/retries.md",
    "startLine": 9,
    "endLine": 12,
    "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8",
}
FEEDBACK_EXAMPLE = {"rating": "up", "comment": "Just what I needed.", "createdAt": "2026-11-21T09:31:00.000Z"}
ANSWER_CHECKS_EXAMPLE = {
    "supported": 4,
    "partly": 1,
    "unsupported": 1,
    "sentences": [
        {
            "text": "The delay is 20 seconds by default.",
            "start": 84,
            "missing": ["20"],
            "passage": 1,
            "startLine": 9,
            "endLine": 9,
        }
    ],
}
CHECKS_EXAMPLE = {
    "answers": 120,
    "answersWithUnsupported": 7,
    "supported": 812,
    "partly": 40,
    "unsupported": 9,
    "supportedShare": 0.9431,
    "worst": [
        {
            "id": "q1",
            "threadId": EXAMPLE_THREAD_ID,
            "messageId": EXAMPLE_MESSAGE_ID,
            "timestamp": "2026-11-21T09:30:00.000Z",
            "query": "How do I retry a failed job?",
            "checks": ANSWER_CHECKS_EXAMPLE,
        }
    ],
}
CONVERSATION_EXAMPLE = {
    "id": "q1",
    "threadId": EXAMPLE_THREAD_ID,
    "conversationId": EXAMPLE_THREAD_ID,
    "messageId": EXAMPLE_MESSAGE_ID,
    "timestamp": "2026-11-21T09:30:00.000Z",
    "query": "How do I retry a failed job?",
    "response": "Set `retryDelaySecs` [[1]](/guides/retries#delay).",
    "resolutionStatus": "answered",
    "outcome": "answered",
    "isGap": False,
    "state": "completed",
    "failure": None,
    "uncited": False,
    "checks": ANSWER_CHECKS_EXAMPLE,
    "model": "builtin/extractive",
    "sources": [SOURCE_EXAMPLE],
    "page": "/guides/retries",
    "feedback": FEEDBACK_EXAMPLE,
    "caller": "web",
    "projectId": "p1",
}
TRANSCRIPT_EXAMPLE = {
    "threadId": EXAMPLE_THREAD_ID,
    "createdAt": "2026-11-21T09:30:00.000Z",
    "messages": [
        {
            "id": "q1",
            "role": "user",
            "content": "How do I retry a failed job?",
            "createdAt": "2026-11-21T09:30:00.000Z",
            "resolutionStatus": None,
            "state": None,
            "sources": [],
            "feedback": None,
            "failure": None,
            "uncited": False,
            "checks": None,
            "outcome": None,
        },
        {
            "id": EXAMPLE_MESSAGE_ID,
            "role": "assistant",
            "content": "Set `retryDelaySecs` [[1]](/guides/retries#delay).",
            "createdAt": "2026-11-21T09:30:00.200Z",
            "resolutionStatus": "answered",
            "state": "completed",
            "sources": [SOURCE_EXAMPLE],
            "feedback": FEEDBACK_EXAMPLE,
            "failure": None,
            "uncited": False,
            "checks": ANSWER_CHECKS_EXAMPLE,
        },
    ],
}
UNANSWERED_EXAMPLE = {
    "wording": "rotate saml certificate",
    "count": 2,
    "lastAskedAt": "2026-11-21T09:30:00.000Z",
    "examples": [
        {
            "id": "q7",
            "threadId": EXAMPLE_THREAD_ID,
            "query": "How do I rotate a SAML certificate?",
            "timestamp": "2026-11-21T09:30:00.000Z",
        }
    ],
}
RATED_EXAMPLE = {
    "id": EXAMPLE_MESSAGE_ID,
    "threadId": EXAMPLE_THREAD_ID,
    "messageId": EXAMPLE_MESSAGE_ID,
    "rating": "up",
    "helpful": True,
    "comment": "Just what I needed.",
    "createdAt": "2026-11-21T09:31:00.000Z",
    "query": "How do I retry a failed job?",
    "response": "Set `retryDelaySecs` [[1]](/guides/retries#delay).",
    "path": "/guides/retries",
}


def _rows(name: str, description: str, kind: type[Struct], row: dict[str, Any]) -> Answer:
    """A listing, as JSON and in the two forms for programs that read tables."""
    line = json.dumps(row, ensure_ascii=False)
    columns = ",".join(f'"{column}"' for column, value in row.items() if isinstance(value, str))
    cells = ",".join('"' + value.replace('"', '""') + '"' for value in row.values() if isinstance(value, str))
    return Answer(
        description,
        kind,
        headers=("Content-Disposition",),
        example={name: [row], "nextCursor": None, "hasMore": False},
        also={CSV: f"{columns}\r\n{cells}\r\n", JSON_LINES: line + "\n"},
    )


FROM = Parameter(
    "dateFrom", "The first date, or time, in UTC unless it says otherwise; inclusive.", Moment, example="2026-11-01"
)
TO = Parameter("dateTo", "The end of the period, as `dateFrom`; exclusive.", Moment, example="2026-12-01")
LIMIT = Parameter(
    "limit", f"How many rows at most, 1 to {MAX_ROWS}; {DEFAULT_ROWS} when not given.", RowCount, example=100
)
CURSOR = Parameter("cursor", "The `nextCursor` of the answer before.", RowCursor)
FORMAT = Parameter(
    "format",
    "As one JSON document, or all rows of the period (up to `limit`, if given) as CSV or JSON lines. `Accept:"
    " text/csv` and `Accept: application/jsonl` do the same. In CSV a cell that a spreadsheet would take for a formula"
    " has an apostrophe before it.",
    Format,
    example="csv",
)
ROWS = (FROM, TO, LIMIT, CURSOR, FORMAT)

routes = Routes()


@routes.operation(
    "GET",
    "/v1/analytics/{projectId}/assistant",
    "listConversations",
    "Analytics",
    "List questions",
    {
        200: _rows(
            "conversations",
            "Questions with their answers, the newest first.",
            ConversationsView,
            CONVERSATION_EXAMPLE,
        )
    },
    parameters=(
        *ROWS,
        Parameter(
            "resolutionStatus",
            "Only questions that were answered, or only those that the documentation does not answer. Questions whose"
            " reply failed, was filtered, stopped or interrupted are in neither; unsure ones are in the latter.",
            Resolution,
            example="unanswered",
        ),
    ),
)
async def list_conversations(request: web.Request) -> web.StreamResponse:
    """Newest first. As CSV or JSON lines: all of the period, unless a limit is given."""
    project = await project_for(request)
    period, resolution = period_of(request), one_of(request, "resolutionStatus", ("answered", "unanswered"))

    async def read(before: int, limit: int) -> Placed[ConversationView]:
        return await questions.list_questions(
            request.app[VIEWS], project.id, period,
            before=before, limit=limit, resolution=cast("Resolution | None", resolution),
        )  # fmt: skip

    listing = _Listing("conversations", read, ConversationsView, _QUESTION)
    return await listing.answer(request, questions.FIRST)


@routes.operation(
    "GET",
    "/v1/analytics/{projectId}/assistant/unanswered",
    "listUnanswered",
    "Analytics",
    "List unanswered questions",
    {200: _rows("questions", "By wording, the most frequent first.", UnansweredListView, UNANSWERED_EXAMPLE)},
    parameters=ROWS,
)
async def list_unanswered(request: web.Request) -> web.StreamResponse:
    """Return the questions that the documentation does not answer, the most frequent first."""
    project, period = await project_for(request), period_of(request)

    async def read(offset: int, limit: int) -> Placed[UnansweredView]:
        return await questions.list_unanswered(
            request.app[VIEWS], project.id, period, limit=limit, offset=offset, examples=MAX_EXAMPLES
        )

    listing = _Listing("unanswered", read, UnansweredListView, _UNANSWERED)
    return await listing.answer(request, 0)


@routes.operation(
    "GET",
    "/v1/analytics/{projectId}/assistant/checks",
    "summarizeChecks",
    "Analytics",
    "Check answers against their sources",
    {200: Answer("How far the answers are supported, and the worst ones.", ChecksSummaryView, example=CHECKS_EXAMPLE)},
    parameters=(FROM, TO, LIMIT),
)
async def summarize_checks(request: web.Request) -> web.Response:
    """Return the share of sentences that stand on passages, and the answers with the most that do not."""
    project, period, limit = await project_for(request), period_of(request), limit_of(request)
    await _catch_up(request)
    found = await questions.summarize_checks(request.app[VIEWS], project.id, period, worst=limit or DEFAULT_ROWS)
    return web.Response(body=msgspec.json.encode(found), content_type="application/json")


@routes.operation(
    "GET",
    "/v1/analytics/{projectId}/assistant/threads/{threadId}",
    "getThread",
    "Analytics",
    "Read a thread",
    {200: Answer("Its transcript.", TranscriptView, example=TRANSCRIPT_EXAMPLE)},
    errors={404: ("thread_not_found",)},
)
async def show_thread(request: web.Request) -> web.StreamResponse:
    """The transcript of a thread, by its id or by that of a question in it."""
    project = await project_for(request)
    await _catch_up(request)
    found = await questions.read_transcript(request.app[VIEWS], project.id, request.match_info["threadId"])
    if found is None:
        raise questions.thread_not_found()
    body = await asyncio.to_thread(msgspec.json.encode, found)
    return web.Response(body=body, content_type="application/json")


@routes.operation(
    "GET",
    "/v1/analytics/{projectId}/feedback",
    "listFeedback",
    "Analytics",
    "List feedback",
    {200: _rows("feedback", "The newest first.", FeedbackListView, RATED_EXAMPLE)},
    parameters=(*ROWS, Parameter("rating", "Only this one.", Rating, example="down")),
)
async def list_feedback(request: web.Request) -> web.StreamResponse:
    """Newest first."""
    project = await project_for(request)
    period, rating = period_of(request), one_of(request, "rating", ("up", "down"))

    async def read(before: int, limit: int) -> Placed[RatedView]:
        return await questions.list_feedback(
            request.app[VIEWS], project.id, period, before=before, limit=limit, rating=cast("Rating | None", rating)
        )

    listing = _Listing("feedback", read, FeedbackListView, _RATED)
    return await listing.answer(request, questions.FIRST)


class _Listing(Generic[V]):
    """Views in the form that the caller wants."""

    def __init__(
        self,
        name: str,
        read: Callable[[int, int], Awaitable[Placed[V]]],
        page: Callable[[tuple[V, ...], str | None, bool], Struct],
        cells: Cells,
    ) -> None:
        self._name, self._read, self._page, self._cells = name, read, page, cells

    async def answer(self, request: web.Request, start: int) -> web.StreamResponse:
        form, limit = _format(request), limit_of(request)
        place = cursor_of(request, start)
        await _catch_up(request)
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
            async for placed in pages:
                views = [view for _, view in placed]
                if form == "csv":
                    await response.write(await asyncio.to_thread(as_csv, views, self._cells))
                else:
                    await response.write(await asyncio.to_thread(as_json_lines, views))
        await response.write_eof()
        return response

    async def _as_json(self, place: int, limit: int) -> bytes:
        found: Placed[V] = []
        async with aclosing(self._pages(place, limit + 1)) as pages:  # a few at a time: others have their turn between
            async for some in pages:
                found += some
        shown, more = found[:limit], len(found) > limit
        page = self._page(tuple(view for _, view in shown), str(shown[-1][0]) if more else None, more)
        return await asyncio.to_thread(msgspec.json.encode, page)

    async def _pages(self, place: int, limit: int | None) -> AsyncGenerator[Placed[V], None]:
        left = limit
        while left is None or left > 0:
            size = EXPORT_PAGE if left is None else min(EXPORT_PAGE, left)
            placed = await self._read(place, size)
            if placed:
                yield placed
            if len(placed) < size:
                return
            place, _ = placed[-1]
            left = None if left is None else left - len(placed)


async def _catch_up(request: web.Request) -> None:
    await questions.catch_up_questions(request.app[STORE], request.app[VIEWS])


# Of the query


def _refused(name: str, sentence: str) -> Invalid:
    return Invalid(f"{name}: {sentence}", problems=((name, sentence),))


def one_of(request: web.Request, name: str, values: Sequence[str]) -> str | None:
    value = query_param(request, name)
    if value is not None and value not in values:
        raise _refused(name, f"is one of {', '.join(values)}")
    return value


def period_of(request: web.Request) -> Period:
    start, end = (_moment(request, name) for name in ("dateFrom", "dateTo"))
    if start is not None and end is not None and start > end:
        raise _refused("dateTo", "is before dateFrom")
    return Period.between(start, end)


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


def limit_of(request: web.Request) -> int | None:
    text = query_param(request, "limit")
    limit = None if text is None else read_whole(text, least=1, most=MAX_ROWS)
    if text is not None and limit is None:
        raise _refused("limit", f"is a number from 1 to {MAX_ROWS}")
    return limit


def cursor_of(request: web.Request, start: int) -> int:
    text = query_param(request, "cursor")
    if text is None:
        return start
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise _refused("cursor", "is the nextCursor of an answer")
    return int(text)


def _format(request: web.Request) -> Format:
    named = one_of(request, "format", ("json", "csv", "jsonl"))
    if named is not None:
        return cast("Format", named)
    wanted = {part.partition(";")[0].strip().lower() for part in request.headers.get("Accept", "").split(",")}
    if CSV in wanted:
        return "csv"
    return "jsonl" if wanted & {JSON_LINES, "application/x-ndjson", "application/jsonlines"} else "json"


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
    "isGap": lambda view: "true" if view.is_gap else "false",
    "failure": lambda view: view.failure.code if view.failure else None,
    "uncited": lambda view: "true" if view.uncited else "false",
    "caller": lambda view: view.caller,
    "outcome": lambda view: view.outcome,
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
