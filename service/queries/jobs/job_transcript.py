"""A job's steps, plan and comments from its stream, a part at a time."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from eventstore import EventStore, RecordedEvent, Views
from service.domain.jobs.decider import (
    BranchPushed,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobReopened,
    MessageAdded,
    RoundStarted,
    Todo,
)
from service.queries.jobs.jobs import jobs_of_pull_request
from service.streams import JOBS, decoded
from service.views.jobs.job_transcript import PageComment, Transcript, TranscriptEntry, TranscriptReader

MAX_EVENTS = 1_000
"""Events of one page; two thirds or so of them are steps."""
_ENDS = JOBS.codec.tags_of(JobCompleted, JobFailed)
_COMMENTED = _ENDS | JOBS.codec.tags_of(MessageAdded, BranchPushed, JobReopened, RoundStarted)


async def read_transcript(store: EventStore, job_id: str, *, before: int | None = None) -> Transcript:
    """Return a job's newest steps, or those before a version of its stream."""
    stream = JOBS.stream(job_id)
    last = await store.stream_version(stream) if before is None else max(before - 1, 0)
    first = max(last - MAX_EVENTS, 0)
    recorded = await store.read_stream(stream, after_version=first, limit=last - first) if last else []
    entries = await asyncio.to_thread(entries_of, TranscriptReader(), recorded)
    position = recorded[-1].position if recorded else 0
    return Transcript(tuple(entries), position, first + 1 if first else None)


def entries_of(reader: TranscriptReader, recorded: Sequence[RecordedEvent]) -> list[TranscriptEntry]:
    found = []
    for one in recorded:
        for _, event in decoded(JOBS, [one]):
            if (entry := reader.entry(one.position, event)) is not None:
                found.append(entry)
    return found


async def follow_transcript(
    store: EventStore, job_id: str, after: int
) -> AsyncGenerator[tuple[int, list[TranscriptEntry]], None]:
    """Yield a job's steps as they come, with the position of the last, until the job ends."""
    reader, stream = TranscriptReader(), JOBS.stream(job_id)
    async with aclosing(store.follow(after=after, stream=stream)) as batches:
        async for batch in batches:
            yield batch[-1].position, entries_of(reader, batch)
            if batch[-1].type in _ENDS:
                later = await store.read_stream(stream, after_version=batch[-1].stream_version, limit=1)
                if not later:
                    return


async def read_plan(views: Views, job_id: str) -> tuple[Todo, ...]:
    """Return the agent's plan as it is now."""
    row = await views.query_one("SELECT todos FROM jobs WHERE id = ?", (job_id,))
    return msgspec.json.decode(row["todos"], type=tuple[Todo, ...]) if row else ()


async def comments_of(store: EventStore, views: Views, project_id: str, number: int) -> list[PageComment]:
    """Return the comments on a pull request that its jobs know, the oldest first."""
    found: list[PageComment] = []
    for job_id in await jobs_of_pull_request(views, project_id, number):
        stream = store.iterate_stream(JOBS.stream(job_id))
        recorded = [event async for one in stream if one.type in _COMMENTED for _, event in decoded(JOBS, [one])]
        for at, event in enumerate(recorded):
            if isinstance(event, MessageAdded) and event.comment is not None and event.comment.number == number:
                found.append(_answered(PageComment(event.comment, event.text, event.added_at), recorded[at + 1 :]))
    return found


def _answered(comment: PageComment, later: Sequence[JobEvent]) -> PageComment:
    """Return a comment with the words of the first round after it that was completed, else of one that failed."""
    commit, failed = "", comment
    for event in later:
        match event:
            case JobReopened() | RoundStarted():
                commit = ""
            case BranchPushed():
                commit = event.commit
            case JobCompleted(message=message, completed_at=at):
                return replace(comment, answer=message.strip() or "Done.", commit=commit, answered_at=at)
            case JobFailed(message=message, failed_at=at):
                failed = replace(comment, answer=message, has_failed=True, answered_at=at)
            case _:
                pass
    return failed
