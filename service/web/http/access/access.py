"""Find the caller: bearer keys, the projects that they open, and the sites that need none.

Keys and projects are looked up in memory. An unknown one is looked for once more in the log, since it may be a moment
old. So is one of another organization, so that the time of an answer does not distinguish the two. A request without
a key is let in to public sites alone; for any other domain it is answered alike, whether there is such a site or not.
"""

import base64
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from aiohttp import hdrs, web

from service.domain.access.callers import MAX_ORIGIN_CHARACTERS, counted_as, is_origin_allowed, is_within
from service.domain.access.keys import KeyScope, digest_of, kind_of
from service.domain.access.reader_tokens import Reader, is_reader_token_valid
from service.domain.errors import Conflict, Forbidden, NotFound, Unauthorized
from service.queries.access.keys import KeyDirectory, KnownKey
from service.queries.projects import ProjectDirectory
from service.queries.sites import PublicSites
from service.runtime.system import now
from service.views.projects import ProjectView
from service.web.http.access.revocation import REVOKED
from service.web.http.access.scopes import scope_needed, scope_of_git
from service.web.http.connections.client_address import client_address
from service.web.http.connections.connections import Connection
from service.web.http.connections.limits import TOKEN, WIDGET, attach_quota
from service.web.http.problems import ACTOR
from service.web.http.routes import SITE_PAGES, route_of
from service.workers.admission.key_uses import KeyUses

KEY_DIRECTORY: web.AppKey[KeyDirectory] = web.AppKey("KEY_DIRECTORY")
PROJECT_DIRECTORY: web.AppKey[ProjectDirectory] = web.AppKey("PROJECT_DIRECTORY")
KEY_USES: web.AppKey[KeyUses] = web.AppKey("KEY_USES")
PUBLIC_SITES: web.AppKey[PublicSites] = web.AppKey("PUBLIC_SITES")
READER_SECRET: web.AppKey[bytes] = web.AppKey("READER_SECRET")
"""Signs reader tokens."""
READER_TOKEN_HEADER = "X-Reader-Token"  # noqa: S105  (a name)
WITHOUT_READER_TOKEN = (TOKEN, WIDGET)
"""Routes that a page calls before it has a token."""
CALLER = web.RequestKey("caller", KnownKey)
"""The key that was let in."""
ORIGINS: web.RequestKey[tuple[str, ...]] = web.RequestKey("origins")
"""The websites that may ask as this request did; empty for any. Set once it was let in."""
KEYLESS = "keyless"
"""The actor of what was asked without a key."""
NO_KEY = "Send your API key as Authorization: Bearer KEY."

MAX_TOKEN_CHARACTERS = 200


async def authenticate(request: web.Request) -> KnownKey:
    """The key of ``Authorization: Bearer``.

    Raises:
        Unauthorized: no key, or none that is known and in force; only of an expired one it is said what is wrong.
        Forbidden: ``address_not_allowed``, ``origin_not_allowed``, by the key's own lists. A request without an origin
            is no browser's of another site; programs can send what they like, so only the list of addresses stops them.
    """
    shown = request.headers.getall(hdrs.AUTHORIZATION, ("",))
    if len(shown) > 1:  # whatever stands before us may have looked at the other one
        raise Unauthorized("Send one Authorization header.")
    scheme, _, token = shown[0].partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized(NO_KEY)
    token = token.strip()
    key = _known(request, token) or await _find(request, token)
    if key is None or key.state.revoked_at is not None:
        raise Unauthorized("This API key is not valid.")
    at = now()
    if key.state.status(at) == "expired":
        raise Unauthorized("This API key has expired.", code="key_expired")
    _require_place(request, key)
    _let_in(request, key, at)
    return key


def _known(request: web.Request, token: str) -> KnownKey | None:
    """The key in memory, if it is not revoked. What is there has the form of a key."""
    if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii():
        return None
    key = request.app[KEY_DIRECTORY].find(digest_of(token))
    return key if key is not None and key.state.revoked_at is None else None


