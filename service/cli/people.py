"""``docsmith login`` and ``docsmith person``."""

from contextlib import suppress
from datetime import timedelta

import click
from msgspec import to_builtins

from eventstore import Metadata
from service.cli.output import DONE, WRONG_USAGE, Output, note, table
from service.cli.parsing import Choice, Group, Options, command
from service.cli.projects import the_organization
from service.cli.runtime import Runtime, address_of_server
from service.commands.access.people import (
    NewPerson,
    add_first_operator,
    add_person,
    make_link,
    remove_member,
    remove_person,
    set_operator,
)
from service.commands.erasures import erase_subject
from service.domain.access.members import PERSON_NOT_FOUND, ROLES
from service.domain.access.names import HTTPS_REQUIRED, ONLY_HERE, Names, is_only_here, link_base
from service.domain.access.people import (
    INVITATION_DAYS,
    INVITATION_LIFETIME,
    LINK_LIFETIME,
    LINK_MINUTES,
    small_letters,
)
from service.domain.errors import Conflict, Forbidden, Invalid, NotFound
from service.queries.access.people import get_person, has_anyone_signed_in, list_members, list_people, people_by_email
from service.queries.organizations import list_organizations
from service.queries.read_models import catch_up
from service.runtime.local_address import local_address
from service.runtime.settings.settings import Settings
from service.runtime.system import cli_actor, user_name
from service.views.access.people import PersonView

person = Group("person")


@command(
    "login",
    more=f"The link works once, within {LINK_MINUTES} minutes; a newer one replaces it. Without --person it is for the "
    "operator; the first time, it adds one, who owns each organization that has no people yet.",
    examples=["login", "login --person ada@example.com"],
)
@click.option("--person", metavar="EMAIL", help="the person to sign in, by email or id")
async def login(runtime: Runtime, options: Options, output: Output) -> int:
    who = await _to_sign_in(runtime, options.person)
    link = await new_link(runtime, who.id)
    output.result({"personId": who.id, "email": who.email, "link": link}, link)
    if not output.as_json:
        note(f"This signs in {who.email}, once, within {LINK_MINUTES} minutes.")
        if not await runtime.is_served():
            note(f"The service is not running: start it with docsmith serve --data {runtime.data}")
    return DONE


async def new_link(runtime: Runtime, person_id: str, lifetime: timedelta = LINK_LIFETIME) -> str:
    """Return a new sign-in link. Raises Forbidden where no one could sign in by any address of the service."""
    base = link_address(runtime.settings, address_of_server(runtime.data))
    secret = await make_link(runtime.store, person_id, Metadata(actor=cli_actor()), lifetime=lifetime)
    return f"{base}/sign-in#{secret}"


async def first_link(runtime: Runtime) -> str | None:
    """Return a link for the first sign-in; None once someone has signed in, and where it is not clear for whom."""
    if await has_anyone_signed_in(runtime.views):
        return None
    with suppress(Invalid, Forbidden):
        return await new_link(runtime, (await _to_sign_in(runtime, None)).id)
    return None


def link_address(settings: Settings, listening: str | None) -> str:
    """Return what sign-in links begin with. Raises Forbidden ``https_required``."""
    server = settings.server
    host = f"[{server.host}]" if ":" in server.host else server.host
    base = link_base(
        Names(server.public_url.rstrip("/"), server.host),
        local_address(listening or f"http://{host}:{server.port}"),
    )
    if base is None:
        raise Forbidden(HTTPS_REQUIRED, code="https_required")
    return base


async def _to_sign_in(runtime: Runtime, named: str | None) -> PersonView:
    everyone = await list_people(runtime.views)
    if not everyone:
        email = named or f"{user_name()}@localhost"
        added = await add_first_operator(runtime.store, runtime.views, email, Metadata(actor=cli_actor()))
        await catch_up(runtime.views)
        return await _by_id(runtime, added.id)
    if named:
        return await _the_person(runtime, named)
    operators = [one for one in everyone if one.is_operator]
    if len(operators) != 1:
        names = ", ".join(one.email for one in operators[:5] or everyone[:5])
        raise Invalid(f"Name the person to sign in: --person EMAIL, such as {names} (docsmith person list).")
    return operators[0]


async def _the_person(runtime: Runtime, named: str) -> PersonView:
    """Return a person by id or email. Raises NotFound, and Conflict where several have the email."""
    if (found := await get_person(runtime.views, named)) is not None:
        return found
    several = await people_by_email(runtime.views, small_letters(named.strip()))
    if not several:
        add = f"docsmith person add {named} --role editor"
        raise NotFound(f"Person not found: {named}. Add them: {add}", code=PERSON_NOT_FOUND)
    if len(several) > 1:
        ids = ", ".join(one.id for one in several)
        raise Conflict(f"Several people have this email: {named}. Name one by id: {ids}", code="several_accounts")
    return several[0]


async def _by_id(runtime: Runtime, person_id: str) -> PersonView:
    found = await get_person(runtime.views, person_id)
    assert found is not None
    return found


