"""Long answers end with the key that opened them: within a second of its revocation nothing more is sent.

A handler that waits or streams watches ``revocation_of(request)``, so that it can end in its protocol's own way. What
has not ended after ``connections.REVOKED_SECONDS`` is cut with its connection: a reader that takes nothing, an export,
a clone, a body that still arrives.
"""

from aiohttp import web

from service.domain.errors import Unauthorized
from service.domain.threads.replies import ReplyBroken
from service.queries.access.keys import Revocation

REVOKED = web.RequestKey("revoked", Revocation)
"""The revocation of the request's key."""
SENTENCE = "This API key is no longer valid."
KEY_REVOKED = ReplyBroken("unauthorized", SENTENCE)


class KeyRevoked(Unauthorized):
    """The key was revoked while its request was under way."""


def revocation_of(request: web.Request) -> Revocation:
    """Return the revocation of the request's key; for a request without a key, one that is never published."""
    return request.get(REVOKED) or Revocation()


def require_key_in_force(request: web.Request) -> None:
    """Raise KeyRevoked if the request's key was revoked after it was admitted."""
    if revocation_of(request).is_published:
        raise KeyRevoked(SENTENCE)
