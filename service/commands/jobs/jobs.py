"""Jobs: request one, steer, cancel and archive it, and close its pull request."""

from contextlib import suppress
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from eventstore import EventStore, Metadata, SubjectErased, Views, execute, load, plan
from service.commands.idempotency import claimed_job, record_once
from service.domain.access.idempotency import ClaimRequest, fingerprint_of
from service.domain.errors import Conflict, Invalid
from service.domain.jobs.decider import (
    Absent,
    AddMessage,
    ArchiveJob,
    CancelJob,
    ClosePullRequest,
    Message,
    RequestJob,
    RetryJob,
    UnarchiveJob,
    branch_for,
    title_from,
)
from service.domain.projects.branches import legal_branch
from service.ports.model import Models
from service.queries.jobs.jobs import jobs_of_pull_request
from service.runtime.system import new_job_id, now
from service.streams import JOBS
from service.views.projects import ProjectView

MAX_CONTEXT_CHARACTERS = 50_000


class NewJob(Struct, frozen=True):
    messages: tuple[Message, ...]
    api_version: Literal[1, 2]
    model_alias: str = ""
    branch: str = ""
    as_draft: bool = False
    context: str = ""
    """Text to read beside the instruction."""

    def fingerprint(self, key: str) -> str:
        """Return the same text for the same request. Without a context it is as before there were any."""
        fields = asdict(self)
        if not self.context:
            del fields["context"]
        return fingerprint_of(key, b"job\n" + msgspec.json.encode(fields))


class CreatedJob(Struct, frozen=True):
    id: str
    branch: str
    position: int
    model: str
    """The model's full name."""
    again: bool = False
    """An earlier request with the same key has made it."""


async def request_job(
    store: EventStore, models: Models, project: ProjectView, new: NewJob, metadata: Metadata, *, key: str = ""
) -> CreatedJob:
    """Record a job for the job runner; for the same ``key`` of a caller, unless it is empty, return the same one again.

    Raise NotFound ``unknown_model``, KeyReused, Conflict ``read_only``, or Invalid when its branch is the base branch.
    """
    if project.code_host == "website":
        raise Conflict(
            "This project's documentation is a live website, which can be read but not changed; make a project of its"
            " repository for jobs.",
            code="read_only",
        )
    fingerprint = new.fingerprint(key)
    if key and (known := await claimed_job(store, project.id, key, fingerprint)):
        job = await load(store, JOBS, known)
        assert not isinstance(job.state, Absent)
        request = job.state.request
        return CreatedJob(known, request.branch, job.position, request.model, again=True)
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
        context=new.context,
    )
    if not key:
        done = await execute(store, JOBS, job_id, command, metadata=metadata)
        return CreatedJob(job_id, branch, done.position, command.model)
    claim = ClaimRequest(project.id, job_id, fingerprint, now())
    position = await record_once(
        store, key, claim, lambda: plan(store, JOBS, job_id, command, metadata=metadata), metadata
    )
    if position is None:  # the same request, sent at the same time
        return await request_job(store, models, project, new, metadata, key=key)
    return CreatedJob(job_id, branch, position, command.model)


class AddedMessage(Struct, frozen=True):
    position: int
    again: bool
    """An earlier request with the same key has said it."""


async def add_message(store: EventStore, job_id: str, text: str, metadata: Metadata, *, key: str = "") -> AddedMessage:
    """Steer a job, or have one that has ended go on; once for the same ``key`` of a caller, unless it is empty.

    Raises NotFound, Invalid, Conflict (``too_many_messages``, ``job_erased``), KeyReused.
    """
    command = AddMessage(text, now())
    try:
        job = (await load(store, JOBS, job_id)).state if key else Absent()
        if isinstance(job, Absent):
            return AddedMessage((await execute(store, JOBS, job_id, command, metadata=metadata)).position, again=False)
        claim = ClaimRequest(
            job.request.project_id, job_id, fingerprint_of(key, f"message {job_id}\n{text}".encode()), now()
        )
        position = await record_once(
            store, key, claim, lambda: plan(store, JOBS, job_id, command, metadata=metadata), metadata
        )
    except SubjectErased as error:
        raise _erased() from error
    return AddedMessage(position or await store.head(), again=position is None)


async def retry_job(store: EventStore, job_id: str, metadata: Metadata) -> int:
    """Have a failed job begin its round again, and one that waits go on now; one under way is left as it is.

    Raises NotFound, Conflict (``job_not_failed``, ``too_many_messages``, ``job_erased``).
    """
    try:
        return (await execute(store, JOBS, job_id, RetryJob(now()), metadata=metadata)).position
    except SubjectErased as error:
        raise _erased() from error


def _erased() -> Conflict:
    return Conflict("The instruction of this job was erased. Create a new job.", code="job_erased")


async def cancel_job(store: EventStore, job_id: str, metadata: Metadata) -> int:
    """End a job as failed, ``cancelled``; again does nothing. Raises NotFound, and Conflict ``job_ended``."""
    return (await execute(store, JOBS, job_id, CancelJob(now()), metadata=metadata)).position


async def archive_job(store: EventStore, job_id: str, metadata: Metadata) -> int:
    """Hide a job from lists; again does nothing. Raises NotFound."""
    return (await execute(store, JOBS, job_id, ArchiveJob(now()), metadata=metadata)).position


async def unarchive_job(store: EventStore, job_id: str, metadata: Metadata) -> int:
    """List an archived job again; does nothing for others. Raises NotFound."""
    return (await execute(store, JOBS, job_id, UnarchiveJob(now()), metadata=metadata)).position


async def close_pull_request(
    store: EventStore, views: Views, project_id: str, number: int, close: ClosePullRequest, metadata: Metadata
) -> None:
    """Record for each job of a pull request that it was merged or closed; one that is worked on again is left."""
    for job_id in await jobs_of_pull_request(views, project_id, number):
        with suppress(Conflict):
            await execute(store, JOBS, job_id, close, metadata=metadata)
