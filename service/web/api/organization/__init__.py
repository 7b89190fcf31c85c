"""The operations on an organization, for its admin keys: projects, sites, people, keys, webhooks, usage."""

from service.web.api.organization import keys, people, projects, sites, usage, webhooks

MODULES = (projects, sites, people, keys, webhooks, usage)
"""In the order of the description."""
