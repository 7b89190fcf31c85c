"""The modules of the dashboard's pages, a line each."""

from service.web.dashboard import (
    job,
    jobs,
    overview,
    sign_in,
    start,
)

MODULES = (
    jobs,
    job,  # after jobs: its address would match theirs
    overview,
    sign_in,
    start,
)
