"""What an admin key opens of its organization as a whole: projects, sites, keys, webhooks, usage."""

from service.web.api.organization import keys, projects, sites, usage, webhooks

MODULES = (projects, sites, keys, webhooks, usage)
"""In the order of the description."""
