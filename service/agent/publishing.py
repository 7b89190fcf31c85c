"""Publish a round's changes as one commit on one branch, in one pull request.

Each outside effect is recorded before the next begins, and is looked for before it is repeated. When others move the
branch meanwhile, the changes are put on their commit, and files that both changed are merged by lines. That is recorded
too, so the log still reproduces the commit that was pushed.
"""

import asyncio
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from hashlib import sha1

from service.agent import pull_request
from service.agent.checks.links.links import Links
from service.agent.citations import sources
from service.agent.loop.job_context import JobContext
from service.agent.loop.opening import open_workspace
from service.agent.loop.rounds import whole
from service.agent.merging.files import Names
from service.agent.merging.moved import rebased
from service.agent.workspace import Workspace
from service.domain.errors import Conflict, NotFound, Unavailable, depending_on
from service.domain.jobs.decider import (
    CompleteJob,
    Finished,
    Problem,
    RecordCommit,
    RecordPullRequest,
    RecordPush,
    Running,
    WorkFinished,
    branch_of,
    is_unfinished,
)
from service.ports.code_host import NewPullRequest
from service.ports.docs_source import NewCommit, TreeFile

MAX_PUSHES = 4
MAX_REBASES = 4
"""Limit for rebases in one round: a branch that moves faster is left to the people who move it."""


async def publish(state: Running, context: JobContext) -> Running | Finished:
    """Hand in what passed the checks; nothing, when nothing changed. Safe to repeat from any recorded state.

    Still running afterwards when there is more to do: a message came meanwhile, or the work was put on another commit,
    where it is to be checked again.

    Raises:
        Conflict: others changed the same files on the branch (``branch_moved``); it is protected; the code host
            refuses the pull request.
        Forbidden, NotFound, Unavailable, Invalid: as the ports raise them.
    """
    finish = state.work.finish
    if finish is None or state.work.remaining_problems is None:
        raise Conflict("The work is not done yet.")
    if not state.work.presented and _is_publishable(finish, state.work.remaining_problems):
        state, workspace = await open_workspace(state, context)
        publication = _Publication(context)
        state, workspace, is_there = await publication.pushed(state, workspace)
        if state.work.finish is None or state.work.remaining_problems is None:
            return state
        work = state.work
        if is_there or (work.rounds and work.pull_request is None) or (work.unmerged and work.pull_request):
            state = await publication.presented(state, workspace)
    return await context.recorder.record(CompleteJob(_closing_words(finish, state.work.unmerged), context.now()))


def _closing_words(finish: WorkFinished, unmerged: Sequence[Problem]) -> str:
    """Return the summary, with the files that keep the documentation's branch from being merged."""
    unnamed = [problem for problem in unmerged if not problem.path or problem.path not in finish.summary]
    lines = [f"- {f'{problem.path}: ' if problem.path else ''}{problem.message}" for problem in unnamed]
    return "\n".join([finish.summary, "", *lines]) if lines else finish.summary


def _is_publishable(finish: WorkFinished, problems: Sequence[Problem]) -> bool:
    """Return whether changes go into a pull request. Those of a job that asks its caller are kept for the answer, as
    are those of one that is stuck, when they have errors.
    """
    match finish.ending:
        case "done":
            return True
        case "asked":
            return False
        case "stuck":
            return not any(problem.is_error for problem in problems)


