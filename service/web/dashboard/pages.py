"""The modules of the dashboard's pages, a line each."""

from service.web.dashboard import (
    overview,
    sign_in,
    start,
)

MODULES = (
    overview,
    sign_in,
    start,
)
