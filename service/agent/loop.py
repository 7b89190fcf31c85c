"""A job's loop of model and tools, and what follows it: checks, commit, push, pull request.

Both functions start from any recorded state and record every step before they rely on it. So a job whose process died
goes on from its last step: a reply that was paid for is never asked again, and a repeated push or pull request finds
what the first one left.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Protocol

from msgspec import Struct

from service.agent import conversation, gates, pull_request
from service.agent.asking import ask
from service.agent.links import Links
from service.agent.tools import Outcome, Toolbox, bounded
from service.agent.workspace import Workspace
from service.domain.errors import Conflict, Invalid, NotFound, ServiceError
from service.domain.jobs import (
    ChecksReported,
    CompleteJob,
    Finished,
    JobCommand,
    ModelReplied,
    OpenWorkspace,
    Problem,
    RecordChecks,
    RecordCommit,
    RecordFinish,
    RecordPullRequest,
    RecordPush,
    RecordToolResult,
    Running,
    ToolReturned,
    Work,
)
from service.domain.model import ToolCall
from service.ports.code_host import CodeHost, NewPullRequest
from service.ports.docs_source import DocsSource, NewCommit, Source
from service.ports.model import Model
from service.ports.search_index import SearchIndex

MAX_CHECK_ROUNDS = 3
"""How often the checks' findings go back to the model."""
MAX_CALLS_OF_A_REPLY = 400

Clock = Callable[[], datetime]


class Budgets(Struct, frozen=True):
    """What one job may use. Looked at before each call of the model, so the last call may go beyond."""

    steps: int = 100
    """Calls of the model."""
    tokens: int = 4_000_000
    """In and out together."""
    cost_usd: float | None = 10.0
    """Counts only where the price is known; None or 0 is no limit."""
    minutes: float = 60.0
    """Of one attempt: time in which the service was down is not the job's fault."""
    reply_tokens: int = 16_384


class BudgetExhausted(ServiceError):
    """The job has used up its steps, tokens, money or minutes before it was done."""

    code = "budget_exhausted"


class Recorder(Protocol):
    @property
    def job_id(self) -> str: ...

    async def record(self, command: JobCommand) -> Running | Finished:
        """Record what the command leads to; gives the job's state after it.

        Raises Conflict when the job has ended meanwhile, or another instance has taken it up.
        """


async def work(
    state: Running,
    *,
    model: Model,
    docs: DocsSource,
    source: Source,
    index: SearchIndex | None,
    domain: str,
    recorder: Recorder,
    now: Clock,
    budgets: Budgets,
    on_text: Callable[[str], None] | None = None,
) -> Running:
    """From any recorded state to work that has passed the checks, or was let pass with what they found.

    Raises:
        BudgetExhausted: ``budget_exhausted``.
        Invalid: the branch is the one that the pull request would go to (``branch_is_base``).
        ServiceError: the model refuses (``model_refused``); a secret stayed in the changes (``secret_in_changes``).
        Unavailable, Forbidden, NotFound, Conflict: as the ports raise them.
    """
    if state.work.remaining_problems is not None:
        return state
    started = now()
    state, workspace = await _opened(state, docs, source, recorder, now)
    links = Links(workspace)
    toolbox = Toolbox(workspace, links, index, domain)
    repository = await conversation.facts(workspace, await model.window_tokens())
    while True:
        state = await _answered(state, toolbox, workspace, recorder, now)
        if state.work.finish is None and (said := _last_word(state.work)) is not None:
            summary = said or "The model ended its turn without a word."
            state = _running(await recorder.record(RecordFinish(state.request.title, summary, now())))
        if state.work.finish is None:
            _check_budgets(state.work, budgets, now() - started)
            reply = await ask(
                state, model=model, repository=repository, reply_tokens=budgets.reply_tokens, now=now, on_text=on_text
            )
            state = _running(await recorder.record(reply))
            continue
        state = await _checked(state, workspace, links, recorder, now, budgets, now() - started)
        if state.work.remaining_problems is not None:
            return state


