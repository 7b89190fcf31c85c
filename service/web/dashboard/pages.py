"""The modules of the dashboard's pages, a line each."""

from service.web.dashboard import (
    analytics,
    gaps,
    identity_provider,
    job,
    jobs,
    keys,
    overview,
    passkeys,
    questions,
    sign_in,
    start,
)

MODULES = (
    analytics,
    gaps,
    jobs,
    job,  # after jobs: its address would match theirs
    keys,
    overview,
    questions,
    identity_provider,
    overview,
    passkeys,
    sign_in,
    start,
)
