"""What instances ask of each other: only with a genuine signature is there anything."""

import logging
from contextlib import AsyncExitStack

import aiohttp
import pytest
from aiohttp import web

from service.adapters.internal_http import AiohttpInternalHttp
from service.domain.access.internal_signature import (
    BODY_DIGEST,
    SIGNATURE,
    SIGNED_AT,
    SIGNED_HEADERS,
    STREAMED,
    WINDOW_SECONDS,
    Frames,
    signed_headers,
)
from service.main.process.listening import socket_of
from service.ports.shared.instances import Peer
from service.ports.shared.internal_http import InstanceUnreachable, InternalRequest
from service.web.http.connections.connections import COMPLETE_HEAD, ConnectionLimiter, ConnectionLimits, listen
from service.web.http.entrance import Entrance
from service.web.http.internal import INTERNAL_ACCESS, InternalAccess, InternalRoutes, body_parts
from service.web.http.problems import BODY_SECONDS, name_request
from tests.contracts.internal_http import InternalHttpContract, parts_of
from tests.fakes.internal_http import Answered, Asked, FakeInternalHttp

KEY = b"k" * 32
NOW = 1_800_000_000.0
ANY = ("GET", "POST", "PUT", "DELETE")


async def on_prepare(request, response):
    name_request(request, response)


class Instance:
    """One that answers as asked, on a real socket."""

    def __init__(self, answers=()) -> None:
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.limiter = ConnectionLimiter(ConnectionLimits(per_address=2, unlimited=()))
        self.port = 0

    @property
    def peer(self) -> Peer:
        return Peer("one", f"http://127.0.0.1:{self.port}", "1", is_home=False)

    async def handle(self, request):
        body = b"".join([part async for part in body_parts(request)])
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(Asked("one", request.method, request.raw_path, headers, body))
        answered = self.answers.pop(0) if self.answers else Answered()
        response = web.StreamResponse(status=answered.status, headers=answered.headers)
        if not answered.parts:
            response.content_length = 0
        await response.prepare(request)
        for part in answered.parts:
            await response.write(part)
        if answered.is_cut:
            request.transport.close()
        return response

    async def start(self, stack, *, key=KEY, clock=lambda: NOW):
        app = web.Application(middlewares=[Entrance().enter])
        access = app[INTERNAL_ACCESS] = InternalAccess("one", clock=clock)
        access.key = key
        app[BODY_SECONDS], app[COMPLETE_HEAD] = 60.0, name_request
        app.on_response_prepare.append(on_prepare)
        routes = InternalRoutes()
        routes.operation("/internal/{path:.*}", *ANY)(self.handle)
        get = InternalRoutes()
        get.operation("/internal/only-get", "GET")(self.handle)
        app.add_routes([*get, *routes])
        runner = web.AppRunner(app, handler_cancellation=True)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        bound = socket_of("127.0.0.1", 0)
        self.port = bound.getsockname()[1]
        taking = await listen(runner.server, bound, self.limiter, logging.getLogger("test"))
        stack.callback(taking.close)
        return self


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def http(stack):
    http = AiohttpInternalHttp(KEY, clock=lambda: NOW)
    stack.push_async_callback(http.close)
    return http


class TestAiohttpInternalHttp(InternalHttpContract):
    @pytest.fixture
    async def prepared(self, stack, http):
        async def prepare(answers):
            instance = await Instance(answers).start(stack)
            away = Peer("two", "http://127.0.0.1:1", "1", is_home=False)
            return http, instance.peer, away, instance.asked

        return prepare


class TestFakeInternalHttp(InternalHttpContract):
    @pytest.fixture
    async def prepared(self):
        async def prepare(answers):
            left, asked = list(answers), []

            async def answer(request):
                asked.append(request)
                return left.pop(0) if left else Answered()

            http = FakeInternalHttp(answer)
            http.away.add("two")
            one, two = (Peer(name, f"http://{name}", "1", is_home=False) for name in ("one", "two"))
            return http, one, two, asked

        return prepare


def signed(method="POST", target="/internal/a", body=b"body", *, key=KEY, to="one", at=NOW, headers=None):
    return signed_headers(key, to, method, target, int(at), body, headers or {"X-Some": "one"})


async def sent(instance, headers, method="POST", target="/internal/a", body=b"body"):
    """The status and the head of an answer, without what is each request's own."""
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"http://127.0.0.1:{instance.port}{target}", headers=headers, data=body) as response,
    ):
        own = {name.lower(): value for name, value in response.headers.items()}
        own = {name: value for name, value in own.items() if name not in ("x-request-id", "date")}
        text = await response.text()
        return response.status, own, text.replace(response.headers["X-Request-Id"], "")


async def test_a_genuine_request_is_answered(stack):
    instance = await Instance().start(stack)
    assert (await sent(instance, signed()))[0] == 200
    for at in (NOW - WINDOW_SECONDS, NOW + WINDOW_SECONDS):
        assert (await sent(instance, signed(at=at)))[0] == 200


