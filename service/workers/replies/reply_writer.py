"""A reply's record while it is written: segments of the text, in order, a little behind what readers see live."""

import asyncio
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
from service.domain.threads.threads import Thread, ThreadEvent, ThreadState
from service.streams import THREADS
from service.workers.replies.segments import SegmentClock

log = structlog.get_logger()

GivenCommand = RecordSources | RecordText | CompleteReply | StopReply | FailReply

PASSING = (StoreUnavailable, OutcomeUnknown, StoreBusy)
"""Errors of a log that may be there again soon, as after a restart of its database, or a pause of this process; not of
a full disk, which its readers should hear of.
"""
AWAY_SECONDS = 90.0
"""For which the end of a reply waits for such a log: its model is paid."""
RETRY_SECONDS = 0.5


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
        clock: SegmentClock,
        moment: float,
    ) -> None:
        """``giver``: this instance; ``moment``: as ``moment_of`` returns it."""
        self._store, self._thread_id, self._reply_id, self._giver = store, thread_id, reply_id, giver
        self._metadata = Metadata(causation=position)
        self._waiting: list[tuple[GivenCommand, CommandId]] = []
        self._text: list[str] = []
        self._raw: list[str] = []
        self._thoughts: list[str] = []
        self._lock = asyncio.Lock()
        self._executed: Executed[ThreadState, ThreadEvent] | None = None
        self._clock, self._moment, self._is_listed = clock, moment, False
        self.is_ending = False
        self.is_abandoned = False
        """Another instance goes on with the reply: nothing more is recorded or published here."""

    def begin_at(self, loaded: Loaded[ThreadState]) -> None:
        """Write on from a state of the thread that is known."""
        if self._executed is None:
            self._know(loaded.state, loaded.position, loaded.version, loaded.damaged)

    def add(self, command: GivenCommand) -> None:
        self._cut()
        self._waiting.append((command, CommandId()))
        self._list()

    def abandon(self) -> None:
        self.is_ending = self.is_abandoned = True

    def write(self, text: str, raw: str | None = None) -> None:
        """Record text that readers see. ``raw``: the model's own words behind it; None: they are the same."""
        self._text.append(text)
        self._raw.append(text if raw is None else raw)
        self._list()

    def end_call(self, raw: str, end: CallEnd) -> None:
        """Record that a call of the model has ended, and the words of it that no reader sees."""
        self._raw.append(raw)
        self._cut(end)
        self._list()

    def think(self, text: str) -> None:
        """Record the model's reasoning; it is sent to no reader."""
        self._thoughts.append(text)
        self._list()

    async def record(self) -> None:
        """Record what was published, at this reply's moment; the rest at its next one, also after errors that pass."""
        try:
            if not self.is_ending:
                await self.flush()
        except StoreUnavailable as error:
            if type(error) not in PASSING:
                raise  # it stays listed: the end of the reply tries once more
            log.warning("segments wait for the log", kind=type(error).__name__)
        self._is_listed = False
        self._list()

    def _list(self) -> None:
        """Have what waits recorded."""
        if not (self._is_listed or self.is_ending) and (self._text or self._thoughts or self._waiting):
            self._is_listed = True
            self._clock.add(self._moment, self.record)

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
        executed = await execute(
            self._store,
            THREADS,
            self._thread_id,
            command,
            metadata=self._metadata,
            known=known,
            command_id=command_id,
        )
        self._know(executed.state, executed.position, executed.version, executed.damaged)

    def _know(self, state: ThreadState, position: int, version: int, damaged: int) -> None:
        """Keep the thread to decide on next, without what this reply has found and written so far: no decision on a
        reply reads that, and each segment would copy all of the text.
        """
        if isinstance(state, Thread) and (index := state.index_of(self._reply_id)) is not None:
            turn = state.turns[index]
            if turn.reply is not None and (turn.reply.text or turn.reply.sources):
                lean = replace(turn, reply=replace(turn.reply, text="", sources=()))
                state = replace(state, turns=state.turns.with_changed(index, lean))
        self._executed = Executed((), state, position, version, damaged)
