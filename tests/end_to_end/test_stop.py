"""A stop with everything under way that keeps connections open."""

import asyncio
import time

import pytest

from tests.end_to_end.talk import create_job, message_url, question
from tests.end_to_end.test_crashes import with_model
from tests.fakes.provider import ScriptedProvider
from tests.service_process import service_in, write_docs

STOP_SECONDS = 10


@pytest.fixture
async def provider():
    async with ScriptedProvider() as provider:
        yield provider


async def test_stop_takes_under_ten_seconds_whatever_is_open(http, tmp_path, provider):
    told = asyncio.Event()

    async def never_answers(reader, writer):
        told.set()
        await reader.read()
        writer.close()

    hooks = await asyncio.start_server(never_answers, "127.0.0.1", 0)
    port = hooks.sockets[0].getsockname()[1]
    environment = {**with_model(provider), "DOCSMITH_NETWORK__ALLOW_PRIVATE": "true"}
    with service_in(tmp_path, environment) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.cli, "webhook", "create", "--url", f"http://127.0.0.1:{port}/hook")
        await asyncio.to_thread(service.start)
        provider.will_reply("To install ", "Kite", after=1, hold=asyncio.Event())
        provider.will_reply("Hm", "…", after=1, hold=asyncio.Event())
        async with http.get(f"{service.url}/docs") as page:  # and its connection stays
            assert page.status == 200
            await page.read()
        async with http.post(message_url(service), json=question("How?"), headers=service.assistant) as reply:
            await provider.next_asked()
            job = await create_job(http, service, "Think about it")
            await provider.next_asked()
            live = f"{service.url}/v2/agent/{service.project_id}/job/{job['id']}/events"
            async with http.get(live, headers=service.admin) as events:  # nobody reads it
                assert events.status == 200
                await asyncio.wait_for(told.wait(), 20)
                begun = time.monotonic()
                assert await asyncio.to_thread(service.stop) == 0
                assert time.monotonic() - begun < STOP_SECONDS
                await events.read()
            assert (await reply.text()).endswith("data: [DONE]\n\n")
    hooks.close()
    await hooks.wait_closed()
