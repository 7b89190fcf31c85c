"""How an agent job stands: a fold of its events, made by ``jobs.py``."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from service.domain.jobs.comments import Review
from service.domain.jobs.events import (
    BaseMerged,
    BaseNotMerged,
    BranchPushed,
    ChecksReported,
    Committed,
    JobCompleted,
    JobFailed,
    JobReopened,
    JobRequested,
    JobWaiting,
    MessageAdded,
    ModelReminded,
    ModelReplied,
    OpenedContext,
    Problem,
    PullRequestOpened,
    PullRequestOutcome,
    ReplyLost,
    RoundStarted,
    Todo,
    ToolReturned,
    WorkFinished,
    WorkRebased,
)
from service.domain.model import ToolCall, Usage

TranscriptStep = (
    ModelReplied | ToolReturned | ChecksReported | MessageAdded | ModelReminded | JobReopened | RoundStarted
    | BaseMerged | BaseNotMerged | WorkRebased
)  # fmt: skip


class Absent(Struct, frozen=True):
    pass


class Round(Struct, frozen=True):
    """The changes that an earlier round added to the branch, and so to the pull request."""

    finish: WorkFinished
    changes: dict[str, str | None]
    commit: Committed
    problems: tuple[Problem, ...] = ()
    """Those that remained."""

    @property
    def is_unfinished(self) -> bool:
        """Whether the pull request was a draft after it, whatever the caller had asked for."""
        return is_unfinished(self.finish, self.problems)


def is_unfinished(finish: WorkFinished, problems: Sequence[Problem]) -> bool:
    """Return whether work is published as a draft only: it has errors, or the model was stuck."""
    return finish.ending != "done" or any(problem.is_error for problem in problems)


class Work(Struct, frozen=True):
    """The work that a job has done so far.

    A job is one round of work, and one more for each time that it is asked to go on after its work was handed in or
    had ended. A round makes at most one commit.
    """

    base_commit: str | None = None
    """The commit that the round's changes are based on."""
    contexts: tuple[OpenedContext, ...] | None = None
    """The context repositories as the round reads them; None as long as none were opened."""
    transcript: tuple[TranscriptStep, ...] = ()
    """The steps of all rounds, in the order in which the model sees them, after the request's own messages; of the
    checks, only those that went back to the model.
    """
    waiting: tuple[MessageAdded, ...] = ()
    """Messages that no reply in the transcript has seen: the next prompt ends with them."""
    messages: int = 0
    """How many follow-up messages there were, the waiting ones included."""
    changes: dict[str, str | None] = {}
    """The round's changes: path to content, None when deleted. The mapping is never changed in place."""
    todos: tuple[Todo, ...] = ()
    finish: WorkFinished | None = None
    """Unset again when gates or a message send the work back."""
    check_rounds: int = 0
    remaining_problems: tuple[Problem, ...] | None = None
    """Set once the gates have let the work pass, with what remains. Unset again when it is put on another commit."""
    rebases: int = 0
    """How often the round's work was put on another commit."""
    docs_commit: str = ""
    """The newest commit of the documentation's branch that is known to be part of the job's; empty: unknown."""
    merge: BaseMerged | None = None
    """The merge that the round began with: its commit has two parents, ``base_commit`` and the merge's commit."""
    unmerged: tuple[Problem, ...] = ()
    """Reasons for which the documentation's branch is not merged in this round."""
    was_unmerged: bool = False
    """The pull request is a draft since an earlier round, which could not merge the documentation's branch."""
    commit: Committed | None = None
    pushed: BranchPushed | None = None
    presented: bool = False
    """The pull request has the round's work."""
    pull_request: PullRequestOpened | None = None
    """The pull request of the branch that is worked on, whichever round opened it."""
    pull_request_outcome: PullRequestOutcome | None = None
    usage: Usage = Usage()
    lost: tuple[ReplyLost, ...] = ()
    """Replies that were paid and could not be used, since the last one that could."""
    round: int = 1
    round_usage: Usage = Usage()
    round_start: int = 0
    """Where the round begins in the transcript."""
    rounds: tuple[Round, ...] = ()
    """The earlier ones that are on the branch."""
    branch: str = ""
    """Another than the request's, for a further pull request."""
    archived_at: datetime | None = None
    runs: int = 0
    """How often it was taken up."""
    deaths: int = 0
    """How often its process died since the last step was recorded."""
    setback: JobWaiting | None = None
    """The last wait, as long as no step was recorded after it."""
    review: Review = Review()

    def unanswered_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last reply that have no result yet, in order."""
        answered: set[str] = set()
        for step in reversed(self.transcript):
            if isinstance(step, ToolReturned):
                answered.add(step.call_id)
            elif isinstance(step, ModelReplied):
                return tuple(call for call in step.tool_calls if call.id not in answered)
        return ()

    def round_steps(self) -> tuple[TranscriptStep, ...]:
        """The round's part of the transcript."""
        return self.transcript[self.round_start :]


class Queued(Struct, frozen=True):
    """Waits to be taken up, for the first time or again (``attempt`` counts what was tried in this round)."""

    request: JobRequested
    work: Work = Work()
    attempt: int = 0
    waiting: JobWaiting | None = None
    """Its pause, while one lasts: not to be taken up before its end."""


class Running(Struct, frozen=True):
    request: JobRequested
    work: Work
    attempt: int
    instance: str


class Finished(Struct, frozen=True):
    request: JobRequested
    work: Work
    outcome: JobCompleted | JobFailed


Job = Absent | Queued | Running | Finished


def branch_of(job: Queued | Running | Finished) -> str:
    """The branch that is worked on."""
    return job.work.branch or job.request.branch
