"""Limits on a request's admission, and the fields of its answer that report them.

The fields are those of draft-ietf-httpapi-ratelimit-headers (version 10): ``RateLimit-Policy`` names the policy with
its quota ``q`` and window ``w`` in seconds, ``RateLimit`` what remains (``r``) and in how many seconds there is more
(``t``).
"""

from aiohttp import web
from msgspec.structs import replace

from eventstore import EventStore
from service.domain.access.callers import counted_as
from service.domain.access.usage import Api, Brief, Counted, RequestAccepted, SearchRequest, Standing, TokenRequest
from service.domain.threads.threads import ANONYMOUS
from service.queries.keys import KnownKey
from service.runtime.system import now
from service.views.projects import ProjectView
from service.web.http.app_keys import STORE
from service.web.http.client_address import client_address
from service.web.http.problems import metadata_of
from service.web.http.routes import route_of
from service.workers.admission.admissions import Admissions
from service.workers.admission.metered_store import MeteredStore

ADMISSIONS: web.AppKey[Admissions] = web.AppKey("ADMISSIONS")
COUNTED: web.RequestKey[Counted] = web.RequestKey("counted")
"""The request as it would be counted; only set when it is in the scope of a limit."""
SEARCH = "/discovery/v1/search/{domain}"
TOKEN = "/discovery/v1/token/{domain}"  # noqa: S105  (an address)
PAGE = "/discovery/v1/page/{domain}"
"""Reads of pages count as searches where they come without a key."""

IN_SCOPE: dict[str, Api] = {
    "/discovery/v1/assistant/{domain}/message": "assistant",
    "/discovery/v2/assistant/{domain}/message": "assistant",
    "/v1/agent/{projectId}/job": "agent",
    "/v2/agent/{projectId}/job": "agent",
    "/v2/agent/{projectId}/job/{id}/message": "agent",
    "/v2/agent/{projectId}/job/{id}/retry": "agent",
}
"""POST to these is counted."""


def attach_quota(request: web.Request, key: KnownKey | None, project: ProjectView) -> None:
    """Add the limits to the answer's head, if requests to this address are counted; None: it came without a key.

    Raises OverLimit (429) for a request without a key that has no room.
    """
    if request.method != "POST":
        return
    path = route_of(request)
    api, key_id, is_public = IN_SCOPE.get(path), key.id if key else "", key is None
    is_reader = key is not None and bool(key.state.allowed_origins)
    if api is None and path not in (SEARCH, TOKEN) and not (path == PAGE and is_public):
        return
    address = request.app[ADMISSIONS].digest_of(counted_as(client_address(request)))
    if path == TOKEN:
        request[COUNTED] = TokenRequest(now(), project.id, address)
    elif api is None:
        request[COUNTED] = SearchRequest(now(), project.id, key_id, address, is_reader, is_public)
    else:
        organization_id = project.organization_id
        request[COUNTED] = RequestAccepted(
            api, now(), organization_id, project.id, key_id, address, is_reader, is_public=is_public
        )
    if is_public:  # not after its body is read: strangers need not show who they are to send many
        request.app[ADMISSIONS].require_room(request[COUNTED])


def attach_page_quota(request: web.Request, project: ProjectView, person_id: str, *, searches: bool) -> None:
    """Count a question or search that comes from our own page: a person's as a reader's of that name, and without a
    person as one without a key. Raises OverLimit (429) for the latter.
    """
    address = request.app[ADMISSIONS].digest_of(counted_as(client_address(request)))
    is_public, is_reader = not person_id, bool(person_id)
    if searches:
        request[COUNTED] = SearchRequest(now(), project.id, "", address, is_reader, is_public)
    else:
        fp = request.app[ADMISSIONS].digest_of(f"person\0{project.id}\0{person_id}") if person_id else ""
        request[COUNTED] = RequestAccepted(
            "assistant", now(), project.organization_id, project.id, "", address, is_reader, fp, is_public
        )
    if is_public:
        request.app[ADMISSIONS].require_room(request[COUNTED])


def name_reader(request: web.Request, fp: str) -> None:
    """Count the request for its reader, too, where readers have limits; a person is one by any name.

    A reader without a name counts by address alone: under one name, all of them would be one reader.
    """
    counted = request.get(COUNTED)
    if isinstance(counted, RequestAccepted) and counted.is_reader and not counted.fp and fp != ANONYMOUS:
        digest = request.app[ADMISSIONS].digest_of(f"fp\0{counted.project_id}\0{fp}")
        request[COUNTED] = replace(counted, fp=digest)


def count_briefly(request: web.Request) -> None:
    """Count the search, the page or the reader token that the request asks for. Raises OverLimit (429)."""
    counted = request.get(COUNTED)
    if isinstance(counted, Brief):
        request.app[ADMISSIONS].count_briefly(counted)


def metered_store(request: web.Request) -> EventStore:
    """The store for what the request records: its first append counts the request, or raises OverLimit (429)."""
    counted = request.get(COUNTED)
    store = request.app[STORE]
    if not isinstance(counted, RequestAccepted):
        return store
    return MeteredStore(store, request.app[ADMISSIONS], counted, metadata_of(request))


def metered_for_person(request: web.Request, organization_id: str, project_id: str) -> EventStore:
    """Return the store for a job or a message that a person sends from a page: its first append counts for the project,
    or raises OverLimit (429).
    """
    counted = RequestAccepted("agent", now(), organization_id, project_id, key_id="", address="")
    return MeteredStore(request.app[STORE], request.app[ADMISSIONS], counted, metadata_of(request))


def tell_limits(request: web.Request, response: web.StreamResponse) -> None:
    """Add the fields to every answer's head, errors and streams included."""
    counted = request.get(COUNTED)
    if counted is not None:
        standing = request.app[ADMISSIONS].standing(counted)
        if standing is not None:
            response.headers.update(fields_of(standing))


def fields_of(standing: Standing) -> dict[str, str]:
    seconds = -(-standing.reset_milliseconds // 1000)
    return {
        "RateLimit-Policy": f'"{standing.scope}";q={standing.limit};w={standing.window_seconds}',
        "RateLimit": f'"{standing.scope}";r={standing.remaining};t={seconds}',
    }
