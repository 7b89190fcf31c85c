"""The modules of the ask page, each with its routes."""

from service.web.ask import sdk

MODULES = (sdk,)
