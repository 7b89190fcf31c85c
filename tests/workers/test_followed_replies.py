"""Replies that another instance gives: readers get each character once, whichever instance goes on with them."""

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import pytest

from eventstore import execute
from service.adapters.builtin.answer import BuiltinAnswer
from service.adapters.internal_http import AiohttpInternalHttp
from service.domain.model import Usage
from service.domain.threads.recorded_reply import (
    CompleteReply,
    RecordSources,
    RecordText,
    ReplyCompleted,
    ReplyStopped,
    ResumeReply,
    StopReply,
)
from service.domain.threads.replies import ReplyBroken, ReplyDone, ReplyOpened, SearchFinished, SearchStarted, TextDelta
from service.ports.model import ModelEnd, ModelText
from service.ports.shared.internal_http import InstanceUnreachable
from service.queries.threads import events_of_reply
from service.streams import THREADS
from tests.workers.nodes import KEY, NOW, ask, nodes
from tests.workers.test_orphans import SOURCE
from tests.workers.test_replier import until

WHOLE = "Run the installer [1], and wait."
SHOWN = "Run the installer [1](/install), and wait."


def done(text):
    return CompleteReply("r", text, (), "answered", "m", Usage(), NOW)


class Saying:
    """A model that says the words, each once it may, and goes on where a text ends."""

    name = "saying"

    def __init__(self, *words):
        self.words, self.calls = words, 0
        self.may = {word: asyncio.Event() for word in words}

    def for_assistant(self):
        return self

    def builtin_for_assistant(self):
        return BuiltinAnswer()

    def for_planning(self):
        return None

    async def window_tokens(self):
        return None

    async def reply(self, request):
        self.calls += 1
        said = request.continuation.text if request.continuation is not None else ""
        for word in self.words:
            if said.startswith(word):
                said = said.removeprefix(word)
                continue
            await self.may[word].wait()
            yield ModelText(word)
        yield ModelEnd("stop", (), Usage(), self.name)

    def let(self, *words):
        for word in words:
            self.may[word].set()


async def recorded(store, kind):
    return [event for event in await events_of_reply(store, "r", "r") if isinstance(event, kind)]


async def begin(store, topic):
    """Publish the beginning of a reply, and record it."""
    published = [SearchStarted("r-1", "How to install?"), SearchFinished("r-1", "How to install?", (), (SOURCE,))]
    for event in (ReplyOpened("r", "r"), *published, TextDelta("Run")):
        topic.publish(event)
    await execute(store, THREADS, "r", RecordSources("r", "How to install?", (SOURCE,), giver="a"))
    await execute(store, THREADS, "r", RecordText("r", "Run", giver="a"))


async def test_text_comes_from_the_giver_before_it_is_recorded(store, views):
    async with nodes(store, views, "a", "b") as ((a, b), _):
        await ask(store, "r", "a")
        topic = a.broadcast.open("r")
        topic.publish(ReplyOpened("r", "r"))
        topic.publish(TextDelta("Run"))
        async with b.reading("r") as reader:
            await reader.until("Run")
            topic.publish(TextDelta(" the"))
            await reader.until("Run the")
            topic.publish(TextDelta(" installer."))
            topic.publish(ReplyDone("Run the installer.", (), "answered", "m", Usage()))
            assert isinstance(await reader.end(), ReplyDone)
        assert reader.text == "Run the installer."
        assert [type(event).__name__ for event in await events_of_reply(store, "r", "r")] == ["ReplyStarted"]


async def test_readers_of_one_instance_share_a_stream(store, views):
    async with nodes(store, views, "a", "b") as ((a, b), _):
        await ask(store, "r", "a")
        topic = a.broadcast.open("r")
        async with b.reading("r") as one, b.reading("r") as two:
            topic.publish(TextDelta("Run"))
            await asyncio.gather(one.until("Run"), two.until("Run"))
            async with b.reading("r") as late:
                await late.until("Run")
            topic.publish(ReplyDone("Run", (), "answered", "m", Usage()))
            await asyncio.gather(one.end(), two.end())


async def test_result_of_a_search_comes_with_its_passages(store, views):
    found = SearchFinished("r-1", "how", (), ())
    async with nodes(store, views, "a", "b") as ((a, b), _):
        await ask(store, "r", "a")
        topic = a.broadcast.open("r")
        for event in (ReplyOpened("r", "r"), SearchStarted("r-1", "how"), found, TextDelta("Run")):
            topic.publish(event)
        async with b.reading("r") as reader:
            await reader.until("Run")
        assert reader.events == [ReplyOpened("r", "r"), SearchStarted("r-1", "how"), found, TextDelta("Run")]


