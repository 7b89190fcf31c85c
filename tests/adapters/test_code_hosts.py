"""GitLab and Gitea: the code host contract, and what each host says in its own way."""

import pytest
from msgspec.structs import replace

from service.adapters.code_hosts.api_client import ApiClient
from service.adapters.code_hosts.remote import remote_code_hosts
from service.adapters.code_hosts.tokens import Tokens
from service.domain.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from service.ports.docs_source import Source
from tests.contracts.code_host import NEW, CodeHostContract
from tests.fakes.gitea import FakeGitea
from tests.fakes.gitlab import FakeGitLab

BRANCHES = {"main": "a", "docs/one": "b", "docs/two": "c"}
ENV = {"TOKEN": "right", "OLD": "wrong"}


@pytest.fixture
async def code_hosts():
    client = ApiClient({}, jitter=lambda: 0.0)
    yield remote_code_hosts(client, Tokens(ENV, client))
    await client.close()


@pytest.fixture
async def gitlab():
    fake = FakeGitLab(lambda: BRANCHES, token="right")
    async with fake.server:
        yield fake


@pytest.fixture
async def gitea():
    fake = FakeGitea(lambda: BRANCHES, token="right")
    async with fake.server:
        yield fake


class TestGitLab(CodeHostContract):
    @pytest.fixture
    def code_host(self, code_hosts):
        return code_hosts["gitlab"]

    @pytest.fixture
    def source(self, gitlab):
        return Source("p1", f"{gitlab.url}/group/sub/guide.git", "main", "", "gitlab", git_token_env="TOKEN")

    @pytest.fixture
    def close(self, gitlab):
        async def close(pull_request):
            gitlab.merge_requests[pull_request.number - 1]["state"] = "closed"

        return close

    @pytest.fixture
    def merge(self, gitlab):
        async def merge(pull_request):
            gitlab.merge_requests[pull_request.number - 1]["state"] = "merged"

        return merge

    async def test_a_project_is_named_by_its_whole_path(self, code_host, source, gitlab):
        await code_host.check_repository(source)
        assert gitlab.asked[0] == ("GET", "/api/v4/projects/group%2Fsub%2Fguide")

    async def test_gitlab_under_a_path_is_found_by_its_api_address(self, code_host, source, gitlab):
        under = replace(
            source, repository=f"{gitlab.url}/git/lab/group/sub/guide", api_url=f"{gitlab.url}/git/lab/api/v4"
        )
        with pytest.raises(NotFound):
            await code_host.check_repository(under)
        assert gitlab.asked[0] == ("GET", "/git/lab/api/v4/projects/group%2Fsub%2Fguide")

    async def test_draft_has_a_prefix_that_callers_do_not_see(self, code_host, source, gitlab):
        opened = await code_host.open_pull_request(source, replace(NEW, draft=True))
        assert gitlab.merge_requests[0]["title"] == f"Draft: {NEW.title}"
        await code_host.update_pull_request(source, opened.number, title="Retries", body="")
        assert gitlab.merge_requests[0]["title"] == "Draft: Retries"

    async def test_title_that_looks_like_a_draft_makes_no_draft(self, code_host, source):
        opened = await code_host.open_pull_request(source, replace(NEW, title="Draft: the release notes"))
        assert (opened.title, opened.draft) == ("the release notes", False)

    async def test_labels_and_reviewers(self, code_host, source, gitlab):
        source = replace(source, labels=("docs", "by bot"), reviewers=("ada", "nobody"))
        for _ in range(2):
            await code_host.open_pull_request(source, NEW)
        (one,) = gitlab.merge_requests
        assert (one["labels"], one["reviewers"]) == (["docs", "by bot"], [5])

    async def test_a_fork_s_is_not_ours(self, code_host, source, gitlab):
        gitlab.add("docs/one", "main", "Theirs", project=99)
        assert (await code_host.open_pull_request(source, NEW)).number == 2

    async def test_rights_and_expiry_are_reported_as_the_host_shows_them(self, code_host, source, gitlab):
        gitlab.expires_at = "2026-12-24"
        assert (await code_host.check_repository(source)).warnings == ("The token expires on 2026-12-24.",)
        gitlab.scopes = ["read_api"]
        await refused(code_host.check_repository(source), Forbidden, "rights_missing", "read_api")
        gitlab.scopes, gitlab.level = ["api"], 20
        await refused(code_host.check_repository(source), Forbidden, "rights_missing", "Developer")
        gitlab.level = None
        assert "does not tell" in (await code_host.check_repository(source)).warnings[0]
        gitlab.enabled = False
        await refused(code_host.check_repository(source), Conflict, "pull_request_refused", "switched off")


