"""Readers' ratings of the assistant's replies."""

from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct

from service.commands.threads import give_feedback
from service.domain.feedback import MAX_COMMENT_CHARACTERS, GiveFeedback, Rating
from service.runtime.system import now
from service.views.fields import described
from service.web.http.access import site_for
from service.web.http.app_keys import STORE
from service.web.http.problems import metadata_of, read_body

routes = web.RouteTableDef()


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


@routes.post("/discovery/v1/feedback/{domain}")
async def post_feedback(request: web.Request) -> web.Response:
    """The last feedback for a reply counts."""
    project = await site_for(request)
    body = await read_body(request, FeedbackBody)
    command = GiveFeedback(body.message_id, project.domain, body.rating, (body.comment or "").strip(), now())
    await give_feedback(request.app[STORE], body.thread_id, command, metadata_of(request))
    return web.Response(status=204)