class Cutting:
    """An InternalHttp whose streams end after each part, and which notes what is asked."""

    def __init__(self):
        self.http, self.asked = AiohttpInternalHttp(KEY), []
        self.may_begin = asyncio.Event()

    @asynccontextmanager
    async def send(self, peer, request):
        await self.may_begin.wait()
        self.asked.append(request.target)
        async with self.http.send(peer, request) as answer:
            yield _Cut(answer)


class _Cut:
    def __init__(self, answer):
        self.status, self.headers, self._answer = answer.status, answer.headers, answer

    async def parts(self):
        async with aclosing(self._answer.parts()) as parts:
            async for part in parts:
                yield part
                raise InstanceUnreachable("cut off")


async def test_stream_that_was_cut_goes_on_where_it_ended(store, views):
    http = Cutting()
    async with nodes(store, views, "a", "b", http=http) as ((a, b), stack):
        stack.push_async_callback(http.http.close)
        await ask(store, "r", "a")
        topic = a.broadcast.open("r")
        topic.publish(ReplyOpened("r", "r"))
        http.may_begin.set()
        async with b.reading("r") as reader:
            for word in ("Run", " the", " installer."):
                text = reader.text
                topic.publish(TextDelta(word))
                await reader.until(text + word)
            topic.publish(ReplyDone("Run the installer.", (), "answered", "m", Usage()))
            await reader.end()
        assert reader.text == "Run the installer."
    assert len(http.asked) > 2
    assert "after=2" in http.asked[1]


async def test_record_goes_on_where_the_giver_is_away(store, views):
    async with nodes(store, views, "a", "b") as ((_, b), _):
        await ask(store, "r", "a")
        b.knows()
        async with b.reading("r") as reader:
            await execute(store, THREADS, "r", RecordText("r", "Run", giver="a"))
            await reader.until("Run")
            await execute(store, THREADS, "r", done("Run the installer."))
            assert isinstance(await reader.end(), ReplyDone)
        assert reader.text == "Run the installer."


async def test_reader_elsewhere_counts_as_one_of_the_giver(store, followed):
    model = Saying("Run", " it [1].")
    async with nodes(store, followed, "a", "b", models=model) as ((a, b), stack):
        await a.run(stack)
        topic = a.broadcast.open("r")
        async with AsyncExitStack() as own:
            reader = await own.enter_async_context(a.reading("r"))
            await ask(store, "r", "a")
            model.let("Run")
            await reader.until("Run")
            async with b.reading("r") as other:
                await other.until("Run")
                await own.aclose()  # the giver's own reader leaves
                model.let(" it [1].")
                assert isinstance(await other.end(), ReplyDone)
        assert topic.published()[-1] == other.events[-1]


async def test_reply_stops_when_its_last_reader_elsewhere_leaves(store, followed):
    model = Saying("Run", " it [1].")
    async with nodes(store, followed, "a", "b", models=model) as ((a, b), stack):
        await a.run(stack)
        a.broadcast.open("r")
        await ask(store, "r", "a")
        model.let("Run")
        async with b.reading("r") as reader:
            await reader.until("Run")
        assert await until(store, "r", "reply-stopped", "reply-completed") == "reply-stopped"


class Noting:
    """An InternalHttp that notes what is asked."""

    def __init__(self):
        self.http, self.asked = AiohttpInternalHttp(KEY), []

    @asynccontextmanager
    async def send(self, peer, request):
        self.asked.append((request.method, request.target.partition("?")[0]))
        async with self.http.send(peer, request) as answer:
            yield answer


@pytest.mark.parametrize("returns", [False, True])
async def test_giver_hears_that_the_last_reader_elsewhere_has_left(store, followed, returns):
    model, http = Saying("Run", " it [1]."), Noting()
    async with nodes(store, followed, "a", "b", models=model, http=http) as ((a, b), stack):
        stack.push_async_callback(http.http.close)
        await a.run(stack)
        a.broadcast.open("r")
        await ask(store, "r", "a")
        model.let("Run")
        async with b.reading("r", returns=returns) as one:
            async with b.reading("r", returns=returns) as two:
                await asyncio.gather(one.until("Run"), two.until("Run"))
            assert http.asked == [("GET", "/internal/replies/r")]
        assert http.asked[1:] == [("POST", "/internal/replies/r/left")]
        if returns:  # it goes on for a reader who comes back
            model.let(" it [1].")
        ended = await until(store, "r", "reply-stopped", "reply-completed")
        assert ended == ("reply-completed" if returns else "reply-stopped")


