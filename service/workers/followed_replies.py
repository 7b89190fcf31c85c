"""Replies that another process gives, or has given, for the readers here.

A reply's record is followed to its end. Where its giver is an instance that can be reached, its text comes from there
by one stream, a moment before it is on record; however many readers there are here, it is one stream, into one topic.
When the giver has ended, another goes on with the reply, or this one: then the text comes from there. What a reader has
is compared with what each source gives (``service.domain.threads.transcript``), so each character comes once. Where
they differ, the topic ends without the reply's end; its readers are cut off, and can ask for the reply from its start.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from urllib.parse import quote, urlencode

import structlog
from msgspec.structs import replace

from eventstore import EventStore, RecordedEvent, StoreUnavailable
from service.domain.threads.live_lines import TOPIC_HEADER, LineReader
from service.domain.threads.recorded_reply import ReplyResumed, ReplyStarted
from service.domain.threads.replies import ReplyBroken, ReplyEvent, ReplyReplay, merged
from service.domain.threads.transcript import Diverged, Transcript, TranscriptSource
from service.ports.shared.instances import Instances
from service.ports.shared.internal_http import InstanceUnreachable, InternalHttp, InternalRequest
from service.queries.threads import recorded_of_reply
from service.streams import THREADS, decoded
from service.workers.replies.broadcast import Broadcast, Topic

log = structlog.get_logger()

SILENCE_SECONDS = 5.0
"""How often a stream shows that it lives while nothing happens."""
SILENT_SECONDS = 3 * SILENCE_SECONDS
FIRST_SECONDS = 1.0
"""How long the record waits for the giver's stream, which has more of a search's result."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.1, 2.0
"""Before a stream that has ended early is asked for again."""
LEAVE_SECONDS = 1.0
"""For the giver to hear that no one reads on here."""
GOING_DOWN = ReplyBroken("unavailable", "The service is restarting; ask again in a moment.")


class FollowedReplies:
    def __init__(
        self,
        store: EventStore,
        broadcast: Broadcast[ReplyEvent],
        instances: Instances,
        closing: asyncio.Event,
        http: InternalHttp | None = None,
    ) -> None:
        """``broadcast``: the replies that this process gives. ``http``: None where no instance can be reached.

        ``closing`` ends all that is followed.
        """
        self._store, self._broadcast, self._instances = store, broadcast, instances
        self._closing, self._http = closing, http
        self._followed: dict[str, FollowedReply] = {}

    @asynccontextmanager
    async def follow(self, thread_id: str, reply_id: str, *, returns: bool = False) -> AsyncIterator["FollowedReply"]:
        """Follow a reply while a reader here reads it. ``returns``: its client has said that it comes back."""
        followed = self._followed.get(reply_id)
        if followed is None or followed.has_ended:
            followed = self._followed[reply_id] = self._begin(thread_id, reply_id, Topic(), returns=returns)
        followed.readers += 1
        try:
            yield followed
        finally:
            followed.readers -= 1
            if not followed.readers:
                if self._followed.get(reply_id) is followed:
                    del self._followed[reply_id]
                is_left = not (followed.has_ended or self._closing.is_set())
                await followed.end()
                if is_left:
                    await followed.leave()

    def has_others(self) -> bool:
        """Return whether another instance can go on with a reply, and be asked for it."""
        return _has_others(self._instances)

    async def relay(self, thread_id: str, reply_id: str, topic: Topic[ReplyEvent]) -> None:
        """Go on with the topic of a reply that was given here, and is given elsewhere now, until its end."""
        followed = self._begin(thread_id, reply_id, topic, returns=True)
        try:
            await asyncio.wait([followed.task])
        finally:
            await followed.end()

    def _begin(self, thread_id: str, reply_id: str, topic: Topic[ReplyEvent], *, returns: bool) -> "FollowedReply":
        target = f"/internal/replies/{quote(reply_id, safe='')}"
        query = {"thread": thread_id, "returns": str(int(returns))}
        giver = _Giver(reply_id, target, query, self._broadcast, self._instances, self._http)
        return FollowedReply(self._store, thread_id, reply_id, topic, giver, self._closing)


