"""A webhook: an address outside that is notified when jobs change, and how the notifications are signed.

By the Standard Webhooks specification, version 1.0.0
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
"""

import base64
import hashlib
import hmac
from collections.abc import Collection
from datetime import datetime
from typing import Literal, assert_never, get_args
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from service.domain.access.addresses import is_public
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.events import Event, PersonalText

JobEventName = Literal["job.active", "job.completed", "job.failed"]
"""Names of the events that are sent: the status that a job has just reached."""
JOB_EVENT_NAMES: tuple[JobEventName, ...] = get_args(JobEventName)
DeliveredName = Literal["job.active", "job.completed", "job.failed", "webhook.test"]
"""Also the name of what is sent for a test: no webhook asks for it."""
TEST: Literal["webhook.test"] = "webhook.test"

DisablingReason = Literal["gone", "failing"]
"""``gone``: it answered 410. ``failing``: nothing reached it for as long as one delivery was tried."""

TEST_SECONDS = 10
"""From one test of a webhook to the next."""
MAX_URL_CHARACTERS = 2000
SECRET_PREFIX = "whsec_"  # noqa: S105  (not a secret)
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64
SECRET_BYTES = 32
"""Length of a new secret. The specification allows 24 to 64 bytes; GitLab accepts 32 only."""


class WebhookCreated(Event, frozen=True, tag="webhook-created"):
    organization_id: str
    project_id: str | None
    """None: all projects of the organization."""
    events: tuple[JobEventName, ...]
    url: PersonalText
    """Sealed, since many a URL is a secret itself."""
    secret: PersonalText
    created_at: datetime


class WebhookChanged(Event, frozen=True, tag="webhook-changed"):
    events: tuple[JobEventName, ...]
    """All that are sent from now on."""
    changed_at: datetime


class WebhookDisabled(Event, frozen=True, tag="webhook-disabled"):
    """Nothing is sent to it any more, and what waited for it has failed."""

    reason: DisablingReason
    disabled_at: datetime


class WebhookEnabled(Event, frozen=True, tag="webhook-enabled"):
    enabled_at: datetime


class WebhookDeleted(Event, frozen=True, tag="webhook-deleted"):
    deleted_at: datetime


class WebhookTestRequested(Event, frozen=True, tag="webhook-test-requested"):
    """A person wants to see whether something arrives there."""

    requested_at: datetime


WebhookEvent = (
    WebhookCreated | WebhookChanged | WebhookDisabled | WebhookEnabled | WebhookDeleted | WebhookTestRequested
)


class CreateWebhook(Struct, frozen=True):
    organization_id: str
    project_id: str | None
    events: tuple[JobEventName, ...]
    url: str
    secret: str
    allow_private: bool
    now: datetime


class ChangeWebhook(Struct, frozen=True):
    events: tuple[JobEventName, ...]
    now: datetime


class DisableWebhook(Struct, frozen=True):
    reason: DisablingReason
    now: datetime


class EnableWebhook(Struct, frozen=True):
    now: datetime


class DeleteWebhook(Struct, frozen=True):
    now: datetime


class RequestTest(Struct, frozen=True):
    now: datetime


WebhookCommand = CreateWebhook | ChangeWebhook | DisableWebhook | EnableWebhook | DeleteWebhook | RequestTest


class Absent(Struct, frozen=True):
    pass


class Webhook(Struct, frozen=True):
    organization_id: str
    url: str
    secret: str
    events: tuple[JobEventName, ...]
    disabled: DisablingReason | None = None
    tested_at: datetime | None = None


class Deleted(Struct, frozen=True):
    pass


WebhookState = Absent | Webhook | Deleted


