"""Readers of an organization: their questions, conversations, gaps and sums, over all of its projects."""

import asyncio
from typing import Annotated, Any, Literal, cast, get_args

import msgspec
from aiohttp import web
from msgspec import Meta

from service.commands.erasures import erase_subject
from service.commands.gaps import dismiss_gap, restore_gap
from service.domain.errors import Invalid
from service.domain.threads.feedback import Rating
from service.domain.threads.question_words import words_of
from service.domain.threads.recorded_reply import Caller, Outcome
from service.queries.projects import get_project
from service.queries.readers.analytics import Days, read_analytics, with_uncited_pages
from service.queries.readers.gaps import GapQuery
from service.queries.readers.questions import (
    FIRST,
    MAX_WORDS_SOUGHT,
    QuestionFilter,
    catch_up_questions,
    project_of_thread,
    questions_page,
    read_transcript,
    thread_not_found,
)
from service.runtime.system import now
from service.streams import THREADS
from service.views.projects import ProjectView
from service.views.readers.analytics import AnalyticsView
from service.views.readers.gaps import GapsView
from service.views.readers.questions import ConversationsView, ErasedThreadView, TranscriptView
from service.web.api.assistant.analytics import (
    CONVERSATION_EXAMPLE,
    CURSOR,
    FROM,
    TO,
    TRANSCRIPT_EXAMPLE,
    UNANSWERED_EXAMPLE,
    cursor_of,
    one_of,
    period_of,
)
from service.web.api.assistant.feedback import EXAMPLE_THREAD_ID
from service.web.api.description.operations import Answer, Parameter, Routes, limit_parameter
from service.web.http.access.access import PROJECT_DIRECTORY, admin_key
from service.web.http.app_keys import GAP_READER, INDEX, STORE, VIEWS
from service.web.http.problems import json_response, metadata_of
from service.web.http.query_params import query_param, whole_param

MAX_LISTED, LISTED = 100, 50
MAX_TEXT = 200
"""Characters to search for."""
MAX_GAPS, GAPS = 50, 20
GapState = Literal["open", "dismissed"]
MAX_DAYS, DAYS = 366, 30
CALLERS = tuple(caller for caller in get_args(Caller) if caller)

GAP_EXAMPLE: dict[str, Any] = {
    "id": "2c26b46b68ffc68f",
    "projectId": "5d0c8b1e",
    "question": "How do I rotate a SAML certificate?",
    "count": 12,
    "wordings": 3,
    "lastAskedAt": "2026-11-21T09:30:00.000Z",
    "examples": UNANSWERED_EXAMPLE["examples"],
    "pages": ["guides/saml.md"],
    "prompt": "Readers asked the following, and the documentation does not answer it. …",
    "jobId": None,
    "dismissedBy": None,
    "dismissedAt": None,
}
_COUNTS = {"questions": 120, "answered": 95, "unsure": 6, "unanswered": 14, "failed": 5, "up": 20, "down": 3}
ANALYTICS_EXAMPLE: dict[str, Any] = {
    "dateFrom": "2026-11-21",
    "dateTo": "2026-11-21",
    "totals": _COUNTS,
    "days": [{"day": "2026-11-21", "counts": _COUNTS}],
    "callers": [{"caller": "web", "questions": 120}],
    "firstText": {"replies": 115, "medianMs": 750, "p95Ms": 2000},
    "citedFrom": "2026-11-16",
    "citedPages": [
        {
            "projectId": "5d0c8b1e",
            "path": "guides/retries.md",
            "title": "Retries",
            "url": "/guides/retries",
            "answers": 31,
        }
    ],
    "uncitedPages": {"count": 1, "pages": [{"path": "legal.md", "title": "Legal notice", "url": "/legal"}]},
    "spending": [
        {
            "keyId": "5b0f1d8f3a524b7a9c1e7d33019a8e6c",
            "model": "builtin/extractive",
            "replies": 120,
            "inputTokens": 0,
            "outputTokens": 0,
            "costUsd": None,
        }
    ],
}
PROJECT = Parameter("projectId", "Only those of this project.", example="5d0c8b1e")

routes = Routes()


