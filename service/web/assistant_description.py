"""What the API's description says of search, pages, feedback and analytics; part of ``description``."""

from service.domain.feedback import Rating
from service.domain.threads import Resolution
from service.web import analytics, feedback, search
from service.web.openapi import Answer, Operation, Parameter

DOMAIN = Parameter("domain", "The site's domain, such as `docs.example.com`.", where="path", example="guide")
PROJECT = Parameter("projectId", "The project's id, as `docsmith project list` shows it.", where="path")
THREAD = Parameter("threadId", "The thread's id, or that of a question in it.", where="path")

FROM = Parameter(
    "dateFrom", "The first date, or time, in UTC unless it says otherwise; inclusive.", example="2026-11-01"
)
TO = Parameter("dateTo", "The end of the period, as `dateFrom`; exclusive.", example="2026-12-01")
LIMIT = Parameter("limit", "How many rows at most, 1 to 1000; 100 when not given.", int, example=100)
CURSOR = Parameter("cursor", "The `nextCursor` of the answer before.")
FORMAT = Parameter(
    "format",
    "As one JSON document, or all rows of the period (up to `limit`, if given) as CSV or JSON lines. `Accept:"
    " text/csv` and `Accept: application/jsonl` do the same. In CSV a cell that a spreadsheet would take for a formula"
    " has an apostrophe before it.",
    analytics.Format,
    example="csv",
)
ROWS = (FROM, TO, LIMIT, CURSOR, FORMAT)

SITE = (
    Operation(
        "POST",
        "/discovery/v1/search/{domain}",
        "search",
        "Assistant",
        "Search a site",
        {
            200: Answer(
                "Sections, best first; none when no word of the query is on the site.", list[search.SearchResult]
            )
        },
        key="assistant",
        body=search.SearchBody,
        body_examples={"question": {"query": "How do I retry a failed job?", "pageSize": 5}},
        parameters=(DOMAIN,),
        errors={404: ("not_indexed",)},
    ),
    Operation(
        "POST",
        "/discovery/v1/page/{domain}",
        "readPage",
        "Assistant",
        "Read a page of a site",
        {200: Answer("The page as Markdown.", search.PageView)},
        key="assistant",
        body=search.PageBody,
        body_examples={"page": {"path": "guides/retries.md"}},
        parameters=(DOMAIN,),
        errors={404: ("page_not_found", "not_indexed")},
    ),
    Operation(
        "POST",
        "/discovery/v1/feedback/{domain}",
        "rateReply",
        "Assistant",
        "Say what a reply was worth",
        {204: Answer("It is recorded. The last feedback for a reply counts.")},
        description="`messageId` is the reply's, as its stream's start names it. A comment is erased with its thread.",
        key="assistant",
        body=feedback.FeedbackBody,
        body_examples={"thumb": {"threadId": "kq3v…", "messageId": "msg_…", "rating": "up"}},
        parameters=(DOMAIN,),
        errors={404: ("thread_not_found", "message_not_found"), 409: ("feedback_changed_too_often",)},
    ),
)

ANALYTICS = (
    Operation(
        "GET",
        "/v1/analytics/{projectId}/assistant",
        "listConversations",
        "Analytics",
        "List what was asked",
        {200: Answer("Questions with their answers, the newest first.", analytics.ConversationsView)},
        key="admin",
        parameters=(
            PROJECT,
            *ROWS,
            Parameter("resolutionStatus", "Only what was answered, or what was not.", Resolution, example="unanswered"),
        ),
    ),
    Operation(
        "GET",
        "/v1/analytics/{projectId}/assistant/unanswered",
        "listUnanswered",
        "Analytics",
        "List what the documentation does not say",
        {200: Answer("By wording, what was asked most first.", analytics.UnansweredListView)},
        key="admin",
        parameters=(PROJECT, *ROWS),
    ),
    Operation(
        "GET",
        "/v1/analytics/{projectId}/assistant/threads/{threadId}",
        "getThread",
        "Analytics",
        "Read a thread",
        {200: Answer("Its transcript.", analytics.TranscriptView)},
        key="admin",
        parameters=(PROJECT, THREAD),
        errors={404: ("thread_not_found",)},
    ),
    Operation(
        "GET",
        "/v1/analytics/{projectId}/feedback",
        "listFeedback",
        "Analytics",
        "List what readers thought of replies",
        {200: Answer("The newest first.", analytics.FeedbackListView)},
        key="admin",
        parameters=(PROJECT, *ROWS, Parameter("rating", "Only this one.", Rating, example="down")),
    ),
)
