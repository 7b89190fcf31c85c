"""A code host in memory whose pull requests people comment on."""

import asyncio
from datetime import datetime

from service.adapters.code_hosts.comments import with_threads
from service.domain.jobs.comments import CommentSource
from service.ports.docs_source import Source
from service.ports.review_host import OURS, Comment, Comments, NewAnswer, text_of
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.people import FakePeople, Said


class FakeReviewHost(FakeCodeHost):
    def __init__(self) -> None:
        super().__init__()
        self.people = FakePeople()
        self.rights_asked: list[str] = []
        self.looked = asyncio.Event()  # comments were listed

    async def list_comments(
        self, source: Source, number: int, *, since: datetime | None = None, tag: str = ""
    ) -> Comments | None:
        if self.errors:
            raise self.errors.pop(0)
        self.looked.set()
        later = self.people.of(number, since=since.isoformat() if since else "")
        listed = with_threads([_comment(one) for one in self.people.of(number) if one in later or one.path])
        return Comments(sorted(listed, key=lambda comment: comment.updated_at))

    async def may_write(self, source: Source, account: str) -> bool:
        if self.errors:
            raise self.errors.pop(0)
        self.rights_asked.append(account)
        known = self.people.accounts.get(account)
        return known is not None and known.level == "write" and not known.is_bot

    async def post_answer(self, source: Source, number: int, answer: NewAnswer) -> str:
        if self.errors:
            raise self.errors.pop(0)
        text = text_of(answer)
        since = answer.asked_after.isoformat() if answer.asked_after else ""
        for one in self.people.of(number, since=since):
            if f"{OURS}{answer.marker} " in one.text:
                return _url(one)
        first = self.people.thread(int(answer.thread)) if answer.thread else []
        if first:
            path, line = first[0].path, first[0].line
            return _url(self.people.add(number, text, "docsmith", path=path, line=line, thread=first[0].id))
        return _url(self.people.add(number, text, "docsmith"))


def _url(one: Said) -> str:
    return f"https://code.example/pulls/{one.number}#{one.id}"


def _comment(one: Said) -> Comment:
    source = CommentSource(
        str(one.id), one.updated_at.isoformat(), one.author, str(one.thread) if one.path else "", _url(one),
        one.path, one.line or None, one.line or None, "@@ -1 +1 @@\n-old\n+new" if one.path else "",
    )  # fmt: skip
    return Comment(source, one.text, one.updated_at, one.author, one.author == "robot")
