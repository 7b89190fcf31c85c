"""A job's events, from its request to its pull request."""

from datetime import UTC, datetime

from service.domain.jobs.decider import (
    BranchPushed,
    ChecksReported,
    Committed,
    ContextsOpened,
    FileChanged,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobRequested,
    JobStarted,
    Message,
    ModelReplied,
    OpenedContext,
    PlanChanged,
    Problem,
    PullRequestOpened,
    Todo,
    ToolReturned,
    WorkFinished,
    WorkspaceOpened,
)
from service.domain.model import ToolCall, Usage

AT = datetime(2026, 3, 14, 9, 26, 53, 589_793, tzinfo=UTC)
LINK = "https://code.example/pulls/7"

REQUESTED = JobRequested(
    "org-secret", "p1", "docs", "main", "sonnet", "openai/gpt-5.2", (Message("user", "Mend the links."),),
    "Mend the links", "docs/mend-the-links-1", branch_named=False, as_draft=False, api_version=1, requested_at=AT,
)  # fmt: skip

STEPS: list[JobEvent] = [
    REQUESTED,
    JobStarted(1, "instance-secret", AT),
    WorkspaceOpened("b" * 40, AT),
    ContextsOpened((OpenedContext("code", "/srv/secret", "main", "d" * 40),), AT),
    ModelReplied(
        "openai/gpt-5.2", "I look at the page first.",
        (ToolCall("call-1", "read", '{"path": "a.md"}'), ToolCall("call-2", "read", "not json")), Usage(10, 5), AT,
    ),
    ToolReturned("call-1", "read", "x" * 5_000, is_error=False, returned_at=AT),
    ToolReturned("call-2", "read", "No such page.", is_error=True, returned_at=AT),
    ModelReplied("openai/gpt-5.2", "", (ToolCall("call-3", "replace", '{"path": "a.md"}'),), Usage(20, 6, 0.01), AT),
    FileChanged("a.md", "whole new contents"),
    PlanChanged((Todo("1", "Mend", "in_progress"),)),
    ToolReturned("call-3", "replace", "Replaced.", is_error=False, returned_at=AT),
    WorkFinished("Mend links", "Two links led nowhere.", AT),
    ChecksReported(1, (Problem("links", "a.md", "No such page: b.md", 3),), returned=False, reported_at=AT),
    Committed("c" * 40, "tree-secret", "b" * 40, "Docsmith <d@example.com>", "docs: mend links", AT),
    BranchPushed("docs/mend-the-links-1", "c" * 40, AT),
]  # fmt: skip

WITH_PULL_REQUEST: list[JobEvent] = [
    *STEPS,
    PullRequestOpened(7, LINK, AT),
    JobCompleted("I mended two links.", AT, "pull_request"),
]
WITHOUT_CHANGES: list[JobEvent] = [*STEPS[:3], JobCompleted("All links work: nothing was changed.", AT)]
FAILED: list[JobEvent] = [*STEPS, JobFailed("unavailable", "The model is unavailable.", AT)]
