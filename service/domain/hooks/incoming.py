"""Webhooks that a project receives from code hosts: how the sender is checked, and what a body means.

Each project has one secret, in the form of a Standard Webhooks secret. GitHub, Gitea and Forgejo sign the body with its
text; GitLab sends its text along, or signs with its bytes:

- GitHub: ``X-Hub-Signature-256: sha256=<hex>``, HMAC-SHA256 of the body
  (https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries).
- Gitea ``X-Gitea-Signature``, Forgejo also ``X-Forgejo-Signature``: the same in hex without a prefix; they send
  GitHub's headers, too (https://docs.gitea.com/usage/webhooks, https://forgejo.org/docs/latest/user/webhooks).
- GitLab: ``X-Gitlab-Token`` is the secret token in plain; with a signing token ``webhook-id``, ``webhook-timestamp``
  and ``webhook-signature`` as Standard Webhooks has them (https://docs.gitlab.com/user/project/integrations/webhooks).
"""

import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, assert_never
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import Invalid, NotFound
from service.domain.events import Event, PersonalText
from service.domain.hooks.webhooks import signature
from service.domain.jobs.decider import PullRequestOutcome

HOUR = timedelta(hours=1)

Host = Literal["github", "gitlab", "gitea"]
"""``gitea`` is Forgejo as well."""

MAX_SEEN = 500
"""Deliveries that are remembered, to know a repetition. Hosts repeat within hours."""
MAX_REPORTS_AN_HOUR = 60
"""Reports of comments that are recorded for one pull request: anyone may write on a public one."""
MAX_ID_CHARACTERS = 200
TOLERANCE_SECONDS = 300
"""How far a signed time may be from ours, as the reference implementations of Standard Webhooks have it."""


class IncomingSecretSet(Event, frozen=True, tag="incoming-secret-set"):
    """The project's secret from now on; an earlier one is of no use any more."""

    secret: PersonalText
    set_at: datetime


class PushReceived(Event, frozen=True, tag="push-received"):
    delivery_id: str
    """The host's, empty when it gave none."""
    host: Host
    ref: str
    commit: str
    received_at: datetime


class CommentReported(Event, frozen=True, tag="comment-reported"):
    """There is a comment on a pull request: a wish to look at its comments."""

    delivery_id: str
    """The host's, empty when it gave none."""
    host: Host
    number: int
    """The pull request's."""
    reported_at: datetime


IncomingEvent = IncomingSecretSet | PushReceived | CommentReported


class SetIncomingSecret(Struct, frozen=True):
    secret: str
    now: datetime


class RecordPushReceived(Struct, frozen=True):
    delivery_id: str
    host: Host
    ref: str
    commit: str
    now: datetime


class RecordCommentReport(Struct, frozen=True):
    delivery_id: str
    host: Host
    number: int
    now: datetime


IncomingCommand = SetIncomingSecret | RecordPushReceived | RecordCommentReport


class Closed(Struct, frozen=True):
    """The project has no secret yet, so it accepts no webhook."""


class Open(Struct, frozen=True):
    secret: str
    seen: tuple[str, ...] = ()
    """The ids of the last deliveries, oldest first."""
    reports: tuple[tuple[int, datetime], ...] = ()
    """The last reports of comments, oldest first: the number of the pull request, and when."""


IncomingState = Closed | Open


def decide(command: IncomingCommand, state: IncomingState) -> list[IncomingEvent]:
    """Return the events of a command. Raise NotFound for a report to a project without a secret."""
    match command, state:
        case SetIncomingSecret(secret=secret, now=now), _:
            return [IncomingSecretSet(secret, set_at=now)]
        case RecordPushReceived() | RecordCommentReport(), Closed():
            raise NotFound("This project accepts no webhooks: it has no secret yet. Set one first.")
        case (RecordPushReceived() | RecordCommentReport()) as report, Open() if (
            report.delivery_id and report.delivery_id in state.seen
        ):
            return []
        case RecordCommentReport() as report, Open():
            earlier = [at for number, at in state.reports if number == report.number and at > report.now - HOUR]
            if len(earlier) >= MAX_REPORTS_AN_HOUR:
                return []
            return [CommentReported(report.delivery_id, report.host, report.number, reported_at=report.now)]
        case RecordPushReceived() as push, Open():
            return [PushReceived(push.delivery_id, push.host, push.ref, push.commit, received_at=push.now)]
        case _:
            raise AssertionError(command)


