"""A whole job over real sockets, whose provider, git server or code host fails at each single request in turn, or is
away for a while: always one commit on its branch, and one pull request.

The slow tests let each request fail with one fault, in rotation, and each server be away for one time. With
``EVERY_JOB_FAULT=1`` each request fails with every fault, and each server is away for every time: five times as long.
"""

import asyncio
import json
import os
import shutil
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest

from eventstore import execute
from service.adapters.code_hosts.api_client import ApiClient
from service.adapters.code_hosts.remote import remote_code_hosts
from service.adapters.code_hosts.tokens import Tokens
from service.adapters.git.dulwich_docs import DulwichDocs
from service.adapters.git.folder import import_folder
from service.adapters.git.repositories import create
from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.agent.loop.budgets import Budgets
from service.domain.jobs.decider import Message, RequestJob
from service.domain.projects.decider import CreateProject
from service.domain.projects.settings import ProjectSettings
from service.streams import JOBS, PROJECTS
from service.workers.jobs.runner import JobPorts, JobRunner, JobSettings
from tests.fakes.clock import START, MovedClock
from tests.fakes.faulty import FAULTS, FaultyProxy
from tests.fakes.git_server import GIT, GitServer, git
from tests.fakes.gitea import FakeGitea
from tests.fakes.gitlab import FakeGitLab
from tests.fakes.instances import FakeInstances
from tests.fakes.provider import Call, Reply, ScriptedProvider
from tests.fakes.search_index import FakeSearchIndex
from tests.workers.test_job_waits import events_until, tags, waits

pytestmark = pytest.mark.skipif(GIT is None, reason="asks git itself; install git to run it")

TOKEN = "s3cret-t0ken"
PATHS = {"gitea": "octo/guide.git", "gitlab": "group/sub/guide.git"}
EVERY = os.environ.get("EVERY_JOB_FAULT", "0") != "0"
MINUTES = {"git": 2, "model": 10, "code_host": 60}
ENV = {"GUIDE_TOKEN": TOKEN, "MODEL_KEY": "sk-scripted"}


def scripted(asked):
    """Two replies, told apart by how many came before."""
    steps = [
        (Call("write", (json.dumps({"path": "new.md", "text": "# New\n\nIt is new.\n"}),), id="c1"),),
        (Call("finish", (json.dumps({"title": "Add a page", "summary": "Added."}),), id="c2"),),
    ]
    before = sum(message["role"] == "assistant" for message in asked.body["messages"])
    return Reply(("One moment.",), steps[before])


