"""Replies whose readers leave at bad moments."""

import asyncio
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

import pytest

from eventstore import execute
from service.assistant.answer import AnswerSettings
from service.domain.threads import PostMessage, SearchFilter, StartThread, digest_of
from service.streams import THREADS
from service.workers.broadcast import Broadcast
from service.workers.replier import Replier
from tests.fakes.model import FakeModel, Says
from tests.fakes.search_index import FakeSearchIndex

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class OneModel:
    def __init__(self):
        self.model = FakeModel([Says("Run it [1].")] * 100)

    def for_assistant(self):
        return self.model


@asynccontextmanager
async def replying(store, views, broadcast, models):
    index = FakeSearchIndex()
    index.put("guide", {"install.md": "# Install\n\nRun the installer.\n"})
    replier = Replier(
        store, views, broadcast, models=models, index=index, instance="here", is_alive=lambda _: False,
        settings=AnswerSettings(), concurrent_replies=2,
    )  # fmt: skip
    ready = asyncio.Event()
    task = asyncio.create_task(replier.run(ready=ready))
    await ready.wait()
    try:
        yield replier
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


async def ask(store, name):
    """The thread and the reply have the same name."""
    message = PostMessage("m", "", "How to install?", (), "", SearchFilter(), 5, 2, name, "here", "guide", "x", NOW)
    await execute(store, THREADS, name, StartThread("o", "p", "guide", "x", digest_of("k"), message))


async def until(store, name, *types):
    async with asyncio.timeout(20), aclosing(store.subscribe(stream=f"thread-{name}")) as events:
        async for event in events:
            if event.type in types:
                return event.type
    raise AssertionError


async def test_a_question_whose_reader_has_left_already_is_not_put_to_the_model(store, followed):
    models = OneModel()
    async with replying(store, followed, Broadcast(), models):
        await ask(store, "left")  # nobody opened a topic to hear of it
        assert await until(store, "left", "reply-stopped", "reply-completed") == "reply-stopped"
    assert models.model.requests == []


async def test_a_reader_may_leave_before_the_question_is_recorded(store, followed):
    models, broadcast = OneModel(), Broadcast()
    async with replying(store, followed, broadcast, models) as replier:
        broadcast.open("left")
        replier.stop("left")
        await ask(store, "left")
        assert await until(store, "left", "reply-stopped", "reply-completed") == "reply-stopped"
    assert models.model.requests == []
    assert broadcast.find("left") is None


@pytest.mark.parametrize("turns", range(6))
async def test_every_reply_ends_whenever_its_reader_leaves(store, followed, turns):
    broadcast = Broadcast()
    async with replying(store, followed, broadcast, OneModel()) as replier:

        async def leave_as_it_begins(name):
            async with aclosing(store.subscribe(stream=f"thread-{name}")) as events:
                async for event in events:
                    if event.type == "reply-started":
                        for _ in range(turns):
                            await asyncio.sleep(0)  # the event loop's next turn
                        replier.stop(name)
                        return

        for number in range(10):
            name = f"t{number}"
            topic = broadcast.open(name)
            leaving = asyncio.create_task(leave_as_it_begins(name))
            await asyncio.sleep(0)
            await ask(store, name)
            await leaving
            async with asyncio.timeout(20):
                async for _ in topic.listen():
                    pass
            await until(store, name, "reply-stopped", "reply-completed")
