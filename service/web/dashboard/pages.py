"""The modules of the dashboard's pages, a line each."""

from service.web.dashboard import (
    account,
    analytics,
    gaps,
    health,
    identity_provider,
    job,
    jobs,
    keys,
    organizations,
    overview,
    passkeys,
    people,
    questions,
    settings,
    sign_in,
    start,
    usage,
    webhooks,
)

MODULES = (
    account,
    analytics,
    gaps,
    health,
    identity_provider,
    jobs,
    job,  # after jobs: its address would match theirs
    keys,
    organizations,
    overview,
    passkeys,
    people,
    questions,
    settings,
    sign_in,
    start,
    usage,
    webhooks,
)