async def publish(
    state: Running,
    *,
    docs: DocsSource,
    source: Source,
    host: CodeHost,
    recorder: Recorder,
    now: Clock,
    author: str,
) -> Running | Finished:
    """What passed the checks becomes one commit, one branch, one pull request; or nothing, when nothing changed.

    Raises:
        Conflict: the branch has moved (``branch_moved``) or is protected; the code host refuses the pull request.
        Forbidden, NotFound, Unavailable, Invalid: as the ports raise them.
    """
    request, finish = state.request, state.work.finish
    if finish is None or state.work.remaining_problems is None:
        raise Conflict("The work is not done yet.")
    if state.work.pull_request is not None:
        return await recorder.record(CompleteJob(finish.summary, now()))
    state, workspace = await _opened(state, docs, source, recorder, now)
    changes = await workspace.effective_changes()
    if not changes:
        return await recorder.record(CompleteJob(finish.summary, now()))
    state = await _committed(state, workspace, changes, docs, source, recorder, now, author)
    made = state.work.commit
    assert made is not None
    if state.work.pushed is None:
        await docs.push(source, branch=request.branch, commit=made.commit)
        state = _running(await recorder.record(RecordPush(request.branch, made.commit, now())))
    opened = await host.open_pull_request(
        source,
        NewPullRequest(
            title=pull_request.title(finish.title),
            body=await pull_request.body(state, workspace, changes, recorder.job_id),
            head=request.branch,
            base=request.ref,
            draft=request.as_draft,
        ),
    )
    await recorder.record(RecordPullRequest(opened.number, opened.url, now()))
    return await recorder.record(CompleteJob(finish.summary, now()))


async def _committed(
    state: Running,
    workspace: Workspace,
    changes: Mapping[str, str | None],
    docs: DocsSource,
    source: Source,
    recorder: Recorder,
    now: Clock,
    author: str,
) -> Running:
    """The commit, recorded before anything leaves the house, and in our clone: written anew if that was lost."""
    recorded, finish = state.work.commit, state.work.finish
    assert finish is not None
    if recorded is not None:
        new = NewCommit(recorded.parent, changes, recorded.author, recorded.message, recorded.committed_at)
        written = await docs.write_commit(source, new)
        if written.commit != recorded.commit:
            raise Conflict("The recorded changes do not give the recorded commit.", code="commit_differs")
        return state
    message = pull_request.commit_message(finish.title, finish.summary, recorder.job_id)
    new = NewCommit(workspace.commit, changes, author, message, now().astimezone(UTC).replace(microsecond=0))
    written = await docs.write_commit(source, new)
    return _running(
        await recorder.record(
            RecordCommit(written.commit, written.tree, new.parent, new.author, new.message, now=new.at)
        )
    )  # fmt: skip


async def _opened(
    state: Running, docs: DocsSource, source: Source, recorder: Recorder, now: Clock
) -> tuple[Running, Workspace]:
    request = state.request
    if request.branch == request.ref:
        sentence = f"The branch to work on, {request.branch}, is the one that the pull request would go to."
        raise Invalid(sentence, code="branch_is_base")
    commit = state.work.base_commit
    if commit is not None:
        try:
            return state, await Workspace.open(docs, source, commit, state.work.changes)
        except NotFound:
            pass  # our clone is derived data and may be gone: fetch, and look again
    fetched = await docs.fetch(source, branch=request.branch)
    if commit is None:
        on_branch = fetched.branch_commit if request.branch_named else None
        commit = on_branch or fetched.base_commit
        state = _running(await recorder.record(OpenWorkspace(commit, now())))
    return state, await Workspace.open(docs, source, commit, state.work.changes)


