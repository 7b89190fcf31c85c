"""The part of the code hosts' comments that they have in common: what is looked for, cut, and posted once."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from msgspec.structs import replace

from service.adapters.code_hosts.protocol import (
    ROUNDS,
    ApiAnswer,
    ApiCalls,
    ApiRequest,
    CodeHostApi,
    NoAnswer,
    Steps,
    later,
)
from service.domain.errors import NotFound, ServiceError
from service.domain.jobs.comments import Said, said_before
from service.ports.review_host import (
    MAX_COMMENT_CHARACTERS,
    MAX_DIFF_CHARACTERS,
    OURS,
    Comment,
    Comments,
    NewAnswer,
    text_of,
)

T = TypeVar("T")

PAGE = 15
"""Comments of an answer: GitHub's may have 262,144 bytes each, and an answer has a limit in bytes."""
MAX_PAGES = 70
"""Limit for one kind of comments and one question."""
MAX_LIST_BYTES = 32 << 20
"""Limit for the answers of that question, after which no more pages are asked for."""


class CommentsApi(Protocol):
    """The comments of one repository's pull requests, as one token sees them."""

    def read(self, number: int, since: datetime | None, tag: str, /) -> Steps[Comments | None]:
        """As ``ReviewHost.list_comments``."""

    def may_write(self, account: str) -> Steps[bool]:
        """As ``ReviewHost.may_write``."""

    def post(self, number: int, thread: str, text: str) -> Steps[str]:
        """Post a comment in a thread, or in the conversation for an empty one; return its address."""


class ReviewApi(CodeHostApi, Protocol):
    """One repository with its comments."""

    @property
    def comments(self) -> CommentsApi: ...


def answered(api: CommentsApi, number: int, answer: NewAnswer) -> Steps[str]:
    """Return the address of the answer, which is posted unless it is there already."""
    trouble: ServiceError | None = None
    for attempt in range(ROUNDS):
        listed = yield from _delayed(api.read(number, answer.asked_after, ""), float(2**attempt) if attempt else 0.0)
        for comment in listed.comments if listed is not None else ():
            if f"\n{OURS}{answer.marker} " in comment.text.replace("\r", ""):
                return comment.source.url
        try:
            return (yield from _posted(api, number, answer))
        except NoAnswer as error:
            trouble = error
    assert trouble is not None
    raise trouble


def _posted(api: CommentsApi, number: int, answer: NewAnswer) -> Steps[str]:
    if answer.thread:
        try:
            return (yield from api.post(number, answer.thread, text_of(answer)))
        except NotFound:
            pass  # the comment that began the thread was deleted
    return (yield from api.post(number, "", text_of(answer)))


def _delayed(steps: Steps[T], seconds: float) -> Steps[T]:
    """The same flow, its first request after a pause."""
    request = next(steps)
    answer = yield later(request, seconds)
    try:
        while True:
            answer = yield steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


class Pages:
    """The pages of one list, and what names their state: the tag of the only page; of several there is none."""

    def __init__(self, calls: ApiCalls, tag: str = "") -> None:
        self._calls, self._known = calls, tag
        self.tag = ""
        self.is_unchanged = False

    def read(self, url: str, kind: type[list[T]], is_last: "IsLast") -> Steps[list[T]]:
        """Return what is in all pages of an address; nothing when they are as the known tag names them."""
        found: list[T] = []
        size = 0
        for page in range(1, MAX_PAGES + 1):
            request = self._calls.get(f"{url}&page={page}")
            answer = yield asked_if_changed(request, self._known) if page == 1 else request
            if page == 1 and answer.status == 304:
                self.is_unchanged, self.tag = True, self._known
                return []
            found += self._calls.read(answer, kind)
            if is_last(answer):
                if page == 1:
                    self.tag = answer.headers.get("etag", "")
                break
            size += len(answer.body)
            if size >= MAX_LIST_BYTES:
                break
        return found


class IsLast(Protocol):
    def __call__(self, answer: ApiAnswer, /) -> bool: ...


def has_no_next_link(answer: ApiAnswer) -> bool:
    """Return whether a page is the last, for hosts that link to the next one."""
    return 'rel="next"' not in answer.headers.get("link", "")


def asked_if_changed(request: ApiRequest, tag: str) -> ApiRequest:
    """Return the request, answered 304 without a body when the state is still the one that the tag names."""
    return replace(request, headers={**request.headers, "if-none-match": tag}) if tag else request


def since_parameter(since: datetime | None) -> str:
    return f"&since={since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if since is not None else ""


def is_wanted(updated_at: datetime, since: datetime | None) -> bool:
    """Return whether a comment is of this time or later, by seconds: that is all that some hosts keep."""
    return since is None or updated_at >= since.replace(microsecond=0)


def shortened(text: str) -> str:
    return text if len(text) <= MAX_COMMENT_CHARACTERS else f"{text[:MAX_COMMENT_CHARACTERS]}\n[cut off here]"


def end_of_diff(diff: str) -> str:
    if len(diff) <= MAX_DIFF_CHARACTERS:
        return diff
    return "…" + diff[-MAX_DIFF_CHARACTERS:].partition("\n")[2]


def with_threads(comments: Sequence[Comment]) -> list[Comment]:
    """Return comments, which stand as they were written, each with those above it in its thread."""
    threads: dict[str, list[Said]] = {}
    found = []
    for comment in comments:
        said = threads.setdefault(comment.source.thread, []) if comment.source.thread else []
        found.append(replace(comment, source=replace(comment.source, before=said_before(said))) if said else comment)
        text = "\n".join(line for line in comment.text.splitlines() if not line.startswith(OURS))
        said.append(Said(comment.source.author, text.strip()))
    return found


def by_time(comments: Sequence[Comment]) -> list[Comment]:
    return sorted(comments, key=lambda comment: comment.updated_at)
