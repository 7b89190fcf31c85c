"""Replies whose readers leave at bad moments."""

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import reduce

import pytest
from msgspec.structs import replace

from eventstore import execute
from service.adapters.builtin.answer import BuiltinAnswer
from service.domain.errors import Unavailable
from service.domain.model import Usage
from service.domain.search import SearchFilter
from service.domain.threads.recorded_reply import LeaveReply, RecordText, ReturnToReply, StopReply
from service.domain.threads.replies import ReplyBroken, ReplyDone, TextDelta
from service.domain.threads.threads import Absent, PostMessage, StartThread, decide, digest_of, evolve
from service.ports.model import ModelEnd, ModelText
from service.streams import THREADS
from service.workers.replies.broadcast import Broadcast
from service.workers.replies.live_text import MAX_REPLY_CHARACTERS
from service.workers.replies.replier import Replier
from service.workers.replies.reply_context import ReplyContext
from service.workers.replies.segments import segment_seconds
from service.workers.reply_question import MAX_EARLIER_TURNS, question_of
from tests.fakes.model import FakeModel, Says
from tests.fakes.search_index import FakeSearchIndex

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class OneModel:
    def __init__(self):
        self.model = FakeModel([Says("Run it [1].")] * 100)

    def for_assistant(self):
        return self.model

    def builtin_for_assistant(self):
        return BuiltinAnswer()

    def for_planning(self):
        return None

    async def window_tokens(self):
        return None


@asynccontextmanager
async def replying(store, views, broadcast, models, *, grace_seconds=0.0, announced=None):
    index = FakeSearchIndex()
    index.put("guide", {"install.md": "# Install\n\nRun the installer.\n"})
    context = ReplyContext(models, index, grace_seconds=grace_seconds)
    replier = Replier(store, views, broadcast, context, instance="here", is_alive=lambda _: False)
    ready = asyncio.Event()
    task = asyncio.create_task(replier.run(ready=ready, announced=announced))
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
    async with asyncio.timeout(60), aclosing(store.subscribe(stream=f"thread-{name}")) as events:
        async for event in events:
            if event.type in types:
                return event.type
    raise AssertionError


async def test_question_of_a_reader_who_left_never_reaches_the_model(store, followed):
    models = OneModel()
    async with replying(store, followed, Broadcast(), models):
        await ask(store, "left")  # nobody opened a topic to hear of it
        assert await until(store, "left", "reply-stopped", "reply-completed") == "reply-stopped"
    assert models.model.requests == []


async def test_early_question_is_answered_once_all_is_imported(store, followed):
    models, broadcast, announced = OneModel(), Broadcast(), asyncio.Event()
    async with replying(store, followed, broadcast, models, announced=announced):
        broadcast.open("early")
        await ask(store, "early")
        assert await until(store, "early", "reply-started") == "reply-started"
        assert models.model.requests == []
        announced.set()
        assert await until(store, "early", "reply-stopped", "reply-completed") == "reply-completed"


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
            async with asyncio.timeout(60):
                async for _ in topic.listen():
                    pass
            await until(store, name, "reply-stopped", "reply-completed")


@pytest.mark.parametrize("turns", range(8))
async def test_reader_hears_the_end_whenever_the_service_stops(store, followed, turns):
    broadcast, topics = Broadcast(), []
    async with replying(store, followed, broadcast, OneModel()) as replier:
        for number in range(5):
            topics.append(broadcast.open(f"t{number}"))
            await ask(store, f"t{number}")
        for _ in range(turns):
            await asyncio.sleep(0)  # the event loop's next turn
        replier.require_running()
    for topic in topics:
        async with asyncio.timeout(60):
            heard = [event async for event in topic.listen()]
        assert isinstance(heard[-1], ReplyBroken | ReplyDone)


async def test_question_after_the_stop_is_refused(store, followed):
    async with replying(store, followed, Broadcast(), OneModel()) as replier:
        pass
    with pytest.raises(Unavailable, match="restarting"):
        replier.require_running()


class HeldModel(OneModel):
    """Says a word, and the rest when it may."""

    name = "held"

    def __init__(self):
        super().__init__()
        self.may_go_on = asyncio.Event()
        self.calls = 0
        self.ended = asyncio.Event()

    def for_assistant(self):
        return self

    def builtin_for_assistant(self):
        return BuiltinAnswer()

    def for_planning(self):
        return None

    async def reply(self, request):
        self.calls += 1
        try:
            yield ModelText("Run ")
            await self.may_go_on.wait()
            yield ModelText("it [1].")
            yield ModelEnd("stop", (), Usage(), self.name)
        finally:
            self.ended.set()


