"""Tools for readers' questions: those that the documentation does not answer, and single conversations."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from service.domain.threads.feedback import Rating
from service.domain.threads.recorded_reply import Outcome, ReplyState, Resolution
from service.queries.projects import get_project
from service.queries.readers.analytics import Days
from service.queries.readers.gaps import GapQuery
from service.queries.readers.questions import (
    FIRST,
    catch_up_questions,
    project_of_thread,
    thread_not_found,
    transcript_page,
)
from service.runtime.system import now
from service.views.fields import NextCursor, Timestamp, described
from service.views.readers.gaps import GapView
from service.views.readers.questions import SourceView, TranscriptMessage
from service.web.http.app_keys import GAP_READER, STORE, VIEWS
from service.web.mcp.organization import MAX_PROJECT_CHARACTERS, UNTRUSTED, Organization, find_project, record_reading
from service.web.mcp.tools import Call, Tools

MAX_DAYS, DAYS = 366, 30
MAX_GAPS, GAPS = 50, 20
MAX_TURNS, TURNS = 200, 50
MAX_ID_CHARACTERS = 200
MAX_EXAMPLE_CHARACTERS = 1_000
"""Characters of each question in a list."""
MAX_TEXT_CHARACTERS = 50_000
"""Characters of a message of a conversation."""
MAX_THREAD_CHARACTERS = 200_000
"""Characters of a conversation in one answer, unless one turn has more: what a model reads at once."""

tools: Tools[Organization] = Tools()


class UnansweredArguments(Struct, forbid_unknown_fields=True):
    project: Annotated[
        Annotated[str, Meta(max_length=MAX_PROJECT_CHARACTERS)] | None,
        described("A project's id or the name of its site; all projects when left out."),
    ] = None
    days: Annotated[Annotated[int, Meta(ge=1, le=MAX_DAYS)], described("How many days, today in UTC included.")] = DAYS
    limit: Annotated[Annotated[int, Meta(ge=1, le=MAX_GAPS)], described("How many groups at most.")] = GAPS
    cursor: Annotated[
        Annotated[str, Meta(pattern="^[0-9]{1,9}$")] | None, described("The `nextCursor` of an earlier answer.")
    ] = None


class ThreadArguments(Struct, forbid_unknown_fields=True, rename="camel"):
    thread_id: Annotated[
        str, Meta(min_length=1, max_length=MAX_ID_CHARACTERS, description="A thread's id, or that of a question in it.")
    ]
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_TURNS)], described("How many questions at most, each with its reply.")
    ] = TURNS
    cursor: Annotated[
        Annotated[str, Meta(pattern="^[0-9]{1,18}$")] | None, described("The `nextCursor` of an earlier answer.")
    ] = None


class AskedText(Struct, frozen=True, rename="camel"):
    """The words of readers who asked the same thing."""

    question: Annotated[
        str,
        described(f"The newest question in the commonest wording, cut after {MAX_EXAMPLE_CHARACTERS:,} characters."),
    ]
    examples: Annotated[tuple[str, ...], described("The newest questions, each cut as that one is.")]
    job_prompt: Annotated[str, described("An instruction for `create_job`, which quotes the questions.")]


class UnansweredGroup(Struct, frozen=True, rename="camel"):
    """Questions that ask for the same thing, and that the documentation does not answer."""

    id: Annotated[str, described("A name for the group.")]
    project_id: Annotated[str, described("The project whose documentation lacks the answer.")]
    count: Annotated[int, described("How often it was asked.")]
    wordings: Annotated[int, described("In how many wordings.")]
    last_asked_at: Annotated[Timestamp, described("When it was asked last.")]
    thread_ids: Annotated[tuple[str, ...], described("Conversations with these questions, for `show_thread`.")]
    pages: Annotated[tuple[str, ...], described("Files that the searches for it found.")]
    job_id: Annotated[str | None, described("The job that was made of it since it was asked last.")]
    untrusted_reader_text: Annotated[AskedText, described(UNTRUSTED)]


class UnansweredAnswer(Struct, frozen=True, rename="camel"):
    groups: Annotated[tuple[UnansweredGroup, ...], described("The most frequent first.")]
    next_cursor: NextCursor


class ThreadMessage(Struct, frozen=True, rename="camel"):
    """A question, or a reply to one."""

    id: Annotated[str, described("The id of the question or the reply.")]
    role: Annotated[Literal["user", "assistant"], described("The message's author.")]
    created_at: Annotated[Timestamp, described("When it was asked, or begun.")]
    answer: Annotated[str | None, described("The words of a reply, which may repeat those of the reader.")]
    resolution_status: Annotated[Resolution | None, described("Whether the documentation answers; in a reply only.")]
    outcome: Annotated[
        Outcome | None, described("The same, with `unsure` where the nearest passages were shown; in a reply only.")
    ]
    state: Annotated[ReplyState | None, described("How far the reply came; in a reply only.")]
    sources: Annotated[tuple[SourceView, ...], described("The sources that a reply cites.")]
    rating: Annotated[Rating | None, described("The reader's rating; in a reply only.")]
    untrusted_reader_text: Annotated[str | None, described(f"A question, or a comment on a reply. {UNTRUSTED}")]
    is_cut: Annotated[bool, described(f"Whether the text has more than the {MAX_TEXT_CHARACTERS:,} characters here.")]


class ThreadAnswer(Struct, frozen=True, rename="camel"):
    thread_id: Annotated[str, described("The thread's id.")]
    project_id: Annotated[str, described("The project whose site was asked.")]
    created_at: Annotated[Timestamp, described("When it began.")]
    messages: Annotated[
        tuple[ThreadMessage, ...], described("The newest, in their order; fewer than the limit where they are long.")
    ]
    next_cursor: Annotated[
        str | None, described("The `cursor` for the messages before these; null where there are none.")
    ]


@tools.tool("list_unanswered", "List questions without an answer", reads=True)
async def list_unanswered(call: Call[Organization], arguments: UnansweredArguments) -> UnansweredAnswer:
    """List what readers asked and the documentation does not answer, in groups that ask for the same thing. The
    readers' words are in `untrustedReaderText`.
    """
    app, offset = call.request.app, int(arguments.cursor or 0)
    project = await find_project(call.request, call.scope, arguments.project) if arguments.project else None
    project_id = project.id if project is not None else ""
    await record_reading(call.request, call.scope, "list_unanswered", {"project": project_id})
    await catch_up_questions(app[STORE], app[VIEWS])
    period = Days.until(now().date(), days=arguments.days).period
    query = GapQuery(call.scope.id, period, project_id or None)
    found = await app[GAP_READER].list(query, limit=arguments.limit + 1, offset=offset)
    cursor = str(found[arguments.limit - 1][0]) if len(found) > arguments.limit else None
    return UnansweredAnswer(tuple(_group(gap) for _, gap in found[: arguments.limit]), cursor)


@tools.tool("show_thread", "Read a conversation", reads=True)
async def show_thread(call: Call[Organization], arguments: ThreadArguments) -> ThreadAnswer:
    """Read the newest messages of a reader's conversation with the assistant. The reader's words are in
    `untrustedReaderText`. Each reading is recorded in the audit log.
    """
    app = call.request.app
    await catch_up_questions(app[STORE], app[VIEWS])
    project_id = await project_of_thread(app[VIEWS], call.scope.id, arguments.thread_id)
    project = None if project_id is None else await get_project(app[VIEWS], project_id)
    if project is None:
        raise thread_not_found()
    page = await transcript_page(
        app[VIEWS], project.id, arguments.thread_id,
        before=int(arguments.cursor or FIRST), limit=arguments.limit, most_characters=MAX_THREAD_CHARACTERS,
    )  # fmt: skip
    if page is None:
        raise thread_not_found()
    thread, cursor = page.transcript, None if page.next is None else str(page.next)
    await record_reading(call.request, call.scope, "show_thread", {"thread": thread.thread_id})
    return ThreadAnswer(thread.thread_id, project.id, thread.created_at, tuple(map(_message, thread.messages)), cursor)


def _group(gap: GapView) -> UnansweredGroup:
    return UnansweredGroup(
        gap.id,
        gap.project_id,
        gap.count,
        gap.wordings,
        gap.last_asked_at,
        tuple(dict.fromkeys(example.thread_id for example in gap.examples)),
        gap.pages,
        gap.job_id,
        AskedText(_example(gap.question), tuple(_example(one.query) for one in gap.examples), gap.prompt),
    )


def _example(question: str) -> str:
    return question if len(question) <= MAX_EXAMPLE_CHARACTERS else f"{question[:MAX_EXAMPLE_CHARACTERS]} …"


def _message(message: TranscriptMessage) -> ThreadMessage:
    feedback = message.feedback
    is_question, text = message.role == "user", message.content[:MAX_TEXT_CHARACTERS]
    return ThreadMessage(
        message.id,
        message.role,
        message.created_at,
        None if is_question else text,
        message.resolution_status,
        message.outcome,
        message.state,
        message.sources,
        feedback.rating if feedback is not None else None,
        text if is_question else (feedback.comment if feedback is not None else None),
        len(message.content) > MAX_TEXT_CHARACTERS,
    )
