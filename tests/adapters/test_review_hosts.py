"""Comments on GitHub, GitLab and Gitea: the contract, and what each host says in its own way."""

import pytest
from msgspec.structs import replace

from service.adapters.code_hosts.api_client import ApiClient
from service.adapters.code_hosts.remote import remote_code_hosts
from service.adapters.code_hosts.tokens import Tokens
from service.domain.errors import Forbidden
from service.ports.docs_source import Source
from service.ports.review_host import NewAnswer
from tests.contracts.review_host import ReviewHostContract
from tests.fakes.gitea import FakeGitea
from tests.fakes.github import FakeGitHub
from tests.fakes.gitlab import FakeGitLab
from tests.fakes.review_host import FakeReviewHost

BRANCHES = {"main": "a", "docs/one": "b"}
ENV = {"TOKEN": "right"}


@pytest.fixture
async def code_hosts():
    client = ApiClient({}, jitter=lambda: 0.0)
    yield remote_code_hosts(client, Tokens(ENV, client))
    await client.close()


class TestFake(ReviewHostContract):
    knows_tags = False

    @pytest.fixture
    def code_host(self):
        return FakeReviewHost()

    @pytest.fixture
    def source(self):
        return Source("p1", "https://code.example/octo/guide.git", "main", "", "github")

    @pytest.fixture
    def people(self, code_host):
        return code_host.people


class TestGitHub(ReviewHostContract):
    @pytest.fixture
    async def github(self):
        fake = FakeGitHub(token="right")
        async with fake.server:
            yield fake

    @pytest.fixture
    def code_host(self, code_hosts):
        return code_hosts["github"]

    @pytest.fixture
    def source(self, github):
        return Source("p1", "https://github.com/octo/guide.git", "main", "", "github", github.url, "TOKEN")

    @pytest.fixture
    def people(self, github):
        return github.people

    async def test_summaries_of_reviews_are_comments(self, code_host, source, people, number):
        people.add(number, "Nearly there.", "ada", review=True)
        (summary,) = (await code_host.list_comments(source, number)).comments
        assert (summary.text, summary.source.thread) == ("Nearly there.", "")

    async def test_more_comments_than_a_page_are_read(self, code_host, source, people, github, number):
        github.page_size = 2
        for text in "abcde":
            await people.say(number, text)
        listed = await code_host.list_comments(source, number)
        assert [comment.text for comment in listed.comments] == list("abcde")

    async def test_locked_conversation_refuses_an_answer(self, code_host, source, github, number):
        github.locked = True
        with pytest.raises(Forbidden, match="locked"):
            await code_host.post_answer(source, number, NewAnswer("x", "m"))


class TestGitLab(ReviewHostContract):
    keeps_time_of_drafts = False

    @pytest.fixture
    async def gitlab(self):
        fake = FakeGitLab(lambda: BRANCHES, token="right")
        async with fake.server:
            yield fake

    @pytest.fixture
    def code_host(self, code_hosts):
        return code_hosts["gitlab"]

    @pytest.fixture
    def source(self, gitlab):
        return Source("p1", f"{gitlab.url}/group/sub/guide.git", "main", "", "gitlab", git_token_env="TOKEN")

    @pytest.fixture
    def people(self, gitlab):
        return gitlab.people

    async def test_blocked_member_may_not_write(self, code_host, source, people):
        people.accounts["ada"] = replace(people.accounts["ada"], level="read")
        assert not await code_host.may_write(source, "5")


class TestGitea(ReviewHostContract):
    knows_tags = False

    @pytest.fixture
    async def gitea(self):
        fake = FakeGitea(lambda: BRANCHES, token="right")
        async with fake.server:
            yield fake

    @pytest.fixture
    def code_host(self, code_hosts):
        return code_hosts["gitea"]

    @pytest.fixture
    def source(self, gitea):
        return Source("p1", f"{gitea.url}/octo/guide.git", "main", "", "gitea", git_token_env="TOKEN")

    @pytest.fixture
    def people(self, gitea):
        return gitea.people

    async def test_token_that_may_not_ask_for_rights_is_named(self, code_host, source, gitea):
        gitea.may_ask_rights = False
        with pytest.raises(Forbidden, match="administrator") as refused:
            await code_host.may_write(source, "ada")
        assert refused.value.code == "rights_missing"
        (warning,) = (await code_host.check_repository(source)).warnings
        assert "comments on pull requests are not read" in warning

    async def test_answer_to_a_line_that_is_gone_is_posted(self, code_host, source, number):
        thread = '["gone.md",3,0]'
        assert await code_host.post_answer(source, number, NewAnswer("Done.", "m", thread))
