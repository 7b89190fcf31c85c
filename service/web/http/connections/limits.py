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
from service.queries.access.keys import KnownKey
from service.runtime.system import now
from service.views.projects import ProjectView
from service.web.http.app_keys import STORE
from service.web.http.connections.client_address import client_address
from service.web.http.problems import metadata_of
from service.web.http.routes import SITE_PAGES, route_of
from service.workers.admission.admissions import Admissions
from service.workers.admission.metered_store import MeteredStore

ADMISSIONS: web.AppKey[Admissions] = web.AppKey("ADMISSIONS")
COUNTED: web.RequestKey[Counted] = web.RequestKey("counted")
"""The request as it would be counted; only set when it is in the scope of a limit."""
STANDING: web.RequestKey[Standing | None] = web.RequestKey("standing")
"""The use of its limits when it was counted briefly."""
SEARCH = "/discovery/v1/search/{domain}"
TOKEN = "/discovery/v1/token/{domain}"  # noqa: S105  (an address)
WIDGET = "/discovery/v1/widget/{domain}"
MANUAL = "manual"
"""Searches of the manual are counted under this name, which is no id of a project."""
PAGE = "/discovery/v1/page/{domain}"
"""Reads of single pages as JSON count as searches where they come without a key; those of a site as text always do."""

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
    path = route_of(request)
    api, is_public, is_text = IN_SCOPE.get(path), key is None, path.startswith(SITE_PAGES)
    if request.method != "POST" and path != PAGE and not is_text:
        return
    if api is None and path not in (SEARCH, TOKEN) and not is_text and not (path == PAGE and is_public):
        return
    if path == TOKEN:
        request[COUNTED] = TokenRequest(now(), project.id, _address(request))
    elif api is None:
        request[COUNTED] = _search(request, key, project)
    else:
        request[COUNTED] = _accepted(request, api, key, project)
    if is_public:  # not after its body is read: strangers need not show who they are to send many
        request.app[ADMISSIONS].require_room(request[COUNTED])


def attach_page_quota(request: web.Request, project: ProjectView, person_id: str, *, searches: bool) -> None:
    """Count a question or search that comes from our own page: a person's as a reader's of that name, and without a
    person as one without a key. Raises OverLimit (429) for the latter.
    """
    is_public, is_reader, address = not person_id, bool(person_id), _address(request)
    if searches:
        request[COUNTED] = SearchRequest(now(), project.id, "", address, is_reader, is_public)
    else:
        fp = request.app[ADMISSIONS].digest_of(f"person\0{project.id}\0{person_id}") if person_id else ""
        request[COUNTED] = RequestAccepted(
            "assistant", now(), project.organization_id, project.id, "", address, is_reader, fp, is_public
        )
    if is_public:
        request.app[ADMISSIONS].require_room(request[COUNTED])


async def count_search(request: web.Request, key: KnownKey | None, project: ProjectView) -> None:
    """Count a search or a page that the call of a tool asks for. Raises OverLimit (429)."""
    request[COUNTED] = _search(request, key, project)
    await count_briefly(request)


async def count_manual_search(request: web.Request) -> str:
    """Count a search of the manual, which needs no key, and return its address's digest. Raises OverLimit (429)."""
    address = _address(request)
    request[COUNTED] = SearchRequest(now(), MANUAL, "", address, is_public=True)
    await count_briefly(request)
    return address


def attach_question_quota(request: web.Request, key: KnownKey | None, project: ProjectView) -> None:
    """Have the question that the call of a tool asks counted with what is recorded of it; None: it came without a key.

    Raises OverLimit (429) for a call without a key that has no room.
    """
    counted = request[COUNTED] = _accepted(request, "assistant", key, project)
    if key is None:
        request.app[ADMISSIONS].require_room(counted)


def _search(request: web.Request, key: KnownKey | None, project: ProjectView) -> SearchRequest:
    is_reader = key is not None and bool(key.state.allowed_origins)
    return SearchRequest(now(), project.id, key.id if key else "", _address(request), is_reader, key is None)


def _accepted(request: web.Request, api: Api, key: KnownKey | None, project: ProjectView) -> RequestAccepted:
    is_reader, key_id = key is not None and bool(key.state.allowed_origins), key.id if key else ""
    return RequestAccepted(
        api, now(), project.organization_id, project.id, key_id, _address(request), is_reader, is_public=key is None
    )


def _address(request: web.Request) -> str:
    return request.app[ADMISSIONS].digest_of(counted_as(client_address(request)))


def name_reader(request: web.Request, fp: str) -> None:
    """Count the request for its reader, too, where readers have limits; a person is one by any name.

    A reader without a name counts by address alone: under one name, all of them would be one reader.
    """
    counted = request.get(COUNTED)
    if isinstance(counted, RequestAccepted) and counted.is_reader and not counted.fp and fp != ANONYMOUS:
        digest = request.app[ADMISSIONS].digest_of(f"fp\0{counted.project_id}\0{fp}")
        request[COUNTED] = replace(counted, fp=digest)


def require_room(request: web.Request) -> None:
    """Raise OverLimit (429) where the search, the page or the reader token that the request asks for has no room."""
    counted = request.get(COUNTED)
    if isinstance(counted, Brief):
        request.app[ADMISSIONS].require_room(counted)


async def count_briefly(request: web.Request) -> None:
    """Count the search, the page or the reader token that the request asks for. Raises OverLimit (429)."""
    counted = request.get(COUNTED)
    if isinstance(counted, Brief):
        request[STANDING] = await request.app[ADMISSIONS].count_briefly(counted)


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


def metered_for_tool(request: web.Request, key: KnownKey, project_id: str) -> EventStore:
    """Return the store for a job or a message that an agent sends by a tool, as ``metered_for_person``."""
    address = request.app[ADMISSIONS].digest_of(counted_as(client_address(request)))
    request[COUNTED] = RequestAccepted("agent", now(), key.state.organization_id, project_id, key.id, address)
    return metered_store(request)


def tell_limits(request: web.Request, response: web.StreamResponse) -> None:
    """Add the fields to every answer's head, errors and streams included."""
    counted = request.get(COUNTED)
    if counted is not None:
        standing = request.get(STANDING) or request.app[ADMISSIONS].standing(counted)
        if standing is not None:
            response.headers.update(fields_of(standing))


def fields_of(standing: Standing) -> dict[str, str]:
    seconds = -(-standing.reset_milliseconds // 1000)
    return {
        "RateLimit-Policy": f'"{standing.scope}";q={standing.limit};w={standing.window_seconds}',
        "RateLimit": f'"{standing.scope}";r={standing.remaining};t={seconds}',
    }
