"""What is erased while somebody works on it."""

import asyncio
from contextlib import suppress

import pytest

from eventstore import Metadata, SQLiteEventStore, Views, execute, load
from service.adapters.builtin.answer import BuiltinAnswer
from service.commands.erasures import erase_subject
from service.domain.errors import NotFound
from service.domain.jobs.decider import Finished, Message, RequestJob
from service.projections import all_projections
from service.queries.jobs.jobs import JobSlots, find_job
from service.streams import JOBS, THREADS
from service.workers.erasures import Erasures
from service.workers.replies.broadcast import Broadcast
from tests.workers.test_replier import NOW, OneModel, ask, replying, until


class PatientModel(OneModel):
    """Begins to reply when it may."""

    name = "patient"

    def __init__(self):
        super().__init__()
        self.may_reply = asyncio.Event()

    def for_assistant(self):
        return self

    def builtin_for_assistant(self):
        return BuiltinAnswer()

    def for_planning(self):
        return None

    async def window_tokens(self):
        return None

    async def reply(self, request):
        await self.may_reply.wait()
        async for chunk in self.model.reply(request):
            yield chunk


async def test_reply_fails_when_its_thread_loses_its_key_others_go_on(store, followed):
    broadcast, model = Broadcast(), PatientModel()
    async with replying(store, followed, broadcast, model):
        await store.erase("thread-gone")  # before anything is recorded: not even the question can be
        with pytest.raises(Exception, match="erased"):
            await ask(store, "gone")
        topic = broadcast.open("going")
        await ask(store, "going")
        await store.erase("thread-going")
        model.may_reply.set()
        async for _ in topic.listen():
            pass
        assert await until(store, "going", "reply-failed", "reply-completed") == "reply-failed"
        broadcast.open("next")
        await ask(store, "next")
        assert await until(store, "next", "reply-failed", "reply-completed") == "reply-completed"


async def test_erasing_ends_what_is_under_way_and_refuses_what_comes(store, followed):
    await ask(store, "a")  # nobody is there to answer it
    done = await erase_subject(store, followed, "thread-a", Metadata(actor="cli:me"))
    assert (done.again, done.kept) == (False, ())
    events = await store.read_stream("thread-a")
    assert [(event.type, event.erased) for event in events] == [
        ("thread-started", True), ("message-posted", True), ("reply-started", False), ("reply-failed", False),
    ]  # fmt: skip
    again = await erase_subject(store, followed, "thread-a", Metadata())
    assert (again.again, again.position) == (True, done.position)
    thread = (await load(store, THREADS, "a")).state
    message = thread.turns[0].message
    assert (message.text, message.current_path, message.client_message_id) == ("[erased]",) * 3
    with pytest.raises(NotFound):
        await erase_subject(store, followed, "thread-b", Metadata())


class Told:
    """A store that tells what is erased in it."""

    def __init__(self, store):
        self._store, self.erased = store, asyncio.Queue()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def erase(self, subject):
        await self._store.erase(subject)
        self.erased.put_nowait(subject)


async def test_text_erased_elsewhere_is_erased_here(tmp_path, store, followed):
    await ask(store, "a")
    here = Told(store)
    erasures = Erasures(here, followed)
    await erasures.repeat()
    task = asyncio.create_task(erasures.run())
    async with (
        await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as elsewhere,
        await Views.open(tmp_path / "elsewhere.db", elsewhere, all_projections()) as views,
    ):
        await views.catch_up()
        await erase_subject(elsewhere, views, "thread-a", Metadata())
    async with asyncio.timeout(60):
        assert await here.erased.get() == "thread-a"
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_job_that_waits_is_not_begun_once_it_is_erased(store, followed):
    command = RequestJob(
        "o", "p", "docs", "main", "", "builtin", (Message("user", "Tell Ermentrude"),), "Tell Ermentrude",
        "docs/tell-ermentrude", False, False, 2, NOW,
    )  # fmt: skip
    await execute(store, JOBS, "1", command)
    await followed.wait_for(1)
    await erase_subject(store, followed, "job-1", Metadata())
    job = (await load(store, JOBS, "1")).state
    assert isinstance(job, Finished)
    assert (job.outcome.code, job.request.title, job.request.messages) == ("erased", "[erased]", ())
    row = await find_job(followed, "1", JobSlots(1, 1))
    assert (row.status, row.title, row.branch) == ("failed", "[erased]", "[erased]")
