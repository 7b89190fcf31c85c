"""A reply's record while it is written: segments of the text, in order, a little behind what readers see live."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog
from msgspec.structs import replace

from eventstore import (
    CommandId,
    EventStore,
    Executed,
    Loaded,
    Metadata,
    OutcomeUnknown,
    StoreBusy,
    StoreUnavailable,
    SubjectErased,
    execute,
)
from service.domain.errors import Conflict, NotFound
from service.domain.threads.recorded_reply import (
    CallEnd,
    CompleteReply,
    FailReply,
    RecordSources,
    RecordText,
    StopReply,
)
from service.domain.threads.threads import ThreadEvent, ThreadState
from service.streams import THREADS

log = structlog.get_logger()

GivenCommand = RecordSources | RecordText | CompleteReply | StopReply | FailReply

SEGMENT_SECONDS = 0.25
"""How much of a reply a crash can lose, and how many events a reply costs, while there are few replies at once."""
REPLIES_OF_A_MOMENT = 16
"""Replies that record their segments together, in one commit; more where there are very many replies. Each moment of an
interval has its own replies, so that the event loop does not handle all of them at once.
"""

PASSING = (StoreUnavailable, OutcomeUnknown, StoreBusy)
"""Errors of a log that may be there again soon, as after a restart of its database, or a pause of this process; not of
a full disk, which its readers should hear of.
"""
AWAY_SECONDS = 90.0
"""For which the end of a reply waits for such a log: its model is paid."""
RETRY_SECONDS = 0.5


def segment_seconds(replies: int) -> float:
    """Return the seconds between two segments of a reply, while this number of replies is under way.

    To record a segment costs as much as to publish ten pieces of text, so with many replies at once each is recorded
    less often: a crash still loses no more than a second of each.
    """
    if replies <= REPLIES_OF_A_MOMENT:
        return SEGMENT_SECONDS
    return SEGMENT_SECONDS * (2 if replies <= 4 * REPLIES_OF_A_MOMENT else 4)


class ReplyWriter:
    """A reply's record: what is published live goes to the log a little later, in segments, in order."""

    def __init__(
        self,
        store: EventStore,
        thread_id: str,
        reply_id: str,
        position: int,
        *,
        giver: str,
        moment: float,
        seconds: Callable[[], float],
    ) -> None:
        """``giver``: this instance. ``seconds``: of an interval, as long as it is now; ``moment``: when in each it
        writes, as a part of it.
        """
        self._store, self._thread_id, self._reply_id, self._giver = store, thread_id, reply_id, giver
        self._metadata = Metadata(causation=position)
        self._waiting: list[tuple[GivenCommand, CommandId]] = []
        self._text: list[str] = []
        self._raw: list[str] = []
        self._thoughts: list[str] = []
        self._lock = asyncio.Lock()
        self._executed: Executed[ThreadState, ThreadEvent] | None = None
        self._moment, self._seconds = moment, seconds
        self.is_ending = False
        self.is_abandoned = False
        """Another instance goes on with the reply: nothing more is recorded or published here."""

    def begin_at(self, loaded: Loaded[ThreadState]) -> None:
        """Write on from a state of the thread that is known."""
        self._executed = self._executed or Executed((), loaded.state, loaded.position, loaded.version, loaded.damaged)

    def add(self, command: GivenCommand) -> None:
        self._cut()
        self._waiting.append((command, CommandId()))

    def abandon(self) -> None:
        self.is_ending = self.is_abandoned = True

    def write(self, text: str, raw: str | None = None) -> None:
        """Record text that readers see. ``raw``: the model's own words behind it; None: they are the same."""
        self._text.append(text)
        self._raw.append(text if raw is None else raw)

    def end_call(self, raw: str, end: CallEnd) -> None:
        """Record that a call of the model has ended, and the words of it that no reader sees."""
        self._raw.append(raw)
        self._cut(end)

    def think(self, text: str) -> None:
        """Record the model's reasoning; it is sent to no reader."""
        self._thoughts.append(text)

    async def run(self) -> None:
        """Record from time to time what was published, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            interval = self._seconds()
            since = (loop.time() - interval * self._moment) % interval
            await asyncio.sleep(interval - since if since < interval - 0.01 else interval)
            if self._text or self._thoughts or self._waiting:
                try:
                    await asyncio.shield(self.flush())
                except StoreUnavailable as error:
                    if type(error) not in PASSING:
                        raise
                    log.warning("segments wait for the log", kind=type(error).__name__)

    async def flush(self) -> None:
        async with self._lock:
            self._cut()
            while self._waiting and not self.is_abandoned:
                with suppress(SubjectErased):  # its thread was erased meanwhile: nothing of it may be recorded
                    await self._execute(*self._waiting[0])
                self._waiting.pop(0)

    async def end(self, command: GivenCommand) -> bool:
        """Write down what is left, then how it ended, or that it is left to another process.

        Return whether that is on record; False: another has ended the reply, or goes on with it.
        """
        return await self._end(command, CommandId())

    async def conclude(self, command: GivenCommand) -> bool:
        """Do as ``end``, as soon as the log can be used. Raise StoreUnavailable if it takes longer than
        ``AWAY_SECONDS``, and its kinds.
        """
        command_id, loop = CommandId(), asyncio.get_running_loop()
        until = loop.time() + AWAY_SECONDS
        while True:
            try:
                return await self._end(command, command_id)
            except StoreUnavailable as error:
                if type(error) not in PASSING or loop.time() > until:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def _end(self, command: GivenCommand, command_id: CommandId) -> bool:
        self.is_ending = True
        with suppress(Conflict, NotFound):
            await self.flush()
            if not self.is_abandoned:
                await self._execute(command, command_id)
            return not self.is_abandoned
        return False

    def _cut(self, end: CallEnd | None = None) -> None:
        if self._text or self._raw or self._thoughts or end is not None:
            text, raw = "".join(self._text), "".join(self._raw)
            written = RecordText(self._reply_id, text, "".join(self._thoughts), None if raw == text else raw, end)
            self._waiting.append((written, CommandId()))
            self._text.clear()
            self._raw.clear()
            self._thoughts.clear()

    async def _execute(self, command: GivenCommand, command_id: CommandId) -> None:
        command, known, self._executed = replace(command, giver=self._giver), self._executed, None
        self._executed = await execute(
            self._store,
            THREADS,
            self._thread_id,
            command,
            metadata=self._metadata,
            known=known,
            command_id=command_id,
        )
