"""What becomes of errors that no handler expects."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from eventstore import StoreUnavailable, WrongExpectedVersion
from service.web.http.entrance import Entrance


@pytest.mark.parametrize("error", [WrongExpectedVersion("thread-1", 3, 5), StoreUnavailable("locked"), TimeoutError()])
async def test_temporary_error_is_answered_as_unavailable(error):
    async def fail(_request):
        raise error

    app = web.Application(middlewares=[Entrance().enter])
    app.router.add_get("/", fail)
    async with TestClient(TestServer(app)) as client, client.get("/") as response:
        assert (response.status, (await response.json())["code"]) == (503, "unavailable")
