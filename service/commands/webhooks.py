"""Webhooks: create, enable, test and delete one, and send a delivery again."""

import asyncio
import secrets
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import asdict

from eventstore import Append, EventStore, Metadata, Views, WrongExpectedVersion, execute, plan
from service.domain.erasures import EraseSubject
from service.domain.errors import Conflict, NotFound
from service.domain.hooks.deliveries import RequestDelivery
from service.domain.hooks.webhooks import (
    SECRET_BYTES,
    ChangeWebhook,
    CreateWebhook,
    DeleteWebhook,
    EnableWebhook,
    JobEventName,
    RequestTest,
    checked_secret,
    make_secret,
)
from service.queries.webhooks import delivery_at, first_webhooks, get_delivery, get_webhook, webhooks_of
from service.runtime.system import new_id, now
from service.streams import DELIVERIES, ERASURES, WEBHOOKS
from service.views.webhooks import DeliveryView

MAX_WEBHOOKS = 20
"""Webhooks of one organization: each is sent two messages at a time, so none can take all that there may be."""

TEST_ANSWER_SECONDS = 30.0
"""For the outcome of a test: longer than one attempt takes."""


class NewWebhook(Struct, frozen=True):
    organization_id: str
    project_id: str | None
    """None for the jobs of all projects."""
    events: tuple[JobEventName, ...]
    url: str
    allow_private: bool


class CreatedWebhook(Struct, frozen=True):
    id: str
    secret: str
    """Shown this once."""


async def create_webhook(
    store: EventStore, views: Views, new: NewWebhook, metadata: Metadata, *, webhook_id: str = "", secret: str = ""
) -> CreatedWebhook:
    """Create a webhook, with an id that the caller chose so that a repeat creates no second one, and perhaps a secret.

    Raise Invalid, and Conflict when the id is used or the organization has the most that it may.
    """
    full = Conflict(f"An organization has at most {MAX_WEBHOOKS} webhooks; delete one: docsmith webhook delete ID")
    if len((await webhooks_of(views, new.organization_id)).webhooks) >= MAX_WEBHOOKS:
        raise full
    webhook_id, secret = webhook_id or new_id(), checked_secret(secret) if secret else new_secret()
    command = CreateWebhook(**asdict(new), secret=secret, now=now())
    await execute(store, WEBHOOKS, webhook_id, command, metadata=metadata)
    await views.catch_up()
    if webhook_id not in await first_webhooks(views, new.organization_id, MAX_WEBHOOKS):  # others were faster
        await delete_webhook(store, views, webhook_id, metadata)
        raise full
    return CreatedWebhook(webhook_id, secret)


async def change_webhook(
    store: EventStore, webhook_id: str, events: tuple[JobEventName, ...], metadata: Metadata
) -> int:
    """Change the events that are sent. Return the position in the log. Raises NotFound, and Invalid: no event."""
    return (await execute(store, WEBHOOKS, webhook_id, ChangeWebhook(events, now()), metadata=metadata)).position


async def enable_webhook(store: EventStore, webhook_id: str, metadata: Metadata) -> int:
    """Return the position in the log; again does nothing. Raises NotFound."""
    return (await execute(store, WEBHOOKS, webhook_id, EnableWebhook(now()), metadata=metadata)).position


async def delete_webhook(store: EventStore, views: Views, webhook_id: str, metadata: Metadata) -> None:
    """Delete a webhook and erase its address and secret. The record of the erasure is appended with the deletion, so
    that a restored vault does not bring them back. Raises NotFound, and StoreUnavailable.
    """
    at, subject = now(), WEBHOOKS.stream(webhook_id)
    while True:
        deleted = await plan(store, WEBHOOKS, webhook_id, DeleteWebhook(at), metadata=metadata)
        erased = await plan(store, ERASURES, subject, EraseSubject(at), metadata=metadata)
        writes: list[Append] = [write for write in (deleted, erased) if write is not None]
        try:
            await store.append_all(writes)
            break
        except WrongExpectedVersion:
            continue  # it was disabled just now
    await store.erase(subject)
    await views.catch_up()
    await views.scrub()


async def request_delivery(
    store: EventStore, views: Views, delivery_id: str, webhook_id: str, metadata: Metadata
) -> int:
    """Request that a delivery is sent again, now. Return the position in the log. Raise NotFound where its webhook is
    not found, and Conflict where that is disabled.
    """
    webhook = await get_webhook(views, webhook_id)
    if webhook is None:
        raise NotFound(f"Webhook not found: {webhook_id}. List the webhooks to see their ids.")
    if webhook.disabled is not None:
        raise Conflict(f"Its webhook is disabled. Enable it first: docsmith webhook enable {webhook_id}")
    command = RequestDelivery(webhook_id, now())
    return (await execute(store, DELIVERIES, delivery_id, command, metadata=metadata)).position


async def send_webhook_test(
    store: EventStore,
    views: Views,
    webhook_id: str,
    metadata: Metadata,
    *,
    answer_seconds: float = TEST_ANSWER_SECONDS,
) -> DeliveryView:
    """Have a running service send a signed test, and return the delivery with its outcome; pending where there is none
    in time. Raise NotFound, and Conflict where the webhook is disabled or was tested just now.
    """
    requested = await execute(store, WEBHOOKS, webhook_id, RequestTest(now()), metadata=metadata)
    await views.catch_up()
    delivery = await delivery_at(views, webhook_id, requested.position)
    try:
        async with asyncio.timeout(answer_seconds):
            subscription = store.subscribe(after=requested.position, stream=DELIVERIES.stream(delivery))
            async with aclosing(subscription) as events:
                async for _ in events:
                    break
    except TimeoutError:
        pass
    await views.catch_up()
    found = await get_delivery(views, delivery)
    if found is None:
        raise NotFound(f"Webhook not found: {webhook_id}. It was deleted during the test.", code="webhook_not_found")
    return found


def new_secret() -> str:
    return make_secret(secrets.token_bytes(SECRET_BYTES))
