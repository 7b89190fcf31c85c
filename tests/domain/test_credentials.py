"""Passkeys and provider accounts of one person."""

from datetime import UTC, datetime

import pytest

from service.domain.access.credentials import (
    MAX_PASSKEYS,
    AddPasskey,
    Credentials,
    ForgetCredentials,
    LinkAccount,
    RemovePasskey,
    UnlinkAccount,
    UsePasskey,
    decide,
    evolve,
)
from service.domain.errors import Conflict, Forbidden, NotFound

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ADDED = AddPasskey("one", "key", 0, "Laptop", NOW)


def after(*commands):
    state = Credentials()
    for command in commands:
        for event in decide(command, state):
            state = evolve(state, event)
    return state


def test_passkey_is_listed_until_it_is_removed():
    state = after(ADDED, UsePasskey("one", 0, NOW))
    assert [(one.id, one.name, one.used_at) for one in state.passkeys] == [("one", "Laptop", NOW)]
    assert after(ADDED, RemovePasskey("one", NOW)) == Credentials()
    with pytest.raises(NotFound):
        after(RemovePasskey("one", NOW))


@pytest.mark.parametrize(("known", "count"), [(5, 5), (5, 4), (5, 0)])
def test_counter_that_does_not_grow_is_refused(known, count):
    with pytest.raises(Forbidden, match="from a copy"):
        after(ADDED, UsePasskey("one", known, NOW), UsePasskey("one", count, NOW))


def test_counter_may_be_missing_or_grow():
    used = after(ADDED, UsePasskey("one", 0, NOW), UsePasskey("one", 0, NOW), UsePasskey("one", 7, NOW))
    assert used.passkeys[0].sign_count == 7


def test_passkeys_have_a_limit_and_are_added_once():
    with pytest.raises(Conflict, match="already"):
        after(ADDED, ADDED)
    with pytest.raises(Conflict, match="Remove one"):
        after(*(AddPasskey(str(number), "key", 0, "Key", NOW) for number in range(MAX_PASSKEYS + 1)))


def test_all_credentials_are_forgotten_at_once():
    assert after(ADDED, LinkAccount("https://a.example", "1", NOW), ForgetCredentials(NOW)) == Credentials()


def test_first_account_of_an_issuer_stays_the_only_one():
    linked = LinkAccount("https://a.example", "1", NOW)
    assert after(linked, linked).accounts == {"https://a.example": "1"}
    with pytest.raises(Forbidden, match="Another account"):
        after(linked, LinkAccount("https://a.example", "2", NOW))
    relinked = after(linked, UnlinkAccount("https://a.example", NOW), LinkAccount("https://a.example", "2", NOW))
    assert relinked.accounts == {"https://a.example": "2"}
