"""The modules of the dashboard's pages, a line each."""

from service.web.dashboard import (
    analytics,
    gaps,
    job,
    jobs,
    keys,
    overview,
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
    sign_in,
    start,
)
