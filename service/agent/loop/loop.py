"""A job's loop of model and tools, up to work that has passed the checks; ``publishing.py`` hands it in.

It starts from any recorded state and records every step before it relies on it. So a job whose process died goes on
from its last step, and a reply that was paid for is never asked again. A message that comes meanwhile is in the state
that the next record gives, and so in the next prompt.
"""

from service.agent import sources
from service.agent.checks.links.links import Links
from service.agent.contexts import open_contexts, shown
from service.agent.loop import conversation, rounds
from service.agent.loop.budgets import BudgetExhausted, Budgets
from service.agent.loop.checking import checked
from service.agent.loop.job_context import JobContext
from service.agent.loop.model_call import request_reply
from service.agent.loop.opening import open_workspace
from service.agent.loop.standstill import after_standstill
from service.agent.tools.results import Outcome
from service.agent.tools.toolbox import Toolbox
from service.agent.workspace import Workspace
from service.domain.errors import depending_on
from service.domain.jobs.decider import (
    ModelReplied,
    RecordToolResult,
    Running,
    ToolReturned,
    Work,
)
from service.domain.model import ToolCall

MAX_CALLS_OF_A_REPLY = 100
"""Each is read, done and recorded; models that work in parallel make some twenty."""


async def work(state: Running, context: JobContext) -> Running:
    """Continue from any recorded state until the work has passed the checks, or was accepted with their problems.

    Raises:
        BudgetExhausted: ``budget_exhausted``.
        Invalid: the branch is the one that the pull request would go to (``branch_is_base``).
        ServiceError: the model refuses (``model_refused``); a secret stayed in the changes (``secret_in_changes``).
        Conflict: others changed the same files, and the conflicts were not resolved (``branch_moved``).
        Unavailable, Forbidden, NotFound, Conflict: as the ports raise them.
    """
    if state.work.remaining_problems is not None:
        return state
    started = context.seconds()
    state, workspace = await open_workspace(state, context)
    links = Links(workspace)
    state, contexts = await open_contexts(state, context)
    toolbox = Toolbox(workspace, links, context.index, context.domain, contexts, context.link_checker)
    with depending_on("model"):
        window_tokens = await context.model.window_tokens()
    repository = await conversation.facts(workspace, window_tokens) + shown(state.work.contexts or (), contexts)
    repository += f"\n\n{conversation.task(state, context)}"
    pull_request = await rounds.so_far(state, context)
    while True:
        state = await _answered(state, toolbox, workspace, context, repository)
        if state.work.finish is None and (step := after_standstill(state, context.now)) is not None:
            state = await context.record(step)
        if state.work.finish is None:
            spent = context.seconds() - started
            _check_budgets(state.work, context.budgets, spent)
            left = context.budgets.minutes * 60 - spent
            state = await context.record(await request_reply(state, context, repository, pull_request, seconds=left))
            continue
        has_budget = not _used_up(state.work, context.budgets, context.seconds() - started)
        state = await checked(state, workspace, links, context, may_return=has_budget, facts=repository)
        if state.work.remaining_problems is not None:
            return state
        if workspace.merged is not None and state.work.merge is None:
            return await work(state, context)  # on the job's own branch, without the merge


async def _answered(
    state: Running, toolbox: Toolbox, workspace: Workspace, context: JobContext, repository: str
) -> Running:
    """Every call of the last reply has its result: in order, since a later one builds on an earlier one's changes."""
    waiting = state.work.unanswered_calls()
    for call in waiting:
        outcome = await _outcome(call, state, toolbox, repository)
        result = RecordToolResult(
            call.id, call.name, outcome.result, outcome.is_error, context.now(), changes=outcome.changes,
            todos=outcome.todos, finished=outcome.finished, asked=outcome.asked, value=outcome.value,
        )  # fmt: skip
        state = await context.record(result)
        workspace.apply(outcome.changes)
    return state


async def _outcome(call: ToolCall, state: Running, toolbox: Toolbox, repository: str) -> Outcome:
    answered = _answered_calls_of_last_reply(state.work)
    if len(answered) >= MAX_CALLS_OF_A_REPLY:
        return Outcome(f"A reply may call at most {MAX_CALLS_OF_A_REPLY} tools; call this one again.", is_error=True)
    asked = sources.asked(state.request, state.work)
    private = sources.private(state.request, state.work)
    outcome = await toolbox.run(call, [*sources.texts(state.request, state.work), repository], asked, private)
    if outcome.finished is not None and any(result.is_error for result in answered):
        return Outcome("Not finished: an earlier call of the same reply failed. See to that first.", is_error=True)
    return outcome


def _answered_calls_of_last_reply(done: Work) -> list[ToolReturned]:
    answered: list[ToolReturned] = []
    for step in reversed(done.transcript):
        if not isinstance(step, ToolReturned):
            break
        answered.append(step)
    return answered


def _check_budgets(done: Work, budgets: Budgets, spent: float) -> None:
    reason = _used_up(done, budgets, spent)
    if reason:
        raise BudgetExhausted(f"The job was stopped: it used up {reason}.")


def _used_up(done: Work, budgets: Budgets, spent: float) -> str:
    if sum(isinstance(step, ModelReplied) for step in done.round_steps()) >= budgets.steps:
        return f"its {budgets.steps} steps"
    if done.round_usage.input_tokens + done.round_usage.output_tokens >= budgets.tokens:
        return f"its {budgets.tokens} tokens"
    if budgets.cost_usd is not None and (done.round_usage.cost_usd or 0) >= budgets.cost_usd > 0:
        return f"its {budgets.cost_usd:.2f} US dollars"
    if spent >= budgets.minutes * 60:
        return f"its {budgets.minutes:g} minutes"
    return ""
