"""Proof of work: when it is asked for, and what passes for one; ALTCHA's own library solves and checks it."""

from datetime import UTC, datetime, timedelta

import altcha
import pytest
from msgspec.structs import asdict, replace

from service.domain.access.proof_of_work import (
    HOURS,
    LIFETIME,
    MAX_NUMBER,
    Solution,
    is_over_usual,
    new_challenge,
    proof_secret,
    solved_at,
)
from service.domain.access.reader_tokens import Reader

READER, ORIGIN = Reader("key", "192.0.2.1"), "https://docs.example.com"
SECRET = proof_secret(b"installation", READER, ORIGIN)
NOW = datetime.now(UTC).replace(microsecond=0)


def solved(number=123, secret=SECRET, at=NOW):
    challenge = new_challenge(secret, "9a1f0c3e5b7d2a4c6e8f0b1d", number, at)
    fields = {name: value for name, value in asdict(challenge).items() if name != "maxnumber"}
    return Solution(**fields, number=number)


@pytest.mark.parametrize("number", [0, 1, 4_999, MAX_NUMBER])
def test_challenge_is_that_of_altcha(number):
    at = datetime.now(UTC).replace(microsecond=0)  # its library looks at the clock
    challenge = new_challenge(SECRET, "9a1f0c3e5b7d2a4c6e8f0b1d", number, at)
    found = altcha.solve_challenge_v1(challenge.challenge, challenge.salt, challenge.algorithm, challenge.maxnumber)
    assert found is not None
    assert found.number == number
    assert altcha.verify_solution_v1(asdict(solved(number, at=at)), SECRET) == (True, None)
    assert solved_at(SECRET, solved(number, at=at)) == at + LIFETIME


@pytest.mark.parametrize(
    "changed",
    [
        {"number": 124},
        {"challenge": "0" * 64},
        {"salt": "9a1f0c3e5b7d2a4c6e8f0b1d?expires=99999999999&"},
        {"salt": "ä\ud800"},
        {"signature": "0" * 64},
        {"signature": "ä"},
        {"salt": solved().salt + "1", "number": 23},
    ],
)
def test_changed_solution_is_refused(changed):
    assert solved_at(SECRET, replace(solved(), **changed)) is None


def test_solution_of_another_caller_is_refused():
    for reader, origin in ((Reader("other", "192.0.2.1"), ORIGIN), (Reader("key", "192.0.2.2"), ORIGIN), (READER, "x")):
        assert solved_at(SECRET, solved(secret=proof_secret(b"installation", reader, origin))) is None


@pytest.mark.parametrize(
    ("usual", "last", "is_over"), [(0, 60, False), (0, 61, True), (50, 150, False), (50, 151, True), (2, 60, False)]
)
def test_site_is_over_three_times_its_usual_hour(usual, last, is_over):
    at = datetime(2026, 1, 9, 12, 59, 59, 999_999, tzinfo=UTC)
    hour = int(at.timestamp() // 3600)
    counts = {hour - ago: usual for ago in range(2, HOURS + 1)} | {hour: last}
    assert is_over_usual(counts, at, 60) is is_over


def test_hour_before_counts_as_far_as_it_is_recent():
    at = datetime(2026, 1, 9, 12, 30, tzinfo=UTC)
    before = {int(at.timestamp() // 3600) - 1: 160}
    assert is_over_usual(before, at, 60)
    assert not is_over_usual(before, at + timedelta(minutes=15), 60)
