"""Webhooks, their deliveries, and what is sent to them."""

from typing import Annotated, Literal

from msgspec import Struct

from service.domain.hooks.webhooks import DeliveredName, JobEventName
from service.views.fields import NextCursor, Timestamp, Url, described
from service.views.jobs.jobs import JobView

DeliveryState = Literal["pending", "delivered", "failed"]


class ToldJob(JobView, frozen=True, rename="camel", kw_only=True):
    """A job as it was at the change that is reported."""

    project_id: Annotated[str, described("The project that it belongs to.")]


class JobChanged(Struct, frozen=True):
    """A report to a webhook."""

    type: Annotated[JobEventName, described("The event.")]
    timestamp: Annotated[Timestamp, described("When it happened.")]
    data: ToldJob


class WebhookRef(Struct, frozen=True):
    """The webhook that is tested."""

    id: Annotated[str, described("The webhook's id.")]


class WebhookTested(Struct, frozen=True):
    """A report to a webhook that shows that reports arrive."""

    type: Annotated[Literal["webhook.test"], described("The event.")]
    timestamp: Annotated[Timestamp, described("When the test was asked for.")]
    data: WebhookRef


class WebhookView(Struct, frozen=True, rename="camel"):
    """A webhook, without its secret."""

    id: Annotated[str, described("The webhook's id.")]
    organization_id: Annotated[str, described("The organization that owns it.")]
    project_id: Annotated[str | None, described("The project whose jobs it reports; null for all of them.")]
    url: Annotated[Url, described("Where it is sent.")]
    events: Annotated[tuple[JobEventName, ...], described("The events that are sent to it.")]
    disabled: Annotated[str | None, described("Why nothing is sent to it; null when it is enabled.")]
    created_at: Annotated[Timestamp, described("When it was created.")]
    pending: Annotated[int, described("Deliveries that have not arrived yet.")]


class CreatedWebhookView(WebhookView, frozen=True, rename="camel", kw_only=True):
    """A new webhook, with its secret."""

    secret: Annotated[str, described("What its messages are signed with. It is shown this once.")]


class WebhookList(Struct, frozen=True):
    """An organization's webhooks, oldest first."""

    webhooks: Annotated[tuple[WebhookView, ...], described("The webhooks.")]


class DeliveryView(Struct, frozen=True, rename="camel"):
    """One report to one webhook."""

    id: Annotated[str, described("The delivery's id: the `webhook-id` that is sent.")]
    webhook_id: Annotated[str, described("The webhook that it is for.")]
    job_id: Annotated[str | None, described("The job that it is about; null for a test.")]
    event: Annotated[DeliveredName, described("The event that it reports.")]
    state: Annotated[DeliveryState, described("How far it is.")]
    attempts: Annotated[int, described("How often it was tried.")]
    status: Annotated[int | None, described("The HTTP status of the last answer.")]
    error: Annotated[str, described("Why there was no answer; empty when there was.")]
    occurred_at: Annotated[Timestamp, described("When it happened.")]
    attempted_at: Annotated[Timestamp | None, described("When it was last tried.")]
    next_attempt_at: Annotated[Timestamp | None, described("When it is tried next.")]


class DeliveryList(Struct, frozen=True, rename="camel"):
    """Some of a webhook's deliveries, the newest first."""

    deliveries: Annotated[tuple[DeliveryView, ...], described("The deliveries.")]
    next_cursor: NextCursor