class FollowedReply:
    """One reply that comes from elsewhere."""

    def __init__(
        self,
        store: EventStore,
        thread_id: str,
        reply_id: str,
        topic: Topic[ReplyEvent],
        giver: "_Giver",
        closing: asyncio.Event,
    ) -> None:
        self.topic, self.readers = topic, 0
        self._store, self._thread_id, self._reply_id = store, thread_id, reply_id
        self._transcript = Transcript(topic.published())
        self._giver, self._closing = giver, closing
        self._of_giver: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._has_first = asyncio.Event()
        """The giver's stream has begun, or cannot now."""
        self.task = asyncio.create_task(self._run(), name=f"followed reply {reply_id}")
        self.task.add_done_callback(_log_failure)

    @property
    def has_ended(self) -> bool:
        return self._over.is_set() or self.task.done()

    def is_counted_by_giver(self) -> bool:
        """Return whether the instance that gives the reply knows of the readers here, or did when they left."""
        return self._giver.is_connected

    async def leave(self) -> None:
        """Let the giver know that the readers here have left, where it cannot tell that from a connection that was cut.
        Call it after ``end``.
        """
        await self._giver.leave()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    async def _run(self) -> None:
        tasks: list[asyncio.Task[object]] = [
            asyncio.create_task(self._follow_record(), name="record of a reply"),
            asyncio.create_task(self._over.wait()),
            asyncio.create_task(self._closing.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
            if not self._over.is_set():
                self.topic.publish(replace(GOING_DOWN, goes_on=self._giver.has_others()))
        finally:
            self.topic.close()
            tasks += [self._of_giver] if self._of_giver is not None else []
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _publish(self, source: TranscriptSource, events: Iterable[ReplyEvent]) -> None:
        """Publish what readers do not have of the next events of a source."""
        if self._over.is_set():
            return
        try:
            for event in events:
                new = source.take(event)
                if new is not None:
                    self.topic.publish(new)
        except Diverged:
            log.info("a reply goes on in other words: its readers are cut off", reply_id=self._reply_id)
            self._over.set()
        if self._transcript.is_over:
            self._over.set()

    async def _follow_record(self) -> None:
        """Publish what is recorded of the reply up to its end, and have the text come from the one that gives it."""
        source, replay = self._transcript.source(), ReplyReplay(self._thread_id, self._reply_id)
        after: int | None = None
        while not self._over.is_set():
            try:
                if after is None:
                    begun = await recorded_of_reply(self._store, self._thread_id, self._reply_id)
                    after = begun[-1].position if begun else 0
                    await self._take_first(begun, source, replay)
                async with aclosing(self._store.follow(after=after, stream=THREADS.stream(self._thread_id))) as batches:
                    async for batch in batches:
                        after = batch[-1].position
                        self._take(batch, source, replay)
                        if self._over.is_set():
                            return
            except StoreUnavailable as error:
                log.warning("a reply's record cannot be followed; it is tried again", kind=type(error).__name__)
                await asyncio.sleep(LONGEST_WAIT_SECONDS)

    async def _take_first(
        self, recorded: Sequence[RecordedEvent], source: TranscriptSource, replay: ReplyReplay
    ) -> None:
        published = self._replayed(recorded, replay)
        if not replay.is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_SECONDS):
                    await self._has_first.wait()
        self._publish(source, merged(published))

    def _take(self, recorded: Sequence[RecordedEvent], source: TranscriptSource, replay: ReplyReplay) -> None:
        self._publish(source, merged(self._replayed(recorded, replay)))

    def _replayed(self, recorded: Sequence[RecordedEvent], replay: ReplyReplay) -> list[ReplyEvent]:
        """Return what to publish for recorded events, and turn to the instance that gives the reply by the last of
        them.
        """
        name, published = self._giver.name, list[ReplyEvent]()
        for _, event in decoded(THREADS, recorded):
            if isinstance(event, ReplyStarted | ReplyResumed) and event.reply_id == self._reply_id:
                name = event.instance
            published.extend(replay.apply(event))
        if name != self._giver.name and not replay.is_over:
            self._turn_to(name)
        return published

    def _turn_to(self, name: str) -> None:
        if self._of_giver is not None:
            self._of_giver.cancel()
        self._giver.change(name)
        self._of_giver = asyncio.create_task(self._follow_giver(), name="reply from its giver")
        self._of_giver.add_done_callback(_log_failure)

    async def _follow_giver(self) -> None:
        """Publish what the giver publishes, and connect again where that has ended early."""
        wait = FIRST_WAIT_SECONDS
        while True:
            try:
                async with aclosing(self._giver.events(self._transcript)) as batches:
                    async for source, events in batches:
                        self._publish(source, events)
                        self._has_first.set()
                        wait = FIRST_WAIT_SECONDS
            except (InstanceUnreachable, ValueError) as error:
                self._giver.is_connected = False
                log.info("a reply does not come from its giver", giver=self._giver.name, kind=type(error).__name__)
            self._has_first.set()
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)


