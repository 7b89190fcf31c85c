"""The GitHub adapter against an emulator of its API, every request checked by GitHub's own description of it."""

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from msgspec.structs import replace
from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError
from werkzeug.datastructures import Headers, ImmutableMultiDict

from service.adapters.code_hosts.api_client import ApiClient
from service.adapters.code_hosts.protocol import ApiAnswer, ApiRequest
from service.adapters.code_hosts.remote import RemoteCodeHost, github
from service.adapters.code_hosts.tokens import Tokens
from service.domain.errors import Forbidden, NotFound
from service.ports.docs_source import Source
from tests.contracts.code_host import NEW, CodeHostContract
from tests.contracts.review_host import ReviewHostContract
from tests.fakes.github import FakeGitHub
from tests.github.github_emulator import DESCRIPTION, emulated, require_emulator

pytestmark = pytest.mark.node

APP = {
    "app_id": 7,
    "slug": "docs-app",
    "name": "Docs",
    "permissions": {"contents": "write", "pull_requests": "write", "issues": "write"},
    "installations": [{"installation_id": 100, "account": "octo", "repository_selection": "all"}],
}
SEED = {
    "users": [{"login": "octo"}, {"login": "ada"}],
    "repos": [{"owner": "octo", "name": "guide", "auto_init": True}],
    "apps": [APP],
}


class Sent:
    """A request of ours, as openapi-core looks at one."""

    def __init__(self, request: ApiRequest, base: str) -> None:
        url = urlsplit(request.url)
        self.host_url = "https://api.github.com"
        self.path = url.path.removeprefix(urlsplit(base).path)
        self.method = request.method.lower()
        self.content_type = "application/json"
        self.body = request.body or None
        query = ImmutableMultiDict([(name, one) for name, all_ in parse_qs(url.query).items() for one in all_])
        self.parameters = RequestParameters(query=query, header=Headers(list(request.headers.items())))


class CheckedClient(ApiClient):
    """Sends nothing that GitHub's description does not know."""

    description: OpenAPI
    base: str

    def __init__(self, description: OpenAPI, base: str) -> None:
        super().__init__({})
        self.description, self.base = description, base
        self.sent: list[ApiRequest] = []

    async def send(self, request: ApiRequest, *, guarded: bool = False) -> ApiAnswer:
        self.sent.append(request)
        if request.url.endswith("/graphql"):  # not in the description of the REST API, nor in the emulator
            return await super().send(request, guarded=guarded)
        self.description.validate_request(Sent(request, self.base))
        return await super().send(request, guarded=guarded)


@pytest.fixture(scope="session")
def description():
    require_emulator()
    return OpenAPI.from_dict(json.loads(DESCRIPTION.read_bytes()), config=Config(spec_validator_cls=None))


