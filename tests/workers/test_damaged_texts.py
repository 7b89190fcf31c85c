"""What needs a text that cannot be read any more stops, and says so; the rest goes on."""

import asyncio
import sqlite3
from contextlib import aclosing, closing

import pytest

from eventstore import SQLiteEventStore, Views, execute, load
from service.commands.jobs.jobs import archive_job
from service.domain.errors import NotFound
from service.domain.events import DAMAGED
from service.domain.hooks.incoming import SetIncomingSecret
from service.domain.jobs.decider import CancelJob
from service.domain.model import Usage
from service.domain.search import SearchFilter
from service.domain.threads.recorded_reply import CompleteReply
from service.domain.threads.replies import ReplyBroken, ReplyDone
from service.domain.threads.threads import PostMessage, StartThread, digest_of
from service.projections import all_projections
from service.queries.jobs.jobs import JobSlots, find_job
from service.streams import INCOMING, JOBS, THREADS, decoded
from service.workers.reply_question import question_of
from tests.fakes.docs_source import FakeDocsSource
from tests.workers import test_webhooks as webhooks
from tests.workers.test_full_disk import replying
from tests.workers.test_job_runner import NOW, ended, make_project, request, running

sender, time = webhooks.sender, webhooks.time


def damage(folder, stream, version=1):
    with closing(sqlite3.connect(folder / "events.db")) as db, db:
        where = (stream, version)
        (sealed,) = db.execute("SELECT sealed FROM events WHERE stream = ? AND stream_version = ?", where).fetchone()
        flipped = sealed[:-1] + bytes([sealed[-1] ^ 1])
        db.execute("UPDATE events SET sealed = ? WHERE stream = ? AND stream_version = ?", (flipped, *where))


async def failure(store, job_id):
    events = await store.read_stream(JOBS.stream(job_id))
    return [event for _, event in decoded(JOBS, events)][-1]


@pytest.mark.parametrize("is_built", [True, False])
async def test_damaged_job_fails_and_others_go_on(tmp_path, store, is_built):
    await make_project(store)
    await request(store, "damaged", "docs/one")
    await request(store, "whole", "docs/two")
    if is_built:
        async with await Views.open(tmp_path / "views.db", store, all_projections()) as views:
            await views.catch_up()
    damage(tmp_path, "job-damaged")
    async with await Views.open(tmp_path / "views.db", store, all_projections()) as views:
        following = asyncio.create_task(views.run())
        async with running(store, views, FakeDocsSource({"index.md": "# Hi\n"})) as runner:
            assert await ended(store, "damaged") == "job-failed"
            assert await ended(store, "whole") == "job-completed"
            await views.wait_for(await store.head(), 60)
            assert not runner.done()
        failed = await failure(store, "damaged")
        assert failed.code == "text_damaged"
        assert "job-damaged" in failed.message
        row = await find_job(views, "damaged", JobSlots(1, 1))
        assert (row.title, row.status) == ("Look around" if is_built else DAMAGED, "failed")
        assert await archive_job(store, "damaged", webhooks.Metadata()) == await store.head()
        following.cancel()
        await asyncio.wait([following])


async def test_damaged_job_can_be_cancelled(tmp_path, store):
    await make_project(store)
    await request(store, "damaged", "docs/one")
    damage(tmp_path, "job-damaged")
    await execute(store, JOBS, "damaged", CancelJob(NOW))
    assert (await failure(store, "damaged")).code == "cancelled"


def message(number, text, reply_id):
    return PostMessage(
        f"m{number}", "", text, (), "", SearchFilter(), 5, 2, reply_id, "here", "guide", "x", NOW
    )  # fmt: skip


class DamagingStore:
    """The store, which damages a thread's first message before that is read for the reply."""

    def __init__(self, store, folder):
        self._store, self._folder, self._is_damaged = store, folder, False

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def follow(self, **which):
        async with aclosing(self._store.follow(**which)) as batches:
            async for batch in batches:
                if any(event.stream == "thread-one" for event in batch) and not self._is_damaged:
                    damage(self._folder, "thread-one", 2)
                    self._is_damaged = True
                    first = batch[0].position
                    yield await self._store.read_all(after=first - 1, category=which["category"], limit=len(batch))
                else:
                    yield batch


