"""Projects: create and change one, with its site."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eventstore import (
    Append,
    EventStore,
    Metadata,
    Views,
    WrongExpectedVersion,
    execute,
    load,
    plan,
)
from service.commands.sites import request_index
from service.domain.errors import Conflict, NotFound, ServiceError
from service.domain.projects.decider import ChangeProject, CreateProject
from service.domain.projects.settings import CodeHostKind, ProjectSettings
from service.domain.sites import RegisterSite
from service.ports.code_host import CodeHost
from service.ports.docs_source import DocsSource, Source
from service.queries.organizations import get_organization
from service.queries.projects import context_sources, project_of_domain, source_from
from service.runtime.system import new_id, now
from service.streams import PROJECTS, SITES


class CheckedProject(Struct, frozen=True):
    """A project that was created or changed, and what its operator should know."""

    id: str
    position: int
    warnings: tuple[str, ...]


CodeHosts = Mapping[CodeHostKind, CodeHost]
"""Code hosts by kind, without the embedded one, which needs no check."""


async def create_project(
    store: EventStore, views: Views, docs: DocsSource, code_hosts: CodeHosts, new: ProjectSettings, metadata: Metadata
) -> CheckedProject:
    """Record a project and its site together, once its repository and its code host have answered.

    An empty ``ref`` is the repository's default branch.
    A context repository that does not answer is a warning.
    Raise NotFound for the organization, Conflict ``domain_taken``, and the errors of ``DocsSource.register`` and
    ``CodeHost.check_repository``.
    """
    if await get_organization(views, new.organization_id) is None:
        raise NotFound(f"Organization not found: {new.organization_id}. List them with: docsmith organization list")
    if await project_of_domain(views, new.domain) is not None:
        raise Conflict(f"The site name {new.domain} is taken by another project. Choose another.", code="domain_taken")
    project_id, at = new_id(), now()
    command = CreateProject(replace(new, ref=new.ref or "main"), at)
    await plan(store, PROJECTS, project_id, command)  # refused before the network is asked
    source = source_from(project_id, new)
    source = replace(source, ref=new.ref or await docs.default_branch(source))
    is_elsewhere = new.code_host not in ("local", "website")
    command = CreateProject(
        replace(new, ref=source.ref, follows=(source.ref,) if is_elsewhere and not new.ref else ()), at
    )
    project = await plan(store, PROJECTS, project_id, command, metadata=metadata)
    site = await plan(store, SITES, new.domain, RegisterSite(project_id, new.organization_id, at), metadata=metadata)
    writes: list[Append] = [write for write in (project, site) if write is not None]
    try:
        warnings = await _require_reachable(docs, code_hosts, source)
        warnings += await _unreachable_contexts(docs, context_sources(project_id, new.contexts))
    except BaseException:
        await docs.forget(source)
        raise
    try:
        position = (await store.append_all(writes)).position  # of a caller that leaves now, it may be stored
    except WrongExpectedVersion:  # another project got the domain meanwhile: that is to be said
        await docs.forget(source)
        await plan(store, SITES, new.domain, RegisterSite(project_id, new.organization_id, at), metadata=metadata)
        raise
    return CheckedProject(project_id, position, warnings)


def repository_from(text: str, folder: Path = Path()) -> str:
    """Return a URL as it is; a path, which may begin at a folder, made absolute: the service may run elsewhere."""
    path = folder / Path(text).expanduser()
    return str(path.resolve()) if "://" not in text and path.exists() else text


async def change_project(
    store: EventStore,
    docs: DocsSource,
    code_hosts: CodeHosts,
    project_id: str,
    change: ChangeProject,
    metadata: Metadata,
) -> CheckedProject:
    """Change a project, once its repository and code host have answered as it will be; index its site again if need be.

    Raises NotFound, and what ``create_project`` raises.
    """
    before = (await load(store, PROJECTS, project_id)).state
    after = before
    for event in PROJECTS.decide(change, before):
        after = PROJECTS.evolve(after, event)
    assert isinstance(before, ProjectSettings)
    assert isinstance(after, ProjectSettings)
    source, contexts = source_from(project_id, after), context_sources(project_id, after.contexts)
    if after.code_host == "local":
        await docs.fetch(source)  # one that is gone is not made again: it would lack what was merged
        warnings: tuple[str, ...] = ()
    else:
        warnings = await _require_reachable(docs, code_hosts, source)
    known = context_sources(project_id, before.contexts)
    warnings += await _unreachable_contexts(docs, [one for one in contexts if one not in known])
    position = (await execute(store, PROJECTS, project_id, change, metadata=metadata)).position
    if any(getattr(before, name) != getattr(after, name) for name in ("repository", "ref", "docs_folder")):
        position = await request_index(store, after.domain, "the project was changed", metadata)
    if contexts != known:
        await docs.keep_contexts(source, contexts)
    return CheckedProject(project_id, position, warnings)


async def follow_default_branch(store: EventStore, source: Source, ref: str) -> None:
    """Record the new name of the default branch that a project follows, and have its site indexed again. Raises
    NotFound.
    """
    before = (await load(store, PROJECTS, source.project_id)).state
    if not isinstance(before, ProjectSettings) or before.ref == ref or before.ref != source.ref:
        return  # another process was faster
    change = ChangeProject(now(), ref=ref, follows=(*before.follows, ref))
    await execute(store, PROJECTS, source.project_id, change)
    await request_index(store, before.domain, "the default branch was renamed", Metadata())


async def change_cost_bound(store: EventStore, project_id: str, usd_day: float, metadata: Metadata) -> int:
    """Set the most that replies of a project's site may cost in a day, 0 for no own bound, and return the position of
    the last event. Raises NotFound, Invalid.
    """
    change = ChangeProject(now(), max_cost_usd_day=usd_day)
    return (await execute(store, PROJECTS, project_id, change, metadata=metadata)).position


async def _unreachable_contexts(docs: DocsSource, contexts: Iterable[Source]) -> tuple[str, ...]:
    """Return a warning for each context repository that cannot be read now: jobs go on without it."""
    warnings: list[str] = []
    for source in contexts:
        try:
            await docs.register(source)
        except ServiceError as error:
            warnings.append(f"The context repository {source.context} cannot be read; jobs go on without it: {error}")
    return tuple(warnings)


async def _require_reachable(docs: DocsSource, code_hosts: CodeHosts, source: Source) -> tuple[str, ...]:
    """Check that a job can reach all it needs; return warnings. The code host is first: it says more than git does."""
    if source.code_host in ("local", "website"):
        await docs.register(source)
        return ()
    warnings = (await code_hosts[source.code_host].check_repository(source)).warnings
    await docs.register(source)
    return warnings