class Person:
    """Somebody at work on the host, not through our code."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._repository, self._session = f"{url}/repos/octo/guide", session

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"authorization": "token somebodys"}
        async with self._session.request(method, self._repository + path, json=body, headers=headers) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json() if answer.status != 204 else None

    async def commit_on(self, branch: str) -> None:
        main = (await self.call("GET", "/git/ref/heads/main"))["object"]["sha"]
        await self.call("POST", "/git/refs", {"ref": f"refs/heads/{branch}", "sha": main})
        text = base64.b64encode(branch.encode()).decode()
        await self.call("PUT", "/contents/page.md", {"message": "Write", "content": text, "branch": branch})


@pytest.fixture
async def emulator(description):
    async with emulated(SEED) as running:
        yield running


@pytest.fixture
async def person(emulator):
    async with aiohttp.ClientSession() as session:
        person = Person(emulator.url, session)
        for branch in ("docs/one", "docs/two"):
            await person.commit_on(branch)
        yield person


@pytest.fixture
async def client(description, emulator):
    client = CheckedClient(description, emulator.url)
    yield client
    await client.close()


def code_host_of(client, env):
    return RemoteCodeHost(github, client, Tokens(env, client))


class GitHub(CodeHostContract):
    @pytest.fixture
    def close(self, person):
        async def close(pull_request):
            await person.call("PATCH", f"/pulls/{pull_request.number}", {"state": "closed"})

        return close

    @pytest.fixture
    def merge(self, person):
        async def merge(pull_request):
            await person.call("PUT", f"/pulls/{pull_request.number}/merge", {})

        return merge

    async def test_draft_is_made_ready_and_a_draft_again(self, code_host, source):
        """The emulator has no GraphQL: the draft stays one. What GitHub is sent is in ``test_code_host_flows``."""
        opened = await code_host.open_pull_request(source, replace(NEW, draft=True))
        wanted = {"title": "Retries", "body": "There.", "draft": False}
        changed = await code_host.update_pull_request(source, opened.number, **wanted)
        assert changed == replace(opened, title="Retries", body="There.")


class TestWithAToken(GitHub):
    @pytest.fixture
    def code_host(self, client):
        return code_host_of(client, {"TOKEN": "ghp_ours"})

    @pytest.fixture
    def source(self, emulator, person):
        repository = "https://git.example/octo/guide.git"
        return Source("p1", repository, "main", "", "github", emulator.url, git_token_env="TOKEN")

    async def test_labels_and_reviewers_are_asked_for(self, code_host, source, person, client):
        source = replace(source, labels=("docs", "by bot"), reviewers=("ada",))
        for _ in range(2):  # the second one finds the first one's, as after a crash
            opened = await code_host.open_pull_request(source, NEW)
        asked = [json.loads(request.body) for request in client.sent if request.url.endswith("/issues/1/labels")]
        assert asked == 2 * [{"labels": ["docs", "by bot"]}]  # the emulator has no labels of pull requests
        seen = await person.call("GET", f"/pulls/{opened.number}")
        assert [reviewer["login"] for reviewer in seen["requested_reviewers"]] == ["ada"]

    async def test_a_reviewer_that_the_host_refuses_stops_nothing(self, code_host, source):
        opened = await code_host.open_pull_request(replace(source, reviewers=("nobody", "octo/no-team")), NEW)
        assert opened.state == "open"

    async def test_a_repository_that_is_not_there(self, code_host, source):
        source = replace(source, repository="https://git.example/octo/other.git")
        for call in (code_host.check_repository(source), code_host.open_pull_request(source, NEW)):
            with pytest.raises(NotFound) as missing:
                await call
            assert missing.value.code == "no_such_repository"


class TestWithAnApp(GitHub):
    @pytest.fixture
    def code_host(self, client, emulator):
        return code_host_of(client, {"KEY": emulator.keys["7"].replace("\n", "\\n")})

    @pytest.fixture
    def source(self, emulator, person):
        repository = "https://git.example/octo/guide.git"
        return Source("p1", repository, "main", "", "github", emulator.url, github_app_id="7", github_app_key_env="KEY")

    async def test_token_is_requested_once_and_for_this_repository_alone(self, code_host, source, client):
        await code_host.check_repository(source)
        await code_host.open_pull_request(source, NEW)
        asked = [request for request in client.sent if request.url.endswith("/access_tokens")]
        assert [json.loads(request.body) for request in asked] == [
            {"repositories": ["guide"], "permissions": {"contents": "write", "pull_requests": "write"}}
        ]

    async def test_an_app_with_another_key_is_refused(self, client, emulator, source):
        async with emulated({**SEED, "apps": [APP]}) as other:
            code_host = code_host_of(client, {"KEY": other.keys["7"]})
        with pytest.raises(Forbidden, match="refuses the private key of the App 7") as refused:
            await code_host.check_repository(source)
        assert refused.value.code == "token_refused"

    async def test_an_app_that_is_not_installed_there(self, code_host, source):
        with pytest.raises(NotFound, match="not installed on"):
            await code_host.check_repository(replace(source, repository="https://git.example/ada/guide.git"))


class TestComments(ReviewHostContract):
    """On our own fake: the emulator has no comments. Their requests are checked like the others."""

    @pytest.fixture
    async def fake(self):
        fake = FakeGitHub(token="ghp_ours")
        async with fake.server:
            yield fake

    @pytest.fixture
    async def code_host(self, description, fake):
        client = CheckedClient(description, fake.url)
        yield code_host_of(client, {"TOKEN": "ghp_ours"})
        await client.close()

    @pytest.fixture
    def source(self, fake):
        return Source("p1", "https://git.example/octo/guide.git", "main", "", "github", fake.url, "TOKEN")

    @pytest.fixture
    def people(self, fake):
        return fake.people


def test_the_description_finds_what_github_would_refuse(description):
    base, url = "https://api.github.com", "https://api.github.com/repos/octo/guide/pulls"

    def validate(method: str, url: str, body: dict[str, Any] | None = None) -> None:
        encoded = b"" if body is None else json.dumps(body).encode()
        description.validate_request(Sent(ApiRequest(method, url, {}, encoded), base))

    validate("POST", url, {"title": "x", "head": "a", "base": "b"})
    for wrong in ({"title": "x", "head": "a"}, {"title": 1, "head": "a", "base": "b"}):
        with pytest.raises(OpenAPIError):
            validate("POST", url, wrong)
    with pytest.raises(OpenAPIError):
        validate("POST", url, {"title": "x", "head": "a", "base": "b", "labels": ["docs"]})
    with pytest.raises(OpenAPIError):
        validate("GET", f"{base}/repos/octo/guide/merge_requests")
