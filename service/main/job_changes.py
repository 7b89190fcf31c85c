"""The changes that a job has made so far, compared with the documentation that it began from, on any code host."""

from collections.abc import Mapping

from eventstore import EventStore, SubjectErased, load
from service.adapters.hosted.diff import FILES_PER_PAGE, MAX_LISTED_BYTES, diff_of_texts
from service.cli.runtime import Runtime
from service.domain.errors import ServiceError
from service.domain.jobs.decider import Absent, Work, job_not_found
from service.ports.code_host import ComparedChanges
from service.ports.docs_source import DocsSource, Source
from service.queries.projects import source_of
from service.runtime.processes import run_in_child
from service.streams import JOBS
from service.views.projects import ProjectView

COMPARING_SECONDS, COMPARING_BYTES = 60.0, 1024 * 1024 * 1024


class JobChanges:
    def __init__(self, runtime: Runtime) -> None:
        self._store: EventStore = runtime.store
        self._docs: DocsSource = runtime.docs

    async def read(self, project: ProjectView, job_id: str) -> ComparedChanges:
        """Return the files that the job changed, all rounds of its branch together. Raise NotFound.

        Raises Unavailable and Invalid where comparing takes too much time or memory.
        """
        try:
            state = (await load(self._store, JOBS, job_id, may_be_old=True)).state
        except SubjectErased:
            return ComparedChanges((), is_readable=False)
        if isinstance(state, Absent):
            raise job_not_found()
        changes, base = _changes_of(state.work), state.work.docs_commit or state.work.base_commit
        if not changes or base is None:
            return ComparedChanges(())
        paths = sorted(changes)[:FILES_PER_PAGE]
        try:
            before = await self._before(source_of(project), base, paths)
        except ServiceError:  # our clone is derived data: the commit may be gone from it
            return ComparedChanges((), is_readable=False)
        texts, left = [], MAX_LISTED_BYTES
        for path in paths:
            content = changes[path]
            after = None if content is None else content.encode("utf-8", "replace")
            if before.get(path) == after:
                continue
            left -= len(before.get(path) or b"") + len(after or b"")
            if left < 0:
                break
            texts.append((path, before.get(path), after))
        files = await run_in_child(
            diff_of_texts, texts, timeout_seconds=COMPARING_SECONDS, memory_bytes=COMPARING_BYTES
        )
        return ComparedChanges(files, is_cut=len(changes) > FILES_PER_PAGE or left < 0)

    async def _before(self, source: Source, commit: str, paths: list[str]) -> Mapping[str, bytes]:
        wanted = set(paths)
        blobs = {file.path: file.blob for file in await self._docs.list_files(source, commit) if file.path in wanted}
        contents = await self._docs.read_files(source, list(blobs.values()))
        return {path: contents[blob] for path, blob in blobs.items() if blob in contents}


def _changes_of(work: Work) -> dict[str, str | None]:
    changed: dict[str, str | None] = {}
    for done in work.rounds:
        changed |= done.changes
    return changed | work.changes
