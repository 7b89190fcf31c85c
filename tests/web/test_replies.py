"""Replies to those who read them: slowly, or in another process than the one that gives them."""

import asyncio
import gc
import io
import json
import os
import re
import socket
import tracemalloc
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import ClientPayloadError, web

from eventstore import SQLiteEventStore, Views, execute
from service.domain.model import Usage
from service.domain.search import SearchFilter
from service.domain.threads.recorded_reply import CompleteReply, RecordText
from service.domain.threads.replies import ReplyBroken, ReplyDone, ReplyOpened, TextDelta
from service.domain.threads.threads import PostMessage, StartThread, digest_of
from service.projections import all_projections
from service.streams import THREADS
from service.web.api.assistant.replies import ReplySubscription, begin_reply, send_data_stream, send_ui_messages
from service.web.http.app_keys import BROADCAST, CLOSING, FOLLOWED_REPLIES, KEEP_ALIVES, REPLIER
from service.web.http.live import KeepAlives
from service.web.http.problems import BODY_SECONDS, problems, read_bytes
from service.wire.ui_messages import KEEP_ALIVE
from service.workers.followed_replies import FollowedReplies
from service.workers.replies.broadcast import Broadcast, Topic
from service.workers.replies.replier import Replier
from service.workers.replies.reply_context import ReplyContext
from tests.end_to_end.talk import chunks, text_of
from tests.fakes.instances import FakeInstances
from tests.fakes.search_index import FakeSearchIndex

# 2,000 for the long version
SLOW_READERS = int(os.environ.get("DOCSMITH_TEST_SLOW_READERS", "40"))
NOW = datetime(2026, 1, 2, tzinfo=UTC)
POST = PostMessage("m", "", "How?", (), "", SearchFilter(), 5, 2, "r", "elsewhere", "guide", "x", NOW)


@asynccontextmanager
async def process(folder):
    """One of several processes of the same store: its log and read tables."""
    store = await SQLiteEventStore.open(folder / "events.db", vault_path=folder / "keys.db")
    views = await Views.open(folder / "views.db", store, all_projections())
    following = asyncio.create_task(views.run())
    try:
        yield store, views
    finally:
        following.cancel()
        await asyncio.wait([following])
        await views.close()
        await store.close()


@pytest.fixture
async def elsewhere(tmp_path):
    """The process that gives replies."""
    async with process(tmp_path) as (store, _):
        yield store


@pytest.fixture
async def app(tmp_path):
    """Another one, which tells them."""
    async with process(tmp_path) as (store, views):
        app = web.Application()
        closing = app[CLOSING] = asyncio.Event()
        app[FOLLOWED_REPLIES] = FollowedReplies(store, Broadcast(), FakeInstances("here"), closing)
        context = ReplyContext(None, FakeSearchIndex())
        app[REPLIER] = Replier(store, views, Broadcast(), context, instance="here", is_alive=lambda _: True)
        app[HEARD] = ReplySubscription("t", "r", None)
        app[KEEP_ALIVES] = KeepAlives(KEEP_ALIVE)
        app.router.add_get("/2", as_ui_messages)
        app.router.add_get("/1", as_data_stream)
        yield app


async def as_ui_messages(request):
    return await send_ui_messages(request, request.app[HEARD], plain=True)


async def as_data_stream(request):
    return await send_data_stream(request, request.app[HEARD], headers={})


HEARD: web.AppKey[ReplySubscription] = web.AppKey("HEARD")


async def test_reply_of_another_process_is_sent_as_it_comes(app, elsewhere, aiohttp_client):
    await execute(elsewhere, THREADS, "t", StartThread("o", "p", "guide", "x", digest_of("k"), POST))
    await execute(elsewhere, THREADS, "t", RecordText("r", "Run "))
    client = await aiohttp_client(app)
    async with client.get("/2") as response, client.get("/1") as old:
        told = b""
        while b'"Run "' not in told:
            told += await response.content.readany()
        await execute(elsewhere, THREADS, "t", RecordText("r", "the "))
        done = CompleteReply("r", "Run the installer.", (), "answered", "m", Usage(), NOW)
        await execute(elsewhere, THREADS, "t", done)
        told += await response.read()
        lines = (await old.text()).splitlines()
    found = chunks(told.decode())
    assert text_of(found) == "Run the installer."
    assert (found[0]["messageId"], found[-1]["type"]) == ("r", "finish")
    assert [line for line in lines if line.startswith("0:")] == ['0:"Run "', '0:"the "', '0:"installer."']


async def test_stopping_server_ends_what_it_sends_of_another(app, elsewhere, aiohttp_client):
    await execute(elsewhere, THREADS, "t", StartThread("o", "p", "guide", "x", digest_of("k"), POST))
    client = await aiohttp_client(app)
    async with client.get("/2") as response:
        await response.content.readuntil(b"start")
        app[CLOSING].set()
        rest = await response.read()
    assert b'"type":"error"' in rest
    assert rest.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("path", ["/1", "/2"])