async def test_damaged_question_is_not_answered_and_others_are(tmp_path, store, followed):
    async with replying(DamagingStore(store, tmp_path), followed) as replies:
        told = await replies.ask("one", "r1", 0)
        assert isinstance(told[-1], ReplyBroken)
        assert told[-1].code == "text_damaged"
        assert isinstance((await replies.ask("two", "r2", 0))[-1], ReplyDone)
    events = await store.read_stream("thread-one")
    assert (events[1].type, events[1].damaged) == ("message-posted", True)
    assert "reply-completed" not in [event.type for event in events]


async def test_damaged_earlier_turn_is_left_out_of_the_prompt(tmp_path, store):
    await execute(store, THREADS, "one", StartThread("o", "p", "guide", "x", digest_of("k"), message(1, "How?", "r1")))
    await execute(store, THREADS, "one", CompleteReply("r1", "So.", (), "answered", "m", Usage(), NOW))
    await execute(store, THREADS, "one", message(2, "And why?", "r2"))
    thread = (await load(store, THREADS, "one")).state
    assert [one.question for one in question_of(thread, "r2").earlier] == ["How?"]
    damage(tmp_path, "thread-one", 2)
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as again:
        question = question_of((await load(again, THREADS, "one")).state, "r2")
    assert (question.text, question.earlier) == ("And why?", ())


async def test_placeholder_of_a_lost_fp_opens_no_thread(tmp_path, store):
    await execute(store, THREADS, "one", StartThread("o", "p", "guide", "x", digest_of("k"), message(1, "How?", "r1")))
    damage(tmp_path, "thread-one")
    assert (await load(store, THREADS, "one")).state.fp == DAMAGED
    for fp in (DAMAGED, "x"):
        theirs = PostMessage("m2", "", "Hi", (), "", SearchFilter(), 5, 2, "r2", "here", "guide", fp, NOW)
        with pytest.raises(NotFound):
            await execute(store, THREADS, "one", theirs)


async def test_webhook_with_a_damaged_secret_is_sent_nothing(tmp_path, store, followed, sender, time):
    await webhooks.create(store)
    await webhooks.create(store, "other", webhooks.OTHER)
    damage(tmp_path, "webhook-w")
    async with webhooks.running(store, followed, sender, time):
        await webhooks.request(store)
        tried = await webhooks.attempts(store, 2)
    assert {one.webhook_id: (one.outcome, one.error) for one in tried} == {
        "w": ("retry", "text_damaged"),
        "other": ("delivered", ""),
    }
    assert [one.url for one in sender.sent] == [webhooks.OTHER]


async def test_new_secret_takes_the_place_of_a_damaged_one(tmp_path, store):
    await execute(store, INCOMING, "p", SetIncomingSecret("whsec_old", NOW))
    damage(tmp_path, "incoming-p")
    assert (await load(store, INCOMING, "p")).state.secret == DAMAGED
    await execute(store, INCOMING, "p", SetIncomingSecret("whsec_new", NOW))
    assert (await load(store, INCOMING, "p")).state.secret == "whsec_new"


async def test_job_whose_record_is_damaged_ends_no_other(tmp_path, store):
    await make_project(store)
    await request(store, "damaged", "docs/one")
    await request(store, "whole", "docs/two")
    async with await Views.open(tmp_path / "views.db", store, all_projections()) as views:
        await views.catch_up()
        with closing(sqlite3.connect(tmp_path / "events.db")) as db, db:
            db.execute("UPDATE events SET data = '[]' WHERE stream = 'job-damaged' AND stream_version = 1")
        following = asyncio.create_task(views.run())
        async with running(store, views, FakeDocsSource({"index.md": "# Hi\n"})) as runner:
            assert await ended(store, "whole") == "job-completed"
            assert not runner.done()
        following.cancel()
        await asyncio.wait([following])
