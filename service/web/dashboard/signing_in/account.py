"""``/account``: a person's own name, roles, passkeys and open sessions."""

from datetime import timedelta

from aiohttp import web

from service.commands.access.people import rename_person
from service.domain.access.people import SESSION_IDLE, SESSION_LIFETIME
from service.domain.errors import Invalid, NotFound
from service.queries.access.credentials import get_credentials
from service.queries.organizations import list_organizations
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.access.people import SESSIONS, SignedIn, metadata, settle, signed_in
from service.web.http.app_keys import IDENTITY_PROVIDER, STORE, VIEWS
from service.web.http.forms import SMALL_FORM_BYTES, read_form
from service.web.http.problems import status_of

routes = web.RouteTableDef()


@routes.get("/account")
async def show_account(request: web.Request) -> web.Response:
    return await _page(request, await signed_in(request))


@routes.post("/account/name")
async def change_name(request: web.Request) -> web.Response:
    person, form = await signed_in(request), await read_form(request, max_bytes=SMALL_FORM_BYTES)
    try:
        await rename_person(request.app[STORE], person.person_id, form.get("name", ""), metadata(request))
    except Invalid as error:
        return await _page(request, person, name=form.get("name", ""), error=error)
    await settle(request)
    return see_other(request, "/account", notice="Your name is changed.")


@routes.post("/account/sessions/{sessionId}/end")
async def end_session(request: web.Request) -> web.Response:
    """End one of the person's own sessions; ``others``: all but this one."""
    person, which = await signed_in(request), request.match_info["sessionId"]
    sessions = request.app[SESSIONS]
    known = [one.id for one in await sessions.list(person.person_id, person.session_id)]
    if which == "others":
        ended = [one for one in known if one != person.session_id]
    elif which in known:
        ended = [which]
    else:
        raise NotFound("Session not found: it has ended, or is not yours.", code="session_not_found")
    for one in ended:
        await sessions.end(person.person_id, one, metadata(request))
    if not ended:
        notice = "No other session is open."
    else:
        notice = "The session has ended." if len(ended) == 1 else "The sessions have ended."
    return see_other(request, "/account", notice=notice)


async def _page(
    request: web.Request, person: SignedIn, *, name: str | None = None, error: Invalid | None = None
) -> web.Response:
    names = {one.id: one.name for one in await list_organizations(request.app[VIEWS])}
    return dashboard_page(
        request,
        person,
        "signing_in/account.html",
        status=200 if error is None else status_of(error),
        name=person.name if name is None else name,
        error="" if error is None else str(error),
        organizations=sorted((names.get(one, one), one, role) for one, role in person.roles.items()),
        sessions=await request.app[SESSIONS].list(person.person_id, person.session_id),
        credentials=await get_credentials(request.app[STORE], person.person_id),
        provider=request.app[IDENTITY_PROVIDER],
        idle_hours=SESSION_IDLE // timedelta(hours=1),
        lifetime_days=SESSION_LIFETIME.days,
    )
