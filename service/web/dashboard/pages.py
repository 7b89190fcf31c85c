"""The modules of the dashboard's pages, a line each."""

from service.web.dashboard import (
    analytics,
    gaps,
    job,
    jobs,
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
    overview,
    questions,
    sign_in,
    start,
)
