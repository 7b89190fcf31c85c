"""``docsmith audit reproduce``: a job's commits made again from the log, without a model, and compared by their ids.

An id covers the parent, every file of the tree, author, time and message. So the same id proves that the log has all
that the job did to the repository, and that the commit that was pushed is the one in the log.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import click
from msgspec import Struct

from eventstore import EventStore
from service.agent.workspace import Workspace
from service.cli.audit.reading import PAGE, reading
from service.cli.jobs import organization_of_jobs, the_job
from service.cli.output import DONE, FAILED, VERIFICATION_FAILED, Output
from service.cli.parsing import Options, command
from service.cli.runtime import Runtime
from service.domain.errors import Forbidden, Invalid, NotFound, ServiceError, Unavailable
from service.domain.jobs.decider import Absent, BranchPushed, Committed, Job
from service.ports.docs_source import DocsSource, MergedCommit, NewCommit, Source
from service.queries.projects import get_project, source_of
from service.runtime.scratch import scratch_folder
from service.streams import JOBS, decoded


class Recorded(Struct, frozen=True):
    """A commit as the log has it, with the files as the job had changed them by then."""

    committed: Committed
    changes: Mapping[str, str | None]


class History(Struct, frozen=True):
    """The log's record of one job."""

    id: str
    project_id: str
    commits: tuple[Recorded, ...]
    pushed: tuple[str, ...]
    erased: bool


class RebuiltCommit(Struct, frozen=True, rename="camel"):
    commit: str
    """As recorded."""
    parent: str
    pushed: bool
    rebuilt: str | None = None
    """As it is by what the log says; None when it could not be made."""
    files: int = 0
    """How many it changes."""
    problem: str | None = None

    @property
    def same(self) -> bool:
        return self.rebuilt == self.commit and self.problem is None


class Reproduced(Struct, frozen=True, rename="camel"):
    id: str
    same: bool | None
    """None when it is unknown, because the parent of a commit is not available."""
    erased: bool
    commits: tuple[RebuiltCommit, ...]
    problem: str | None = None


@command(
    "reproduce",
    does="make a job's commits again from the log and compare their ids",
    more="It asks no model, writes nothing into the repository or our clone of it, and works for a job whose"
    " personal data was erased. It exits with 3 when an id differs, with 1 when the commit that a job began from is"
    " not available any more.",
    examples=["audit reproduce 0000beef", "audit reproduce ID ANOTHER_ID --json"],
)
@click.argument("jobs", nargs=-1, required=True, metavar="JOB", help="the id of a job, or a part of it; or several")
@organization_of_jobs
async def reproduce(runtime: Runtime, options: Options, output: Output) -> int:
    named = [job.removeprefix(f"{JOBS.category}-") for job in options.jobs]
    ids = list(dict.fromkeys([(await the_job(runtime, job, options.organization)).id for job in named]))
    found: list[Reproduced] = []
    async with reading(runtime.data, "audit reproduce", {"jobs": " ".join(ids)}) as (store, through):
        histories = [await history_of(store, job_id, through) for job_id in ids]
        for done, history in enumerate(histories, 1):
            project = await get_project(runtime.views, history.project_id)
            if project is None:
                raise Unavailable("The job's project is not in the read models.", code="project_unknown")
            with scratch_folder(Path(tempfile.gettempdir()), "docsmith-reproduce-") as folder:
                found.append(await rebuilt(history, runtime.scratch_docs(folder), source_of(project)))
            output.progress("reproducing", done, len(ids))
            output.line(_text(found[-1]))
    same = None if any(one.same is None for one in found) else all(one.same for one in found)
    if any(one.same is False for one in found):
        same = False
    output.result({"same": same, "jobs": found}, "")
    return VERIFICATION_FAILED if same is False else FAILED if same is None else DONE


