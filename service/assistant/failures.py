"""The messages that readers get when a model failed: the assistant is busy, unavailable or misconfigured, and no more.

A provider's message may quote our key, the prompt, or its own machines, and it names the model; that is for the log.
"""

from service.domain.errors import QuotaUsedUp, RateLimited, ServiceError, Unavailable
from service.domain.threads.replies import ReplyBroken
from service.ports.model import CONTEXT_WINDOW_EXCEEDED

BUSY = ReplyBroken("assistant_busy", "The assistant is busy. Ask again in a moment.")
UNAVAILABLE = ReplyBroken("assistant_unavailable", "The assistant is unavailable. Ask again in a moment.")
MISCONFIGURED = ReplyBroken(
    "assistant_misconfigured", "The assistant is misconfigured. Tell the owner of this site, whose log has the reason."
)
TOO_LONG = ReplyBroken(
    CONTEXT_WINDOW_EXCEEDED, "The question is too long with its context. Ask for less at once, or begin a new chat."
)
"""The one failure that a reader can do something about."""


class ModelFailed(Exception):
    """A call of the model that failed, in the model's own words."""

    def __init__(self, error: ServiceError) -> None:
        super().__init__(str(error))
        self.error = error


def as_readers_learn(error: ServiceError) -> ReplyBroken:
    """Return the end of a reply for a failure of its model."""
    if isinstance(error, QuotaUsedUp):
        return MISCONFIGURED
    if isinstance(error, RateLimited):
        return BUSY
    if isinstance(error, Unavailable):
        return UNAVAILABLE
    return TOO_LONG if error.code == CONTEXT_WINDOW_EXCEEDED else MISCONFIGURED
