"""The installation that a file is applied to, and the names by which its entries refer to one another."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eventstore import EventStore, Metadata, Views
from service.commands.projects import CodeHosts
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.projects.values import checked_variable
from service.ports.docs_source import DocsSource
from service.queries.organizations import list_organizations
from service.queries.projects import project_of_domain
from service.queries.sites import get_site
from service.runtime import secret_files
from service.runtime.settings.settings import LimitsSection
from service.views.apply import ChangeView, EntryKind, FieldChangeView
from service.views.sites import PaymentView


class Owner(Struct, frozen=True):
    """An organization that an entry is of."""

    name: str
    id: str
    """Empty: the file creates it."""


class Done(Struct, frozen=True):
    """The result of a step."""

    id: str
    notes: tuple[str, ...] = ()


Change = tuple[Callable[[], Awaitable[object]], tuple[FieldChangeView, ...]]
"""A change to be made, and what differs by it."""


class Step(Struct, frozen=True):
    """The change that an entry takes, and the function that makes it; None where there is nothing to do."""

    change: ChangeView
    act: Callable[[], Awaitable[Done]] | None = None


def change_beside_secret(
    kind: EntryKind,
    name: str,
    entry_id: str,
    change: Change | None,
    file: Path | None,
) -> Step:
    """Return the step of an entry that exists: its change, and the file of a secret that an earlier run recorded
    without giving the file its name.
    """
    view = ChangeView(kind=kind, name=name, action="none", id=entry_id)
    if change is None and file is None:
        return Step(view)
    make, fields = change or (None, ())

    async def act() -> Done:
        if make is not None:
            await make()
        if file is not None:
            secret_files.finish(file)
        return Done(entry_id)

    return Step(replace(view, action="change", fields=fields, file=str(file) if file else None), act)


@dataclass
class Installation:
    store: EventStore
    views: Views
    docs: DocsSource
    code_hosts: CodeHosts
    payment: Callable[[], Awaitable[PaymentView]]
    restricted_pages: Callable[[str], Awaitable[int]]
    """Returns how many pages of a site are for groups of readers alone."""
    limits: LimitsSection
    allow_private: bool
    folder: Path
    """The folder of the file: its paths begin there."""
    environment: Mapping[str, str]
    metadata: Metadata
    new_organizations: set[str] = field(default_factory=set)
    new_sites: dict[str, Owner] = field(default_factory=dict)
    """By domain. This, and those before, are what earlier entries create, as long as nothing is changed yet."""
    _seen: set[tuple[str, ...]] = field(default_factory=set)
    _secret_files: set[Path] = field(default_factory=set)

    async def owner(self, named: str | None) -> Owner:
        """Return the organization with a name or an id, or without one the only organization.

        Raise NotFound, Invalid: several may be meant, Conflict: several have the name.
        """
        known = await list_organizations(self.views)
        if named is None:
            names = [*(one.name for one in known), *self.new_organizations]
            if len(names) != 1:
                raise Invalid(
                    f"Name the organization: organization = {names[0]!r}."
                    if names
                    else "Declare an organization first: [[organization]] with a name."
                )
            return Owner(names[0], known[0].id if known else "")
        found = [one for one in known if one.id == named] or [one for one in known if one.name == named]
        if len(found) > 1:
            ids = ", ".join(one.id for one in found)
            raise Conflict(f"Several organizations have the name {named!r}. Name one by its id: {ids}.")
        if found:
            return Owner(found[0].name, found[0].id)
        if named in self.new_organizations:
            return Owner(named, "")
        raise NotFound(f"Organization not found: {named}. Declare it in an [[organization]] before.")

    async def owner_of_site(self, domain: str) -> Owner:
        """Return the organization that a site belongs to. Raise NotFound."""
        if (site := await get_site(self.views, domain)) is not None:
            return await self.owner(site.view.organization_id)
        if domain in self.new_sites:
            return self.new_sites[domain]
        raise NotFound(f"Site not found: {domain}. Declare its project in a [[project]] before.")

    async def owner_of_sites(self, named: str | None, domains: Sequence[str]) -> Owner:
        """Return the organization that is named, or that of the first site. Raise NotFound for others' sites."""
        owner = await (self.owner(named) if named or not domains else self.owner_of_site(domains[0]))
        for domain in domains:
            if await self.owner_of_site(domain) != owner:
                raise NotFound(f"Site not found in the organization {owner.name}: {domain}. Name one of its own.")
        return owner

    async def project_id(self, domain: str) -> str | None:
        """Return the id of a site's project; None where it is not created yet."""
        project = await project_of_domain(self.views, domain)
        return project.id if project is not None else None

    def once(self, kind: EntryKind, *identity: str) -> None:
        """Note that an entry is about something. Raise Invalid for a second one about it."""
        if (kind, *identity) in self._seen:
            raise Invalid("An earlier entry of the file is about the same. Remove one of the two.")
        self._seen.add((kind, *identity))

    def path(self, text: str) -> Path:
        """Return the file for a secret that an entry names. Raise Invalid."""
        if not text.isprintable() or text.endswith("/"):
            raise Invalid(f"Not the name of a file: {text!r}. Name one in printable characters.")
        try:
            file = self.folder / Path(text).expanduser()
        except RuntimeError:
            raise Invalid(f"The home folder of {text!r} is not known. Write the whole path.") from None
        if len(os.fsencode(file.name)) > secret_files.MAX_NAME_BYTES:
            raise Invalid(f"The name of {file} is too long. It has at most {secret_files.MAX_NAME_BYTES} bytes.")
        return file

    def secret_of(self, variable: str) -> str:
        """Return the value of an environment variable. Raise Invalid: it is not set."""
        if not (value := self.environment.get(checked_variable(variable), "").strip()):
            raise Invalid(f"The environment variable {variable} is not set. Set it where docsmith apply runs.")
        return value

    def new_secret_file(self, text: str) -> Path:
        """Return the file for a new secret. Raise Conflict: it is there already, or another entry's, and Invalid: its
        folder is not.
        """
        file = self.path(text)
        if (name := file.resolve()) in self._secret_files:
            raise Conflict(f"An earlier entry writes its secret to {file}. Name another file.")
        self._secret_files.add(name)
        if secret_files.is_there(file):
            raise Conflict(f"{file} exists already, so no new secret is written to it. Move it away, or name another.")
        if not file.parent.is_dir():
            raise Invalid(f"The folder {file.parent} does not exist. Create it, or name another for {file.name}.")
        return file


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[FieldChangeView, ...]:
    """Return the values that differ, in words."""
    return tuple(
        FieldChangeView(name, _words(before.get(name)), _words(value))
        for name, value in after.items()
        if before.get(name) != value
    )


def _words(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(map(_words, value))
        case _:
            return str(value)
