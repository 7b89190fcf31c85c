"""Entries of webhooks. A webhook is known by its organization, its URL and its project."""

from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from eventstore import load, plan
from service.commands.apply.entries import WebhookEntry
from service.commands.apply.installation import Done, Installation, Owner, Step, change_beside_secret, differences
from service.commands.webhooks import NewWebhook, change_webhook, create_webhook, delete_webhook, new_secret
from service.domain.errors import Conflict, Invalid
from service.domain.hooks.webhooks import JOB_EVENT_NAMES, ChangeWebhook, CreateWebhook, Webhook, checked_secret
from service.queries.webhooks import list_webhooks
from service.runtime import secret_files
from service.runtime.system import now
from service.streams import WEBHOOKS
from service.views.apply import ChangeView
from service.views.webhooks import WebhookView


class Address(Struct, frozen=True):
    """The receiver of a webhook."""

    url: str
    shown: str
    """The URL, or the name of the variable that holds it."""


async def plan_webhook(installation: Installation, entry: WebhookEntry) -> Step:
    address = _address(installation, entry)
    if entry.secret_env is not None and entry.secret_file is not None:
        raise Invalid("A webhook has secret_env or secret_file. Leave one of the two out.")
    owner = await installation.owner_of_sites(entry.organization, (entry.project,) if entry.project else ())
    installation.once("webhook", owner.name, address.url, entry.project or "")
    project_id = await installation.project_id(entry.project) if entry.project else None
    is_new = owner.id == "" or (entry.project is not None and project_id is None)
    found = [
        one
        for one in await list_webhooks(installation.views)
        if one.organization_id == owner.id and one.url == address.url and one.project_id == project_id and not is_new
    ]
    if len(found) > 1:
        ids = ", ".join(one.id for one in found)
        raise Conflict(f"Several webhooks are for {address.shown}: {ids}. Delete all but one.")
    if entry.remove:
        return _removal(installation, address, found[0] if found else None)
    if found:
        return await _change(installation, entry, address, found[0])
    return _creation(installation, entry, address, owner)


def _address(installation: Installation, entry: WebhookEntry) -> Address:
    if (entry.url is None) == (entry.url_env is None):
        raise Invalid("A webhook has url or url_env. Give one of the two.")
    if entry.url is not None:
        return Address(entry.url, entry.url)
    assert entry.url_env is not None
    return Address(installation.secret_of(entry.url_env), entry.url_env)


def _removal(installation: Installation, address: Address, found: WebhookView | None) -> Step:
    view = ChangeView(kind="webhook", name=address.shown, action="none")
    if found is None:
        return Step(view)

    async def act() -> Done:
        await delete_webhook(installation.store, installation.views, found.id, installation.metadata)
        return Done(found.id)

    return Step(replace(view, action="remove", id=found.id), act)


def _creation(installation: Installation, entry: WebhookEntry, address: Address, owner: Owner) -> Step:
    if entry.secret_env is None and entry.secret_file is None:
        raise Invalid(
            "A new webhook needs secret_file, the file that its secret is written to, or secret_env, the variable that"
            " holds one. Name one."
        )
    given = checked_secret(installation.secret_of(entry.secret_env)) if entry.secret_env else ""
    file = installation.new_secret_file(entry.secret_file) if entry.secret_file else None
    events = entry.events or JOB_EVENT_NAMES
    new = NewWebhook(owner.id, None, events, address.url, installation.allow_private)
    WEBHOOKS.decide(CreateWebhook(**asdict(new), secret=given, now=now()), WEBHOOKS.initial)

    async def act() -> Done:
        secret = given or new_secret()
        if file is not None:
            secret_files.keep_unfinished(file, secret)
        project_id = await installation.project_id(entry.project) if entry.project else None
        created = await create_webhook(
            installation.store, installation.views, replace(new, project_id=project_id), installation.metadata,
            secret=secret,
        )  # fmt: skip
        if file is not None:
            secret_files.finish(file)
        return Done(created.id)

    view = ChangeView(kind="webhook", name=address.shown, action="create", file=str(file) if file else None)
    return Step(view, act)


async def _change(installation: Installation, entry: WebhookEntry, address: Address, found: WebhookView) -> Step:
    state = (await load(installation.store, WEBHOOKS, found.id)).state
    secret = state.secret if isinstance(state, Webhook) else ""
    if entry.secret_env is not None and installation.secret_of(entry.secret_env) != secret:
        raise Conflict(
            f"The secret of a webhook cannot change to the one in {entry.secret_env}. Remove the webhook with"
            " remove = true, apply, and add it again."
        )
    events = entry.events or found.events
    make = partial(change_webhook, installation.store, found.id, events, installation.metadata)
    is_change = await plan(installation.store, WEBHOOKS, found.id, ChangeWebhook(events, now())) is not None
    changed = (make, differences({"events": found.events}, {"events": events})) if is_change else None
    file = _unfinished(installation, entry, secret)
    return change_beside_secret("webhook", address.shown, found.id, changed, file)


def _unfinished(installation: Installation, entry: WebhookEntry, secret: str) -> Path | None:
    """Return the file whose secret an earlier run recorded without giving the file its name."""
    if entry.secret_file is None:
        return None
    file = installation.path(entry.secret_file)
    return file if secret and secret_files.unfinished(file) == secret else None
