"""Requests that one instance passes on to the one that is home to the embedded code host."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

from service.adapters.internal_http import AiohttpInternalHttp
from service.domain.errors import Invalid, ServiceError
from service.ports.shared.instances import RENEW_SECONDS, Peer
from service.ports.shared.internal_http import InternalRequest
from service.runtime.hosted_place import HostedPlace
from service.web.http.entrance import Entrance
from service.web.http.internal import INTERNAL_ACCESS, InternalAccess
from service.web.http.passing import receiving
from service.web.http.passing.head import PASSED_PATH, Head, decoded, encoded
from service.web.http.passing.sending import LOOKS, PassingOn
from service.web.http.problems import BODY_SECONDS, json_response
from tests.fakes.instances import FakeInstances
from tests.fakes.internal_http import Answered, FakeInternalHttp


class Home:
    """The instance that the requests are passed on to."""

    def __init__(self):
        self.heads, self.bodies, self.asked = [], [], []
        self.answers = []
        self.http = FakeInternalHttp(self._answer)

    async def _answer(self, asked):
        assert asked.target == PASSED_PATH
        head, rest = self._split(asked.body)
        self.heads.append(head)
        self.asked.append(asked.to)
        self.bodies.append(rest)
        return self.answers.pop(0) if self.answers else Answered(parts=[b"from ", b"home"])

    @staticmethod
    def _split(body):
        for end in range(len(body), 0, -1):
            with suppress(Exception):
                return decoded(body[:end]), body[end:]
        raise AssertionError(body)


@pytest.fixture
def home():
    return Home()


@pytest.fixture
def instances():
    instances = FakeInstances()
    instances.begin("home", "http://home", is_home=True)
    return instances


@pytest.fixture
def pulse():
    return asyncio.Event()


@pytest.fixture
def looks():
    """Whatever happens between two looks for home."""
    return []


@pytest.fixture
def body_seconds():
    return 60.0


@pytest.fixture
async def client(aiohttp_client, tmp_path, home, instances, pulse, looks, body_seconds):
    place = HostedPlace(tmp_path, is_here=False)

    async def sleep(seconds):
        if seconds < RENEW_SECONDS:
            looks.pop(0)()
            await asyncio.sleep(0)
        else:
            await pulse.wait()

    async def merge(request):
        await request.read()
        place.repository("p1")
        return json_response("here")

    async def form(request):
        await request.read()
        try:
            place.repository("p1")
        except ServiceError as error:
            return json_response(str(error))

    async def plain(request):
        raise Invalid("It is wrong.")

    async def here(_request):
        return json_response("here")

    async def never(_request):
        raise AssertionError

    passing = PassingOn(instances, home.http, place, sleep)
    app = web.Application(middlewares=[Entrance(passing_on=passing).enter])

    async def unread(_request):
        place.repository("p1")

    app[BODY_SECONDS] = body_seconds
    app.router.add_post("/merge", merge)
    app.router.add_post("/unread", unread)
    app.router.add_get("/changes", form)
    app.router.add_post("/form", form)
    app.router.add_get("/plain", plain)
    for path in ("/operator/health/live", "/operator/audit/verify"):
        app.router.add_get(path, here)
    app.router.add_route("*", "/hosted/{rest:.*}", never)
    return await aiohttp_client(app)


async def test_request_that_asks_for_a_repository_is_answered_by_home(client, home):
    headers = {"Cookie": "a=1; b=2", "Authorization": "Bearer x", "X-Request-Id": "mine", "Connection": "keep-alive"}
    async with client.post("/merge?x=a%26b", data=b'{"a": 1}', headers=headers) as response:
        assert (response.status, await response.read()) == (200, b"from home")
    [head], [body] = home.heads, home.bodies
    fields = head.fields()
    assert (head.method, head.target, head.remote, head.scheme) == ("POST", "/merge?x=a%26b", "127.0.0.1", "http")
    assert (fields["Cookie"], fields["Authorization"], fields["X-Request-Id"]) == ("a=1; b=2", "Bearer x", "mine")
    assert fields["Host"].startswith("127.0.0.1:")
    assert "Connection" not in fields
    assert body == b'{"a": 1}'


async def test_headers_that_the_client_calls_its_connections_are_kept(client, home):
    headers = {"Connection": "X-Forwarded-For, Cookie, close", "X-Forwarded-For": "192.0.2.1", "Cookie": "a=1"}
    async with client.post("/merge", data=b"{}", headers=headers) as response:
        assert response.status == 200
    fields = home.heads[0].fields()
    assert (fields["X-Forwarded-For"], fields["Cookie"]) == ("192.0.2.1", "a=1")
    assert "Connection" not in fields


@pytest.mark.parametrize("body_seconds", [0.0])
async def test_body_that_does_not_arrive_is_given_up(client, home, pulse):
    async def waiting():
        yield b"begun"
        await pulse.wait()

    async with client.post("/unread", data=waiting()) as response:
        assert (response.status, (await response.json())["code"]) == (408, "body_too_slow")
        pulse.set()
    assert home.heads == []


@pytest.mark.parametrize("fields", [1, 16, 17, 99])
async def test_head_as_long_as_any_is_read_at_home(aiohttp_client, fields):
    """One of 16 fields fits into a frame of the body, one of 17 does not."""

    async def show(request):
        return json_response([sum(map(len, request.headers.getall("Cookie"))), await request.text()])

    app = web.Application(middlewares=[Entrance().enter])
    app[BODY_SECONDS] = 60.0
    access = app[INTERNAL_ACCESS] = InternalAccess("one")
    access.key = b"k" * 32
    app.add_routes(receiving.routes)
    app.router.add_put("/", show)
    client = await aiohttp_client(app)
    cookies = ((b"Cookie", b"c" * 16_000),) * fields
    head = Head("PUT", "/", ((b"Host", b"a"), *cookies), "192.0.2.1", "http", True)

    async def sent():
        yield encoded(head)
        yield b"body"

    http = AiohttpInternalHttp(access.key)
    peer = Peer("one", f"http://127.0.0.1:{client.server.port}", "1", is_home=True)
    async with http.send(peer, InternalRequest("PUT", PASSED_PATH, body=sent())) as answer:
        assert (answer.status, await answer.read(10_000)) == (200, b'[%d,"body"]' % (16_000 * fields))
    await http.close()


@pytest.mark.parametrize(
    "target", ["/a/b?c=d%26e#f", "//other.example/a?b", "/%2F/a%20b", "http://other.example/a", "/a//b?c?d"]
)
async def test_target_is_read_at_home_as_where_it_arrived(aiohttp_client, target):
    asked = asyncio.Event()

    async def show(request):
        asked.set()
        return json_response([request.raw_path, request.path, request.query_string, await request.text()])

    app = web.Application(middlewares=[Entrance().enter])
    app[BODY_SECONDS] = 60.0
    access = app[INTERNAL_ACCESS] = InternalAccess("one")
    access.key = b"k" * 32
    app.add_routes(receiving.routes)
    app.router.add_route("*", "/{rest:.*}", show)
    client = await aiohttp_client(app)
    port = client.server.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"POST {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody".encode())
    at_once = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    asked.clear()
    head = Head("POST", target, ((b"Host", b"a"),), "192.0.2.1", "http", True)

    async def sent():
        yield encoded(head)
        await asked.wait()  # its handler waits for the body
        yield b"body"

    http = AiohttpInternalHttp(access.key)
    peer = Peer("one", f"http://127.0.0.1:{port}", "1", is_home=True)
    async with http.send(peer, InternalRequest("POST", PASSED_PATH, body=sent())) as answer:
        passed = await answer.read(10_000)
    await http.close()
    assert passed == at_once
    assert b"body" in passed


@pytest.mark.parametrize(("method", "path"), [("GET", "/changes"), ("POST", "/form")])
async def test_page_that_made_another_error_of_it_is_passed_on_too(client, method, path):
    async with client.request(method, path) as response:
        assert await response.read() == b"from home"


@pytest.mark.parametrize(
    ("leader", "asked"),
    [("here", None), ("third", "third"), ("another", "another"), ("", "another")],
)
async def test_check_of_the_log_is_with_the_leader(client, home, instances, leader, asked):
    instances.be(leads=leader == "here")
    for name in ("another", "third"):  # the first by name, and the last
        instances.begin(name, f"http://{name}", leads=name == leader)
    async with client.get("/operator/audit/verify") as response:
        assert (response.status, await response.read()) == (200, b'"here"' if asked is None else b"from home")
    assert home.asked == ([] if asked is None else [asked])


@pytest.mark.parametrize(("name", "answered"), [("home", b"from home"), ("gone", b'"here"'), ("here", b'"here"')])
async def test_live_health_is_that_of_the_instance_of_its_page(client, home, name, answered):
    async with client.get("/operator/health/live", params={"instance": name}) as response:
        assert (response.status, await response.read()) == (200, answered)
    assert len(home.heads) == (name == "home")


async def test_other_requests_are_answered_here(client, home):
    async with client.get("/plain") as response:
        assert response.status == 400
    assert home.heads == []


async def test_git_and_pull_requests_stream_to_home_and_back(client, home):
    home.answers = [Answered(403, {"WWW-Authenticate": "Basic", "Transfer-Encoding": "chunked"}, [b"no"])]

    async def pieces():
        for _ in range(50):
            yield b"x" * 10_000

    async with client.post("/hosted/p1.git/git-receive-pack", data=pieces()) as response:
        assert (response.status, await response.read()) == (403, b"no")
        assert response.headers["WWW-Authenticate"] == "Basic"
    assert home.heads[0].has_body
    assert home.bodies[0] == b"x" * 500_000


@pytest.mark.parametrize("path", ["/hosted/p1/pulls/1-x", "/changes"])
async def test_home_that_is_away_is_503_with_retry_after(client, instances, home, path):
    home.http.away.add("home")
    for _ in range(2):
        async with client.get(path) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "5")
            assert (await response.json())["code"] == "home_away"
        if "home" in instances.peers:
            instances.end("home")


async def test_home_that_was_not_seen_yet_is_waited_for(client, instances, home, looks):
    instances.end("home")
    looks += [lambda: None, lambda: instances.begin("other", "http://other", is_home=True)]
    for _ in range(2):
        async with client.get("/changes") as response:
            assert (response.status, await response.read()) == (200, b"from home")
    instances.end("other")
    async with client.get("/changes") as response:
        assert response.status == 503, "it is not waited for again"


async def test_requests_that_come_together_all_wait_for_home(client, instances, looks):
    """Each looks as often as one that comes alone."""
    instances.end("home")
    looks += [lambda: None] * (3 * LOOKS)
    answers = await asyncio.gather(*(client.post("/merge") for _ in range(3)))
    assert {answer.status for answer in answers} == {503}
    assert len(looks) < 2 * LOOKS


async def test_home_that_is_never_seen_is_waited_for_once(client, instances, looks):
    instances.end("home")
    looks += [lambda: None] * LOOKS
    for _ in range(2):
        async with client.get("/changes") as response:
            assert (response.status, (await response.json())["code"]) == (503, "home_away")
    assert looks == []


async def test_home_that_ends_while_it_answers_is_given_up(client, instances, home, pulse):
    asked = asyncio.Event()

    @asynccontextmanager
    async def send(_peer, request):
        async for _ in request.body:
            asked.set()
        await asyncio.Event().wait()  # it is paused
        yield

    home.http.send = send
    tasks = [asyncio.create_task(client.get("/changes")), asyncio.create_task(client.post("/merge", data=b"x"))]
    await asked.wait()
    instances.end("home")
    pulse.set()
    async with await tasks[0] as looked, await tasks[1] as merged:
        assert (looked.status, (await looked.json())["code"]) == (503, "home_away")
        assert merged.status == 503


async def test_answer_that_is_cut_off_is_cut_off_here(client, home):
    home.answers = [Answered(200, {"Content-Length": "100"}, [b"half"], is_cut=True)]
    with pytest.raises(Exception, match=r"payload|disconnected|reset"):
        async with client.get("/hosted/p1/pulls/1-x") as response:
            await response.read()
