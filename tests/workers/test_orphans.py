"""Replies whose process has ended."""

import asyncio
import sqlite3
from contextlib import aclosing, asynccontextmanager, closing
from datetime import UTC, datetime

from msgspec.structs import replace

from eventstore import SQLiteEventStore, execute
from service.adapters.builtin.answer import BuiltinAnswer
from service.domain.model import Usage
from service.domain.search import SearchFilter, Source
from service.domain.threads.recorded_reply import CallEnd, CompleteReply, RecordSources, RecordText
from service.domain.threads.replies import ReplyBroken, ReplyDone, TextDelta
from service.domain.threads.threads import PostMessage, StartThread, digest_of
from service.ports.model import ModelEnd, ModelText
from service.queries.threads import events_of_reply
from service.streams import THREADS
from service.workers.replies.broadcast import Broadcast
from service.workers.replies.orphans import Orphans
from service.workers.replies.replier import Replier
from service.workers.replies.reply_context import ReplyContext
from tests.fakes.search_index import FakeSearchIndex
from tests.workers.test_replier import until

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SOURCE = Source(1, "install.md", "/install", "Install", "Install", 1, 3, "0" * 40)
WHOLE = "Run the installer [1], and wait."


class Rest:
    """A model that goes on."""

    name = "rest"

    def __init__(self):
        self.requests = []
        self.hold = asyncio.Event()
        self.hold.set()

    def for_assistant(self):
        return self

    def builtin_for_assistant(self):
        return BuiltinAnswer()

    def for_planning(self):
        return None

    async def window_tokens(self):
        return None

    async def reply(self, request):
        self.requests.append(request)
        begun = request.continuation.text if request.continuation is not None else ""
        yield ModelText(WHOLE[len(begun) : len(begun) + 3])
        await self.hold.wait()
        yield ModelText(WHOLE[len(begun) + 3 :])
        yield ModelEnd("stop", (), Usage(10, 5), self.name)


@asynccontextmanager
async def process(store, views, models, *, instance="here", takes_over=True, broadcast=None, crashed=()):
    index = FakeSearchIndex()
    index.put("guide", {"install.md": "# Install\n\nRun the installer.\n"})
    context = ReplyContext(models, index, takes_over=takes_over)
    topics = broadcast or Broadcast()
    replier = Replier(
        store, views, topics, context, instance=instance, is_alive=lambda name: name != "dead", crashed=lambda: crashed
    )
    ready = asyncio.Event()
    task = asyncio.create_task(replier.run(ready=ready))
    await ready.wait()
    try:
        yield replier
    finally:
        task.cancel()
        await asyncio.wait([task])


async def begin(store, name, *recorded, chat_id="chat", instance="dead"):
    message = PostMessage(
        "m", "", "How to install?", (), "", SearchFilter(), 5, 2, name, instance, "guide", "x", NOW, chat_id=chat_id
    )
    await execute(store, THREADS, name, StartThread("o", "p", "guide", "x", digest_of("k"), message))
    for command in recorded:
        await execute(store, THREADS, name, command)


async def completed(store, name):
    assert await until(store, name, "reply-completed", "reply-stopped", "reply-failed") == "reply-completed"
    return (await events_of_reply(store, name, name))[-1]


async def test_reply_of_a_dead_process_goes_on_here(store, followed):
    found = RecordSources("a", "install", (SOURCE,))
    await begin(store, "a", found, RecordText("a", "Run the installer", raw="Run the installer [1]"))
    model = Rest()
    async with process(store, followed, model):
        done = await completed(store, "a")
    assert (done.text, done.cited) == ("Run the installer [1](/install), and wait.", (1,))
    assert model.requests[0].continuation.text == "Run the installer [1]"


async def test_reply_without_a_search_on_record_begins_here(store, followed):
    await begin(store, "a")
    model = Rest()
    async with process(store, followed, model):
        done = await completed(store, "a")
    assert done.text == "Run the installer [1](/install), and wait."
    assert model.requests[0].continuation is None


async def test_reply_whose_model_had_ended_is_not_paid_again(store, followed):
    ended = CallEnd("stop", "paid/model", Usage(100, 50, 0.5))
    await begin(store, "a", RecordSources("a", "install", (SOURCE,)), RecordText("a", "Run it.", call=ended))
    model = Rest()
    async with process(store, followed, model):
        done = await completed(store, "a")
    assert (done.text[:7], done.model, done.usage, model.requests) == ("Run it.", "paid/model", ended.usage, [])