class World:
    """A runner over the real adapters, and a proxy before each of the three servers."""

    def __init__(self, folder, store, kind):
        self.folder, self.store, self.kind = folder, store, kind
        self.clock = MovedClock()
        served = folder / "served" / PATHS[kind]
        (folder / "docs").mkdir()
        (folder / "docs" / "index.md").write_text("# Hi\n")
        create(served, lambda made: import_folder(made, folder / "docs", "main"), branch="main")
        self.repository = served
        self.git_server = GitServer(folder / "served", password=TOKEN)
        fake = FakeGitea if kind == "gitea" else FakeGitLab
        self.host = fake(self.branches, token=TOKEN)
        self.provider = ScriptedProvider(scripted)
        self.git = FaultyProxy(lambda: self.git_server.url("").rstrip("/"))
        self.code_host = FaultyProxy(lambda: self.host.url)
        self.model = FaultyProxy(lambda: self.provider.url)
        self.jobs = 0

    def branches(self):
        listed = git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads", cwd=self.repository)
        return dict(line.split() for line in listed.splitlines())

    def pull_requests(self):
        return self.host.pulls if self.kind == "gitea" else self.host.merge_requests

    @asynccontextmanager
    async def running(self, views):
        async with AsyncExitStack() as stack:
            for server in (self.git_server.server, self.host.server, self.provider):
                await stack.enter_async_context(server)
            for proxy in (self.git, self.code_host, self.model):
                await stack.enter_async_context(proxy)
                self.clock.on_sleep.append(proxy.reopen)
            client = ApiClient(ENV, sleep=self.clock.sleep)
            stack.push_async_callback(client.close)
            settings = ModelSettings(
                alias="m", model="openai/gpt-5.2", api_base=f"{self.model.url}/v1", api_key_env="MODEL_KEY"
            )
            self.language_model = LitellmModel(settings, env=ENV, sleep=self.clock.sleep, clock=self.clock.seconds)
            stack.push_async_callback(self.language_model.close)
            hosts = remote_code_hosts(client, Tokens(ENV, client))
            docs = DulwichDocs(self.folder / "data", env=ENV)
            ports = JobPorts(self, docs, FakeSearchIndex(), hosts, clock=self.clock)
            runner = JobRunner(
                self.store, views, ports, JobSettings(1, 1, Budgets(minutes=10), "D <d@example.com>"),
                FakeInstances(),
            )  # fmt: skip
            await self._make_project()
            task = asyncio.create_task(runner.run())
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait([task])

    def for_agent(self, _alias):
        return self.language_model

    async def _make_project(self):
        api = f"{self.code_host.url}/api/{'v1' if self.kind == 'gitea' else 'v4'}"
        project = ProjectSettings(
            "o", "Guide", f"{self.git.url}/{PATHS[self.kind]}", "main", "", "guide", self.kind, api_url=api,
            git_token_env="GUIDE_TOKEN", labels=("docs",), reviewers=("ada",),
        )  # fmt: skip
        await execute(self.store, PROJECTS, "p", CreateProject(project, START))

    async def job(self):
        """The events of a new job, whose clone is a new one, to its end."""
        self.jobs += 1
        job_id = f"j{self.jobs}"
        shutil.rmtree(self.folder / "data" / "repos", ignore_errors=True)
        command = RequestJob(
            "o", "p", f"{self.git.url}/{PATHS[self.kind]}", "main", "", "fake/model", (Message("user", "Add a page"),),
            "Add a page", f"docs/{job_id}", branch_named=False, as_draft=False, api_version=2, now=START,
        )  # fmt: skip
        await execute(self.store, JOBS, job_id, command)
        events = await events_until(self.store, "job-completed", job_id)
        await self.git.reopen()
        await self.code_host.reopen()
        await self.model.reopen()
        self.check(job_id, events)
        return events

    def check(self, job_id, events):
        found = tags(events)
        assert found[-1] == "job-completed", events[-1]
        once = ("committed", "branch-pushed", "pull-request-opened", "job-completed")
        assert {tag: found.count(tag) for tag in once} == dict.fromkeys(once, 1)
        (commit,) = [event.commit for event in events if event.__struct_config__.tag == "committed"]
        assert self.branches()[f"docs/{job_id}"] == commit
        assert len(self.branches()) == 1 + self.jobs
        assert len(self.pull_requests()) == self.jobs


@pytest.fixture
async def world(tmp_path, store, followed, request):
    world = World(tmp_path, store, getattr(request, "param", "gitea"))
    async with world.running(followed):
        yield world


async def requests_of(world, part):
    proxy = getattr(world, part)
    proxy.requests.clear()
    await world.job()
    assert len(proxy.requests) >= 2
    return list(proxy.requests)


async def fail_at(world, part, fault, at):
    proxy = getattr(world, part)
    await proxy.fail(fault, at)
    await world.job()
    assert len(proxy.requests) >= at


def in_rotation(requests):
    """Return pairs of a request and a fault, in which each of both is there at least once."""
    return [(number % requests, FAULTS[number % len(FAULTS)]) for number in range(max(requests, len(FAULTS)))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "fault", "only"),
    [
        ("git", "dropped", "POST /octo/guide.git/git-receive-pack"),
        ("git", "500", "POST /octo/guide.git/git-receive-pack"),
        ("git", "garbage", "GET /octo/guide.git/info/refs"),
        ("code_host", "garbage", "POST /api/v1/repos/octo/guide/pulls"),
        ("code_host", "dropped", "POST /api/v1/repos/octo/guide/pulls"),
        ("model", "refused", "POST"),
    ],
)
async def test_job_outlasts_a_fault_at_a_telling_request(world, part, fault, only):
    asked = await requests_of(world, part)
    await fail_at(world, part, fault, asked.index(next(one for one in asked if only in one)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "part"),
    [("gitea", "git"), ("gitea", "model"), ("gitea", "code_host"), ("gitlab", "code_host")],
    indirect=["world"],
)
async def test_job_outlasts_a_fault_at_each_request(world, part):
    requests = len(await requests_of(world, part))
    every = [(at, fault) for fault in FAULTS for at in range(requests)]
    for at, fault in every if EVERY else in_rotation(requests):
        await fail_at(world, part, fault, at)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "minutes"),
    [(part, minutes) for part in MINUTES for minutes in MINUTES.values() if EVERY or minutes == MINUTES[part]],
)
async def test_job_outlasts_servers_that_are_away(world, part, minutes):
    until = world.clock.now() + timedelta(minutes=minutes)
    getattr(world, part).be_away(lambda: world.clock.now() < until)
    events = await world.job()
    waited = waits(events)
    assert {event.dependency for event in waited} == {part}
    assert world.clock.now() >= until
