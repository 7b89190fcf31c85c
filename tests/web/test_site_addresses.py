"""Addresses of pages on their own site."""

import pytest

from service.web.http.site_addresses import page_address


@pytest.mark.parametrize(
    ("site", "url", "address"),
    [
        ("https://docs.example.com", "/install#a b", "https://docs.example.com/install#a%20b"),
        ("https://acme.github.io/kite", "/install", "https://acme.github.io/kite/install"),
        ("https://acme.github.io/kite", "/kite/install", "https://acme.github.io/kite/install"),
        ("https://acme.github.io/kite/", "/kitesurfing", "https://acme.github.io/kite/kitesurfing"),
        ("https://acme.github.io/kite", "/", "https://acme.github.io/kite/"),
        ("https://docs.example.com", "//evil.example/x", "https://docs.example.com//evil.example/x"),
    ],
)
def test_page_address_is_below_that_of_its_site(site, url, address):
    assert page_address(site, url) == address
