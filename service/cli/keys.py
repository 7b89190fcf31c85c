"""``docsmith key``."""

from datetime import timedelta

import click
from msgspec import to_builtins

from eventstore import Metadata
from service.cli.output import DONE, Output, note, table
from service.cli.parsing import Choice, Group, Options, together
from service.cli.projects import the_organization
from service.cli.runtime import Runtime
from service.cli.sites import no_site
from service.commands.access.keys import NewKey, change_key, create_key, revoke_key
from service.domain.access.callers import completed_origins
from service.domain.access.keys import LIFETIMES_DAYS, SCOPES, ChangeKey
from service.domain.errors import Invalid, NotFound
from service.queries.access.keys import get_key, list_keys
from service.queries.read_models import catch_up
from service.queries.sites import get_site
from service.runtime.system import cli_actor, now
from service.views.access.keys import KeyView

key = Group("key")


_lists = together(
    click.option(
        "--address", multiple=True, metavar="CIDR", help="an address or network that it may be used from; repeatable"
    ),
    click.option(
        "--origin",
        multiple=True,
        metavar="ORIGIN",
        help="a website whose pages may use it, such as https://*.example.com; repeatable, assistant keys only",
    ),
)


_reader_tokens = click.option(
    "--reader-tokens/--no-reader-tokens",
    default=None,
    help="whether pages must fetch a reader token first (default for a new key: where it has origins)",
)


@key.command(
    "create",
    does="create a key; it is shown only once",
    more="An admin key is a secret: it gives jobs to the agent, and sees the organization's pull requests. "
    "An assistant key may be public: it asks about the sites that it names.",
    examples=[
        "key create --kind admin --expires-days 90 --address 192.0.2.0/24",
        "key create --kind admin --scope read --name Reports",
        "key create --kind assistant --domain guide --origin https://docs.example.com",
        "key create --kind assistant --domain guide --server",
    ],
)
@click.option("--kind", type=Choice(("admin", "assistant")), required=True, help="which of the two APIs it opens")
@click.option("--domain", multiple=True, metavar="SITE", help="name of a site that an assistant key serves; repeatable")
@click.option(
    "--scope",
    type=Choice(SCOPES),
    default="all",
    help="what an admin key may do: read; jobs, which reads too; or all (default: all)",
)
@click.option("--name", default="", help="what it is for, for the list (default: by its kind)")
@click.option("--expires-days", type=Choice(LIFETIMES_DAYS), help="when it expires (default: never)")
@_lists
@click.option("--server", is_flag=True, help="for servers: refused when a web page sends it; assistant keys only")
@_reader_tokens
@click.option("--organization", metavar="ID", help="whose it is; needed only when there are several")
async def create_key_(runtime: Runtime, options: Options, output: Output) -> int:
    if options.kind == "assistant" and not options.domain:
        raise Invalid("An assistant key serves at least one site: name it with --domain SITE (docsmith project list).")
    for domain in options.domain:
        if await get_site(runtime.views, domain) is None:
            raise no_site(domain)
    organization = options.organization
    if organization is None and options.domain:
        site = await get_site(runtime.views, options.domain[0])
        organization = site.view.organization_id if site else None
    new = NewKey(
        kind=options.kind,
        organization_id=await the_organization(runtime, organization),
        name=options.name or f"{options.kind} key",
        domains=tuple(options.domain),
        expires_at=now() + timedelta(days=options.expires_days) if options.expires_days else None,
        allowed_addresses=tuple(options.address or ()),
        allowed_origins=tuple(options.origin or ()),
        scope=options.scope,
        is_server=options.server,
        needs_reader_token=options.reader_tokens,
    )
    created = await create_key(runtime.store, runtime.views, new, Metadata(actor=cli_actor()))
    await catch_up(runtime.views)
    key = await _the_key(runtime, created.id)
    if not output.as_json:
        note(_created(key, completed_origins(options.origin or ())))
    output.result({**to_builtins(key), "token": created.token}, created.token)
    return DONE


def _created(key: KeyView, completed: str) -> str:
    """Return what a new key is for, for people; the key alone is on standard output, for programs."""
    if key.kind == "admin":
        where = 'Send it as "Authorization: Bearer KEY" to the API, from a server: it is a secret.'
        may = f"may {_MAY[key.scope or 'all']}"
    else:
        where = {
            "server": "Use it on a server: it is refused where a web page sends it.",
            "browser": f"Use it in pages of {', '.join(key.allowed_origins)}.",
            "open": "Use it in web pages and programs. Anyone who has it can ask: --origin binds it to your website.",
        }[key.use or "open"]
        may = f"may ask and search {', '.join(key.domains)}"
    expires = f"expires on {key.expires_at[:10]}" if key.expires_at else "does not expire"
    lines = [
        f"Created the {key.kind} key {key.name!r} (id {key.id}). It {may}, and {expires}.",
        where,
        *([completed] if completed else []),
        "Copy it now: it is shown only once.",
    ]
    return "\n".join(lines)


