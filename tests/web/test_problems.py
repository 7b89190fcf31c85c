"""What becomes of errors that no handler expects."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from eventstore import StoreUnavailable, WrongExpectedVersion
from service.web.http.entrance import Entrance
from service.web.http.forms import read_form
from service.web.http.problems import BODY_SECONDS


@pytest.mark.parametrize("error", [WrongExpectedVersion("thread-1", 3, 5), StoreUnavailable("locked"), TimeoutError()])
async def test_temporary_error_is_answered_as_unavailable(error):
    async def fail(_request):
        raise error

    app = web.Application(middlewares=[Entrance().enter])
    app.router.add_get("/", fail)
    async with TestClient(TestServer(app)) as client, client.get("/") as response:
        assert (response.status, (await response.json())["code"]) == (503, "unavailable")


async def test_form_that_arrives_broken_is_the_senders_fault():
    async def take(request):
        return web.json_response(dict(await read_form(request)))

    app = web.Application(middlewares=[Entrance().enter])
    app[BODY_SECONDS] = 60.0
    app.router.add_post("/", take)
    async with TestServer(app) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        kind = b"Content-Type: application/x-www-form-urlencoded\r\n"
        writer.write(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + kind + b"\r\n3\r\na=1\r\nxyz\r\n"
        )
        assert (await reader.readline()).split()[1] == b"400"
        writer.close()
