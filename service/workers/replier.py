"""Answers what people ask: each reply a task of its own, told live, recorded in segments and once whole."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from functools import partial

import structlog

from eventstore import EventStore, Metadata, StoreUnavailable, SubjectErased, Views, execute, load
from service.assistant.answer import AnswerSettings, Question, answer
from service.assistant.context import Exchange
from service.domain.errors import Conflict, NotFound
from service.domain.replies import ReplyBroken, ReplyDone, ReplyEvent, ReplyOpened, SearchFinished, TextDelta
from service.domain.threads import (
    CompleteReply,
    FailReply,
    RecordSources,
    RecordText,
    ReplyStarted,
    StopReply,
    Thread,
    ThreadCommand,
)
from service.ports.model import Models
from service.ports.search_index import SearchIndex
from service.projections.threads import active_replies
from service.streams import THREADS, decoded
from service.system import now
from service.workers.broadcast import Broadcast, Topic
from service.workers.patience import patiently

log = structlog.get_logger()

SEGMENT_SECONDS = 0.25
"""How much of a reply a crash can lose, and how many events a reply costs."""
MAX_EARLIER_TURNS = 50
"""More than fits any prompt; the assistant takes what fits of them, newest first."""
INTERNAL = "Something went wrong on our side; it has been logged."
UNAVAILABLE = "The service cannot do this right now; try again."


class Replier:
    """Follows the store and answers what was asked of this instance."""

    def __init__(
        self,
        store: EventStore,
        views: Views,
        broadcast: Broadcast[ReplyEvent],
        *,
        models: Models,
        index: SearchIndex,
        instance: str,
        is_alive: Callable[[str], bool],
        settings: AnswerSettings,
        concurrent_replies: int,
    ) -> None:
        self._store, self._views, self._broadcast = store, views, broadcast
        self._models, self._index = models, index
        self._instance, self._is_alive = instance, is_alive
        self._settings = settings
        self._slots = asyncio.Semaphore(concurrent_replies)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopped: set[str] = set()

    async def run(self, *, ready: asyncio.Event | None = None) -> None:
        """Until cancelled: mark what dead processes left as interrupted, then answer whatever is asked here.

        ``ready`` is set once nothing that is asked can be missed. Replies under way when it is cancelled are ended
        properly for their readers, and recorded as interrupted.
        """
        after = await self._store.head()
        async with (
            asyncio.TaskGroup() as replies,
            aclosing(self._store.subscribe(after=after, category=THREADS.category)) as subscription,
        ):
            if ready is not None:
                ready.set()
            replies.create_task(self._end_orphans(after), name="orphaned replies")
            async for recorded in subscription:
                for thread_id, event in decoded(THREADS, [recorded]):
                    if isinstance(event, ReplyStarted) and event.instance == self._instance:
                        self._begin(replies, thread_id, event.reply_id, recorded.position)

    def stop(self, reply_id: str) -> None:
        """Nobody reads this reply any more. What is written stays on the thread, marked as stopped."""
        task = self._tasks.get(reply_id)
        if task is None:
            self._broadcast.close(reply_id)  # it has ended, or it has yet to begin and will find nobody
        else:
            self._stopped.add(reply_id)
            # Not at once: a task that is cancelled before its first step never runs, and would record nothing.
            asyncio.get_running_loop().call_soon(task.cancel)

    def _begin(self, replies: asyncio.TaskGroup, thread_id: str, reply_id: str, position: int) -> None:
        task = replies.create_task(self._reply(thread_id, reply_id, position), name=f"reply {reply_id}")
        self._tasks[reply_id] = task
        task.add_done_callback(lambda _: self._forget(reply_id))

    def _forget(self, reply_id: str) -> None:
        """The reply's task has ended; when the service goes down, perhaps before its first step."""
        del self._tasks[reply_id]
        self._stopped.discard(reply_id)
        self._broadcast.close(reply_id)

    async def _end_orphans(self, position: int) -> None:
        await self._views.wait_for(position, timeout_seconds=3600)  # views may be rebuilt at this very start
        for reply in await active_replies(self._views):
            if reply.instance != self._instance and not self._is_alive(reply.instance):
                command = StopReply(reply.reply_id, "interrupted", now())
                await patiently(partial(execute, self._store, THREADS, reply.thread_id, command))

    async def _reply(self, thread_id: str, reply_id: str, position: int) -> None:
        writer = _Writer(self._store, thread_id, reply_id, position)
        topic = self._broadcast.find(reply_id)
        try:
            if topic is None:  # whoever asked opens it before asking, and has left already
                await patiently(lambda: writer.end(StopReply(reply_id, "stopped", now())))
                return
            async with self._slots:
                await self._answer(thread_id, reply_id, topic, writer)
        except asyncio.CancelledError:
            if reply_id not in self._stopped:
                if topic is not None:
                    topic.tell(ReplyBroken("interrupted", "The service is restarting; ask again in a moment."))
                with suppress(StoreUnavailable):  # then the next start finds it interrupted
                    await asyncio.shield(writer.end(StopReply(reply_id, "interrupted", now())))
                raise
            await patiently(lambda: writer.end(StopReply(reply_id, "stopped", now())))
        except Exception as error:  # a reply's edge
            log.exception("reply crashed")
            unavailable = isinstance(error, StoreUnavailable)
            code, sentence = ("unavailable", UNAVAILABLE) if unavailable else ("internal", INTERNAL)
            if topic is not None:
                topic.tell(ReplyBroken(code, sentence))
            self._broadcast.close(reply_id)  # its reader need not wait until that is recorded
            await patiently(lambda: writer.end(FailReply(reply_id, code, sentence, now())))

    async def _answer(self, thread_id: str, reply_id: str, topic: Topic[ReplyEvent], writer: "_Writer") -> None:
        topic.tell(ReplyOpened(thread_id, reply_id))
        loaded = await load(self._store, THREADS, thread_id)
        assert isinstance(loaded.state, Thread)
        question = question_of(loaded.state, reply_id)
        flushing = asyncio.create_task(writer.run(), name="segments")
        try:
            async with aclosing(self._events(question)) as events:
                async for event in events:
                    match event:
                        case ReplyDone() as done:
                            await writer.end(
                                CompleteReply(
                                    reply_id, done.text, done.cited, done.resolution, done.model, done.usage, now()
                                )
                            )
                        case SearchFinished(query=query, sources=sources):
                            writer.add(RecordSources(reply_id, query, sources))
                        case TextDelta(text=text):
                            writer.write(text)
                        case ReplyBroken(code=code, message=message):
                            await writer.end(FailReply(reply_id, code, message, now()))
                        case _:
                            pass
                    topic.tell(event)
        finally:
            flushing.cancel()
            await asyncio.wait([flushing])
            if not flushing.cancelled() and (error := flushing.exception()) is not None:
                log.warning("segments were not written", kind=type(error).__name__)

    def _events(self, question: Question) -> AsyncGenerator[ReplyEvent, None]:
        return answer(question, index=self._index, model=self._models.for_assistant(), settings=self._settings)


