"""What every CodeHost does. A subclass gives the fixtures ``code_host`` and ``source``, a repository with the branches
``main``, ``docs/one`` and ``docs/two``, the latter two ahead of the first; ``close``, which closes a pull request as a
person does; and ``merge``, likewise.
"""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from service.domain.errors import Conflict, NotFound
from service.ports.code_host import CodeHost, NewPullRequest, PullRequest
from service.ports.docs_source import Source

NEW = NewPullRequest("Describe --retry", "It was **missing**.", head="docs/one", base="main", draft=False)

Someone = Callable[[PullRequest], Awaitable[None]]
"""Someone who does something to a pull request, not through the port."""


class CodeHostContract:
    @pytest.fixture
    def code_host(self) -> CodeHost:
        raise NotImplementedError

    @pytest.fixture
    def source(self) -> Source:
        raise NotImplementedError

    @pytest.fixture
    def close(self) -> Someone:
        raise NotImplementedError

    @pytest.fixture
    def merge(self) -> Someone:
        raise NotImplementedError

    async def test_a_repository_that_takes_pull_requests_passes_the_check(self, code_host, source):
        assert (await code_host.check_repository(source)).warnings == ()

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

    async def test_a_pull_request_is_found_by_its_number(self, code_host, source):
        opened = await code_host.open_pull_request(source, NEW)
        found = await code_host.get_pull_request(source, opened.number)
        assert found == opened
        assert found.body == NEW.body

    async def test_title_and_text_of_an_open_one_can_be_changed(self, code_host, source):
        opened = await code_host.open_pull_request(source, NEW)
        for _ in range(2):
            changed = await code_host.update_pull_request(source, opened.number, title="Retries", body="Now *there*.")
            assert changed == replace(opened, title="Retries", body="Now *there*.")
        assert await code_host.get_pull_request(source, opened.number) == changed
        assert await code_host.open_pull_request(source, NEW) == changed

    async def test_a_draft_with_another_title_is_still_a_draft(self, code_host, source):
        opened = await code_host.open_pull_request(source, replace(NEW, draft=True))
        changed = await code_host.update_pull_request(source, opened.number, title="Retries", body="Now *there*.")
        assert changed == replace(opened, title="Retries", body="Now *there*.")
        assert changed.draft

    async def test_draft_is_made_ready_and_a_draft_again(self, code_host, source):
        opened = await code_host.open_pull_request(source, replace(NEW, draft=True))
        for draft in (False, False, True, True):
            changed = await code_host.update_pull_request(
                source, opened.number, title="Retries", body="There.", draft=draft
            )
            assert changed == replace(opened, title="Retries", body="There.", draft=draft)
            assert await code_host.get_pull_request(source, opened.number) == changed

    async def test_unknown_number_is_not_found(self, code_host, source):
        with pytest.raises(NotFound) as missing:
            await code_host.get_pull_request(source, 987_654)
        assert missing.value.code == "pull_request_not_found"
        with pytest.raises(NotFound) as missing:
            await code_host.update_pull_request(source, 987_654, title="x", body="")
        assert missing.value.code == "pull_request_not_found"

    async def test_a_closed_one_stays_as_it_is_and_another_can_be_opened(self, code_host, source, close):
        opened = await code_host.open_pull_request(source, NEW)
        await close(opened)
        closed = await code_host.get_pull_request(source, opened.number)
        assert closed == replace(opened, state="closed")
        with pytest.raises(Conflict) as refused:
            await code_host.update_pull_request(source, opened.number, title="x", body="")
        assert refused.value.code == "pull_request_closed"
        assert await code_host.get_pull_request(source, opened.number) == closed
        assert (await code_host.open_pull_request(source, NEW)).number != opened.number

    async def test_a_merged_one_is_known_as_merged_and_stays_as_it_is(self, code_host, source, merge):
        opened = await code_host.open_pull_request(source, NEW)
        await merge(opened)
        merged = await code_host.get_pull_request(source, opened.number)
        assert (merged.state, merged.title) == ("merged", NEW.title)
        with pytest.raises(Conflict) as refused:
            await code_host.update_pull_request(source, opened.number, title="x", body="")
        assert refused.value.code == "pull_request_merged"
        assert await code_host.get_pull_request(source, opened.number) == merged
