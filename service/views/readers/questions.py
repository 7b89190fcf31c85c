"""Questions to a project's assistant, their outcomes, and readers' ratings of the replies."""

from typing import Annotated, Literal

from msgspec import Struct

from service.domain.threads.checks import ReplyChecks
from service.domain.threads.feedback import Rating
from service.domain.threads.recorded_reply import Caller, Outcome, ReplyState, Resolution
from service.views.fields import NextCursor, Reference, Timestamp, described

HasMore = Annotated[bool, described("Whether there are more rows.")]


class SourceView(Struct, frozen=True, rename="camel"):
    """A passage that an answer cites, as of a commit."""

    number: Annotated[int, described("Its number in the answer's citations.")]
    title: Annotated[str, described("The page's title.")]
    url: Annotated[Reference, described("Where it is on the site.")]
    path: Annotated[str, described("The path of its file in the repository: the page's, or one that the page shows.")]
    start_line: Annotated[int, described("Where it begins in the file, from 1.")]
    end_line: Annotated[int, described("Where it ends in the file.")]
    commit: Annotated[str, described("The commit that it was read from.")]


class PassageLineView(Struct, frozen=True, rename="camel"):
    """A line of a cited file."""

    number: Annotated[int, described("Its number in the file, from 1.")]
    text: Annotated[str, described("The line, cut after 2,000 characters.")]
    is_cited: Annotated[bool, described("Whether the answer cites it; the others are around the passage.")]


class PassageView(Struct, frozen=True):
    """A source of an answer, as it was at the commit that the answer was made from."""

    source: Annotated[SourceView, described("The source.")]
    lines: Annotated[
        tuple[PassageLineView, ...],
        described("The cited lines and some around them, at most 400; none when the file does not have them."),
    ]


class FeedbackView(Struct, frozen=True, rename="camel"):
    """A reader's rating of a reply."""

    rating: Annotated[Rating, described("Whether it was of use.")]
    comment: Annotated[str | None, described("In the reader's words.")]
    created_at: Annotated[Timestamp, described("When it was said.")]


class ReplyFailureView(Struct, frozen=True, rename="camel"):
    """Why a reply has no whole answer."""

    code: Annotated[str, described("A stable name, such as `assistant_unavailable` or `content_filter`.")]
    message: Annotated[str, described("The sentence that its reader saw, or the reason.")]


class CheckedSentenceView(Struct, frozen=True, rename="camel"):
    """A sentence of an answer with something that no passage has."""

    text: Annotated[str, described("Its beginning.")]
    start: Annotated[int, described("Where it begins in the answer, in characters.")]
    missing: Annotated[tuple[str, ...], described("Its numbers, names, flags or pieces of code that no passage has.")]
    passage: Annotated[int | None, described("The number of the passage that comes nearest; null where none does.")]
    start_line: Annotated[int | None, described("Where in the page's file that is.")]
    end_line: Annotated[int | None, described("Where it ends there.")]


class AnswerChecksView(Struct, frozen=True, rename="camel"):
    """The sentences of an answer that claim something, by whether its passages support them."""

    supported: Annotated[int, described("How many its cited passages support.")]
    partly: Annotated[int, described("How many only other passages support, or hardly.")]
    unsupported: Annotated[int, described("How many have something that is in no passage.")]
    sentences: Annotated[tuple[CheckedSentenceView, ...], described("The first of the unsupported ones.")]


def checks_view(checks: ReplyChecks) -> AnswerChecksView:
    counts = checks.counts
    sentences = tuple(
        CheckedSentenceView(
            one.text, one.start, one.missing, one.passage or None, one.start_line or None, one.end_line or None
        )
        for one in checks.marked
    )
    return AnswerChecksView(counts.supported, counts.partly, counts.unsupported, sentences)


class ConversationView(Struct, frozen=True, rename="camel"):
    """A question and its outcome. ``[erased]`` replaces the words of a thread that was erased, ``[damaged]`` for words
    that cannot be read any more.
    """

    id: Annotated[str, described("Of the question.")]
    thread_id: Annotated[str, described("Of the thread that it is in.")]
    conversation_id: Annotated[str, described("The same: older clients know it by this name.")]
    message_id: Annotated[str, described("Of the newest reply, as its stream named it.")]
    timestamp: Annotated[Timestamp, described("When it was asked.")]
    query: Annotated[str, described("The question.")]
    response: Annotated[str, described("The answer, as far as it was written.")]
    resolution_status: Annotated[
        Resolution,
        described("`unanswered` also where no whole answer was given, or an unsure one; see `outcome`."),
    ]
    outcome: Annotated[
        Outcome | None,
        described(
            "`unsure`: the nearest passages were shown, and may answer; `failed`: there is no whole answer. Null while"
            " the reply is under way."
        ),
    ]
    is_gap: Annotated[
        bool,
        described(
            "Whether the documentation lacks the answer. False also where the reply failed, was filtered, empty,"
            " stopped or interrupted, is unsure, or is under way: `failure`, `outcome` and `state` say so."
        ),
    ]
    state: Annotated[ReplyState | None, described("How far the answer came; null when it was never begun.")]
    failure: Annotated[ReplyFailureView | None, described("Why it failed, or was cut by a content filter.")]
    uncited: Annotated[bool, described("Whether the answer cites no passage.")]
    checks: Annotated[AnswerChecksView | None, described("Its sentences; null for an answer that was not checked.")]
    model: Annotated[str | None, described("The model that wrote it.")]
    sources: Annotated[tuple[SourceView, ...], described("The sources that the answer cites.")]
    page: Annotated[str | None, described("The page that the reader had open.")]
    feedback: Annotated[FeedbackView | None, described("The last one of this answer.")]
    caller: Annotated[Caller, described("The kind of client that asked; empty from before it was recorded.")]
    project_id: Annotated[str, described("The project whose site was asked.")]


