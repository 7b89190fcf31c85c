"""Entries of projects, with their context repositories."""

from collections.abc import Sequence

from msgspec.structs import asdict, replace

from service.commands.apply.entries import ContextEntry, ProjectEntry
from service.commands.apply.installation import Done, Installation, Owner, Step, differences
from service.commands.projects import change_project, create_project, repository_from
from service.domain.errors import Conflict, Invalid
from service.domain.projects.contexts import ContextRepository
from service.domain.projects.decider import ChangeProject
from service.domain.projects.settings import CHANGEABLE, ProjectSettings, checked
from service.queries.projects import project_of_domain
from service.runtime.system import now
from service.views.apply import ChangeView
from service.views.projects import ProjectView

_DECLARED = ("name", "ref", "docs_folder", "api_url", "git_token_env", "github_app_id", "github_app_key_env", "labels",
             "reviewers", "site_url", "max_cost_usd_day")  # fmt: skip
"""Fields that are stored as they are written."""


async def plan_project(installation: Installation, entry: ProjectEntry) -> Step:
    if entry.repository is not None and entry.website is not None:
        raise Invalid("A project has a repository or a website. Leave one of the two out.")
    installation.once("project", entry.domain)
    found = await project_of_domain(installation.views, entry.domain)
    return await (_creation(installation, entry) if found is None else _change(installation, entry, found))


async def _creation(installation: Installation, entry: ProjectEntry) -> Step:
    owner = await installation.owner(entry.organization)
    repository = _repository(installation, entry)
    if repository is None:
        raise Invalid("A new project needs a repository or a website. Name one.")
    new = ProjectSettings(
        organization_id=owner.id,
        name=entry.domain,
        repository=repository,
        ref="",
        docs_folder="",
        domain=entry.domain,
        code_host="website" if entry.website is not None else entry.code_host or "local",
        contexts=_contexts(installation, entry.context, ()),
    )
    new = replace(new, **_values(entry))
    checked(replace(new, ref=new.ref or "main"))
    installation.new_sites[entry.domain] = owner

    async def act() -> Done:
        created = await create_project(
            installation.store, installation.views, installation.docs, installation.code_hosts, new,
            installation.metadata,
        )  # fmt: skip
        del installation.new_sites[entry.domain]
        return Done(created.id, created.warnings)

    return Step(ChangeView(kind="project", name=entry.domain, action="create"), act)


async def _change(installation: Installation, entry: ProjectEntry, found: ProjectView) -> Step:
    if entry.organization is not None:
        _require_same_owner(await installation.owner(entry.organization), found)
    kind = "website" if entry.website is not None else entry.code_host
    if kind not in (None, found.code_host):
        raise Conflict(f"Its code host is {found.code_host}, and cannot change to {kind}. Create another project.")
    known = {name: getattr(found, name) for name in ProjectSettings.__struct_fields__}
    known["contexts"] = tuple(ContextRepository(**asdict(one)) for one in found.contexts)
    before = ProjectSettings(**known)
    values = _values(entry) | {"contexts": _contexts(installation, entry.context, before.contexts)}
    if (repository := _repository(installation, entry)) is not None:
        values["repository"] = repository
    after = checked(replace(before, **values))
    different = {name: value for name in CHANGEABLE if (value := getattr(after, name)) != getattr(before, name)}
    view = ChangeView(kind="project", name=entry.domain, action="none", id=found.id)
    if not different:
        return Step(view)
    if "repository" in different and before.code_host == "local":
        raise Conflict(
            f"The embedded code host keeps the repository {before.repository}, so it cannot change to"
            f" {after.repository}. Create another project for it."
        )
    shown = {name: _shown(value) for name, value in different.items()}
    fields = differences({name: _shown(getattr(before, name)) for name in shown}, shown)

    async def act() -> Done:
        changed = await change_project(
            installation.store, installation.docs, installation.code_hosts, found.id,
            ChangeProject(now(), **different), installation.metadata,
        )  # fmt: skip
        return Done(found.id, changed.warnings)

    return Step(replace(view, action="change", fields=fields), act)


def _require_same_owner(owner: Owner, found: ProjectView) -> None:
    if owner.id != found.organization_id:
        raise Conflict(f"The site name {found.domain} is taken by a project of another organization than {owner.name}.")


def _values(entry: ProjectEntry) -> dict[str, object]:
    return {name: value for name in _DECLARED if (value := getattr(entry, name)) is not None}


def _repository(installation: Installation, entry: ProjectEntry) -> str | None:
    if entry.website is not None or entry.repository is None:
        return entry.website
    return repository_from(entry.repository, installation.folder)


def _contexts(
    installation: Installation, entries: Sequence[ContextEntry], before: Sequence[ContextRepository]
) -> tuple[ContextRepository, ...]:
    """Return the context repositories as the entries leave them; those that no entry names stay."""
    contexts = {one.name: one for one in before}
    for entry in entries:
        if entry.remove:
            contexts.pop(entry.name, None)
            continue
        known = contexts.get(entry.name)
        if entry.repository is not None:
            repository = repository_from(entry.repository, installation.folder)
            if known is None or known.repository != repository:
                known = ContextRepository(entry.name, repository, internal="://" not in repository)
        if known is None:
            raise Invalid(f"The new context repository {entry.name} needs its repository. Name it.")
        names = ("ref", "token_env", "public", "internal")
        given = {name: value for name in names if (value := getattr(entry, name)) is not None}
        token = {"token_id": ""} if entry.token_env else {}
        contexts[entry.name] = replace(known, **given, **token)
    return tuple(contexts.values())


def _shown(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    return tuple(_shown_context(one) if isinstance(one, ContextRepository) else one for one in value)


def _shown_context(context: ContextRepository) -> str:
    given = {name: value for name, value in asdict(context).items() if value and name not in ("name", "repository")}
    notes = ", ".join(name if value is True else f"{name} {value}" for name, value in given.items())
    return f"{context.name}={context.repository}" + (f" ({notes})" if notes else "")
