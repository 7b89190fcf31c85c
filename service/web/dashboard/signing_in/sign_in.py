"""``/sign-in``: a one-time link, or a trusted proxy's word, becomes a session; ``/sign-out`` ends it.

A link is exchanged by a form that the person sends, so that neither a program that looks at links uses it up, nor
another website signs anyone in by opening one. A proxy may name the person on every request, also on those that another
website's page makes for its images: each would begin a session, and end the oldest one. So it counts where the person
opened the page, by what browsers say (https://www.w3.org/TR/fetch-metadata/), or sent its form.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from aiohttp import hdrs, web
from msgspec import Struct

from eventstore import Metadata
from service.commands.access.people import person_of_link
from service.domain.access.names import HTTPS_REQUIRED
from service.domain.access.people import SignInMethod
from service.domain.errors import Forbidden, ServiceError, Unavailable
from service.queries.access.people import SeveralAccounts
from service.queries.organizations import list_organizations
from service.web.dashboard.page import NOTICE_COOKIE, notice_of, see_other
from service.web.http.access.cookies import drop_cookie
from service.web.http.access.hosts import may_sign_in, require_same_origin, require_sign_in_by
from service.web.http.access.people import (
    FAILED_SIGN_INS,
    PEOPLE_DIRECTORY,
    SESSIONS,
    actor,
    clear_session,
    device_of,
    known_person,
    metadata,
    proxied_user,
    safe_next,
    set_session,
    signed_in,
)
from service.web.http.app_keys import ADMITS, IDENTITY_PROVIDER, VIEWS
from service.web.http.connections.client_address import client_address
from service.web.http.forms import SMALL_FORM_BYTES, read_form
from service.web.http.problems import ACTOR, REQUEST_ID, status_of
from service.web.pages.html import SCRIPTED_HEADERS, html_response, way_up
from service.web.pages.rendering import rendered

routes = web.RouteTableDef()


@routes.get("/sign-in")
async def show_sign_in(request: web.Request) -> web.Response:
    """Return the form for a link; for a person whom a trusted proxy has signed in, the way on."""
    named, person = proxied_user(request), known_person(request)
    if not named or person is not None or not _is_opened_here(request):
        return sign_in_page(request)
    return await _sign_in_by_proxy(request, named, request.query.get("account", ""))


def _is_opened_here(request: web.Request) -> bool:
    """Return whether the browser says that a person opened this page, and not from another website."""
    return (
        request.method == "GET"
        and request.headers.get("Sec-Fetch-Dest") == "document"
        and request.headers.get("Sec-Fetch-Site") in ("none", "same-origin", "same-site")
    )


@routes.post("/sign-in/proxy")
async def continue_as_proxied(request: web.Request) -> web.Response:
    """Sign in the person whom a trusted proxy names."""
    require_same_origin(request)
    named = proxied_user(request)
    if not named:
        return sign_in_page(request)
    form = await read_form(request, max_bytes=SMALL_FORM_BYTES)
    return await _sign_in_by_proxy(request, named, form.get("account", ""), next_path=form.get("next", ""))


async def _sign_in_by_proxy(
    request: web.Request, named: str, account: str, *, next_path: str | None = None
) -> web.Response:
    try:
        require_sign_in_by(request)
        with noting_failure(request, "proxy"):
            people, present = request.app[PEOPLE_DIRECTORY], known_person(request)
            proven = (*people.proven_by_proxy(named), present.person_id if present is not None else "")
            vouched = request.app[ADMITS].organization_of(named)
            person_id = people.account_of(named, account, vouched_for_by=vouched, proven=proven)
            return await begin_session(request, person_id, "proxy", next_path=next_path)
    except Forbidden as error:
        accounts = await accounts_to_choose(request, error, "sign-in")
        return sign_in_page(request, error=error, next_path=next_path, accounts=accounts)


@routes.post("/sign-in")
async def exchange_link(request: web.Request) -> web.Response:
    """Sign in with the secret of a link, or with the whole link as it was printed."""
    require_same_origin(request)
    form: Mapping[str, str] = {}
    try:
        require_sign_in_by(request)
        form = await read_form(request, max_bytes=SMALL_FORM_BYTES)
        link = form.get("link", "").rpartition("#")[2]
        with noting_failure(request, "link"):
            return await begin_session(request, person_of_link(link), "link", link=link, next_path=form.get("next", ""))
    except ServiceError as error:
        if "text/html" not in request.headers.get(hdrs.ACCEPT, ""):
            raise
        return sign_in_page(request, error=error, next_path=form.get("next"))


@routes.post("/sign-out")
async def sign_out(request: web.Request) -> web.Response:
    """End the session of this browser."""
    person = await signed_in(request)
    await request.app[SESSIONS].end(person.person_id, person.session_id, metadata(request))
    response = see_other(request, "/sign-in", notice="You are signed out.")
    response.headers["Clear-Site-Data"] = '"storage"'  # conversations of the ask page
    clear_session(request, response)
    return response


async def begin_session(
    request: web.Request, person_id: str, method: SignInMethod, *, link: str = "", next_path: str | None = None
) -> web.Response:
    """Return the answer that signs a person in and leads on; the session that this browser had before ends.

    Raises as ``Sessions.begin``.
    """
    before, sessions = known_person(request), request.app[SESSIONS]
    cause = Metadata(actor=actor(person_id), correlation_id=request[REQUEST_ID])
    begun = await sessions.begin(person_id, method, device_of(request), cause, link=link)
    if before is not None:
        await sessions.end(before.person_id, before.session_id, metadata(request))
    request[ACTOR] = actor(person_id)  # for the log's line, now that it is them
    response = see_other(request, safe_next(request.query.get("next", "") if next_path is None else next_path))
    set_session(request, response, begun)
    return response


class AccountToChoose(Struct, frozen=True):
    """One of several people with the same address."""

    path: str
    """From the root; it begins the sign-in again, as this person."""
    person_id: str
    organizations: tuple[str, ...]
    """The names of those in which the person has a role."""


async def accounts_to_choose(request: web.Request, error: ServiceError, path: str) -> list[AccountToChoose]:
    """Return the people among whom someone chooses who may sign in as each; none for another error."""
    if not isinstance(error, SeveralAccounts):
        return []
    names = {one.id: one.name for one in await list_organizations(request.app[VIEWS])}
    people = {one: request.app[PEOPLE_DIRECTORY].roles(one) for one in error.person_ids}
    accounts = [
        AccountToChoose(path, one, tuple(sorted(names.get(id_, id_) for id_ in roles))) for one, roles in people.items()
    ]
    return sorted(accounts, key=lambda one: one.organizations)


@contextmanager
def noting_failure(request: web.Request, method: SignInMethod) -> Iterator[None]:
    """Count an attempt to sign in that is refused, for the log."""
    try:
        yield
    except (Unavailable, SeveralAccounts):
        raise
    except ServiceError as error:
        request.app[FAILED_SIGN_INS].note(method, error.code, client_address(request))
        raise


def sign_in_page(
    request: web.Request,
    *,
    error: ServiceError | None = None,
    next_path: str | None = None,
    accounts: Sequence[AccountToChoose] = (),
) -> web.Response:
    """Return the sign-in page, with what went wrong, or the accounts among which the person chooses."""
    is_open = may_sign_in(request)
    sentence = str(error) if error is not None else "" if is_open else HTTPS_REQUIRED
    html = rendered(
        "signing_in/sign_in.html",
        root=way_up(request),
        person=known_person(request),
        next=safe_next(request.query.get("next", "") if next_path is None else next_path),
        error=sentence,
        accounts=accounts,
        proxied="" if known_person(request) is not None or error is not None else proxied_user(request),
        notice=notice_of(request),
        is_open=is_open,
        provider=request.app[IDENTITY_PROVIDER],
    )
    status = status_of(error) if error is not None else 200 if is_open else 403
    response = html_response(html, status=status, headers=SCRIPTED_HEADERS)
    drop_cookie(request, response, NOTICE_COOKIE)
    return response