def question_of(thread: Thread, reply_id: str) -> Question:
    """What a reply is to answer, with the turns before it as the thread's own record has them."""
    turn = thread.turn_of(reply_id)
    assert turn is not None
    asked = turn.message
    earlier = tuple(
        Exchange(before.message.text, before.reply.text)
        for before in thread.turns[: thread.turns.index(turn)]
        if before.reply is not None and before.reply.text
    )
    return Question(
        domain=thread.domain,
        reply_id=reply_id,
        text=asked.text,
        earlier=earlier[-MAX_EARLIER_TURNS:],
        context=asked.context,
        current_path=asked.current_path,
        filter=asked.filter,
        page_size=asked.page_size,
    )


class _Writer:
    """A reply's record: what is told live goes to the log a little later, in segments, in order."""

    def __init__(self, store: EventStore, thread_id: str, reply_id: str, position: int) -> None:
        self._store, self._thread_id, self._reply_id = store, thread_id, reply_id
        self._metadata = Metadata(causation=position)
        self._waiting: list[ThreadCommand] = []
        self._text: list[str] = []
        self._lock = asyncio.Lock()

    def add(self, command: ThreadCommand) -> None:
        self._cut()
        self._waiting.append(command)

    def write(self, text: str) -> None:
        self._text.append(text)

    async def run(self) -> None:
        """Until cancelled: write down what was told, from time to time."""
        while True:
            await asyncio.sleep(SEGMENT_SECONDS)
            await asyncio.shield(self.flush())

    async def flush(self) -> None:
        async with self._lock:
            self._cut()
            while self._waiting:
                with suppress(SubjectErased):  # its thread was erased meanwhile: nothing of it may be recorded
                    await self._execute(self._waiting[0])
                self._waiting.pop(0)

    async def end(self, command: ThreadCommand) -> None:
        """Write down what is left, then how it ended."""
        with suppress(Conflict, NotFound):  # another has ended it
            await self.flush()
            await self._execute(command)

    def _cut(self) -> None:
        if self._text:
            self._waiting.append(RecordText(self._reply_id, "".join(self._text)))
            self._text.clear()

    async def _execute(self, command: ThreadCommand) -> None:
        await execute(self._store, THREADS, self._thread_id, command, metadata=self._metadata)
