"""An organization's webhooks and deliveries: list, create, enable, test and delete webhooks, repeat a delivery."""

from typing import Annotated, Any

from aiohttp import web
from msgspec import Meta, Struct

from service.commands.webhooks import (
    NewWebhook,
    create_webhook,
    delete_webhook,
    enable_webhook,
    request_delivery,
    send_webhook_test,
)
from service.domain.errors import Invalid
from service.domain.hooks.webhooks import JOB_EVENT_NAMES, MAX_URL_CHARACTERS, TEST_SECONDS, JobEventName
from service.queries.projects import get_project
from service.queries.read_models import wait_for_head
from service.queries.webhooks import deliveries_page, delivery_of, webhook_of, webhooks_of
from service.views.fields import described
from service.views.webhooks import (
    CreatedWebhookView,
    DeliveryList,
    DeliveryState,
    DeliveryView,
    WebhookList,
    WebhookView,
)
from service.web.api.description.operations import Answer, Parameter, Routes, cursor_parameter, limit_parameter
from service.web.http.access.access import admin_key
from service.web.http.app_keys import ALLOW_PRIVATE, STORE, VIEWS
from service.web.http.problems import json_response, metadata_of, read_body
from service.web.http.query_params import bad_query, number_cursor, query_param, whole_param

MAX_LISTED, LISTED = 100, 50

WEBHOOK_EXAMPLE: dict[str, Any] = {
    "id": "8f3a525b0f1d4b7a9c1e7d33019a8e6c",
    "organizationId": "0a52c1f7e3b94d0e8c9d6f1b2a3c4d5e",
    "projectId": None,
    "url": "https://hooks.example/docsmith",
    "events": list(JOB_EVENT_NAMES),
    "disabled": None,
    "createdAt": "2026-11-21T09:30:00.000Z",
    "pending": 0,
}
DELIVERY_EXAMPLE = {
    "id": "msg_0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "webhookId": WEBHOOK_EXAMPLE["id"],
    "jobId": "019a8e6c-4b7a-7d33-9c1e-5b0f1d8f3a52",
    "event": "job.completed",
    "state": "failed",
    "attempts": 8,
    "status": 500,
    "error": "",
    "occurredAt": "2026-11-21T09:31:00.000Z",
    "attemptedAt": "2026-11-22T17:07:00.000Z",
    "nextAttemptAt": None,
}
WEBHOOK_ANSWER = {200: Answer("The webhook.", WebhookView, example=WEBHOOK_EXAMPLE)}
ID = "/v2/webhooks/{webhookId}"


class WebhookBody(Struct, rename="camel"):
    """A new webhook."""

    url: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_URL_CHARACTERS,
            description="Where to send to: https, on the public internet, without credentials and fragment.",
        ),
    ]
    events: Annotated[
        Annotated[tuple[JobEventName, ...], Meta(min_length=1)] | None,
        described("The events to send; all when not given."),
    ] = None
    project_id: Annotated[str | None, described("Only of this project's jobs; of all when not given.")] = None


routes = Routes()


