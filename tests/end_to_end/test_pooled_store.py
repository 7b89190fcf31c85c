"""Two services that reach PostgreSQL by way of PgBouncer in transaction mode."""

import asyncio
from contextlib import closing

import pytest

from eventstore.postgres.connections import Address, Connections
from tests.end_to_end.talk import ask, create_job, get_job, job_events, question, text_of
from tests.eventstore.cluster import started_cluster
from tests.eventstore.pooler import started_pooler
from tests.service_process import Service, service_in, write_docs


@pytest.fixture
def pooled():
    """Return the variables with the addresses of a log and a vault."""
    cluster = started_cluster()
    with closing(Connections.open(Address(cluster.address))) as connections:
        connections.fetch("CREATE DATABASE log")
        connections.fetch("CREATE DATABASE vault")
    pooler = started_pooler(cluster)
    yield {"DOCSMITH_STORE": pooler.address("log"), "DOCSMITH_VAULT": pooler.address("vault")}
    pooler.close()
    cluster.remove()


@pytest.mark.slow
async def test_services_work_behind_a_pooler(http, tmp_path, pooled):
    with service_in(tmp_path) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.move, pooled)
        await asyncio.to_thread(service.start)
        other = Service(tmp_path / "other", service.environment | pooled, log_file=tmp_path / "other.log")
        try:
            await asyncio.to_thread(other.start)
            other.project_id, other.admin_key = service.project_id, service.admin_key
            assert text_of(await ask(http, service, question("How are retries configured?")))
            job = await create_job(http, service, 'replace "tried" with "run" in retry.md')
            await job_events(http, service, job["id"])
            assert (await get_job(http, other, job["id"]))["outcome"] == "pull_request"
            moving = await asyncio.to_thread(
                service.run, "store", "copy", "env:DOCSMITH_STORE", str(service.data), "--move"
            )
            assert moving.returncode == 1
            assert (await asyncio.to_thread(service.cli, "audit", "verify"))["sound"]
        finally:
            other.kill()
