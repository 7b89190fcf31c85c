"""The modules of the ask page, each with its routes."""

from service.web.ask import ask, sdk, site_pages

MODULES = (ask, sdk, site_pages)
