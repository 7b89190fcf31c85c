"""What code hosts tell of pull requests, and many of them at once."""

import asyncio
from datetime import UTC, datetime

import pytest
from aiohttp import web

from eventstore import OutcomeUnknown, SQLiteEventStore, Views, execute
from service.domain.hooks.incoming import CommentReported, SetIncomingSecret
from service.domain.hooks.webhooks import make_secret
from service.domain.jobs.decider import (
    CompleteJob,
    Message,
    PullRequestClosed,
    RecordPullRequest,
    RequestJob,
    StartJob,
)
from service.domain.projects.decider import CreateProject
from service.domain.projects.settings import ProjectSettings
from service.domain.sites import RegisterSite
from service.projections import all_projections
from service.queries.audit import fields_of, personal_fields_of
from service.streams import INCOMING, JOBS, PROJECTS, SITES
from service.web.api import incoming
from service.web.http.app_keys import MENTION, STORE, VIEWS
from service.web.http.entrance import Entrance
from service.web.http.problems import BODY_SECONDS
from tests.fakes.hooks import signed

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SECRET = make_secret(bytes(range(32)))


@pytest.fixture
async def store(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        yield store


@pytest.fixture
async def client(store, tmp_path, aiohttp_client):
    views = await Views.open(tmp_path / "views.db", store, all_projections())
    following = asyncio.create_task(views.run())
    app = web.Application(middlewares=[Entrance().enter])
    app[STORE], app[VIEWS], app[BODY_SECONDS] = store, views, 1.0
    app[MENTION] = "docsmith"
    app.add_routes(incoming.routes)
    yield await aiohttp_client(app)
    following.cancel()
    await asyncio.wait([following])
    await views.close()


async def make_project(store, code_host, *, secret=SECRET):
    repository = "https://host.example/acme/guide.git"
    project = CreateProject(
        ProjectSettings("o", "Guide", repository, "main", "", "guide", code_host, git_token_env="GIT_TOKEN"), NOW
    )
    await execute(store, PROJECTS, "p", project)
    await execute(store, SITES, "guide", RegisterSite("p", "o", NOW))
    if secret is not None:
        await execute(store, INCOMING, "p", SetIncomingSecret(secret, NOW))


async def make_job(store, *, number=7):
    request = RequestJob(
        "o", "p", "repo", "main", "", "fake/model", (Message("user", "Look around"),), "Look around", "docs/x",
        branch_named=True, as_draft=False, api_version=2, now=NOW,
    )  # fmt: skip
    opened = RecordPullRequest(number, f"https://host.example/{number}", NOW)
    for command in (request, StartJob("here", NOW), opened, CompleteJob("Done.", NOW)):
        await execute(store, JOBS, "j", command)


async def test_outcome_that_is_unknown_has_a_code(aiohttp_client):
    async def record(_request):
        raise OutcomeUnknown("events.db: disk I/O error")

    app = web.Application(middlewares=[Entrance().enter])
    app.router.add_post("/", record)
    async with (await aiohttp_client(app)).post("/") as response:
        body = await response.json()
    assert (response.status, body["code"]) == (503, "outcome_unknown")
    assert "Idempotency-Key" in body["detail"]
    assert "events.db" not in body["detail"]


async def tell(client, headers, body):
    async with client.post("/hooks/p", data=body, headers=headers) as response:
        return response.status


async def closed(store):
    events = [JOBS.codec.decode(event) for event in await store.read_stream("job-j")]
    return [event for event in events if isinstance(event, PullRequestClosed)]


@pytest.mark.parametrize(
    ("code_host", "name", "outcome"),
    [
        ("github", "github-pull-request-merged", "merged"),
        ("gitea", "gitea-pull-request-closed", "closed"),
        ("gitlab", "gitlab-merge-request-merged", "merged"),
        ("gitlab", "gitlab-merge-request-closed", "closed"),
    ],
)
async def test_outcome_of_a_pull_request_is_recorded_once(store, client, code_host, name, outcome):
    await make_project(store, code_host)
    await make_job(store)
    await client.app[VIEWS].wait_for(await store.head())
    for _ in range(2):
        assert await tell(client, *signed(name, SECRET)) == 202
    (event,) = await closed(store)
    assert event.outcome == outcome
    assert (event.merge_commit is not None) == (outcome == "merged")


async def test_another_number_or_another_host_closes_nothing(store, client):
    await make_project(store, "gitea")
    await make_job(store)
    await client.app[VIEWS].wait_for(await store.head())
    assert await tell(client, *signed("github-pull-request-merged", SECRET)) == 204
    assert await tell(client, *signed("gitea-pull-request-closed", SECRET, number=8)) == 202
    assert await closed(store) == []


async def test_a_project_without_a_secret_takes_nothing(store, client):
    await make_project(store, "github", secret=None)
    await client.app[VIEWS].wait_for(await store.head())
    assert await tell(client, *signed("github-push", incoming.NO_SECRET)) == 404
    assert await tell(client, *signed("github-ping", SECRET)) == 404


async def test_a_body_that_does_not_arrive_is_not_waited_for(store, client):
    await make_project(store, "github")

    async def body():
        yield b"{"
        await asyncio.Event().wait()

    async with asyncio.timeout(60), client.post("/hooks/p", data=body()) as response:
        assert (response.status, (await response.json())["code"]) == (408, "body_too_slow")


async def test_many_pushes_are_all_recorded_and_repeats_only_once(store, client):
    await make_project(store, "github")

    async def push(delivery):
        headers, body = signed("github-push", SECRET)
        headers["X-GitHub-Delivery"] = delivery
        return await tell(client, headers, body)

    statuses = await asyncio.gather(*(push(f"{number % 10}") for number in range(30)))
    assert statuses == [202] * 30
    assert len(await store.read_stream("incoming-p")) == 1 + 10
    types = [event.type for event in await store.read_stream("site-guide")]
    assert types.count("index-requested") == 10


async def test_a_new_secret_ends_the_old_one(store, client):
    await make_project(store, "github")
    newer = make_secret(bytes(32))
    assert await tell(client, *signed("github-ping", SECRET)) == 200
    await execute(store, INCOMING, "p", SetIncomingSecret(newer, NOW))
    assert await tell(client, *signed("github-ping", SECRET)) == 404
    assert await tell(client, *signed("github-ping", newer)) == 200


async def test_neither_the_secret_nor_a_webhooks_is_shown_to_auditors(store):
    await execute(store, INCOMING, "p", SetIncomingSecret(SECRET, NOW))
    (event,) = await store.read_stream("incoming-p")
    assert SECRET.encode() in event.personal
    assert personal_fields_of(event) == {"secret": "[hidden]"}
    assert fields_of(event, personal=True)["secret"] == "[hidden]"


async def reports(store):
    events = [INCOMING.codec.decode(event) for event in await store.read_stream("incoming-p")]
    return [event for event in events if isinstance(event, CommentReported)]


@pytest.mark.parametrize(
    ("code_host", "name"),
    [
        ("github", "github-issue-comment"),
        ("github", "github-review-comment"),
        ("gitea", "gitea-issue-comment"),
        ("gitea", "gitea-review"),
        ("gitlab", "gitlab-merge-request-note"),
    ],
)
async def test_comment_that_mentions_us_is_recorded_once(store, client, code_host, name):
    await make_project(store, code_host)
    await client.app[VIEWS].wait_for(await store.head())
    for _ in range(2):
        assert await tell(client, *signed(name, SECRET)) == 202
    (event,) = await reports(store)
    assert (event.host, event.number) == (code_host, 7)


async def test_comment_that_does_not_concern_us_is_not_recorded(store, client):
    await make_project(store, "github")
    await client.app[VIEWS].wait_for(await store.head())
    assert await tell(client, *signed("github-issue-comment", SECRET, comment={"body": "Well done"})) == 204
    assert await tell(client, *signed("github-review", SECRET)) == 204
    assert await tell(client, *signed("gitea-issue-comment", SECRET)) == 204
    assert await reports(store) == []


@pytest.mark.parametrize("name", ["github-issue-comment", "gitea-issue-comment", "gitlab-merge-request-note"])
async def test_comment_with_a_forged_signature_is_refused(store, client, name):
    await make_project(store, name.partition("-")[0])
    await client.app[VIEWS].wait_for(await store.head())
    assert await tell(client, *signed(name, make_secret(bytes(32)))) == 404
    assert await reports(store) == []
