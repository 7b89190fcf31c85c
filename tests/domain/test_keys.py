"""Keys: their form, and what becomes of them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from service.domain.access.keys import (
    BASE62,
    Absent,
    CreateKey,
    KeyCreated,
    KeyRevoked,
    RevokeKey,
    decide,
    digest_of,
    evolve,
    kind_of,
    make_token,
)
from service.domain.errors import Invalid, NotFound
from service.runtime.system import new_key_token

NOW = datetime(2026, 1, 2, tzinfo=UTC)
RANDOM = st.text(alphabet=BASE62, min_size=30, max_size=30)


@given(RANDOM)
def test_token_shows_its_kind(random):
    assert kind_of(make_token("admin", random)) == "admin"
    assert kind_of(make_token("assistant", random)) == "assistant"


@given(RANDOM, st.integers(0, 35), st.sampled_from(BASE62))
def test_mistyped_character_is_noticed_without_a_look_up(random, place, character):
    token = make_token("assistant", random)
    place += len("docsmith_dsc_")
    mistyped = token[:place] + character + token[place + 1 :]
    assert (kind_of(mistyped) is None) == (mistyped != token)


@pytest.mark.parametrize("text", ["", "docsmith_", "docsmith_dsc_", "Bearer x", "docsmith_" + "é" * 36, "x" * 10_000])
def test_invalid_token_has_no_kind(text):
    assert kind_of(text) is None


def test_tokens_do_not_repeat():
    assert len({new_key_token("admin") for _ in range(1000)}) == 1000


def create(kind="admin", domains=(), expires_at=None, token=None):
    return CreateKey(kind, "org", "CI", token or new_key_token(kind), domains, NOW, expires_at)


def test_the_token_itself_is_not_in_the_event():
    token = new_key_token("admin")
    (event,) = decide(create(token=token), Absent())
    assert isinstance(event, KeyCreated)
    assert event.digest == digest_of(token)
    assert token not in repr(event)
    assert event.last_four == token[-4:]


@pytest.mark.parametrize(
    "command",
    [
        create("assistant"),
        create("admin", domains=("docs",)),
        replace(create("assistant", domains=("docs",)), scope="read"),
        create(expires_at=NOW - timedelta(days=1)),
        create("admin", token=new_key_token("assistant")),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(command):
    with pytest.raises(Invalid):
        decide(command, Absent())


def test_revoking_twice_is_one_event():
    (made,) = decide(create(), Absent())
    key = evolve(Absent(), made)
    (revoked,) = decide(RevokeKey(NOW), key)
    assert isinstance(revoked, KeyRevoked)
    assert decide(RevokeKey(NOW), evolve(key, revoked)) == []


def test_a_key_that_is_not_there_cannot_be_revoked():
    with pytest.raises(NotFound):
        decide(RevokeKey(NOW), Absent())
