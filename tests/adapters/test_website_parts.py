import gzip
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.adapters.website.parts import (
    Robots,
    absolute,
    address_of,
    file_of,
    full_pages,
    llms_pages,
    sitemap_urls,
)

BASE = "https://docs.example.com/guide/"


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("a.md", "https://docs.example.com/guide/a.md"),
        ("/b?x=1#y", "https://docs.example.com/b"),
        ("https://DOCS.example.com/c", "https://docs.example.com/c"),
        ("../../../d", "https://docs.example.com/d"),
        ("/ü b", "https://docs.example.com/%C3%BC%20b"),
        ("http://docs.example.com/c", None),
        ("https://other.example.com/c", None),
        ("//other.example.com", None),
        ("https://user@docs.example.com/", None),
        ("file:///etc/passwd", None),
        ("javascript:alert(1)", None),
        ("https://[bad", None),
        ("/" + "x" * 2000, None),
        ("/a\\b", None),
    ],
)
def test_only_the_sites_own_addresses_are_followed(href, url):
    assert absolute(BASE, href) == url


def test_robots_txt_is_obeyed():
    robots = Robots(
        "User-agent: *\nDisallow: /\n\nUser-agent: Docsmith\nDisallow: /private\nCrawl-delay: 5000\n"
        "Sitemap: https://docs.example.com/map.xml\n"
    )
    assert robots.allows("https://docs.example.com/guide")
    assert not robots.allows("https://docs.example.com/private/x")
    assert robots.delay_seconds == 10
    assert robots.sitemaps == ["https://docs.example.com/map.xml"]
    assert Robots("").allows("https://docs.example.com/")


@pytest.mark.parametrize(
    "line", ["Crawl-delay: ²", "Crawl-delay: " + "9" * 5_000, "Disallow: //[", "Sitemap: http://["]
)
def test_what_cannot_be_read_in_robots_txt_is_left_out(line):
    robots = Robots(f"User-agent: *\n{line}\nDisallow: /private\nSitemap: https://docs.example.com/map.xml\n")
    assert not robots.allows("https://docs.example.com/private/x")
    assert robots.allows("https://docs.example.com/guide")
    assert robots.sitemaps == ["https://docs.example.com/map.xml"]


def test_pages_of_llms_txt_are_its_links():
    text = "# Site\n> About\n\n- [A](/guide/a.md): about a\n- [B](b)\n"
    text += "- [A again](/guide/a.md)\n- [Spec](/openapi.json)\n- [Out](https://x.y/z)"
    assert [(one.url, one.title) for one in llms_pages(text, BASE)] == [
        ("https://docs.example.com/guide/a.md", "A"),
        ("https://docs.example.com/guide/b", "B"),
    ]


def test_llms_full_is_split_where_it_names_its_sources():
    text = "# A\nSource: https://docs.example.com/a\n\nText a.\n\n# No page\n\n"
    text += "# B\n\nSource: https://docs.example.com/b\nText b.\n"
    assert [(one.url, one.title, body) for one, body in full_pages(text, BASE)] == [
        ("https://docs.example.com/a", "A", "# A\n\n\nText a.\n\n# No page\n\n"),
        ("https://docs.example.com/b", "B", "# B\n\nText b.\n"),
    ]
    assert [body for _, body in full_pages("All in one.", BASE)] == ["All in one."]


MAP = (
    b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    b"<url><loc> %s </loc></url></urlset>"
)


def test_sitemaps_are_read_plain_or_packed():
    data = MAP % b"https://docs.example.com/a"
    assert sitemap_urls(data, BASE) == (["https://docs.example.com/a"], [])
    assert sitemap_urls(gzip.compress(data), BASE) == (["https://docs.example.com/a"], [])
    index = data.replace(b"urlset", b"sitemapindex").replace(b"<url>", b"<sitemap>").replace(b"</url>", b"</sitemap>")
    assert sitemap_urls(index, BASE) == ([], ["https://docs.example.com/a"])


@pytest.mark.parametrize("data", [b"", b"<html><body>404", b"\x1f\x8bnot", b"<a/>", b"\0\1"])
def test_invalid_sitemap_is_reported(data):
    with pytest.raises(ValueError, match="not"):
        sitemap_urls(data, BASE)


def test_a_sitemap_brings_in_no_files_and_swells_to_no_size():
    outside = (MAP % b"&x;").replace(b"?>", b'?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>', 1)
    assert sitemap_urls(outside, BASE)[0] in ([], [BASE.rstrip("/") + "/"])
    laughs = b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 30))
    swelling = (MAP % b"&a29;").replace(b"?>", b'?><!DOCTYPE a [<!ENTITY a0 "x">%s]>' % laughs, 1)
    with suppress(ValueError):
        assert len(sitemap_urls(swelling, BASE)[0]) <= 1
    bomb = gzip.compress(MAP % (b"https://docs.example.com/" + b"x" * 50_000_000))
    with suppress(ValueError):
        assert sitemap_urls(bomb, BASE) == ([], [])


@pytest.mark.parametrize(
    ("url", "address", "file"),
    [
        ("https://x.y/guide/a.md", "/guide/a", "guide/a.md"),
        ("https://x.y/guide/a.html", "/guide/a.html", "guide/a.md"),
        ("https://x.y/guide/index.html.md", "/guide/", "guide/index.md"),
        ("https://x.y/", "/", "index.md"),
        ("https://x.y/%2e%2e/../.git/x", "/%2e%2e/../.git/x", "%2e%2e/_git/x.md"),
    ],
)
def test_a_page_has_an_address_and_a_file(url, address, file):
    assert address_of(url) == address
    assert file_of(url, ".md") == file


@given(st.text(max_size=200))
def test_any_url_gives_a_safe_name(path):
    name = file_of(f"https://x.y/{path}", ".html")
    assert not name.startswith("/")
    assert not {"", ".", ".."} & set(name.split("/"))
    assert name.isprintable()
