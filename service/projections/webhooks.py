"""Webhooks and what is on its way to them, as rows.

That a delivery is to be made is no event: it follows from the job's event and from the webhooks that there were at that
position of the log. So there is exactly one for each of them, and none can be lost between two writes.
"""

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_never

from msgspec import Struct

from eventstore import RecordedEvent, Views
from service.domain.hooks.deliveries import DeliveryAttempted, DeliveryEvent, DeliveryRequested, delivery_id
from service.domain.hooks.webhooks import (
    JobEventName,
    WebhookCreated,
    WebhookDeleted,
    WebhookDisabled,
    WebhookEnabled,
    WebhookEvent,
)
from service.domain.jobs.decider import JobRequested
from service.projections.jobs import COLUMNS as JOB_COLUMNS
from service.projections.jobs import JobRow, JobsView, job_row
from service.streams import DELIVERIES, JOBS, WEBHOOKS, decoded

MAX_ENDED = 1000
"""Deliveries of one webhook that are over and still listed; all attempts are in the log."""
PATIENT_ATTEMPTS = 3
"""A delivery waits for the earlier ones of its job until those have been tried so often, some five minutes."""

CHANGES: dict[str, JobEventName] = {
    "job-requested": "job.active",
    "job-reopened": "job.active",
    "job-completed": "job.completed",
    "job-failed": "job.failed",
}
"""The events that change a job's status, and what webhooks are told of them."""


class WebhookRow(Struct, frozen=True, rename="camel"):
    id: str
    organization_id: str
    project_id: str | None
    url: str
    events: tuple[str, ...]
    disabled: str | None
    """Why nothing is sent to it."""
    created_at: str
    pending: int
    """Deliveries that have not arrived yet."""


class DeliveryRow(Struct, frozen=True, rename="camel"):
    id: str
    webhook_id: str
    job_id: str
    event: str
    state: str
    """``pending``, ``delivered`` or ``failed``."""
    attempts: int
    status: int | None
    error: str
    occurred_at: str
    attempted_at: str | None
    next_attempt_at: str | None


class DueDelivery(Struct, frozen=True):
    id: str
    webhook_id: str
    job_id: str
    job_version: int
    """Of the job's stream: the job is shown as it was then."""
    event: str
    occurred_at: str
    position: int


class WebhooksView:
    name = "webhooks-1"
    tables = """
        CREATE TABLE webhooks (
            id TEXT PRIMARY KEY,
            organization_id TEXT NOT NULL,
            project_id TEXT,
            url TEXT NOT NULL,
            events TEXT NOT NULL,
            disabled TEXT,
            created_at TEXT NOT NULL,
            delivered_at REAL,
            tried_at REAL NOT NULL DEFAULT 0,
            hold_until REAL NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE webhook_jobs (
            job_id TEXT PRIMARY KEY,
            organization_id TEXT NOT NULL,
            project_id TEXT NOT NULL
        ) STRICT;
        CREATE TABLE webhook_deliveries (
            id TEXT PRIMARY KEY,
            webhook_id TEXT NOT NULL,
            job_id TEXT NOT NULL,
            job_version INTEGER NOT NULL,
            event TEXT NOT NULL,
            occurred_at TEXT NOT NULL,
            position INTEGER NOT NULL,
            state TEXT NOT NULL DEFAULT 'pending',
            attempts INTEGER NOT NULL DEFAULT 0,
            status INTEGER,
            error TEXT NOT NULL DEFAULT '',
            attempted_at TEXT,
            next_attempt_at REAL NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, position);
        CREATE INDEX webhook_deliveries_of_job ON webhook_deliveries (webhook_id, job_id, position)
            WHERE state = 'pending';
        CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_attempt_at, position)
            WHERE state = 'pending';
    """

    def __init__(self, *, max_ended: int = MAX_ENDED) -> None:
        self._max_ended = max_ended

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for recorded in events:  # in order: which webhooks there were decides who is told
            _apply_job(db, recorded)
            for webhook_id, event in decoded(WEBHOOKS, [recorded]):
                _apply_webhook(db, webhook_id, event)
            for delivery, attempt in decoded(DELIVERIES, [recorded]):
                _apply_delivery(db, delivery, attempt, self._max_ended)


