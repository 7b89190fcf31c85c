"""Webhooks: where they may lead, how what they are told is signed, when a delivery is tried again."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook as Oracle
from standardwebhooks.webhooks import WebhookVerificationError

from service.domain.access.addresses import is_public
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.hooks import deliveries, webhooks
from service.domain.hooks.deliveries import (
    DELAYS_SECONDS,
    DeliveryAttempted,
    DeliveryRequested,
    Ended,
    RecordAttempt,
    RequestDelivery,
    Waiting,
    delivery_id,
    retry_delay,
)
from service.domain.hooks.webhooks import (
    ChangeWebhook,
    CreateWebhook,
    Deleted,
    DeleteWebhook,
    DisableWebhook,
    EnableWebhook,
    Webhook,
    WebhookChanged,
    WebhookCreated,
    WebhookDeleted,
    WebhookDisabled,
    WebhookEnabled,
    checked_secret,
    checked_url,
    make_secret,
    signature,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = make_secret(bytes(range(32)))


def test_example_of_the_specification_has_its_signature():
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert (
        signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


@given(secret=st.binary(min_size=32, max_size=32), body=st.text())
def test_the_reference_implementation_accepts_what_is_signed(secret, body):
    text, at = make_secret(secret), int(datetime.now(UTC).timestamp())
    body = body.encode(errors="replace")
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(at),
        "webhook-signature": signature(text, "msg_1", at, body),
    }
    Oracle(text).verify(body, headers, json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Oracle(text).verify(body + b" ", headers, json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Oracle(text).verify(body, {**headers, "webhook-id": "msg_2"}, json_parse=False)


def test_a_secret_has_the_form_of_the_specification():
    assert "whsec_" + base64.b64encode(bytes(range(32))).decode() == SECRET
    with pytest.raises(Invalid):
        make_secret(b"short")


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
        "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1",
        "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::a00:1",
        "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1",
        "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "localhost", "", "0x7f.1", "2130706433",
        "127.1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "172.32.0.1", "192.0.1.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808"]
)
def test_an_address_that_is_public(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "", "https://", "https:///path", "http://example.com/", "ftp://example.com/", "example.com",
        "javascript:alert(1)", "https://exa mple.com",
        "https://user@example.com/", "https://user:word@example.com/", "https://example.com/#part",
        "https://example.com/\n", "https://ex\u00e4mple.com/", "https://example.com:0/", "https://example.com:99999/",
        "https://[::1]/", "https://[::ffff:8.8.8.8]/", "https://127.0.0.1/", "https://10.1.2.3:8443/", "https://127.1/",
        "https://2130706433/", "https://169.254.169.254/latest/meta-data", "https://[fe80::1%25eth0]/",
        "https://127.0.0.1./", "https://[", "https://example.com/" + "a" * 2000,
    ],
)  # fmt: skip
def test_an_address_that_no_webhook_may_have(url):
    with pytest.raises(Invalid):
        checked_url(url, allow_private=False)


@pytest.mark.parametrize("url", ["https://example.com", "https://example.com:8443/a?b=c%20d", "https://1.1.1.1/hook"])
def test_an_address_that_a_webhook_may_have(url):
    assert checked_url(url, allow_private=False) == url


def test_private_addresses_and_http_are_for_the_setting():
    assert checked_url("http://127.0.0.1:8080/", allow_private=True) == "http://127.0.0.1:8080/"
    with pytest.raises(Invalid):
        checked_url("file:///etc/passwd", allow_private=True)


# The webhook


def create(**changes):
    fields = {
        "organization_id": "o", "project_id": None, "events": ("job.failed", "job.active"), "url": "https://example.com/",
        "secret": SECRET, "allow_private": False, "now": NOW,
    }  # fmt: skip
    return CreateWebhook(**{**fields, **changes})


def when(history, command):
    state = webhooks.Absent()
    for event in history:
        state = webhooks.evolve(state, event)
    return webhooks.decide(command, state)


CREATED = WebhookCreated("o", None, ("job.active", "job.failed"), "https://example.com/", SECRET, NOW)


def test_a_webhook_is_created_once():
    assert when([], create()) == [CREATED]
    with pytest.raises(Conflict):
        when([CREATED], create())
    with pytest.raises(Invalid):
        when([], create(events=()))
    with pytest.raises(Invalid):
        when([], create(url="http://example.com/"))


def test_a_webhook_is_disabled_enabled_and_deleted():
    disabled = WebhookDisabled("gone", NOW)
    assert when([CREATED], DisableWebhook("gone", NOW)) == [disabled]
    assert when([CREATED, disabled], DisableWebhook("failing", NOW)) == []
    assert when([CREATED, disabled], EnableWebhook(NOW)) == [WebhookEnabled(NOW)]
    assert when([CREATED], EnableWebhook(NOW)) == []
    assert when([CREATED], DeleteWebhook(NOW)) == [WebhookDeleted(NOW)]
    for command in (DeleteWebhook(NOW), EnableWebhook(NOW), DisableWebhook("gone", NOW)):
        with pytest.raises(NotFound):
            when([CREATED, WebhookDeleted(NOW)], command)
        with pytest.raises(NotFound):
            when([], command)


def test_events_of_a_webhook_are_changed_in_one_order():
    changed = WebhookChanged(("job.active", "job.completed"), NOW)
    assert when([CREATED], ChangeWebhook(("job.completed", "job.active"), NOW)) == [changed]
    assert when([CREATED, changed], ChangeWebhook(("job.completed", "job.active"), NOW)) == []
    assert when([CREATED], ChangeWebhook(("job.failed", "job.active"), NOW)) == []
    with pytest.raises(Invalid):
        when([CREATED], ChangeWebhook((), NOW))


def test_secret_of_someone_else_has_the_form_of_a_secret():
    given = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert checked_secret(given) == given
    for wrong in ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_%", "whsec_" + "A" * 96):
        with pytest.raises(Invalid):
            checked_secret(wrong)


def test_of_a_deleted_webhook_nothing_is_kept():
    state = webhooks.evolve(Webhook("o", "https://example.com/", SECRET, ("job.failed",)), WebhookDeleted(NOW))
    assert state == Deleted()


# The delivery


def attempt(status, *, error="", at=NOW, retry_after=None, jitter=0.0):
    return RecordAttempt("w", "j", "job.active", status, error, 0.25, retry_after, jitter, at)


def tried(*commands):
    state = Waiting()
    events = []
    for command in commands:
        new = deliveries.decide(command, state)
        for event in new:
            state = deliveries.evolve(state, event)
        events += new
    return events, state


def test_a_delivery_is_tried_on_the_specifications_schedule():
    at, state, found = NOW, Waiting(), []
    while isinstance(state, Waiting):
        assert state.is_due(at)
        (event,) = deliveries.decide(attempt(500, at=at), state)
        state = deliveries.evolve(state, event)
        found.append((at - NOW).total_seconds())
        if event.next_attempt_at is not None:
            assert not state.is_due(at)
            at = event.next_attempt_at
    assert found == [0, 5, 305, 2105, 9305, 27305, 63305, 113705]
    assert state == Ended("exhausted")


@given(number=st.integers(1, len(DELAYS_SECONDS)), jitter=st.floats(0, 1), retry_after=st.floats(0, 10**9))
def test_jitter_and_retry_after_only_make_it_later(number, jitter, retry_after):
    plain = DELAYS_SECONDS[number - 1]
    assert plain <= retry_delay(number, jitter).total_seconds() <= plain * 1.2
    asked = retry_delay(number, jitter, retry_after_seconds=retry_after).total_seconds()
    assert min(retry_after, 24 * 3600) <= asked + 1e-5
    assert asked <= max(plain * 1.2, 24 * 3600)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_status_of_the_two_hundreds_ends_it(status):
    events, state = tried(attempt(status))
    assert (events[0].outcome, events[0].next_attempt_at, state) == ("delivered", None, Ended("delivered"))


@pytest.mark.parametrize("status", [None, 100, 301, 302, 307, 400, 401, 404, 408, 429, 500, 502, 503, 504])
def test_any_other_status_is_tried_again(status):
    (event,), _ = tried(attempt(status, error="" if status else "timed_out"))
    assert (event.outcome, event.next_attempt_at) == ("retry", NOW + timedelta(seconds=5))


def test_gone_is_final():
    (event,), state = tried(attempt(410))
    assert (event.outcome, state) == ("gone", Ended("gone"))


def test_retry_after_holds_up_everything_to_that_webhook():
    (event,), _ = tried(attempt(503, retry_after=90))
    assert event.next_attempt_at == event.hold_until == NOW + timedelta(seconds=90)
    assert tried(attempt(200, retry_after=90))[0][0].hold_until is None


def test_delivery_requested_again_begins_again():
    events, state = tried(attempt(500), attempt(200), RequestDelivery("w", NOW))
    assert events[-1] == DeliveryRequested("w", NOW)
    assert state == Waiting()
    assert state.is_due(NOW)


def test_two_processes_record_one_arrival():
    events, _ = tried(attempt(200), attempt(200))
    assert len(events) == 1
    assert isinstance(events[0], DeliveryAttempted)


def test_an_event_has_one_id_for_each_webhook():
    assert delivery_id("w", "e") == delivery_id("w", "e") != delivery_id("w2", "e")
    assert delivery_id("w", "e").startswith("msg_")
    assert "." not in delivery_id("w", "e")
