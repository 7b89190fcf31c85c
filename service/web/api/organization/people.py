"""An organization's people: list and add them, change and remove their roles, make a sign-in link."""

from typing import Annotated, Any

from aiohttp import web
from msgspec import Meta, Struct
from msgspec.structs import asdict

from service.commands.access.people import NewPerson, add_person, change_role, make_members_link, remove_member
from service.domain.access.members import MAX_MEMBERS, Role
from service.domain.access.people import INVITATION_DAYS, MAX_EMAIL_CHARACTERS
from service.domain.organizations import MAX_NAME_CHARACTERS
from service.queries.access.people import member_of, members_page
from service.views.access.people import InvitedView, MemberList, MemberView
from service.views.fields import described
from service.web.api.description.operations import ID_CURSOR, Answer, Routes, limit_parameter
from service.web.http.access.access import admin_key
from service.web.http.access.people import settle, sign_in_link
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.problems import json_response, metadata_of, read_body
from service.web.http.query_params import id_cursor, whole_param

MAX_LISTED, LISTED = 100, 50
ID = "/v2/people/{personId}"

PERSON_EXAMPLE: dict[str, Any] = {
    "id": "6f1e0c2b9a7d4c55b3e8d1f0a2c4e697",
    "organizationId": "0a52c1f7e3b94d0e8c9d6f1b2a3c4d5e",
    "email": "ada@example.com",
    "name": "Ada",
    "role": "editor",
    "givenAt": "2026-11-21T09:30:00.000Z",
    "signedInAt": None,
}
INVITED_EXAMPLE = {**PERSON_EXAMPLE, "signInLink": "https://docsmith.example.com/sign-in#6f1e…"}
PERSON_ANSWER = {200: Answer("The person.", MemberView, example=PERSON_EXAMPLE)}


class PersonBody(Struct, rename="camel"):
    """A new person of the organization."""

    email: Annotated[str, Meta(min_length=3, max_length=MAX_EMAIL_CHARACTERS, description="The person's email.")]
    role: Annotated[Role, described("What the person may do.")]
    name: Annotated[
        str, Meta(max_length=MAX_NAME_CHARACTERS, description="How others see the person; by the email when empty.")
    ] = ""


class RoleBody(Struct):
    """A role."""

    role: Annotated[Role, described("What the person may do from now on.")]


routes = Routes()


@routes.operation(
    "GET",
    "/v2/people",
    "listPeople",
    "Organization",
    "List people",
    {200: Answer("By email.", MemberList, example={"people": [PERSON_EXAMPLE], "nextCursor": None})},
    description=f"Who may sign in to the dashboard of the organization, with their roles; at most {MAX_MEMBERS:,}.",
    parameters=(limit_parameter(LISTED, MAX_LISTED), ID_CURSOR),
)
async def show_people(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    limit = whole_param(request, "limit", LISTED, least=1, most=MAX_LISTED)
    found = await members_page(request.app[VIEWS], organization_id, limit=limit, cursor=id_cursor(request))
    return json_response(found)


@routes.operation(
    "POST",
    "/v2/people",
    "addPerson",
    "Organization",
    "Add a person",
    {201: Answer("The person, with a sign-in link: it is shown this once.", InvitedView, example=INVITED_EXAMPLE)},
    description=f"Give the link to the person: it signs them in once, within {INVITATION_DAYS} days.",
    body=PersonBody,
    body_examples={"editor": {"email": "ada@example.com", "name": "Ada", "role": "editor"}},
    errors={403: ("https_required",), 409: ("member_exists", "too_many_members")},
)
async def post_person(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    body = await read_body(request, PersonBody)
    invited = await invited_person(request, organization_id, email=body.email, name=body.name, role=body.role)
    return json_response(invited, status=201)


async def invited_person(
    request: web.Request, organization_id: str, *, email: str, name: str, role: Role
) -> InvitedView:
    """Add a person to an organization, and return them with a link. Raise Invalid, Conflict and Forbidden."""
    sign_in_link(request, "")  # without an address to sign in by, no one is added
    new = NewPerson(email, name, organization_id, role, by_owner=True)
    added = await add_person(request.app[STORE], request.app[VIEWS], new, metadata_of(request))
    return await person_with_link(request, organization_id, added.id)


async def person_with_link(request: web.Request, organization_id: str, person_id: str) -> InvitedView:
    """Return a person of an organization with a new sign-in link. Raise NotFound and Forbidden."""
    store, views = request.app[STORE], request.app[VIEWS]
    secret = await make_members_link(store, views, organization_id, person_id, metadata_of(request))
    member = await member_of(views, organization_id, person_id)
    return InvitedView(**asdict(member), sign_in_link=sign_in_link(request, secret))


@routes.operation(
    "GET", ID, "getPerson", "Organization", "Get a person", PERSON_ANSWER, errors={404: ("person_not_found",)}
)
async def show_person(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    return json_response(await member_of(request.app[VIEWS], organization_id, request.match_info["personId"]))


@routes.operation(
    "POST",
    f"{ID}/role",
    "changeRole",
    "Organization",
    "Change a person's role",
    PERSON_ANSWER,
    description="A lower role ends the person's sessions at once. An organization keeps an owner.",
    body=RoleBody,
    body_examples={"viewer": {"role": "viewer"}},
    errors={404: ("person_not_found",), 409: ("last_owner",)},
)
async def post_role(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    person_id, body = request.match_info["personId"], await read_body(request, RoleBody)
    await change_role(request.app[STORE], organization_id, person_id, body.role, metadata_of(request))
    await settle(request)
    return json_response(await member_of(request.app[VIEWS], organization_id, person_id))


@routes.operation(
    "POST",
    f"{ID}/link",
    "makeSignInLink",
    "Organization",
    "Make a sign-in link",
    {200: Answer("The person, with the link: it is shown this once.", InvitedView, example=INVITED_EXAMPLE)},
    description=f"Signs the person in, once, within {INVITATION_DAYS} days; earlier links of theirs end. For someone"
    " who also has rights outside of the organization, only the operator makes links.",
    errors={403: ("person_of_others", "https_required"), 404: ("person_not_found",)},
)
async def post_link(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    sign_in_link(request, "")
    return json_response(await person_with_link(request, organization_id, request.match_info["personId"]))


@routes.operation(
    "POST",
    f"{ID}/remove",
    "removePerson",
    "Organization",
    "Remove a person",
    {204: Answer("The person has no role here any more, and their sessions have ended.")},
    errors={404: ("person_not_found",), 409: ("last_owner",)},
)
async def post_removal(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    await remove_member(request.app[STORE], organization_id, request.match_info["personId"], metadata_of(request))
    await settle(request)
    return web.Response(status=204)