async def _find(request: web.Request, token: str) -> KnownKey | None:
    """The key by the log as it is now, if the token can be one."""
    if len(token) > MAX_TOKEN_CHARACTERS or kind_of(token) is None:
        return None
    directory = request.app[KEY_DIRECTORY]
    await directory.catch_up()
    return directory.find(digest_of(token))


def _require_place(request: web.Request, key: KnownKey) -> None:
    if key.state.allowed_addresses and not is_within(client_address(request), key.state.allowed_addresses):
        raise Forbidden("This key may not be used from your address.", code="address_not_allowed")
    if key.state.is_server and _is_from_page(request):
        raise Forbidden(
            "This key is for servers: no web page may use it. Use a key with the origin of the page.",
            code="origin_not_allowed",
        )
    if key.state.allowed_origins and not _is_listed(request, key.state.allowed_origins):
        raise Forbidden("This key may not be used by this website.", code="origin_not_allowed")


def _is_listed(request: web.Request, origins: tuple[str, ...]) -> bool:
    """Return whether the page that asks is of a listed website, or of our own address, or no page of a browser asks.

    Pages cannot set either header; programs can send what they like.
    """
    origin, fetched_from = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    if fetched_from == "same-origin":
        return True
    if origin is None:
        return fetched_from in (None, "none")
    return is_origin_allowed(origin, origins)


def _is_link(request: web.Request) -> bool:
    """Return whether someone may have followed a link to a page of a site: no other page reads that answer."""
    return hdrs.ORIGIN not in request.headers and route_of(request).startswith(SITE_PAGES)


def _is_from_page(request: web.Request) -> bool:
    return "Origin" in request.headers or request.headers.get("Sec-Fetch-Site", "none") != "none"


def _require_reader_token(request: web.Request, key: KnownKey) -> None:
    """Raise Unauthorized, ``reader_token_required`` or ``reader_token_expired``, for a call with a key for browsers
    that lacks a token of this reader.
    """
    token = request.headers.get(READER_TOKEN_HEADER, "")
    if not token:
        raise Unauthorized(
            "This key needs a reader token. Fetch one, and send it as X-Reader-Token.", code="reader_token_required"
        )
    origin = request.headers.get("Origin")
    if not is_reader_token_valid(
        request.app[READER_SECRET], token, _reader(request, key), origin and origin.lower(), now()
    ):
        raise Unauthorized(
            "This reader token has expired, or is of another key, website or network. Fetch a new one.",
            code="reader_token_expired",
        )


def page_of(request: web.Request) -> tuple[Reader, str]:
    """Return the reader and the origin of a page that was let in with a key for browsers.

    Raises:
        Conflict: such calls need no reader token.
        Forbidden: ``origin_not_allowed``, it comes from no web page.
    """
    key, origin = request.get(CALLER), request.headers.get("Origin")
    if key is None or not key.state.allowed_origins:
        raise Conflict("Calls without a key, and with a key that has no origins, need no reader token.")
    if origin is None or not origin.isascii() or len(origin) > MAX_ORIGIN_CHARACTERS:  # no browser sends such a one
        raise Forbidden("Only web pages get reader tokens: send an Origin.", code="origin_not_allowed")
    return _reader(request, key), origin.lower()


def _reader(request: web.Request, key: KnownKey) -> Reader:
    return Reader(key.id, counted_as(client_address(request)))


def _let_in(request: web.Request, key: KnownKey, at: datetime) -> None:
    request[ACTOR], request[CALLER], request[ORIGINS] = key.id, key, key.state.allowed_origins
    revocation = request[REVOKED] = request.app[KEY_DIRECTORY].revocation(key.id)
    if isinstance(request.protocol, Connection):
        request.protocol.end_with(revocation)
    request.app[KEY_USES].note(key, at)


async def admin_key(request: web.Request) -> KnownKey:
    """Return the caller's admin key, whose scope includes the request. Raise Unauthorized, Forbidden."""
    key = await authenticate(request)
    _require_kind(key, "admin")
    _require_scope(key, scope_needed(request))
    return key


