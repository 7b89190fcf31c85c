"""A key that is revoked while its answers are under way: they end, each as its own protocol ends one."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.end_to_end.scripted import Reading, scripted_service
from tests.end_to_end.talk import message_url, question, recorded
from tests.fakes.provider import ScriptedProvider
from tests.service_process import Service, free_port

BOUND_SECONDS = 50
"""For what ends within a second on a machine that has nothing else to do: less than any other deadline here."""
SENTENCE = "This API key is no longer valid."


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    settings = {"AGENT__MODEL": "scripted", "AGENT__CONCURRENT_JOBS_PER_PROJECT": "8"}
    with scripted_service(tmp_path_factory.mktemp("revoked"), port, **settings) as service:
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


@dataclass
class Key:
    service: Service
    id: str
    token: str

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    async def revoke(self):
        """From another process."""
        await asyncio.to_thread(self.service.cli, "key", "revoke", self.id)

    async def admitted(self):
        """A request with it has been let in."""
        await recorded(self.service, f"key-{self.id}", until="key-used")


async def a_key(service, kind):
    domains = ("--domain", service.domain) if kind == "assistant" else ()
    made = await asyncio.to_thread(service.cli, "key", "create", "--kind", kind, *domains)
    return Key(service, made["id"], made["token"])


@pytest.fixture
async def assistant(service):
    return await a_key(service, "assistant")


@pytest.fixture
async def admin(service):
    return await a_key(service, "admin")


def held(provider):
    """The model's next reply begins and never ends."""
    provider.will_reply("To install ", "Kite", after=1, hold=asyncio.Event())


@asynccontextmanager
async def asking(http, key, version=2):
    url = message_url(key.service, version)
    async with http.post(url, json=question("How do I install Kite?"), headers=key.headers) as response:
        assert response.status == 200
        yield Reading(response)


@asynccontextmanager
async def job_under_way(http, provider, key):
    """The address of a job that ends with the block."""
    held(provider)
    url = f"{key.service.url}/v2/agent/{key.service.project_id}/job"
    async with http.post(url, json={"prompt": "Think about it"}, headers=key.headers) as response:
        job = f"{url}/{(await response.json())['id']}"
    await provider.next_asked()
    yield job
    await cancel(http, key.service, job)


async def cancel(http, service, job):
    async with http.post(f"{job}/cancel", headers=service.admin) as response:
        assert response.status == 200


async def test_reply_ends_with_its_key(http, provider, assistant):
    held(provider)
    async with asking(http, assistant) as reading:
        await reading.until("To install")
        asked = await provider.next_asked()
        await assistant.revoke()
        async with asyncio.timeout(BOUND_SECONDS):
            found = await reading.rest()
            await asked.disconnected.wait()
    assert found[-1] == {"type": "error", "errorText": SENTENCE}


async def test_other_readers_go_on_when_a_key_is_revoked(http, service, provider, assistant):
    go_on = asyncio.Event()
    other = await a_key(service, "assistant")
    provider.will_reply("To install ", "Kite", after=1, hold=go_on)
    async with asking(http, other) as staying:
        await staying.until("To install")
        await provider.next_asked()
        held(provider)  # only now: replies of the script go to requests in the order in which these arrive
        async with asking(http, assistant) as reading:
            await provider.next_asked()
            await assistant.revoke()
            async with asyncio.timeout(BOUND_SECONDS):
                await reading.rest()
        go_on.set()
        assert (await staying.rest())[-1]["type"] == "finish"


async def test_data_stream_ends_with_its_key(http, provider, assistant):
    held(provider)
    async with asking(http, assistant, version=1) as reading:
        await provider.next_asked()
        await assistant.revoke()
        async with asyncio.timeout(BOUND_SECONDS):
            lines = (await reading.response.text()).splitlines()
    assert lines[-1] == f'3:"{SENTENCE}"'


async def test_job_events_end_with_their_key(http, provider, admin):
    async with job_under_way(http, provider, admin) as job:
        async with http.get(f"{job}/events", headers=admin.headers) as response:
            await response.content.readuntil(b"event: job-started")
            await admin.revoke()
            async with asyncio.timeout(BOUND_SECONDS):
                await response.content.read()
        async with http.get(f"{job}/events", headers=admin.headers) as again:
            assert again.status == 401


async def test_waiting_for_a_job_ends_with_its_key(http, service, provider, admin):
    async def wait(job):
        async with http.get(f"{job}?wait=60", headers=admin.headers) as response:
            return response.status, (await response.json())["code"]

    async with job_under_way(http, provider, await a_key(service, "admin")) as job:
        waiting = asyncio.create_task(wait(job))
        await admin.admitted()
        await admin.revoke()
        async with asyncio.timeout(BOUND_SECONDS):
            assert await waiting == (401, "unauthorized")


async def test_v1_job_stream_ends_with_its_key(http, service, provider, admin):
    held(provider)
    url = f"{service.url}/v1/agent/{service.project_id}/job"
    body = {"model": "scripted", "messages": [{"role": "user", "content": "Think about it"}]}
    async with http.post(url, json=body, headers=admin.headers) as response:
        await provider.next_asked()
        await admin.revoke()
        async with asyncio.timeout(BOUND_SECONDS):
            lines = (await response.text()).splitlines()
    await cancel(http, service, f"{url.replace('v1', 'v2')}/{response.headers['X-Session-Id']}")
    assert lines[-1] == f'3:"{SENTENCE}"'


async def test_body_under_way_ends_with_its_key(service, assistant):
    port = int(service.each[0].url.rpartition(":")[2])  # a proxy between would answer in its place
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /discovery/v2/assistant/{service.domain}/message HTTP/1.1\r\nHost: x\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 500\r\n"
    writer.write(f"{head}Authorization: Bearer {assistant.token}\r\n\r\n{{".encode())
    await assistant.admitted()
    await assistant.revoke()
    async with asyncio.timeout(BOUND_SECONDS):
        assert await reader.read() == b""
    writer.close()


async def test_stalled_reader_is_cut_with_its_key(http, provider, assistant):
    """Its reply is longer than a connection holds, so the service cannot say that it ends."""
    provider.will_reply(*["word " * 1_000] * 30, after=29, hold=asyncio.Event())
    async with asking(http, assistant):
        asked = await provider.next_asked()
        await assistant.revoke()
        async with asyncio.timeout(BOUND_SECONDS):
            await asked.disconnected.wait()
