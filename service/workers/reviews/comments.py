"""Reads the comments of open pull requests, and hands those that mention the agent to their jobs.

A code host's report that there is one is a recorded wish to look; without webhooks the worker looks from time to time.
Both read the comments from the code host's API, so that each counts once, and a report says nothing about an author:
whether an account may write is asked for each comment.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

import structlog
from msgspec import Struct

from eventstore import EventStore, Metadata
from service.commands.jobs.jobs import close_pull_request
from service.commands.jobs.reviews import comment_of, is_new_comment, receive_comment
from service.domain.hooks.incoming import CommentReported
from service.domain.jobs.decider import ClosePullRequest
from service.markup.mentions import mentions
from service.ports.docs_source import Source
from service.ports.review_host import Comment, ReviewHost, is_answer
from service.queries.jobs.reviews import (
    OpenPullRequest,
    open_pull_request,
    open_pull_request_of_job,
    open_pull_requests,
)
from service.queries.projects import get_project, source_of
from service.streams import INCOMING, JOBS, decoded
from service.workers.retry import retry_while_unavailable
from service.workers.reviews.context import ReviewContext
from service.workers.reviews.schedule import Attempts, Schedule, followed

log = structlog.get_logger()

PRESENTED = frozenset({"pull-request-opened", "pull-request-updated"})
QUIETEST = 8
"""How many times longer than usual the pause becomes while nothing is said."""
GROWTH = 1.25
AFTER_REPORT_SECONDS = 3600.0
"""Without polling, a pull request on which something was said is looked at once more: not every report is recorded."""


Metered = Callable[[str, str, Metadata], EventStore]
"""For the ids of an organization and of its project."""


class CommentSettings(Struct, frozen=True):
    mention: str
    per_hour: int
    poll_minutes: float
    """0: only when a webhook reports a comment."""


class _Seen(Struct):
    """The state of a pull request's comments at the last look."""

    since: datetime | None = None
    tag: str = ""
    handled: set[tuple[str, str]] = set()
    """Id and version of the comments of the last list."""
    is_busy: bool = False
    """Something new was said."""
    pause_seconds: float = 0.0


class CommentReader:
    def __init__(self, context: ReviewContext, settings: CommentSettings, metered: Metered) -> None:
        """``metered`` returns the store for a message of a project and its organization, which counts it."""
        self._store, self._views, self._hosts = context.store, context.views, context.hosts
        self._clock, self._settings, self._metered = context.clock, settings, metered
        self._seen: dict[OpenPullRequest, _Seen] = {}
        self._attempts: Attempts[OpenPullRequest] = Attempts("comments not read")
        self._schedule: Schedule[OpenPullRequest] = Schedule(self.look, context.slots)

    async def run(self) -> None:
        """Run until cancelled. At first it looks at all: reports may have come while it did not run."""
        after = await self._store.head()
        await followed(self._views, after)
        for pull_request in await open_pull_requests(self._views):
            self._schedule.add(pull_request, pull_request.organization_id)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._schedule.run(), name="comments: looks")
            group.create_task(self._follow_reports(after), name="comments: reports")
            if self._settings.poll_minutes > 0:
                group.create_task(self._follow_jobs(after), name="comments: pull requests")

    async def _follow_reports(self, after: int) -> None:
        async for recorded in self._store.subscribe(after=after, category=INCOMING.category):
            for project_id, event in decoded(INCOMING, [recorded]):
                if isinstance(event, CommentReported):
                    find = partial(open_pull_request, self._views, project_id, event.number)
                    await self._add(recorded.position, find, seconds=0.0)

    async def _follow_jobs(self, after: int) -> None:
        async for recorded in self._store.subscribe(after=after, category=JOBS.category):
            if recorded.type in PRESENTED:
                find = partial(open_pull_request_of_job, self._views, JOBS.entity_id(recorded.stream))
                await self._add(recorded.position, find, seconds=self._poll_seconds)

    async def _add(
        self, position: int, find: Callable[[], Awaitable[list[OpenPullRequest]]], *, seconds: float
    ) -> None:
        """Have a pull request looked at, if it is a job's and open."""
        await followed(self._views, position)
        for one in await retry_while_unavailable(find):
            self._schedule.add(one, one.organization_id, seconds=seconds)

    async def look(self, pull_request: OpenPullRequest) -> float | None:
        """Look at its comments; return the seconds until the next look, None for none."""
        project_id, number = pull_request.project_id, pull_request.number
        look = partial(self._look, pull_request)
        return await self._attempts.run(pull_request, look, project_id=project_id, number=number)

    @property
    def _poll_seconds(self) -> float:
        return self._settings.poll_minutes * 60

    async def _look(self, pull_request: OpenPullRequest) -> float | None:
        """Hand over what is new; return the seconds until the next look, None when the pull request is closed."""
        seen = self._seen.setdefault(pull_request, _Seen())
        project = await get_project(self._views, pull_request.project_id)
        host = self._hosts.get(project.code_host) if project is not None else None
        if project is None or host is None:
            del self._seen[pull_request]
            return None  # the embedded code host has no comments
        source, number = source_of(project), pull_request.number
        there = await host.get_pull_request(source, number)
        if there.state != "open":
            close = ClosePullRequest(there.state, self._clock())
            await close_pull_request(self._store, self._views, project.id, number, close, _metadata(project.id))
            del self._seen[pull_request]
            return None
        listed = await host.list_comments(source, number, since=seen.since, tag=seen.tag)
        if listed is not None:
            handled: set[tuple[str, str]] = set()
            for comment in listed.comments:
                version = (comment.source.id, comment.source.version)
                if version not in seen.handled and await self._addresses_us(comment):
                    await self._receive(host, source, pull_request, comment)
                handled.add(version)
            newest = max((one.updated_at for one in listed.comments), default=seen.since)
            seen.tag = listed.tag if newest == seen.since else ""
            seen.is_busy = not handled <= seen.handled
            seen.since, seen.handled = newest, handled
        else:
            seen.is_busy = False
        if self._settings.poll_minutes == 0:
            return AFTER_REPORT_SECONDS if seen.is_busy else None
        pause = seen.pause_seconds * GROWTH if seen.pause_seconds and not seen.is_busy else self._poll_seconds
        seen.pause_seconds = min(self._poll_seconds * QUIETEST, pause)
        return seen.pause_seconds

    async def _addresses_us(self, comment: Comment) -> bool:
        if comment.is_bot or is_answer(comment.text):
            return False
        return await asyncio.to_thread(mentions, comment.text, self._settings.mention)

    async def _receive(self, host: ReviewHost, source: Source, pull_request: OpenPullRequest, comment: Comment) -> None:
        """Record what the comment leads to. Raise RateLimited when the project has had its messages of the hour."""
        project_id, number = pull_request.project_id, pull_request.number
        if not await is_new_comment(self._store, self._views, project_id, number, comment.source.id):
            return
        may_write = await host.may_write(source, comment.account)
        per_hour, at, metadata = self._settings.per_hour, self._clock(), _metadata(project_id)
        command = comment_of(comment, number, may_write=may_write, per_hour=per_hour, at=at)
        store = self._metered(pull_request.organization_id, project_id, metadata) if may_write else self._store
        await receive_comment(store, self._views, project_id, command, metadata)
        log.info("comment received", project_id=project_id, number=number, may_write=may_write)


def _metadata(project_id: str) -> Metadata:
    return Metadata(actor=f"review:{project_id}")
