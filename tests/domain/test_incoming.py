"""What code hosts tell a project: who is believed, and what is understood."""

from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import quote

import pytest

from service.domain.errors import Invalid, NotFound
from service.domain.hooks import incoming
from service.domain.hooks.incoming import (
    MAX_REPORTS_AN_HOUR,
    MAX_SEEN,
    Closed,
    CommentedThere,
    IncomingSecretSet,
    Open,
    Ping,
    PullRequestClosedThere,
    Push,
    PushReceived,
    RecordCommentReport,
    RecordPushReceived,
    SetIncomingSecret,
    is_authentic,
    read_told,
)
from service.domain.hooks.webhooks import make_secret
from tests.fakes.hooks import (
    sample,
    signed,
    signed_by_forgejo,
    signed_by_gitea,
    signed_by_github,
    signed_by_gitlab,
    with_gitlabs_token,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET, OTHER = make_secret(bytes(range(32))), make_secret(bytes(32))
COMMIT = "95790bf891e76fee5e1747ab589903a6a1f80f22"

SIGNERS = [
    ("github-push", signed_by_github), ("gitea-push", signed_by_gitea), ("forgejo-push", signed_by_forgejo),
    ("gitlab-push", with_gitlabs_token), ("gitlab-push", partial(signed_by_gitlab, at=NOW)),
]  # fmt: skip


def test_githubs_own_example_is_believed():
    headers = {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    assert is_authentic(headers, b"Hello, World!", "It's a Secret to Everybody", NOW)
    assert not is_authentic(headers, b"Hello, World?", "It's a Secret to Everybody", NOW)


@pytest.mark.parametrize(("name", "sign"), SIGNERS)
def test_delivery_signed_with_the_secret_is_authentic(name, sign):
    headers, body = sample(name)
    assert is_authentic(sign(headers, body, SECRET), body, SECRET, NOW)


@pytest.mark.parametrize(("name", "sign"), SIGNERS)
def test_delivery_without_the_secret_is_not_authentic(name, sign):
    headers, body = sample(name)
    assert not is_authentic(headers, body, SECRET, NOW)
    assert not is_authentic(sign(headers, body, OTHER), body, SECRET, NOW)
    signed_headers = sign(headers, body, SECRET)
    if "X-Gitlab-Token" not in signed_headers:  # which says nothing of the body
        assert not is_authentic(signed_headers, body + b" ", SECRET, NOW)


@pytest.mark.parametrize("name", ["X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Gitlab-Token"])
@pytest.mark.parametrize(
    "value", ["", "sha256=", "sha1=abc", "\udcff", "\u00e4", "sha256=" + "0" * 64, "0" * 64, SECRET[:-1]]
)
def test_nonsense_is_not_believed(name, value):
    assert not is_authentic({name: value}, b"{}", SECRET, NOW)


def test_wrong_signature_is_not_made_good_by_another():
    headers, body = sample("github-push")
    assert not is_authentic({**signed_by_github(headers, body, OTHER), "X-Gitlab-Token": SECRET}, body, SECRET, NOW)


@pytest.mark.parametrize("seconds", [-301, 301, 10**9])
def test_old_signature_of_gitlab_is_not_authentic(seconds):
    headers, body = sample("gitlab-push")
    at = NOW + timedelta(seconds=seconds)
    assert not is_authentic(signed_by_gitlab(headers, body, SECRET, at=at), body, SECRET, NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"webhook-timestamp": "now"}, {"webhook-timestamp": ""}, {"webhook-timestamp": "9" * 30},
        {"webhook-id": "\udcff"},
        {"webhook-signature": ""}, {"webhook-signature": "v1,"}, {"webhook-signature": "v1a,x v2,y"},
    ],
)  # fmt: skip
def test_a_broken_signature_of_gitlab_is_not_believed(changes):
    headers, body = sample("gitlab-push")
    assert not is_authentic({**signed_by_gitlab(headers, body, SECRET, at=NOW), **changes}, body, SECRET, NOW)


def test_single_good_signature_among_several_is_enough():
    headers, body = sample("gitlab-push")
    signed_headers = signed_by_gitlab(headers, body, SECRET, at=NOW)
    signed_headers["webhook-signature"] = "v1,AAAA " + signed_headers["webhook-signature"]
    assert is_authentic(signed_headers, body, SECRET, NOW)


def told(name, **changes):
    headers, body = sample(name, **changes)
    return read_told(headers, body, is_form=False)


