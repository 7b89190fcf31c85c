"""What the web and the command line both offer: each function is one whole wish, from checks to the append.

Each returns the position in the log of what it recorded, for whoever must read its own write.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from eventstore import (
    Append,
    EventStore,
    Metadata,
    SubjectErased,
    Views,
    WrongExpectedVersion,
    execute,
    load,
    plan,
)
from service.domain.access.idempotency import Claimed, ClaimRequest, claim_id, fingerprint_of
from service.domain.access.keys import ChangeKey, CreateKey, KeyKind, NoteUse, RevokeKey
from service.domain.erasures import CATEGORIES, EraseSubject
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.feedback import GiveFeedback
from service.domain.jobs.decider import (
    Absent,
    AddMessage,
    ArchiveJob,
    BranchPushed,
    CancelJob,
    Committed,
    FailJob,
    FileChanged,
    Message,
    PullRequestOpened,
    RequestJob,
    branch_for,
    title_from,
)
from service.domain.organizations import CreateOrganization
from service.domain.projects import ChangeProject, CodeHostKind, CreateProject, Project, legal_branch
from service.domain.sites import RegisterSite, RequestIndex
from service.domain.threads import FailReply, PostMessage, StartThread, Thread, digest_of
from service.ports.code_host import CodeHost
from service.ports.docs_source import DocsSource, Source
from service.ports.model import Models
from service.projections.organizations import get_organization
from service.projections.projects import ProjectRow, project_of_domain
from service.projections.sites import get_site
from service.runtime.system import new_capability, new_id, new_job_id, new_key_token, now
from service.streams import ERASURES, JOBS, KEYS, ORGANIZATIONS, PROJECTS, REQUESTS, SITES, THREADS, decoded


class Created(Struct, frozen=True):
    """Something new, and the position of the event that made it."""

    id: str
    position: int


def source_of(project: ProjectRow) -> Source:
    return _source(project.id, project)


def _source(project_id: str, project: "ProjectRow | Project | NewProject") -> Source:
    return Source(
        project_id, project.repository, project.ref, project.docs_folder, project.code_host, project.api_url,
        project.git_token_env, project.github_app_id, project.github_app_key_env, project.labels, project.reviewers,
    )  # fmt: skip


async def create_organization(store: EventStore, name: str, metadata: Metadata) -> Created:
    organization_id = new_id()
    done = await execute(store, ORGANIZATIONS, organization_id, CreateOrganization(name, now()), metadata=metadata)
    return Created(organization_id, done.position)


class NewProject(Struct, frozen=True):
    organization_id: str
    name: str
    repository: str
    ref: str
    """Empty for the repository's default branch."""
    docs_folder: str
    domain: str
    code_host: CodeHostKind
    api_url: str = ""
    git_token_env: str = ""
    github_app_id: str = ""
    github_app_key_env: str = ""
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()


class CheckedProject(Struct, frozen=True):
    """A project that was made or changed, and what its operator should know."""

    id: str
    position: int
    warnings: tuple[str, ...]


CodeHosts = Mapping[CodeHostKind, CodeHost]
"""Those that are not ours; the embedded one needs no check."""


async def create_project(
    store: EventStore, views: Views, docs: DocsSource, code_hosts: CodeHosts, new: NewProject, metadata: Metadata
) -> CheckedProject:
    """A project and its site, recorded together once its repository has been reached and its code host asked.

    Raises Conflict ``domain_taken``, and what ``DocsSource.register`` and ``CodeHost.check_repository`` raise.
    """
    if await get_organization(views, new.organization_id) is None:
        raise NotFound("There is no such organization.")
    if await project_of_domain(views, new.domain) is not None:
        raise Conflict(f"The domain {new.domain} belongs to another project.", code="domain_taken")
    project_id, at = new_id(), now()
    command = CreateProject(**{**asdict(new), "ref": new.ref or "main"}, now=at)
    await plan(store, PROJECTS, project_id, command)  # refused, if it is, before anybody is asked
    source = _source(project_id, new)
    source = replace(source, ref=new.ref or await docs.default_branch(source))
    project = await plan(store, PROJECTS, project_id, replace(command, ref=source.ref), metadata=metadata)
    site = await plan(store, SITES, new.domain, RegisterSite(project_id, new.organization_id, at), metadata=metadata)
    warnings = await _reached(docs, code_hosts, source)
    writes: list[Append] = [write for write in (project, site) if write is not None]
    return CheckedProject(project_id, (await store.append_all(writes)).position, warnings)