@person.command(
    "add",
    does="let a person sign in, with a role in an organization; or change the role",
    more="It prints a sign-in link for someone new. A viewer reads; an editor also gives jobs; an owner also manages "
    "keys and people. --operator also opens the settings, the audit of the whole log, and the service's health. "
    "Someone added again, or with rights beyond one organization, signs in by a new link: sessions and passkeys end.",
    examples=["person add ada@example.com --role owner", "person add ops@example.com --operator"],
)
@click.argument("email", metavar="EMAIL")
@click.option("--role", type=Choice(ROLES), help="what they may do in the organization")
@click.option("--organization", metavar="ID", help="the organization; needed only when there are several")
@click.option("--operator", is_flag=True, help="let them operate the installation")
@click.option("--name", default="", help="how others see them (default: the email's first part)")
@click.option("--id", metavar="ID", help="the account that is meant, where several have the email")
async def add_person_(runtime: Runtime, options: Options, output: Output) -> int:
    if options.role is None and not options.operator:
        raise Invalid(f"Give a role: --role {'|'.join(ROLES)}, or --operator, or both.")
    new = NewPerson(
        email=options.email,
        name=options.name,
        organization_id=await the_organization(runtime, options.organization) if options.role else "",
        role=options.role,
        is_operator=options.operator,
        person_id=options.id or "",
    )
    added = await add_person(runtime.store, runtime.views, new, Metadata(actor=cli_actor()))
    await catch_up(runtime.views)
    row = await _by_id(runtime, added.id)
    link = await new_link(runtime, added.id, INVITATION_LIFETIME) if added.is_new or added.signs_in_again else None
    what = f"{row.email} is {_rights(row, await _names(runtime))}"
    output.result({**to_builtins(row), "link": link}, link or what)
    if link and not output.as_json:
        note(f"{what}. Give them this link: it signs them in, once, within {INVITATION_DAYS} days.")
        if is_only_here(link):
            note(ONLY_HERE)
    return DONE


@person.command("list", does="list the people, with their roles")
@click.option("--organization", metavar="ID", help="only those of this organization")
async def list_people_(runtime: Runtime, options: Options, output: Output) -> int:
    everyone = await list_people(runtime.views)
    if options.organization:
        members = {one.id for one in await list_members(runtime.views, options.organization)}
        everyone = [one for one in everyone if one.id in members]
    names = await _names(runtime)
    cells = [
        (one.id, one.email, one.name, _rights(one, names), one.signed_in_at[:10] if one.signed_in_at else "never")
        for one in everyone
    ]
    output.result({"people": everyone}, table(("ID", "EMAIL", "NAME", "ROLES", "LAST SIGN-IN"), cells))
    return DONE


@person.command(
    "remove",
    does="take a person's roles; their sessions end at once",
    more="Without --organization, all of them, and the operator's flag.",
)
@click.argument("person", metavar="PERSON", help="by email or id")
@click.option("--organization", metavar="ID", help="only the role in this organization")
@click.option("--operator", is_flag=True, help="only the operator's flag")
async def remove_person_(runtime: Runtime, options: Options, output: Output) -> int:
    row, metadata = await _the_person(runtime, options.person), Metadata(actor=cli_actor())
    if options.operator:
        await set_operator(runtime.store, row.id, metadata, is_operator=False)
    if options.organization:
        await remove_member(runtime.store, options.organization, row.id, metadata)
    if not (options.operator or options.organization):
        await remove_person(runtime.store, runtime.views, row.id, metadata)
    output.result({"id": row.id, "removed": True}, f"removed {row.email}")
    return DONE


@person.command(
    "erase",
    does="remove a person, and erase their name and email address, for good",
    more="They cannot be read any more, in any copy or backup. The log still says that there was a person, and what "
    "they did. The last owner of an organization is erased once someone else is an owner.",
    examples=["person erase ada@example.com", "person erase ada@example.com --yes"],
)
@click.argument("person", metavar="PERSON", help="by email or id")
@click.option("--yes", is_flag=True, help="do it; without this, only say what would be done")
async def erase_person(runtime: Runtime, options: Options, output: Output) -> int:
    row = await _the_person(runtime, options.person)
    if not options.yes:
        text = f"would erase {row.email} ({row.id})\nnothing was erased: add --yes to do it"
        output.result({"id": row.id, "erased": False}, text)
        return WRONG_USAGE
    await erase_subject(runtime.store, runtime.views, f"person-{row.id}", Metadata(actor=cli_actor()))
    output.result({"id": row.id, "erased": True}, f"erased {row.id}")
    return DONE


async def _names(runtime: Runtime) -> dict[str, str]:
    return {one.id: one.name for one in await list_organizations(runtime.views)}


def _rights(row: PersonView, names: dict[str, str]) -> str:
    rights = [f"{one.role} of {names.get(one.organization_id, one.organization_id)}" for one in row.roles]
    return ", ".join((*(("operator",) if row.is_operator else ()), *rights)) or "without a role"
