"""Readers' ratings of the assistant's replies."""

from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct

from service.commands.threads import give_feedback
from service.domain.threads.feedback import MAX_COMMENT_CHARACTERS, GiveFeedback, Rating
from service.runtime.system import now
from service.views.fields import described
from service.views.projects import ProjectView
from service.web.api.description.operations import Answer, Routes
from service.web.http.access.access import site_for
from service.web.http.app_keys import STORE
from service.web.http.problems import metadata_of, read_body

EXAMPLE_THREAD_ID, EXAMPLE_MESSAGE_ID = "kq3vN0tq2cXb6mR1sWzY8dLhJ4uPfGoE", "msg_4da30a873336200bc7dc5c728437f187"

routes = Routes()


class FeedbackBody(Struct, rename="camel"):
    """A reader's rating of a reply."""

    thread_id: Annotated[str, Meta(min_length=1, max_length=200, description="The thread's id.")]
    message_id: Annotated[
        str, Meta(min_length=1, max_length=200, description="The reply's id, as its stream names it at the start.")
    ]
    rating: Annotated[Rating, described("Whether it was of use.")]
    comment: Annotated[
        Annotated[str, Meta(max_length=MAX_COMMENT_CHARACTERS)] | None,
        described("In the reader's own words; erased with the thread."),
    ] = None


@routes.operation(
    "POST",
    "/discovery/v1/feedback/{domain}",
    "rateReply",
    "Assistant",
    "Rate a reply",
    {204: Answer("It is recorded. The last feedback for a reply counts.")},
    description="`messageId` is the reply's, as its stream's start names it. A comment is erased with its thread.",
    body=FeedbackBody,
    body_examples={"thumb": {"threadId": EXAMPLE_THREAD_ID, "messageId": EXAMPLE_MESSAGE_ID, "rating": "up"}},
    errors={404: ("thread_not_found", "message_not_found"), 409: ("feedback_changed_too_often",)},
)
async def post_feedback(request: web.Request) -> web.Response:
    """The last feedback for a reply counts."""
    return await record_feedback(request, await site_for(request))


async def record_feedback(request: web.Request, project: ProjectView) -> web.Response:
    """Record the rating of a request that may ask this site."""
    body = await read_body(request, FeedbackBody, mends_text=True)
    command = GiveFeedback(body.message_id, project.domain, body.rating, (body.comment or "").strip(), now())
    await give_feedback(request.app[STORE], body.thread_id, command, metadata_of(request))
    return web.Response(status=204)
