"""Jobs, as version 1 of the API shows them: the shapes and spellings are those of the public API."""

from typing import Annotated, Literal

from msgspec import Struct

from service.domain.jobs.events import TodoStatus
from service.views.fields import Timestamp, Url, described

HaltReason = Literal["completed", "github_missconfigured", "error", "processing", "interrupted"]


class TodoView(Struct, frozen=True):
    """One step of the agent's plan."""

    id: Annotated[str, described("Of this step, within the plan.")]
    content: Annotated[str, described("The instruction.")]
    status: Annotated[TodoStatus, described("How far it is.")]
    priority: Annotated[Literal["high", "medium", "low"], described("How much it matters.")]


class Session(Struct, frozen=True, rename="camel"):
    """A job as version 1 of the API shows it."""

    session_id: Annotated[str, described("The job's id.")]
    subdomain: Annotated[str, described("The domain of the project's site.")]
    branch: Annotated[str, described("The branch that the work is on.")]
    haulted: Annotated[bool, described("Whether the job has ended.")]
    hault_reason: Annotated[HaltReason, described("How it ended; `processing` until then.")]
    pull_request_link: Annotated[Url | None, described("The pull request, once there is one.")]
    message_to_user: Annotated[str, described("The agent's last message, or why it failed; empty before that.")]
    todos: Annotated[tuple[TodoView, ...], described("The agent's plan.")]
    user_id: Annotated[str, described("The id of the key that asked for it.")]
    title: Annotated[str, described("Its pull request's title; before there is one, the instruction in a few words.")]
    created_at: Annotated[Timestamp, described("When it was asked for.")]


class Sessions(Struct, frozen=True, rename="camel"):
    """Some of a project's jobs."""

    all_sessions: Annotated[list[Session], described("The newest first.")]
