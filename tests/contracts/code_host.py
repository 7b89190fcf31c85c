"""What every CodeHost does. A subclass gives the fixtures ``code_host`` and ``source``, a repository with the branches
``main``, ``docs/one`` and ``docs/two``, the latter two ahead of the first.
"""

import pytest
from msgspec.structs import replace

from service.ports.code_host import CodeHost, NewPullRequest
from service.ports.docs_source import Source

NEW = NewPullRequest("Describe --retry", "It was **missing**.", head="docs/one", base="main", draft=False)


class CodeHostContract:
    @pytest.fixture
    def code_host(self) -> CodeHost:
        raise NotImplementedError

    @pytest.fixture
    def source(self) -> Source:
        raise NotImplementedError

    async def test_a_pull_request_is_opened(self, code_host, source):
        opened = await code_host.open_pull_request(source, NEW)
        assert (opened.head, opened.base, opened.title, opened.state) == ("docs/one", "main", NEW.title, "open")
        assert not opened.draft
        assert opened.number >= 1
        assert opened.url.startswith(("http://", "https://"))

    async def test_opening_it_again_finds_the_open_one(self, code_host, source):
        opened = await code_host.open_pull_request(source, NEW)
        assert await code_host.open_pull_request(source, NEW) == opened
        assert await code_host.open_pull_request(source, replace(NEW, title="Another title")) == opened

    async def test_another_branch_has_a_pull_request_of_its_own(self, code_host, source):
        one = await code_host.open_pull_request(source, NEW)
        two = await code_host.open_pull_request(source, replace(NEW, head="docs/two"))
        assert one.number != two.number
        assert one.url != two.url

    async def test_a_draft_is_a_draft(self, code_host, source):
        opened = await code_host.open_pull_request(source, replace(NEW, draft=True))
        assert opened.draft
        assert opened.title == NEW.title
