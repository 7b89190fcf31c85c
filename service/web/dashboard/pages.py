"""The modules of the dashboard's pages, a line each."""

from service.web.dashboard import (
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
    questions,
    settings,
    sign_in,
    start,
)

MODULES = (
    analytics,
    gaps,
    jobs,
    job,  # after jobs: its address would match theirs
    keys,
    health,
    organizations,
    overview,
    questions,
    identity_provider,
    overview,
    passkeys,
    settings,
    sign_in,
    start,
)
