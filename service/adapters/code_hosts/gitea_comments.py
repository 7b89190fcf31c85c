"""Comments on the pull requests of Gitea and Forgejo, without any I/O.

Facts: the conversation is that of the issue of the same number. Comments on lines are listed for each review, with
their line of the new (``position``) or the old file (``original_position``); a thread is all comments on one line of
one file, and is answered by a review with a comment there. Those of a review show when it is submitted, which may be
long after they were written. Accounts of the host's own programs have no positive id. Only an administrator of the
repository may ask what others may do in it.
"""

from datetime import datetime
from urllib.parse import quote

import msgspec
from msgspec import Struct

from service.adapters.code_hosts.comments import (
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
from service.domain.errors import Forbidden, Invalid, NotFound
from service.domain.jobs.comments import CommentSource
from service.ports.code_host import RIGHTS_MISSING
from service.ports.review_host import Comment, Comments

PAGE = 50
"""The most that a server gives by default."""
MAX_REVIEWS = 30
"""The newest reviews whose comments are read: each is a request."""
MAY_WRITE = frozenset({"owner", "admin", "write"})


class _User(Struct, frozen=True):
    id: int
    login: str


class _IssueComment(Struct, frozen=True):
    id: int
    html_url: str
    updated_at: datetime
    user: _User | None = None
    body: str = ""


class _Review(Struct, frozen=True):
    id: int
    html_url: str = ""
    user: _User | None = None
    state: str = ""
    body: str = ""
    submitted_at: datetime | None = None
    comments_count: int = 0


class _ReviewComment(Struct, frozen=True):
    id: int
    html_url: str
    updated_at: datetime
    path: str
    user: _User | None = None
    body: str = ""
    diff_hunk: str = ""
    position: int = 0
    original_position: int = 0


class _Permission(Struct, frozen=True):
    permission: str


class _Posted(Struct, frozen=True):
    html_url: str


class _Line(Struct, frozen=True, array_like=True):
    """The name of a thread."""

    path: str
    new: int
    old: int


class GiteaComments:
    def __init__(self, calls: ApiCalls) -> None:
        self._calls = calls
        self._repository = f"{calls.place.api}/repos/{calls.place.quoted}"

    def read(self, number: int, since: datetime | None, _tag: str) -> Steps[Comments | None]:
        url = f"{self._repository}/issues/{number}/comments?limit={PAGE}{since_parameter(since)}"
        said = yield from Pages(self._calls).read(url, list[_IssueComment], has_no_next_link)
        found = [_conversation(one) for one in said]
        pull = f"{self._repository}/pulls/{number}"
        reviews = yield from Pages(self._calls).read(f"{pull}/reviews?limit={PAGE}", list[_Review], has_no_next_link)
        written = [one for one in reviews if one.state != "PENDING"]
        found += [comment for one in written if (comment := _summary(one)) is not None]
        found = [comment for comment in found if is_wanted(comment.updated_at, since)]
        on_lines: list[Comment] = []
        for one in [one for one in written if one.comments_count][-MAX_REVIEWS:]:
            answer = yield self._calls.get(f"{pull}/reviews/{one.id}/comments")
            on_lines += [_on_line(comment) for comment in self._calls.read(answer, list[_ReviewComment])]
        found += with_threads(on_lines)
        return Comments(by_time(found))

    def may_write(self, account: str) -> Steps[bool]:
        answer = yield self._calls.get(f"{self._repository}/collaborators/{quote(account, safe='')}/permission")
        if answer.status == 404:
            return False
        if answer.status == 403:
            raise Forbidden(
                f"The token may not ask who may write to {self._calls.place.repository}. Make its account an "
                "administrator of the repository, so that comments can be answered.",
                code=RIGHTS_MISSING,
            )
        return self._calls.read(answer, _Permission).permission in MAY_WRITE

    def post(self, number: int, thread: str, text: str) -> Steps[str]:
        if not thread:
            answer = yield self._calls.send("POST", f"{self._repository}/issues/{number}/comments", {"body": text})
        else:
            line = _line_of(thread)
            comment = {"path": line.path, "body": text, "new_position": line.new, "old_position": line.old}
            fields = {"event": "COMMENT", "comments": [comment]}
            answer = yield self._calls.send("POST", f"{self._repository}/pulls/{number}/reviews", fields)
            if answer.status in (400, 422):  # the line is gone
                raise NotFound("The line of this thread does not exist any more.")
        if answer.status == 404:
            raise no_pull_request(self._calls.place, number)
        return checked_url(self._calls.read(answer, _Posted).html_url, self._calls.place)


def _line_of(thread: str) -> _Line:
    try:
        return msgspec.json.decode(thread, type=_Line)
    except msgspec.DecodeError:
        raise Invalid("The name of the thread is not one of Gitea's.") from None


def _comment(source: CommentSource, user: _User | None, body: str, updated_at: datetime) -> Comment:
    is_bot = user is None or user.id <= 0
    return Comment(source, shortened(body), updated_at, user.login if user else "", is_bot)


def _conversation(one: _IssueComment) -> Comment:
    name = one.user.login if one.user else "ghost"
    source = CommentSource(f"issue-comment-{one.id}", one.updated_at.isoformat(), name, url=one.html_url)
    return _comment(source, one.user, one.body, one.updated_at)


def _summary(one: _Review) -> Comment | None:
    if one.submitted_at is None or not one.body:
        return None
    name = one.user.login if one.user else "ghost"
    source = CommentSource(f"review-{one.id}", one.submitted_at.isoformat(), name, url=one.html_url)
    return _comment(source, one.user, one.body, one.submitted_at)


def _on_line(one: _ReviewComment) -> Comment:
    line = one.position or one.original_position or None
    source = CommentSource(
        f"review-comment-{one.id}",
        one.updated_at.isoformat(),
        one.user.login if one.user else "ghost",
        thread=msgspec.json.encode(_Line(one.path, one.position, one.original_position)).decode(),
        url=one.html_url,
        path=one.path,
        first_line=line,
        last_line=line,
        diff=end_of_diff(one.diff_hunk),
        side="old" if one.original_position and not one.position else "new",
    )
    return _comment(source, one.user, one.body, one.updated_at)
