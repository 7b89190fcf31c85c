"""The modules of the dashboard's pages, a line each."""

from service.web.dashboard import keys, overview, people, start, usage, webhooks
from service.web.dashboard.agent import job, job_requests, jobs, pull_request
from service.web.dashboard.documentation import projects, site_checks, sites, widget
from service.web.dashboard.operators import audit, health, models, organizations, settings
from service.web.dashboard.readers import analytics, gaps, passages, questions
from service.web.dashboard.signing_in import account, identity_provider, passkeys, sign_in

MODULES = (
    account,
    analytics,
    audit,
    gaps,
    health,
    identity_provider,
    jobs,
    job,  # after jobs: its address would match theirs
    job_requests,
    keys,
    models,
    organizations,
    overview,
    passages,
    passkeys,
    people,
    projects,
    pull_request,
    questions,
    settings,
    sign_in,
    sites,
    site_checks,
    start,
    usage,
    webhooks,
    widget,
)
