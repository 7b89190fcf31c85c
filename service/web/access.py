"""Who calls: bearer keys, and what they open."""

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Literal

from aiohttp import web
from msgspec import Struct

from eventstore import EventStore, Views
from service.domain.errors import Forbidden, NotFound, Unauthorized
from service.domain.keys import KeyKind, digest_of, kind_of
from service.projections.keys import KeyRow, key_of_digest
from service.projections.projects import ProjectRow, get_project, project_of_domain
from service.system import now
from service.web.keys import STORE, VIEWS
from service.web.problems import ACTOR

MAX_TOKEN_CHARACTERS = 200


class Caller(Struct, frozen=True):
    """The holder of a good key."""

    key_id: str
    kind: KeyKind
    organization_id: str
    domains: tuple[str, ...]


async def authenticate(request: web.Request) -> Caller:
    """The caller by ``Authorization: Bearer``.

    Raises Unauthorized: no key, or none that is known and in force; only of an expired one it is said what is wrong.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("Send your API key as Authorization: Bearer KEY.")
    row = await _find(request.app[STORE], request.app[VIEWS], token.strip())
    if row is None or row.revoked_at is not None:
        raise Unauthorized("This API key is not valid.")
    if row.expires_at is not None and row.expires_at <= now():
        raise Unauthorized("This API key has expired.", code="key_expired")
    request[ACTOR] = row.id
    return Caller(row.id, row.kind, row.organization_id, row.domains)


async def _find(store: EventStore, views: Views, token: str) -> KeyRow | None:
    if len(token) > MAX_TOKEN_CHARACTERS or kind_of(token) is None:
        return None
    digest = digest_of(token)
    row = await key_of_digest(views, digest)
    if row is None:  # made or appended a moment ago, perhaps by the command line beside this server
        await views.wait_for(await store.head())
        row = await key_of_digest(views, digest)
    return row


async def project_for(request: web.Request) -> ProjectRow:
    """The project that the path names, for a caller with an admin key of its organization."""
    caller = await authenticate(request)
    _require(caller, "admin")
    project = await _known(request, get_project, request.match_info["projectId"])
    if project is None or project.organization_id != caller.organization_id:
        raise NotFound("There is no such project.", code="project_not_found")
    return project


async def site_for(request: web.Request) -> ProjectRow:
    """The project whose site the path names, for a caller with an assistant key for that domain."""
    caller = await authenticate(request)
    _require(caller, "assistant")
    project = await _known(request, project_of_domain, request.match_info["domain"])
    if project is None or project.organization_id != caller.organization_id:
        raise NotFound("There is no such site.", code="domain_not_found")
    if project.domain not in caller.domains:
        raise Forbidden("This key does not serve this site.")
    return project


async def _known(
    request: web.Request, find: Callable[[Views, str], Awaitable[ProjectRow | None]], name: str
) -> ProjectRow | None:
    """What the read models have; or have once they have caught up, since it may be a moment old, as a key may."""
    store, views = request.app[STORE], request.app[VIEWS]
    project = await find(views, name)
    if project is None:
        await views.wait_for(await store.head())
        project = await find(views, name)
    return project


def _require(caller: Caller, kind: Literal["admin", "assistant"]) -> None:
    if caller.kind != kind:
        raise Forbidden(f"This takes an {kind} key; yours is an {caller.kind} key.", code="wrong_key_kind")


async def may_use_git(request: web.Request, project_id: str) -> bool:
    """Whether the Basic credentials, the only ones that git sends, have an admin key of the project's organization."""
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return False
    try:
        _, _, token = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    row = await _find(request.app[STORE], request.app[VIEWS], token)
    if row is None or row.kind != "admin" or row.revoked_at or (row.expires_at and row.expires_at <= now()):
        return False
    project = await get_project(request.app[VIEWS], project_id)
    request[ACTOR] = row.id
    return project is not None and project.organization_id == row.organization_id
