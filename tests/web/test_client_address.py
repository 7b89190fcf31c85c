"""Whose request it is, behind proxies and before them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.access.callers import address_of, is_within
from service.web.http.connections.client_address import MAX_HOPS, Proxies, read_address

TRUSTED = Proxies.of("10.0.0.0/8, 2001:db8::/32", "X-Forwarded-For")
FORWARDED = Proxies.of(["10.0.0.0/8"], "Forwarded")


@pytest.mark.parametrize(
    ("remote", "lines", "client"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),  # not a proxy of ours: its word counts for nothing
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1, 203.0.113.9"], "203.0.113.9"),  # what stands before it is the caller's own
        ("10.0.0.1", ["1.1.1.1, 203.0.113.9, 10.2.3.4"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1", "203.0.113.9", "10.2.3.4"], "203.0.113.9"),
        ("10.0.0.1", ["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
        ("::ffff:10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("2001:db8::1", ["[2001:470::1]:443"], "2001:470::1"),
        ("10.0.0.1", ["2001:470::1"], "2001:470::1"),
        ("10.0.0.1", ["203.0.113.9, garbage"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9, garbage, 10.9.9.9"], "10.9.9.9"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("", ["203.0.113.9"], "0.0.0.0"),
        (None, [], "0.0.0.0"),
    ],
)
def test_the_rightmost_that_is_not_trusted(remote, lines, client):
    assert str(read_address(remote, lines, TRUSTED)) == client


@pytest.mark.parametrize(
    ("line", "client"),
    [
        ("for=203.0.113.9", "203.0.113.9"),
        ('For="[2001:470::1]:4711";proto=https', "2001:470::1"),
        ("for=1.1.1.1, by=x;for=203.0.113.9;proto=http", "203.0.113.9"),
        ("for=203.0.113.9, for=10.1.1.1", "203.0.113.9"),
        ("for=unknown", "10.0.0.1"),
        ("for=_hidden", "10.0.0.1"),
        ("xfor=203.0.113.9", "10.0.0.1"),
        ('for="203.0.113.9', "10.0.0.1"),
    ],
)
def test_the_header_that_has_a_standard(line, client):
    assert str(read_address("10.0.0.1", [line], FORWARDED)) == client


@given(st.lists(st.text(max_size=80), max_size=5))
def test_garbage_is_harmless(lines):
    for proxies in (TRUSTED, FORWARDED):
        found = read_address("10.0.0.1", lines, proxies)
        assert address_of(str(found)) == found


@given(st.lists(st.ip_addresses(), max_size=8))
def test_addresses_named_by_an_untrusted_one_are_ignored(named):
    line = ", ".join([*map(str, named), "203.0.113.9"])
    assert str(read_address("10.0.0.1", [line], TRUSTED)) == "203.0.113.9"
    assert not is_within(read_address("192.0.2.1", [line], TRUSTED), TRUSTED.trusted)


def test_a_list_without_end_is_read_from_its_right_end_only():
    assert str(read_address("10.0.0.1", [", ".join(["203.0.113.9"] + ["10.0.0.2"] * MAX_HOPS)], TRUSTED)) == "10.0.0.2"