async def begun(topic):
    """Listen up to the first words."""
    async with asyncio.timeout(60), aclosing(topic.listen()) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                return


async def lost(replier, name, *, may_return=True):
    """As a handler whose connection breaks."""
    with suppress(ConnectionResetError), replier.reading(name, name, may_return=may_return):
        raise ConnectionResetError


async def test_a_reply_without_a_reader_is_stopped_after_its_grace(store, followed):
    broadcast, model = Broadcast(), HeldModel()
    async with replying(store, followed, broadcast, model, grace_seconds=0.05) as replier:
        topic = broadcast.open("a")
        await ask(store, "a")
        await begun(topic)
        await lost(replier, "a")
        assert (replier.awaited, model.ended.is_set()) == (1, False)
        assert await until(store, "a", "reply-stopped", "reply-completed") == "reply-stopped"
        assert model.ended.is_set()


async def test_a_reader_that_returns_in_time_keeps_the_reply_going(store, followed):
    broadcast, model = Broadcast(), HeldModel()
    async with replying(store, followed, broadcast, model, grace_seconds=60) as replier:
        topic = broadcast.open("a")
        await ask(store, "a")
        await begun(topic)
        await lost(replier, "a")
        assert await until(store, "a", "reader-left") == "reader-left"
        with replier.reading("a", "a", may_return=True):
            await replier.record_reconnect("a", "a")
            model.may_go_on.set()
            assert await until(store, "a", "reply-stopped", "reply-completed") == "reply-completed"
        assert replier.awaited == 0


async def test_stop_timer_of_a_reply_ends_as_its_reader_returns(store, followed):
    broadcast, model = Broadcast(), HeldModel()
    async with replying(store, followed, broadcast, model, grace_seconds=60) as replier:
        topic = broadcast.open("a")
        await ask(store, "a")
        await begun(topic)
        await lost(replier, "a")
        assert replier.awaited == 1
        with replier.reading("a", "a", may_return=True):
            assert replier.awaited == 0  # before anything is recorded
            model.may_go_on.set()
            assert await until(store, "a", "reply-stopped", "reply-completed") == "reply-completed"


async def test_the_last_of_several_readers_stops_it(store, followed):
    broadcast, model = Broadcast(), HeldModel()
    async with replying(store, followed, broadcast, model) as replier:
        topic = broadcast.open("a")
        await ask(store, "a")
        await begun(topic)
        with suppress(ConnectionResetError), replier.reading("a", "a", may_return=False):
            await lost(replier, "a", may_return=False)
            assert not model.ended.is_set()
            raise ConnectionResetError
        assert await until(store, "a", "reply-stopped", "reply-completed") == "reply-stopped"


async def test_a_reader_in_another_process_keeps_it_going(store, followed):
    broadcast, model = Broadcast(), HeldModel()
    async with replying(store, followed, broadcast, model, grace_seconds=60) as replier:
        topic = broadcast.open("a")
        await ask(store, "a")
        await begun(topic)
        await lost(replier, "a")
        await until(store, "a", "reader-left")
        assert replier.awaited == 1
        await execute(store, THREADS, "a", ReturnToReply("a", NOW))
        after = broadcast.open("b")
        await ask(store, "b")
        await begun(after)  # so what was recorded before this question has been seen
        assert replier.awaited == 0
        assert not model.ended.is_set()


async def test_that_a_reader_in_another_process_leaves_counts(store, followed):
    broadcast, model = Broadcast(), HeldModel()
    async with replying(store, followed, broadcast, model, grace_seconds=0.05):
        topic = broadcast.open("a")
        await ask(store, "a")
        await begun(topic)
        await execute(store, THREADS, "a", LeaveReply("a", NOW))
        assert await until(store, "a", "reply-stopped", "reply-completed") == "reply-stopped"
        assert model.ended.is_set()


