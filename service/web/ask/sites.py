"""The people who may ask a site on its page: those of its organization, and everyone where it is public."""

from typing import Literal

from aiohttp import web

from service.views.projects import ProjectView
from service.web.http.access.access import KEYLESS, MEMBER_READS, PROJECT_DIRECTORY, PUBLIC_SITES, site_not_found
from service.web.http.access.hosts import require_same_origin
from service.web.http.access.people import SignedIn, known_person
from service.web.http.connections.limits import attach_page_quota
from service.web.http.problems import ACTOR, SignInRequired

Counts = Literal["question", "search", ""]


async def site_to_ask(request: web.Request, *, counts: Counts = "") -> ProjectView:
    """Return the project of the site that the path names. ``counts``: what the request is in the limits.

    Raises:
        SignInRequired: no one is signed in, and the site is private or not found, which is not distinguished.
        NotFound: it is not a site of this person's organizations.
        Forbidden: another website's page sent this.
        OverLimit: a public site, or one caller of it, has no room.
    """
    require_same_origin(request)
    person = known_person(request)
    project = await _project_of(request, person) if person is not None else None
    person_id = person.person_id if person is not None else ""
    if project is None:
        project, person_id = await _public_project(request), ""
        if project is None:
            if person is None:
                raise SignInRequired
            raise site_not_found()
        request[ACTOR] = KEYLESS  # also for a person of another organization
    else:
        request[MEMBER_READS] = True
    if counts:
        attach_page_quota(request, project, person_id, searches=counts == "search")
    return project


async def _project_of(request: web.Request, person: SignedIn) -> ProjectView | None:
    for organization_id in person.roles:
        found = await request.app[PROJECT_DIRECTORY].by_domain(request.match_info["domain"], organization_id)
        if found is not None:
            return found
    return None


async def _public_project(request: web.Request) -> ProjectView | None:
    site = request.app[PUBLIC_SITES].find(request.match_info["domain"])
    if site is None:
        return None
    return await request.app[PROJECT_DIRECTORY].by_domain(request.match_info["domain"], site.organization_id)
