"""What every ReviewHost does. A subclass gives the fixtures ``code_host`` and ``source``, a repository with the branch
``docs/one`` ahead of ``main``, and ``people``: what persons do on the host. There ``ada`` may write to the repository,
``eve`` may not, and ``robot`` may, but is a program.
"""

from typing import Protocol

import pytest
from msgspec.structs import replace

from service.ports.docs_source import Source
from service.ports.review_host import NewAnswer, ReviewHost
from tests.contracts.code_host import NEW

ANSWER = NewAnswer("It is **done**.", marker="3f9c0aa1")


class People(Protocol):
    """Each changes something a second later than the one before, so that times can be told apart."""

    async def say(self, number: int, text: str, *, author: str = "ada") -> None: ...

    async def say_on_line(self, number: int, text: str, *, path: str, line: int, author: str = "ada") -> None: ...

    async def submit(self, number: int, text: str, *, path: str, line: int) -> None:
        """Submit a review whose comment was written an hour ago."""

    async def edit(self, number: int, old: str, new: str) -> None: ...

    async def delete(self, number: int, text: str) -> None: ...


class ReviewHostContract:
    knows_tags = True
    keeps_time_of_drafts = True
    """A comment of a review shows when the review is submitted, with the time when it was written."""

    @pytest.fixture
    def code_host(self) -> ReviewHost:
        raise NotImplementedError

    @pytest.fixture
    def source(self) -> Source:
        raise NotImplementedError

    @pytest.fixture
    def people(self) -> People:
        raise NotImplementedError

    @pytest.fixture
    async def number(self, code_host, source):
        return (await code_host.open_pull_request(source, NEW)).number

    async def test_comments_have_author_text_and_place(self, code_host, source, people, number):
        await people.say(number, "Please *shorten* it.")
        await people.say_on_line(number, "A typo.", path="guide/a.md", line=3, author="eve")
        first, second = (await code_host.list_comments(source, number)).comments
        assert (first.text, first.source.author, first.source.path) == ("Please *shorten* it.", "ada", "")
        assert (second.text, second.source.author, second.source.path) == ("A typo.", "eve", "guide/a.md")
        assert (second.source.first_line, second.source.last_line) == (3, 3)
        assert first.source.id != second.source.id
        assert first.source.url.startswith(("http://", "https://"))

    async def test_comments_since_a_time_have_edited_ones(self, code_host, source, people, number):
        for text in ("One.", "Two.", "Three."):
            await people.say(number, text)
        one, two, three = (await code_host.list_comments(source, number)).comments
        later = (await code_host.list_comments(source, number, since=two.updated_at)).comments
        assert [comment.source.id for comment in later] == [two.source.id, three.source.id]
        await people.edit(number, "One.", "One more.")
        (edited,) = [
            comment
            for comment in (await code_host.list_comments(source, number, since=three.updated_at)).comments
            if comment.source.id == one.source.id
        ]
        assert edited.text == "One more."
        assert edited.source.version != one.source.version

    async def test_comment_that_shows_late_is_listed(self, code_host, source, people, number):
        if not self.keeps_time_of_drafts:
            pytest.skip("comments of this host have the time when they show")
        await people.say(number, "One.")
        first = await code_host.list_comments(source, number)
        since = first.comments[-1].updated_at
        await people.submit(number, "Written before.", path="guide/a.md", line=3)
        later = await code_host.list_comments(source, number, since=since, tag=first.tag)
        assert "Written before." in [comment.text for comment in later.comments]

    async def test_unchanged_comments_are_not_sent_again(self, code_host, source, people, number):
        if not self.knows_tags:
            pytest.skip("this host has no names for the state of its comments")
        await people.say(number, "One.")
        first = await code_host.list_comments(source, number)
        assert await code_host.list_comments(source, number, tag=first.tag) is None
        await people.say(number, "Two.")
        second = await code_host.list_comments(source, number, tag=first.tag)
        assert "Two." in [comment.text for comment in second.comments]

    async def test_persons_with_write_access_are_known(self, code_host, source, people, number):
        rights = {}
        for name in ("ada", "eve", "robot"):
            await people.say(number, f"I am {name}.", author=name)
        for comment in (await code_host.list_comments(source, number)).comments:
            may = not comment.is_bot and await code_host.may_write(source, comment.account)
            rights[comment.source.author.removesuffix("[bot]")] = may
        assert rights == {"ada": True, "eve": False, "robot": False}

    async def test_account_that_does_not_exist_may_not_write(self, code_host, source):
        assert not await code_host.may_write(source, "987654")

    async def test_answer_is_posted_once_in_the_conversation(self, code_host, source, people, number):
        await people.say(number, "Please shorten it.")
        (asked,) = (await code_host.list_comments(source, number)).comments
        answer = replace(ANSWER, thread=asked.source.thread, asked_after=asked.updated_at)
        url = await code_host.post_answer(source, number, answer)
        assert await code_host.post_answer(source, number, answer) == url
        _, ours = (await code_host.list_comments(source, number)).comments
        assert ours.text.startswith(ANSWER.text)
        assert ours.source.url == url

    async def test_answer_is_posted_once_in_its_thread(self, code_host, source, people, number):
        await people.say_on_line(number, "A typo.", path="guide/a.md", line=3)
        (asked,) = (await code_host.list_comments(source, number)).comments
        answer = replace(ANSWER, thread=asked.source.thread)
        for _ in range(2):
            await code_host.post_answer(source, number, answer)
        _, ours = (await code_host.list_comments(source, number)).comments
        assert (ours.source.thread, ours.source.path) == (asked.source.thread, "guide/a.md")

    async def test_comment_has_those_above_it_in_its_thread(self, code_host, source, people, number):
        await people.say_on_line(number, "A typo.", path="guide/a.md", line=3)
        (first,) = (await code_host.list_comments(source, number)).comments
        await code_host.post_answer(source, number, replace(ANSWER, thread=first.source.thread))
        first, answer = sorted(
            (await code_host.list_comments(source, number)).comments, key=lambda one: len(one.source.before)
        )
        assert (first.text, first.source.before, first.source.side) == ("A typo.", (), "new")
        assert [(one.author, one.text) for one in answer.source.before] == [("ada", "A typo.")]

    async def test_another_answer_is_another_comment(self, code_host, source, people, number):
        await people.say(number, "Please shorten it.")
        for marker in ("one", "another"):
            await code_host.post_answer(source, number, replace(ANSWER, marker=marker))
        assert len((await code_host.list_comments(source, number)).comments) == 3

    async def test_answer_to_a_deleted_comment_is_posted(self, code_host, source, people, number):
        await people.say_on_line(number, "A typo.", path="guide/a.md", line=3)
        (asked,) = (await code_host.list_comments(source, number)).comments
        await people.delete(number, "A typo.")
        await code_host.post_answer(source, number, replace(ANSWER, thread=asked.source.thread))
        (ours,) = (await code_host.list_comments(source, number)).comments
        assert ours.text.startswith(ANSWER.text)