@pytest.mark.parametrize(
    ("headers", "other"),
    [
        ({}, {}),
        (signed(key=b"x" * 32), {}),
        (signed(to="two"), {}),
        (signed(at=NOW - WINDOW_SECONDS - 1), {}),
        (signed(at=NOW + WINDOW_SECONDS + 1), {}),
        (signed(method="GET"), {}),
        (signed(target="/internal/a?b"), {}),
        (signed(), {"target": "/internal/b"}),
        (signed(), {"body": b"other"}),
        (signed() | {"X-Some": "two"}, {}),
        (signed() | {SIGNED_HEADERS: ""}, {}),
        (signed() | {SIGNED_HEADERS: "x-other"}, {}),
        (signed() | {SIGNED_AT: "soon"}, {}),
        (signed() | {SIGNED_AT: str(int(NOW) + 1)}, {}),
        (signed() | {SIGNATURE: "é"}, {}),
        (signed() | {SIGNATURE: ""}, {}),
        (signed() | {BODY_DIGEST: STREAMED}, {}),
        (signed(method="PATCH"), {"method": "PATCH"}),
        (signed(target="/internal/only-get"), {"target": "/internal/only-get"}),
    ],
)
async def test_any_other_request_finds_nothing(stack, headers, other):
    instance = await Instance().start(stack)
    status, head, text = await sent(instance, headers, **other)
    nothing = await sent(instance, {}, other.get("method", "POST"), "/nothing/here")
    assert (status, head, text) == nothing
    assert status == 404
    assert instance.asked == []


@pytest.mark.parametrize("body", [b"body", "framed"])
@pytest.mark.parametrize(("method", "replayed"), [("GET", 200), ("POST", 503), ("PUT", 503), ("DELETE", 503)])
async def test_request_that_changes_something_is_answered_once(stack, http, method, replayed, body):
    instance = await Instance().start(stack)
    given = parts_of(b"body") if body == "framed" else body
    async with http.send(instance.peer, InternalRequest(method, "/internal/a", body=given)) as answer:
        assert answer.status == 200
    seen = instance.asked[0].headers
    headers = {name: value for name, value in seen.items() if name.startswith("x-docsmith-")}
    if body == "framed":
        frames = Frames(KEY, seen[SIGNATURE.lower()])
        body = b"".join([*frames.pack(b"body"), frames.end()])
    status, _, text = await sent(instance, headers, method, body=body)
    assert status == replayed
    assert ("outcome_unknown" in text) is (replayed == 503)
    assert len(instance.asked) == (2 if replayed == 200 else 1)
    async with http.send(instance.peer, InternalRequest(method, "/internal/a", body=b"body")) as answer:
        assert answer.status == 200  # the same once more, by its sender


async def test_replay_is_refused_until_it_is_too_old(stack, http):
    now = [NOW]
    instance = await Instance().start(stack, clock=lambda: now[-1])
    async with http.send(instance.peer, InternalRequest("POST", "/internal/a", body=b"body")):
        pass
    headers = {name: value for name, value in instance.asked[0].headers.items() if name.startswith("x-docsmith-")}
    for after, status in ((1, 503), (WINDOW_SECONDS, 503), (WINDOW_SECONDS + 1, 404)):
        now.append(NOW + after)
        assert (await sent(instance, headers))[0] == status
    assert len(instance.asked) == 1


async def test_request_of_an_older_version_is_answered(stack):
    """It has no number of its own."""
    instance = await Instance().start(stack)
    assert [(await sent(instance, signed()))[0] for _ in range(2)] == [200, 200]


async def test_without_a_key_there_is_nothing(stack):
    instance = await Instance().start(stack, key=None)
    assert (await sent(instance, signed()))[0] == 404


@pytest.mark.parametrize("change", ["cut", "changed", "more", "swapped", "too long"])
async def test_a_framed_body_that_was_changed_is_refused(stack, change):
    instance = await Instance().start(stack)
    headers = signed(body=None)
    frames = Frames(KEY, headers[SIGNATURE])
    one, two = [*frames.pack(b"one"), *frames.pack(b"two")]
    whole = {
        "cut": one + two,
        "changed": one + two[:-1] + b"x" + frames.end(),
        "more": one + two + frames.end() + b"more",
        "swapped": two + one + frames.end(),
        "too long": b"\xff" * 100,
    }
    status, _, text = await sent(instance, headers, body=whole[change])
    assert status == 400
    assert "invalid_request" in text
    assert instance.asked == []


async def test_clocks_that_differ_are_logged(stack, caplog, capsys):
    instance = await Instance().start(stack)
    await sent(instance, signed(at=NOW - 300))
    assert "the clocks differ" in capsys.readouterr().out + caplog.text


async def test_instances_may_have_any_number_of_connections(stack, http):
    instance = await Instance().start(stack)
    async with AsyncExitStack() as held:
        for _ in range(5):
            await held.enter_async_context(http.send(instance.peer, InternalRequest("GET", "/internal/a")))
        async with aiohttp.ClientSession() as session, session.get(instance.peer.url) as response:
            assert response.status == 404
    assert len(instance.asked) == 5


async def test_a_body_that_fails_fails_the_request(stack, http):
    async def failing():
        yield b"one"
        raise ValueError("broken")

    instance = await Instance().start(stack)
    with pytest.raises(InstanceUnreachable):
        async with http.send(instance.peer, InternalRequest("PUT", "/internal/a", body=failing())):
            pass
    async with http.send(instance.peer, InternalRequest("PUT", "/internal/a", body=parts_of(b"two"))) as answer:
        assert answer.status == 200
    assert [one.body for one in instance.asked] == [b"two"]
