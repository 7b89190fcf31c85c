"""A job's steps with their words, for members of its organization: what people said, and what the agent did."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from service.domain.jobs.comments import CommentSource
from service.domain.jobs.decider import (
    BaseMerged,
    ChecksReported,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobRequested,
    JobWaiting,
    MessageAdded,
    ModelReplied,
    ToolReturned,
    WorkRebased,
)
from service.views.jobs.job_steps import JobStep, StepReader

MAX_WORDS, MAX_ARGUMENTS = 2_000, 500
"""Characters of a step that are shown, and of a tool's arguments."""


class TranscriptEntry(Struct, frozen=True):
    position: int
    step: JobStep
    words: str
    is_said: bool
    """A person said it."""


class Transcript(Struct, frozen=True):
    """Some of a job's steps, the oldest first."""

    entries: tuple[TranscriptEntry, ...]
    position: int
    """The position of the last event that was read."""
    earlier: int | None
    """Version of the stream before which there are more; None when there are none."""


class PageComment(Struct, frozen=True):
    """A comment on a pull request that became a message to its job."""

    comment: CommentSource
    text: str
    added_at: datetime
    answer: str = ""
    """The closing words of the round that it led to; empty until the job has ended."""
    has_failed: bool = False
    """The answer is why the round failed."""
    commit: str = ""
    """The commit of that round; empty for none."""
    answered_at: datetime | None = None


class TranscriptReader(StepReader):
    """Reader of a job's events as steps with words."""

    def entry(self, position: int, event: JobEvent) -> TranscriptEntry | None:
        """Return the step that an event is; None for one that is part of another, or is not shown."""
        if (step := self.step(event)) is None:
            return None
        words = _WORDS.get(type(event))
        said = isinstance(event, JobRequested | MessageAdded)
        return TranscriptEntry(position, step, _cut(words(event)) if words else "", said)


def _requested(event: JobRequested) -> str:
    asked = [message.content for message in event.messages if message.content.strip()]
    return "\n\n".join([*asked, f"Context:\n{event.context}"] if event.context else asked)


def _message(event: MessageAdded) -> str:
    if event.comment is None:
        return event.text
    place = f" on {event.comment.path}" if event.comment.path else ""
    line = f", line {event.comment.last_line}" if event.comment.last_line else ""
    return f"{event.comment.author}{place}{line}:\n{event.text}"


def _replied(event: ModelReplied) -> str:
    calls = [f"{call.name} {call.arguments[:MAX_ARGUMENTS]}" for call in event.tool_calls]
    return "\n\n".join(filter(None, [event.text.strip(), *calls]))


def _checks(event: ChecksReported) -> str:
    return "\n".join(
        f"{problem.severity}: {problem.path}{f':{problem.line}' if problem.line else ''} {problem.message}".strip()
        for problem in event.problems
    )


def _conflicts(event: BaseMerged | WorkRebased) -> str:
    return "\n".join(f"{conflict.path}:{conflict.line} {conflict.kind} on both sides" for conflict in event.conflicts)


_WORDS: Mapping[type, Callable[[Any], str]] = {
    JobRequested: _requested,
    MessageAdded: _message,
    ModelReplied: _replied,
    ToolReturned: lambda event: event.result,
    ChecksReported: _checks,
    BaseMerged: _conflicts,
    WorkRebased: _conflicts,
    JobWaiting: lambda event: event.reason,
    JobCompleted: lambda event: event.message,
    JobFailed: lambda event: event.message,
}


def _cut(text: str) -> str:
    return text if len(text) <= MAX_WORDS else text[:MAX_WORDS].rstrip() + "\n…"
