"""``/sign-in``: a one-time link becomes a session, with script or without; ``/sign-out`` ends it."""

from aiohttp import web

from service.commands.people import person_of_link
from service.web.http.forms import read_form
from service.web.http.hosts import require_same_origin, require_sign_in_by
from service.web.http.people import (
    SESSIONS,
    actor,
    clear_session,
    device_of,
    known_person,
    metadata,
    safe_next,
    set_session,
    signed_in,
)
from service.web.http.problems import ACTOR

MAX_FORM_BYTES = 10_000

routes = web.RouteTableDef()


@routes.post("/sign-in")
async def exchange(request: web.Request) -> web.Response:
    """Sign in with the secret of a link, or with the whole link as it was printed."""
    require_same_origin(request)
    require_sign_in_by(request)
    form = await read_form(request, max_bytes=MAX_FORM_BYTES)
    link = form.get("link", "").rpartition("#")[2]
    person_id, before = person_of_link(link), known_person(request)
    request[ACTOR] = actor(person_id)
    sessions = request.app[SESSIONS]
    begun = await sessions.begin(person_id, "link", device_of(request), metadata(request), link=link)
    if before is not None:
        await sessions.end(before.person_id, before.session_id, metadata(request))
    response = web.Response(status=303, headers={"Location": f".{safe_next(form.get('next', ''))}"})
    set_session(response, begun)
    return response


@routes.post("/sign-out")
async def sign_out(request: web.Request) -> web.Response:
    """End the session of this browser."""
    person = await signed_in(request)
    await request.app[SESSIONS].end(person.person_id, person.session_id, metadata(request))
    response = web.Response(status=303, headers={"Location": "./sign-in"})
    clear_session(response)
    return response
