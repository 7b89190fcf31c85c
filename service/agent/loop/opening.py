"""Where a round of a job begins: on which branch, and on which of its commits."""

from service.agent.loop.job_context import JobContext
from service.agent.merging.base import merge_of, open_merged
from service.agent.workspace import Workspace
from service.domain.errors import Conflict, Invalid, NotFound, depending_on
from service.domain.jobs.decider import OpenWorkspace, Running, branch_of
from service.ports.docs_source import Fetched

MAX_BRANCHES_TRIED = 50


async def open_workspace(state: Running, context: JobContext) -> tuple[Running, Workspace]:
    """Return the workspace of the round that is under way; begin the round when it has not begun.

    A round goes on where the branch ends now, also when others moved it, and begins with a merge of what the
    documentation's branch has more. When the pull request of that branch is merged
    or closed, the round begins at the documentation's own branch, on a new branch for a new pull request.

    Raises:
        Invalid: the branch is the one that the pull request would go to (``branch_is_base``).
        Forbidden, NotFound, Unavailable, Conflict: as the ports raise them.
    """
    if branch_of(state) == context.source.ref:
        sentence = f"The branch to work on, {branch_of(state)}, is the one that the pull request would go to."
        raise Invalid(sentence, code="branch_is_base")
    if state.work.base_commit is None:
        state = await context.record(await _beginning(state, context))
    commit = state.work.base_commit
    assert commit is not None
    try:
        return state, await _opened(state, commit, context)
    except NotFound:  # our clone is derived data and may be gone: fetch, and look again
        await context.docs.fetch(context.source, branch=branch_of(state))
        return state, await _opened(state, commit, context)


async def _opened(state: Running, commit: str, context: JobContext) -> Workspace:
    if state.work.merge is not None:
        return await open_merged(context, state.work.merge, commit, state.work.changes)
    return await Workspace.open(context.docs, context.source, commit, state.work.changes, known=context.known)


async def _beginning(state: Running, context: JobContext) -> OpenWorkspace:
    work = state.work
    if work.pull_request is not None and not await _is_open(state, context):
        branch, fetched = await _free_branch(state, context)
        return OpenWorkspace(fetched.base_commit, context.now(), branch=branch, docs_commit=fetched.base_commit)
    fetched = await context.docs.fetch(context.source, branch=branch_of(state))
    goes_on = bool(work.rounds) or work.pull_request is not None
    if fetched.branch_commit is None or not (goes_on or state.request.branch_named):
        return OpenWorkspace(fetched.base_commit, context.now(), docs_commit=fetched.base_commit)
    merge = await merge_of(state, fetched, context) if goes_on else None
    return OpenWorkspace(fetched.branch_commit, context.now(), merge=merge)


async def _is_open(state: Running, context: JobContext) -> bool:
    opened = state.work.pull_request
    if opened is None or state.work.pull_request_outcome is not None:
        return False
    try:
        with depending_on("code_host"):
            return (await context.host.get_pull_request(context.source, opened.number)).state == "open"
    except NotFound:
        return False


async def _free_branch(state: Running, context: JobContext) -> tuple[str, Fetched]:
    """``<the job's branch>-<number>``, the first that is not there."""
    for number in range(2, 2 + MAX_BRANCHES_TRIED):
        branch = f"{state.request.branch}-{number}"
        fetched = await context.docs.fetch(context.source, branch=branch)
        if fetched.branch_commit is None:
            return branch, fetched
    raise Conflict(f"Every branch from {state.request.branch}-2 on is taken.", code="branch_moved")