@pytest.mark.parametrize(
    ("features", "chat", "is_cut"), [(("resume",), True, True), (("resume",), False, False), ((), True, False)]
)
async def test_client_that_comes_back_is_cut_off_where_another_goes_on(
    app, aiohttp_client, path, features, chat, is_cut
):
    topic = Topic()
    app[HEARD] = ReplySubscription("t", "r", topic, may_return=chat, features=features)
    client = await aiohttp_client(app)
    topic.publish(ReplyOpened("t", "r"))
    async with client.get(path) as response:
        topic.publish(TextDelta("Run "))
        told = await response.content.readuntil(b"Run ")
        topic.publish(TextDelta("it"))
        topic.publish(ReplyBroken("interrupted", "It goes on.", goes_on=True))
        topic.close()
        has_ended = True
        try:
            async for piece in response.content.iter_any():
                told += piece
        except ClientPayloadError:
            has_ended = False
    assert has_ended is not is_cut
    assert (b"It goes on." in told) is not is_cut
    assert b"it" in told.partition(b"Run ")[2]


async def test_question_at_an_instance_that_stops_is_refused_before_its_stream(app, aiohttp_client):
    async def asked(request):
        await begin_reply(request, POST, record)
        raise AssertionError

    async def record():
        raise AssertionError("nothing is to be recorded")

    app[BROADCAST] = Broadcast()
    app.middlewares.append(web.middleware(problems))
    app.router.add_post("/ask", asked)
    ready = asyncio.Event()
    running = asyncio.create_task(app[REPLIER].run(ready=ready))
    await ready.wait()
    running.cancel()
    await asyncio.wait([running])
    client = await aiohttp_client(app)
    async with client.post("/ask") as response:
        assert response.status == 503
        assert int(response.headers["Retry-After"]) > 0


async def test_text_is_on_its_way_when_its_publish_call_returns(app, aiohttp_client):
    """No task of the reader's has to run first: here the event loop has no turn between telling and reading."""
    topic = Topic()
    app[HEARD] = ReplySubscription("t", "r", topic)
    client = await aiohttp_client(app)
    topic.publish(ReplyOpened("t", "r"))
    topic.publish(TextDelta("Run "))
    loop, reader = asyncio.get_running_loop(), socket.socket()
    with reader:
        reader.setblocking(False)
        await loop.sock_connect(reader, ("127.0.0.1", client.port))
        await loop.sock_sendall(reader, b"GET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = b""
        while b'"Run "}' not in told:
            told += await loop.sock_recv(reader, 65_536)
        await asyncio.sleep(0)
        reader.setblocking(True)
        reader.settimeout(10)
        topic.publish(TextDelta("the "))
        assert b'data: {"type":"text-delta","id":"t1","delta":"the "}\n\n' in reader.recv(65_536)
        reader.setblocking(False)
        began = loop.time()
        for number in range(1_000):  # a burst goes out together
            topic.publish(TextDelta(f"{number} "))
        milliseconds = (loop.time() - began) * 1000
        topic.publish(ReplyDone("", (), "answered", "m", Usage()))
        topic.close()
        told = b""
        while not told.endswith(b"\r\n0\r\n\r\n"):
            told += await loop.sock_recv(reader, 65_536)
    assert text_of(chunks(re.sub(rb"\r\n[0-9a-f]+\r\n", b"", b"\r\n" + told).decode())).endswith(" 998 999 ")
    assert len(re.findall(rb"\r\n[0-9a-f]+\r\n", told)) < milliseconds + 10


async def test_every_character_comes_once_however_it_is_sent(app, aiohttp_client):
    topic = Topic()
    app[HEARD] = ReplySubscription("t", "r", topic)
    client = await aiohttp_client(app)
    topic.publish(ReplyOpened("t", "r"))
    words = ["Run ", "the ", "", "größte ", "installer\u2028", "x" * 10_000, "."]
    async with client.get("/2") as response, client.get("/1") as old:
        told = await response.content.readuntil(b"\n\n")
        for word in words:
            topic.publish(TextDelta(word))
            await asyncio.sleep(0)
        topic.publish(ReplyDone("", (), "answered", "m", Usage()))
        topic.close()
        told += await response.read()
        lines = (await old.read()).decode().split("\n")
    assert text_of(chunks(told.decode())) == "".join(words)
    assert "".join(json.loads(line[2:]) for line in lines if line.startswith("0:")) == "".join(words)


async def test_readers_of_silent_reply_get_keep_alives(app, aiohttp_client):
    topic = Topic()
    app[HEARD], app[KEEP_ALIVES] = ReplySubscription("t", "r", topic), KeepAlives(KEEP_ALIVE, seconds=0.06)
    client = await aiohttp_client(app)
    topic.publish(ReplyOpened("t", "r"))
    topic.publish(TextDelta("Run "))
    async with asyncio.timeout(60), client.get("/2") as one, client.get("/2") as other:
        told = [await reader.content.readuntil(b"Run ") for reader in (one, other)]
        for place, reader in enumerate((one, other)):
            for _ in range(3):
                told[place] += await reader.content.readuntil(KEEP_ALIVE)
        topic.publish(TextDelta("it."))
        topic.publish(ReplyDone("Run it.", (), "answered", "m", Usage()))
        topic.close()
        told = [before + await reader.read() for before, reader in zip(told, (one, other), strict=True)]
    for text in told:
        assert text_of(chunks(text.decode())) == "Run it."
        assert text.endswith(b"data: [DONE]\n\n")


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux alone has it")
async def test_reader_is_cut_when_nothing_is_acknowledged(app, aiohttp_client):
    """Only while a reply is sent: the next answer on the connection has the system's own time."""
    topic, connections = Topic(), []

    @web.middleware
    async def remember(request, handler):
        connections.append(request.transport.get_extra_info("socket"))
        return await handler(request)

    def seconds():
        return connections[-1].getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) // 1000

    app[HEARD] = ReplySubscription("t", "r", topic)
    app.middlewares.append(remember)
    app.router.add_get("/after", as_short_answer)
    client = await aiohttp_client(app)
    topic.publish(ReplyOpened("t", "r"))
    async with client.get("/2") as response:
        await response.content.readuntil(b"start")
        assert seconds() == 120
        topic.publish(ReplyDone("", (), "answered", "m", Usage()))
        topic.close()
        await response.read()
    async with client.get("/after") as response:
        assert await response.text() == "after"
    assert seconds() == 0
    assert len({connection.fileno() for connection in connections}) == 1


