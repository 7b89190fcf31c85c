"""The documentation's branch merged into a job's, at the beginning of a round.

The round's workspace is then that of a merge: its base is the documentation's newest commit, and the changes are those
of the whole pull request, so that the checks see what the pull request brings to the documentation as it is now. Files
that a job may not write, and those of a very large pull request, are merged whole by the commit itself.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from service.agent.commit_files import CommitFiles
from service.agent.included import included_files
from service.agent.loop.job_context import JobContext
from service.agent.merging.files import FileMerge, Names, merge_files
from service.agent.merging.sides import Side, Sides, is_writable
from service.agent.workspace import Workspace
from service.domain.errors import Conflict, Invalid
from service.domain.jobs.decider import (
    BaseMerged,
    FileChange,
    MergedBase,
    Problem,
    Running,
    SetMergeAside,
    branch_of,
)
from service.domain.texts.comparison import Effort
from service.domain.texts.line_merge import merged, text_of
from service.ports.docs_source import Fetched, MergedCommit, NewCommit, TreeFile

MAX_CARRIED_FILES, MAX_CARRIED_CHARACTERS = 200, 3 << 20
"""Limits for the pull request's own files that are looked at again; beyond them only those that both sides changed."""
MAX_LISTINGS = 6
UNDO_STEPS = 5_000_000
_REHEARSAL = datetime(2000, 1, 1, tzinfo=UTC)


async def merge_of(state: Running, fetched: Fetched, context: JobContext) -> MergedBase | None:
    """Return the merge that a further round begins with; None when the branch has all of the documentation's commits.

    Nothing is written but objects that no branch has.
    """
    head, commit = fetched.branch_commit, fetched.base_commit
    if head is None or commit in (head, state.work.docs_commit):
        return None
    base = await _merge_base(state, head, commit, context)
    if base == commit:
        return None
    branch, ref = branch_of(state), context.source.ref
    if base is None:
        sentence = f"{branch} and {ref} have no commit in common in their newest 1,000. Merge them with git."
        return MergedBase(commit, "", problems=(Problem("conflicts", "", sentence, code="merge_conflict"),))
    sides = await _sides(context, base, head, commit)
    merge = await _planned(sides, commit, state, context)
    refused = merge.problems or await _refusal(head, MergedCommit(commit, base), merge.changes, context)
    if refused:
        return MergedBase(commit, base, problems=refused)
    changes = tuple(FileChange(path, merge.changes[path]) for path in sorted(merge.changes))
    return MergedBase(commit, base, changes=changes, conflicts=merge.conflicts)


async def open_merged(
    context: JobContext, merge: BaseMerged, head: str, changes: Mapping[str, str | None]
) -> Workspace:
    """Return the workspace of a round that began with a merge. Raise NotFound when a commit is not in our clone."""
    sides = await _sides(context, merge.merge_base, head, merge.commit)
    together = MergedCommit(merge.commit, merge.merge_base)
    files = await asyncio.to_thread(lambda: CommitFiles(_merged_whole(sides, changes)))
    texts = context.known.texts
    return Workspace(context.docs, context.source, head, files, changes, merged=together, texts=texts)


async def set_aside(state: Running, unresolved: Sequence[Problem], context: JobContext) -> SetMergeAside:
    """Return the command to go on without the merge: what the job itself wrote since is put on its own branch."""
    merge, head = state.work.merge, state.work.base_commit
    assert merge is not None
    assert head is not None
    sides = await _sides(context, merge.merge_base, head, merge.commit)
    before = (await _planned(sides, merge.commit, state, context)).changes
    await sides.load(state.work.changes)
    changes, lost = await asyncio.to_thread(_without_merge, sides, before, state.work.changes)
    branch, ref = branch_of(state), context.source.ref
    found = [
        Problem("conflicts", path, f"{ref} cannot be merged: it and {branch} both changed this file, and the job did"
                " not resolve the conflict. Send it a message that says which text to keep.", code="merge_conflict")
        for path in dict.fromkeys(problem.path for problem in unresolved)
    ]  # fmt: skip
    found += [
        Problem("conflicts", path, "The job's change of this file was left out, since it stands on what was not"
                " merged.", code="merge_conflict")
        for path in lost
    ]  # fmt: skip
    return SetMergeAside(tuple(found), tuple(changes), context.now())


