"""The tools of the assistant: ask a question and get a cited answer; rate the answer.

A question is one of a reader, of the kind ``mcp``: it is counted, recorded and answered as any other. Its words come as
progress while they are written, for a client that asked for that. A client that closes its connection stops the answer.
"""

from collections.abc import Iterable
from contextlib import aclosing
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from service.commands.threads import give_feedback, plain_question, post_message, start_thread
from service.domain.errors import Invalid, Unavailable
from service.domain.search import Source
from service.domain.threads.feedback import MAX_COMMENT_CHARACTERS, GiveFeedback, Rating
from service.domain.threads.recorded_reply import Outcome, Resolution
from service.domain.threads.replies import ReplyBroken, ReplyDone, SearchFinished, SearchStarted, TextDelta
from service.domain.threads.threads import MAX_QUESTION_CHARACTERS, PostMessage
from service.runtime.system import now
from service.views.fields import described
from service.views.projects import ProjectView
from service.web.api.assistant.replies import ReplySubscription, begin_reply, events_of
from service.web.http.access.access import CALLER, is_keyless
from service.web.http.app_keys import INSTANCE, KEY_REQUIRED, STORE
from service.web.http.connections.limits import attach_question_quota, metered_store
from service.web.http.problems import metadata_of
from service.web.http.site_addresses import reading_address
from service.web.mcp.tools import Call, Tools

tools: Tools[ProjectView] = Tools()

Text200 = Annotated[str, Meta(max_length=200)]


class AskArguments(Struct, forbid_unknown_fields=True, rename="camel"):
    question: Annotated[
        str, Meta(min_length=1, max_length=MAX_QUESTION_CHARACTERS, description="The question, in any language.")
    ]
    thread_id: Annotated[Text200, described("The `threadId` of an earlier answer, to ask a further question.")] = ""
    thread_key: Annotated[Text200, described("The `threadKey` of the first answer in that thread.")] = ""


class CitedSource(Struct, frozen=True, rename="camel"):
    """A passage that the answer cites."""

    id: Annotated[str, described("The id to give to `fetch`.")]
    title: Annotated[str, described("The page's title.")]
    url: Annotated[str, described("The address to cite.")]
    file: Annotated[str, described("The path of its file in the repository.")]
    start_line: Annotated[int, described("The passage's first line in the file.")]
    end_line: Annotated[int, described("Its last line.")]
    commit: Annotated[str, described("The commit that it was read from.")]


class AnswerView(Struct, frozen=True, rename="camel", omit_defaults=True):
    answer: Annotated[str, described("The answer as Markdown.")]
    sources: Annotated[list[CitedSource], described("The passages that it cites.")]
    resolution: Annotated[Resolution, described("Whether the documentation answers the question.")]
    outcome: Annotated[
        Outcome, described("The same, and `unsure` where the answer shows the nearest passages, which may answer.")
    ]
    thread_id: Annotated[str, described("The id to give with a further question, and to `submit_feedback`.")]
    message_id: Annotated[str, described("The id to give to `submit_feedback`.")]
    thread_key: Annotated[str, described("The key for further questions; in the first answer of a thread only.")] = ""


class FeedbackArguments(Struct, forbid_unknown_fields=True, rename="camel"):
    thread_id: Annotated[str, Meta(min_length=1, max_length=200, description="The `threadId` of the answer.")]
    message_id: Annotated[str, Meta(min_length=1, max_length=200, description="The `messageId` of the answer.")]
    rating: Annotated[Rating, described("Whether the answer helped.")]
    comment: Annotated[
        Annotated[str, Meta(max_length=MAX_COMMENT_CHARACTERS)], described("What was good, or what is missing.")
    ] = ""


class FeedbackView(Struct, frozen=True):
    recorded: Annotated[bool, described("Always true: the last rating of an answer counts.")] = True


@tools.tool("ask", "Ask the documentation", reads=False)
async def ask(call: Call[ProjectView], arguments: AskArguments) -> AnswerView:
    """Ask this documentation a question. Returns an answer made from its pages alone, with the passages that it cites,
    and says when they do not answer it.
    """
    if not arguments.question.strip():
        raise Invalid("The question is blank. Send a question.")
    request, project = call.request, call.scope
    attach_question_quota(request, request.get(CALLER), project)
    message = question_of(call, arguments.question, arguments.thread_key)
    store, metadata = metered_store(request), metadata_of(request)
    if arguments.thread_id:
        record = partial(post_message, store, arguments.thread_id, message, metadata)
    else:
        record = partial(start_thread, store, project, message, metadata)
    return await _answer(call, await begin_reply(request, message, record))


def question_of(call: Call[ProjectView], text: str, thread_key: str = "") -> PostMessage:
    """Return what the caller asks, as a message to the assistant."""
    request = call.request
    return replace(
        plain_question(text, domain=call.scope.domain, instance=request.app[INSTANCE], caller="mcp"),
        thread_key=thread_key or None,
        key_required=request.app[KEY_REQUIRED],
        is_public=is_keyless(request),
    )


async def _answer(call: Call[ProjectView], reply: ReplySubscription) -> AnswerView:
    """Return the answer once it is written. Raise Unavailable where it cannot be."""
    sources: list[Source] = []
    done: ReplyDone | None = None
    async with aclosing(events_of(call.request, reply)) as events:
        async for event in events:
            match event:
                case None:
                    await call.progress.keep_alive()
                case SearchStarted():
                    await call.progress.report()
                case SearchFinished(sources=found):
                    sources.extend(found)
                case TextDelta(text=text):
                    await call.progress.report(text)
                case ReplyBroken(message=message, code=code):
                    raise Unavailable(message, code=code)
                case ReplyDone():
                    done = event  # what was read to its end is not stopped
                case _:
                    pass
    if done is None:
        raise Unavailable("The answer was interrupted; ask again in a moment.")
    cited = [source for source in sources if source.number in done.cited]
    return AnswerView(
        done.text,
        _cited(call, cited),
        done.resolution,
        done.outcome,
        reply.thread_id,
        reply.reply_id,
        reply.thread_key or "",
    )


def _cited(call: Call[ProjectView], sources: Iterable[Source]) -> list[CitedSource]:
    return [
        CitedSource(
            one.url, one.title, reading_address(call.request, call.scope, one.url), one.path, one.start_line,
            one.end_line, one.commit,
        )
        for one in sources
    ]  # fmt: skip


@tools.tool("submit_feedback", "Rate an answer", reads=False, repeatable=True)
async def submit_feedback(call: Call[ProjectView], arguments: FeedbackArguments) -> FeedbackView:
    """Rate an answer of `ask`, so that the owners of this documentation learn what is missing."""
    command = GiveFeedback(arguments.message_id, call.scope.domain, arguments.rating, arguments.comment.strip(), now())
    await give_feedback(call.request.app[STORE], arguments.thread_id, command, metadata_of(call.request))
    return FeedbackView()
