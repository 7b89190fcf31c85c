"""A job's steps and changes, as version 2 of the API shows them to the job's organization."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Struct

from service.domain.jobs.decider import Todo
from service.domain.texts.times import timestamp
from service.ports.code_host import ComparedChanges, Diffed, DiffHunk, DiffLine
from service.views.fields import Timestamp, described
from service.views.jobs.job_transcript import Transcript, TranscriptEntry
from service.views.jobs.jobs_v1 import TodoView


class JobStepView(Struct, frozen=True, rename="camel"):
    """A step of a job: what people said, or what the agent did."""

    position: Annotated[int, described("The position of its event in the log: `followJob` goes on after it.")]
    at: Annotated[Timestamp, described("When it took place; of a wait, when it is tried again.")]
    name: Annotated[str, described("The step, or the name of the tool that returned.")]
    detail: Annotated[str, described("A short addition, such as a path or a commit; may be empty.")]
    words: Annotated[
        str,
        described("What was said, called, returned or found, cut after 2,000 characters; empty for other steps."),
    ]
    is_tool: Annotated[bool, described("Whether a tool returned.")]
    is_error: Annotated[bool, described("Whether it failed.")]
    is_said: Annotated[bool, described("Whether people said it.")]


class JobStepsView(Struct, frozen=True, rename="camel"):
    """Some of a job's steps, and its plan as it is now."""

    steps: Annotated[tuple[JobStepView, ...], described("The oldest first.")]
    plan: Annotated[tuple[TodoView, ...], described("The agent's plan as it is now.")]
    next_cursor: Annotated[
        str | None, described("Send it back as `cursor` for the steps before these; null when there are none.")
    ]


def steps_view(transcript: Transcript, plan: Sequence[Todo]) -> JobStepsView:
    return JobStepsView(
        tuple(map(_step, transcript.entries)),
        tuple(TodoView(todo.id, todo.content, todo.status, todo.priority) for todo in plan),
        str(transcript.earlier) if transcript.earlier is not None else None,
    )


def _step(entry: TranscriptEntry) -> JobStepView:
    step = entry.step
    return JobStepView(
        entry.position,
        timestamp(step.at),
        step.name,
        step.detail,
        entry.words,
        step.is_tool,
        step.is_error,
        entry.is_said,
    )


class ChangedLineView(Struct, frozen=True, rename="camel"):
    """A line that both sides have, or that was added or removed."""

    side: Annotated[Literal["same", "added", "removed"], described("Where it is.")]
    text: Annotated[str, described("The line without the newline that ends it, cut after 2,000 characters.")]
    is_cut: Annotated[bool, described("Whether the text is the beginning of a longer line.")]
    ends_file_without_newline: Annotated[bool, described("Whether the file ends here, without a newline.")]


class HunkView(Struct, frozen=True, rename="camel"):
    """Changed lines with some around them."""

    first_old: Annotated[int, described("The first line before the change, from 1.")]
    first_new: Annotated[int, described("The first line after the change, from 1.")]
    lines: Annotated[tuple[ChangedLineView, ...], described("The lines.")]


class ChangedFileView(Struct, frozen=True, rename="camel"):
    """A file that a job has changed."""

    path: Annotated[str, described("Its path in the repository.")]
    old_path: Annotated[str, described("Its path before; another where it was moved.")]
    kind: Annotated[Literal["added", "deleted", "changed", "moved"], described("How it changed.")]
    added: Annotated[int | None, described("Lines that were added; null where they were not counted.")]
    removed: Annotated[int | None, described("Lines that were removed; null where they were not counted.")]
    hunks: Annotated[
        tuple[HunkView, ...] | None,
        described("The lines; empty for a binary file, null where the changes are too long to be shown."),
    ]
    is_binary: Annotated[bool, described("Whether it is no text.")]
    is_cut: Annotated[bool, described("Whether the hunks are the beginning of more.")]
    is_too_large: Annotated[bool, described("Whether it is larger than what is read.")]


class ChangesView(Struct, frozen=True, rename="camel"):
    """The files that a job has changed, against the documentation that it began from."""

    files: Annotated[tuple[ChangedFileView, ...], described("By path, at most 100.")]
    is_cut: Annotated[bool, described("Whether there are more than are shown.")]
    is_readable: Annotated[bool, described("False where the texts are gone, by an erasure for example.")]


def changes_view(changes: ComparedChanges) -> ChangesView:
    return ChangesView(tuple(map(_file, changes.files)), changes.is_cut, changes.is_readable)


def _file(file: Diffed) -> ChangedFileView:
    return ChangedFileView(
        file.path,
        file.old_path,
        file.kind,
        file.added,
        file.removed,
        tuple(map(_hunk, file.hunks)) if file.hunks is not None else None,
        file.binary,
        file.is_cut,
        file.is_too_large,
    )


def _hunk(hunk: DiffHunk) -> HunkView:
    return HunkView(hunk.first_old, hunk.first_new, tuple(map(_line, hunk.lines)))


def _line(line: DiffLine) -> ChangedLineView:
    return ChangedLineView(line.side, line.text, line.is_cut, line.ends_file_without_newline)
