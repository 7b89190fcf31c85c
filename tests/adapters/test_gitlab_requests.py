"""Our requests to GitLab beside those of python-gitlab, a client that many use: there is no GitLab to ask."""

import asyncio
import json
from urllib.parse import parse_qs, urlsplit

import gitlab
import pytest

from service.adapters.code_hosts.api_client import ApiClient
from service.adapters.code_hosts.gitlab import GitLabApi, repository_address
from service.adapters.code_hosts.protocol import Edited
from tests.contracts.code_host import NEW
from tests.fakes.gitlab import FakeGitLab


@pytest.fixture
async def fake():
    fake = FakeGitLab(lambda: {"main": "a", "docs/one": "b"}, token="right")
    async with fake.server:
        yield fake


@pytest.fixture
async def ours(fake):
    """Runs a flow of our API; its result, and what was received."""
    client = ApiClient({})
    api = GitLabApi(repository_address(f"{fake.url}/group/sub/guide", ""), "right")

    async def run(flow):
        fake.received.clear()
        return await client.run(flow(api)), [essence(*one) for one in fake.received]

    yield run
    await client.close()


@pytest.fixture
def theirs(fake):
    """What is received when somebody acts on the project with python-gitlab."""

    def act_on_project(act):
        with gitlab.Gitlab(fake.url, private_token="right") as client:
            act(client.projects.get("group/sub/guide", lazy=True), client)

    async def run(act):
        fake.received.clear()
        await asyncio.to_thread(act_on_project, act)
        return [essence(*one) for one in fake.received]

    return run


def essence(method, path, token, body):
    """All that counts: not how many are asked for at once."""
    url = urlsplit(path)
    query = {name: value for name, value in parse_qs(url.query).items() if name not in ("per_page", "page")}
    return method, url.path, query, token, json.loads(body) if body else {}


async def test_making_one(ours, theirs, fake):
    fields = {"source_branch": "docs/one", "target_branch": "main", "title": NEW.title, "description": NEW.body}
    _, sent = await ours(lambda api: api.create(NEW))
    fake.merge_requests.clear()
    assert sent == await theirs(lambda project, _: project.mergerequests.create(fields))


async def test_finding_one(ours, theirs):
    query = {"state": "opened", "source_branch": "docs/one", "target_branch": "main"}
    _, sent = await ours(lambda api: api.find("docs/one", "main", after_seconds=0))
    assert sent == await theirs(lambda project, _: project.mergerequests.list(**query, get_all=False))


async def test_reading_and_changing_one(ours, theirs, fake):
    def change(project, _):
        one = project.mergerequests.get(1)
        one.title, one.description = "New", "*New*"
        one.save()

    fake.add("docs/one", "main", "Old", "*Old*")
    known, read = await ours(lambda api: api.get(1))
    _, written = await ours(lambda api: api.edit(known, Edited("New", "*New*", None)))
    fake.merge_requests[0].update(title="Old", description="*Old*")
    assert [*read, *written] == await theirs(change)


async def test_labels_and_reviewers(ours, theirs, fake):
    def decorate(project, client):
        (ada,) = client.users.list(username="ada", get_all=False)
        project.mergerequests.update(1, {"add_labels": "docs,by bot", "reviewer_ids": [ada.id]})

    fake.add("docs/one", "main", "Old")
    known, _ = await ours(lambda api: api.get(1))
    _, sent = await ours(lambda api: api.decorate(known, ["docs", "by bot"], ["ada"]))
    assert sent == await theirs(decorate)


async def test_looking_at_the_project_and_the_token(ours, theirs):
    def look(_, client):
        client.projects.get("group/sub/guide")
        client.personal_access_tokens.get("self")

    _, sent = await ours(lambda api: api.check())
    assert sent == await theirs(look)


async def test_comments_and_answers(ours, theirs, fake):
    def talk(project, client):
        merge_request = project.mergerequests.get(1, lazy=True)
        merge_request.discussions.list(get_all=False)
        project.members_all.get(5)
        client.users.get(5)
        merge_request.discussions.get(thread, lazy=True).notes.create({"body": "Done."})
        merge_request.notes.create({"body": "Done."})

    fake.add("docs/one", "main", "Old")
    await fake.people.say_on_line(1, "A typo.", path="guide/a.md", line=3)
    listed, sent = await ours(lambda api: api.comments.read(1, None, ""))
    thread = listed.comments[0].source.thread
    for flow in (
        lambda api: api.comments.may_write("5"),
        lambda api: api.comments.post(1, thread, "Done."),
        lambda api: api.comments.post(1, "", "Done."),
    ):
        sent += (await ours(flow))[1]
    assert sent == await theirs(talk)
