"""``docsmith key``."""

import argparse
from datetime import timedelta
from typing import Any

from eventstore import Metadata
from service.cli.output import DONE, Output, table
from service.cli.projects import the_organization
from service.cli.runtime import Runtime
from service.operations import create_key, revoke_key
from service.projections.keys import list_keys
from service.projections.sites import get_site
from service.system import cli_actor, now


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    key = commands.add_parser("key", help="API keys")
    actions = key.add_subparsers(title="commands", metavar="COMMAND", required=True)
    one = actions.add_parser("create", parents=[common], help="make a key; it is shown this once")
    one.add_argument("--kind", required=True, choices=("admin", "assistant"))
    one.add_argument("--domain", action="append", default=[], help="a site that an assistant key serves; repeatable")
    one.add_argument("--name", default="", help="what it is for")
    one.add_argument("--expires-days", type=int, choices=(7, 30, 60, 90), help="when it ends (default: never)")
    one.add_argument("--organization", metavar="ID", help="whose it is; needed only when there are several")
    one.set_defaults(command=create_key_)
    one = actions.add_parser("list", parents=[common], help="list them")
    one.set_defaults(command=list_keys_)
    one = actions.add_parser("revoke", parents=[common], help="end a key, at once and for good")
    one.add_argument("id")
    one.set_defaults(command=revoke_key_)


async def create_key_(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
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
    await revoke_key(runtime.store, options.id, Metadata(actor=cli_actor()))
    output.result({"id": options.id, "revoked": True}, f"revoked {options.id}")
    return DONE
