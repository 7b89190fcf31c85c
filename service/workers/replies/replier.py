"""Answer questions: each reply is a task of its own, published live, recorded in segments and once whole.

A reply without readers is stopped, and the model's call with it: at once, or after ``grace_seconds`` where the client
can ask for the rest of it (it has named its chat). Readers of a reply may be in other processes of the same store: when
they come and go is recorded, and so is the end of a reply that another process has stopped. A reply whose process has
ended goes on here (``orphans``): its stream begins again at its start, and the model is asked for the rest.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from functools import partial

import structlog
from msgspec.structs import replace

from eventstore import (
    CommandId,
    EventStore,
    Loaded,
    RecordedEvent,
    StoreUnavailable,
    SubjectErased,
    Views,
    execute,
    load,
)
from service.assistant.question import Question
from service.domain.errors import Conflict, NotFound, Unavailable
from service.domain.events import DAMAGED
from service.domain.threads.progress import ReplyProgress, progress_of
from service.domain.threads.recorded_reply import (
    CompleteReply,
    FailReply,
    LeaveReply,
    ModelTrouble,
    ReaderLeft,
    ReaderReturned,
    RecordSources,
    RecordText,
    ReplyFailed,
    ReplyResumed,
    ReplyStarted,
    ReplyStopped,
    ReturnToReply,
    StopReply,
)
from service.domain.threads.replies import (
    INTERRUPTED,
    STOPPED,
    AnswerEvent,
    CallEnded,
    ModelFailure,
    ReplyBroken,
    ReplyDone,
    ReplyEvent,
    ReplyOpened,
    ReplyReplay,
    SearchFinished,
    SentencesChecked,
    TextDelta,
    Thought,
    merged,
)
from service.domain.threads.threads import Thread, ThreadCommand, ThreadEvent, ThreadState
from service.ports.tracer import within
from service.queries.threads import events_of_reply
from service.runtime.system import now
from service.streams import THREADS, decoded
from service.workers.fair_slots import reply_slots
from service.workers.followed_replies import FollowedReplies
from service.workers.kept_prompts import KeptPrompts
from service.workers.replies.broadcast import Broadcast, Topic
from service.workers.replies.live_text import LiveText, ReplyTooLong
from service.workers.replies.orphans import Orphans
from service.workers.replies.reply_context import ReplyContext, import_answer
from service.workers.replies.reply_writer import ReplyWriter
from service.workers.replies.segments import SegmentClock, moment_of
from service.workers.replies.underway import RESTARTING, GivenElsewhere, Underway, interruption
from service.workers.reply_question import question_of, thread_of, up_to
from service.workers.retry import retry_while_unavailable

log = structlog.get_logger()

HEEDED = frozenset(
    {"reply-started", "reply-resumed", "reply-stopped", "reply-failed", "reader-left", "reader-returned"}
)
"""Types of events; the segments of all replies, which are most of what is recorded, need not be decoded again."""
INTERNAL = "Something went wrong on our side; it has been logged."
RETURN_SECONDS = 60.0
"""How long, at least, a reply goes on without a reader when it has been taken over, or its client has said that it
comes back: a page needs a moment to load again.
"""
INSTANCE_SECONDS = 3.0
"""As long where its last readers were those of another instance, whose connection may only have been cut."""
MAX_REASON = 1_000
"""Characters of a failed model's reason that are recorded."""
UNAVAILABLE = "The service cannot do this right now; try again."
TEXT_DAMAGED = "This question cannot be read any more; ask it again in a new chat."
TOO_LONG = ReplyBroken("reply_too_long", "The answer became too long and was cut off.")


