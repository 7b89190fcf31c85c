"""Jobs, as version 2 of the API, the command line and webhooks show them."""

from typing import Annotated, Literal

from msgspec import Struct, field

from service.domain.jobs.decider import JobStatus, Severity
from service.views.fields import NextCursor, Timestamp, Url, described

PullRequestState = Literal["open", "merged", "closed"]
Outcome = Literal["pull_request", "nothing_changed", "needs_input", "failed"]
JobState = Literal[
    "running",
    "queued",
    "waiting",
    "review",
    "merged",
    "closed",
    "nothing_changed",
    "needs_input",
    "failed",
    "cancelled",
]


class JobSource(Struct, frozen=True):
    """The repository and branch that the job works on."""

    repository: Annotated[
        str,
        described(
            "The repository's URL; for a folder on the server `hosted/PROJECT.git`, where the service serves it to git,"
            " below its own address."
        ),
    ]
    ref: Annotated[str, described("The branch that the work started from.")]


class FoundByChecks(Struct, frozen=True):
    """How many problems the checks see in a pull request, of the kinds that stand in the way of a merge."""

    errors: int = 0
    unsourced: int = 0
    """Names, numbers and statements without a source: warnings, but a person has to look at them."""


class JobFailure(Struct, frozen=True):
    """Why a job failed."""

    code: Annotated[str, described("Stable; `/docs/errors/CODE` says what to do about it.")]
    message: Annotated[str, described("The same as a plain sentence.")]


class JobUsage(Struct, frozen=True, rename="camel"):
    """Tokens and cost of the model's calls, of all rounds together."""

    input_tokens: Annotated[int, described("Tokens that the model read.")]
    output_tokens: Annotated[int, described("Tokens that it wrote.")]
    cost_usd: Annotated[float | None, described("In US dollars; null when the price is not known.")]


class ProblemView(Struct, frozen=True):
    """A problem that the checks found in the changes and that remains."""

    severity: Annotated[Severity, described("An `error` makes the pull request a draft; a `warning` does not.")]
    file: Annotated[str | None, described("The file's path; null for a problem of the change as a whole.")]
    line: Annotated[int | None, described("The line, from 1; null when it has none.")]
    code: Annotated[str, described("The rule's name; stable.")]
    message: Annotated[str, described("A plain sentence.")]


class JobWaitView(Struct, frozen=True, rename="camel"):
    """Why a job does not go on just now. It goes on by itself."""

    waits_for: Annotated[
        Literal["turn", "model", "git", "code_host", "disk"],
        described("`turn`: a place among the running jobs. Else what is away, or full: it is tried again."),
    ] = field(name="for")
    since: Annotated[Timestamp, described("When it began to wait.")]
    next_try_at: Annotated[Timestamp | None, described("When it is tried again; null for a turn.")]
    reason: Annotated[str, described("The same as a plain sentence.")]


class JobView(Struct, frozen=True, rename="camel"):
    """A job as version 2 of the API shows it."""

    id: Annotated[str, described("The job's id; jobs sort by it as they were created.")]
    status: Annotated[JobStatus, described("`active` until it ends, and again after a message.")]
    source: JobSource
    model: Annotated[str, described("The model that does the work, by its full name.")]
    pr_link: Annotated[Url | None, described("The pull request; null while active, and when nothing was to change.")]
    created_at: Annotated[Timestamp, described("When it was asked for.")]
    archived_at: Annotated[Timestamp | None, described("When it was archived; null when it was not.")]
    title: Annotated[str, described("Its pull request's title; before there is one, the instruction in a few words.")]
    branch: Annotated[str, described("The branch that the work is on.")]
    failure: Annotated[JobFailure | None, described("Why it failed; null when it did not.")]
    usage: JobUsage
    outcome: Annotated[
        Outcome | None,
        described(
            "How the job's last round ended; null while it is active. `needs_input`: it asks something; send a message"
            " to answer."
        ),
    ]
    message: Annotated[
        str | None,
        described(
            "The agent's closing words, plain text of at most 2,000 characters: what was done, why nothing was, or what"
            " it needs to know; why the job failed, if it did. Null while it is active."
        ),
    ]
    problems: Annotated[list[ProblemView], described("What the checks found last and still see; errors first.")]
    queue_position: Annotated[int | None, described("From 1 while the job waits for others to end, else null.")] = None
    waiting: Annotated[
        JobWaitView | None,
        described(
            "What an active job waits for, without a place among the running jobs. Null while it runs, and when it has"
            " ended."
        ),
    ] = None
    ended_at: Annotated[Timestamp | None, described("When its last round ended; null while it is active.")] = None
    pull_request_state: Annotated[
        PullRequestState | None,
        described("As far as the service knows, whether the pull request is open; null without one."),
    ] = None


class JobList(Struct, frozen=True, rename="camel"):
    """Some of a project's jobs."""

    jobs: Annotated[list[JobView], described("The newest first.")]
    next_cursor: NextCursor


class ListedJobView(JobView, frozen=True, rename="camel", kw_only=True):
    """A job among those of an organization."""

    project_id: Annotated[str, described("The project that it belongs to.")]
    state: Annotated[
        JobState,
        described("Its status in more detail. `review`: its pull request is open, as far as the service knows."),
    ]
    began_at: Annotated[Timestamp, described("When its last round began.")]
    requested_by: Annotated[
        str,
        described("A key's id; `person:` and the id of a person; `cli:` and the name of a user at the terminal."),
    ]


class OrganizationJobList(Struct, frozen=True, rename="camel"):
    """Some of an organization's jobs."""

    jobs: Annotated[tuple[ListedJobView, ...], described("The newest first.")]
    next_cursor: NextCursor
