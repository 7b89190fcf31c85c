"""The operations on an organization, for its admin keys: projects, sites, people, keys, webhooks, usage."""

from service.web.api.organization import keys, people, projects, questions, sites, usage, webhooks

MODULES = (projects, sites, people, keys, webhooks, usage, questions)
"""In the order of the description."""
