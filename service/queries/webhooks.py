"""Webhooks, and what is on its way to them."""

import json
import sqlite3
from datetime import UTC, datetime

from msgspec import Struct

from eventstore import Views
from service.domain.errors import NotFound
from service.domain.hooks.deliveries import LONGEST_WAIT
from service.domain.hooks.webhooks import DeliveredName
from service.domain.texts.times import timestamp
from service.projections.webhooks import CHANGES, WebhooksView
from service.views.webhooks import DeliveryList, DeliveryState, DeliveryView, WebhookList, WebhookView

CHANGED_JOB = frozenset(CHANGES)
"""Types of the events after which webhooks may be due."""
PATIENT_ATTEMPTS = 3
"""A delivery waits for the earlier ones of its job until those have been tried this often, some five minutes."""

LAST = 2**62
"""A position after all others."""


class DueDelivery(Struct, frozen=True):
    id: str
    webhook_id: str
    job_id: str
    job_version: int
    """The version of the job's stream at which the job is shown."""
    event: DeliveredName
    occurred_at: str
    position: int


async def follow_webhooks(views: Views, position: int, timeout_seconds: float) -> None:
    """Wait until what is due shows the event at a position. Raises TimeoutError, StoreUnavailable."""
    await views.wait_for(position, timeout_seconds, projections={WebhooksView.name})


WEBHOOK_COLUMNS = (
    "id, organization_id, project_id, url, events, disabled, created_at,"
    " (SELECT count(*) FROM webhook_deliveries d WHERE d.webhook_id = webhooks.id AND d.state = 'pending')"
)


def _webhook(row: sqlite3.Row) -> WebhookView:
    webhook_id, organization_id, project_id, url, events, *rest = row
    return WebhookView(webhook_id, organization_id, project_id, url, tuple(json.loads(events)), *rest)


async def list_webhooks(views: Views) -> list[WebhookView]:
    """Return all, oldest first."""
    sql = f"SELECT {WEBHOOK_COLUMNS} FROM webhooks ORDER BY created_at, id"  # noqa: S608  (no input)
    return [_webhook(row) for row in await views.query(sql)]


async def webhooks_of(views: Views, organization_id: str) -> WebhookList:
    """Return the webhooks of an organization, oldest first: it has few."""
    rows = await views.query(
        f"SELECT {WEBHOOK_COLUMNS} FROM webhooks WHERE organization_id = ? ORDER BY created_at, id",  # noqa: S608  (ours)
        (organization_id,),
    )
    return WebhookList(tuple(_webhook(row) for row in rows))


async def first_webhooks(views: Views, organization_id: str, number: int) -> set[str]:
    """Return the ids of an organization's first webhooks, by their order in the log."""
    rows = await views.query(
        "SELECT id FROM webhooks WHERE organization_id = ? ORDER BY rowid LIMIT ?", (organization_id, number)
    )
    return {row["id"] for row in rows}


async def webhook_of(views: Views, organization_id: str, webhook_id: str) -> WebhookView:
    """Return a webhook of an organization. Raise NotFound, for a webhook of another one as well."""
    webhook = await get_webhook(views, webhook_id)
    if webhook is None or webhook.organization_id != organization_id:
        raise NotFound(
            f"Webhook not found: {webhook_id}. List the webhooks to see their ids.", code="webhook_not_found"
        )
    return webhook


async def get_webhook(views: Views, webhook_id: str) -> WebhookView | None:
    sql = f"SELECT {WEBHOOK_COLUMNS} FROM webhooks WHERE id = ?"  # noqa: S608  (no input)
    row = await views.query_one(sql, (webhook_id,))
    return _webhook(row) if row else None


async def delivered_since(views: Views, webhook_id: str, time: datetime) -> bool:
    """Return whether anything has arrived there since."""
    row = await views.query_one("SELECT delivered_at FROM webhooks WHERE id = ?", (webhook_id,))
    return row is not None and row[0] is not None and row[0] >= time.timestamp()


DELIVERY_COLUMNS = (
    "id, webhook_id, job_id, event, state, attempts, status, error, occurred_at, attempted_at, next_attempt_at"
)


def _delivery(row: sqlite3.Row) -> DeliveryView:
    values = list(row)[: len(DeliveryView.__struct_fields__)]
    values[2] = values[2] or None
    is_timed = values[4] == "pending" and values[-1] > 0
    values[-1] = timestamp(datetime.fromtimestamp(values[-1], UTC)) if is_timed else None
    return DeliveryView(*values)


