"""A restored copy does nothing in place of the original until somebody says so, and can be tried meanwhile."""

import asyncio
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import pytest

from eventstore import SQLiteEventStore, execute
from service.domain.jobs.decider import Message, RequestJob
from service.domain.projects.decider import CreateProject
from service.domain.projects.settings import ProjectSettings
from service.domain.sites import RegisterSite, RequestIndex
from service.streams import JOBS, PROJECTS, SITES
from tests.end_to_end.conftest import http  # noqa: F401
from tests.end_to_end.talk import ask, create_job, get_job, job_events, question, recorded, text_of
from tests.service_process import Service, service_in, write_docs

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Outside:
    """Another machine, which notes who comes and refuses them."""

    def __init__(self):
        self.asked = []
        self._news = asyncio.Event()
        self.url = ""
        self.position = 0
        """Of the copy."""
        self.connections = []

    async def take(self, reader, writer):
        self.connections.append(writer)
        self.asked.append((await reader.readline()).decode().strip())
        self._news.set()
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def until(self, *words):
        async with asyncio.timeout(120):
            while not all(any(word in line for line in self.asked) for word in words):
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def outside():
    here = Outside()
    server = await asyncio.start_server(here.take, "127.0.0.1", 0)
    here.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield here
    finally:
        server.close()
        for _ in range(3):  # a connection that is being accepted gets its transport in the next turns of the loop
            await asyncio.sleep(0)
        for connection in here.connections:  # also those on which nothing was asked
            connection.close()
            with suppress(ConnectionError):
                await connection.wait_closed()


def new_job(service, project_id, repository):
    return RequestJob(
        service.organization_id, project_id, repository, "main", "", "builtin/editor",
        (Message("user", 'Append "Kites rise." to index.md'),), "Kites rise", "docs/x", branch_named=False,
        as_draft=False, api_version=2, now=NOW,
    )  # fmt: skip


async def add_work(service, url):
    """What a service would begin with at its start: jobs, deliveries, sites on other machines to be indexed."""
    async with await SQLiteEventStore.open(service.data / "events.db", vault_path=service.data / "keys.db") as store:
        for name, kind, address in (("hub", "gitea", f"{url}/acme/hub.git"), ("live", "website", f"{url}/live/")):
            token = "HUB_TOKEN" if kind == "gitea" else ""
            project = ProjectSettings(
                service.organization_id, name, address, "main", "", name, kind, git_token_env=token
            )
            await execute(store, PROJECTS, name, CreateProject(project, NOW))
            await execute(store, SITES, name, RegisterSite(name, service.organization_id, NOW))
            await execute(store, SITES, name, RequestIndex("a push", NOW))
        await execute(store, JOBS, "far", new_job(service, "hub", f"{url}/acme/hub.git"))
        await execute(store, JOBS, "near", new_job(service, service.project_id, str(service.repository)))


@pytest.fixture
async def copies(tmp_path):
    """A restored copy of a service with work that waits, and the machine that the work would reach."""
    async with outside() as there:
        environment = {
            "DOCSMITH_NETWORK__ALLOW_PRIVATE": "true", "DOCSMITH_INDEX__POLL_MINUTES": "0.001", "HUB_TOKEN": "secret",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"{there.url}/traces", "OPENAI_API_KEY": "sk-nothing",
            "OPENAI_API_BASE": f"{there.url}/model", "DOCSMITH_AUDIT__CHECKPOINT_MINUTES": "0.001",
        }  # fmt: skip
        with service_in(tmp_path / "one", environment) as first:
            await asyncio.to_thread(first.set_up, write_docs(tmp_path / "docs"))
            await asyncio.to_thread(first.cli, "webhook", "create", "--url", f"{there.url}/hook")
            await add_work(first, there.url)
            file, vault = str(tmp_path / "backup.tar"), str(tmp_path / "vault.tar")
            await asyncio.to_thread(first.cli, "backup", file, "--vault", vault)
        copy = Service(
            tmp_path / "two" / "data", environment, project_id=first.project_id, domain=first.domain,
            admin_key=first.admin_key, assistant_key=first.assistant_key,
        )  # fmt: skip
        there.position = (await asyncio.to_thread(copy.cli, "restore", file, "--vault", vault))["position"]
        there.asked.clear()
        yield copy, there
        copy.kill()


async def test_drill_works_and_nothing_leaves_the_machine(copies, http):  # noqa: F811
    copy, there = copies
    await asyncio.to_thread(copy.start, "--drill")
    assert "drill" in (await asyncio.to_thread(copy.cli, "health"))["degraded"]
    await recorded(copy, f"site-{copy.domain}", until="site-indexed", after=there.position)
    assert "20 MB" in text_of(await ask(http, copy, question("How much disk does the installer need?")))
    job = await create_job(http, copy, 'Append "Kites sink." to index.md')
    await job_events(http, copy, job["id"])
    assert (await get_job(http, copy, job["id"]))["status"] == "completed"
    for site in ("hub", "live"):
        assert (await recorded(copy, f"site-{site}", until="index-failed"))[-1] == "index-failed"
    assert (await get_job(http, copy, "near"))["status"] == "active"
    copy.cli("audit", "verify")
    assert copy.stop() == 0
    assert "This is a drill" in copy.log()
    assert "Its sites can be asked." in copy.log()
    assert there.asked == []
    assert not (copy.data / "checkpoints.jsonl").exists()
    shown = await asyncio.to_thread(copy.cli, "audit", "show", "--stream", "job-far")
    assert [event["type"] for event in shown["events"]] == ["job-requested"]

    await asyncio.to_thread(copy.cli, "take-over", "--yes")
    await asyncio.to_thread(copy.start)
    await there.until("/hook", "/acme/hub", "/live/")  # what the drill had kept back is real
    await recorded(copy, "job-near", until="job-started")


async def test_a_copy_is_not_served_until_it_is_taken_over(copies):
    copy, _there = copies
    done = await asyncio.to_thread(copy.run, "serve", "--port", "0")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"docsmith take-over --data {copy.data} --yes" in done.stderr
    asked = await asyncio.to_thread(copy.cli, "take-over", status=2)
    assert asked["takenOver"] is False
    assert (await asyncio.to_thread(copy.run, "serve", "--port", "0")).returncode == 1
    taken = await asyncio.to_thread(copy.cli, "take-over", "--yes")
    assert (taken["takenOver"], taken["position"]) == (True, asked["position"])
    again = await asyncio.to_thread(copy.cli, "take-over", "--yes", status=1)
    assert again["code"] == "not_a_copy"
    shown = await asyncio.to_thread(copy.cli, "audit", "show", "--type", "copy-taken-over")
    assert [(event["data"]["position"], event["data"]["head"]) for event in shown["events"]] == [
        (taken["position"], taken["head"])
    ]
    assert (await asyncio.to_thread(copy.run, "serve", "--drill", "--port", "0")).returncode == 1


async def test_a_take_over_that_was_killed_is_recorded_once(copies):
    copy, _there = copies
    mark = copy.data / "restored.json"
    content = mark.read_bytes()
    await asyncio.to_thread(copy.cli, "take-over", "--yes")
    mark.write_bytes(content)  # as if it had died before this was removed
    await asyncio.to_thread(copy.cli, "take-over", "--yes")
    assert not mark.exists()
    shown = await asyncio.to_thread(copy.cli, "audit", "show", "--type", "copy-taken-over")
    assert len(shown["events"]) == 1
