"""``/dashboard``: what needs the person who opens it, in each of their organizations."""

import asyncio
from datetime import timedelta

from aiohttp import web
from msgspec import Struct

from eventstore import Views
from service.queries.access.keys import keys_that_expire
from service.queries.jobs.organization_jobs import JobFilter, ListedJob, count_organization_jobs, list_organization_jobs
from service.queries.organizations import get_organization, list_organizations
from service.queries.overview import last_week, read_overview
from service.queries.read_models import wait_for_head
from service.queries.readers.gaps import count_in_gaps
from service.queries.sites import list_organization_sites
from service.runtime.system import now
from service.views.overview import MAX_COUNTED
from service.web.dashboard.documentation.choices import offered
from service.web.dashboard.operators.health import Condition, read_condition
from service.web.dashboard.page import dashboard_page, record_read
from service.web.http.access.people import SignedIn, member, signed_in
from service.web.http.app_keys import GUARDED_PROJECTS, STORE, VIEWS
from service.web.pages.html import way_up

SHOWN_JOBS, SHOWN_SITES, SHOWN_KEYS = 5, 20, 5
EXPIRES_SOON = timedelta(days=14)
"""Owners are warned this long before a key expires, and after."""

routes = web.RouteTableDef()


class Place(Struct, frozen=True):
    """An organization of the person, with what needs them there."""

    id: str
    name: str
    role: str
    to_review: int
    unanswered: int


@routes.get("/dashboard")
async def show_dashboard(request: web.Request) -> web.Response:
    """Go on to the organization where there is one, else let the person choose."""
    person = await signed_in(request)
    if person.is_operator and not person.roles and not await list_organizations(request.app[VIEWS]):
        raise web.HTTPSeeOther(f"{way_up(request)}begin")
    if len(person.roles) == 1 and "all" not in request.query:
        raise web.HTTPSeeOther(f"{way_up(request)}dashboard/{next(iter(person.roles))}")
    places = await _places(request.app[VIEWS], person)
    return dashboard_page(
        request, person, "organization_choice.html", places=places, condition=await _condition(request, person)
    )


@routes.get("/dashboard/{organizationId}")
async def show_overview(request: web.Request) -> web.Response:
    viewer = await member(request)
    views, organization_id = request.app[VIEWS], viewer.organization_id
    await wait_for_head(request.app[STORE], views)
    needing = [job for only in ("needs_input", "review", "failed") for job in await _jobs(views, organization_id, only)]
    if needing:  # their titles are words of people
        await record_read(request, viewer, "overview", {})
    sites = await list_organization_sites(views, organization_id)
    return dashboard_page(
        request,
        viewer,
        "overview.html",
        choices=offered(await request.app[GUARDED_PROJECTS].allowed(), may_allow=viewer.person.is_operator),
        overview=await read_overview(views, organization_id, sites, now()),
        most=MAX_COUNTED,
        needing=needing[:SHOWN_JOBS],
        sites=sites[:SHOWN_SITES],
        left_out_sites=max(0, len(sites) - SHOWN_SITES),
        condition=await _condition(request, viewer.person),
        expiring=await keys_that_expire(views, organization_id, EXPIRES_SOON, limit=SHOWN_KEYS)
        if viewer.is_owner
        else [],
    )


async def _condition(request: web.Request, person: SignedIn) -> Condition | None:
    """Return how the installation is, for those who run it."""
    return await read_condition(request.app) if person.is_operator else None


async def _jobs(views: Views, organization_id: str, only: JobFilter) -> list[ListedJob]:
    return (await list_organization_jobs(views, organization_id, limit=SHOWN_JOBS, only=only)).jobs


async def _places(views: Views, person: SignedIn) -> list[Place]:
    async def place(organization_id: str, role: str) -> Place:
        found, counts, unanswered = await asyncio.gather(
            get_organization(views, organization_id),
            count_organization_jobs(views, organization_id),
            count_in_gaps(views, organization_id, last_week(now())),
        )
        return Place(organization_id, found.name if found else organization_id, role, counts["review"], unanswered)

    places = await asyncio.gather(*(place(one, role) for one, role in person.roles.items()))
    return sorted(places, key=lambda one: one.name.casefold())