@routes.operation(
    "GET",
    "/v2/questions",
    "listQuestions",
    "Readers",
    "List an organization's questions",
    {
        200: Answer(
            "Questions with their answers, the newest first.",
            ConversationsView,
            example={"conversations": [CONVERSATION_EXAMPLE], "nextCursor": None, "hasMore": False},
        )
    },
    parameters=(
        FROM,
        TO,
        limit_parameter(LISTED, MAX_LISTED),
        CURSOR,
        PROJECT,
        Parameter(
            "outcome",
            "Only questions with this outcome; `failed`: without a whole answer, since it failed, was stopped,"
            " interrupted or filtered.",
            Outcome,
            example="unanswered",
        ),
        Parameter("rating", "Only questions whose answer was rated so.", Rating, example="down"),
        Parameter("caller", "Only questions from this kind of client.", Literal[CALLERS], example="web"),
        Parameter(
            "text",
            f"Only questions with all of these words, at most {MAX_WORDS_SOUGHT}, wherever they stand. A page may have"
            " fewer questions than `limit`, or none, and still a next one.",
            Annotated[str, Meta(max_length=MAX_TEXT)],
            example="saml certificate",
        ),
    ),
)
async def list_questions(request: web.Request) -> web.Response:
    """Answer for all projects of the key's organization."""
    organization_id = (await admin_key(request)).state.organization_id
    limit = whole_param(request, "limit", LISTED, least=1, most=MAX_LISTED)
    only = QuestionFilter(
        cast("Outcome | None", one_of(request, "outcome", get_args(Outcome))),
        cast("Rating | None", one_of(request, "rating", get_args(Rating))),
        cast("Caller | None", one_of(request, "caller", CALLERS)),
        query_param(request, "projectId"),
        searched_text(request),
    )
    period, before = period_of(request), cursor_of(request, FIRST)
    await _catch_up(request)
    found = await questions_page(request.app[VIEWS], organization_id, period, only, before=before, limit=limit)
    cursor = None if found.next is None else str(found.next)
    listed = ConversationsView(tuple(found.questions), cursor, cursor is not None)
    body = await asyncio.to_thread(msgspec.json.encode, listed)
    return web.Response(body=body, content_type="application/json")


def searched_text(request: web.Request) -> str | None:
    """Return the words by which questions are sought; None for none. Raise Invalid."""
    text = (query_param(request, "text") or "").strip()
    if len(text) > MAX_TEXT or len(words_of(text)) > MAX_WORDS_SOUGHT:
        raise Invalid(
            f"The text is too long to search for. Give at most {MAX_WORDS_SOUGHT} words and {MAX_TEXT} characters.",
            problems=(("$.text", "It is too long."),),
        )
    return text or None


@routes.operation(
    "GET",
    "/v2/threads/{threadId}",
    "getConversation",
    "Readers",
    "Read a conversation",
    {200: Answer("Its transcript.", TranscriptView, example=TRANSCRIPT_EXAMPLE)},
    errors={404: ("thread_not_found",)},
)
async def show_thread(request: web.Request) -> web.Response:
    """Find the thread by its id, or by that of a question in it."""
    key = await admin_key(request)
    await _catch_up(request)
    _, found = await conversation_of(request, key.state.organization_id)
    body = await asyncio.to_thread(msgspec.json.encode, found)
    return web.Response(body=body, content_type="application/json")


@routes.operation(
    "POST",
    "/v2/threads/{threadId}/erase",
    "eraseConversation",
    "Readers",
    "Erase a conversation",
    {
        200: Answer(
            "Its text is gone.",
            ErasedThreadView,
            example={"threadId": EXAMPLE_THREAD_ID, "position": 4711, "again": False},
        )
    },
    description="Deletes the key under which the log keeps what people typed in it, and the answers. That it took"
    " place, and its outcome, stay. Safe to repeat.",
    errors={404: ("thread_not_found",)},
)
async def erase_thread(request: web.Request) -> web.Response:
    key = await admin_key(request)
    await _catch_up(request)
    _, thread = await conversation_of(request, key.state.organization_id)
    subject = THREADS.stream(thread.thread_id)
    done = await erase_subject(request.app[STORE], request.app[VIEWS], subject, metadata_of(request))
    return json_response(ErasedThreadView(thread.thread_id, done.position, done.again))