class ConversationsView(Struct, frozen=True, rename="camel"):
    """Some of what was asked."""

    conversations: Annotated[tuple[ConversationView, ...], described("The newest first.")]
    next_cursor: NextCursor
    has_more: HasMore


class TranscriptMessage(Struct, frozen=True, rename="camel"):
    """A question, or a reply to one."""

    id: Annotated[str, described("Of the question, or of the reply.")]
    role: Annotated[Literal["user", "assistant"], described("The message's author.")]
    content: Annotated[str, described("The words.")]
    created_at: Annotated[Timestamp, described("When it was asked, or begun.")]
    resolution_status: Annotated[Resolution | None, described("Of a reply.")] = None
    state: Annotated[ReplyState | None, described("Of a reply: how far it came.")] = None
    sources: Annotated[tuple[SourceView, ...], described("The sources that a reply cites.")] = ()
    feedback: Annotated[FeedbackView | None, described("Of a reply: the last one.")] = None
    failure: Annotated[ReplyFailureView | None, described("Of a reply: why it has no whole answer.")] = None
    uncited: Annotated[bool, described("Of a reply: whether it cites no passage.")] = False
    checks: Annotated[AnswerChecksView | None, described("Of a reply: its sentences.")] = None
    outcome: Annotated[Outcome | None, described("Of a reply: how it ended; null while it is under way.")] = None


class TranscriptView(Struct, frozen=True, rename="camel"):
    """A thread as it is now, without turns that were edited away."""

    thread_id: Annotated[str, described("The thread's id.")]
    created_at: Annotated[Timestamp, described("When it began.")]
    messages: Annotated[tuple[TranscriptMessage, ...], described("In their order.")]


class ExampleView(Struct, frozen=True, rename="camel"):
    """A question of a wording."""

    id: Annotated[str, described("Of the question.")]
    thread_id: Annotated[str, described("Of the thread that it is in.")]
    query: Annotated[str, described("The question as it was put.")]
    timestamp: Annotated[Timestamp, described("When it was asked.")]


class ErasedThreadView(Struct, frozen=True, rename="camel"):
    """A conversation whose text is erased."""

    thread_id: Annotated[str, described("The thread's id.")]
    position: Annotated[int, described("The position of the record of it in the log.")]
    again: Annotated[bool, described("Whether it was erased before.")]


class UnansweredView(Struct, frozen=True, rename="camel"):
    """Questions that were worded alike, and that the documentation does not answer."""

    wording: Annotated[str, described("The form that the questions share.")]
    count: Annotated[int, described("How often it was asked.")]
    last_asked_at: Annotated[Timestamp, described("When it was asked last.")]
    examples: Annotated[tuple[ExampleView, ...], described("The newest ones.")]


class UnansweredListView(Struct, frozen=True, rename="camel"):
    """Some of what the documentation does not say."""

    questions: Annotated[tuple[UnansweredView, ...], described("The most frequent wording first.")]
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


class DoubtfulAnswerView(Struct, frozen=True, rename="camel"):
    """An answer with sentences that no passage supports."""

    id: Annotated[str, described("Of the question.")]
    thread_id: Annotated[str, described("Of the thread that it is in.")]
    message_id: Annotated[str, described("Of the reply.")]
    timestamp: Annotated[Timestamp, described("When the question was asked.")]
    query: Annotated[str, described("The question.")]
    checks: Annotated[AnswerChecksView, described("Its sentences.")]


class ChecksSummaryView(Struct, frozen=True, rename="camel"):
    """How far the answers of a period stand on the documentation."""

    answers: Annotated[int, described("How many answers with claims were checked.")]
    answers_with_unsupported: Annotated[int, described("How many of them have an unsupported sentence.")]
    supported: Annotated[int, described("Sentences that are supported.")]
    partly: Annotated[int, described("Sentences that are supported in part.")]
    unsupported: Annotated[int, described("Sentences that are not.")]
    supported_share: Annotated[
        float | None, described("The share of sentences that are supported, 0 to 1; null without any.")
    ]
    worst: Annotated[tuple[DoubtfulAnswerView, ...], described("Those with the most unsupported sentences first.")]


class FeedbackListView(Struct, frozen=True, rename="camel"):
    """Some of what readers thought."""

    feedback: Annotated[tuple[RatedView, ...], described("The newest first.")]
    next_cursor: NextCursor
    has_more: HasMore
