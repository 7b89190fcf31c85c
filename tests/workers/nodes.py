"""Instances of one log in one process: each with its replies, and what it follows of the others over real HTTP."""

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime

from aiohttp import web

from eventstore import execute
from service.adapters.internal_http import AiohttpInternalHttp
from service.domain.search import SearchFilter
from service.domain.threads.replies import TextDelta
from service.domain.threads.threads import PostMessage, StartThread, digest_of
from service.ports.shared.instances import Peer
from service.streams import THREADS
from service.web.api.assistant import internal_replies
from service.web.http.app_keys import BROADCAST, REPLIER
from service.web.http.internal import INTERNAL_ACCESS, InternalAccess
from service.web.http.problems import BODY_SECONDS
from service.workers.followed_replies import FollowedReplies
from service.workers.replies.broadcast import Broadcast
from service.workers.replies.replier import Replier
from service.workers.replies.reply_context import ReplyContext
from tests.fakes.instances import FakeInstances
from tests.fakes.search_index import FakeSearchIndex

KEY = b"k" * 32
NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Node:
    def __init__(self, name, store, views, models, http, *, grace_seconds=0.0):
        self.name, self.store = name, store
        self.instances, self.broadcast, self.closing = FakeInstances(name), Broadcast(), asyncio.Event()
        self.followed = FollowedReplies(store, self.broadcast, self.instances, self.closing, http)
        index = FakeSearchIndex()
        index.put("guide", {"install.md": "# Install\n\nRun the installer.\n"})
        context = ReplyContext(models, index, grace_seconds=grace_seconds)
        self.replier = Replier(
            store,
            views,
            self.broadcast,
            context,
            instance=name,
            is_alive=self.instances.is_alive,
            followed=self.followed,
        )
        self.peer = None
        self._task = None

    async def serve(self, stack):
        app = web.Application()
        app[BROADCAST], app[REPLIER], app[BODY_SECONDS] = self.broadcast, self.replier, 60.0
        app[INTERNAL_ACCESS] = InternalAccess(self.name)
        app[INTERNAL_ACCESS].key = KEY
        app.add_routes(internal_replies.routes)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.peer = Peer(self.name, f"http://{host}:{port}", "1", is_home=False)

    async def run(self, stack):
        """Answer what is asked here, and take over what others have left."""
        ready = asyncio.Event()
        self._task = asyncio.create_task(self.replier.run(ready=ready))
        stack.push_async_callback(self.stop)
        await ready.wait()

    async def stop(self):
        self._task.cancel()
        await asyncio.wait([self._task])

    def knows(self, *others):
        self.instances.peers = {other.name: other.peer for other in others}

    @asynccontextmanager
    async def reading(self, name, *, returns=False):
        """Read a reply as a handler does, here or from elsewhere; gives the list of what has come."""
        topic = self.broadcast.find(name)
        async with AsyncExitStack() as stack:
            if topic is None:
                followed = await stack.enter_async_context(self.followed.follow(name, name, returns=returns))
                topic, is_counted = followed.topic, followed.is_counted_by_giver
            else:
                is_counted = bool
            reader = Reader(topic)
            stack.push_async_callback(reader.leave)
            with (
                suppress(ConnectionResetError),
                self.replier.reading(name, name, may_return=True, returns=returns, is_counted_by_giver=is_counted),
            ):
                yield reader
                reader.break_off()


class Reader:
    def __init__(self, topic):
        self.events = []
        self._came = asyncio.Condition()
        self.task = asyncio.create_task(self._read(topic))

    async def _read(self, topic):
        with suppress(asyncio.CancelledError):
            async with aclosing(topic.listen()) as events:
                async for event in events:
                    async with self._came:
                        self.events.append(event)
                        self._came.notify_all()

    @property
    def text(self):
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    async def until(self, text):
        async with asyncio.timeout(20), self._came:
            await self._came.wait_for(lambda: len(self.text) >= len(text))
        assert self.text == text

    def break_off(self):
        """As a handler whose connection breaks, unless there is nothing left to read."""
        if not self.task.done():
            raise ConnectionResetError

    async def leave(self):
        self.task.cancel()
        await asyncio.wait([self.task])

    async def end(self):
        """Return the last event, once there are no more."""
        async with asyncio.timeout(20):
            await asyncio.wait([self.task])
        return self.events[-1]


@asynccontextmanager
async def nodes(store, views, *names, models=None, http=None, grace_seconds=0.0):
    """Give instances that know of each other."""
    async with AsyncExitStack() as stack:
        internal = http or AiohttpInternalHttp(KEY)
        if http is None:
            stack.push_async_callback(internal.close)
        made = [Node(name, store, views, models, internal, grace_seconds=grace_seconds) for name in names]
        for node in made:
            await node.serve(stack)
        for node in made:
            node.knows(*(other for other in made if other is not node))
        stack.push_async_callback(_close, made)
        yield made, stack


async def _close(made):
    for node in made:
        node.closing.set()


async def ask(store, name, instance, *, chat_id="chat"):
    """The thread and the reply have the same name."""
    message = PostMessage(
        "m", "", "How to install?", (), "", SearchFilter(), 5, 2, name, instance, "guide", "x", NOW, chat_id=chat_id
    )
    await execute(store, THREADS, name, StartThread("o", "p", "guide", "x", digest_of("k"), message))
