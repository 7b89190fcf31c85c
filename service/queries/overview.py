"""Numbers of what waits for an organization's people: jobs, unanswered questions, the age of its indexes."""

from collections.abc import Sequence
from datetime import datetime

from eventstore import Views
from service.queries.jobs.organization_jobs import count_organization_jobs
from service.queries.readers.analytics import Days
from service.queries.readers.gaps import count_in_gaps
from service.queries.readers.questions import Period
from service.queries.sites import Site
from service.views.overview import OverviewView, WaitingJobsView


async def read_overview(views: Views, organization_id: str, sites: Sequence[Site], now: datetime) -> OverviewView:
    """Return the numbers of an organization with these sites."""
    counts = await count_organization_jobs(views, organization_id)
    indexed = [site.view.indexed_at for site in sites if site.view.indexed_at is not None]
    return OverviewView(
        WaitingJobsView(counts["review"], counts["needs_input"], counts["active"], counts["failed"]),
        await count_in_gaps(views, organization_id, last_week(now)),
        len(sites),
        sum(site.view.failure is not None for site in sites),
        min(indexed, default=None),
    )


def last_week(now: datetime) -> Period:
    return Days.until(now.date(), days=7).period