GITHUBS_ID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
GITEAS_ID = "f6266f16-1bf3-46a5-9ea4-602e06ead473"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("github-ping", Ping()),
        ("github-push", Push("github", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "refs/heads/main", COMMIT)),
        ("gitea-push", Push("gitea", GITEAS_ID, "refs/heads/main", COMMIT)),
        ("forgejo-push", Push("gitea", GITEAS_ID, "refs/heads/main", COMMIT)),
        ("gitlab-push", Push("gitlab", "d6e8b0f0-0d2d-4a0b-9e1a-6a4c1c7e4f11", "refs/heads/main", COMMIT)),
        ("github-pull-request-merged", PullRequestClosedThere("github", 7, "merged", COMMIT)),
        ("gitea-pull-request-closed", PullRequestClosedThere("gitea", 7, "closed", None)),
        ("gitlab-merge-request-merged", PullRequestClosedThere("gitlab", 7, "merged", COMMIT)),
        ("gitlab-merge-request-closed", PullRequestClosedThere("gitlab", 7, "closed", None)),
        ("github-branch-deleted", None),
        ("github-pull-request-opened", None),
        ("gitlab-note", None),
        ("github-issue-comment", CommentedThere("github", GITHUBS_ID, 7, "@docsmith please shorten it.")),
        ("github-review-comment", CommentedThere("github", GITHUBS_ID, 7, "@docsmith a typo")),
        ("github-review", CommentedThere("github", GITHUBS_ID, 7, "")),
        ("gitea-issue-comment", CommentedThere("gitea", GITEAS_ID, 7, "@docsmith please shorten it.")),
        ("gitea-review", CommentedThere("gitea", GITEAS_ID, 7, None)),
        (
            "gitlab-merge-request-note",
            CommentedThere("gitlab", "d6e8b0f0-0d2d-4a0b-9e1a-6a4c1c7e4f11", 7, "@docsmith please shorten it."),
        ),
    ],
)
def test_deliveries_of_the_hosts_are_understood(name, expected):
    assert told(name) == expected


def test_comments_on_issues_and_deleted_ones_are_passed_over():
    assert told("github-issue-comment", issue={"number": 7}) is None
    assert told("github-issue-comment", action="deleted") is None
    assert told("gitlab-merge-request-note", merge_request=None) is None


def test_a_form_is_understood():
    headers, body = sample("github-push")
    form = b"payload=" + quote(body.decode()).encode()
    assert read_told(headers, form, is_form=True) == told("github-push")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"ref": 1}', b"\xff", b"[" * 100_000])
def test_delivery_not_understood_is_reported(body):
    headers, _ = sample("github-push")
    with pytest.raises(Invalid):
        read_told(headers, body, is_form=False)


def test_delivery_that_is_no_event_of_a_host_is_ignored():
    assert read_told({}, b"{}", is_form=False) is None
    assert read_told({"X-GitHub-Event": "star"}, b"not even JSON", is_form=False) is None


def test_a_long_id_is_kept_short():
    headers, body = sample("github-push")
    headers["X-GitHub-Delivery"] = "x" * 5000
    assert len(read_told(headers, body, is_form=False).delivery_id) == 64


# The project's side


def push(delivery_id="1"):
    return RecordPushReceived(delivery_id, "github", "refs/heads/main", COMMIT, NOW)


def test_without_a_secret_nothing_is_taken():
    with pytest.raises(NotFound):
        incoming.decide(push(), Closed())


def test_the_same_delivery_is_recorded_once():
    state = incoming.evolve(Closed(), IncomingSecretSet(SECRET, NOW))
    (event,) = incoming.decide(push(), state)
    assert event == PushReceived("1", "github", "refs/heads/main", COMMIT, NOW)
    state = incoming.evolve(state, event)
    assert incoming.decide(push(), state) == []
    assert len(incoming.decide(push("2"), state)) == 1


def test_delivery_without_an_id_is_never_a_repetition():
    state = incoming.evolve(Open(SECRET), PushReceived("", "gitlab", "refs/heads/main", COMMIT, NOW))
    assert len(incoming.decide(push(""), state)) == 1


def test_new_secret_ends_the_old_one_and_keeps_what_was_seen():
    state = incoming.evolve(Open(SECRET, ("1",)), *incoming.decide(SetIncomingSecret(OTHER, NOW), Open(SECRET, ("1",))))
    assert state == Open(OTHER, ("1",))


def test_only_the_last_deliveries_are_remembered():
    state = Open(SECRET)
    for number in range(MAX_SEEN + 5):
        state = incoming.evolve(state, PushReceived(str(number), "github", "refs/heads/main", COMMIT, NOW))
    assert len(state.seen) == MAX_SEEN
    assert state.seen[0] == "5"


def test_a_sample_is_signed_as_its_host_does():
    headers, body = signed("gitea-push", SECRET, ref="refs/heads/other")
    assert is_authentic(headers, body, SECRET, NOW)


def report(number=7, *, delivery_id="", at=NOW):
    return RecordCommentReport(delivery_id, "github", number, at)


def test_flood_of_reported_comments_is_recorded_up_to_a_number():
    state = incoming.evolve(Closed(), IncomingSecretSet(SECRET, NOW))
    for number in range(MAX_REPORTS_AN_HOUR):
        (event,) = incoming.decide(report(delivery_id=str(number)), state)
        state = incoming.evolve(state, event)
    assert incoming.decide(report(delivery_id="one more"), state) == []
    assert len(incoming.decide(report(8), state)) == 1
    assert len(incoming.decide(report(at=NOW + timedelta(hours=1)), state)) == 1
