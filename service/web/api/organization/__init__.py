"""The resources of an organization as a whole, for admin keys: projects, sites, keys, webhooks, usage."""

from service.web.api.organization import keys, people, projects, questions, sites, usage, webhooks

MODULES = (projects, sites, people, keys, webhooks, usage, questions)
"""In the order of the description."""