class TestGitea(CodeHostContract):
    @pytest.fixture
    def code_host(self, code_hosts):
        return code_hosts["gitea"]

    @pytest.fixture
    def source(self, gitea):
        return Source("p1", f"{gitea.url}/octo/guide.git", "main", "", "gitea", git_token_env="TOKEN")

    @pytest.fixture
    def close(self, gitea):
        async def close(pull_request):
            gitea.pulls[pull_request.number - 1]["state"] = "closed"

        return close

    @pytest.fixture
    def merge(self, gitea):
        async def merge(pull_request):
            gitea.pulls[pull_request.number - 1].update(state="closed", merged=True)

        return merge

    async def test_a_gitea_may_live_under_a_path(self, code_host, source, gitea):
        under = replace(source, repository=f"{gitea.url}/tools/git/octo/guide")
        with pytest.raises(NotFound):
            await code_host.check_repository(under)
        assert gitea.asked[0] == ("GET", "/tools/git/api/v1/repos/octo/guide")

    @pytest.mark.parametrize("tells_draft", [False, True])
    async def test_draft_has_a_prefix_that_callers_do_not_see(self, code_host, source, gitea, tells_draft):
        gitea.tells_draft = tells_draft
        opened = await code_host.open_pull_request(source, replace(NEW, draft=True))
        assert (opened.draft, opened.title, gitea.pulls[0]["title"]) == (True, NEW.title, f"WIP: {NEW.title}")

    async def test_the_open_one_is_found_among_many(self, code_host, source, gitea):
        opened = await code_host.open_pull_request(source, NEW)
        for number in range(120):
            gitea.add(f"other/{number}", "main", "Another")
        assert await code_host.open_pull_request(source, NEW) == opened

    async def test_a_fork_s_is_not_ours(self, code_host, source, gitea):
        gitea.add("docs/one", "next", "Ours, elsewhere")
        gitea.add("docs/two", "main", "Theirs", head_repo=99)
        assert (await code_host.open_pull_request(source, NEW)).number == 3

    async def test_labels_and_reviewers(self, code_host, source, gitea):
        source = replace(source, labels=("docs", "no such label"), reviewers=("nobody", "ada"))
        opened = await code_host.open_pull_request(source, NEW)
        assert (gitea.label_ids, gitea.reviewers) == ({opened.number: {3}}, {opened.number: ["ada"]})

    async def test_a_branch_that_is_not_there_is_no_missing_repository(self, code_host, source):
        await refused(
            code_host.open_pull_request(source, replace(NEW, head="docs/three")),
            Conflict,
            "no_such_branch",
            "docs/three",
        )

    async def test_a_token_that_may_only_read(self, code_host, source, gitea):
        gitea.may_push = False
        await refused(code_host.check_repository(source), Forbidden, "rights_missing", "write access")


async def refused(call, kind, code, words):
    with pytest.raises(kind, match=words) as error:
        await call
    assert error.value.code == code
    assert "right" not in str(error.value).split()  # the token


@pytest.fixture(params=["gitlab", "gitea"])
def either(request, code_hosts):
    """The fake, its adapter and a source."""
    fake = request.getfixturevalue(request.param)
    path = "group/sub/guide" if request.param == "gitlab" else "octo/guide"
    return fake, code_hosts[request.param], Source(
        "p1", f"{fake.url}/{path}", "main", "", request.param, git_token_env="TOKEN"
    )  # fmt: skip


async def test_a_token_that_is_not_taken(either):
    _, code_host, source = either
    for call in (code_host.check_repository, lambda source: code_host.open_pull_request(source, NEW)):
        await refused(call(replace(source, git_token_env="OLD")), Forbidden, "token_refused", "expired or was revoked")
        await refused(
            call(replace(source, git_token_env="NONE")), Forbidden, "token_missing", "NONE, named for the token"
        )
        await refused(call(replace(source, git_token_env="")), Forbidden, "token_missing", "There is no token for")


async def test_repository_that_is_not_shown_is_not_found(either):
    _, code_host, source = either
    missing = replace(source, repository=source.repository.replace("guide", "other"))
    for call in (
        code_host.check_repository(missing),
        code_host.open_pull_request(missing, NEW),
        code_host.get_pull_request(missing, 1),
    ):
        await refused(call, NotFound, "no_such_repository", "renamed or deleted, or is private")


async def test_a_repository_with_another_name_by_now(either):
    fake, code_host, source = either
    fake.moved = True
    for call in (code_host.check_repository(source), code_host.open_pull_request(source, NEW)):
        await refused(call, Conflict, "repository_moved", "docsmith project update")


async def test_an_archived_repository(either):
    fake, code_host, source = either
    fake.archived = True
    await refused(code_host.check_repository(source), Conflict, "repository_archived", "Unarchive it")


async def test_an_address_that_is_no_api(either):
    fake, code_host, source = either
    for api_url in (fake.url, "http://127.0.0.1:1"):
        with pytest.raises((NotFound, Unavailable)):
            await code_host.check_repository(replace(source, api_url=api_url))


@pytest.mark.parametrize(
    "repository",
    ["https://git.example", "https://git.example/guide", "https://git.example/a/../b", "https://git.example/a%2Fb/c?d"],
)
async def test_an_address_that_names_no_repository(code_hosts, repository):
    for kind, code_host in code_hosts.items():
        source = Source("p1", repository, "main", "", kind, git_token_env="TOKEN")
        with pytest.raises(Invalid) as refused:
            await code_host.check_repository(source)
        assert refused.value.code == "bad_repository"
