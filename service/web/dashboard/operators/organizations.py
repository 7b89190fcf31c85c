"""``/operator/organizations``: all of them, and a new one, which its creator owns."""

import base64
import binascii

from aiohttp import web

from service.commands.organizations import create_owned_organization
from service.domain.errors import Conflict, Invalid
from service.queries.organizations import list_organization_counts
from service.queries.read_models import wait_for_head
from service.runtime.system import new_id
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.access.people import SignedIn, metadata, operator
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.forms import SMALL_FORM_BYTES, new_id_of, read_form
from service.web.http.query_params import query_param

PAGE_LENGTH = 50

routes = web.RouteTableDef()


@routes.get("/operator/organizations")
async def show_organizations(request: web.Request) -> web.Response:
    person = await operator(request)
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    return await _page(request, person)


@routes.post("/operator/organizations")
async def create(request: web.Request) -> web.Response:
    """Create an organization, which the operator owns. Its id comes with the form, so that a repeat makes no second."""
    person = await operator(request)
    form = await read_form(request, max_bytes=SMALL_FORM_BYTES)
    organization_id, name = new_id_of(form), form.get("name", "")
    try:
        await create_owned_organization(request.app[STORE], organization_id, name, person.person_id, metadata(request))
    except Invalid as error:
        return await _page(request, person, status=400, name=name, error=str(error))
    except Conflict:
        if organization_id not in person.roles:
            raise
    return see_other(request, f"dashboard/{organization_id}", notice=f"{name} is created, and you own it.")


async def _page(
    request: web.Request, person: SignedIn, *, status: int = 200, name: str = "", error: str = ""
) -> web.Response:
    cursor = query_param(request, "cursor") or ""
    organizations, following = await list_organization_counts(
        request.app[VIEWS], after=_decoded(cursor), limit=PAGE_LENGTH
    )
    return dashboard_page(
        request,
        person,
        "operators/organizations.html",
        status=status,
        organizations=organizations,
        next=_encoded(following),
        cursor=cursor,
        new_id=new_id(),
        name=name,
        error=error,
    )


def _encoded(cursor: str | None) -> str:
    return base64.urlsafe_b64encode(cursor.encode()).decode() if cursor else ""


def _decoded(cursor: str) -> str:
    try:
        return base64.urlsafe_b64decode(cursor).decode()
    except (binascii.Error, ValueError):
        raise Invalid("cursor: is not one of this list. Open its first page.") from None