async def list_deliveries(
    views: Views, *, webhook_id: str | None = None, state: str | None = None, limit: int = 50
) -> list[DeliveryView]:
    """Return the newest first."""
    rows = await views.query(
        f"SELECT {DELIVERY_COLUMNS} FROM webhook_deliveries WHERE (:webhook IS NULL OR webhook_id = :webhook)"  # noqa: S608  (no input)
        " AND (:state IS NULL OR state = :state) ORDER BY position DESC, id LIMIT :limit",
        {"webhook": webhook_id, "state": state, "limit": limit},
    )
    return [_delivery(row) for row in rows]


async def deliveries_page(
    views: Views, webhook_id: str, *, state: DeliveryState | None = None, limit: int, cursor: int | None = None
) -> DeliveryList:
    """Return some of a webhook's deliveries, the newest first; those before the position that is the cursor."""
    rows = await views.query(
        f"SELECT {DELIVERY_COLUMNS}, position FROM webhook_deliveries WHERE webhook_id = :webhook"  # noqa: S608  (ours)
        " AND position < :cursor AND (:state IS NULL OR state = :state) ORDER BY position DESC LIMIT :limit",
        {"webhook": webhook_id, "state": state, "limit": limit + 1, "cursor": LAST if cursor is None else cursor},
    )
    more = str(rows[limit - 1]["position"]) if len(rows) > limit else None
    return DeliveryList(tuple(_delivery(row) for row in rows[:limit]), more)


async def delivery_of(views: Views, organization_id: str, delivery: str) -> DeliveryView:
    """Return a delivery to a webhook of an organization. Raise NotFound."""
    found = await get_delivery(views, delivery)
    webhook = await get_webhook(views, found.webhook_id) if found is not None else None
    if found is None or webhook is None or webhook.organization_id != organization_id:
        raise NotFound(
            f"Delivery not found: {delivery}. List the webhook's deliveries to see their ids.",
            code="delivery_not_found",
        )
    return found


async def get_delivery(views: Views, delivery: str) -> DeliveryView | None:
    sql = f"SELECT {DELIVERY_COLUMNS} FROM webhook_deliveries WHERE id = ?"  # noqa: S608  (no input)
    row = await views.query_one(sql, (delivery,))
    return _delivery(row) if row else None


async def delivery_at(views: Views, webhook_id: str, position: int) -> str:
    """Return the id of what an event in the log, at a position, causes to be sent to a webhook."""
    row = await views.query_one(
        "SELECT id FROM webhook_deliveries WHERE webhook_id = ? AND position = ?", (webhook_id, position)
    )
    assert row is not None  # the newest ones stay
    return str(row["id"])


async def due_deliveries(views: Views, now: datetime, *, for_each_webhook: int, limit: int) -> list[DueDelivery]:
    """Return what may be sent now, at most ``for_each_webhook`` for one, those first to which nothing was sent for
    longest: however many are slow and have long queues, each of the others has its turn.
    """
    rows = await views.query(
        """
        SELECT d.id, d.webhook_id, d.job_id, d.job_version, d.event, d.occurred_at, d.position
        FROM webhooks w CROSS JOIN webhook_deliveries d ON d.id IN (
            SELECT due.id FROM webhook_deliveries due
            WHERE due.webhook_id = w.id AND due.state = 'pending'
            AND (due.next_attempt_at <= :now OR due.next_attempt_at > :latest) AND NOT EXISTS (
                SELECT 1 FROM webhook_deliveries e WHERE e.webhook_id = due.webhook_id AND e.job_id = due.job_id
                AND e.position < due.position AND e.state = 'pending' AND e.attempts < :patience
            )
            ORDER BY due.next_attempt_at, due.position LIMIT :for_each
        )
        WHERE (w.hold_until <= :now OR w.hold_until > :latest) AND w.disabled IS NULL
        ORDER BY w.tried_at, d.position LIMIT :limit
        """,
        {
            "now": now.timestamp(),
            "latest": (now + LONGEST_WAIT).timestamp(),
            "patience": PATIENT_ATTEMPTS,
            "for_each": for_each_webhook,
            "limit": limit,
        },
    )
    return [DueDelivery(*row) for row in rows]


async def next_due(views: Views, now: datetime) -> datetime | None:
    """Return when the next delivery that has to wait may be sent."""
    row = await views.query_one(
        """
        SELECT min(CASE WHEN w.hold_until > :now THEN max(w.hold_until, (
            SELECT min(next_attempt_at) FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.state = 'pending'
        )) ELSE (
            SELECT min(next_attempt_at) FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.state = 'pending'
            AND d.next_attempt_at > :now
        ) END) FROM webhooks w WHERE w.disabled IS NULL
        """,
        {"now": now.timestamp()},
    )
    if row is None or row[0] is None:
        return None
    return min(datetime.fromtimestamp(row[0], UTC), now + LONGEST_WAIT)
