"""One change of a job on its way to one webhook: tried until it is there, or for about a day."""

import hashlib
from datetime import datetime, timedelta
from typing import Literal, assert_never

from msgspec import Struct

from service.domain.events import Event
from service.domain.hooks.webhooks import TEST
from service.domain.texts.times import has_come

DELAYS_SECONDS = (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600)
"""Between one attempt and the next: the specification's own example up to its eighth attempt, after 31.6 hours."""
JITTER = 0.2
"""The part of a delay by which it may be longer, so that what failed together does not come back together."""
MAX_RETRY_AFTER_SECONDS = 24 * 3600
LONGEST_WAIT = timedelta(hours=25)
"""Longer than any wait for an attempt."""

Outcome = Literal["delivered", "retry", "exhausted", "gone"]
"""``exhausted``: it was the last attempt. ``gone``: the answer was 410, so nothing is sent there any more."""


class DeliveryAttempted(Event, frozen=True, tag="delivery-attempted"):
    """The only record of a delivery: neither the request's body nor the answer's is kept."""

    webhook_id: str
    job_id: str
    """Empty for a test."""
    event: str
    """The name of the event that was sent, such as ``job.completed``."""
    attempt: int
    """From 1; from 1 again when it was asked for again."""
    status: int | None
    """HTTP status of the answer; None when there was no answer."""
    error: str
    """Why there was no answer, as ``WebhookSender`` names it; else empty."""
    seconds: float
    outcome: Outcome
    attempted_at: datetime
    next_attempt_at: datetime | None = None
    hold_until: datetime | None = None
    """The webhook asked for a pause: nothing else is sent to it before."""


class DeliveryRequested(Event, frozen=True, tag="delivery-requested"):
    """A person wants it sent again, now, whatever its outcome was."""

    webhook_id: str
    requested_at: datetime


DeliveryEvent = DeliveryAttempted | DeliveryRequested


class RecordAttempt(Struct, frozen=True):
    webhook_id: str
    job_id: str
    event: str
    status: int | None
    error: str
    seconds: float
    retry_after_seconds: float | None
    jitter: float
    """Random, from 0 to 1."""
    now: datetime


class RequestDelivery(Struct, frozen=True):
    webhook_id: str
    now: datetime


DeliveryCommand = RecordAttempt | RequestDelivery


class Waiting(Struct, frozen=True):
    attempts: int = 0
    first_attempt_at: datetime | None = None
    next_attempt_at: datetime | None = None
    """None: at once."""

    def is_due(self, now: datetime) -> bool:
        return self.next_attempt_at is None or has_come(self.next_attempt_at, now, LONGEST_WAIT)


class Ended(Struct, frozen=True):
    outcome: Outcome


DeliveryState = Waiting | Ended


def delivery_id(webhook_id: str, event_id: str) -> str:
    """The one id of an event's delivery to a webhook, by which the receiver knows a repetition."""
    return "msg_" + hashlib.sha256(f"{webhook_id} {event_id}".encode()).hexdigest()[:40]


def decide(command: DeliveryCommand, state: DeliveryState) -> list[DeliveryEvent]:
    match command, state:
        case RecordAttempt() as done, Waiting():
            return [_attempted(done, state.attempts + 1)]
        case RecordAttempt(), Ended():
            return []  # another process has tried it, too
        case RequestDelivery(webhook_id=webhook_id, now=now), _:
            return [DeliveryRequested(webhook_id, requested_at=now)]
        case _:
            raise AssertionError(command)


def _attempted(done: RecordAttempt, attempt: int) -> DeliveryAttempted:
    outcome: Outcome
    next_attempt_at = None
    if done.status is not None and 200 <= done.status < 300:
        outcome = "delivered"
    elif done.status == 410:
        outcome = "gone"
    elif attempt > len(DELAYS_SECONDS) or done.event == TEST:  # a test is tried once: its outcome is waited for
        outcome = "exhausted"
    else:
        outcome = "retry"
        next_attempt_at = done.now + retry_delay(attempt, done.jitter, retry_after_seconds=done.retry_after_seconds)
    hold_until = None
    if outcome in ("retry", "exhausted") and done.retry_after_seconds is not None:
        hold_until = done.now + timedelta(seconds=_bounded(done.retry_after_seconds))
    return DeliveryAttempted(
        done.webhook_id, done.job_id, done.event, attempt, done.status, done.error, round(done.seconds, 3), outcome,
        done.now, next_attempt_at, hold_until,
    )  # fmt: skip


def retry_delay(attempt: int, jitter: float, *, retry_after_seconds: float | None = None) -> timedelta:
    """Return how long to wait after an attempt, the first being 1; not shorter than a server's Retry-After, up to a
    day.
    """
    seconds = DELAYS_SECONDS[attempt - 1] * (1 + JITTER * jitter)
    return timedelta(seconds=max(seconds, _bounded(retry_after_seconds or 0)))


def _bounded(retry_after_seconds: float) -> float:
    return min(max(retry_after_seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def evolve(state: DeliveryState, event: DeliveryEvent) -> DeliveryState:
    match event:
        case DeliveryAttempted(outcome="retry") as tried:
            first = state.first_attempt_at if isinstance(state, Waiting) else None
            return Waiting(tried.attempt, first or tried.attempted_at, tried.next_attempt_at)
        case DeliveryAttempted(outcome=outcome):
            return Ended(outcome)
        case DeliveryRequested():
            return Waiting()
        case _:
            assert_never(event)