def decide(command: WebhookCommand, state: WebhookState) -> list[WebhookEvent]:
    """Return the events of a command. Raise NotFound, Conflict (it exists, or may not be tested now) or Invalid (no
    event, or its URL).
    """
    match command, state:
        case CreateWebhook() as new, Absent():
            events = _checked_events(new.events)
            url = checked_url(new.url, allow_private=new.allow_private)
            return [WebhookCreated(new.organization_id, new.project_id, events, url, new.secret, created_at=new.now)]
        case CreateWebhook(), _:
            raise Conflict("This webhook exists already.")
        case _, Absent() | Deleted():
            raise NotFound("Webhook not found. List the webhooks to see their ids.")
        case ChangeWebhook() as change, Webhook():
            events = _checked_events(change.events)
            return [WebhookChanged(events, changed_at=change.now)] if events != state.events else []
        case DisableWebhook(reason=reason, now=now), Webhook(disabled=None):
            return [WebhookDisabled(reason, disabled_at=now)]
        case DisableWebhook(), Webhook():
            return []
        case EnableWebhook(), Webhook(disabled=None):
            return []
        case EnableWebhook(now=now), Webhook():
            return [WebhookEnabled(enabled_at=now)]
        case DeleteWebhook(now=now), Webhook():
            return [WebhookDeleted(deleted_at=now)]
        case RequestTest(now=now), Webhook():
            if state.disabled is not None:
                raise Conflict("The webhook is disabled. Enable it, then send a test.")
            if state.tested_at is not None and abs((now - state.tested_at).total_seconds()) < TEST_SECONDS:
                raise Conflict(f"A test was sent less than {TEST_SECONDS} seconds ago. Wait, then send another.")
            return [WebhookTestRequested(requested_at=now)]
        case _:
            raise AssertionError(command)


def _checked_events(events: Collection[JobEventName]) -> tuple[JobEventName, ...]:
    found = tuple(name for name in JOB_EVENT_NAMES if name in events)
    if not found:
        raise Invalid("A webhook needs at least one event. Choose from " + ", ".join(JOB_EVENT_NAMES) + ".")
    return found


def evolve(state: WebhookState, event: WebhookEvent) -> WebhookState:
    match event:
        case WebhookCreated() as made:
            return Webhook(made.organization_id, made.url, made.secret, made.events)
        case WebhookChanged(events=events):
            assert isinstance(state, Webhook)
            return replace(state, events=events)
        case WebhookDisabled(reason=reason):
            assert isinstance(state, Webhook)
            return replace(state, disabled=reason)
        case WebhookEnabled():
            assert isinstance(state, Webhook)
            return replace(state, disabled=None)
        case WebhookDeleted():
            return Deleted()
        case WebhookTestRequested(requested_at=at):
            assert isinstance(state, Webhook)
            return replace(state, tested_at=at)
        case _:
            assert_never(event)


def checked_url(url: str, *, allow_private: bool) -> str:
    """Return an address that webhooks may use: https, no credentials, no fragment, and no numbers of a private network.

    The addresses of a name are checked at each connection. ``allow_private`` also allows http. Raise Invalid for
    others.
    """
    if not 0 < len(url) <= MAX_URL_CHARACTERS or not url.isascii() or not url.isprintable() or " " in url:
        raise Invalid(f"A webhook's URL has 1 to {MAX_URL_CHARACTERS} printable ASCII characters.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Invalid("The webhook's URL is not valid. Give an https:// URL.") from None
    schemes = ("https", "http") if allow_private else ("https",)
    rules = (
        (parts.scheme in schemes, "A webhook's URL begins with https:// (http is for [network] allow_private = true)."),
        (host != "" and port != 0, "A webhook's URL names a host."),
        ("@" not in parts.netloc, "Put no credentials before the host; what is sent is signed instead."),
        ("#" not in url, "A webhook's URL has no fragment."),
    )
    for is_kept, problem in rules:
        if not is_kept:
            raise Invalid(problem)
    is_numbers = ":" in host or host.rstrip(".").rpartition(".")[2].isdecimal()
    if is_numbers and not allow_private and not is_public(host):
        raise Invalid(f"{host} is not an address of the public internet; see [network] allow_private.")
    return url


def make_secret(random: bytes) -> str:
    """Return a secret in the specification's form, from SECRET_BYTES random bytes. Raise Invalid for another length."""
    if len(random) != SECRET_BYTES:
        raise Invalid(f"A webhook's secret is made from {SECRET_BYTES} bytes.")
    return SECRET_PREFIX + base64.b64encode(random).decode()


def checked_secret(secret: str) -> str:
    """Return a secret that someone else made. Raise Invalid unless it has the specification's form."""
    try:
        length = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except ValueError:
        length = 0
    if not secret.startswith(SECRET_PREFIX) or not MIN_SECRET_BYTES <= length <= MAX_SECRET_BYTES:
        raise Invalid(
            f"The webhook's secret is not valid. Write it as {SECRET_PREFIX} and the base64 text of {MIN_SECRET_BYTES}"
            f" to {MAX_SECRET_BYTES} random bytes."
        )
    return secret


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of the header ``webhook-signature``; ``timestamp`` in seconds since 1970."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