async def change_project(
    store: EventStore,
    docs: DocsSource,
    code_hosts: CodeHosts,
    project_id: str,
    change: ChangeProject,
    metadata: Metadata,
) -> CheckedProject:
    """Change a project, once its repository has been reached as it will be; its site is indexed again if need be.

    Raises NotFound, and what ``create_project`` raises.
    """
    before = (await load(store, PROJECTS, project_id)).state
    after = before
    for event in PROJECTS.decide(change, before):
        after = PROJECTS.evolve(after, event)
    assert isinstance(before, Project)
    assert isinstance(after, Project)
    warnings = await _reached(docs, code_hosts, _source(project_id, after))
    position = (await execute(store, PROJECTS, project_id, change, metadata=metadata)).position
    if any(getattr(before, name) != getattr(after, name) for name in ("repository", "ref", "docs_folder")):
        position = (await request_index(store, after.domain, "the project was changed", metadata)).position
    return CheckedProject(project_id, position, warnings)


async def _reached(docs: DocsSource, code_hosts: CodeHosts, source: Source) -> tuple[str, ...]:
    """Whether all that a job needs from outside is there. The code host first: it tells more than git does."""
    if source.code_host in ("local", "website"):
        await docs.register(source)
        return ()
    warnings = (await code_hosts[source.code_host].check_repository(source)).warnings
    await docs.register(source)
    return warnings


class CreatedKey(Struct, frozen=True):
    id: str
    token: str
    """Shown this once."""
    position: int


async def create_key(
    store: EventStore,
    views: Views,
    *,
    kind: KeyKind,
    organization_id: str,
    name: str,
    domains: Sequence[str],
    expires_at: datetime | None,
    metadata: Metadata,
    allowed_addresses: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
) -> CreatedKey:
    if await get_organization(views, organization_id) is None:
        raise NotFound("There is no such organization.")
    for domain in domains:
        site = await get_site(views, domain)
        if site is None or site.organization_id != organization_id:
            raise NotFound(f"There is no site {domain}.")
    key_id, token = new_id(), new_key_token(kind)
    command = CreateKey(
        kind, organization_id, name, token, tuple(domains), now(), expires_at, tuple(allowed_addresses),
        tuple(allowed_origins),
    )  # fmt: skip
    done = await execute(store, KEYS, key_id, command, metadata=metadata)
    return CreatedKey(key_id, token, done.position)


async def change_key(store: EventStore, key_id: str, change: ChangeKey, metadata: Metadata) -> Created:
    return Created(key_id, (await execute(store, KEYS, key_id, change, metadata=metadata)).position)


async def note_use_of_key(store: EventStore, key_id: str) -> Created:
    """Record that a key opened something; nothing, when that was recorded within the hour."""
    return Created(key_id, (await execute(store, KEYS, key_id, NoteUse(now()))).position)


async def revoke_key(store: EventStore, key_id: str, metadata: Metadata) -> Created:
    return Created(key_id, (await execute(store, KEYS, key_id, RevokeKey(now()), metadata=metadata)).position)


async def request_index(store: EventStore, domain: str, reason: str, metadata: Metadata) -> Created:
    return Created(
        domain, (await execute(store, SITES, domain, RequestIndex(reason, now()), metadata=metadata)).position
    )


class NewJob(Struct, frozen=True):
    messages: tuple[Message, ...]
    api_version: Literal[1, 2]
    model_alias: str = ""
    branch: str = ""
    as_draft: bool = False


class CreatedJob(Struct, frozen=True):
    id: str
    branch: str
    position: int
    again: bool = False
    """It had been made before, with the same key."""


