"""The code host contract and a push against a real Gitea or Forgejo, where ``GITEA_BIN`` names its binary."""

import asyncio

import pytest
import pytest_asyncio
from msgspec.structs import replace

from service.adapters.code_hosts.api_client import ApiClient
from service.adapters.code_hosts.remote import remote_code_hosts
from service.adapters.code_hosts.tokens import Tokens
from service.adapters.git.dulwich_docs import DulwichDocs
from service.domain.errors import Conflict, Forbidden, NotFound
from service.ports.docs_source import Source
from tests.contracts.code_host import NEW, CodeHostContract
from tests.contracts.docs_source import commit
from tests.fakes.real_gitea import BINARY, real_gitea

pytestmark = [
    pytest.mark.skipif(BINARY is None, reason="set GITEA_BIN to the binary of a Gitea or Forgejo to run it"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gitea(tmp_path_factory):
    async with real_gitea(tmp_path_factory.mktemp("gitea")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def code_host(gitea):
    client = ApiClient({})
    yield remote_code_hosts(client, Tokens({"TOKEN": gitea.token, "OLD": 40 * "0"}, client))["gitea"]
    await client.close()


@pytest_asyncio.fixture(loop_scope="module")
async def source(gitea, request):
    """A repository of its own for each test."""
    name = f"r{abs(hash(request.node.nodeid))}"
    await gitea.make_repository(name)
    return Source("p1", f"{gitea.url}/octo/{name}.git", "main", "", "gitea", git_token_env="TOKEN")


def name_of(source):
    return source.repository.rpartition("/")[2].removesuffix(".git")


class TestRealGitea(CodeHostContract):
    @pytest.fixture
    def code_host(self, code_host):
        return code_host

    @pytest.fixture
    def source(self, source):
        return source

    @pytest.fixture
    def close(self, gitea, source):
        async def close(pull_request):
            await gitea.call("PATCH", f"/repos/octo/{name_of(source)}/pulls/{pull_request.number}", {"state": "closed"})

        return close

    @pytest.fixture
    def merge(self, gitea, source):
        async def merge(pull_request):
            await gitea.merge(name_of(source), pull_request.number)

        return merge


async def test_why_it_refuses(code_host, source, gitea):
    with pytest.raises(Conflict) as refused:
        await code_host.open_pull_request(source, replace(NEW, head="docs/none"))
    assert refused.value.code == "no_such_branch"
    with pytest.raises(Forbidden) as forbidden:
        await code_host.check_repository(replace(source, git_token_env="OLD"))
    assert forbidden.value.code == "token_refused"
    with pytest.raises(NotFound) as missing:
        await code_host.check_repository(replace(source, repository=f"{gitea.url}/octo/none"))
    assert missing.value.code == "no_such_repository"
    name = name_of(source)
    await gitea.call("PATCH", f"/repos/octo/{name}", {"name": f"{name}-new"})
    with pytest.raises(Conflict) as moved:
        await code_host.check_repository(source)
    assert moved.value.code == "repository_moved"
    await gitea.call("PATCH", f"/repos/octo/{name}-new", {"archived": True})
    with pytest.raises(Conflict) as archived:
        await code_host.check_repository(replace(source, repository=f"{gitea.url}/octo/{name}-new"))
    assert archived.value.code == "repository_archived"


async def test_labels_are_added(code_host, source, gitea):
    await gitea.call("POST", f"/repos/octo/{name_of(source)}/labels", {"name": "docs", "color": "#00aabb"})
    opened = await code_host.open_pull_request(replace(source, labels=("docs",), reviewers=("nobody",)), NEW)
    seen = await gitea.call("GET", f"/repos/octo/{name_of(source)}/pulls/{opened.number}")
    assert [label["name"] for label in seen["labels"]] == ["docs"]


async def test_a_push_and_one_that_a_protected_branch_refuses(source, gitea, tmp_path):
    docs = DulwichDocs(tmp_path / "data", env={"TOKEN": gitea.token})
    base = (await docs.fetch(source)).base_commit
    written = await docs.write_commit(source, commit(base, {"page.md": "New\n"}))
    await docs.push(source, branch="docs/x", commit=written.commit)
    assert (await docs.fetch(source, branch="docs/x")).branch_commit == written.commit
    rule = {"rule_name": "docs/y", "branch_name": "docs/y", "enable_push": False}
    await gitea.call("POST", f"/repos/octo/{name_of(source)}/branch_protections", rule)
    with pytest.raises(Conflict) as refused:
        await asyncio.wait_for(docs.push(source, branch="docs/y", commit=written.commit), 60)
    assert refused.value.code == "branch_protected"
