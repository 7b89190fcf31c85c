"""A service that was asked to stop, while it drains: a proxy sees that it goes down, and nobody is refused."""

import asyncio
import signal
import socket

import pytest

from tests.end_to_end.talk import ask, create_job, job_events, message_url, question, text_of
from tests.end_to_end.test_crashes import with_model
from tests.fakes.provider import ScriptedProvider
from tests.service_process import service_in, write_docs

DRAINING = {"DOCSMITH_SERVER__DRAIN_SECONDS": "3600"}


@pytest.fixture
async def provider():
    async with ScriptedProvider() as provider:
        yield provider


async def not_ready(http, service):
    """Wait until no instance is; return the reasons of one."""
    for one in service.each:
        status = 200
        while status == 200:
            async with http.get(f"{one.url}/readyz") as answer:
                status, body = answer.status, await answer.json()
    return body["reasons"]


async def test_draining_service_answers_while_its_readiness_fails(http, tmp_path, provider):
    with service_in(tmp_path, {**with_model(provider), **DRAINING}) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.start)
        goes_on = asyncio.Event()
        async with http.get(f"{service.url}/readyz/requests") as answer:
            assert (answer.status, await answer.json()) == (200, {"status": "ready", "reasons": {}})
        provider.will_reply("To install ", "Kite", after=1, hold=goes_on)
        async with http.post(message_url(service), json=question("How?"), headers=service.assistant) as reply:
            await provider.next_asked()
            service.signal(signal.SIGTERM)
            assert await not_ready(http, service) == {"service": "it is going down"}
            async with http.get(f"{service.url}/readyz/requests") as answer:
                assert (answer.status, (await answer.json())["status"]) == (503, "not ready")
            async with http.get(f"{service.url}/healthz") as answer:
                assert (answer.status, answer.headers["Connection"]) == (200, "close")
            provider.will_reply("Run the installer.")
            assert "Run the installer." in text_of(await ask(http, service, question("And now?")))
            goes_on.set()
            assert "Kite" in await reply.text()
        assert await asyncio.to_thread(service.stop) == 0  # the second signal ends the drain


async def test_drain_parks_jobs_at_once(http, tmp_path, provider):
    with service_in(tmp_path, {**with_model(provider), **DRAINING}) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.start)
        provider.will_reply("Hm", "…", after=1, hold=asyncio.Event())
        job = await create_job(http, service, "Think about it")
        await provider.next_asked()
        service.signal(signal.SIGTERM)
        events = await job_events(http, service, job["id"], until="job-interrupted")
        assert events[-1]["type"] == "job-interrupted"
        assert await asyncio.to_thread(service.stop) == 0


async def test_drain_ends_by_itself(tmp_path):
    with service_in(tmp_path, {"DOCSMITH_SERVER__DRAIN_SECONDS": "0.1"}) as service:
        await asyncio.to_thread(service.start)
        assert await asyncio.to_thread(service.stop) == 0
        assert '"drain_seconds":0.1' in service.log()


async def test_supervisor_is_asked_for_the_time_of_the_drain(tmp_path):
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(address))
        notified.settimeout(60)
        with service_in(tmp_path, {**DRAINING, "NOTIFY_SOCKET": str(address)}) as service:
            await asyncio.to_thread(service.start)
            for _ in service.each:
                assert notified.recv(4096).startswith(b"READY=1")
            service.signal(signal.SIGTERM)
            for _ in service.each:
                told = await asyncio.to_thread(notified.recv, 4096)
                assert told == b"STOPPING=1\nEXTEND_TIMEOUT_USEC=3615000000"
            assert await asyncio.to_thread(service.stop) == 0


async def test_health_tells_what_a_proxy_asks(http, tmp_path):
    with service_in(tmp_path, DRAINING) as service:
        await asyncio.to_thread(service.start)
        assert (await asyncio.to_thread(service.cli, "health", "--requests"))["ready"]
        service.signal(signal.SIGTERM)
        await not_ready(http, service)
        found = await asyncio.to_thread(lambda: service.cli("health", "--requests", status=1))
        assert found["reasons"] == {"service": "it is going down"}
        assert await asyncio.to_thread(service.stop) == 0
