"""Links that work once, and organizations that keep an owner."""

from datetime import UTC, datetime, timedelta

import pytest

from service.domain.access import members, people
from service.domain.access.members import GiveRole, Members, RemoveRole, RoleGiven, RoleRemoved
from service.domain.access.names import Names, link_base
from service.domain.access.people import (
    INVITATION_LIFETIME,
    AddPerson,
    MakeSignInLink,
    OperatorGiven,
    PersonAdded,
    SetOperator,
    SignedIn,
    SignedOut,
    SignIn,
    SignInLinkMade,
    SignOut,
    checked_email,
)
from service.domain.errors import Conflict, Invalid, NotFound, Unauthorized

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SOON, LATE = NOW + timedelta(minutes=14, seconds=59), NOW + timedelta(minutes=15)
ADDED = PersonAdded("ada@example.com", "Ada", NOW)
LINK = SignInLinkMade("digest", NOW, LATE)


def when(history, command):
    state = people.Absent()
    for event in history:
        state = people.evolve(state, event)
    return people.decide(command, state)


def with_link(now, digest="digest", session="s"):
    return SignIn(session, "link", now, digest)


def test_link_signs_in_until_it_expires():
    assert when([ADDED, LINK], with_link(SOON)) == [SignedIn("s", "link", SOON)]
    with pytest.raises(Unauthorized) as refused:
        when([ADDED, LINK], with_link(LATE))
    assert refused.value.code == "link_expired"


@pytest.mark.parametrize(
    "history",
    [
        [ADDED],
        [ADDED, LINK, SignedIn("first", "link", NOW)],
        [ADDED, LINK, SignInLinkMade("newer", NOW, LATE)],
        [],
    ],
)
def test_link_is_refused_once_used_or_replaced(history):
    with pytest.raises(Unauthorized) as refused:
        when(history, with_link(SOON))
    assert refused.value.code == "link_not_valid"


def test_invitation_lasts_seven_days():
    made = when([ADDED], MakeSignInLink("digest", NOW, INVITATION_LIFETIME))
    day = timedelta(days=1)
    assert when([ADDED, *made], with_link(NOW + 7 * day - timedelta(seconds=1))) != []
    with pytest.raises(Unauthorized) as refused:
        when([ADDED, *made], with_link(NOW + 7 * day))
    assert refused.value.code == "link_expired"


def test_empty_link_is_refused():
    with pytest.raises(Unauthorized):
        when([ADDED], with_link(NOW, digest=""))


def test_other_ways_leave_the_link():
    history = [ADDED, LINK, SignedIn("first", "passkey", NOW)]
    assert when(history, with_link(SOON)) == [SignedIn("s", "link", SOON)]


def test_sign_out_is_recorded_once():
    history = [ADDED, SignedIn("s", "passkey", NOW)]
    assert when(history, SignOut("s", NOW)) == [SignedOut("s", NOW)]
    assert when([*history, SignedOut("s", NOW)], SignOut("s", NOW)) == []


def test_operator_flag_changes_once():
    assert when([ADDED], SetOperator(True, NOW)) == [OperatorGiven(NOW)]
    assert when([ADDED, OperatorGiven(NOW)], SetOperator(True, NOW)) == []
    with pytest.raises(NotFound):
        when([], SetOperator(True, NOW))


def test_new_rights_end_the_link_with_the_sessions():
    history = [ADDED, SignedIn("s", "passkey", NOW), LINK]
    ended = [SignedOut("s", SOON), SignInLinkMade("", SOON, SOON)]
    assert when(history, SetOperator(True, SOON, ends_sessions=True)) == [*ended, OperatorGiven(SOON)]
    with pytest.raises(Unauthorized):
        when([*history, *ended], with_link(SOON))
    assert when([*history, *ended], SetOperator(False, SOON, ends_sessions=True)) == []


def test_role_is_changed_of_members_alone():
    with pytest.raises(NotFound):
        members.decide(GiveRole("eve", "editor", NOW, is_member=True), OWNER_AND_VIEWER)
    given = members.decide(GiveRole("ben", "editor", NOW, is_member=True), OWNER_AND_VIEWER)
    assert given == [RoleGiven("ben", "editor", NOW)]


