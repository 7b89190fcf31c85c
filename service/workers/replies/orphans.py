"""Replies whose process has ended: this one takes them over, where a reader may come back for them.

A client that has named its chat may ask for its reply again. So such a reply goes on in another process, at most twice
after a crash (``recorded_reply.MAX_RESUMES``), for each time its model is paid once more. Any other reply is marked as
interrupted, and so is one that has been left for too long.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import structlog

from eventstore import (
    CommandId,
    EventStore,
    EventStoreError,
    StoreCorrupt,
    SubjectErased,
    Undecodable,
    Views,
    execute,
    load,
)
from service.domain.errors import Conflict, NotFound
from service.domain.events import GONE
from service.domain.threads.recorded_reply import LeaveReply, Reply, ResumeReply, StopReply
from service.domain.threads.replies import RESUMABLE_FOR
from service.domain.threads.threads import Thread, ThreadCommand
from service.queries.read_models import wait_for_rebuild
from service.queries.threads import active_replies, last_replies
from service.runtime.system import now
from service.streams import THREADS
from service.workers.retry import retry_while_unavailable

log = structlog.get_logger()

WATCH_SECONDS = 5.0
"""How often a process looks whether another one has ended."""
OFFER_SECONDS = 3.0
"""Limit for what is done before a process takes requests."""


class Orphans:
    def __init__(
        self,
        store: EventStore,
        views: Views,
        *,
        instance: str,
        is_alive: Callable[[str], bool],
        crashed: Callable[[], Collection[str]],
        takes_over: bool,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``crashed`` returns names of processes whose last replies may not have reached their readers.
        ``takes_over``: whether this process stays for long enough; else others are left what a reader may want.
        ``sleep`` is for tests.
        """
        self._store, self._views, self._takes_over = store, views, takes_over
        self._instance, self._is_alive, self._crashed = instance, is_alive, crashed
        self._sleep = sleep
        self._offered: set[str] = set()
        """Crashed processes whose last replies wait for their readers."""
        self._damaged: set[str] = set()
        """Replies whose record cannot be read."""

    async def watch(self, position: int) -> None:
        """Settle what dead processes have left, now and whenever one has ended, until cancelled."""
        await wait_for_rebuild(self._views, position)
        while True:
            try:
                await self._settle_all()
            except EventStoreError as error:
                log.warning("replies of ended processes wait", kind=type(error).__name__)
            await self.offer_again(position)
            await self._sleep(WATCH_SECONDS)

    async def _settle_all(self) -> None:
        replies = await active_replies(self._views)
        ended = {name for name in {reply.instance for reply in replies} if self._has_ended(name)}
        for reply in replies:
            if reply.instance in ended and reply.reply_id not in self._damaged:
                with self._others_going_on(reply.reply_id):
                    await self.settle(reply.thread_id, reply.reply_id, reply.instance)

    @contextmanager
    def _others_going_on(self, reply_id: str) -> Iterator[None]:
        """Leave a reply whose record cannot be read as it is."""
        try:
            yield
        except (StoreCorrupt, Undecodable):
            self._damaged.add(reply_id)
            log.exception("a reply's record is damaged", reply_id=reply_id)

    async def offer_again(self, position: int) -> None:
        """Have the last replies of crashed processes wait for their readers, before one can come back.

        Their last words were perhaps on their way. Where the views take long, it is too late for that, and left out.
        """
        crashed = set(self._crashed()) - self._offered
        if not crashed:
            return
        self._offered |= crashed
        try:
            async with asyncio.timeout(OFFER_SECONDS):
                await wait_for_rebuild(self._views, position)
                for reply in await last_replies(self._views, crashed):
                    with self._others_going_on(reply.reply_id):
                        await self._offer_again(reply.thread_id, reply.reply_id)
        except (TimeoutError, EventStoreError) as error:
            log.warning("last replies of crashed processes are not offered again", kind=type(error).__name__)

    async def settle(self, thread_id: str, reply_id: str, giver: str) -> None:
        """Take a reply under way over when the process that gave it has ended, or mark it as interrupted."""
        if not self._has_ended(giver):
            return
        command: ResumeReply | StopReply
        if not await self._is_wanted(thread_id, reply_id):
            command = StopReply(reply_id, "interrupted", now(), giver)
        elif self._takes_over:
            command = ResumeReply(reply_id, giver, self._instance, now())
        else:
            return
        await self._record(thread_id, command)
        log.info("reply of a process that has ended", reply_id=reply_id, outcome=type(command).__name__)

    async def _offer_again(self, thread_id: str, reply_id: str) -> None:
        reply = await self._reply(thread_id, reply_id)
        if reply is None or reply.ended_at is None or reply.has_returned:
            return
        if now() - reply.ended_at < RESUMABLE_FOR:
            await self._record(thread_id, LeaveReply(reply_id, now()))

    async def _record(self, thread_id: str, command: ThreadCommand) -> None:
        with suppress(Conflict, NotFound, SubjectErased):  # another process was faster, or it counts no longer
            await retry_while_unavailable(
                partial(execute, self._store, THREADS, thread_id, command, command_id=CommandId())
            )

    async def _reply(self, thread_id: str, reply_id: str) -> Reply | None:
        thread = (await load(self._store, THREADS, thread_id, may_be_old=True)).state
        turn = thread.turn_of(reply_id) if isinstance(thread, Thread) else None
        return None if turn is None else turn.reply

    def _has_ended(self, giver: str) -> bool:
        return giver != self._instance and not self._is_alive(giver)

    async def _is_wanted(self, thread_id: str, reply_id: str) -> bool:
        """Return whether a reader may come back for the reply."""
        reply = await self._reply(thread_id, reply_id)
        if reply is None or not reply.chat_id or reply.chat_id in GONE:
            return False
        [last] = await self._store.read_stream(THREADS.stream(thread_id), limit=1, backwards=True)
        return now() - last.recorded_at < RESUMABLE_FOR