def _apply_job(db: sqlite3.Connection, recorded: RecordedEvent) -> None:
    name = CHANGES.get(recorded.type)
    if name is None or not JOBS.owns(recorded.stream):
        return
    job_id = JOBS.entity_id(recorded.stream)
    if name == "job.active":
        for _, event in decoded(JOBS, [recorded]):
            if isinstance(event, JobRequested):
                row = (job_id, event.organization_id, event.project_id)
                db.execute("INSERT INTO webhook_jobs VALUES (?, ?, ?)", row)
    webhooks = db.execute(
        "SELECT w.id FROM webhooks w JOIN webhook_jobs j ON j.organization_id = w.organization_id WHERE j.job_id = ?"
        " AND (w.project_id IS NULL OR w.project_id = j.project_id) AND w.disabled IS NULL"
        " AND EXISTS (SELECT 1 FROM json_each(w.events) WHERE value = ?)",
        (job_id, name),
    ).fetchall()
    for (webhook_id,) in webhooks:
        db.execute(
            "INSERT INTO webhook_deliveries (id, webhook_id, job_id, job_version, event, occurred_at, position)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                delivery_id(webhook_id, recorded.id), webhook_id, job_id, recorded.stream_version, name,
                _timestamp(recorded.recorded_at), recorded.position,
            ),
        )  # fmt: skip


def _apply_webhook(db: sqlite3.Connection, webhook_id: str, event: WebhookEvent) -> None:
    match event:
        case WebhookCreated() as made:
            db.execute(
                "INSERT INTO webhooks (id, organization_id, project_id, url, events, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    webhook_id, made.organization_id, made.project_id, made.url, json.dumps(made.events),
                    _timestamp(made.created_at),
                ),
            )  # fmt: skip
        case WebhookDisabled(reason=reason):
            db.execute("UPDATE webhooks SET disabled = ? WHERE id = ?", (reason, webhook_id))
            db.execute(
                "UPDATE webhook_deliveries SET state = 'failed' WHERE webhook_id = ? AND state = 'pending'",
                (webhook_id,),
            )
        case WebhookEnabled():
            db.execute("UPDATE webhooks SET disabled = NULL, hold_until = 0 WHERE id = ?", (webhook_id,))
        case WebhookDeleted():
            db.execute("DELETE FROM webhooks WHERE id = ?", (webhook_id,))
            db.execute("DELETE FROM webhook_deliveries WHERE webhook_id = ?", (webhook_id,))
        case unknown:
            assert_never(unknown)


def _apply_delivery(db: sqlite3.Connection, delivery: str, event: DeliveryEvent, max_ended: int) -> None:
    match event:
        case DeliveryAttempted() as tried:
            state = {"delivered": "delivered", "retry": "pending"}.get(tried.outcome, "failed")
            next_attempt_at = tried.next_attempt_at.timestamp() if tried.next_attempt_at else 0
            # One that was cancelled with its webhook while it was on its way stays failed, unless it arrived.
            db.execute(
                "UPDATE webhook_deliveries SET state = CASE WHEN state = 'failed' AND ? = 'pending' THEN state ELSE ?"
                " END, attempts = ?, status = ?, error = ?, attempted_at = ?, next_attempt_at = ? WHERE id = ?",
                (
                    state, state, tried.attempt, tried.status, tried.error, _timestamp(tried.attempted_at),
                    next_attempt_at, delivery,
                ),
            )  # fmt: skip
            at = tried.attempted_at.timestamp()
            db.execute("UPDATE webhooks SET tried_at = ? WHERE id = ?", (at, tried.webhook_id))
            if tried.outcome == "delivered":
                db.execute("UPDATE webhooks SET delivered_at = ? WHERE id = ?", (at, tried.webhook_id))
            if tried.hold_until is not None:
                until = tried.hold_until.timestamp()
                db.execute("UPDATE webhooks SET hold_until = ? WHERE id = ?", (until, tried.webhook_id))
            if state != "pending":
                _forget_old(db, tried.webhook_id, max_ended)
        case DeliveryRequested(webhook_id=webhook_id):
            db.execute(
                "UPDATE webhook_deliveries SET state = 'pending', attempts = 0, next_attempt_at = 0 WHERE id = ?",
                (delivery,),
            )
            db.execute("UPDATE webhooks SET hold_until = 0 WHERE id = ?", (webhook_id,))
        case unknown:
            assert_never(unknown)


def _forget_old(db: sqlite3.Connection, webhook_id: str, max_ended: int) -> None:
    db.execute(
        "DELETE FROM webhook_deliveries WHERE webhook_id = ? AND state <> 'pending' AND position <= (SELECT position"
        " FROM webhook_deliveries WHERE webhook_id = ? ORDER BY position DESC LIMIT 1 OFFSET ?)",
        (webhook_id, webhook_id, max_ended),
    )


