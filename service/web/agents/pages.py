"""The modules of what agents read, each with its routes: the list of a site and its whole before single pages."""

from service.web.agents import discovery, llms, markdown

MODULES = (discovery, llms, markdown)
