"""A service whose store is a standby of PostgreSQL that no one has promoted yet: it can be read, and not written."""

import asyncio
from urllib.parse import quote

import pytest

from eventstore.postgres.connections import Address, Connections
from tests.end_to_end.talk import ask, message_url, question, text_of
from tests.eventstore.cluster import new_cluster, started_cluster
from tests.service_process import service_in, write_docs

pytestmark = pytest.mark.slow


@pytest.fixture
def servers():
    """A server with two schemas, and its standby, which is made once ``follow`` is called."""
    first, second = started_cluster(), new_cluster()
    connections = Connections.open(Address(first.address))
    for schema in ("log", "vault"):
        connections.fetch(f"CREATE SCHEMA {schema}")
    connections.close()
    yield first, second
    for one in (first, second):
        one.remove()


def stores(*servers):
    """Return the variables for an address that names both, whichever of them answers."""
    hosts = quote(",".join(str(server.folder) for server in servers), safe="")
    return {
        f"DOCSMITH_{variable}": f"postgresql://docsmith@/postgres?host={hosts}&search_path={schema}"
        for variable, schema in (("STORE", "log"), ("VAULT", "vault"))
    }


async def status_of(http, service, path, headers=None):
    async with http.get(f"{service.url}{path}", headers=headers or {}) as response:
        return response.status, await response.text()


async def until_ready(http, service):
    """Wait until each instance answers that it is."""
    async with asyncio.timeout(300):
        for member in service.each:
            while (await status_of(http, member, "/readyz"))[0] != 200:  # noqa: ASYNC110  (nothing tells when)
                await asyncio.sleep(0.02)


async def test_standby_is_served_as_a_store_that_is_away(http, tmp_path, servers):
    first, standby = servers
    with service_in(tmp_path) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.move, stores(first, standby))
        await asyncio.to_thread(service.start)
        assert text_of(await ask(http, service, question("How are retries configured?")))
        await asyncio.to_thread(standby.follow, first)
        await asyncio.to_thread(service.stop)
        await asyncio.to_thread(standby.start)
        await asyncio.to_thread(first.kill)
        await asyncio.to_thread(service.start)
        assert (await status_of(http, service, "/readyz/requests"))[0] == 200
        status, body = await status_of(http, service, "/readyz")
        assert (status, "standby" in body) == (503, True), body
        domain = f"/v2/sites/{service.domain}"
        assert (await status_of(http, service, domain, service.admin))[0] == 200
        async with http.post(message_url(service), json=question("How?"), headers=service.assistant) as response:
            assert (response.status, response.headers.get("Retry-After")) == (503, "5"), await response.text()
        refused = await asyncio.to_thread(service.run, "organization", "create", "--name", "Late")
        assert (refused.returncode, "it is a standby of PostgreSQL" in refused.stderr) == (1, True), refused.stderr
        await asyncio.to_thread(standby.promote)
        await until_ready(http, service)
        assert text_of(await ask(http, service, question("How are retries configured?")))
        assert "a worker has ended" not in service.log()
    await asyncio.to_thread(first.start)


def head_of(server):
    connections = Connections.open(Address(server.address))
    try:
        return connections.fetch("SELECT position FROM log.head")
    finally:
        connections.close()


async def test_service_that_runs_reads_from_a_standby_until_it_is_promoted(http, tmp_path, servers):
    first, standby = servers
    with service_in(tmp_path) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.move, stores(first, standby))
        await asyncio.to_thread(service.start)
        assert text_of(await ask(http, service, question("How are retries configured?")))
        await asyncio.to_thread(standby.follow, first)
        await asyncio.to_thread(standby.start)
        async with asyncio.timeout(300):
            while await asyncio.to_thread(head_of, standby) != await asyncio.to_thread(head_of, first):  # noqa: ASYNC110  (nothing tells when)
                await asyncio.sleep(0.02)
        await asyncio.to_thread(first.kill)
        assert (await status_of(http, service, f"/v2/sites/{service.domain}", service.admin))[0] == 200
        async with http.post(message_url(service), json=question("How?"), headers=service.assistant) as response:
            assert (response.status, response.headers.get("Retry-After")) == (503, "5"), await response.text()
        async with asyncio.timeout(300):
            while "standby" not in (await status_of(http, service, "/readyz"))[1]:  # noqa: ASYNC110  (nothing tells when)
                await asyncio.sleep(0.02)
        await asyncio.to_thread(standby.promote)
        await until_ready(http, service)
        assert text_of(await ask(http, service, question("How are retries configured?")))
        assert "a worker has ended" not in service.log()
    await asyncio.to_thread(first.start)