def _timestamp(time: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and ``Z``."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


WEBHOOK_COLUMNS = (
    "id, organization_id, project_id, url, events, disabled, created_at,"
    " (SELECT count(*) FROM webhook_deliveries d WHERE d.webhook_id = webhooks.id AND d.state = 'pending')"
)


def _webhook(row: sqlite3.Row) -> WebhookRow:
    webhook_id, organization_id, project_id, url, events, *rest = row
    return WebhookRow(webhook_id, organization_id, project_id, url, tuple(json.loads(events)), *rest)


async def list_webhooks(views: Views) -> list[WebhookRow]:
    """All, oldest first."""
    sql = f"SELECT {WEBHOOK_COLUMNS} FROM webhooks ORDER BY created_at, id"  # noqa: S608  (no input)
    return [_webhook(row) for row in await views.query(sql)]


async def get_webhook(views: Views, webhook_id: str) -> WebhookRow | None:
    sql = f"SELECT {WEBHOOK_COLUMNS} FROM webhooks WHERE id = ?"  # noqa: S608  (no input)
    row = await views.query_one(sql, (webhook_id,))
    return _webhook(row) if row else None


async def delivered_since(views: Views, webhook_id: str, time: datetime) -> bool:
    """Whether anything has arrived there since."""
    row = await views.query_one("SELECT delivered_at FROM webhooks WHERE id = ?", (webhook_id,))
    return row is not None and row[0] is not None and row[0] >= time.timestamp()


DELIVERY_COLUMNS = (
    "id, webhook_id, job_id, event, state, attempts, status, error, occurred_at, attempted_at, next_attempt_at"
)


def _delivery(row: sqlite3.Row) -> DeliveryRow:
    values = list(row)
    is_timed = values[4] == "pending" and values[-1] > 0
    values[-1] = _timestamp(datetime.fromtimestamp(values[-1], UTC)) if is_timed else None
    return DeliveryRow(*values)


async def list_deliveries(
    views: Views, *, webhook_id: str | None = None, state: str | None = None, limit: int = 50
) -> list[DeliveryRow]:
    """Newest first."""
    rows = await views.query(
        f"SELECT {DELIVERY_COLUMNS} FROM webhook_deliveries WHERE (:webhook IS NULL OR webhook_id = :webhook)"  # noqa: S608  (no input)
        " AND (:state IS NULL OR state = :state) ORDER BY position DESC, id LIMIT :limit",
        {"webhook": webhook_id, "state": state, "limit": limit},
    )
    return [_delivery(row) for row in rows]


async def get_delivery(views: Views, delivery: str) -> DeliveryRow | None:
    sql = f"SELECT {DELIVERY_COLUMNS} FROM webhook_deliveries WHERE id = ?"  # noqa: S608  (no input)
    row = await views.query_one(sql, (delivery,))
    return _delivery(row) if row else None


async def due_deliveries(views: Views, now: datetime, *, for_each_webhook: int, limit: int) -> list[DueDelivery]:
    """What may be sent now, at most so many for one webhook, those first to which nothing was sent for longest: however
    many are slow and have long queues, each of the others has its turn.
    """
    rows = await views.query(
        """
        SELECT d.id, d.webhook_id, d.job_id, d.job_version, d.event, d.occurred_at, d.position
        FROM webhooks w CROSS JOIN webhook_deliveries d ON d.id IN (
            SELECT due.id FROM webhook_deliveries due
            WHERE due.webhook_id = w.id AND due.state = 'pending' AND due.next_attempt_at <= :now AND NOT EXISTS (
                SELECT 1 FROM webhook_deliveries e WHERE e.webhook_id = due.webhook_id AND e.job_id = due.job_id
                AND e.position < due.position AND e.state = 'pending' AND e.attempts < :patience
            )
            ORDER BY due.next_attempt_at, due.position LIMIT :for_each
        )
        WHERE w.hold_until <= :now AND w.disabled IS NULL ORDER BY w.tried_at, d.position LIMIT :limit
        """,
        {"now": now.timestamp(), "patience": PATIENT_ATTEMPTS, "for_each": for_each_webhook, "limit": limit},
    )
    return [DueDelivery(*row) for row in rows]


async def next_due(views: Views, now: datetime) -> datetime | None:
    """When the next delivery that has to wait may be sent."""
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
    return datetime.fromtimestamp(row[0], UTC) if row is not None and row[0] is not None else None


def job_after(events: Sequence[RecordedEvent]) -> JobRow:
    """A job's row as it was after the first events of its stream; for a thread, since these may be large."""
    db = sqlite3.connect(":memory:")
    try:
        db.row_factory = sqlite3.Row
        view = JobsView()
        db.executescript(view.tables)
        view.apply(db, events)
        return job_row(db.execute(f"SELECT {JOB_COLUMNS} FROM jobs").fetchone())  # noqa: S608  (no input)
    finally:
        db.close()