def evolve(state: IncomingState, event: IncomingEvent) -> IncomingState:
    match event:
        case IncomingSecretSet(secret=secret):
            return replace(state, secret=secret) if isinstance(state, Open) else Open(secret)
        case CommentReported(delivery_id=delivery_id, number=number, reported_at=at):
            assert isinstance(state, Open)
            state = replace(state, reports=(*state.reports, (number, at))[-MAX_SEEN:])
            return replace(state, seen=(*state.seen, delivery_id)[-MAX_SEEN:]) if delivery_id else state
        case PushReceived(delivery_id=delivery_id):
            assert isinstance(state, Open)
            return replace(state, seen=(*state.seen, delivery_id)[-MAX_SEEN:]) if delivery_id else state
        case _:
            assert_never(event)


def is_authentic(headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> bool:
    """Return whether the sender knows the secret; in a time that does not reveal how near a guess was.

    ``headers`` finds a name whatever its case. Of several signatures the first kind that is there decides.
    """
    for name, prefix in (("X-Hub-Signature-256", "sha256="), ("X-Gitea-Signature", ""), ("X-Forgejo-Signature", "")):
        if (given := headers.get(name)) is not None:
            return _same(given, prefix + hmac.digest(secret.encode(), body, hashlib.sha256).hex())
    if (given := headers.get("webhook-signature")) is not None:
        return _is_signed(headers, given, body, secret, now)
    return _same(headers.get("X-Gitlab-Token", ""), secret)


def _is_signed(headers: Mapping[str, str], given: str, body: bytes, secret: str, now: datetime) -> bool:
    text = headers.get("webhook-timestamp", "")
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        return False
    if abs(int(text) - now.timestamp()) > TOLERANCE_SECONDS:
        return False
    try:
        expected = signature(secret, headers.get("webhook-id", ""), int(text), body)
    except (binascii.Error, UnicodeEncodeError):
        return False
    return any(_same(one, expected) for one in given.split(" ")[:10])


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogateescape"), expected.encode())


class Ping(Struct, frozen=True):
    """The host tests whether it can reach the service."""


class Push(Struct, frozen=True):
    host: Host
    delivery_id: str
    ref: str
    commit: str


class PullRequestClosedThere(Struct, frozen=True):
    host: Host
    number: int
    outcome: PullRequestOutcome
    merge_commit: str | None


class CommentedThere(Struct, frozen=True):
    host: Host
    delivery_id: str
    number: int
    text: str | None
    """None: the body does not have it."""


Told = Ping | Push | PullRequestClosedThere | CommentedThere | None
"""None: nothing that matters here."""


PUSHES = frozenset({"push", "Push Hook"})
OUTCOMES = frozenset({"pull_request", "Merge Request Hook"})
COMMENTS = frozenset({
    "issue_comment", "Note Hook", "Confidential Note Hook", "pull_request_review", "pull_request_review_comment",
    "pull_request_comment", "pull_request_approved", "pull_request_rejected",
})  # fmt: skip
"""On the conversation, on lines, and with reviews; the last three are Gitea's names for reviews."""
GONE_COMMENTS = frozenset({"deleted", "dismissed"})


class _PullRequest(Struct):
    number: int = 0
    merged: bool | None = None
    merge_commit_sha: str | None = None


class _Attributes(Struct):
    iid: int = 0
    action: str = ""
    merge_commit_sha: str | None = None
    note: str | None = None
    noteable_type: str = ""


class _Comment(Struct):
    body: str | None = None


class _Review(Struct):
    body: str | None = None
    content: str | None = None
    """Gitea's name for it."""


class _Issue(Struct):
    number: int = 0
    pull_request: _PullRequest | None = None
    """None for an issue that is not a pull request."""


class _MergeRequest(Struct):
    iid: int = 0


class _Body(Struct):
    """The fields of the hosts' bodies that are used here: ``ref`` and ``after`` of pushes (the same on all hosts),
    ``action``, ``number`` and ``pull_request`` of GitHub's and Gitea's pull requests, ``object_attributes`` of GitLab's
    merge requests; of comments the text, and the pull request's number.
    """

    ref: str = ""
    after: str = ""
    action: str = ""
    number: int = 0
    pull_request: _PullRequest | None = None
    object_attributes: _Attributes | None = None
    comment: _Comment | None = None
    review: _Review | None = None
    issue: _Issue | None = None
    is_pull: bool = False
    merge_request: _MergeRequest | None = None


def read_told(headers: Mapping[str, str], body: bytes, *, is_form: bool) -> Told:
    """Return the meaning of a webhook. In a form, the field ``payload`` has the JSON (GitHub and Gitea can send that).

    Raise Invalid when the body cannot be read.
    """
    host, name = _host_and_event(headers)
    if name == "ping":
        return Ping()
    if host is None or name not in PUSHES | OUTCOMES | COMMENTS:
        return None
    try:
        if is_form:
            body = parse_qs(body, max_num_fields=10).get(b"payload", [b""])[0]
        event = msgspec.json.decode(body, type=_Body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
        raise Invalid("The body is not what the host's documentation says.", code="invalid_json") from None
    if name in COMMENTS:
        return _commented(host, headers, event)
    if name in PUSHES:
        if not event.after.strip("0"):  # the branch is gone
            return None
        return Push(host, _delivery_id(headers), event.ref, event.after[:MAX_ID_CHARACTERS])
    if event.pull_request is not None and event.action == "closed":
        outcome: PullRequestOutcome = "merged" if event.pull_request.merged else "closed"
        return _closed(host, event.number, outcome, event.pull_request.merge_commit_sha)
    if (merge_request := event.object_attributes) is not None and merge_request.action in ("merge", "close"):
        outcome = "merged" if merge_request.action == "merge" else "closed"
        return _closed(host, merge_request.iid, outcome, merge_request.merge_commit_sha)
    return None


def _commented(host: Host, headers: Mapping[str, str], event: _Body) -> CommentedThere | None:
    if event.action in GONE_COMMENTS:
        return None
    text: str | None = None
    if (note := event.object_attributes) is not None and event.merge_request is not None:
        number = event.merge_request.iid if note.noteable_type == "MergeRequest" else 0
        text = note.note
    elif event.issue is not None and (event.issue.pull_request is not None or event.is_pull):
        number = event.issue.number
    else:
        number = event.number or (event.pull_request.number if event.pull_request is not None else 0)
    if event.comment is not None:
        text = event.comment.body
    elif event.review is not None and host == "github":  # comments on lines are reported one by one
        text = event.review.body or ""
    return CommentedThere(host, _delivery_id(headers), number, text) if number > 0 else None


def _closed(host: Host, number: int, outcome: PullRequestOutcome, commit: str | None) -> PullRequestClosedThere:
    return PullRequestClosedThere(
        host, number, outcome, commit[:MAX_ID_CHARACTERS] if commit and outcome == "merged" else None
    )


def _host_and_event(headers: Mapping[str, str]) -> tuple[Host | None, str]:
    if name := headers.get("X-Gitlab-Event"):
        return "gitlab", name
    if name := headers.get("X-Forgejo-Event") or headers.get("X-Gitea-Event"):  # before GitHub's, which they send, too
        return "gitea", name
    if name := headers.get("X-GitHub-Event"):
        return "github", name
    return None, ""


def _delivery_id(headers: Mapping[str, str]) -> str:
    for name in ("X-Forgejo-Delivery", "X-Gitea-Delivery", "X-GitHub-Delivery", "webhook-id", "Idempotency-Key"):
        if given := headers.get(name):
            return (
                given
                if len(given) <= MAX_ID_CHARACTERS and given.isprintable() and given.isascii()
                else (hashlib.sha256(given.encode(errors="surrogateescape")).hexdigest())
            )
    return ""