async def _answered(state: Running, toolbox: Toolbox, workspace: Workspace, recorder: Recorder, now: Clock) -> Running:
    """Every call of the last reply has its result: in order, since a later one builds on an earlier one's changes."""
    waiting = state.work.unanswered_calls()
    for call in waiting:
        outcome = await _outcome(call, state.work, toolbox)
        state = _running(
            await recorder.record(
                RecordToolResult(
                    call.id,
                    call.name,
                    outcome.result,
                    outcome.is_error,
                    now(),
                    changes=outcome.changes,
                    todos=outcome.todos,
                    finished=outcome.finished,
                )
            )
        )
        workspace.apply(outcome.changes)
    return state


async def _outcome(call: ToolCall, done: Work, toolbox: Toolbox) -> Outcome:
    answered = _answered_calls_of_last_reply(done)
    if len(answered) >= MAX_CALLS_OF_A_REPLY:
        return Outcome(f"A reply may call at most {MAX_CALLS_OF_A_REPLY} tools; call this one again.", is_error=True)
    if call.name == "finish" and any(result.is_error for result in answered):
        return Outcome("Not finished: an earlier call of the same reply failed. See to that first.", is_error=True)
    return await toolbox.run(call)


def _answered_calls_of_last_reply(done: Work) -> list[ToolReturned]:
    answered: list[ToolReturned] = []
    for step in reversed(done.transcript):
        if not isinstance(step, ToolReturned):
            break
        answered.append(step)
    return answered


def _last_word(done: Work) -> str | None:
    """The text of a reply that ended the model's turn without calling a tool; an empty one does so the second time."""
    last, before = done.transcript[-1:], done.transcript[-2:-1]
    match last, before:
        case (ModelReplied(text=text, tool_calls=(), cut_off=False),), _ if text.strip():
            return text.strip()
        case (ModelReplied(tool_calls=(), cut_off=False),), (ModelReplied(tool_calls=()),):
            return ""
        case _:
            return None


def _check_budgets(done: Work, budgets: Budgets, spent: timedelta) -> None:
    reason = _used_up(done, budgets, spent)
    if reason:
        raise BudgetExhausted(f"The job was stopped: it used up {reason}.")


def _used_up(done: Work, budgets: Budgets, spent: timedelta) -> str:
    if sum(isinstance(step, ModelReplied) for step in done.transcript) >= budgets.steps:
        return f"its {budgets.steps} steps"
    if done.usage.input_tokens + done.usage.output_tokens >= budgets.tokens:
        return f"its {budgets.tokens} tokens"
    if budgets.cost_usd is not None and (done.usage.cost_usd or 0) >= budgets.cost_usd > 0:
        return f"its {budgets.cost_usd:.2f} US dollars"
    if spent >= timedelta(minutes=budgets.minutes):
        return f"its {budgets.minutes:g} minutes"
    return ""


async def _checked(
    state: Running,
    workspace: Workspace,
    links: Links,
    recorder: Recorder,
    now: Clock,
    budgets: Budgets,
    spent: timedelta,
) -> Running:
    """The gates' findings go back to the model, or into the record when it could not or would not mend them."""
    problems = await gates.check(workspace, links)
    may_return = (
        problems
        and state.work.check_rounds < MAX_CHECK_ROUNDS
        and not _used_up(state.work, budgets, spent)
        and not _reported_before(state.work, problems)
    )
    if may_return:
        return _running(await recorder.record(RecordChecks(problems, returned=True, now=now())))
    if secrets := [problem for problem in problems if problem.gate == "secrets"]:
        sentence = f"{secrets[0].path} would publish a secret: {secrets[0].message}"
        raise ServiceError(bounded(sentence, 500), code="secret_in_changes")
    return _running(await recorder.record(RecordChecks(problems, returned=False, now=now())))


def _reported_before(done: Work, problems: tuple[Problem, ...]) -> bool:
    last = next((step for step in reversed(done.transcript) if isinstance(step, ChecksReported)), None)
    return last is not None and last.problems == problems


def _running(state: Running | Finished) -> Running:
    if not isinstance(state, Running):
        raise Conflict("The job has ended.")
    return state
