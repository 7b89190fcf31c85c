"""Windows of accepted requests, against a model that keeps every request in a list."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from service.domain.usage import SCOPES, WINDOW_SECONDS, Limits, RequestAccepted, Usage, milliseconds

START = datetime(2026, 1, 2, tzinfo=UTC)
LIMITS = Limits(assistant_key=4, organization=3, address=3, project=2)


def request(api="assistant", *, at=START, key="key", organization="org", address="address", project="project"):
    return RequestAccepted(api, at, organization, project, key, address)


def callers(one):
    return {
        "assistant-key": one.key_id, "organization": one.organization_id, "address": one.address,
        "project": one.project_id,
    }  # fmt: skip


REQUESTS = st.builds(
    request,
    st.sampled_from(["assistant", "assistant", "agent"]),
    key=st.sampled_from("kl"),
    organization=st.sampled_from("op"),
    address=st.sampled_from("ab"),
    project=st.sampled_from("xy"),
)
SECONDS = st.one_of(
    st.integers(0, 4000), st.sampled_from([0, 0.001, 3599.999, 3600, 86_399.999, 86_400, 2_592_000, 2_591_999.999])
)


@given(st.lists(st.tuples(REQUESTS, SECONDS, st.booleans()), max_size=40))
def test_windows_take_what_the_model_takes(steps):
    usage, accepted, at = Usage(LIMITS), [], START
    for one, seconds, fails in steps:
        at += timedelta(seconds=seconds)
        one = RequestAccepted(one.api, at, one.organization_id, one.project_id, one.key_id, one.address)
        now = milliseconds(at)
        full = [
            scope
            for scope in SCOPES[one.api]
            if sum(
                scope in SCOPES[other.api]
                and callers(other)[scope] == callers(one)[scope]
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
            assert waited[0].remaining > 0  # nor too long
            usage = rebuilt(accepted)  # looking ahead has let go of what was in the windows
        elif fails:
            usage.add(one)
            usage.withdraw(one)
        else:
            usage.add(one)
            accepted.append(one)


def rebuilt(accepted):
    usage = Usage(LIMITS)
    for one in accepted:
        usage.add(one)
    return usage


def test_a_limit_of_nought_is_no_limit():
    usage = Usage(Limits(0, 0, 0, 0))
    for _ in range(100):
        usage.add(request())
    assert usage.refusal(request(), milliseconds(START)) is None
    assert usage.standings(request(), milliseconds(START)) == []


def test_windows_that_are_over_do_not_stay_in_memory():
    usage = Usage(Limits())
    for number in range(1000):
        usage.add(request(at=START + timedelta(hours=number), address=f"address {number}", organization=f"o{number}"))
    assert len(usage) < 40
