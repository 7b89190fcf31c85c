"""The tokens of GitHub Apps: when one is asked for, kept, and given up."""

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from msgspec.structs import replace

from service.adapters.code_hosts.api_client import ApiClient
from service.adapters.code_hosts.remote import RemoteCodeHost, github
from service.adapters.code_hosts.tokens import Tokens
from service.domain.errors import Forbidden
from service.ports.docs_source import Source

START = 1_800_000_000.0  # 2027-01-15 08:00 UTC


@pytest.fixture(scope="module")
def key():
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind, shape = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    return made.private_bytes(kind, shape, serialization.NoEncryption()).decode()


class AppServer:
    """Gives a new token at each request, for an hour; takes the ones in ``good``."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.good: set[str] = set()
        app = web.Application()
        app.router.add_get("/repos/octo/guide/installation", self._installation)
        app.router.add_post("/app/installations/5/access_tokens", self._token)
        app.router.add_get("/repos/octo/guide", self._repository)
        self.server = TestServer(app)

    async def _installation(self, _request: web.Request) -> web.Response:
        return web.json_response({"id": 5, "permissions": {"contents": "write", "pull_requests": "write"}})

    async def _token(self, request: web.Request) -> web.Response:
        assert json.loads(await request.read())["repositories"] == ["guide"]
        self.given.append(f"ghs_{len(self.given) + 1}")
        self.good = {self.given[-1]}
        return web.json_response({"token": self.given[-1], "expires_at": "2027-01-15T09:00:00Z"}, status=201)

    async def _repository(self, request: web.Request) -> web.Response:
        if request.headers["Authorization"].removeprefix("token ") not in self.good:
            return web.json_response({"message": "Bad credentials"}, status=401)
        return web.json_response({"full_name": "octo/guide", "archived": False})


@pytest.fixture
async def server():
    serving = AppServer()
    async with serving.server:
        yield serving


@pytest.fixture
def clock():
    return [START]


@pytest.fixture
async def client():
    client = ApiClient({})
    yield client
    await client.close()


@pytest.fixture
def source(server):
    return Source(
        "p1", "https://git.example/octo/guide", "main", "", "github", str(server.server.make_url("")).rstrip("/"),
        github_app_id="7", github_app_key_env="KEY",
    )  # fmt: skip


@pytest.fixture
def tokens(client, clock, key, tmp_path):
    (tmp_path / "key.pem").write_text(key)
    return Tokens({"KEY_FILE": str(tmp_path / "key.pem"), "BAD": "no key"}, client, now=lambda: clock[0])


async def test_a_token_is_kept_until_it_soon_expires(tokens, source, clock):
    assert [await tokens.token(source) for _ in range(2)] == ["ghs_1", "ghs_1"]
    clock[0] = START + 45 * 60
    assert await tokens.token(source) == "ghs_1"
    clock[0] = START + 55 * 60
    assert await tokens.token(source) == "ghs_2"


async def test_each_app_has_its_own(tokens, source):
    assert await tokens.token(source) == "ghs_1"
    assert await tokens.token(replace(source, github_app_id="8")) == "ghs_2"


async def test_a_token_that_is_refused_is_given_up(tokens, source, server, client):
    code_host = RemoteCodeHost(github, client, tokens)
    await code_host.check_repository(source)
    server.good.clear()  # somebody revoked it
    with pytest.raises(Forbidden):
        await code_host.check_repository(source)
    await code_host.check_repository(source)
    assert server.given == ["ghs_1", "ghs_2"]


async def test_invalid_or_missing_private_key_is_reported(tokens, source):
    with pytest.raises(Forbidden, match="BAD does not hold the private key") as refused:
        await tokens.token(replace(source, github_app_key_env="BAD"))
    assert refused.value.code == "token_refused"
    with pytest.raises(Forbidden, match="NONE, named for the private key of the GitHub App 7") as missing:
        await tokens.token(replace(source, github_app_key_env="NONE"))
    assert missing.value.code == "token_missing"
