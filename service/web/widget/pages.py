"""The modules of the chat widget, each with its routes."""

from service.web.widget import scripts

MODULES = (scripts,)
