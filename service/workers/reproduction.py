"""A job's commits made again from the log, without a model, and compared by their ids.

An id covers the parent, every file of the tree, author, time and message. So the same id proves that the log has all
that the job did to the repository, and that the commit that was pushed is the one in the log.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from msgspec import Struct

from eventstore import EventStore, Views
from service.domain.errors import Forbidden, Invalid, NotFound, ServiceError, Unavailable
from service.domain.jobs.decider import Absent, BranchPushed, Committed, Job
from service.ports.docs_source import DocsSource, MergedCommit, NewCommit, Source
from service.queries.projects import get_project, source_of
from service.runtime.scratch import scratch_folder
from service.streams import JOBS, decoded

PAGE = 1000
MAX_SECONDS = 120
"""For a job that a person waits for; turns included."""
ScratchDocs = Callable[[Path], DocsSource]
"""Gives the repositories as seen from a scratch folder, which takes whatever is written."""


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
        raise NotFound(f"Job not found: {job_id}. List the jobs to see their ids.")
    return History(job_id, job.request.project_id, tuple(commits), tuple(pushed), erased)


async def rebuilt(history: History, docs: DocsSource, source: Source) -> Reproduced:
    """Rebuild each commit in turn: a later one stands on an earlier one, which is then there already."""
    await asyncio.to_thread(import_module, "service.agent.workspace")  # a service that is asked for none starts without
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
    from service.agent.workspace import Workspace

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


async def reproduced(store: EventStore, views: Views, job_id: str, through: int, docs: ScratchDocs) -> Reproduced:
    """Make the commits of a job again. Raise NotFound, and Unavailable where its project is unknown."""
    history = await history_of(store, job_id, through)
    project = await get_project(views, history.project_id)
    if project is None:
        raise Unavailable("The job's project is not in the read models.", code="project_unknown")
    with scratch_folder(Path(tempfile.gettempdir()), "docsmith-reproduce-") as folder:
        return await rebuilt(history, docs(folder), source_of(project))


class Reproducer:
    """Makes jobs again for people who wait for it, one at a time."""

    def __init__(self, store: EventStore, views: Views, docs: ScratchDocs) -> None:
        self._store, self._views, self._docs = store, views, docs
        self._turn = asyncio.Lock()

    async def reproduce(self, job_id: str) -> Reproduced:
        """Raise NotFound, and Unavailable where it took too long."""
        try:
            async with asyncio.timeout(MAX_SECONDS), self._turn:
                return await reproduced(self._store, self._views, job_id, await self._store.head(), self._docs)
        except TimeoutError:
            says = f"This took longer than {MAX_SECONDS} seconds. Use docsmith audit reproduce {job_id}."
            raise Unavailable(says, code="timed_out") from None
