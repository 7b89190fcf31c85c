"""Entries of organizations and sites."""

from collections.abc import Sequence

from msgspec import convert
from msgspec.structs import asdict

from service.commands.apply.entries import OrganizationEntry, SiteEntry
from service.commands.apply.installation import Done, Installation, Step, differences
from service.commands.organizations import create_organization
from service.commands.sites import update_site
from service.domain.access.callers import checked_origins
from service.domain.errors import Conflict, Invalid
from service.domain.organizations import checked_name
from service.domain.sites import ChangeSiteAccess
from service.domain.widget import Widget, WidgetChange, changed_widget
from service.queries.organizations import list_organizations
from service.queries.payments import remedy_of
from service.queries.public_access import PublicSite, access_lines
from service.queries.sites import get_site
from service.runtime.system import now
from service.views.apply import ChangeView


async def plan_organization(installation: Installation, entry: OrganizationEntry) -> Step:
    name = checked_name(entry.name)
    installation.once("organization", name)
    found = [one.id for one in await list_organizations(installation.views) if one.name == name]
    if len(found) > 1:
        raise Conflict(f"Several organizations have the name {name!r}. Leave the entry out, and name one by its id.")
    if found:
        return Step(ChangeView(kind="organization", name=name, action="none", id=found[0]))
    installation.new_organizations.add(name)

    async def act() -> Done:
        created = await create_organization(installation.store, name, installation.metadata)
        installation.new_organizations.discard(name)
        return Done(created.id)

    return Step(ChangeView(kind="organization", name=name, action="create"), act)


async def plan_site(installation: Installation, entry: SiteEntry) -> Step:
    domain = entry.domain
    installation.once("site", domain)
    await installation.owner_of_site(domain)
    site = await get_site(installation.views, domain)
    known = Widget() if site is None else convert(site.view.widget, Widget, from_attributes=True)
    public, origins = (site.view.public, site.view.origins) if site is not None else (False, ())
    widget = WidgetChange(**{name: getattr(entry, name) for name in WidgetChange.__struct_fields__})
    access = ChangeSiteAccess(
        now(), public=entry.public, origins=None if entry.origins is None else checked_origins(entry.origins)
    )
    given = {"public": access.public, "origins": access.origins}
    after = {name: value for name, value in given.items() if value is not None} | asdict(changed_widget(known, widget))
    fields = differences({"public": public, "origins": origins, **asdict(known)}, after)
    if not fields:
        return Step(ChangeView(kind="site", name=domain, action="none", id=domain))
    notes: tuple[str, ...] = ()
    if entry.public and not public:
        pages = site.view.pages if site is not None and site.view.commit else None
        notes = await _opening(installation, domain, origins if access.origins is None else access.origins, pages)

    async def act() -> Done:
        await update_site(installation.store, domain, access, widget, installation.metadata)
        return Done(domain)

    return Step(ChangeView(kind="site", name=domain, action="change", id=domain, fields=fields, notes=notes), act)


async def _opening(
    installation: Installation, domain: str, origins: Sequence[str], pages: int | None
) -> tuple[str, ...]:
    """Return what a site's opening to everyone means. Raise Invalid where it would cost without a bound."""
    payment = await installation.payment()
    if payment.problem:
        raise Invalid(f"{domain} stays private. {payment.problem} {remedy_of(payment)}")
    restricted = 0 if pages is None else await installation.restricted_pages(domain)
    lines = access_lines(PublicSite(domain, origins, pages, restricted), payment, installation.limits)
    return tuple(f"{domain}, {name}: {text}" for name, text in lines.items())