async def test_reply_ended_by_another_process_is_ended_here(store, followed):
    broadcast, model = Broadcast(), HeldModel()
    async with replying(store, followed, broadcast, model):
        topic = broadcast.open("a")
        await ask(store, "a")
        await begun(topic)
        again = PostMessage(
            "m2", "", "How to install?", (), "", SearchFilter(), 5, 2, "r2", "elsewhere", "guide", "x", NOW,
            regenerates=True,
        )  # fmt: skip
        await execute(store, THREADS, "a", again)
        async with asyncio.timeout(60):
            heard = [event async for event in topic.listen()]
            await model.ended.wait()
        assert isinstance(heard[-1], ReplyBroken)
        assert heard[-1].code == "stopped"


async def test_a_reply_that_never_ends_is_cut_off(store, followed):
    class Endless(OneModel):
        name = "endless"

        def for_assistant(self):
            return self

        def builtin_for_assistant(self):
            return BuiltinAnswer()

        def for_planning(self):
            return None

        async def reply(self, request):
            while True:
                yield ModelText("and on " * 5000)

    broadcast = Broadcast()
    async with replying(store, followed, broadcast, Endless()):
        topic = broadcast.open("a")
        await ask(store, "a")
        async with asyncio.timeout(60):
            heard = [event async for event in topic.listen()]
        assert isinstance(heard[-1], ReplyBroken)
        assert heard[-1].code == "reply_too_long"
        text = "".join(event.text for event in heard if isinstance(event, TextDelta))
        assert MAX_REPLY_CHARACTERS // 2 < len(text) <= MAX_REPLY_CHARACTERS
        assert await until(store, "a", "reply-failed") == "reply-failed"


def long_thread(turns):
    """The events of a thread that begins with a question about widgets."""
    message = PostMessage("m0", "", "Q0: widgets?", (), "", SearchFilter(), 5, 2, "r0", "there", "guide", "x", NOW)
    thread, events = Absent(), []
    for number in range(turns):
        asked = (
            replace(message, message_id=f"m{number}", text=f"Q{number}", reply_id=f"r{number}") if number else message
        )
        commands = [StartThread("o", "p", "guide", "x", digest_of("k"), asked)] if number == 0 else [asked]
        for command in (*commands, RecordText(f"r{number}", f"A{number}"), StopReply(f"r{number}", "stopped", NOW)):
            for event in decide(command, thread):
                thread = evolve(thread, event)
                events.append(event)
    return events


def test_a_long_thread_gives_its_last_turns_and_its_first():
    thread = reduce(evolve, long_thread(3 * MAX_EARLIER_TURNS), Absent())
    earlier = question_of(thread, "r120").earlier
    last = [f"Q{number}" for number in range(121 - MAX_EARLIER_TURNS, 120)]
    assert [turn.question for turn in earlier] == ["Q0: widgets?", *last]
    assert [turn.question for turn in question_of(thread, "r2").earlier] == ["Q0: widgets?", "Q1"]


async def test_first_topic_is_in_the_prompt_after_500_turns(store, followed):
    events = [THREADS.codec.encode(event) for event in long_thread(500)]
    await store.append("thread-a", events, expected_version=0)
    broadcast, models = Broadcast(), OneModel()
    async with replying(store, followed, broadcast, models):
        asked = PostMessage("m", "", "What was first?", (), "", SearchFilter(), 5, 2, "r", "here", "guide", "x", NOW)
        broadcast.open("r")
        await execute(store, THREADS, "a", asked)
        assert await until(store, "a", "reply-completed") == "reply-completed"
    prompt = models.model.requests[-1].messages[-1].text
    assert "- Q0: widgets?\n  → A0\n- Q" in prompt
    assert "- Q493\n" in prompt


async def test_reply_whose_model_is_silent_has_one_task(store, followed):
    broadcast, model = Broadcast(), HeldModel()
    async with replying(store, followed, broadcast, model):
        topic = broadcast.open("a")
        await ask(store, "a")
        await begun(topic)
        assert await until(store, "a", "reply-written") == "reply-written"
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert ("reply a" in names, "segments" in names) == (True, False)
        model.may_go_on.set()
        assert await until(store, "a", "reply-completed") == "reply-completed"


def test_many_simultaneous_replies_record_fewer_segments_each():
    stretches = [segment_seconds(replies) for replies in (1, 16, 17, 100, 4_000)]
    assert stretches == sorted(stretches)
    assert (stretches[0], stretches[-1]) == (0.25, 1.0)