@routes.operation(
    "GET",
    "/v2/webhooks",
    "listWebhooks",
    "Organization",
    "List webhooks",
    {200: Answer("The oldest first, at most 20.", WebhookList, example={"webhooks": [WEBHOOK_EXAMPLE]})},
    description="The webhooks of the organization, without their secrets.",
)
async def show_webhooks(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    return json_response(await webhooks_of(request.app[VIEWS], organization_id))


@routes.operation(
    "POST",
    "/v2/webhooks",
    "createWebhook",
    "Organization",
    "Create a webhook",
    {201: Answer("The webhook, with its secret: it is shown this once.", CreatedWebhookView, example={
        **WEBHOOK_EXAMPLE, "secret": "whsec_…",
    })},
    body=WebhookBody,
    body_examples={"all": {"url": "https://hooks.example/docsmith"}},
    errors={409: ("conflict",)},
)  # fmt: skip
async def post_webhook(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    body = await read_body(request, WebhookBody)
    created = await created_webhook(request, organization_id, body)
    return json_response(created, status=201)


async def created_webhook(
    request: web.Request, organization_id: str, body: WebhookBody, *, webhook_id: str = ""
) -> CreatedWebhookView:
    """Create a webhook, and return it with its secret. Raise Invalid and Conflict."""
    store, views = request.app[STORE], request.app[VIEWS]
    if body.project_id is not None:
        project = await get_project(views, body.project_id)
        if project is None or project.organization_id != organization_id:
            says = f"Project not found: {body.project_id}. Check the id"
            raise Invalid(f"{says}.", problems=(("$.projectId", f"{says}."),))
    events = body.events if body.events is not None else JOB_EVENT_NAMES
    new = NewWebhook(organization_id, body.project_id, events, body.url, request.app[ALLOW_PRIVATE])
    created = await create_webhook(store, views, new, metadata_of(request), webhook_id=webhook_id)
    await wait_for_head(store, views)
    webhook = await webhook_of(views, organization_id, created.id)
    fields = {name: getattr(webhook, name) for name in WebhookView.__struct_fields__}
    return CreatedWebhookView(**fields, secret=created.secret)


@routes.operation(
    "GET", ID, "getWebhook", "Organization", "Get a webhook", WEBHOOK_ANSWER, errors={404: ("webhook_not_found",)}
)
async def show_webhook(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    return json_response(await webhook_of(request.app[VIEWS], organization_id, request.match_info["webhookId"]))


@routes.operation(
    "POST",
    f"{ID}/enable",
    "enableWebhook",
    "Organization",
    "Enable a webhook",
    WEBHOOK_ANSWER,
    description="After it answered 410 or kept failing. Deliveries that failed meanwhile are not repeated.",
    errors={404: ("webhook_not_found",)},
)
async def post_webhook_enable(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    store, views, webhook_id = request.app[STORE], request.app[VIEWS], request.match_info["webhookId"]
    await webhook_of(views, organization_id, webhook_id)
    await enable_webhook(store, webhook_id, metadata_of(request))
    await wait_for_head(store, views)
    return json_response(await webhook_of(views, organization_id, webhook_id))


@routes.operation(
    "POST",
    f"{ID}/test",
    "testWebhook",
    "Organization",
    "Send a test to a webhook",
    {
        200: Answer(
            "The delivery of the test: `delivered` or `failed`; `pending` where there was no outcome in 30 seconds.",
            DeliveryView,
            example={
                **DELIVERY_EXAMPLE,
                "jobId": None,
                "event": "webhook.test",
                "state": "delivered",
                "attempts": 1,
                "status": 204,
                "attemptedAt": "2026-11-21T09:31:00.000Z",
            },
        )
    },
    description="Sends `webhook.test` at once, signed as all else, whatever events the webhook asks for, and tries it"
    f" once. There are {TEST_SECONDS} seconds at least between one test of a webhook and the next.",
    errors={404: ("webhook_not_found",), 409: ("conflict",)},
)
async def post_webhook_test(request: web.Request) -> web.Response:
    """Answer once the outcome is known."""
    organization_id = (await admin_key(request)).state.organization_id
    store, views, webhook_id = request.app[STORE], request.app[VIEWS], request.match_info["webhookId"]
    await webhook_of(views, organization_id, webhook_id)
    return json_response(await send_webhook_test(store, views, webhook_id, metadata_of(request)))


@routes.operation(
    "GET",
    f"{ID}/deliveries",
    "listDeliveries",
    "Organization",
    "List deliveries",
    {200: Answer("The newest first.", DeliveryList, example={"deliveries": [DELIVERY_EXAMPLE], "nextCursor": None})},
    description="What was sent to a webhook, or waits to be: all that is pending, and the last 1,000 others.",
    parameters=(
        Parameter("state", "Only those that are `pending`, `delivered` or `failed`.", DeliveryState),
        limit_parameter(LISTED, MAX_LISTED),
        cursor_parameter(Annotated[str, Meta(pattern="^[0-9]{1,18}$")]),
    ),
    errors={404: ("webhook_not_found",)},
)
async def show_deliveries(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    views, webhook_id = request.app[VIEWS], request.match_info["webhookId"]
    limit, state, cursor = whole_param(request, "limit", LISTED, least=1, most=MAX_LISTED), *deliveries_wanted(request)
    await webhook_of(views, organization_id, webhook_id)
    return json_response(await deliveries_page(views, webhook_id, state=state, limit=limit, cursor=cursor))


def deliveries_wanted(request: web.Request) -> tuple[DeliveryState | None, int | None]:
    """Return the state and the cursor that the query names. Raise Invalid."""
    position = number_cursor(request)
    match query_param(request, "state"):
        case None | "":
            return None, position
        case "pending" | "delivered" | "failed" as state:
            return state, position
        case _:
            raise bad_query("state", "is pending, delivered or failed")


@routes.operation(
    "POST",
    "/v2/deliveries/{deliveryId}/redeliver",
    "redeliver",
    "Organization",
    "Repeat a delivery",
    {200: Answer("The delivery, pending again.", DeliveryView, example=DELIVERY_EXAMPLE | {"state": "pending"})},
    description="It is sent again at once, with the same `webhook-id`, whatever its outcome was.",
    errors={404: ("delivery_not_found",), 409: ("conflict",)},
)
async def post_redeliver(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    store, views = request.app[STORE], request.app[VIEWS]
    delivery = await delivery_of(views, organization_id, request.match_info["deliveryId"])
    await request_delivery(store, views, delivery.id, delivery.webhook_id, metadata_of(request))
    await wait_for_head(store, views)
    return json_response(await delivery_of(views, organization_id, delivery.id))


@routes.operation(
    "POST",
    f"{ID}/delete",
    "deleteWebhook",
    "Organization",
    "Delete a webhook",
    {204: Answer("It is deleted, with its address and secret, for good.")},
    errors={404: ("webhook_not_found",)},
)
async def post_webhook_delete(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    store, views, webhook_id = request.app[STORE], request.app[VIEWS], request.match_info["webhookId"]
    await webhook_of(views, organization_id, webhook_id)
    await delete_webhook(store, views, webhook_id, metadata_of(request))
    return web.Response(status=204)