@pytest.mark.parametrize("where", ["a", "b"])
async def test_reply_is_stopped_from_any_instance(store, followed, where):
    model = Saying("Run", " it [1].")
    async with nodes(store, followed, "a", "b", models=model) as ((a, b), stack):
        await a.run(stack)
        await b.run(stack)
        a.broadcast.open("r")
        await ask(store, "r", "a")
        model.let("Run")
        async with a.reading("r") as one, b.reading("r") as two:
            await asyncio.gather(one.until("Run"), two.until("Run"))
            await (a if where == "a" else b).replier.stop_for_reader("r", "r")
            ends = await asyncio.gather(one.end(), two.end())
        assert [end.code for end in ends] == ["stopped", "stopped"]
    [stopped] = await recorded(store, ReplyStopped)
    assert stopped.reason == "stopped"


async def test_reply_of_an_instance_that_ended_goes_on_from_another(store, followed):
    """Its readers elsewhere notice nothing."""
    model = Saying("Run", " the", " installer [1].")
    async with nodes(store, followed, "a", "b", "c", models=model) as ((a, b, c), stack):
        await ask(store, "r", "a")
        topic = a.broadcast.open("r")
        async with b.reading("r") as reader:
            await begin(store, topic)
            topic.publish(TextDelta(" the"))  # is not recorded any more
            await reader.until("Run the")
            b.knows(c)
            c.knows(b)
            a.broadcast.close("r")
            await c.run(stack)  # finds that a has ended
            model.let(" the", " installer [1].")
            assert isinstance(await reader.end(), ReplyDone)
        assert reader.text == "Run the installer [1](/install)."
        assert reader.events[-1].text == reader.text


async def test_reader_goes_on_where_its_own_instance_takes_over(store, followed):
    model = Saying("Run", " the", " installer [1].")
    async with nodes(store, followed, "a", "b", models=model) as ((a, b), stack):
        await ask(store, "r", "a")
        topic = a.broadcast.open("r")
        async with b.reading("r") as reader:
            await begin(store, topic)
            await reader.until("Run")
            b.knows()
            a.broadcast.close("r")
            await b.run(stack)
            model.let(" the", " installer [1].")
            assert isinstance(await reader.end(), ReplyDone)
        assert reader.text == "Run the installer [1](/install)."
    assert await until(store, "r", "reply-completed") == "reply-completed"


async def test_readers_are_cut_off_where_a_reply_goes_on_in_other_words(store, followed):
    model = Saying("Run", " the", " installer [1].")
    async with nodes(store, followed, "a", "b", "c", models=model) as ((a, b, c), stack):
        await ask(store, "r", "a")
        topic = a.broadcast.open("r")
        async with b.reading("r", returns=True) as reader:
            await begin(store, topic)
            topic.publish(TextDelta(" your"))
            await reader.until("Run your")
            b.knows(c)
            c.knows(b)
            a.broadcast.close("r")
            await c.run(stack)
            model.let(" the")
            assert isinstance(await reader.end(), TextDelta)
            async with b.reading("r", returns=True) as again:
                model.let(" installer [1].")
                assert isinstance(await again.end(), ReplyDone)
        assert reader.text == "Run your"
        assert again.text == again.events[-1].text == "Run the installer [1](/install)."


async def test_instance_that_was_paused_leaves_its_reply_to_the_new_giver(store, followed):
    """It goes on as if nothing had happened: nothing of it is recorded, and its readers get the new giver's text."""
    paused, other = Saying("Run", " the", " wizard."), Saying("Run", " the", " installer [1].")
    async with (
        nodes(store, followed, "a", models=paused) as ((a,), stack),
        nodes(store, followed, "b", models=other) as ((b,), _),
    ):
        a.knows(b)
        b.knows()  # which has lost sight of it
        await a.run(stack)
        a.broadcast.open("r")
        await ask(store, "r", "a")
        paused.let("Run")
        async with a.reading("r") as reader:
            await reader.until("Run")
            assert await until(store, "r", "reply-written") == "reply-written"
            await b.run(stack)
            assert await until(store, "r", "reply-resumed") == "reply-resumed"
            paused.let(" the", " wizard.")
            other.let(" the", " installer [1].")
            assert isinstance(await reader.end(), ReplyDone)
        assert reader.text == reader.events[-1].text == "Run the installer [1](/install)."
    assert await until(store, "r", "reply-completed") == "reply-completed"
    [completed] = await recorded(store, ReplyCompleted)
    assert completed.text == "Run the installer [1](/install)."


