"""The API's description of search, pages, feedback and analytics; part of ``description``."""

import json
from typing import Annotated, Any

from msgspec import Meta, Struct

from service.domain.feedback import Rating
from service.domain.threads import Resolution
from service.views.questions import ConversationsView, FeedbackListView, TranscriptView, UnansweredListView
from service.web.api import analytics
from service.web.api.feedback import EXAMPLE_MESSAGE_ID, EXAMPLE_THREAD_ID
from service.web.api.operations import PROJECT, Answer, Operation, Parameter
from service.web.http.tables import CSV, JSON_LINES

Moment = Annotated[str, Meta(extra_json_schema={"anyOf": [{"format": "date"}, {"format": "date-time"}]})]
RowCount = Annotated[int, Meta(ge=1, le=analytics.MAX_ROWS)]
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
CONVERSATION_EXAMPLE = {
    "id": "q1",
    "threadId": EXAMPLE_THREAD_ID,
    "conversationId": EXAMPLE_THREAD_ID,
    "messageId": EXAMPLE_MESSAGE_ID,
    "timestamp": "2026-11-21T09:30:00.000Z",
    "query": "How do I retry a failed job?",
    "response": "Set `retryDelaySecs` [[1]](/guides/retries#delay).",
    "resolutionStatus": "answered",
    "state": "completed",
    "model": "builtin/extractive",
    "sources": [SOURCE_EXAMPLE],
    "page": "/guides/retries",
    "feedback": FEEDBACK_EXAMPLE,
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


THREAD = Parameter("threadId", "The thread's id, or that of a question in it.", where="path")

FROM = Parameter(
    "dateFrom", "The first date, or time, in UTC unless it says otherwise; inclusive.", Moment, example="2026-11-01"
)
TO = Parameter("dateTo", "The end of the period, as `dateFrom`; exclusive.", Moment, example="2026-12-01")
LIMIT = Parameter("limit", "How many rows at most, 1 to 1000; 100 when not given.", RowCount, example=100)
CURSOR = Parameter("cursor", "The `nextCursor` of the answer before.", RowCursor)
FORMAT = Parameter(
    "format",
    "As one JSON document, or all rows of the period (up to `limit`, if given) as CSV or JSON lines. `Accept:"
    " text/csv` and `Accept: application/jsonl` do the same. In CSV a cell that a spreadsheet would take for a formula"
    " has an apostrophe before it.",
    analytics.Format,
    example="csv",
)
ROWS = (FROM, TO, LIMIT, CURSOR, FORMAT)

ANALYTICS = (
    Operation(
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
        key="admin",
        parameters=(
            PROJECT,
            *ROWS,
            Parameter(
                "resolutionStatus",
                "Only answered questions, or only unanswered ones.",
                Resolution,
                example="unanswered",
            ),
        ),
    ),
    Operation(
        "GET",
        "/v1/analytics/{projectId}/assistant/unanswered",
        "listUnanswered",
        "Analytics",
        "List unanswered questions",
        {200: _rows("questions", "By wording, the most frequent first.", UnansweredListView, UNANSWERED_EXAMPLE)},
        key="admin",
        parameters=(PROJECT, *ROWS),
    ),
    Operation(
        "GET",
        "/v1/analytics/{projectId}/assistant/threads/{threadId}",
        "getThread",
        "Analytics",
        "Read a thread",
        {200: Answer("Its transcript.", TranscriptView, example=TRANSCRIPT_EXAMPLE)},
        key="admin",
        parameters=(PROJECT, THREAD),
        errors={404: ("thread_not_found",)},
    ),
    Operation(
        "GET",
        "/v1/analytics/{projectId}/feedback",
        "listFeedback",
        "Analytics",
        "List feedback",
        {200: _rows("feedback", "The newest first.", FeedbackListView, RATED_EXAMPLE)},
        key="admin",
        parameters=(PROJECT, *ROWS, Parameter("rating", "Only this one.", Rating, example="down")),
    ),
)
