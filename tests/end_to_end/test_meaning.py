"""Embeddings of a real service: made in the background by a provider on this machine, used by search."""

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest
from aiohttp import web

from tests.service_process import DOCS, service_in, write_docs


class EmbeddingServer:
    """OpenAI's ``/embeddings``: two directions, of what is about waiting and of all else."""

    def __init__(self):
        self.asked, self.keys, self.refusals, self.held = [], [], 0, None

    async def answer(self, request):
        body = json.loads(await request.read())
        self.keys.append(request.headers.get("Authorization"))
        if self.held is not None:
            await self.held.wait()
        if self.refusals:
            self.refusals -= 1
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        self.asked += body["input"]
        data = [
            {"object": "embedding", "index": number, "embedding": [1.0, 0.1] if "delay" in text.lower() else [0.1, 1.0]}
            for number, text in enumerate(body["input"])
        ]
        return web.json_response(
            {"object": "list", "data": data, "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        )


@pytest.fixture
async def provider():
    server, app = EmbeddingServer(), web.Application()
    app.router.add_post("/v1/embeddings", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield server
    await runner.cleanup()


def settings(provider):
    return {
        "DOCSMITH_SEARCH__EMBEDDING_MODEL": "near",
        "DOCSMITH_SEARCH__EMBEDDING_WAIT_MS": "10000",
        "DOCSMITH_MODELS__NEAR__MODEL": "openai/near-1",
        "DOCSMITH_MODELS__NEAR__API_BASE": provider.url,
        "OPENAI_API_KEY": "sk-of-somebody-else",
    }


async def test_sections_are_embedded_once_and_questions_when_asked(tmp_path, provider):
    provider.refusals = 1
    with service_in(tmp_path, settings(provider)) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.start)
        folder = service.data / "index" / service.domain
        sections = service_sections(folder)

        def embedded():
            return [count(file, "vectors") for file in folder.glob(".vectors-*.db")] == [sections]

        async with asyncio.timeout(60):
            while not await asyncio.to_thread(embedded):  # noqa: ASYNC110  (nothing tells when)
                await asyncio.sleep(0.02)
        assert len(provider.asked) == sections, "the batch that was refused was asked for again, and none twice"
        assert any(DOCS["retry.md"].split("\n")[-2] in text for text in provider.asked)
        told = await asyncio.to_thread(service.cli, "search", "kite", "install the delay", "--explain")
        assert "install the delay" in provider.asked
        assert told["results"][0]["explanation"]["meaningRank"] > 0
        assert not any("somebody-else" in (key or "") for key in provider.keys)

        provider.asked.clear()
        service.stop()
        await asyncio.to_thread(service.start)
        await asyncio.to_thread(service.cli, "index", "kite")
        await asyncio.to_thread(service.cli, "search", "kite", "another question")
        assert provider.asked == ["another question"], "what has a vector is not embedded again"


def service_sections(folder):
    index = next(each for each in folder.iterdir() if each.name[0] != ".")
    return count(index / "pages.db", "sections")


def count(file, table):
    with closing(sqlite3.connect(file)) as db:
        try:
            return db.execute(f"SELECT count(DISTINCT hash) FROM {table}").fetchone()[0]
        except sqlite3.OperationalError:
            return 0  # it is being made


async def test_a_provider_that_hangs_holds_no_search_up(http, tmp_path, provider):
    provider.held = asyncio.Event()
    with service_in(tmp_path, {**settings(provider), "DOCSMITH_SEARCH__EMBEDDING_WAIT_MS": "50"}) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.start)
        url = f"{service.url}/discovery/v1/search/{service.domain}"
        async with http.post(url, json={"query": "delay"}, headers=service.assistant) as response:
            assert (await response.json())[0]["path"] == "retry"
    provider.held.set()
