"""Sending to a code host: when again, how long to wait, and what never leaves."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from service.adapters.code_hosts.api_client import MAX_WAIT_SECONDS, TRIES, ApiClient, asked_to_wait
from service.adapters.code_hosts.protocol import ApiAnswer, ApiRequest, NoAnswer
from service.domain.errors import RateLimited, Unavailable

NOW = 1_800_000_000.0


class Server:
    """Answers from a list, the last one for ever; None hangs up."""

    def __init__(self) -> None:
        self.answers: list[web.Response | None] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self.server = TestServer(app)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    async def _handle(self, request: web.Request) -> web.Response:
        self.requests.append((request.method, request.rel_url.raw_path_qs, dict(request.headers)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            request.transport.close()
            return web.Response()
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


@pytest.fixture
async def server():
    serving = Server()
    async with serving.server:
        yield serving


@pytest.fixture
def waits():
    return []


@pytest.fixture
async def client(waits):
    async def wait(seconds):
        waits.append(seconds)

    client = ApiClient({}, sleep=wait, jitter=lambda: 1.0, now=lambda: NOW)
    yield client
    await client.close()


def ask(server, method="GET", path="/x"):
    return ApiRequest(method, server.url + path, {"authorization": "token s3cret"}, b"{}" if method == "POST" else b"")


async def test_failed_read_is_sent_again(server, client, waits):
    server.answers = [web.Response(status=500), web.Response(status=502), web.Response(status=200, text="yes")]
    assert (await client.send(ask(server))).body == b"yes"
    assert waits == [2.0, 4.0]


@pytest.mark.parametrize("answer", [None, web.Response(status=500)])
async def test_write_that_may_have_happened_is_not_repeated(server, client, answer):
    server.answers = [answer]
    with pytest.raises(NoAnswer):
        await client.send(ask(server, "POST"))
    assert len(server.requests) == 1


async def test_there_is_an_end_of_trying(server, client, waits):
    server.answers = [None]
    with pytest.raises(Unavailable, match="cannot be reached") as failed:
        await client.send(ask(server))
    assert failed.value.code == "code_host_unavailable"
    assert len(waits) == TRIES - 1
    server.requests.clear()
    server.answers = [web.Response(status=503)]
    assert (await client.send(ask(server))).status == 503
    assert len(server.requests) == TRIES


async def test_unsent_request_is_sent_again_whatever_its_method(client, waits):
    with pytest.raises(Unavailable, match=r"http://127.0.0.1:1 cannot be reached: Connection refused\."):
        await client.send(ApiRequest("POST", "http://127.0.0.1:1/x", {}, b"{}"))
    assert len(waits) == TRIES - 1


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_limited_rate_is_waited_for(server, client, waits, method):
    server.answers = [web.Response(status=429, headers={"Retry-After": "7"}), web.Response(status=201)]
    assert (await client.send(ask(server, method))).status == 201
    assert waits == [9.0]  # what was asked for, and the first pause


async def test_client_does_not_wait_without_a_bound(server, client, waits):
    server.answers = [web.Response(status=403, headers={"Retry-After": "3600"})]
    with pytest.raises(RateLimited, match="3600 seconds") as limited:
        await client.send(ask(server))
    assert (limited.value.code, limited.value.retry_after_seconds, waits) == ("rate_limited", 3600, [])
    server.answers = [web.Response(status=429, headers={"Retry-After": "100"})]
    with pytest.raises(RateLimited):
        await client.send(ask(server))
    assert sum(waits) <= MAX_WAIT_SECONDS


@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (200, {}, b"", None),
        (403, {}, b'{"message": "Must have admin rights to Repository."}', None),
        (403, {"x-ratelimit-remaining": "12"}, b"", None),
        (503, {}, b"", None),
        (429, {}, b"", 60),
        (429, {"retry-after": "30"}, b"", 30),
        (429, {"retry-after": "Fri, 15 Jan 2027 08:00:10 GMT"}, b"", 10),
        (429, {"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, b"", 0),
        (429, {"retry-after": "soon"}, b"", 60),
        (429, {"ratelimit-reset": str(int(NOW) + 20)}, b"", 21),
        (429, {"ratelimit-reset": "20"}, b"", 20),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 5)}, b"", 6),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) - 5)}, b"", 0),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "٣"}, b"", 60),
        (403, {}, b'{"message": "You have exceeded a secondary rate limit."}', 60),
        (503, {"retry-after": "5"}, b"", 5),
    ],
)
def test_requested_wait_of_a_host_is_read(status, headers, body, seconds):
    assert asked_to_wait(ApiAnswer(status, headers, body), NOW) == seconds


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer_and_takes_the_token_nowhere(server, client, status):
    other = Server()
    other.answers = [web.Response()]
    async with other.server:
        server.answers = [web.Response(status=status, headers={"Location": f"{other.url}/y"})]
        assert (await client.send(ask(server))).status == status
        assert other.requests == []


async def test_a_cookie_is_not_kept(server, client):
    server.answers = [web.Response(headers={"Set-Cookie": "session=theirs"})]
    for _ in range(2):
        await client.send(ask(server))
    assert all("Cookie" not in headers for _, _, headers in server.requests)


async def test_an_address_is_sent_as_it_was_quoted(server, client):
    server.answers = [web.Response()]
    await client.send(ask(server, path="/projects/a%2Fb?branch=docs%2Fx%26y"))
    assert server.requests[0][1] == "/projects/a%2Fb?branch=docs%2Fx%26y"


async def test_an_answer_without_end_is_cut_off(client):
    async def endless(request):
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 1_000_000)

    app = web.Application()
    app.router.add_get("/", endless)
    async with TestServer(app) as serving:
        with pytest.raises(Unavailable, match="too long"):
            await client.send(ApiRequest("GET", str(serving.make_url("/")), {}))


async def test_proxy_variables_and_their_exceptions_are_used(server):
    server.answers = [web.Response(text="by proxy")]
    client = ApiClient({"http_proxy": server.url, "no_proxy": "127.0.0.1"})
    try:
        answer = await client.send(ApiRequest("GET", "http://git.example/x", {}))
        assert answer.body == b"by proxy"
        server.requests.clear()
        await client.send(ask(server))
        assert server.requests[0][1] == "/x"
    finally:
        await client.close()


def test_a_request_shows_no_token():
    assert "s3cret" not in repr(ApiRequest("GET", "https://git.example/x", {"authorization": "token s3cret"}))
