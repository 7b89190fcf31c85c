"""``docsmith key``."""

import argparse
from datetime import timedelta
from typing import Any

from eventstore import Metadata
from service.cli.output import DONE, Output, table
from service.cli.parsing import add_command
from service.cli.projects import the_organization
from service.cli.runtime import Runtime
from service.cli.sites import no_site
from service.domain.errors import Invalid, NotFound
from service.operations import create_key, revoke_key
from service.projections.keys import list_keys
from service.projections.sites import get_site
from service.system import cli_actor, now


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    key = add_command(commands, "key", "make, list and revoke API keys")
    actions = key.add_subparsers(title="commands", metavar="COMMAND", required=True)
    one = add_command(
        actions,
        "create",
        "make a key; it is shown this once",
        more=(
            "An admin key is a secret: it gives jobs to the agent, and sees the organization's pull requests. "
            "An assistant key may be public: it asks about the sites that it names."
        ),
        examples=["key create --kind admin --expires-days 90", "key create --kind assistant --domain guide"],
        parents=[common],
    )
    one.add_argument("--kind", required=True, choices=("admin", "assistant"), help="which of the two APIs it opens")
    one.add_argument("--domain", action="append", default=[], help="a site that an assistant key serves; repeatable")
    one.add_argument("--name", default="", help="what it is for, for the list (default: by its kind)")
    one.add_argument("--expires-days", type=int, choices=(7, 30, 60, 90), help="when it ends (default: never)")
    one.add_argument("--organization", metavar="ID", help="whose it is; needed only when there are several")
    one.set_defaults(command=create_key_)
    one = add_command(actions, "list", "list the keys, without their secret part", parents=[common])
    one.set_defaults(command=list_keys_)
    one = add_command(actions, "revoke", "end a key, at once and for good", parents=[common])
    one.add_argument("id", metavar="ID", help="of the key, as docsmith key list shows it")
    one.set_defaults(command=revoke_key_)


async def create_key_(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    if options.kind == "assistant" and not options.domain:
        raise Invalid("An assistant key names the domains that it serves: --domain DOMAIN (docsmith project list).")
    for domain in options.domain:
        if await get_site(runtime.views, domain) is None:
            raise no_site(domain)
    organization = options.organization
    if organization is None and options.domain:
        site = await get_site(runtime.views, options.domain[0])
        organization = site.organization_id if site else None
    expires_at = now() + timedelta(days=options.expires_days) if options.expires_days else None
    created = await create_key(
        runtime.store,
        runtime.views,
        kind=options.kind,
        organization_id=await the_organization(runtime, organization),
        name=options.name or f"{options.kind} key",
        domains=options.domain,
        expires_at=expires_at,
        metadata=Metadata(actor=cli_actor()),
    )
    value = {"id": created.id, "token": created.token, "kind": options.kind, "domains": options.domain}
    output.result({**value, "expiresAt": expires_at}, created.token)
    return DONE


async def list_keys_(runtime: Runtime, _options: argparse.Namespace, output: Output) -> int:
    rows = await list_keys(runtime.views)
    at = now()
    cells = [
        (
            row.id, row.kind, row.name, f"…{row.last_four}", ",".join(row.domains) or "-",
            "revoked" if row.revoked_at else "expired" if row.expires_at and row.expires_at <= at else "in force",
        )
        for row in rows
    ]  # fmt: skip
    output.result({"keys": rows}, table(("ID", "KIND", "NAME", "ENDS IN", "DOMAINS", "STATE"), cells))
    return DONE


async def revoke_key_(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    if all(row.id != options.id for row in await list_keys(runtime.views)):
        raise NotFound(f"There is no key {options.id}; see: docsmith key list")
    await revoke_key(runtime.store, options.id, Metadata(actor=cli_actor()))
    output.result({"id": options.id, "revoked": True}, f"revoked {options.id}")
    return DONE
