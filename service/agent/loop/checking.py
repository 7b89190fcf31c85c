"""The checks of finished work: their problems go back to the model a few times, and then into the record."""

from service.agent import sources
from service.agent.checks import conflicts, gates
from service.agent.checks.links.links import Links
from service.agent.loop.job_context import JobContext
from service.agent.loop.rounds import whole
from service.agent.merging.base import set_aside
from service.agent.tools import external
from service.agent.tools.results import bounded
from service.agent.workspace import Workspace
from service.domain.errors import Conflict, NotFound, ServiceError
from service.domain.jobs.decider import ChecksReported, Problem, RecordChecks, Running, Work, WorkRebased

MAX_CHECK_ROUNDS = 3
"""How often the checks' problems go back to the model."""


async def checked(
    state: Running, workspace: Workspace, links: Links, context: JobContext, *, may_return: bool, facts: str
) -> Running:
    """Record the problems of finished work: for the model to correct, else as those that remain. ``facts``: what its
    prompt says of the repository.

    A question to the caller, or a model that is stuck, ends the work whatever the checks find.

    A merge whose conflicts remain is set aside: the work then goes on without it, and is to be checked again.

    Raises:
        ServiceError: a secret would be published (``secret_in_changes``).
        Conflict: conflicts with what others pushed to the branch remain (``branch_moved``).
    """
    problems = await _problems(state, workspace, links, context, facts)
    finish = state.work.finish
    is_done = finish is None or finish.ending == "done"
    rounds_left = may_return and state.work.check_rounds < MAX_CHECK_ROUNDS
    if problems and is_done and rounds_left and not _reported_before(state.work, problems):
        return await context.record(RecordChecks(problems, returned=True, now=context.now()))
    secrets = [problem for problem in problems if problem.gate == "secrets"]
    if secrets and is_done:
        sentence = f"{secrets[0].path} would publish a secret: {secrets[0].message}"
        raise ServiceError(bounded(sentence, 500), code="secret_in_changes")
    unresolved = [problem for problem in problems if problem.gate == conflicts.GATE]
    if unresolved and (finish is None or finish.ending != "asked"):
        if state.work.merge is not None:
            return await context.record(await set_aside(state, unresolved, context))
        if any(isinstance(step, WorkRebased) for step in state.work.round_steps()):
            sentence = f"Others changed {unresolved[0].path} while the job worked on it, and the conflict remains. Send"
            raise Conflict(
                f"{sentence} the job a message to repeat the work on the current files.", code="branch_moved"
            )
    problems = (*problems, *state.work.unmerged)
    return await context.record(RecordChecks(problems, returned=False, now=context.now()))


async def _problems(
    state: Running, workspace: Workspace, links: Links, context: JobContext, facts: str
) -> tuple[Problem, ...]:
    """Return the problems of the round's changes, and those of earlier rounds that the pull request still has."""
    work, texts = state.work, [*sources.texts(state.request, state.work), facts]
    asked = sources.asked(state.request, work)
    private, said = sources.private(state.request, work), _said(work)
    found = await gates.check(workspace, links, texts, asked, private=private, said=said)
    found += await external.remaining(work.transcript, workspace)
    earlier = work.rounds[-1].problems if work.rounds else ()
    if not earlier or workspace.merged is not None:  # the changes of a merge are those of the whole pull request
        return found
    try:
        every = await whole(state, workspace, context)
    except NotFound:  # the clone was made again, without that commit
        remaining = earlier
    else:
        known = {(problem.rule, problem.path) for problem in earlier}
        seen = await gates.check(every, Links(every), texts, asked, private=private, said=said)
        remaining = tuple(problem for problem in seen if (problem.rule, problem.path) in known)
    return found + tuple(problem for problem in remaining if problem not in found)


def _said(work: Work) -> dict[str, str]:
    """Return the texts for the pull request, by what they are."""
    finish = work.finish
    if finish is None:
        return {}
    return {
        "title": f"{finish.title}\n{finish.whole_title}",
        "description": f"{finish.summary}\n{finish.whole_summary}",
    }


def _reported_before(done: Work, problems: tuple[Problem, ...]) -> bool:
    last = next((step for step in reversed(done.round_steps()) if isinstance(step, ChecksReported)), None)
    return last is not None and last.problems == problems
