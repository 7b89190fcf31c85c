"""Webhooks and what is on its way to them, as rows.

There is no event for a delivery to be made: it follows from the job's event, or the request for a test, and from the
webhooks that there were at that position of the log. So there is exactly one for each of them, and none can be lost
between two writes.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import assert_never

from eventstore import RecordedEvent
from service.domain.hooks.deliveries import DeliveryAttempted, DeliveryEvent, DeliveryRequested, delivery_id
from service.domain.hooks.webhooks import (
    TEST,
    DeliveredName,
    JobEventName,
    WebhookChanged,
    WebhookCreated,
    WebhookDeleted,
    WebhookDisabled,
    WebhookEnabled,
    WebhookEvent,
    WebhookTestRequested,
)
from service.domain.jobs.decider import JobRequested
from service.domain.texts.times import timestamp
from service.streams import DELIVERIES, JOBS, WEBHOOKS, decoded

MAX_ENDED = 1000
"""Deliveries of one webhook that are over and still listed; all attempts are in the log."""

CHANGES: dict[str, JobEventName] = {
    "job-requested": "job.active",
    "job-reopened": "job.active",
    "job-completed": "job.completed",
    "job-failed": "job.failed",
}
"""The events that change a job's status, and what is reported of them."""


class WebhooksView:
    name = "webhooks-3"
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
        CREATE INDEX webhooks_by_organization ON webhooks (organization_id);
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
        for recorded in events:  # in order: which webhooks there were decides what is sent
            _apply_job(db, recorded)
            for webhook_id, event in decoded(WEBHOOKS, [recorded]):
                _apply_webhook(db, webhook_id, event, recorded)
            for delivery, attempt in decoded(DELIVERIES, [recorded]):
                _apply_delivery(db, delivery, attempt, self._max_ended)


def _apply_job(db: sqlite3.Connection, recorded: RecordedEvent) -> None:
    name = CHANGES.get(recorded.type)
    if name is None:
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
        _add_delivery(db, webhook_id, name, recorded, job_id)


def _add_delivery(
    db: sqlite3.Connection, webhook_id: str, name: DeliveredName, recorded: RecordedEvent, job_id: str
) -> None:
    """Add what an event causes to be sent; of no job: a test."""
    db.execute(
        "INSERT INTO webhook_deliveries (id, webhook_id, job_id, job_version, event, occurred_at, position)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            delivery_id(webhook_id, recorded.id), webhook_id, job_id, recorded.stream_version if job_id else 0, name,
            timestamp(recorded.recorded_at), recorded.position,
        ),
    )  # fmt: skip


def _apply_webhook(db: sqlite3.Connection, webhook_id: str, event: WebhookEvent, recorded: RecordedEvent) -> None:
    match event:
        case WebhookCreated() as made:
            db.execute(
                "INSERT INTO webhooks (id, organization_id, project_id, url, events, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    webhook_id, made.organization_id, made.project_id, made.url, json.dumps(made.events),
                    timestamp(made.created_at),
                ),
            )  # fmt: skip
        case WebhookChanged(events=events):
            db.execute("UPDATE webhooks SET events = ? WHERE id = ?", (json.dumps(events), webhook_id))
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
        case WebhookTestRequested():
            _add_delivery(db, webhook_id, TEST, recorded, "")
            db.execute("UPDATE webhooks SET hold_until = 0 WHERE id = ?", (webhook_id,))
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
                    state, state, tried.attempt, tried.status, tried.error, timestamp(tried.attempted_at),
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