async def request_job(
    store: EventStore, models: Models, project: ProjectRow, new: NewJob, metadata: Metadata, *, key: str = ""
) -> CreatedJob:
    """A job for the job runner to take up; the same one again for the same ``key`` of a caller, unless it is empty.

    Raises NotFound ``unknown_model``, KeyReused, Conflict ``read_only``.
    """
    if project.code_host == "website":
        raise Conflict(
            "This project's documentation is a live website, which can be read but not changed; make a project of its"
            " repository for jobs.",
            code="read_only",
        )
    fingerprint = fingerprint_of(key, b"job\n" + msgspec.json.encode(new))
    if key and (known := await _claimed(store, project.id, key, fingerprint)):
        job = await load(store, JOBS, known)
        assert not isinstance(job.state, Absent)
        return CreatedJob(known, job.state.request.branch, job.position, again=True)
    job_id, title = new_job_id(), title_from(new.messages)
    branch = legal_branch(new.branch) if new.branch else branch_for(job_id, title)
    if branch == project.ref:
        raise Invalid(
            f"The work goes on a branch of its own, not on {project.ref}.",
            problems=(("$.branch", "is the base branch"),),
        )
    command = RequestJob(
        organization_id=project.organization_id,
        project_id=project.id,
        repository=project.repository,
        ref=project.ref,
        model_alias=new.model_alias,
        model=models.for_agent(new.model_alias).name,
        messages=new.messages,
        title=title,
        branch=branch,
        branch_named=bool(new.branch),
        as_draft=new.as_draft,
        api_version=new.api_version,
        now=now(),
    )
    if not key:
        done = await execute(store, JOBS, job_id, command, metadata=metadata)
        return CreatedJob(job_id, branch, done.position)
    claim = ClaimRequest(project.id, job_id, fingerprint, now())
    position = await _record_once(
        store, key, claim, lambda: plan(store, JOBS, job_id, command, metadata=metadata), metadata
    )
    if position is None:  # the same request, sent at the same time
        return await request_job(store, models, project, new, metadata, key=key)
    return CreatedJob(job_id, branch, position)


class AddedMessage(Struct, frozen=True):
    position: int
    again: bool
    """It had been said before, with the same key."""


async def add_message(
    store: EventStore, project_id: str, job_id: str, text: str, metadata: Metadata, *, key: str = ""
) -> AddedMessage:
    """Steer a job, or have one that has ended go on; once for the same ``key`` of a caller, unless it is empty.

    Raises NotFound, Invalid, Conflict (``too_many_messages``, ``job_erased``), KeyReused.
    """
    command = AddMessage(text, now())
    try:
        if not key:
            return AddedMessage((await execute(store, JOBS, job_id, command, metadata=metadata)).position, again=False)
        claim = ClaimRequest(project_id, job_id, fingerprint_of(key, f"message {job_id}\n{text}".encode()), now())
        position = await _record_once(
            store, key, claim, lambda: plan(store, JOBS, job_id, command, metadata=metadata), metadata
        )
    except SubjectErased as error:
        raise Conflict("What was typed for this job was erased: begin a new one.", code="job_erased") from error
    return AddedMessage(position or await store.head(), again=position is None)


async def cancel_job(store: EventStore, job_id: str, metadata: Metadata) -> Created:
    """End a job as failed, ``cancelled``; again does nothing. Raises NotFound, and Conflict ``job_ended``."""
    return Created(job_id, (await execute(store, JOBS, job_id, CancelJob(now()), metadata=metadata)).position)


async def archive_job(store: EventStore, job_id: str, metadata: Metadata) -> Created:
    """Put a job out of sight; again does nothing. Raises NotFound."""
    return Created(job_id, (await execute(store, JOBS, job_id, ArchiveJob(now()), metadata=metadata)).position)


async def _claimed(store: EventStore, project_id: str, key: str, fingerprint: str) -> str | None:
    """The job that an earlier request with the key was about. Raises KeyReused."""
    claim = ClaimRequest(project_id, "", fingerprint, now())
    if await plan(store, REQUESTS, claim_id(project_id, key), claim) is not None:
        return None
    state = (await load(store, REQUESTS, claim_id(project_id, key))).state
    return state.job_id if isinstance(state, Claimed) else None


async def _record_once(
    store: EventStore,
    key: str,
    claim: ClaimRequest,
    planned: Callable[[], Awaitable[Append | None]],
    metadata: Metadata,
) -> int | None:
    """Record what is planned and the claim of its key, both or none; its position, or None when the key was claimed
    for the same before. Raises KeyReused, and what planning raises.
    """
    while True:
        claimed = await plan(store, REQUESTS, claim_id(claim.project_id, key), claim, metadata=metadata)
        if claimed is None:
            return None
        write = await planned()
        try:
            return (await store.append_all([claimed, *([write] if write else [])])).position
        except WrongExpectedVersion:  # somebody was faster, with the claim or on the job: look again
            continue


class PostedMessage(Struct, frozen=True):
    thread_id: str
    thread_key: str | None
    """Only for a new thread."""
    reply_id: str
    position: int