async def test_giver_that_has_not_heard_of_it_cannot_end_a_reply(store, followed):
    """What it records is refused, so that it is no end for its readers either."""
    model, rest = Saying("Run", " the", " wizard."), Saying("Run", " the", " installer [1].")
    async with (
        nodes(store, followed, "a", models=model) as ((a,), stack),
        nodes(store, followed, "b", models=rest) as ((b,), _),
    ):
        a.knows(b)
        b.knows(a)
        await a.run(stack)
        await b.run(stack)
        a.broadcast.open("r")
        await ask(store, "r", "a")
        model.let("Run")
        async with a.reading("r") as reader:
            await reader.until("Run")
            await until(store, "r", "reply-written")
            await execute(store, THREADS, "r", ResumeReply("r", "a", "b", NOW))
            model.let(" the", " wizard.")
            rest.let(" the", " installer [1].")
            await until(store, "r", "reply-completed")
            end = await reader.end()
        [completed] = await recorded(store, ReplyCompleted)
        assert completed.text == "Run the installer [1](/install)."
        assert not isinstance(end, ReplyDone) or end.text == reader.text == completed.text


async def test_a_reply_that_has_ended_is_read_from_its_record(store, views):
    async with nodes(store, views, "a", "b") as ((_, b), _):
        await ask(store, "r", "a")
        await execute(store, THREADS, "r", RecordText("r", "Run"))
        await execute(store, THREADS, "r", done("Run it."))
        async with b.reading("r") as reader:
            assert isinstance(await reader.end(), ReplyDone)
        assert reader.text == "Run it."


async def test_stopping_instance_ends_what_it_follows(store, views):
    async with nodes(store, views, "a", "b") as ((a, b), _):
        await ask(store, "r", "a")
        a.broadcast.open("r").publish(TextDelta("Run"))
        async with b.reading("r") as reader:
            await reader.until("Run")
            b.closing.set()
            end = await reader.end()
        assert isinstance(end, ReplyBroken)
        assert end.code == "unavailable"


@pytest.mark.parametrize("has_others", [True, False])
async def test_its_own_readers_hear_whether_another_instance_goes_on(store, followed, has_others):
    model = Saying("Run", " it.")
    async with nodes(store, followed, "a", "b", models=model) as ((a, b), stack):
        a.knows(*([b] if has_others else []))
        await a.run(stack)
        a.broadcast.open("r")
        await ask(store, "r", "a")
        model.let("Run")
        async with a.reading("r", returns=True) as here, b.reading("r", returns=True) as elsewhere:
            await asyncio.gather(here.until("Run"), elsewhere.until("Run"))
            await a.stop()
            end = await here.end()
            assert (end.code, end.goes_on) == ("interrupted", has_others)
            assert not elsewhere.task.done()


async def test_reader_of_another_instance_hears_that_it_goes_on_as_its_own_stops(store, views):
    async with nodes(store, views, "a", "b") as ((a, b), _):
        await ask(store, "r", "a")
        a.broadcast.open("r").publish(TextDelta("Run"))
        async with b.reading("r", returns=True) as reader:
            await reader.until("Run")
            b.closing.set()
            assert (await reader.end()).goes_on


async def test_giver_that_stops_hands_its_reply_on(store, followed):
    model, rest = Saying("Run", " the", " wizard."), Saying("Run", " the", " installer [1].")
    async with (
        nodes(store, followed, "a", models=model) as ((a,), stack),
        nodes(store, followed, "b", models=rest) as ((b,), _),
    ):
        a.knows(b)
        b.knows(a)
        await a.run(stack)
        a.broadcast.open("r")
        await ask(store, "r", "a")
        model.let("Run")
        async with b.reading("r", returns=True) as reader:
            await reader.until("Run")
            await a.stop()
            b.knows()
            await b.run(stack)
            rest.let(" the", " installer [1].")
            assert isinstance(await reader.end(), ReplyDone)
        assert reader.text == "Run the installer [1](/install)."


async def test_only_the_giver_records_a_reply(store):
    await ask(store, "r", "a")
    await execute(store, THREADS, "r", ResumeReply("r", "a", "b", NOW))
    for late in (RecordText("r", "x", giver="a"), StopReply("r", "interrupted", NOW, giver="a")):
        with pytest.raises(Exception, match="Another process goes on"):
            await execute(store, THREADS, "r", late)
    await execute(store, THREADS, "r", RecordText("r", "x", giver="b"))
    await execute(store, THREADS, "r", StopReply("r", "stopped", NOW))
