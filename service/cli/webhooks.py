"""``docsmith webhook``."""

import click
from msgspec import to_builtins

from eventstore import Metadata
from service.cli.jobs import short_id
from service.cli.output import DONE, FAILED, Output, failure, table
from service.cli.parsing import COUNT, Choice, Group, Options
from service.cli.projects import the_organization, the_project
from service.cli.runtime import Runtime
from service.commands.incoming import set_incoming_secret
from service.commands.webhooks import (
    NewWebhook,
    change_webhook,
    create_webhook,
    delete_webhook,
    enable_webhook,
    request_delivery,
    send_webhook_test,
)
from service.domain.errors import NotFound
from service.domain.hooks.webhooks import JOB_EVENT_NAMES
from service.queries.read_models import catch_up
from service.queries.webhooks import get_delivery, get_webhook, list_deliveries, list_webhooks
from service.runtime.system import cli_actor
from service.views.webhooks import WebhookView

webhook = Group(
    "webhook", more="What is sent is signed as Standard Webhooks has it (https://www.standardwebhooks.com)."
)


@webhook.command(
    "create",
    does="notify an address of jobs; its secret is shown this once",
    examples=[
        "webhook create --url https://example.com/hooks/docsmith",
        "webhook create --url https://example.com/hooks/failed --event job.failed --project guide",
    ],
)
@click.option("--url", required=True, help="where to send to: https, on the public internet")
@click.option(
    "--event",
    type=Choice(JOB_EVENT_NAMES),
    multiple=True,
    help=f"events to send: {', '.join(JOB_EVENT_NAMES)}; repeatable (default: all)",
)
@click.option("--project", metavar="ID_OR_SITE", help="only of its jobs (default: of all of the organization)")
@click.option("--organization", metavar="ID", help="whose it is; needed only when there are several")
async def create(runtime: Runtime, options: Options, output: Output) -> int:
    project = await the_project(runtime, options.project) if options.project is not None else None
    named = options.organization or (project.organization_id if project is not None else None)
    organization_id = await the_organization(runtime, named)
    if project is not None and project.organization_id != organization_id:
        raise NotFound(f"Organization {organization_id} has no project {options.project}; see: docsmith project list")
    new = NewWebhook(
        organization_id,
        project.id if project is not None else None,
        tuple(options.event) or JOB_EVENT_NAMES,
        options.url,
        runtime.settings.network.allow_private,
    )
    created = await create_webhook(runtime.store, runtime.views, new, Metadata(actor=cli_actor()))
    await catch_up(runtime.views)
    row = await _row(runtime, created.id)
    value = {**to_builtins(row), "secret": created.secret}
    output.result(value, f"webhook {created.id}\nsecret {created.secret}")
    return DONE


@webhook.command("list", does="list the webhooks, without their secrets")
async def list_(runtime: Runtime, _options: Options, output: Output) -> int:
    rows = await list_webhooks(runtime.views)
    cells = [
        (row.id, row.url, ",".join(row.events), row.project_id or "all", row.pending, row.disabled or "enabled")
        for row in rows
    ]
    output.result({"webhooks": rows}, table(("ID", "URL", "EVENTS", "PROJECT", "PENDING", "STATE"), cells))
    return DONE


@webhook.command(
    "update",
    does="change the events that are sent to a webhook",
    examples=["webhook update ID --event job.failed"],
)
@click.argument("id", metavar="ID", help="of the webhook, as docsmith webhook list shows it")
@click.option(
    "--event",
    type=Choice(JOB_EVENT_NAMES),
    multiple=True,
    required=True,
    help=f"events to send, instead of those so far: {', '.join(JOB_EVENT_NAMES)}; repeatable",
)
async def update(runtime: Runtime, options: Options, output: Output) -> int:
    await _row(runtime, options.id)
    await change_webhook(runtime.store, options.id, tuple(options.event), Metadata(actor=cli_actor()))
    await catch_up(runtime.views)
    row = await _row(runtime, options.id)
    output.result(row, f"{row.id} sends {', '.join(row.events)}")
    return DONE


@webhook.command("delete", does="delete a webhook, with its address and secret, for good")
@click.argument("id", metavar="ID", help="of the webhook, as docsmith webhook list shows it")
async def delete(runtime: Runtime, options: Options, output: Output) -> int:
    await _row(runtime, options.id)
    await delete_webhook(runtime.store, runtime.views, options.id, Metadata(actor=cli_actor()))
    output.result({"id": options.id, "deleted": True}, f"deleted {options.id}")
    return DONE


