"""The resources of an organization as a whole, for admin keys: projects, sites, keys, webhooks, usage, jobs."""

from service.web.api.organization import (
    keys,
    models,
    overview,
    passages,
    people,
    projects,
    questions,
    site_checks,
    sites,
    usage,
    webhooks,
)

MODULES = (overview, models, projects, sites, site_checks, people, keys, webhooks, usage, passages, questions)
"""In the order of the description."""