class Replier:
    """Follows the store and answers what was asked of this instance."""

    def __init__(
        self,
        store: EventStore,
        views: Views,
        broadcast: Broadcast[ReplyEvent],
        context: ReplyContext,
        *,
        instance: str,
        is_alive: Callable[[str], bool],
        crashed: Callable[[], Collection[str]] = tuple,
        followed: FollowedReplies | None = None,
    ) -> None:
        """``crashed`` returns the names of processes that have crashed, as far as that is known here.
        ``followed``: None where no other process can take over a reply from this one while it lives.
        """
        self._store, self._views, self._broadcast, self._context = store, views, broadcast, context
        self._followed = followed
        self._relays: dict[str, asyncio.Task[None]] = {}
        """Replies that were given here, go on elsewhere, and have readers here."""
        self._instance, self._is_alive = instance, is_alive
        self._slots = reply_slots(context.concurrent_replies)
        self._underway: dict[str, Underway] = {}
        self._segments = SegmentClock(lambda: len(self._underway))
        self._readers: Counter[str] = Counter()
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        """Deadlines of the replies without readers."""
        self._group: asyncio.TaskGroup | None = None
        self._has_stopped = False
        self._prompts = KeptPrompts(store, "service.assistant.kept_prompts")
        self._imported: asyncio.Task[object] | None = None
        self._orphans = Orphans(
            store, views, instance=instance, is_alive=is_alive, crashed=crashed, takes_over=context.takes_over
        )

    async def run(self, *, ready: asyncio.Event | None = None, announced: asyncio.Event | None = None) -> None:
        """Run until cancelled: go on with what dead processes left, and answer whatever is asked here.

        ``ready`` is set once nothing that is asked can be missed. Replies begin once ``announced`` is set. Replies
        under way when it is cancelled are ended properly for their readers; those that a reader may ask for again are
        left for the next process, the others recorded as interrupted.
        """
        after = await self._store.head()
        async with (
            self._segments,
            asyncio.TaskGroup() as replies,
            aclosing(self._store.follow(after=after, category=THREADS.category)) as batches,
        ):
            self._group = replies
            await self._orphans.offer_again(after)
            if ready is not None:
                ready.set()
            self._imported = replies.create_task(import_answer(announced), name="import of the answer")
            replies.create_task(self._orphans.watch(after), name="orphaned replies")
            try:
                async for batch in batches:
                    for place, recorded in enumerate(batch):
                        if recorded.type in HEEDED:
                            self._take(batch, place)
            finally:
                self._refuse()

    def require_running(self) -> None:
        """Raise Unavailable once what is asked here would not be answered any more."""
        if self._has_stopped:
            raise Unavailable(RESTARTING)

    def _refuse(self) -> None:
        """Take no more questions, and end the wait for those that are not begun: some are on record."""
        self._has_stopped = True
        for reply_id in self._broadcast.names():
            if reply_id not in self._underway:
                self._broadcast.open(reply_id).publish(self._cut_short(may_go_on=False))
                self._broadcast.close(reply_id)

    def _cut_short(self, *, may_go_on: bool) -> ReplyBroken:
        return interruption(may_go_on=may_go_on, has_others=self._followed is not None and self._followed.has_others())

    def _take(self, batch: Sequence[RecordedEvent], place: int) -> None:
        """Begin the reply that an event of a batch asks for here, or react to what else it says of one."""
        assert self._group is not None
        for thread_id, event in decoded(THREADS, batch[place : place + 1]):
            if isinstance(event, ReplyStarted) and event.instance == self._instance:
                self._begin(thread_id, event.reply_id, up_to(batch, place), may_return=bool(event.chat_id))
            elif isinstance(event, ReplyResumed) and event.instance == self._instance:
                self._broadcast.open(event.reply_id)
                self._begin(thread_id, event.reply_id, up_to(batch, place), may_return=True)
                if not self._readers[event.reply_id]:
                    self._await_reader(event.reply_id, least_seconds=RETURN_SECONDS)
            elif isinstance(event, ReplyResumed):
                if event.reply_id in self._underway:
                    self._give_up(thread_id, event.reply_id)
                if self._readers[event.reply_id]:
                    self._group.create_task(self.record_reconnect(thread_id, event.reply_id), name="reader stays")
            else:
                self._heed(event)

    def withhold_unsupported_code(self, *, on: bool) -> None:
        """Change what the answers do that begin from now on."""
        self._context = replace(self._context, settings=replace(self._context.settings, withhold_unsupported_code=on))

    def stop(self, reply_id: str) -> None:
        """Stop a reply without readers. What is written stays in the thread, marked as stopped."""
        if reply_id in self._underway:
            self._cancel(reply_id, ReplyBroken("stopped", STOPPED))
        else:
            self._broadcast.close(reply_id)  # it has ended, or has yet to begin and will find no reader

    @contextmanager
    def reading(
        self,
        thread_id: str,
        reply_id: str,
        *,
        may_return: bool,
        returns: bool = False,
        is_instance: bool = False,
        is_counted_by_giver: Callable[[], bool] = lambda: False,
    ) -> Iterator[None]:
        """Count a reader of a reply; one that leaves by an exception, as when a connection is cut, has lost the rest of
        it.

        ``may_return``: the client has named its chat, so it could ask for it; ``returns``: it has said that it will.
        ``is_instance``: the readers are those of another instance, which connects again if it can.
        ``is_counted_by_giver``: another instance gives the reply, and notices itself that its last reader leaves.
        """
        self._readers[reply_id] += 1
        self._end_wait(reply_id)
        try:
            yield
        except BaseException:
            self._readers[reply_id] -= 1
            if self._readers[reply_id] == 0 and not is_counted_by_giver():
                least_seconds = RETURN_SECONDS if returns else INSTANCE_SECONDS if is_instance else 0.0
                self._on_disconnect(thread_id, reply_id, may_return=may_return, least_seconds=least_seconds)
            raise
        else:
            self._readers[reply_id] -= 1
        finally:
            if self._readers[reply_id] == 0:
                del self._readers[reply_id]
                if (relay := self._relays.get(reply_id)) is not None:
                    relay.cancel()

    async def stop_for_reader(self, thread_id: str, reply_id: str) -> None:
        """Stop a reply because its reader asked for that, in whichever process it is written."""
        if reply_id in self._underway:
            self.stop(reply_id)
        else:
            await self._record(thread_id, StopReply(reply_id, "stopped", now()))

    @property
    def awaited(self) -> int:
        """Return how many replies go on without a reader."""
        return len(self._deadlines)

    async def record_reconnect(self, thread_id: str, reply_id: str) -> None:
        """Record, where a reply had lost its reader, that a reader is there again, or has now read it to its end."""
        await self._record(thread_id, ReturnToReply(reply_id, now()))

    async def settle_if_orphaned(self, thread_id: str, reply_id: str, instance: str) -> None:
        """Go on with a reply under way when the process that gave it has ended, or mark it as interrupted."""
        await self._orphans.settle(thread_id, reply_id, instance)

    def _on_disconnect(self, thread_id: str, reply_id: str, *, may_return: bool, least_seconds: float) -> None:
        if max(self._context.grace_seconds, least_seconds) <= 0 or not may_return:
            self.stop(reply_id)
            return
        self._await_reader(reply_id, least_seconds=least_seconds)
        if self._group is not None:
            leaving = self._record(thread_id, LeaveReply(reply_id, now()))
            try:
                self._group.create_task(leaving, name="reader left")
            except RuntimeError:  # the service goes down: the reply is interrupted, so it waits for its reader
                leaving.close()

    def _await_reader(self, reply_id: str, *, least_seconds: float = 0.0) -> None:
        if self._broadcast.find(reply_id) is not None and reply_id not in self._deadlines:
            loop = asyncio.get_running_loop()
            self._deadlines[reply_id] = loop.call_later(
                max(least_seconds, self._context.grace_seconds), self.stop, reply_id
            )

    def _end_wait(self, reply_id: str) -> None:
        deadline = self._deadlines.pop(reply_id, None)
        if deadline is not None:
            deadline.cancel()

    def _heed(self, event: ThreadEvent) -> None:
        """React to what any process has recorded about a reply that this one writes."""
        match event:
            case ReaderLeft(reply_id=reply_id) if reply_id in self._underway and not self._readers[reply_id]:
                self._await_reader(reply_id)
            case ReaderReturned(reply_id=reply_id):
                self._end_wait(reply_id)
            case ReplyStopped(reply_id=reply_id) if reply_id in self._underway:
                self._cancel(reply_id, ReplyBroken("stopped", STOPPED))
            case ReplyFailed(reply_id=reply_id, code=code, message=message) if reply_id in self._underway:
                self._cancel(reply_id, ReplyBroken(code, message))
            case _:
                pass

    def _cancel(self, reply_id: str, told: ReplyBroken) -> None:
        underway = self._underway[reply_id]
        if not underway.writer.is_ending:
            underway.stopped = told
            # Not at once: a task that is cancelled before its first step never runs, and would record nothing.
            asyncio.get_running_loop().call_soon(underway.task.cancel)

    def _begin(self, thread_id: str, reply_id: str, begun: Sequence[RecordedEvent], *, may_return: bool) -> None:
        """``begun``: as ``up_to`` returns it."""
        assert self._group is not None
        position, asked_by = begun[-1].position, begun[-1].metadata.correlation_id
        writer = ReplyWriter(
            self._store, thread_id, reply_id, position, giver=self._instance, clock=self._segments,
            moment=moment_of(position, len(self._underway)),
        )  # fmt: skip
        underway = self._underway[reply_id] = Underway(writer, may_return=may_return)
        reply = self._reply(thread_id, reply_id, underway, begun)
        if self._context.tracer.is_on:
            asked = {"docsmith.request.id": asked_by}
            reply = within(self._context.tracer.span("docsmith.reply", asked, asked_by=asked_by), reply)
        underway.task = self._group.create_task(reply, name=f"reply {reply_id}")
        underway.task.add_done_callback(lambda _: self._forget(reply_id, underway))

    def _forget(self, reply_id: str, underway: Underway) -> None:
        """The reply's task has ended; when the service goes down, perhaps before its first step."""
        if self._underway.get(reply_id) is underway:
            del self._underway[reply_id]
            self._end_wait(reply_id)
            topic = self._broadcast.find(reply_id)
            if topic is not None and not underway.has_begun:
                topic.publish(self._cut_short(may_go_on=self._may_go_on(underway)))
            self._broadcast.close(reply_id)

    def _may_go_on(self, underway: Underway) -> bool:
        return underway.may_return and self._context.takes_over

    def _give_up(self, thread_id: str, reply_id: str) -> None:
        """Leave a reply to the process that goes on with it, or has ended it, and have its readers here follow it."""
        underway, topic = self._underway.pop(reply_id), self._broadcast.detach(reply_id)
        log.info("a reply goes on elsewhere", reply_id=reply_id)
        underway.writer.abandon()
        self._end_wait(reply_id)
        if underway.task is not asyncio.current_task():
            asyncio.get_running_loop().call_soon(underway.task.cancel)
        if topic is None:
            return
        if self._followed is None or self._group is None or not self._readers[reply_id]:
            topic.publish(ReplyBroken("interrupted", INTERRUPTED))
            topic.close()
            return
        relay = self._group.create_task(self._followed.relay(thread_id, reply_id, topic), name=f"relay {reply_id}")
        self._relays[reply_id] = relay
        relay.add_done_callback(lambda _: self._relays.pop(reply_id, None))

    async def _thread(self, thread_id: str) -> Loaded[ThreadState]:
        return await retry_while_unavailable(partial(load, self._store, THREADS, thread_id))

    async def _record(self, thread_id: str, command: ThreadCommand) -> None:
        with suppress(Conflict, NotFound, SubjectErased):  # another reply has taken its place, or it is erased
            await retry_while_unavailable(
                partial(execute, self._store, THREADS, thread_id, command, command_id=CommandId())
            )

    async def _reply(self, thread_id: str, reply_id: str, underway: Underway, begun: Sequence[RecordedEvent]) -> None:
        topic, writer, underway.has_begun = self._broadcast.find(reply_id), underway.writer, True
        try:
            if topic is None:  # the client opens it before it asks, and has left already
                await retry_while_unavailable(lambda: writer.end(StopReply(reply_id, "stopped", now())))
                return
            loaded = thread_of(begun) or await self._thread(thread_id)
            del begun
            owner = loaded.state.organization_id if isinstance(loaded.state, Thread) else ""
            async with self._slots.held(owner) as has_waited:
                if has_waited:
                    loaded = await self._thread(thread_id)
                writer.begin_at(loaded)
                await self._answer(thread_id, reply_id, topic, writer, loaded)
        except GivenElsewhere:
            if not writer.is_abandoned:
                self._give_up(thread_id, reply_id)
        except asyncio.CancelledError:
            stopped = underway.stopped
            if writer.is_abandoned:
                raise
            if stopped is None:
                may_go_on = self._may_go_on(underway)
                if topic is not None:
                    topic.publish(self._cut_short(may_go_on=may_go_on))
                end = RecordText(reply_id, "", is_left=True) if may_go_on else StopReply(reply_id, "interrupted", now())
                with suppress(StoreUnavailable):  # then the next process finds it as far as it is recorded
                    await asyncio.shield(writer.end(end))
                raise
            if topic is not None:
                topic.publish(stopped)
            await retry_while_unavailable(lambda: writer.end(StopReply(reply_id, "stopped", now())))
        except Exception as error:  # a reply's edge
            if writer.is_abandoned:
                return
            log.exception("reply crashed")
            unavailable = isinstance(error, StoreUnavailable)
            code, sentence = ("unavailable", UNAVAILABLE) if unavailable else ("internal", INTERNAL)
            if topic is not None:
                topic.publish(ReplyBroken(code, sentence))
            self._broadcast.close(reply_id)  # its reader need not wait until that is recorded
            await retry_while_unavailable(lambda: writer.end(FailReply(reply_id, code, sentence, now())))

    async def _answer(
        self, thread_id: str, reply_id: str, topic: Topic[ReplyEvent], writer: ReplyWriter, loaded: Loaded[ThreadState]
    ) -> None:
        assert isinstance(loaded.state, Thread)
        turn = loaded.state.turn_of(reply_id)
        assert turn is not None
        assert turn.reply is not None
        question, characters = question_of(loaded.state, reply_id), 0
        if self._imported is not None:
            await asyncio.shield(self._imported)
        if turn.reply.resumes:
            progress = await self._repeat(thread_id, reply_id, topic)
            if not progress.is_readable:
                topic.publish(ReplyBroken("interrupted", INTERRUPTED))
                await writer.end(StopReply(reply_id, "interrupted", now()))
                return
            question, characters = replace(question, progress=progress), len(progress.text)
        else:
            topic.publish(ReplyOpened(thread_id, reply_id))
        if loaded.damaged and question.text == DAMAGED:
            topic.publish(ReplyBroken("text_damaged", TEXT_DAMAGED))
            await writer.end(FailReply(reply_id, "text_damaged", TEXT_DAMAGED, now()))
            return
        live = LiveText(topic, writer, characters)
        try:
            async with aclosing(self._events(question, live, is_public=turn.reply.is_public)) as events:
                async for event in events:
                    await self._give(event, reply_id, live)
        except ReplyTooLong:
            await self._give(TOO_LONG, reply_id, live)

    async def _give(self, event: AnswerEvent, reply_id: str, live: LiveText) -> None:
        """Record an event of an answer, and publish it where it is for readers."""
        writer = live.writer
        match event:
            case TextDelta() | Thought() | SentencesChecked():
                live(event)
                return
            case ModelFailure():
                failed = {"model": event.model, "code": event.code, "reason": event.reason}
                log.warning("model failed", reply_id=reply_id, **failed)
                if event.is_final:
                    live.trouble = ModelTrouble(event.model, event.code, event.reason[:MAX_REASON])
                if self._context.on_model_failure is not None:
                    self._context.on_model_failure(event)
                return
            case CallEnded():
                writer.end_call(event.raw, replace(event.end, prompts=await self._prompts.hash()))
                return
            case SearchFinished() as found:
                searched = (found.query, found.sources, found.planned_by, found.planned, found.expected)
                writer.add(RecordSources(reply_id, *searched))
                live.topic.pack_later()
            case ReplyDone() as done:
                completed = CompleteReply(
                    reply_id,
                    done.text,
                    done.cited,
                    done.resolution,
                    done.model,
                    done.usage,
                    now(),
                    done.finish_reason,
                    done.uncited,
                    done.checks,
                    live.first_text_at,
                    unsure=done.unsure,
                    failure=done.failure,
                    trouble=live.trouble,
                )
                if not await writer.conclude(completed):
                    raise GivenElsewhere
            case ReplyBroken(code="interrupted"):
                await writer.conclude(StopReply(reply_id, "interrupted", now()))
            case ReplyBroken(code=code, message=message):
                await writer.conclude(FailReply(reply_id, code, message, now(), trouble=live.trouble))
            case _:
                pass
        if writer.is_abandoned:
            raise GivenElsewhere
        live.topic.publish(event)

    async def _repeat(self, thread_id: str, reply_id: str, topic: Topic[ReplyEvent]) -> ReplyProgress:
        """Publish what is on record of a reply, for its readers here, and return how far it has come."""
        events = await events_of_reply(self._store, thread_id, reply_id)
        replay = ReplyReplay(thread_id, reply_id)
        for published in merged(published for event in events for published in replay.apply(event)):
            topic.publish(published)
        return progress_of(events, reply_id)

    def _events(self, question: Question, live: LiveText, *, is_public: bool) -> AsyncGenerator[AnswerEvent, None]:
        from service.workers.replies.reply_events import reply_events  # late: see import_answer

        return reply_events(question, live, self._context, is_public=is_public)
