"""Asking other sites: which method, what an answer means, and where the guard stops."""

import socket

import pytest
from aiohttp import ClientSession, web

from service.adapters.link_checker import RECEIVE_BYTES, AiohttpLinkChecker
from service.adapters.outbound import guarded_connector
from service.ports.link_checker import LinkAnswer


@pytest.fixture
async def site():
    asked: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(f"{request.method} {request.path}")
        match request.path, request.method:
            case "/moved", _:
                raise web.HTTPMovedPermanently("/fine")
            case "/round", _:
                raise web.HTTPFound("/round")
            case "/away", _:
                raise web.HTTPFound("ftp://127.0.0.1/x")
            case ("/get", "HEAD"):
                raise web.HTTPMethodNotAllowed("HEAD", ["GET"])
            case ("/gone", _):
                raise web.HTTPGone
            case ("/lost", _):
                raise web.HTTPNotFound
            case ("/endless", _):
                return web.Response(text="x" * 10_000_000)
            case _:
                return web.Response(text="x" * 100)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    await runner.cleanup()


async def test_answers_of_a_site_are_told_apart(site):
    url, asked = site
    paths = ["/fine", "/moved", "/get", "/gone", "/lost", "/round", "/away"]
    answers = await AiohttpLinkChecker(allow_private=True).ask([url + path for path in paths])
    assert [answers[url + path] for path in paths] == [
        LinkAnswer(200), LinkAnswer(200), LinkAnswer(200), LinkAnswer(410), LinkAnswer(404),
        LinkAnswer(None, "bad_answer"), LinkAnswer(None, "address_not_allowed"),
    ]  # fmt: skip
    assert asked.count("GET /get") == 1
    assert asked.count("GET /fine") == 0


async def test_private_addresses_are_not_asked(site):
    url, asked = site
    answers = await AiohttpLinkChecker(allow_private=False).ask([f"{url}/fine", "file:///etc/passwd", "http://[::1]/"])
    assert set(answers.values()) == {LinkAnswer(None, "address_not_allowed")}
    assert asked == []


async def test_links_that_time_does_not_suffice_for_are_left_out(site):
    url, _ = site
    assert await AiohttpLinkChecker(allow_private=True, all_seconds=0).ask([f"{url}/fine"]) == {}


async def test_receive_buffer_of_a_guarded_connection_can_be_small(site):
    url, _ = site
    connector = guarded_connector(allow_private=True, receive_bytes=RECEIVE_BYTES)
    async with ClientSession(connector=connector) as session, session.get(f"{url}/endless") as response:
        opened = response.connection.transport.get_extra_info("socket")
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) <= 4 * RECEIVE_BYTES
