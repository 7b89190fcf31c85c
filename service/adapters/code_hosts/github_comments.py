"""Comments on GitHub's pull requests, without any I/O.

Facts: the conversation is that of the issue of the same number. Comments on lines are listed for the whole pull request
and name the first of their thread in ``in_reply_to_id``; an answer is posted to that first one. Those of a review show
when it is submitted, which may be long after they were written: so they are not asked for by time. ``line`` is null
once the line is gone from the diff, ``original_line`` stays. The summary of a review is a list of its own, without
``since``. ``permission`` has the four old roles: ``maintain`` is reported as ``write``, ``triage`` as ``read``; for a
public repository everyone has ``read``. Conditional requests that find nothing new do not count against the limit.
"""

from datetime import datetime
from urllib.parse import quote

from msgspec import Struct

from service.adapters.code_hosts.comments import (
    PAGE,
    Pages,
    by_time,
    end_of_diff,
    has_no_next_link,
    is_wanted,
    shortened,
    since_parameter,
    with_threads,
)
from service.adapters.code_hosts.protocol import ApiCalls, Steps, checked_url, no_pull_request
from service.domain.jobs.comments import CommentSource
from service.ports.review_host import Comment, Comments

MAY_WRITE = frozenset({"admin", "maintain", "write"})


class _User(Struct, frozen=True):
    login: str
    type: str = "User"


class _IssueComment(Struct, frozen=True):
    id: int
    html_url: str
    updated_at: datetime
    user: _User | None = None
    """None for an account that is gone."""
    body: str | None = None


class _ReviewComment(Struct, frozen=True):
    id: int
    html_url: str
    updated_at: datetime
    path: str
    user: _User | None = None
    body: str | None = None
    in_reply_to_id: int | None = None
    diff_hunk: str = ""
    line: int | None = None
    start_line: int | None = None
    original_line: int | None = None
    original_start_line: int | None = None
    side: str | None = None


class _Review(Struct, frozen=True):
    id: int
    html_url: str
    user: _User | None = None
    body: str | None = None
    submitted_at: datetime | None = None
    """None while it is being written."""


class _Permission(Struct, frozen=True):
    permission: str
    user: _User | None = None


class _Posted(Struct, frozen=True):
    html_url: str


class GitHubComments:
    def __init__(self, calls: ApiCalls) -> None:
        self._calls = calls
        self._repository = f"{calls.place.api}/repos/{calls.place.quoted}"

    def read(self, number: int, since: datetime | None, tag: str) -> Steps[Comments | None]:
        known = tag.split("\n") if tag.count("\n") == 2 else ["", "", ""]
        conversation, lines, reviews = (Pages(self._calls, one) for one in known)
        pull = f"{self._repository}/pulls/{number}"
        issue = f"{self._repository}/issues/{number}"
        page = f"?per_page={PAGE}"
        said = yield from conversation.read(
            f"{issue}/comments{page}{since_parameter(since)}", list[_IssueComment], has_no_next_link
        )
        on_lines = yield from lines.read(f"{pull}/comments{page}", list[_ReviewComment], has_no_next_link)
        summed_up = yield from reviews.read(f"{pull}/reviews{page}", list[_Review], has_no_next_link)
        if conversation.is_unchanged and lines.is_unchanged and reviews.is_unchanged:
            return None
        found = [*map(_conversation, said), *with_threads([_on_line(one) for one in on_lines])]
        summaries = (_summary(one) for one in summed_up)
        found += [one for one in summaries if one is not None and is_wanted(one.updated_at, since)]
        return Comments(by_time(found), "\n".join((conversation.tag, lines.tag, reviews.tag)))

    def may_write(self, account: str) -> Steps[bool]:
        answer = yield self._calls.get(f"{self._repository}/collaborators/{quote(account, safe='')}/permission")
        if answer.status == 404:
            return False
        collaborator = self._calls.read(answer, _Permission)
        return collaborator.permission in MAY_WRITE and (collaborator.user is None or collaborator.user.type != "Bot")

    def post(self, number: int, thread: str, text: str) -> Steps[str]:
        where = f"pulls/{number}/comments/{quote(thread, safe='')}/replies" if thread else f"issues/{number}/comments"
        answer = yield self._calls.send("POST", f"{self._repository}/{where}", {"body": text})
        if answer.status == 404:
            raise no_pull_request(self._calls.place, number)
        return checked_url(self._calls.read(answer, _Posted).html_url, self._calls.place)


def _comment(source: CommentSource, user: _User | None, body: str | None, updated_at: datetime) -> Comment:
    is_bot = user is None or user.type == "Bot"
    return Comment(source, shortened(body or ""), updated_at, user.login if user else "", is_bot)


def _conversation(one: _IssueComment) -> Comment:
    name = one.user.login if one.user else "ghost"
    source = CommentSource(f"issue-comment-{one.id}", one.updated_at.isoformat(), name, url=one.html_url)
    return _comment(source, one.user, one.body, one.updated_at)


def _on_line(one: _ReviewComment) -> Comment:
    last = one.line or one.original_line
    source = CommentSource(
        f"review-comment-{one.id}",
        one.updated_at.isoformat(),
        one.user.login if one.user else "ghost",
        thread=str(one.in_reply_to_id or one.id),
        url=one.html_url,
        path=one.path,
        first_line=(one.start_line if one.line else one.original_start_line) or last,
        last_line=last,
        diff=end_of_diff(one.diff_hunk),
        side="gone" if one.line is None else "old" if one.side == "LEFT" else "new",
    )
    return _comment(source, one.user, one.body, one.updated_at)


def _summary(one: _Review) -> Comment | None:
    if one.submitted_at is None or not one.body:
        return None
    name = one.user.login if one.user else "ghost"
    source = CommentSource(f"review-{one.id}", one.submitted_at.isoformat(), name, url=one.html_url)
    return _comment(source, one.user, one.body, one.submitted_at)
