"""Comments on GitLab's merge requests, without any I/O.

Facts: all notes are in discussions, those of the conversation too, and every discussion can be answered; one that is a
single comment becomes a thread by it. There is no ``since``. ``system`` notes are the host's own. A note on lines has a
``position`` with the line of the new or, for a removed one, of the old file; several lines are in ``line_range``.
Membership, inherited ones included, is asked for by the account's id; the answer does not tell people from bots, which
the account itself does (``bot``).
"""

from datetime import datetime
from urllib.parse import quote

from msgspec import Struct

from service.adapters.code_hosts.comments import PAGE, Pages, by_time, is_wanted, shortened, with_threads
from service.adapters.code_hosts.protocol import ApiAnswer, ApiCalls, Steps, checked_url, no_pull_request
from service.domain.jobs.comments import CommentSource
from service.ports.review_host import Comment, Comments

DEVELOPER = 30


class _Author(Struct, frozen=True):
    id: int
    username: str


class _End(Struct, frozen=True):
    new_line: int | None = None
    old_line: int | None = None


class _Range(Struct, frozen=True):
    start: _End = _End()
    end: _End = _End()


class _Position(Struct, frozen=True):
    new_path: str | None = None
    old_path: str | None = None
    new_line: int | None = None
    old_line: int | None = None
    line_range: _Range | None = None


class _Note(Struct, frozen=True):
    id: int
    author: _Author
    updated_at: datetime
    body: str = ""
    system: bool = False
    position: _Position | None = None


class _Discussion(Struct, frozen=True):
    id: str
    notes: list[_Note] = []


class _Member(Struct, frozen=True):
    access_level: int = 0
    state: str = "active"


class _Account(Struct, frozen=True):
    bot: bool = False


class _MergeRequest(Struct, frozen=True):
    web_url: str


class GitLabComments:
    def __init__(self, calls: ApiCalls) -> None:
        self._calls = calls
        self._project = f"{calls.place.api}/projects/{quote(calls.place.path, safe='')}"

    def read(self, number: int, since: datetime | None, tag: str) -> Steps[Comments | None]:
        pages = Pages(self._calls, tag)
        url = f"{self._project}/merge_requests/{number}/discussions?per_page={PAGE}"
        discussions = yield from pages.read(url, list[_Discussion], _is_last)
        if pages.is_unchanged:
            return None
        every = [
            _comment(discussion, note, self._address(number, note.id))
            for discussion in discussions
            for note in discussion.notes
            if not note.system
        ]
        found = [comment for comment in with_threads(every) if is_wanted(comment.updated_at, since)]
        return Comments(by_time(found), pages.tag)

    def may_write(self, account: str) -> Steps[bool]:
        answer = yield self._calls.get(f"{self._project}/members/all/{quote(account, safe='')}")
        if answer.status == 404:
            return False
        member = self._calls.read(answer, _Member)
        if member.access_level < DEVELOPER or member.state != "active":
            return False
        answer = yield self._calls.get(f"{self._calls.place.api}/users/{quote(account, safe='')}")
        return not self._calls.read(answer, _Account).bot

    def post(self, number: int, thread: str, text: str) -> Steps[str]:
        where = f"discussions/{quote(thread, safe='')}/notes" if thread else "notes"
        url = f"{self._project}/merge_requests/{number}/{where}"
        answer = yield self._calls.send("POST", url, {"body": text})
        if answer.status == 404:
            raise no_pull_request(self._calls.place, number)
        return self._address(number, self._calls.read(answer, _Note).id)

    def _address(self, number: int, note: int) -> str:
        repository = self._calls.place.repository.removesuffix("/").removesuffix(".git")
        return checked_url(f"{repository}/-/merge_requests/{number}#note_{note}", self._calls.place)


def _is_last(answer: ApiAnswer) -> bool:
    return not answer.headers.get("x-next-page", "")


def _comment(discussion: _Discussion, note: _Note, url: str) -> Comment:
    position = note.position or _Position()
    lines = position.line_range or _Range()
    last = position.new_line or position.old_line
    source = CommentSource(
        f"note-{note.id}",
        note.updated_at.isoformat(),
        note.author.username,
        thread=discussion.id,
        url=url,
        path=position.new_path or position.old_path or "",
        first_line=lines.start.new_line or lines.start.old_line or last,
        last_line=last,
        side="old" if position.new_line is None and position.old_line is not None else "new",
    )
    return Comment(source, shortened(note.body), note.updated_at, str(note.author.id))