async def _merge_base(state: Running, head: str, commit: str, context: JobContext) -> str | None:
    """Return the commit that both branches come from: as the log has it where no one else pushed to the branch."""
    work = state.work
    if work.docs_commit and work.rounds and work.rounds[-1].commit.commit == head:
        return work.docs_commit
    found = await context.docs.merge_base(context.source, branch=branch_of(state), commit=head, base_commit=commit)
    return found or work.docs_commit or None


async def _sides(context: JobContext, base: str, head: str, commit: str) -> Sides:
    return Sides(*[await _side(context, one) for one in (base, head, commit)])


async def _side(context: JobContext, commit: str) -> Side:
    listings = context.listings
    if commit not in listings:
        if len(listings) >= MAX_LISTINGS:
            listings.clear()
        listings[commit] = await context.docs.list_files(context.source, commit)
    return Side(context.docs, context.source, listings[commit])


async def _planned(sides: Sides, commit: str, state: Running, context: JobContext) -> FileMerge:
    """Return the merge of the files that both sides changed, with the pull request's own files."""
    folder = context.source.docs_folder
    included = await included_files(await Workspace.open(context.docs, context.source, commit, {}, known=context.known))

    def may_write(path: str) -> bool:
        return is_writable(path, folder) or path in included

    merge = await merge_files(sides, Names(branch_of(state), context.source.ref), may_write)
    own = [path for path in await asyncio.to_thread(sides.changed_in, sides.ours) if may_write(path)]
    own = [path for path in own if path not in merge.changes and sides.ours.blob(path) != sides.theirs.blob(path)]
    if merge.problems or len(own) > MAX_CARRIED_FILES:
        return merge
    await sides.ours.load(own)
    carried = {path: sides.ours.text(path) for path in own if sides.ours.is_text_or_absent(path)}
    if sum(len(text or "") for text in carried.values()) > MAX_CARRIED_CHARACTERS:
        return merge
    return FileMerge({**carried, **merge.changes}, merge.conflicts)


async def _refusal(
    head: str, merge: MergedCommit, changes: Mapping[str, str | None], context: JobContext
) -> tuple[Problem, ...]:
    """Return why git does not take the merge: links, submodules, or a file where the other side has a folder."""
    rehearsal = NewCommit(head, changes, "Rehearsal <rehearsal@localhost>", "Rehearsal\n", _REHEARSAL, merge)
    try:
        await context.docs.write_commit(context.source, rehearsal)
    except (Conflict, Invalid) as error:
        return (Problem("conflicts", "", f"The branches cannot be merged: {error}", code="merge_conflict"),)
    return ()


def _merged_whole(sides: Sides, changes: Mapping[str, str | None]) -> list[TreeFile]:
    """Return the files that the workspace begins with: the documentation's, and those of the pull request that are
    not among the changes.
    """
    base, ours, theirs = sides.base.files, sides.ours.files, sides.theirs.files
    found = []
    for path in sorted(ours.keys() | theirs.keys()):
        is_theirs = path in changes or ours.get(path) == base.get(path)
        kept = theirs.get(path) if is_theirs else ours.get(path)
        if kept is not None:
            found.append(kept)
    return found


def _without_merge(
    sides: Sides, before: Mapping[str, str | None], now: Mapping[str, str | None]
) -> tuple[list[FileChange], list[str]]:
    """Return the changes over the job's own branch, and the files whose changes cannot be put there."""
    effort = Effort(UNDO_STEPS)
    changes: list[FileChange] = []
    lost: list[str] = []
    for path, text in sorted(now.items()):
        own, was = sides.ours.text(path), before[path] if path in before else sides.theirs.text(path)
        if text in (was, own):
            changes.append(FileChange(path, own if text == was else text))
        elif was == own or was is None or text is None or own is None:
            changes.append(FileChange(path, text))
        elif (both := text_of(merged(was, text, own, effort))) is not None:
            changes.append(FileChange(path, both))
        else:
            changes.append(FileChange(path, own))
            lost.append(path)
    return changes, lost