class _Giver:
    """The instance that gives a reply, and how far its events have come."""

    def __init__(
        self,
        reply_id: str,
        target: str,
        query: dict[str, str],
        broadcast: Broadcast[ReplyEvent],
        instances: Instances,
        http: InternalHttp | None,
    ) -> None:
        self._reply_id, self._target, self._query = reply_id, target, query
        self._broadcast, self._instances, self._http = broadcast, instances, http
        self.name = ""
        self.is_connected = False
        self._topic_id, self._published = "", 0
        self._source: TranscriptSource | None = None

    def has_others(self) -> bool:
        return _has_others(self._instances)

    def change(self, name: str) -> None:
        self.name, self.is_connected, self._topic_id = name, False, ""

    async def leave(self) -> None:
        peer = self._instances.find(self.name)
        if peer is None or self._http is None or not self.is_connected:
            return
        request = InternalRequest("POST", f"{self._target}/left?{urlencode(self._query)}")
        with suppress(TimeoutError, InstanceUnreachable):  # then the giver waits a moment for this instance
            async with asyncio.timeout(LEAVE_SECONDS), self._http.send(peer, request):
                pass

    async def events(
        self, transcript: Transcript
    ) -> AsyncGenerator[tuple[TranscriptSource, Iterable[ReplyEvent]], None]:
        """Yield its events after those that were yielded, until its stream ends: there may be more.

        Raises InstanceUnreachable, ValueError.
        """
        topic = self._broadcast.find(self._reply_id) if self.name == self._instances.name else None
        peer = self._instances.find(self.name)
        if topic is not None:
            source = self._source_in(topic.id, transcript)
            async with aclosing(topic.batches(after=self._published)) as batches:
                async for events in batches:
                    self._published += len(events)
                    yield source, _without_interruption(merged(events))
        elif peer is not None and peer.url and self._http is not None:
            request = InternalRequest("GET", self._address(), silent_seconds=SILENT_SECONDS)
            async with self._http.send(peer, request) as answer:
                if answer.status != 200:
                    return
                source, lines = self._source_in(answer.headers.get(TOPIC_HEADER, ""), transcript), LineReader()
                self.is_connected = True
                async with aclosing(answer.parts()) as parts:
                    async for part in parts:
                        for line in lines.read(part):
                            self._published = line.published
                            yield source, _without_interruption(line.events)
                self.is_connected = False

    def _source_in(self, topic_id: str, transcript: Transcript) -> TranscriptSource:
        """Return the source that the topic is, from its start where it is another one than before."""
        if self._source is None or topic_id != self._topic_id:
            self._topic_id, self._published, self._source = topic_id, 0, transcript.source()
        return self._source

    def _address(self) -> str:
        after = {"topic": self._topic_id, "after": str(self._published)} if self._topic_id else {}
        return f"{self._target}?{urlencode(self._query | after)}"


def _has_others(instances: Instances) -> bool:
    return any(peer.url for peer in instances.others())


def _without_interruption(events: Iterable[ReplyEvent]) -> list[ReplyEvent]:
    """Return the events without the news that the giver goes down: who goes on is on record."""
    return [event for event in events if not (isinstance(event, ReplyBroken) and event.code == "interrupted")]


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("following a reply failed", exc_info=error)