@webhook.command(
    "enable",
    does="enable a webhook again, after it answered 410 or kept failing",
    more="Deliveries that failed meanwhile are not repeated; see docsmith webhook redeliver.",
)
@click.argument("id", metavar="ID", help="of the webhook, as docsmith webhook list shows it")
async def enable(runtime: Runtime, options: Options, output: Output) -> int:
    await _row(runtime, options.id)
    await enable_webhook(runtime.store, options.id, Metadata(actor=cli_actor()))
    output.result({"id": options.id, "enabled": True}, f"enabled {options.id}")
    return DONE


@webhook.command(
    "test",
    does="send a signed test to a webhook, and show whether it arrives; a running service sends it",
    more="It is sent whatever events the webhook asks for, and tried once. Exits with 1 when it did not arrive.",
    examples=["webhook test ID"],
)
@click.argument("id", metavar="ID", help="of the webhook, as docsmith webhook list shows it")
async def test(runtime: Runtime, options: Options, output: Output) -> int:
    await _row(runtime, options.id)
    if not await runtime.is_served():
        failure(f"No service runs on {runtime.data}.", next_step="Start the service: docsmith serve")
        return FAILED
    sent = await send_webhook_test(runtime.store, runtime.views, options.id, Metadata(actor=cli_actor()))
    answer = f"HTTP {sent.status}" if sent.status is not None else sent.error.replace("_", " ") or "no answer yet"
    output.result(sent, f"{sent.state}: {answer}")
    return DONE if sent.state == "delivered" else FAILED


@webhook.command(
    "deliveries",
    does="list what was sent, newest first, and how it went",
    examples=["webhook deliveries --state failed", "webhook deliveries ID --limit 5"],
)
@click.argument("id", required=False, metavar="ID", help="of a webhook (default: all)")
@click.option("--state", type=Choice(("pending", "delivered", "failed")), help="only these")
@click.option("--limit", type=COUNT, default=50, metavar="N", help="the most to print (default: 50)")
async def deliveries(runtime: Runtime, options: Options, output: Output) -> int:
    if options.id is not None:
        await _row(runtime, options.id)
    rows = await list_deliveries(runtime.views, webhook_id=options.id, state=options.state, limit=options.limit)
    cells = [
        (
            row.id, row.event, short_id(row.job_id) if row.job_id else "-", row.state, row.attempts,
            row.error or row.status or "-", row.next_attempt_at or "-",
        )
        for row in rows
    ]  # fmt: skip
    head = ("ID", "EVENT", "JOB", "STATE", "ATTEMPTS", "LAST", "NEXT ATTEMPT")
    output.result({"deliveries": rows}, table(head, cells))
    return DONE


@webhook.command(
    "redeliver",
    does="repeat a delivery now, with the same webhook-id; a running service does it",
    examples=["webhook redeliver msg_0a1b2c…"],
)
@click.argument("id", metavar="ID", help="of the delivery, as docsmith webhook deliveries shows it")
async def redeliver(runtime: Runtime, options: Options, output: Output) -> int:
    row = await get_delivery(runtime.views, options.id)
    if row is None:
        raise NotFound(f"Delivery not found: {options.id}. See: docsmith webhook deliveries")
    await request_delivery(runtime.store, runtime.views, row.id, row.webhook_id, Metadata(actor=cli_actor()))
    output.result({"id": row.id, "requested": True}, f"delivery {row.id} is requested; a running service sends it")
    if not await runtime.is_served():
        failure(f"No service runs on {runtime.data}, so it waits.", next_step="Start the service: docsmith serve")
    return DONE


@webhook.command(
    "incoming",
    does="create the secret with which a code host reports to a project; it is shown only once",
    more="GitHub, GitLab, Gitea and Forgejo: add a webhook for pushes, pull requests and comments, content type JSON, "
    "to the address that is printed, with this secret; GitLab accepts it as secret token, or as signing token. "
    "Earlier secrets are not valid any more.",
    examples=["webhook incoming guide"],
)
@click.argument("project", metavar="ID_OR_SITE", help="of the project, as docsmith project list shows it")
async def incoming(runtime: Runtime, options: Options, output: Output) -> int:
    project = await the_project(runtime, options.project)
    secret = await set_incoming_secret(runtime.store, project.id, Metadata(actor=cli_actor()))
    path = f"/hooks/{project.id}"
    base = runtime.settings.server.public_url.rstrip("/")
    url = base + path if base else None
    where = url or f"{path} of this service, as code hosts reach it"
    output.result(
        {"projectId": project.id, "path": path, "url": url, "secret": secret}, f"address {where}\nsecret {secret}"
    )
    return DONE


async def _row(runtime: Runtime, webhook_id: str) -> WebhookView:
    row = await get_webhook(runtime.views, webhook_id)
    if row is None:
        raise NotFound(f"Webhook not found: {webhook_id}. See: docsmith webhook list")
    return row
