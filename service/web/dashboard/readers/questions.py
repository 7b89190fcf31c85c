"""Questions to an organization's assistants, and the conversations that they are in."""

import asyncio
import re
from collections.abc import Sequence
from typing import cast

from aiohttp import web
from markupsafe import Markup
from msgspec import Struct

from service.commands.erasures import erase_subject
from service.domain.errors import Invalid
from service.domain.events import GONE
from service.domain.threads.feedback import Rating
from service.domain.threads.recorded_reply import Caller, Outcome
from service.markup.suggestions import Suggestion, parted
from service.queries.readers.questions import (
    FIRST,
    MAX_LOOKED_AT,
    QuestionFilter,
    catch_up_questions,
    questions_page,
)
from service.streams import THREADS
from service.views.readers.questions import TranscriptMessage
from service.web.api.organization.questions import MAX_TEXT, conversation_of, searched_text
from service.web.dashboard.page import dashboard_page, record_read, see_other
from service.web.dashboard.readers.periods import DAYS, choice, cursor_place, filters_of
from service.web.http.access.people import member, metadata
from service.web.http.app_keys import STORE, VIEWS
from service.web.pages.rendering import safe_markdown, visible

PAGE_LENGTH = 50
MESSAGES = 40
"""Messages of a conversation on one page."""
MAX_RENDERED, MAX_RENDERED_PAGE = 20_000, 200_000
"""Characters of an answer that is shown as Markdown, and of all answers of a page; others are shown as written."""
CONVERSATION_PATH = "/dashboard/{organizationId}/questions/{threadId}"
SOUGHT = "given"
"""Stands for the words of a search in the record of a read: they may name a person, and the log keeps them for good."""
OUTCOMES = {
    "answered": "Answered",
    "unsure": "Unsure",
    "unanswered": "Not answered",
    "failed": "No whole answer",
}
RATINGS = {"up": "Helpful", "down": "Not helpful"}
CALLERS = {"web": "Web page", "api": "API", "mcp": "MCP", "terminal": "Terminal"}

_CITATION = re.compile(r"\[\[?(\d{1,3})\]\]?\([^()\s]*\)")
_SITE_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\((/[^()\s`]{0,500})\)")

routes = web.RouteTableDef()


@routes.get("/dashboard/{organizationId}/questions")
async def show_questions(request: web.Request) -> web.Response:
    """List the questions, the newest first."""
    viewer = await member(request)
    filters = await filters_of(request, viewer, days="")
    chosen = {
        "outcome": choice(request, "outcome", tuple(OUTCOMES)),
        "rating": choice(request, "rating", tuple(RATINGS)),
        "caller": choice(request, "caller", tuple(CALLERS)),
    }
    text, problem = None, ""
    try:
        text = searched_text(request)
    except Invalid as error:
        problem = str(error)
    only = QuestionFilter(
        cast("Outcome | None", chosen["outcome"] or None),
        cast("Rating | None", chosen["rating"] or None),
        cast("Caller | None", chosen["caller"] or None),
        filters.project_id,
        text,
    )
    query = {**filters.query, **{name: value for name, value in chosen.items() if value}}
    await record_read(request, viewer, "questions", query | ({"text": SOUGHT} if text else {}))
    await catch_up_questions(request.app[STORE], request.app[VIEWS])
    before = cursor_place(request, FIRST)
    found = await questions_page(
        request.app[VIEWS], viewer.organization_id, filters.period(), only, before=before, limit=PAGE_LENGTH
    )
    return dashboard_page(
        request, viewer, "readers/questions.html",
        rows=found.questions, next="" if found.next is None else str(found.next),
        cursor="" if before == FIRST else str(before), chosen=chosen, filters=filters, all_days=DAYS,
        query=query | ({"text": text} if text else {}), text=text or "", max_text=MAX_TEXT, problem=problem,
        outcomes=OUTCOMES, ratings=RATINGS, callers=CALLERS, looked_at=MAX_LOOKED_AT, status=400 if problem else 200,
    )  # fmt: skip


class ShownMessage(Struct, frozen=True):
    """A message of a conversation, and its text as HTML."""

    message: TranscriptMessage
    html: Markup
    suggestions: Sequence[Suggestion] = ()


@routes.get(CONVERSATION_PATH)
async def show_conversation(request: web.Request) -> web.Response:
    """Show a whole conversation, by its id or that of a question in it."""
    viewer = await member(request)
    await catch_up_questions(request.app[STORE], request.app[VIEWS])
    project, thread = await conversation_of(request, viewer.organization_id)
    await record_read(request, viewer, "conversation", {"thread": thread.thread_id})
    start = cursor_place(request, 0)
    shown = thread.messages[start : start + MESSAGES]
    return dashboard_page(
        request, viewer, "readers/conversation.html",
        thread=thread, messages=await asyncio.to_thread(_shown, shown), project=project,
        next=str(start + MESSAGES) if start + MESSAGES < len(thread.messages) else "", cursor=str(start or ""),
        is_erased=any(one.content in GONE for one in thread.messages if one.role == "user"),
    )  # fmt: skip


@routes.post(CONVERSATION_PATH + "/erase")
async def erase_conversation(request: web.Request) -> web.Response:
    """Delete what people typed in a conversation; for owners."""
    viewer = await member(request, "owner")
    _, thread = await conversation_of(request, viewer.organization_id)
    subject = THREADS.stream(thread.thread_id)
    await erase_subject(request.app[STORE], request.app[VIEWS], subject, metadata(request))
    path = f"dashboard/{viewer.organization_id}/questions/{thread.thread_id}"
    return see_other(request, path, notice="The conversation's text is erased. That it took place stays on record.")


def _shown(messages: tuple[TranscriptMessage, ...]) -> list[ShownMessage]:
    shown, rendered = [], 0
    for one in messages:
        text, suggestions = parted(one.content) if one.role == "assistant" else (one.content, [])
        is_plain = one.role == "user" or len(text) > MAX_RENDERED or rendered + len(text) > MAX_RENDERED_PAGE
        rendered += 0 if is_plain else len(text)
        shown.append(ShownMessage(one, _plain(text) if is_plain else _html(one, text), suggestions))
    return shown


def _plain(text: str) -> Markup:
    return Markup('<pre class="words">{}</pre>').format(visible(text))


def _html(message: TranscriptMessage, text: str) -> Markup:
    """Return an answer's text as HTML. Its citations lead to the list of its sources; links within the documentation
    site are shown as text, since they are not addresses here.
    """
    cited = {str(source.number) for source in message.sources}
    text = _CITATION.sub(
        lambda found: f"[[{found[1]}]](#{message.id}-{found[1]})" if found[1] in cited else found[0], visible(text)
    )
    return safe_markdown(_SITE_LINK.sub(r"\1 (`\2`)", text))