async def start_thread(
    store: EventStore, project: ProjectRow, message: PostMessage, metadata: Metadata
) -> PostedMessage:
    thread_id, thread_key = new_capability(), new_capability()
    command = StartThread(
        project.organization_id, project.id, project.domain, message.fp, digest_of(thread_key), message
    )
    done = await execute(store, THREADS, thread_id, command, metadata=metadata)
    return PostedMessage(thread_id, thread_key, message.reply_id, done.position)


async def post_message(store: EventStore, thread_id: str, message: PostMessage, metadata: Metadata) -> PostedMessage:
    """Raises NotFound ``thread_not_found`` when there is none, or none that the sender may write to."""
    try:
        done = await execute(store, THREADS, thread_id, message, metadata=metadata)
    except SubjectErased as error:
        raise NotFound("There is no such thread.", code="thread_not_found") from error
    if not done.events and isinstance(done.state, Thread) and (index := done.state.index_asked(message)) is not None:
        reply = done.state.turns[index].reply  # it was sent before: its reply is told again
        if reply is not None:
            return PostedMessage(thread_id, None, reply.reply_id, done.position)
    return PostedMessage(thread_id, None, message.reply_id, done.position)


async def give_feedback(store: EventStore, thread_id: str, feedback: GiveFeedback, metadata: Metadata) -> Created:
    """Raises NotFound: ``thread_not_found`` when that site has no such thread, ``message_not_found``; and Conflict."""
    try:
        done = await execute(store, THREADS, thread_id, feedback, metadata=metadata)
    except SubjectErased as error:
        raise NotFound("There is no such thread.", code="thread_not_found") from error
    return Created(thread_id, done.position)


ERASED_MEANWHILE = "What people had typed for this was erased."


class ErasedSubject(Struct, frozen=True, rename="camel"):
    subject: str
    position: int
    """Of the record of its erasure."""
    again: bool
    """It had been erased before."""
    kept: tuple[str, ...]
    """What a job did to the repository, or was about to, is not erased: changed files, commit, branch, pull request."""


async def erase_subject(store: EventStore, views: Views, subject: str, metadata: Metadata) -> ErasedSubject:
    """Delete the data key of a thread or job, record that, and clear the read models of what it had sealed.

    Whatever is under way for it ends first. Safe to repeat after a failure, which may have left it half done.

    Raises NotFound: there is no such thread or job; and StoreUnavailable.
    """
    category, _, entity_id = subject.partition("-")
    if category not in CATEGORIES or not entity_id or await store.stream_version(subject) == 0:
        raise NotFound(f"There is no {subject}: name a stream, such as thread-ID or job-ID.")
    kept = await _end(store, category, entity_id, metadata)
    await store.erase(subject)
    await _end(store, category, entity_id, metadata)  # what began meanwhile; nothing can from now on
    done = await execute(store, ERASURES, subject, EraseSubject(now()), metadata=metadata)
    await views.catch_up()
    await views.scrub()
    return ErasedSubject(subject, done.position, again=not done.events, kept=kept)


async def _end(store: EventStore, category: str, entity_id: str, metadata: Metadata) -> tuple[str, ...]:
    """End a job, or a thread's replies; what of the job is kept."""
    if category == THREADS.category:
        thread = (await load(store, THREADS, entity_id)).state
        for turn in thread.turns if isinstance(thread, Thread) else ():
            if turn.reply is not None and turn.reply.state == "active":
                failed = FailReply(turn.reply.reply_id, "erased", ERASED_MEANWHILE, now())
                await execute(store, THREADS, entity_id, failed, metadata=metadata)
        return ()
    with suppress(Conflict):  # it has ended
        await execute(store, JOBS, entity_id, FailJob("erased", ERASED_MEANWHILE, now()), metadata=metadata)
    files: set[str] = set()
    kept: dict[str, None] = {}  # of all rounds, in order
    async with aclosing(store.iterate_stream(JOBS.stream(entity_id))) as events:
        async for recorded in events:
            for _, event in decoded(JOBS, [recorded]):
                match event:
                    case FileChanged(path=path):
                        files.add(path)
                    case Committed(commit=commit):
                        kept[f"commit {commit}"] = None
                    case BranchPushed(branch=branch):
                        kept[f"branch {branch}"] = None
                    case PullRequestOpened(url=url):
                        kept[f"pull request {url}"] = None
                    case _:
                        pass
    return (*(f"changed file {path}" for path in sorted(files)), *kept)
