"""Windows of accepted requests, against a model that keeps every request in a list."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from service.domain.access.usage import WINDOW_SECONDS, Limits, RequestAccepted, SearchRequest, Usage, milliseconds

START = datetime(2026, 1, 2, tzinfo=UTC)
LIMITS = Limits(
    assistant_key=6, organization=5, address=5, project=2, reader=2, reader_day=3, key_searches=3, address_searches=2
)


def request(
    api="assistant", *, at=START, key="key", organization="org", address="address", project="project", **reader
):
    return RequestAccepted(api, at, organization, project, key, address, **reader)


def callers(one):
    """The scopes that a request counts in, each with those of whom it counts as one."""
    if isinstance(one, SearchRequest):
        if one.is_reader:
            return {"address-searches": {("at", one.project_id, one.address)}}
        return {"key-searches": {one.key_id}}
    if one.api == "agent":
        return {"project": {one.project_id}}
    found = {"assistant-key": {one.key_id}, "organization": {one.organization_id}, "address": {one.address}}
    if one.is_reader:
        readers = {("at", one.project_id, one.address), ("fp", one.project_id, one.fp)} - {("fp", one.project_id, "")}
        found |= {"reader": readers, "reader-day": readers}
    return found


REQUESTS = st.builds(
    request,
    st.sampled_from(["assistant", "assistant", "agent"]),
    key=st.sampled_from("kl"),
    organization=st.sampled_from("op"),
    address=st.sampled_from("ab"),
    project=st.sampled_from("xy"),
    is_reader=st.booleans(),
    fp=st.sampled_from(["", "f", "g"]),
)
SEARCHES = st.builds(
    SearchRequest,
    st.just(START),
    st.sampled_from("xy"),
    st.sampled_from("kl"),
    st.sampled_from("ab"),
    is_reader=st.booleans(),
)
SECONDS = st.one_of(
    st.integers(0, 4000),
    st.sampled_from(
        [
            0,
            0.001,
            59.999,
            60,
            300,
            299.999,
            3599.999,
            3600,
            86_399.999,
            86_400,
            2_592_000,
            2_591_999.999,
            4_294_967.296,
        ]
    ),
)


@given(st.lists(st.tuples(REQUESTS | SEARCHES, SECONDS, st.booleans()), max_size=40))
def test_windows_take_what_the_model_takes(steps):
    usage, accepted, at = Usage(LIMITS), [], START
    for one, seconds, fails in steps:
        at += timedelta(seconds=seconds)
        one = replace(one, accepted_at=at)
        now = milliseconds(at)
        full = [
            scope
            for scope, those in callers(one).items()
            for caller in those
            if sum(
                caller in callers(other).get(scope, ())
                and milliseconds(other.accepted_at) > now - WINDOW_SECONDS[scope] * 1000
                for other in accepted
            )
            >= LIMITS.of(scope)
        ]
        refusal = usage.refusal(one, now)
        assert (refusal is None) == (not full)
        if refusal is not None:
            assert refusal.scope in full
            later = now + refusal.reset_milliseconds
            assert usage.refusal(one, later - 1) is not None  # the time that is told is neither too short
            waited = [s for s in usage.standings(one, later) if s.scope == refusal.scope]
            assert any(s.remaining > 0 for s in waited)  # nor too long
        elif fails:
            usage.add(one)
            usage.withdraw(one)
        else:
            usage.add(one)
            accepted.append(one)


def test_a_limit_of_nought_is_no_limit():
    usage = Usage(Limits(0, 0, 0, 0, 0, 0, 0, 0))
    for one in (request(is_reader=True, fp="f"), SearchRequest(START, "project", "key", "address")):
        for _ in range(100):
            usage.add(one)
        assert usage.refusal(one, milliseconds(START)) is None
        assert usage.standings(one, milliseconds(START)) == []


def test_windows_that_are_over_do_not_stay_in_memory():
    usage = Usage(Limits(), kept=10)
    for number in range(1000):
        usage.add(request(at=START + timedelta(hours=number), address=f"address {number}", organization=f"o{number}"))
    assert len(usage) < 60


@given(st.lists(st.tuples(st.integers(0, 86_399), st.just(0) | st.integers(0, 400 * 86_400)), max_size=8))
def test_clock_that_was_ahead_turns_no_limit_off(steps):
    """Five requests of an address fill its day, whatever the clock said before, between and after them."""
    usage = Usage(LIMITS)
    for seconds, ahead in [*steps, *[(86_399, 0)] * 5]:
        at = START + timedelta(seconds=seconds + ahead)
        usage.standings(request(at=at), milliseconds(at))
        usage.add(request(at=at))
    assert usage.refusal(request(), milliseconds(START + timedelta(days=1))) is not None


@given(st.lists(st.integers(0, 100 * 86_400), min_size=1, max_size=20))
def test_a_clock_set_back_by_weeks_brings_nothing_back(offsets):
    """Whatever the order of times, the newest of them and those of its month are what counts."""
    usage = Usage(Limits())
    times = [START + timedelta(seconds=seconds) for seconds in offsets]
    for at in times:
        usage.add(request(at=at))
    newest = milliseconds(max(times))
    [standing] = [one for one in usage.standings(request(), newest) if one.scope == "assistant-key"]
    assert 10_000 - standing.remaining <= sum(
        milliseconds(at) > newest - WINDOW_SECONDS["assistant-key"] * 1000 for at in times
    )
    assert standing.remaining < 10_000
