"""The stream of a call, by itself: when it begins, and for whom."""

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from service.web.mcp.progress import Progress
from service.wire.mcp.requests import read_request
from tests.mcp.client import legacy


async def waited(meta):
    """The answer to a call during which nothing happens for a while."""

    async def answer(request):
        progress = Progress(request, read_request(await request.read(), {}).params.meta.progress_token)
        await progress.keep_alive()
        return await progress.finish(b'{"result": {}}')

    app = web.Application()
    app.router.add_post("/", answer)
    async with TestClient(TestServer(app)) as client:
        response = await client.post("/", data=json.dumps(legacy("tools/call", meta)))
        return response.content_type, await response.text()


@pytest.mark.parametrize("token", ["t", 0])
async def test_keep_alive_begins_the_stream(token):
    kind, text = await waited({"_meta": {"progressToken": token}})
    assert kind == "text/event-stream"
    assert text == ': \n\nevent: message\ndata: {"result": {}}\n\n'


async def test_client_without_a_token_waits_for_json():
    assert await waited({}) == ("application/json", '{"result": {}}')
