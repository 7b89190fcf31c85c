"""The dashboard's navigation: the pages that a person may open, by role, with the one that is open."""

from collections.abc import Mapping, Sequence

from aiohttp import web
from msgspec import Struct

from service.domain.access.members import Role, is_at_least
from service.web.http.access.people import Member, SignedIn


class Entry(Struct, frozen=True):
    """A page that the navigation names; its path is below the organization's, or from the root for operators."""

    label: str
    path: str
    least: Role = "viewer"
    also: str = ""
    """Another path whose pages belong to it."""


ORGANIZATION: Mapping[str, Sequence[Entry]] = {
    "Work": (
        Entry("Start", ""),
        Entry("Jobs", "jobs"),
        Entry("Sites", "sites", also="projects"),
    ),
    "Readers": (
        Entry("Questions", "questions"),
        Entry("Gaps", "gaps"),
        Entry("Analytics", "analytics"),
    ),
    "Organization": (
        Entry("Keys", "keys", "owner"),
        Entry("Usage", "usage"),
        Entry("Webhooks", "webhooks"),
        Entry("People", "people"),
    ),
}
OPERATOR = (
    Entry("Organizations", "operator/organizations"),
    Entry("Models", "operator/models"),
    Entry("Audit", "operator/audit"),
    Entry("Settings", "operator/settings"),
    Entry("Health", "operator/health"),
)


class Link(Struct, frozen=True):
    label: str
    path: str
    """From the root of the service."""
    is_here: bool
    is_exactly_here: bool


class Group(Struct, frozen=True):
    name: str
    links: Sequence[Link]


def groups_of(app: web.Application, path: str, person: SignedIn, member: Member | None) -> list[Group]:
    """Return the navigation for a person on the page at ``path``, in the organization of ``member`` if any; on other
    pages in the only one that the person belongs to.
    """
    served = _served(app)
    found: list[Group] = []
    place = (member.organization_id, member.role) if member is not None else None
    if place is None and len(person.roles) == 1:
        [place] = person.roles.items()
    if place is not None:
        organization_id, role = place
        base = f"dashboard/{organization_id}"
        for name, entries in ORGANIZATION.items():
            shown = [
                _link(entry.label, f"{base}/{entry.path}".rstrip("/"), path, entry.also and f"{base}/{entry.also}")
                for entry in entries
                if is_at_least(role, entry.least)
                and f"/dashboard/{{organizationId}}/{entry.path}".rstrip("/") in served
            ]
            if shown:
                found.append(Group(name, shown))
    if person.is_operator:
        shown = [_link(one.label, one.path, path) for one in OPERATOR if f"/{one.path}" in served]
        found += [Group("Service", shown)] if shown else []
    return found


def _link(label: str, target: str, path: str, also: str = "") -> Link:
    here = path.strip("/")
    is_start = target.startswith("dashboard/") and target.count("/") == 1  # every page is below it
    below = [f"{one}/" for one in (target, also) if one and not is_start]
    is_here = here == target or here.startswith(tuple(below))
    return Link(label, target, is_here, here == target)


_SERVED: web.AppKey[frozenset[str]] = web.AppKey("SERVED")


def _served(app: web.Application) -> frozenset[str]:
    return app[_SERVED]


def note_served(app: web.Application) -> None:
    """Keep the paths that the application serves; call it once all routes are added."""
    app[_SERVED] = frozenset(resource.canonical for resource in app.router.resources())
