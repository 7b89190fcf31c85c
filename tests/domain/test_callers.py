"""Networks and origins of allow-lists."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.access.callers import (
    address_of,
    checked_networks,
    checked_origins,
    counted_as,
    is_origin_allowed,
    is_within,
)
from service.domain.errors import Invalid


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("192.0.2.7", "192.0.2.7/32"), ("192.0.2.7/24", "192.0.2.0/24"), (" 2001:DB8::1/32 ", "2001:db8::/32"),
        ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
    ],
)  # fmt: skip
def test_a_network_has_one_form(text, network):
    assert checked_networks([text, text]) == (network,)


@pytest.mark.parametrize("text", ["", "example.com", "192.0.2.0/33", "192.0.2", "::1%eth0/64", "1" * 400])
def test_invalid_network_is_refused(text):
    with pytest.raises(Invalid):
        checked_networks([text])


def test_an_address_within_another_is_taken_out():
    assert is_within(address_of("::ffff:192.0.2.9"), ("192.0.2.0/24",))
    assert not is_within(address_of("192.0.3.9"), ("192.0.2.0/24", "2001:db8::/32"))
    assert counted_as(address_of("2001:db8:1:2:3:4:5:6")) == counted_as(address_of("2001:db8:1:2:ffff::"))
    assert counted_as(address_of("fe80::1%eth0")) == "fe80::/64"


@given(st.ip_addresses())
def test_every_address_is_within_what_it_is_counted_as(address):
    plain = address_of(str(address))
    assert is_within(plain, checked_networks([counted_as(plain)]))


@given(st.text(max_size=60))
def test_no_text_makes_reading_an_address_fail(text):
    found = address_of(text)
    assert found is None or found == ip_address(str(found))


ALLOWED = checked_origins(
    ["docs.example.com", "https://*.example.org/", "HTTP://localhost:3000", "https://a.example:443"]
)


@pytest.mark.parametrize(
    "origin",
    [
        "https://docs.example.com", "https://x.example.org", "https://a-1.b.example.org", "http://localhost:3000",
        "https://a.example",
    ],
)  # fmt: skip
def test_an_origin_of_the_list(origin):
    assert is_origin_allowed(origin, ALLOWED)


@pytest.mark.parametrize(
    "origin",
    [
        "", "null", "http://docs.example.com", "https://docs.example.com:8443", "https://docs.example.com.evil.example",
        "https://example.org", "https://evilexample.org", "https://.example.org", "https://evil/.example.org",
        "https://evil.example?.example.org", "https://evil@x.example.org", "http://localhost", "https://x..example.org",
        "https://x.example.org\n", "https://" + "a." * 300 + "example.org",
    ],
)  # fmt: skip
def test_any_other_origin(origin):
    assert not is_origin_allowed(origin, ALLOWED)


@pytest.mark.parametrize(
    "text", ["", "*", "https://*", "*.com", "https://*.com", "ftp://x.example", "https://x.example/path", "a.*.example"]
)
def test_invalid_origin_is_refused(text):
    with pytest.raises(Invalid):
        checked_origins([text])