async def test_reply_that_nobody_can_ask_for_is_interrupted(store, followed):
    await begin(store, "a", chat_id="")
    model = Rest()
    async with process(store, followed, model):
        assert await until(store, "a", "reply-completed", "reply-stopped") == "reply-stopped"
    assert model.requests == []


async def test_only_one_of_two_processes_takes_a_reply_over(store, followed):
    names = [f"t{number}" for number in range(5)]
    for name in names:
        await begin(store, name)
    one, two = Rest(), Rest()
    async with process(store, followed, one), process(store, followed, two, instance="there"):
        for name in names:
            await completed(store, name)
    assert len(one.requests) + len(two.requests) == len(names)


async def test_a_short_command_leaves_replies_to_the_service(store, followed):
    await begin(store, "a")
    await begin(store, "b", chat_id="")
    async with process(store, followed, Rest(), instance="command", takes_over=False):
        assert await until(store, "b", "reply-stopped") == "reply-stopped"
    async with process(store, followed, Rest()):
        await completed(store, "a")


async def test_stopped_process_leaves_its_replies_to_the_next(store, followed):
    model, broadcast = Rest(), Broadcast()
    model.hold.clear()
    topic = broadcast.open("a")
    async with process(store, followed, model, instance="dead", broadcast=broadcast):
        await begin(store, "a")
        async with asyncio.timeout(60), aclosing(topic.listen()) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
    heard = [event async for event in topic.listen()]
    assert isinstance(heard[-1], ReplyBroken)
    assert heard[-1].code == "interrupted"
    seen = "".join(event.text for event in heard if isinstance(event, TextDelta))
    later = Rest()
    async with process(store, followed, later):
        assert (await completed(store, "a")).text == "Run the installer [1](/install), and wait."
    assert later.requests[0].continuation.text == seen


async def test_listener_of_the_taken_over_reply_gets_it_whole(store, followed):
    await begin(store, "a", RecordSources("a", "install", (SOURCE,)), RecordText("a", "Run the"))
    broadcast = Broadcast()
    topic = broadcast.open("a")
    async with process(store, followed, Rest(), broadcast=broadcast):
        async with asyncio.timeout(60):
            heard = [event async for event in topic.listen()]
    assert isinstance(heard[-1], ReplyDone)
    assert "".join(event.text for event in heard if isinstance(event, TextDelta)) == heard[-1].text
    assert heard[-1].text == "Run the installer [1](/install), and wait."


async def test_reply_that_ended_at_a_crash_waits_for_its_reader(store, followed):
    done = CompleteReply("a", "Run it.", (), "answered", "m", Usage(), datetime.now(UTC))
    await begin(store, "a", done)
    await begin(store, "b", replace(done, reply_id="b"), chat_id="")
    async with process(store, followed, Rest(), crashed=("dead",)):
        assert await until(store, "a", "reader-left") == "reader-left"
        await begin(store, "c")  # what is done at the start is done before this one
        await completed(store, "c")
    assert [type(event).__name__ for event in await events_of_reply(store, "b", "b")] == [
        "ReplyStarted",
        "ReplyCompleted",
    ]


async def test_last_reply_waits_for_its_reader_when_another_process_crashes(store, followed):
    done = CompleteReply("a", "Run it.", (), "answered", "m", Usage(), datetime.now(UTC))
    await begin(store, "a", done)
    crashed, turns = [], asyncio.Queue()

    async def sleep(_seconds):
        await turns.get()

    orphans = Orphans(
        store, followed, instance="here", is_alive=lambda name: name not in crashed, crashed=lambda: crashed,
        takes_over=True, sleep=sleep,
    )  # fmt: skip
    watching = asyncio.create_task(orphans.watch(await store.head()))
    turns.put_nowait(None)
    assert len(await events_of_reply(store, "a", "a")) == 2
    crashed.append("dead")
    turns.put_nowait(None)
    turns.put_nowait(None)
    assert await until(store, "a", "reader-left") == "reader-left"
    watching.cancel()


async def test_reply_whose_record_is_damaged_keeps_no_other_from_being_settled(tmp_path, store, followed):
    await begin(store, "a")
    await begin(store, "b")
    await followed.wait_for(await store.head(), 60)
    with closing(sqlite3.connect(tmp_path / "events.db")) as db, db:
        db.execute("UPDATE events SET data = '[]' WHERE stream = 'thread-a' AND stream_version = 1")
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as other:
        orphans = Orphans(other, followed, instance="here", is_alive=lambda _: False, crashed=tuple, takes_over=True)
        watching = asyncio.create_task(orphans.watch(await store.head()))
        assert await until(store, "b", "reply-resumed") == "reply-resumed"
        assert not watching.done()
        watching.cancel()
        await asyncio.wait([watching])
