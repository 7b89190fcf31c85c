"""Find a page's caller: the person whose browser is signed in, with their role in the organization of the address.

A browser sends its cookie by itself. So what changes something is also checked to come from our own page, here, once
for every route that calls this module. A session opens pages only, never the API: nothing there calls this module.
"""

from collections.abc import Callable, Mapping, Sequence

from aiohttp import hdrs, web
from msgspec import Struct

from eventstore import Metadata
from service.domain.access.callers import address_of, is_within
from service.domain.access.members import Role, is_at_least
from service.domain.access.names import HTTPS_REQUIRED
from service.domain.access.people import SESSION_LIFETIME, checked_email
from service.domain.errors import Forbidden, Invalid, NotFound
from service.ports.shared.sessions import StoredSession
from service.queries.access.people import KnownPerson, PeopleDirectory
from service.queries.organizations import get_organization
from service.queries.read_models import wait_for_head
from service.web.http.access.cookies import cookies_of, drop_cookie, set_cookie
from service.web.http.access.hosts import is_host_ours, require_same_origin
from service.web.http.access.revocation import REVOKED
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.connections.client_address import PROXIES, client_address
from service.web.http.connections.connections import Connection
from service.web.http.problems import ACTOR, SignInRequired, metadata_of
from service.workers.admission.failed_sign_ins import FailedSignIns
from service.workers.admission.sessions import Begun, Device, Sessions

COOKIE = "docsmith"
BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser", "Samsung Internet"), ("Firefox/", "Firefox"),
    ("FxiOS", "Firefox"), ("CriOS", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"), ("curl/", "curl"),
)  # fmt: skip
"""Marks of browsers and their names; some name others, too, which come later."""
SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("CrOS", "ChromeOS"), ("Windows", "Windows"),
    ("Mac OS X", "macOS"), ("Linux", "Linux"),
)  # fmt: skip

SESSIONS: web.AppKey[Sessions] = web.AppKey("SESSIONS")
FAILED_SIGN_INS: web.AppKey[FailedSignIns] = web.AppKey("FAILED_SIGN_INS")
PEOPLE_DIRECTORY: web.AppKey[PeopleDirectory] = web.AppKey("PEOPLE_DIRECTORY")
LINK_BASE: web.AppKey[Callable[[], str | None]] = web.AppKey("LINK_BASE")
"""The address that sign-in links begin with; None where no one could sign in by any."""
NO_ADDRESS = "The address that the proxy names"
"""Stands for a value from a proxy that is no address of a person; the value itself is not shown."""
USER_HEADER: web.AppKey[str] = web.AppKey("USER_HEADER")
"""The header in which trusted proxies name the person; empty: in none."""

_ALLOWED: Mapping[Role, str] = {"viewer": "Members", "editor": "Only editors and owners", "owner": "Only owners"}
_WITH_ARTICLE: Mapping[Role, str] = {"viewer": "a viewer", "editor": "an editor", "owner": "an owner"}


class SignedIn(Struct, frozen=True):
    """A person who is signed in."""

    person_id: str
    email: str
    name: str
    roles: Mapping[str, Role]
    """By organization."""
    is_operator: bool
    session_id: str


class Member(Struct, frozen=True):
    """A person who is signed in, in one of their organizations."""

    person: SignedIn
    organization_id: str
    organization_name: str
    role: Role

    @property
    def can_edit(self) -> bool:
        return is_at_least(self.role, "editor")

    @property
    def is_owner(self) -> bool:
        return self.role == "owner"


_SIGNED_IN: web.RequestKey[SignedIn] = web.RequestKey("signed_in")


async def signed_in(request: web.Request) -> SignedIn:
    """Return the person whose browser sent the request.

    Raises:
        SignInRequired: no one is signed in; a browser that opens a page is sent to sign in.
        Forbidden: ``cross_site``, another website's page sent this.
    """
    require_same_origin(request)
    person = known_person(request)
    if person is None:
        raise SignInRequired
    return person


def known_person(request: web.Request) -> SignedIn | None:
    """Return the person who is signed in; None where no one is signed in. For pages that anyone may open."""
    if _SIGNED_IN in request:
        return request[_SIGNED_IN]
    found = _session_of(request)
    if found is None:
        return None
    row, person = found
    request[ACTOR] = actor(row.person_id)
    revocation = request[REVOKED] = request.app[SESSIONS].revocation(row)
    if isinstance(request.protocol, Connection):
        request.protocol.end_with(revocation)
    request[_SIGNED_IN] = SignedIn(
        row.person_id, person.email, person.name, dict(person.roles), person.is_operator, row.id
    )
    return request[_SIGNED_IN]