@routes.operation(
    "GET",
    "/v2/gaps",
    "listGaps",
    "Readers",
    "List an organization's gaps",
    {
        200: Answer(
            "Groups of unanswered questions, the most frequent first.",
            GapsView,
            example={"gaps": [GAP_EXAMPLE], "nextCursor": None, "hasMore": False},
        )
    },
    description="Questions that ask for the same thing, in other words too, are one gap. A question is in none any more"
    " once one in the same words was answered later, once the site answers it after it was indexed again, or once its"
    " gap was dismissed. Create a job with a gap's"
    " `prompt` to close it; its `jobId` names the job when the `Idempotency-Key` is `gap ID QUESTION`, with the ids of"
    " the gap and of its first example.",
    parameters=(
        FROM,
        TO,
        limit_parameter(GAPS, MAX_GAPS),
        CURSOR,
        PROJECT,
        Parameter(
            "state",
            "`open`, which is meant when it is not given, or `dismissed`: the latest first, of all time.",
            GapState,
            example="dismissed",
        ),
    ),
)
async def list_gaps(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    limit = whole_param(request, "limit", GAPS, least=1, most=MAX_GAPS)
    query = _gap_query(request, organization_id)
    offset, state = cursor_of(request, 0), one_of(request, "state", get_args(GapState))
    await _catch_up(request)
    reader = request.app[GAP_READER]
    read = reader.list_dismissed if state == "dismissed" else reader.list
    found = await read(query, limit=limit + 1, offset=offset)
    has_more = len(found) > limit
    shown = tuple(gap for _, gap in found[:limit])
    return json_response(GapsView(shown, str(found[limit - 1][0]) if has_more else None, has_more))


def _gap_query(request: web.Request, organization_id: str) -> GapQuery:
    return GapQuery(organization_id, period_of(request), query_param(request, "projectId"))


@routes.operation(
    "POST",
    "/v2/gaps/{gapId}/dismiss",
    "dismissGap",
    "Readers",
    "Dismiss a gap",
    {204: Answer("It is dismissed.")},
    description="Questions in the words of those that it has are in no gap from now on; one in other words is a gap"
    " again. Give the period and the project with which the gap was listed. Safe to repeat.",
    parameters=(FROM, TO, PROJECT),
    errors={404: ("gap_not_found",)},
)
async def post_gap_dismiss(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    query = _gap_query(request, organization_id)
    await _catch_up(request)
    store, views, reader = request.app[STORE], request.app[VIEWS], request.app[GAP_READER]
    await dismiss_gap(store, views, reader, query, request.match_info["gapId"], metadata_of(request))
    return web.Response(status=204)


@routes.operation(
    "POST",
    "/v2/gaps/{gapId}/restore",
    "restoreGap",
    "Readers",
    "Restore a gap",
    {204: Answer("It is listed again, unless its questions are answered by now.")},
    description="Undoes a dismissal.",
    errors={404: ("gap_not_found",)},
)
async def post_gap_restore(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    await _catch_up(request)
    store, views = request.app[STORE], request.app[VIEWS]
    await restore_gap(store, views, organization_id, request.match_info["gapId"], metadata_of(request))
    return web.Response(status=204)


@routes.operation(
    "GET",
    "/v2/analytics",
    "getAnalytics",
    "Readers",
    "Get an organization's analytics",
    {200: Answer("The sums of the period.", AnalyticsView, example=ANALYTICS_EXAMPLE)},
    parameters=(
        Parameter(
            "days",
            f"How many days, today in UTC included, 1 to {MAX_DAYS}; {DAYS} when not given.",
            Annotated[int, Meta(ge=1, le=MAX_DAYS)],
            example=DAYS,
        ),
        PROJECT,
    ),
)
async def show_analytics(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    count = whole_param(request, "days", DAYS, least=1, most=MAX_DAYS)
    await _catch_up(request)
    days, project_id = Days.until(now().date(), days=count), query_param(request, "projectId")
    views = request.app[VIEWS]
    found = await read_analytics(views, organization_id, days, project_id=project_id)
    project = None if project_id is None else await request.app[PROJECT_DIRECTORY].by_id(project_id, organization_id)
    if project is not None:
        found = await with_uncited_pages(found, views, request.app[INDEX], project, days)
    return json_response(found)


async def _catch_up(request: web.Request) -> None:
    await catch_up_questions(request.app[STORE], request.app[VIEWS])


async def conversation_of(request: web.Request, organization_id: str) -> tuple[ProjectView, TranscriptView]:
    """Return the organization's conversation that the path names, and its project. Raise NotFound."""
    views, thread_id = request.app[VIEWS], request.match_info["threadId"]
    project_id = await project_of_thread(views, organization_id, thread_id)
    project = None if project_id is None else await get_project(views, project_id)
    found = None if project is None else await read_transcript(views, project.id, thread_id)
    if project is None or found is None:
        raise thread_not_found()
    return project, found
