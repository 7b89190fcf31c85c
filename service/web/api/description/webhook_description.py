"""The API's description of webhooks, which the service itself sends; part of ``description``."""

from collections.abc import Mapping
from typing import Any

from service.domain.hooks.webhooks import TEST, JobEventName
from service.views.webhooks import JobChanged, WebhookTested
from service.web.api.description.operations import Notice
from service.web.api.jobs.job_bodies import JOB_EXAMPLE

HEADERS = {
    "webhook-id": "The delivery's id: the same however often it is tried, so that a repeat can be recognized.",
    "webhook-timestamp": "When it was sent: seconds since 1970. Refuse what is older than some minutes.",
    "webhook-signature": "`v1,` and the base64 of HMAC-SHA256, with the webhook's secret as its key, over the id, a"
    " dot, the timestamp, a dot and the body as it came. There may be several, with a space between.",
}
ANSWERS = {
    "2XX": "It was accepted.",
    "410": "Nothing is to be sent there any more: the webhook is disabled.",
    "429": "It is tried again, not before `Retry-After`.",
    "default": "It is tried again, up to eight times within 32 hours.",
}
SUMMARIES: Mapping[JobEventName, str] = {
    "job.active": "A job has begun, or goes on",
    "job.completed": "A job has completed",
    "job.failed": "A job has failed",
}


def _changed_fields(name: JobEventName) -> Mapping[str, Any]:
    match name:
        case "job.active":
            return {"status": "active", "prLink": None, "outcome": None, "message": None}
        case "job.completed":
            return {"status": "completed"}
        case "job.failed":
            failure = {"code": "cancelled", "message": "The job was cancelled."}
            return {
                "status": "failed", "prLink": None, "failure": failure, "outcome": "failed",
                "message": failure["message"],
            }  # fmt: skip


NOTICES = [
    Notice(
        name,
        summary,
        "Sent as a POST to the webhook's address.",
        JobChanged,
        {
            "type": name,
            "timestamp": "2026-11-21T09:31:00.000Z",
            "data": {**JOB_EXAMPLE, **_changed_fields(name), "projectId": "5d0c8b1e"},
        },
        HEADERS,
        ANSWERS,
    )
    for name, summary in SUMMARIES.items()
] + [
    Notice(
        TEST,
        "A test of a webhook",
        "Sent as a POST to the webhook's address when a person asks for it, once; it is not tried again.",
        WebhookTested,
        {
            "type": TEST,
            "timestamp": "2026-11-21T09:31:00.000Z",
            "data": {"id": "8f3a525b0f1d4b7a9c1e7d33019a8e6c"},
        },
        HEADERS,
        ANSWERS,
    )
]