def test_person_is_added_with_small_letters():
    added = when([], AddPerson(" Ada@Example.COM ", " Ada ", NOW, is_operator=True))
    assert added == [ADDED, OperatorGiven(NOW)]
    assert when([ADDED], MakeSignInLink("d", NOW)) == [SignInLinkMade("d", NOW, LATE)]


def test_other_letters_than_a_to_z_are_compared_as_they_are():
    assert checked_email("\u00c5SA@Example.com") == "\u00c5sa@example.com"
    assert checked_email("I\u0131@example.com") == "i\u0131@example.com"


@pytest.mark.parametrize(
    "email",
    [
        "",
        "ada",
        "@example.com",
        "a b@example.com",
        "a@b\nc",
        "<a@b>",
        "a@b,c@d",
        "a" * 300,
        "\u212aate@example.com",
        "ada@example\uff0ecom",
        "\ufb01@example.com",
        "a\u030angstrom@example.com",
        "ada\udcff@example.com",
    ],
)
def test_email_is_refused_where_it_is_none(email):
    with pytest.raises(Invalid):
        checked_email(email)


OWNER_AND_VIEWER = Members({"ada": "owner", "ben": "viewer"})


@pytest.mark.parametrize("command", [GiveRole("ada", "editor", NOW), RemoveRole("ada", NOW)])
def test_last_owner_stays(command):
    with pytest.raises(Conflict) as refused:
        members.decide(command, OWNER_AND_VIEWER)
    assert refused.value.code == "last_owner"
    both = members.evolve(OWNER_AND_VIEWER, RoleGiven("ben", "owner", NOW))
    assert members.decide(command, both) != []


def test_removed_person_has_no_role():
    left = members.evolve(OWNER_AND_VIEWER, RoleRemoved("ben", NOW))
    assert left == Members({"ada": "owner"})
    with pytest.raises(NotFound):
        members.decide(RemoveRole("ben", NOW), left)


def test_organization_has_a_limit_of_people():
    full = Members({f"p{number}": "owner" for number in range(members.MAX_MEMBERS)})
    assert members.decide(GiveRole("p1", "viewer", NOW), full) != []
    with pytest.raises(Conflict) as refused:
        members.decide(GiveRole("another", "viewer", NOW), full)
    assert refused.value.code == "too_many_members"


@pytest.mark.parametrize(
    ("public_url", "listening", "base"),
    [
        ("", "http://localhost:8080", "http://localhost:8080"),
        ("", "http://127.0.0.2:8080", "http://127.0.0.2:8080"),
        ("", "http://[::1]:8080", "http://[::1]:8080"),
        ("", "http://192.0.2.7:8080", None),
        ("https://docs.example.com", "http://localhost:8080", "https://docs.example.com"),
        ("http://127.0.0.1:9000", "http://localhost:8080", "http://127.0.0.1:9000"),
        ("http://docs.example.com", "http://192.0.2.7:8080", None),
        ("http://docs.example.com", "http://localhost:8080", "http://localhost:8080"),
    ],
)
def test_links_begin_where_people_can_sign_in(public_url, listening, base):
    assert link_base(Names(public_url), listening) == base


@pytest.mark.parametrize(
    ("host", "is_ours", "may_sign_in"),
    [
        ("docs.example.com", True, True),
        ("DOCS.example.com:443", True, True),
        ("docs.example.com:8080", True, False),
        ("localhost:8080", True, True),
        ("[::1]:8080", True, True),
        ("127.9.9.9", True, True),
        ("192.0.2.7:8080", True, False),
        ("box:8080", True, False),
        ("evil.example", False, False),
        ("localhost.evil.example", False, False),
        ("docs.example.com.evil.example", False, False),
        ("docs.example.com@evil.example", False, False),
        ("", False, False),
        ("a b", False, False),
    ],
)
def test_names_are_ours_by_the_settings(host, is_ours, may_sign_in):
    names = Names("https://docs.example.com", "box")
    assert (names.is_ours(host), names.may_sign_in(host)) == (is_ours, may_sign_in)


@pytest.mark.parametrize(("port", "may_sign_in"), [("", True), (":8443", True), (":443", False), (":8080", False)])
def test_sign_in_takes_the_port_of_the_public_url(port, may_sign_in):
    assert Names("https://docs.example.com:8443").may_sign_in(f"docs.example.com{port}") is may_sign_in
