"""The people of a code host and their comments on its pull requests, for the fakes that show them in their own ways."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

from msgspec import Struct

Level = Literal["write", "read"]


class Account(Struct, frozen=True):
    id: int
    name: str
    level: Level
    is_bot: bool = False


class Said(Struct):
    """A comment."""

    id: int
    number: int
    author: str
    text: str
    created_at: datetime
    updated_at: datetime
    thread: int
    """The id of the first comment of its thread."""
    path: str = ""
    line: int = 0
    is_review: bool = False
    """It is the summary of a review."""


class FakePeople:
    """``ada`` may write, ``eve`` may not, ``robot`` may and is a program; ``docsmith`` has the token."""

    def __init__(self) -> None:
        self.accounts = {
            account.name: account
            for account in (
                Account(5, "ada", "write"),
                Account(6, "eve", "read"),
                Account(7, "robot", "write", is_bot=True),
                Account(9, "docsmith", "write"),
                Account(11, "grace", "write"),
            )
        }
        self.comments: list[Said] = []
        self._ids = 100
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def add(
        self,
        number: int,
        text: str,
        author: str,
        *,
        path: str = "",
        line: int = 0,
        thread: int = 0,
        review: bool = False,
    ) -> Said:
        self._ids += 1
        self.now += timedelta(seconds=1)
        self.comments.append(
            Said(self._ids, number, author, text, self.now, self.now, thread or self._ids, path, line, review)
        )
        return self.comments[-1]

    def of(self, number: int, *, since: str = "") -> list[Said]:
        first = datetime.fromisoformat(since) if since else datetime.min.replace(tzinfo=UTC)
        return [one for one in self.comments if one.number == number and one.updated_at >= first]

    def threads(self, number: int) -> Iterator[list[Said]]:
        for one in self.comments:
            if one.number == number and (found := self.thread(one.id)):
                yield found

    def thread(self, first: int) -> list[Said]:
        return [one for one in self.comments if one.thread == first]

    # What people do

    async def say(self, number: int, text: str, *, author: str = "ada") -> None:
        self.add(number, text, author)

    async def say_on_line(self, number: int, text: str, *, path: str, line: int, author: str = "ada") -> None:
        self.add(number, text, author, path=path, line=line)

    async def submit(self, number: int, text: str, *, path: str, line: int) -> None:
        said = self.add(number, text, "ada", path=path, line=line)
        said.created_at = said.updated_at = self.now - timedelta(hours=1)

    async def edit(self, number: int, old: str, new: str) -> None:
        self.now += timedelta(seconds=1)
        one = next(one for one in self.comments if (one.number, one.text) == (number, old))
        one.text, one.updated_at = new, self.now

    async def delete(self, number: int, text: str) -> None:
        self.comments = [one for one in self.comments if (one.number, one.text) != (number, text)]


def stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