async def project_for(request: web.Request) -> ProjectView:
    """The project that the path names, for a caller with an admin key of its organization."""
    key = await admin_key(request)
    projects, project_id = request.app[PROJECT_DIRECTORY], request.match_info["projectId"]
    project = projects.known(project_id, key.state.organization_id) or await projects.by_id(
        project_id, key.state.organization_id
    )
    if project is None:
        raise NotFound("Project not found. Check the id in the address.", code="project_not_found")
    attach_quota(request, key, project)
    return project


async def site_for(request: web.Request) -> ProjectView:
    """Return the project whose site the path names, for a caller with an assistant key for that domain, or without any
    key where the site is public.
    """
    if "Authorization" not in request.headers:
        return await _public_site(request)
    key = await authenticate(request)
    _require_kind(key, "assistant")
    project = await request.app[PROJECT_DIRECTORY].by_domain(request.match_info["domain"], key.state.organization_id)
    if project is None:
        raise site_not_found()
    if project.domain not in key.state.domains:
        raise Forbidden("This key does not serve this site.")
    if key.state.requires_reader_token and route_of(request) not in WITHOUT_READER_TOKEN:
        _require_reader_token(request, key)
    attach_quota(request, key, project)
    return project


def site_not_found() -> NotFound:
    """Return the error for a site that does not exist, or that the caller may not know of."""
    return NotFound("Site not found. Check its name in the address.", code="domain_not_found")


async def _public_site(request: web.Request) -> ProjectView:
    """Return the project of a public site. Raise Unauthorized where the site is private or not found, and Forbidden for
    a page of a website that is not listed.
    """
    site = request.app[PUBLIC_SITES].find(request.match_info["domain"])
    if site is None:
        raise Unauthorized(NO_KEY)
    if not (_is_link(request) or _is_listed(request, site.origins)):
        raise Forbidden("This website may not ask this site without a key.", code="origin_not_allowed")
    project = await request.app[PROJECT_DIRECTORY].by_domain(request.match_info["domain"], site.organization_id)
    if project is None:
        raise Unauthorized(NO_KEY)
    request[ACTOR], request[ORIGINS] = KEYLESS, site.origins
    attach_quota(request, None, project)
    return project


def is_keyless(request: web.Request) -> bool:
    """Return whether a request that was let in came without a key, and from no person of the organization."""
    return request.get(ACTOR) == KEYLESS


MEMBER_READS = web.RequestKey("member_reads", bool)
"""Set where a person asks a site of their own organization, who may read all of it."""


def trusted_groups(request: web.Request, claimed: Iterable[str] | None) -> tuple[str, ...]:
    """Return the groups of a reader as far as the caller is believed: without a key, and with a key for browsers, none,
    since anyone could claim any.
    """
    if MEMBER_READS in request:
        return tuple(claimed or ())
    return () if CALLER not in request or request[ORIGINS] else tuple(claimed or ())


def _require_kind(key: KnownKey, kind: Literal["admin", "assistant"]) -> None:
    if key.state.kind != kind:
        raise Forbidden(f"This needs an {kind} key; yours is an {key.state.kind} key.", code="wrong_key_kind")


def _require_scope(key: KnownKey, needed: KeyScope) -> None:
    if not key.state.opens(needed):
        raise Forbidden(
            f"The key has the scope {key.state.scope}, and this needs {needed}. Use a key with a wider scope.",
            code="scope_not_allowed",
        )


async def git_organization(request: web.Request, project_id: str) -> str | None:
    """Return the organization of the admin key in the Basic credentials, the only ones that git sends; None where there
    is none, or the project is not the organization's. Raise Forbidden where the key's scope does not include it.
    """
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        _, _, token = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:  # no base64, no ASCII, or no UTF-8 in it
        return None
    key, at = _known(request, token) or await _find(request, token), now()
    if key is None or key.state.kind != "admin" or key.state.status(at) != "in_force":
        return None
    try:
        _require_place(request, key)
    except Forbidden:
        return None
    if await request.app[PROJECT_DIRECTORY].by_id(project_id, key.state.organization_id) is None:
        return None
    _require_scope(key, scope_of_git(request))
    _let_in(request, key, at)
    return key.state.organization_id
