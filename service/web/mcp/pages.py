"""The modules of the servers for agents, each with its routes."""

from service.web.mcp import admin, sites

MODULES = (admin, sites)
