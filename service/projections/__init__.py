"""Events to read tables, and the queries on them."""

from eventstore import Projection
from service.projections.gaps import GapsView
from service.projections.jobs import JobsView
from service.projections.keys import KeysView
from service.projections.model_failures import ModelFailuresView
from service.projections.organizations import OrganizationsView
from service.projections.people import PeopleView
from service.projections.projects import ProjectsView
from service.projections.questions import QuestionsView
from service.projections.reviews import ReviewsView
from service.projections.sites import SitesView
from service.projections.threads import ThreadsView
from service.projections.usage import ReaderHoursView, UsageDaysView, UsageView
from service.projections.webhooks import WebhooksView


def all_projections() -> tuple[Projection, ...]:
    return (
        OrganizationsView(),
        ProjectsView(),
        SitesView(),
        KeysView(),
        JobsView(),
        ThreadsView(),
        QuestionsView(),
        ModelFailuresView(),
        GapsView(),
        WebhooksView(),
        UsageView(),
        UsageDaysView(),
        ReaderHoursView(),
        ReviewsView(),
        PeopleView(),
    )
