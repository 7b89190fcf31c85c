"""What readers think of the assistant's replies."""

from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct

from service.domain.feedback import MAX_COMMENT_CHARACTERS, GiveFeedback, Rating
from service.operations import give_feedback
from service.system import now
from service.web.access import site_for
from service.web.keys import STORE
from service.web.problems import metadata_of, read_body

routes = web.RouteTableDef()


class FeedbackBody(Struct, rename="camel"):
    thread_id: Annotated[str, Meta(min_length=1, max_length=200)]
    message_id: Annotated[str, Meta(min_length=1, max_length=200)]
    """Of the reply, as its stream names it."""
    rating: Rating
    comment: Annotated[str, Meta(max_length=MAX_COMMENT_CHARACTERS)] | None = None


@routes.post("/discovery/v1/feedback/{domain}")
async def post_feedback(request: web.Request) -> web.Response:
    """The last feedback for a reply counts."""
    project = await site_for(request)
    body = await read_body(request, FeedbackBody)
    command = GiveFeedback(body.message_id, project.domain, body.rating, (body.comment or "").strip(), now())
    await give_feedback(request.app[STORE], body.thread_id, command, metadata_of(request))
    return web.Response(status=204)
