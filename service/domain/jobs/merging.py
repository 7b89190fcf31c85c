"""The commits that a round's changes stand on: where it begins, a merge, and another commit than before."""

from collections.abc import Iterable

from service.domain.errors import Conflict
from service.domain.jobs.commands import OpenWorkspace, Rebase, SetMergeAside
from service.domain.jobs.events import (
    BaseMerged,
    BaseNotMerged,
    BranchChanged,
    FileChange,
    FileChanged,
    JobEvent,
    WorkRebased,
    WorkspaceOpened,
)
from service.domain.jobs.states import Work


def workspace_opened(command: OpenWorkspace) -> list[JobEvent]:
    """Return the beginning of a round: with a merge of the documentation's branch, or with why there is none."""
    base, merge, now = command.base_commit, command.merge, command.now
    opened: list[JobEvent] = [BranchChanged(command.branch, changed_at=now)] if command.branch else []
    opened.append(WorkspaceOpened(base, opened_at=now, docs_commit=command.docs_commit))
    if merge is None:
        return opened
    if merge.problems:
        return [*opened, BaseNotMerged(merge.problems, recorded_at=now)]
    merged = BaseMerged(base, merge.commit, merge.base, merged_at=now, conflicts=merge.conflicts)
    return [*opened, merged, *changed(merge.changes)]


def merge_set_aside(command: SetMergeAside, work: Work) -> list[JobEvent]:
    """Return the end of a merge whose conflicts remain; nothing while a message waits, which may say what to keep."""
    if work.merge is None or work.commit is not None:
        raise Conflict("There is no merge to set aside.")
    return [] if work.waiting else [BaseNotMerged(command.problems, recorded_at=command.now), *changed(command.changes)]


def rebased(command: Rebase, work: Work) -> list[JobEvent]:
    """Return the work on another commit; nothing when it stands there already."""
    if work.pushed is not None or work.base_commit is None:
        raise Conflict("Work that is pushed, or has not begun, cannot be put on another commit.")
    instead_of = work.commit.parent if work.commit else work.base_commit
    if instead_of == command.onto:
        return []
    moved = WorkRebased(command.onto, instead_of, rebased_at=command.now, conflicts=command.conflicts)
    return [moved, *changed(command.changes)]


def changed(changes: Iterable[FileChange]) -> list[JobEvent]:
    return [FileChanged(change.path, change.content) for change in changes]
