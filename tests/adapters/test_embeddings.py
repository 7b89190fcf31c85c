"""Vectors over litellm, from a server on this machine that answers well and badly."""

import asyncio
import json
import math

import pytest
from aiohttp import web

from service.adapters.models.configured import ModelSettings
from service.adapters.models.embeddings import LitellmEmbeddings
from service.adapters.models.vector_answers import read_vectors
from service.domain.errors import Forbidden, Invalid, Unavailable
from service.ports.embeddings import TextRefused


def body(*vectors, order=None):
    places = order or range(len(vectors))
    data = [{"object": "embedding", "index": at, "embedding": each} for at, each in zip(places, vectors, strict=True)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return json.dumps({"object": "list", "model": "m", "data": data, "usage": usage})


class Server:
    def __init__(self):
        self.status, self.body, self.headers, self.held, self.asked = 200, "", {}, None, []

    async def answer(self, request):
        self.asked.append(json.loads(await request.read()))
        if self.held is not None:
            await self.held.wait()
        return web.Response(status=self.status, text=self.body, content_type="application/json", headers=self.headers)


@pytest.fixture
async def server():
    server, app = Server(), web.Application()
    app.router.add_post("/v1/embeddings", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield server
    if server.held is not None:
        server.held.set()
    await runner.cleanup()


@pytest.fixture
async def model(server):
    settings = ModelSettings(alias="near", model="openai/near-1", api_base=server.url, api_key_env="")
    model = LitellmEmbeddings(settings, {})
    await model.prepare()
    yield model
    await model.close()


async def test_vectors_come_in_the_order_of_the_texts(server, model):
    server.body = body([0.5, 1.0], [0.25, 2.0], order=[1, 0])
    assert await model.embed(["one", "two"], timeout_seconds=60) == [[0.25, 2.0], [0.5, 1.0]]
    assert (server.asked[0]["input"], server.asked[0]["encoding_format"]) == (["one", "two"], "float")


async def test_number_that_is_none_does_not_cost_the_other_vectors(server, model):
    server.body = body([math.nan, 1.0], [None, 1.0], [0.5, 2.0])
    first, second, third = await model.embed(["one", "two", "three"], timeout_seconds=60)
    assert math.isnan(first[0])
    assert math.isnan(second[0])
    assert third == [0.5, 2.0]


@pytest.mark.parametrize(
    "answered",
    [
        body([1.0, 2.0]),
        body([1.0], [1.0, 2.0]),
        body([], []),
        "{}",
        "[]",
        '{"data": [{"embedding": "AACA"}, {}]}',
        "<p>",
    ],
)
async def test_answer_without_the_vectors_may_be_asked_for_again(server, model, answered):
    server.body = answered
    with pytest.raises(Unavailable):
        await model.embed(["one", "two"], timeout_seconds=60)


@pytest.mark.parametrize(
    ("status", "kind"), [(400, TextRefused), (413, TextRefused), (401, Forbidden), (404, Invalid), (503, Unavailable)]
)
async def test_refusal_says_whether_it_is_about_a_text(server, model, status, kind):
    server.status, server.body = status, json.dumps({"error": {"message": "no", "type": "invalid_request_error"}})
    with pytest.raises(kind) as caught:
        await model.embed(["one"], timeout_seconds=60)
    assert isinstance(caught.value, TextRefused) == (kind is TextRefused)


async def test_limited_rate_says_when_to_come_back(server, model):
    server.status, server.headers, server.body = 429, {"Retry-After": "7"}, '{"error": {"message": "slow down"}}'
    with pytest.raises(Unavailable) as caught:
        await model.embed(["one"], timeout_seconds=60)
    assert caught.value.retry_after_seconds == 7
    assert len(server.asked) == 1  # who asks waits, not a retry of its own within the deadline


async def test_server_that_hangs_ends_at_the_deadline(server, model):
    server.held = asyncio.Event()
    with pytest.raises(Unavailable, match=r"longer|in time"):
        await model.embed(["one"], timeout_seconds=0.05)


def test_numbers_beyond_all_bounds_are_no_crash():
    huge = "1" + "0" * 400
    assert math.isinf(read_vectors(f'{{"data": [{{"embedding": [{huge}.0]}}]}}'.encode())[0][0])
    with pytest.raises(ValueError, match="form"):
        read_vectors(f'{{"data": [{{"embedding": [{huge}]}}]}}'.encode())
