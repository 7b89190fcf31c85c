"""What an admin key opens of its organization as a whole: keys, webhooks, usage."""

from service.web.api.organization import keys, usage, webhooks

MODULES = (keys, webhooks, usage)
"""In the order of the description."""
