"""Requests that may be sent again: a caller's key is claimed together with what the request does, so it is done once.

After draft-ietf-httpapi-idempotency-key-header. A claim has no end: what was recorded stays recorded. The key itself is
not in it, only a hash in the stream's name. The fingerprint is made with the key, so that a reader of the log cannot
guess the request and compare.
"""

import hmac
from datetime import datetime
from hashlib import sha256

from msgspec import Struct

from service.domain.errors import Invalid
from service.domain.events import Event

MAX_KEY_CHARACTERS = 255


class KeyReused(Invalid):
    """The same key came with another request."""

    code = "idempotency_key_reused"


class RequestClaimed(Event, frozen=True, tag="request-claimed"):
    project_id: str
    job_id: str
    """The job that the request created or changed."""
    fingerprint: str
    claimed_at: datetime


RequestEvent = RequestClaimed


class ClaimRequest(Struct, frozen=True):
    project_id: str
    job_id: str
    fingerprint: str
    now: datetime


RequestCommand = ClaimRequest


class Unclaimed(Struct, frozen=True):
    pass


class Claimed(Struct, frozen=True):
    job_id: str
    fingerprint: str


RequestState = Unclaimed | Claimed


def decide(command: RequestCommand, state: RequestState) -> list[RequestEvent]:
    """Return the events of a command. Raise KeyReused when the key belongs to another request."""
    match state:
        case Unclaimed():
            return [RequestClaimed(command.project_id, command.job_id, command.fingerprint, claimed_at=command.now)]
        case Claimed(fingerprint=fingerprint):
            if not hmac.compare_digest(fingerprint, command.fingerprint):
                raise KeyReused("This Idempotency-Key was used for another request.")
            return []


def evolve(_: RequestState, event: RequestEvent) -> RequestState:
    return Claimed(event.job_id, event.fingerprint)


def claim_id(project_id: str, key: str) -> str:
    """Keys of different projects never meet."""
    return sha256(f"{project_id}\n{key}".encode()).hexdigest()


def fingerprint_of(key: str, request: bytes) -> str:
    return hmac.digest(key.encode(), request, "sha256").hex()
