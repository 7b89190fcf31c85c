"""An organization's people: invite them, change their roles, make a sign-in link, remove them."""

from aiohttp import web

from service.commands.access.people import change_role, remove_member
from service.domain.access.members import ROLES, Role
from service.domain.access.people import INVITATION_DAYS
from service.domain.errors import Conflict, Invalid, ServiceError
from service.queries.access.people import member_of, members_page
from service.views.access.people import InvitedView
from service.web.api.organization.people import invited_person, person_with_link
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.access.people import Member, member, metadata, settle, sign_in_link
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.forms import SMALL_FORM_BYTES, read_form
from service.web.http.problems import status_of
from service.web.http.query_params import id_cursor

PAGE_LENGTH = 50
PEOPLE_PATH = "/dashboard/{organizationId}/people"
ROLE_TEXTS: dict[Role, str] = {
    "viewer": "Viewer: reads",
    "editor": "Editor: also gives jobs",
    "owner": "Owner: also manages keys and people",
}

routes = web.RouteTableDef()


@routes.get(PEOPLE_PATH)
async def show_people(request: web.Request) -> web.Response:
    return await _page(request, await member(request))


@routes.post(PEOPLE_PATH)
async def invite(request: web.Request) -> web.Response:
    """Add a person, and show their sign-in link this once."""
    viewer, form = await member(request, "owner"), await read_form(request, max_bytes=SMALL_FORM_BYTES)
    try:
        invited = await invited_person(
            request,
            viewer.organization_id,
            email=form.get("email", ""),
            name=form.get("name", ""),
            role=_role_of(form.get("role", "")),
        )
    except (Invalid, Conflict) as error:
        return await _page(request, viewer, typed=dict(form), error=error)
    await settle(request)
    return await _page(request, viewer, invited=invited)


@routes.post(PEOPLE_PATH + "/{personId}/role")
async def give_role(request: web.Request) -> web.Response:
    viewer, form = await member(request, "owner"), await read_form(request, max_bytes=SMALL_FORM_BYTES)
    person_id, role = request.match_info["personId"], _role_of(form.get("role", ""))
    person = await member_of(request.app[VIEWS], viewer.organization_id, person_id)
    try:
        await change_role(request.app[STORE], viewer.organization_id, person_id, role, metadata(request))
    except Conflict as error:
        return await _page(request, viewer, error=error)
    await settle(request)
    return see_other(request, _address(viewer), notice=f"{person.email} is {role} now.")


@routes.post(PEOPLE_PATH + "/{personId}/link")
async def make_link(request: web.Request) -> web.Response:
    """Show a new sign-in link of a person, this once."""
    viewer = await member(request, "owner")
    try:
        sign_in_link(request, "")  # without an address to sign in by, none is made
        invited = await person_with_link(request, viewer.organization_id, request.match_info["personId"])
    except ServiceError as error:
        if error.code not in ("https_required", "person_of_others"):
            raise
        return await _page(request, viewer, error=error)
    return await _page(request, viewer, invited=invited)


@routes.post(PEOPLE_PATH + "/{personId}/remove")
async def remove(request: web.Request) -> web.Response:
    viewer, person_id = await member(request, "owner"), request.match_info["personId"]
    person = await member_of(request.app[VIEWS], viewer.organization_id, person_id)
    try:
        await remove_member(request.app[STORE], viewer.organization_id, person_id, metadata(request))
    except Conflict as error:
        return await _page(request, viewer, error=error)
    await settle(request)
    return see_other(request, _address(viewer), notice=f"{person.email} is removed, and signed out everywhere.")


async def _page(
    request: web.Request,
    viewer: Member,
    *,
    invited: InvitedView | None = None,
    typed: dict[str, str] | None = None,
    error: ServiceError | None = None,
) -> web.Response:
    cursor = id_cursor(request)
    listed = await members_page(request.app[VIEWS], viewer.organization_id, limit=PAGE_LENGTH, cursor=cursor)
    return dashboard_page(
        request,
        viewer,
        "access/people.html",
        status=200 if error is None else status_of(error),
        listed=listed,
        cursor=cursor or "",
        invited=invited,
        typed=typed or {},
        error="" if error is None else str(error),
        roles=[(role, ROLE_TEXTS[role]) for role in ROLES],
        link_days=INVITATION_DAYS,
    )


def _role_of(text: str) -> Role:
    found = next((role for role in ROLES if role == text), None)
    if found is None:
        raise Invalid(f"Not a role: {text[:50]!r}. Choose one of {', '.join(ROLES)}.")
    return found


def _address(viewer: Member) -> str:
    return f"/dashboard/{viewer.organization_id}/people"