async def as_short_answer(_request):
    return web.Response(text="after")


@pytest.mark.parametrize("path", ["/1", "/2"])
async def test_question_is_not_kept_while_it_is_answered(app, aiohttp_client, path):
    topic = Topic()

    async def asked(request):
        await read_bytes(request)
        return await (as_ui_messages if path == "/2" else as_data_stream)(request)

    app[HEARD], app[BODY_SECONDS] = ReplySubscription("t", "r", topic), 60.0
    app.router.add_post("/ask", asked)
    client = await aiohttp_client(app)
    topic.publish(ReplyOpened("t", "r"))
    topic.publish(TextDelta("Run "))
    tracemalloc.start()
    async with client.post("/ask", data=io.BytesIO(bytes(900_000))) as response:
        await response.content.readuntil(b"Run ")
        await asyncio.sleep(0)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        topic.publish(ReplyDone("", (), "answered", "m", Usage()))
        topic.close()
        await response.read()
    assert kept < 900_000


@pytest.mark.slow
async def test_many_idle_readers_cost_little_and_delay_no_one(app, aiohttp_client):
    """Each is behind in the same topic; what waits for one of them is bounded by what its connection takes."""
    deltas, piece = 800_000 // SLOW_READERS, "@" * 50
    topic = Topic()
    app[HEARD] = ReplySubscription("t", "r", topic)
    client = await aiohttp_client(app)
    async with slow_readers(client, SLOW_READERS) as slow:
        topic.publish(ReplyOpened("t", "r"))
        for reader in slow:
            await reader.readuntil(b"start")
        tracemalloc.start()
        for number in range(deltas):
            topic.publish(TextDelta(piece))
            if number % 500 == 0:
                await asyncio.sleep(0)
        told, _ = tracemalloc.get_traced_memory()
        topic.publish(ReplyDone(piece * deltas, (), "answered", "m", Usage()))
        topic.close()
        async with asyncio.timeout(60):
            quick = await client.get("/2")
            assert text_of(chunks(await quick.text())) == piece * deltas
        now, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (now - told) / SLOW_READERS < 200_000  # besides what the topic holds, once for all of them
        for reader in slow[:3]:
            assert (await to_the_end(reader)).count(b"@") == deltas * len(piece)


@asynccontextmanager
async def slow_readers(client, count):
    """Connections that have asked, and read nothing unless told to."""
    opened = []
    try:
        for _ in range(count):
            reader, writer = await asyncio.open_connection(client.host, client.port, limit=1024)
            opened.append((reader, writer))
            writer.write(b"GET /2 HTTP/1.1\r\nHost: here\r\n\r\n")
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for _, writer in opened), return_exceptions=True)


async def to_the_end(reader):
    told = b""
    async with asyncio.timeout(30):
        while not told.endswith(b"0\r\n\r\n"):
            told += await reader.read(65536)
    return told