async def history_of(store: EventStore, job_id: str, through: int) -> History:
    """Return the log's record of a job. Raise NotFound when it is not in the log up to that position."""
    job: Job = JOBS.initial
    commits: list[Recorded] = []
    pushed: list[str] = []
    version, erased = 0, False
    while page := await store.read_stream(JOBS.stream(job_id), after_version=version, limit=PAGE):
        version = page[-1].stream_version
        shown = [recorded for recorded in page if recorded.position <= through]
        erased = erased or any(recorded.erased for recorded in shown)
        for _, event in decoded(JOBS, shown):
            match event:
                case Committed() if not isinstance(job, Absent):
                    commits.append(Recorded(event, job.work.changes))  # as the job itself had them when it committed
                case BranchPushed(commit=commit):
                    pushed.append(commit)
                case _:
                    pass
            job = JOBS.evolve(job, event)
        if len(shown) < len(page):
            break
    if isinstance(job, Absent):
        raise NotFound(f"There is no job {job_id}.")
    return History(job_id, job.request.project_id, tuple(commits), tuple(pushed), erased)


async def rebuilt(history: History, docs: DocsSource, source: Source) -> Reproduced:
    """Each commit in turn: a later one stands on an earlier one, which is then there already."""
    commits = [await _rebuilt_commit(one, history, docs, source) for one in history.commits]
    known = {one.commit for one in commits}
    problem = next(
        (f"{one} was pushed, but the log does not say what is in it" for one in history.pushed if one not in known),
        None,
    )
    differs = problem is not None or any(one.rebuilt is not None and not one.same for one in commits)
    same = False if differs else None if any(one.rebuilt is None for one in commits) else True
    return Reproduced(history.id, same, history.erased, tuple(commits), problem)


async def _rebuilt_commit(one: Recorded, history: History, docs: DocsSource, source: Source) -> RebuiltCommit:
    recorded = one.committed
    kept = RebuiltCommit(recorded.commit, recorded.parent, pushed=recorded.commit in history.pushed)
    try:
        workspace = await Workspace.open(docs, source, recorded.parent, one.changes)
        changes = await workspace.effective_changes()
        for other in filter(None, (recorded.merged, recorded.merge_base)):
            await docs.list_files(source, other)
    except (NotFound, Unavailable, Forbidden, Invalid) as error:
        return _with(kept, None, 0, f"its parent {recorded.parent[:12]} is not available any more: {error}")
    merged = None
    if recorded.merged:  # a merge names every file that the job settled
        merged, changes = MergedCommit(recorded.merged, recorded.merge_base), dict(one.changes)
    new = NewCommit(recorded.parent, changes, recorded.author, recorded.message, recorded.committed_at, merged)
    try:
        written = await docs.write_commit(source, new)
    except ServiceError as error:
        return _with(kept, "", len(changes), f"what the log says cannot be committed: {error}")
    problem = None
    if written.tree != recorded.tree:
        problem = f"the files give the tree {written.tree[:12]}, and the log says {recorded.tree[:12]}"
    elif written.commit != recorded.commit:
        problem = f"author, time or message give the commit {written.commit[:12]}"
    return _with(kept, written.commit, len(changes), problem)


def _with(kept: RebuiltCommit, made: str | None, files: int, problem: str | None) -> RebuiltCommit:
    return RebuiltCommit(kept.commit, kept.parent, kept.pushed, made, files, problem)


def _text(job: Reproduced) -> str:
    erased = " (what people typed into it has been erased; what it changed is still recorded)" if job.erased else ""
    if not job.commits and job.problem is None:
        return f"job {job.id}: it made no commit, so there is nothing to reproduce{erased}"
    says = {True: "the same", False: "NOT the same", None: "unknown"}[job.same]
    lines = [f"job {job.id}: {says}{erased}"]
    for one in job.commits:
        verdict = "same" if one.same else one.problem or "differs"
        pushed = "" if one.pushed else ", not pushed"
        lines.append(f"  {one.commit}  on {one.parent[:12]}, {one.files} files{pushed}: {verdict}")
    if job.problem is not None:
        lines.append(f"  {job.problem}")
    return "\n".join(lines)
