"""Limits at the door of a request, and how its answer tells of them.

The fields are those of draft-ietf-httpapi-ratelimit-headers (version 10): ``RateLimit-Policy`` names the policy with
its quota ``q`` and window ``w`` in seconds, ``RateLimit`` what remains (``r``) and in how many seconds there is more
(``t``).
"""

from aiohttp import web

from eventstore import EventStore
from service.domain.callers import counted_as
from service.domain.usage import Api, RequestAccepted, Standing
from service.projections.projects import ProjectRow
from service.system import now
from service.web.client_address import client_address
from service.web.keys import STORE
from service.web.problems import metadata_of
from service.workers.admissions import Admissions
from service.workers.admitting_store import AdmittingStore

ADMISSIONS: web.AppKey[Admissions] = web.AppKey("ADMISSIONS")
COUNTED = web.RequestKey("counted", RequestAccepted)
"""What the request would be counted as; only of one that is in the scope of a limit."""

IN_SCOPE: dict[str, Api] = {
    "/discovery/v1/assistant/{domain}/message": "assistant",
    "/discovery/v2/assistant/{domain}/message": "assistant",
    "/v1/agent/{projectId}/job": "agent",
    "/v2/agent/{projectId}/job": "agent",
    "/v2/agent/{projectId}/job/{id}/message": "agent",
}
"""POST to these is counted."""


def put_in_scope(request: web.Request, key_id: str, project: ProjectRow) -> None:
    """From now on the answer tells of the limits, if the request's address is one that is counted."""
    resource = request.match_info.route.resource
    api = IN_SCOPE.get(resource.canonical) if request.method == "POST" and resource is not None else None
    if api is not None:
        address = request.app[ADMISSIONS].digest_of(counted_as(client_address(request)))
        request[COUNTED] = RequestAccepted(api, now(), project.organization_id, project.id, key_id, address)


def charged(request: web.Request) -> EventStore:
    """The store for what the request records: its first append counts the request, or raises OverLimit (429)."""
    counted = request.get(COUNTED)
    store = request.app[STORE]
    if counted is None:
        return store
    return AdmittingStore(store, request.app[ADMISSIONS], counted, metadata_of(request))


def tell_limits(request: web.Request, response: web.StreamResponse) -> None:
    """For every answer's head, errors and streams included."""
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