class _Publication:
    def __init__(self, context: JobContext) -> None:
        self._context, self._docs, self._source = context, context.docs, context.source

    async def pushed(self, state: Running, workspace: Workspace) -> tuple[Running, Workspace, bool]:
        """The round's commit on its branch; False when there is nothing to commit.

        Not so, yet without an error, when a message came before there was a commit: the round has no finish then. Nor
        when it was put on another commit: what remains of its problems is unknown then.
        """
        changes = await workspace.committed_changes()
        if not changes and workspace.merged is None:
            return state, workspace, False
        if state.work.commit is None:
            state, workspace, is_there = await self._on_head(state, workspace, changes)
            if is_there or state.work.remaining_problems is None:
                return state, workspace, is_there
        for _ in range(MAX_PUSHES):
            changes = await workspace.committed_changes()
            if not changes and workspace.merged is None:  # the documentation's own branch has them by now
                return state, workspace, False
            state = await self._committed(state, workspace, changes)
            commit, branch = state.work.commit, branch_of(state)
            if commit is None:
                return state, workspace, False
            is_there = state.work.pushed is not None
            if not is_there:
                try:
                    await self._push(branch, commit.commit)
                    is_there = True
                except Conflict as error:
                    if error.code != "branch_moved":
                        raise
                    state, workspace, is_there = await self._on_head(state, workspace, changes)
                    if not is_there and state.work.remaining_problems is None:
                        return state, workspace, False
            if is_there:
                pushed = RecordPush(branch, commit.commit, self._context.now())
                return await self._context.record(pushed), workspace, True
        raise _moves_on(branch_of(state))

    async def _push(self, branch: str, commit: str) -> None:
        """Push the commit. When the answer is lost, look whether the server took it."""
        await self._context.recorder.confirm()
        try:
            await self._docs.push(self._source, branch=branch, commit=commit)
        except Unavailable as lost:
            with suppress(Unavailable):
                if (await self._docs.fetch(self._source, branch=branch)).branch_commit == commit:
                    return
            raise lost from None

    async def presented(self, state: Running, workspace: Workspace) -> Running:
        """The pull request has the round's words: the one that is open, else a new one."""
        finish, request, known = state.work.finish, state.request, state.work.pull_request
        assert finish is not None
        rounds, problems = state.work.rounds, state.work.remaining_problems or ()
        if state.work.commit is None and rounds:  # the round added nothing
            title = pull_request.title(rounds[-1].finish, rounds[:-1])
        else:
            title = pull_request.title(finish, rounds)
        try:
            every, is_whole = await whole(state, workspace, self._context), True
            changes: Mapping[str, str | None] = await every.effective_changes()
        except NotFound:
            every, is_whole = workspace, False
            changes = {path: text for done in rounds for path, text in done.changes.items()}
            changes |= await workspace.effective_changes()
        read = await sources(state, every, changes, self._context, is_whole=is_whole)
        job_id, mention = self._context.recorder.job_id, self._context.mention
        moved = await Links(every).moved()
        body = await pull_request.body(state, every, changes, job_id, read, moved=moved, mention=mention)
        unfinished = is_unfinished(finish, problems)
        was_draft = state.work.was_unmerged or (bool(rounds) and rounds[-1].is_unfinished)
        mended = was_draft and not request.as_draft
        draft = True if unfinished else False if mended else None  # else a person's choice is left alone
        host, shown = self._context.host, None
        await self._context.recorder.confirm()
        with depending_on("code_host"):
            if known is not None:
                with suppress(NotFound, Conflict):  # merged or closed since the round began
                    shown = await host.update_pull_request(
                        self._source, known.number, title=title, body=body, draft=draft
                    )
            if shown is None:
                as_draft = request.as_draft or unfinished
                new = NewPullRequest(title, body, head=branch_of(state), base=self._source.ref, draft=as_draft)
                shown = await host.open_pull_request(self._source, new)
                if unfinished and not shown.draft:  # another one that was open for the branch
                    shown = await host.update_pull_request(
                        self._source, shown.number, title=shown.title, body=shown.body, draft=True
                    )
        return await self._context.record(RecordPullRequest(shown.number, shown.url, self._context.now(), title))

    async def _committed(self, state: Running, workspace: Workspace, changes: Mapping[str, str | None]) -> Running:
        """Record the commit before any push, and write it to our clone; write it again if the clone was lost."""
        recorded, finish = state.work.commit, state.work.finish
        if recorded is not None:
            new = NewCommit(
                recorded.parent, changes, recorded.author, recorded.message, recorded.committed_at, workspace.merged
            )
            written = await self._docs.write_commit(self._source, new)
            if written.commit != recorded.commit:
                raise Conflict("The recorded changes do not give the recorded commit.", code="commit_differs")
            return state
        if finish is None:
            return state
        message = pull_request.commit_message(finish.title, finish.summary, self._context.recorder.job_id)
        at = self._context.now().astimezone(UTC).replace(microsecond=0)
        merged = workspace.merged
        new = NewCommit(workspace.commit, changes, self._context.author, message, at, merged)
        written = await self._docs.write_commit(self._source, new)
        command = RecordCommit(
            written.commit, written.tree, new.parent, new.author, new.message, now=new.at,
            merged=merged.commit if merged else "", merge_base=merged.base if merged else "",
        )  # fmt: skip
        return await self._context.record(command)

    async def _on_head(
        self, state: Running, workspace: Workspace, changes: Mapping[str, str | None]
    ) -> tuple[Running, Workspace, bool]:
        """Return the changes on the commit where the branch ends now (that of the documentation, while the branch does
        not exist), and whether the branch has all of them already.

        Files that both sides changed are merged by lines; where that leaves conflicts, the work goes back to the model.

        Raises Conflict ``branch_moved``: others changed one of the same files, which is no text.
        """
        branch = branch_of(state)
        fetched = await self._docs.fetch(self._source, branch=branch)
        head = fetched.branch_commit or fetched.base_commit
        if head == workspace.commit:
            return state, workspace, False
        if fetched.branch_commit and await self._is_in(state, workspace, head, changes):
            return state, workspace, True
        if state.work.rebases >= MAX_REBASES:
            raise _moves_on(branch)
        names = Names("this job", branch if fetched.branch_commit else self._source.ref)
        state = await self._context.record(await rebased(workspace, head, names, self._context))
        state, workspace = await open_workspace(state, self._context)
        return state, workspace, False

    async def _is_in(self, state: Running, workspace: Workspace, head: str, changes: Mapping[str, str | None]) -> bool:
        """Return whether the head of the branch has all of the changes."""
        if workspace.merged is not None:
            recorded = state.work.commit.commit if state.work.commit else ""
            return bool(recorded) and recorded == await self._docs.merge_base(
                self._source, branch=branch_of(state), commit=recorded, base_commit=head
            )
        files = await self._docs.list_files(self._source, head)
        after = await asyncio.to_thread(_blobs, files, changes)
        ours = await asyncio.to_thread(_written, changes)
        return all(after.get(path) == blob for path, blob in ours.items())


def _moves_on(branch: str) -> Conflict:
    sentence = f"{branch} moved each time that the job pushed to it. Send the job a message to try again."
    return Conflict(sentence, code="branch_moved")


def _blobs(files: Sequence[TreeFile], paths: Container[str]) -> dict[str, str]:
    """Return the blobs of some of a commit's files, by path."""
    return {file.path: file.blob for file in files if file.path in paths}


def _written(changes: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return git's ids of the changed files' contents, by path; None for a deleted file."""
    contents = {path: None if text is None else text.encode() for path, text in changes.items()}
    return {
        path: None if content is None else sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324
        for path, content in contents.items()
    }