async def member(request: web.Request, least: Role = "viewer") -> Member:
    """Return the person who is signed in, with their role in the organization that the path names.

    Raises as ``signed_in``; NotFound for an organization that is not theirs, as for one that does not exist; Forbidden
    where their role is less.
    """
    person, organization_id = await signed_in(request), request.match_info["organizationId"]
    role = person.roles.get(organization_id)
    if role is None:
        raise NotFound("Organization not found. Check the address.", code="organization_not_found")
    if not is_at_least(role, least):
        raise Forbidden(
            f"{_ALLOWED[least]} may do this, and you are {_WITH_ARTICLE[role]} here. Ask an owner for that role.",
            code="role_too_low",
        )
    return Member(person, organization_id, await _name_of(request, organization_id), role)


async def operator(request: web.Request) -> SignedIn:
    """Return the operator who is signed in. Raises as ``signed_in``, and Forbidden ``operator_only``."""
    person = await signed_in(request)
    if not person.is_operator:
        raise Forbidden(
            "This is for operators of the installation. The terminal makes one: docsmith person add --operator.",
            code="operator_only",
        )
    return person


async def settle(request: web.Request) -> None:
    """Wait until what was recorded shows: in the read models, and in the sessions that it has ended."""
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    await request.app[SESSIONS].settle()


def sign_in_link(request: web.Request, secret: str) -> str:
    """Return the whole link for a secret. Raise Forbidden ``https_required`` where no one could sign in by any."""
    base = request.app[LINK_BASE]()
    if base is None:
        raise Forbidden(HTTPS_REQUIRED, code="https_required")
    return f"{base}/sign-in#{secret}"


def metadata(request: web.Request) -> Metadata:
    """Return the cause of what a person does: ``person:<id>``, and the request."""
    return metadata_of(request)


def actor(person_id: str) -> str:
    return f"person:{person_id}"


async def _name_of(request: web.Request, organization_id: str) -> str:
    found = await get_organization(request.app[VIEWS], organization_id)
    if found is None:  # it was created a moment ago
        await wait_for_head(request.app[STORE], request.app[VIEWS])
        found = await get_organization(request.app[VIEWS], organization_id)
    return found.name if found is not None else organization_id


# Sessions


def _session_of(request: web.Request) -> tuple[StoredSession, KnownPerson] | None:
    tokens = session_tokens(request) if is_host_ours(request) else ()
    row = next((row for token in tokens if (row := request.app[SESSIONS].find(token)) is not None), None)
    if row is None:
        return None
    person, named = request.app[SESSIONS].person(row), proxied_user(request)
    if named and person.email != named:  # the proxy signed in another one since
        return None
    return row, person


def proxied_user(request: web.Request) -> str:
    """Return the email that the user header of a trusted proxy names; empty where there is none.

    It counts on connections that a trusted proxy itself has opened: any other client could name anyone in it.
    """
    header = request.app[USER_HEADER]
    if not header or header not in request.headers or not is_host_ours(request):
        return ""
    address = address_of(request.remote or "")
    if address is None or not is_within(address, request.app[PROXIES].trusted):
        return ""
    values = request.headers.getall(header)
    if len(values) != 1 or not values[0].strip():
        return ""
    try:
        return checked_email(values[0])
    except Invalid:
        return NO_ADDRESS


def device_of(request: web.Request) -> Device:
    return Device(browser_of(request.headers.get(hdrs.USER_AGENT, "")), str(client_address(request)))


def browser_of(user_agent: str) -> str:
    """Return the name of a browser and of its system, as people know them: the first name of each that is in it."""
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "Unknown browser")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if system else browser


def session_tokens(request: web.Request) -> Sequence[str]:
    """Return what the browser keeps of its sessions; at most one of them is open."""
    return cookies_of(request, COOKIE)


def set_session(request: web.Request, response: web.StreamResponse, begun: Begun) -> None:
    """Give the browser its cookie."""
    set_cookie(request, response, COOKIE, begun.token, int(SESSION_LIFETIME.total_seconds()))


def clear_session(request: web.Request, response: web.StreamResponse) -> None:
    drop_cookie(request, response, COOKIE)


def safe_next(path: str) -> str:
    """Return where to go after signing in: a path of ours, or the dashboard for everything else.

    A backslash, a second slash or a control character may make a browser take it for another host.
    """
    if not path.startswith("/") or path[1:2] in ("/", "\\") or not path.isascii() or not path.isprintable():
        return "/dashboard"
    return "/dashboard" if "\\" in path or path.startswith("/sign-in") else path