_MAY = {
    "read": "read jobs, questions and sites",
    "jobs": "give the agent jobs, and read what happened",
    "all": "do everything in its organization",
}


@key.command("list", does="list the keys, without their secret part")
async def list_keys_(runtime: Runtime, _options: Options, output: Output) -> int:
    keys = await list_keys(runtime.views)
    cells = [
        (
            key.id, key.kind, key.scope or "-", key.name, f"…{key.last_four}", ",".join(key.domains) or "-",
            key.used_at[:10] if key.used_at else "never", _status(key),
        )
        for key in keys
    ]  # fmt: skip
    head = ("ID", "KIND", "SCOPE", "NAME", "ENDS IN", "SITES", "LAST USED", "STATE")
    output.result({"keys": keys}, table(head, cells))
    return DONE


@key.command("show", does="show one key, without its secret part")
@click.argument("id", metavar="ID", help="of the key, as docsmith key list shows it")
async def show_key(runtime: Runtime, options: Options, output: Output) -> int:
    row = await _the_key(runtime, options.id)
    output.result(row, _shown(row))
    return DONE


@key.command(
    "update",
    does="change a key's name, or from where it may be used",
    more="What is not named stays as it is; a list that is named replaces the one before. The secret stays.",
    examples=[
        "key update ID --name CI",
        "key update ID --origin https://docs.example.com --origin 'https://*.preview.example.com'",
        "key update ID --any-origin --any-address",
        "key update ID --reader-tokens",
    ],
)
@click.argument("id", metavar="ID", help="of the key, as docsmith key list shows it")
@click.option("--name", help="what it is for, for the list")
@_lists
@click.option("--any-address", is_flag=True, help="accept it from anywhere again")
@click.option("--any-origin", is_flag=True, help="let every website use it again")
@_reader_tokens
async def update_key(runtime: Runtime, options: Options, output: Output) -> int:
    if (options.address and options.any_address) or (options.origin and options.any_origin):
        raise Invalid("Name a list, or --any-address or --any-origin, not both.")
    row = await _the_key(runtime, options.id)
    change = ChangeKey(
        now(),
        name=options.name,
        allowed_addresses=() if options.any_address else tuple(options.address) if options.address else None,
        allowed_origins=() if options.any_origin else tuple(options.origin) if options.origin else None,
        needs_reader_token=options.reader_tokens,
    )
    await change_key(runtime.store, row.id, change, Metadata(actor=cli_actor()))
    await catch_up(runtime.views)
    row = await _the_key(runtime, options.id)
    if completed := completed_origins(options.origin or ()):
        note(completed)
    output.result(row, _shown(row))
    return DONE


def _shown(row: KeyView) -> str:
    origins = ", ".join(row.allowed_origins)
    lines = [
        ("id", row.id),
        ("kind", row.kind),
        ("name", row.name),
        ("ends in", f"…{row.last_four}"),
        ("organization", row.organization_id),
        ("state", _status(row)),
        ("created", row.created_at[:10]),
        ("expires", row.expires_at[:10] if row.expires_at else "never"),
        ("last used", f"{row.used_at[:13].replace('T', ' ')}:00 UTC" if row.used_at else "never"),
        ("addresses", ", ".join(row.allowed_addresses) or "any"),
    ]
    if row.scope is not None:
        lines.append(("scope", row.scope))
    if row.use is not None:
        anywhere = (
            "none: no web page may use this key" if row.use == "server" else "any: every website may use this key"
        )
        lines += [("sites", ", ".join(row.domains)), ("origins", origins or anywhere)]
    if row.use == "browser":
        lines.append(("reader tokens", "required" if row.reader_tokens else "not required"))
    return "\n".join(f"{name + ':':14}{value}" for name, value in lines)


def _status(key: KeyView) -> str:
    return key.status.replace("_", " ")


async def _the_key(runtime: Runtime, key_id: str) -> KeyView:
    row = await get_key(runtime.views, key_id)
    if row is None:
        raise NotFound(f"Key not found: {key_id}. See: docsmith key list")
    return row


@key.command("revoke", does="revoke a key, at once and for good")
@click.argument("id", metavar="ID", help="of the key, as docsmith key list shows it")
async def revoke_key_(runtime: Runtime, options: Options, output: Output) -> int:
    row = await _the_key(runtime, options.id)
    await revoke_key(runtime.store, row.id, Metadata(actor=cli_actor()))
    output.result({"id": row.id, "revoked": True}, f"revoked {row.id}")
    return DONE
