"""``/dashboard/{organizationId}/webhooks``: where jobs are reported, what was sent, and what did not arrive."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from aiohttp import web

from service.commands.webhooks import delete_webhook, enable_webhook, request_delivery, send_webhook_test
from service.domain.errors import Conflict, Invalid
from service.domain.hooks.webhooks import JOB_EVENT_NAMES
from service.queries.projects import list_organization_projects
from service.queries.read_models import wait_for_head
from service.queries.webhooks import deliveries_page, delivery_of, get_webhook, webhook_of, webhooks_of
from service.runtime.system import new_id
from service.web.api.organization.webhooks import WebhookBody, created_webhook, deliveries_wanted
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.access.people import Member, member, metadata
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.forms import new_id_of, read_form

PAGE_LENGTH = 50
DISABLED = {
    "gone": "It answered 410, which means that nothing is to be sent there any more.",
    "failing": "Nothing reached it for 32 hours.",
}
ID = "/dashboard/{organizationId}/webhooks/{webhookId:[0-9a-f]{32}}"

routes = web.RouteTableDef()


@routes.get("/dashboard/{organizationId}/webhooks")
async def show_webhooks(request: web.Request) -> web.Response:
    viewer = await member(request)
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    found = await webhooks_of(request.app[VIEWS], viewer.organization_id)
    shown = [(one, _shown_url(viewer, one.url)) for one in found.webhooks]
    return dashboard_page(request, viewer, "webhooks.html", webhooks=shown, projects=await _names(request, viewer))


@routes.get("/dashboard/{organizationId}/webhooks/new")
async def show_form(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    return await _form(request, viewer, dict.fromkeys(JOB_EVENT_NAMES, "true"))


@routes.post("/dashboard/{organizationId}/webhooks")
async def create(request: web.Request) -> web.Response:
    """Show the secret in the answer itself, so that it is nowhere else."""
    viewer = await member(request, "owner")
    form = await read_form(request)
    events = tuple(name for name in JOB_EVENT_NAMES if form.get(name))
    body = WebhookBody(form.get("url", ""), events, form.get("project") or None)
    webhook_id = new_id_of(form)
    if await get_webhook(request.app[VIEWS], webhook_id) is not None:
        raise Conflict("This webhook was created before. Its secret is shown only once: delete it, and create another.")
    try:
        created = await created_webhook(request, viewer.organization_id, body, webhook_id=webhook_id)
    except (Invalid, Conflict) as error:
        return await _form(request, viewer, form, error=str(error))
    return dashboard_page(request, viewer, "webhook_created.html", webhook=created)


@routes.get(ID)
async def show_webhook(request: web.Request) -> web.Response:
    viewer = await member(request)
    views, webhook_id = request.app[VIEWS], request.match_info["webhookId"]
    await wait_for_head(request.app[STORE], views)
    webhook = await webhook_of(views, viewer.organization_id, webhook_id)
    state, cursor = deliveries_wanted(request)
    found = await deliveries_page(views, webhook_id, state=state, limit=PAGE_LENGTH, cursor=cursor)
    return dashboard_page(
        request,
        viewer,
        "webhook.html",
        webhook=webhook,
        url=_shown_url(viewer, webhook.url),
        project_name=(await _names(request, viewer)).get(webhook.project_id or "", "all"),
        disabled=DISABLED.get(webhook.disabled or "", ""),
        deliveries=found.deliveries,
        next=found.next_cursor,
        cursor=str(cursor or ""),
        state=state or "",
    )


@routes.post(f"{ID}/enable")
async def enable(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    webhook = await webhook_of(request.app[VIEWS], viewer.organization_id, request.match_info["webhookId"])
    await enable_webhook(request.app[STORE], webhook.id, metadata(request))
    return see_other(request, _path(viewer, webhook.id), notice="The webhook is enabled.")


@routes.post(f"{ID}/test")
async def send_test(request: web.Request) -> web.Response:
    """Send a test, and show its outcome."""
    viewer = await member(request, "owner")
    store, views = request.app[STORE], request.app[VIEWS]
    webhook = await webhook_of(views, viewer.organization_id, request.match_info["webhookId"])
    try:
        sent = await send_webhook_test(store, views, webhook.id, metadata(request))
    except Conflict as refusal:
        return see_other(request, _path(viewer, webhook.id), notice=str(refusal))
    answer = f"HTTP {sent.status}" if sent.status is not None else sent.error.replace("_", " ")
    said = {
        "delivered": f"The test arrived: {answer}.",
        "failed": f"The test did not arrive: {answer}.",
        "pending": "The test is on its way. Load the page again to see whether it arrived.",
    }
    return see_other(request, _path(viewer, webhook.id), notice=said[sent.state])


@routes.post(f"{ID}/delete")
async def delete(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    webhook = await webhook_of(request.app[VIEWS], viewer.organization_id, request.match_info["webhookId"])
    await delete_webhook(request.app[STORE], request.app[VIEWS], webhook.id, metadata(request))
    return see_other(request, _path(viewer), notice="The webhook is deleted, with its address and secret.")


@routes.post(f"{ID}/redeliver")
async def redeliver(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    form, views = await read_form(request), request.app[VIEWS]
    delivery = await delivery_of(views, viewer.organization_id, form.get("delivery", ""))
    await request_delivery(request.app[STORE], views, delivery.id, delivery.webhook_id, metadata(request))
    return see_other(
        request,
        _path(viewer, delivery.webhook_id),
        notice="The delivery was requested again. The list shows its state.",
    )


async def _form(request: web.Request, viewer: Member, form: Mapping[str, str], *, error: str = "") -> web.Response:
    projects = await list_organization_projects(request.app[VIEWS], viewer.organization_id)
    return dashboard_page(
        request,
        viewer,
        "webhook_new.html",
        status=400 if error else 200,
        form=form,
        id=new_id(),
        events=JOB_EVENT_NAMES,
        projects=[("", "All projects"), *((one.id, one.name) for one in projects)],
        error=error,
    )


async def _names(request: web.Request, viewer: Member) -> Mapping[str, str]:
    """Return the names of the organization's projects, by id."""
    return {one.id: one.name for one in await list_organization_projects(request.app[VIEWS], viewer.organization_id)}


def _path(viewer: Member, *more: str) -> str:
    return "/".join(("dashboard", viewer.organization_id, "webhooks", *more))


def _shown_url(viewer: Member, url: str) -> str:
    """Return a webhook's address; its host alone for those who are no owners, since many an address is a secret."""
    address = urlsplit(url)
    return url if viewer.is_owner else f"{address.scheme}://{address.netloc.rpartition('@')[2]}/…"
