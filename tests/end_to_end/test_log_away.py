"""A service over PostgreSQL while the server of its log and vault is away: what can be read is read."""

import asyncio
import re
from html import unescape
from http.cookies import SimpleCookie
from urllib.parse import urljoin, urlsplit

import pytest

from eventstore.postgres.connections import Address, Connections
from tests.dashboard.conftest import COOKIE, HTML, post_form
from tests.end_to_end.talk import ask, create_job, job_events, message_url, question, text_of
from tests.eventstore.cluster import started_cluster
from tests.service_process import service_in, write_docs

pytestmark = pytest.mark.slow

PAGES = 120
"""At most, of the dashboard."""
SHOWN = re.compile(r"/(dashboard|operator|pulls)(?!.*/(live|audit))")
"""Pages that end by themselves, but for those of the log: to read it is recorded, which is a write."""
CHANGING = {"/readyz", "/metrics"}
"""They say that PostgreSQL is away."""


@pytest.fixture
def server():
    cluster = started_cluster()
    yield cluster
    cluster.remove()


@pytest.fixture
def stores(server):
    connections = Connections.open(Address(server.address))
    for schema in ("log", "vault"):
        connections.fetch(f"CREATE SCHEMA {schema}")
    connections.close()
    return {
        f"DOCSMITH_{variable}": f"{server.address}&search_path={schema}"
        for variable, schema in (("STORE", "log"), ("VAULT", "vault"))
    }


async def operations(http, service, known):
    """Return the addresses that a caller may read, by the service's own description."""
    async with http.get(f"{service.url}/openapi.json") as response:
        paths = (await response.json())["paths"]
    found = []
    for path, operation in paths.items():
        names = re.findall(r"\{(\w+)\}", path)
        if "get" in operation and all(name in known for name in names) and not path.endswith(("/events", "/stream")):
            found.append(path.format(**known))
    return found


async def status_of(http, service, path, headers):
    async with http.get(f"{service.url}{path}", headers=headers) as response:
        return response.status, await response.read()


async def crawl(http, service, headers):
    """Return the pages of the dashboard that links lead to."""
    waiting, found = ["/dashboard", "/operator/health", "/account"], {}
    while waiting and len(found) < PAGES:
        if (path := waiting.pop(0)) in found:
            continue
        async with http.get(f"{service.url}{path}", headers=headers) as response:
            found[path], body, base = response.status, await response.text(), str(response.url)
        assert "<h1>Sign in" not in body, path
        for link in re.findall(r'(?:href|hx-get|src)="([^"#]+)"', body):
            wanted = urlsplit(urljoin(base, unescape(link)))
            if f"{wanted.scheme}://{wanted.netloc}" == service.url and SHOWN.match(wanted.path):
                waiting.append(wanted._replace(scheme="", netloc="", fragment="").geturl())
    return found


async def until_written(http, service):
    """Ask until a question is answered; return how often it was refused, each time with when to come back."""
    refused = 0
    while True:
        async with http.post(message_url(service), json=question("How?"), headers=service.assistant) as response:
            text = await response.text()
            if response.status == 200:
                return refused
            assert (response.status, response.headers.get("Retry-After")) == (503, "5"), text
            refused += 1


async def until_ready(http, service):
    while (await status_of(http, service, "/readyz", {}))[0] != 200:  # noqa: ASYNC110  (nothing tells when)
        await asyncio.sleep(0.02)


async def test_everything_is_read_while_postgresql_is_away(http, tmp_path, server, stores):
    with service_in(tmp_path) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.move, stores)
        added = await asyncio.to_thread(
            service.cli, "person", "add", "ann@example.com", "--name", "Ann", "--role", "owner",
            "--organization", service.organization_id, "--operator",
        )  # fmt: skip
        await asyncio.to_thread(service.start)
        link = urlsplit(added["link"]).fragment
        signed_in = await asyncio.to_thread(post_form, f"{service.url}/sign-in", {"link": link})
        cookie = SimpleCookie(signed_in.headers["Set-Cookie"])[COOKIE].value
        answer = await ask(http, service, question("How are retries configured?"))
        assert text_of(answer)
        job = await create_job(http, service, 'replace "tried" with "run" in retry.md')
        await job_events(http, service, job["id"])
        page = {**HTML, "Cookie": f"{COOKIE}={cookie}"}
        known = {
            "projectId": service.project_id, "project_id": service.project_id, "id": job["id"], "job_id": job["id"],
            "jobId": job["id"], "domain": service.domain, "organization_id": service.organization_id,
            "organizationId": service.organization_id,
        }  # fmt: skip
        api = await operations(http, service, known)
        public = [f"/sites/{service.domain}/llms.txt", f"/v2/sites/{service.domain}/search?query=retry"]

        async def read():
            found = {path: (await status_of(http, service, path, service.admin))[0] for path in api}
            found |= {path: (await status_of(http, service, path, service.assistant))[0] for path in public}
            return found, await crawl(http, service, page)

        metrics = (await status_of(http, service, "/metrics", {}))[1].decode()
        health = (await status_of(http, service, "/operator/health", page))[1].decode()
        assert float(re.search(r"^docsmith_log_bytes (\S+)$", metrics, re.MULTILINE)[1]) > 10_000
        assert re.search(r"in PostgreSQL, at <code>[^<@]+</code>, where it takes [\d.,]+ [kM]?B", health)
        assert "Copy of the log, read while it is away</th>" in health
        await read()  # with it, what is read is in the copy too
        before = await read()
        assert set(before[0].values()) <= {200, 400, 403}
        assert len(before[1]) > 20
        await asyncio.to_thread(server.kill)
        away = await read()
        different = {
            path: (before[which].get(path), status)
            for which in (0, 1)
            for path, status in away[which].items()
            if before[which].get(path) != status and path not in CHANGING
        }
        assert different == {}
        assert (await status_of(http, service, "/readyz/requests", {}))[0] == 200
        status, body = await status_of(http, service, "/readyz", {})
        assert (status, b"does not answer" in body) == (503, True)
        writing = asyncio.create_task(until_written(http, service))
        await asyncio.sleep(0)
        await asyncio.to_thread(server.start)
        await writing
        await until_ready(http, service)
        assert "a worker has ended" not in service.log()

        await asyncio.to_thread(server.kill)
        service.kill()
        await asyncio.to_thread(service.start)
        api = await operations(http, service, known)
        again = {path: (await status_of(http, service, path, service.admin))[0] for path in api if path not in CHANGING}
        refused = {path.rpartition("/")[2] for path, status in again.items() if status != before[0][path]}
        assert refused == {
            "changes",
            "request",
            "steps",
        }  # their texts are sealed under keys of the vault, which is away as well
        assert (await status_of(http, service, "/account", page))[0] == 503
        async with http.post(message_url(service), json=question("How?"), headers=service.assistant) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "5")
        await asyncio.to_thread(server.start)
        await until_ready(http, service)
        assert text_of(await ask(http, service, question("How are retries configured?")))
