"""Comments on pull requests: those of a code host that has them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from service.domain.jobs.comments import CommentSource
from service.ports.code_host import CodeHost
from service.ports.docs_source import Source

MAX_COMMENT_CHARACTERS = 32_768
"""Limit for a comment's text; the rest is cut off."""
MAX_DIFF_CHARACTERS = 4_000
"""Limit for the changes that are shown above a comment: their end is kept, which is nearest to it."""


class Comment(Struct, frozen=True):
    """A comment as the code host has it now."""

    source: CommentSource
    text: str
    """Markdown."""
    updated_at: datetime
    account: str
    """The author as the code host's API wants it named in a question about rights."""
    is_bot: bool = False
    """Its author is known not to be a person."""


class Comments(Struct, frozen=True):
    """An answer of a code host about the comments of a pull request."""

    comments: Sequence[Comment]
    tag: str = ""
    """Names this state of them, for the next question with the same ``since``; empty when the host has no names."""


class NewAnswer(Struct, frozen=True):
    """An answer to be posted."""

    text: str
    """Markdown."""
    marker: str
    """Unguessable; it goes into the posted text where people do not see it, and finds it again."""
    thread: str = ""
    asked_after: datetime | None = None
    """By the code host's clock; before this time the answer cannot have been posted."""


OURS = "<!-- docsmith-answer:"
"""How the line begins by which an answer of ours is known; quotations have another character before it."""


def text_of(answer: NewAnswer) -> str:
    """Return the text to post, with the marker on a line of its own."""
    return f"{answer.text}\n\n{OURS}{answer.marker} -->"


def is_answer(text: str) -> bool:
    """Return whether a comment is an answer of ours."""
    return any(line.startswith(OURS) for line in text.splitlines())


class ReviewHost(CodeHost, Protocol):
    """A code host whose pull requests people comment on. Its errors are those of every method of ``CodeHost``."""

    async def list_comments(
        self, source: Source, number: int, *, since: datetime | None = None, tag: str = ""
    ) -> Comments | None:
        """Return the comments written or changed since a time, the oldest first; None: still as the tag names them.

        They are those of the conversation, on lines, and in the summaries of reviews; not what the host itself notes.
        Where comments on lines show later than they were written, all of them are returned, also earlier ones.
        """

    async def may_write(self, source: Source, account: str) -> bool:
        """Return whether the host says now that the account is a person's with write access to the repository.

        Raises Forbidden (``rights_missing``): the token may not ask.
        """

    async def post_answer(self, source: Source, number: int, answer: NewAnswer) -> str:
        """Post an answer in its thread, or in the conversation when that is gone, unless one with its marker is there.

        Return its address. Safe to repeat.
        """
