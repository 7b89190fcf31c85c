"""Answers the comments that became messages with the closing words of the round, and others with why they did not.

The answer is on the code host before it is recorded; after a crash in between it is found there by its marker.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from eventstore import Metadata, load
from service.commands.jobs.reviews import record_answer
from service.domain.errors import ServiceError
from service.domain.jobs.comments import Unanswered, without_mentions
from service.domain.jobs.decider import (
    Absent,
    Finished,
    Job,
    JobCompleted,
    JobFailed,
    RecordAnswer,
)
from service.ports.review_host import NewAnswer
from service.queries.jobs.reviews import jobs_with_unanswered_comments
from service.queries.projects import get_project, source_of
from service.streams import JOBS
from service.workers.retry import retry_while_unavailable
from service.workers.reviews.context import ReviewContext
from service.workers.reviews.schedule import Attempts, Schedule, followed

log = structlog.get_logger()

GIVEN_UP_AFTER = timedelta(hours=24)
ANSWERED_AFTER = frozenset({"job-completed", "job-failed", "comment-ignored"})
"""The types of the events after which a job may have something to answer."""
MAX_ANSWER_CHARACTERS = 4_000


class CommentAnswers:
    def __init__(self, context: ReviewContext, *, mention: str) -> None:
        self._store, self._views, self._hosts, self._clock = context.store, context.views, context.hosts, context.clock
        self._mention, self._leads = mention, context.leads
        self._attempts: Attempts[str] = Attempts("comments not answered")
        self._schedule: Schedule[str] = Schedule(self.answer, context.slots)

    async def run(self) -> None:
        """Run until cancelled. At first it answers what is left of earlier times."""
        after = await self._store.head()
        await followed(self._views, after)
        await self._add_unanswered(None)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._schedule.run(), name="answers to comments")
            async for recorded in self._store.subscribe(after=after, category=JOBS.category):
                if recorded.type in ANSWERED_AFTER:
                    await followed(self._views, recorded.position)
                    await self._add_unanswered(JOBS.entity_id(recorded.stream))

    async def _add_unanswered(self, job_id: str | None) -> None:
        unanswered = partial(jobs_with_unanswered_comments, self._views, job_id)
        for found, organization_id in await retry_while_unavailable(unanswered):
            self._schedule.add(found, organization_id)

    async def answer(self, job_id: str) -> float | None:
        """Answer what can be answered of a job; return the seconds until the next try, None for none."""
        return await self._attempts.run(job_id, partial(self._answer, job_id), job_id=job_id)

    async def _answer(self, job_id: str) -> None:
        job = (await load(self._store, JOBS, job_id)).state
        if isinstance(job, Absent):
            return
        project = await get_project(self._views, job.request.project_id)
        host = self._hosts.get(project.code_host) if project is not None else None
        if project is None or host is None:  # its code host is another by now, or it never had comments
            return
        source, trouble = source_of(project), None
        for asked in _due(job.work.review.unanswered, has_ended=isinstance(job, Finished)):
            first = asked[0]
            text = _refusal(first) if first.reason is not None else self._closing(job, asked)
            answer = NewAnswer(text, first.answer_id, first.comment.thread, _written_at(asked))
            ids = tuple(one.answer_id for one in asked)
            if not self._leads():  # this process was paused: another one may have answered
                await asyncio.Event().wait()  # until it is cancelled
            try:
                url = await host.post_answer(source, first.comment.number, answer)
            except ServiceError as error:
                if self._clock() - _due_since(job, first) < GIVEN_UP_AFTER:
                    trouble = error
                    continue
                log.warning("answer to comments given up", job_id=job_id, code=error.code, reason=str(error)[:300])
                outcome = RecordAnswer(ids, self._clock(), failure=error.code)
            else:
                outcome = RecordAnswer(ids, self._clock(), url=url)
            await record_answer(self._store, job_id, outcome, Metadata(actor=f"review:{project.id}"))
        if trouble is not None:
            raise trouble

    def _closing(self, job: Job, asked: Sequence[Unanswered]) -> str:
        """Return the closing words of the round, with its commit, and in the conversation which comments it answers."""
        assert isinstance(job, Finished)
        parts: list[str] = []
        links = ", ".join(f"[{one.comment.author}]({one.comment.url})" for one in asked if one.comment.url)
        if links and not asked[0].comment.thread:
            parts.append(f"In answer to {links}:")
        match job.outcome:
            case JobCompleted(message=message, outcome=outcome):
                parts.append(_quoted(message) or "Done.")
                if job.work.pushed is not None:
                    parts.append(f"Commit {job.work.pushed.commit}.")
                if outcome == "needs_input" and self._mention:
                    parts.append(f"To answer, mention `@{self._mention}` in a comment.")
            case JobFailed(message=message):
                parts.append(f"This did not work: {_quoted(message)}")
        return "\n\n".join(parts)


def _due(unanswered: Sequence[Unanswered], *, has_ended: bool) -> list[list[Unanswered]]:
    """Return the comments that can be answered now: refused ones one by one, others together by thread and round.

    No comment joins those of a round that has ended, so the first one names the same answer at every try.
    """
    due: list[list[Unanswered]] = [[one] for one in unanswered if one.reason is not None]
    if has_ended:
        threads: dict[tuple[int, str, int], list[Unanswered]] = {}
        for one in unanswered:
            if one.reason is None:
                threads.setdefault((one.comment.number, one.comment.thread, one.round), []).append(one)
        due += threads.values()
    return due


def _due_since(job: Job, asked: Unanswered) -> datetime:
    """Return since when a comment can be answered."""
    match job:
        case Finished(outcome=JobCompleted(completed_at=ended_at) | JobFailed(failed_at=ended_at)):
            return asked.asked_at if asked.reason is not None else ended_at
        case _:
            return asked.asked_at


def _written_at(asked: Sequence[Unanswered]) -> datetime | None:
    """Return when the first of the comments was written, by the code host's clock; None when that is not known."""
    try:
        return min(datetime.fromisoformat(one.comment.version) for one in asked)
    except ValueError:
        return None


def _refusal(asked: Unanswered) -> str:
    if asked.reason == "too_many_messages":
        return "This job has reached the limit of its messages. Ask for a new job."
    again = f" Please write again after {asked.until.astimezone(UTC):%H:%M} UTC." if asked.until else ""
    return f"This pull request has reached its limit of comments in an hour.{again}"


def _quoted(words: str) -> str:
    """Return words that notify no one."""
    return without_mentions(words.strip())[:MAX_ANSWER_CHARACTERS]
