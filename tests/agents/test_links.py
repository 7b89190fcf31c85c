"""Links of a page, as an agent gets them."""

from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ports.search_index import Page
from service.retrieval.site.page_addresses import AddressedPage, PageAddresses
from service.web.agents.links import MAX_CHARACTERS, with_markdown_links
from service.web.http.site_addresses import markdown_path, urls_of

SITE = PageAddresses(
    [
        AddressedPage("/", "docs/index.md", "[]"),
        AddressedPage("/guides/", "docs/guides/index.md", "[]"),
        AddressedPage("/guides/first", "docs/guides/first.md", '["delay"]'),
        AddressedPage("/api/call", "docs/reference/call.mdx", "[]"),
        AddressedPage("/staff", "docs/staff.md", "[]", frozenset(("staff",))),
    ]
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[a](first.md)", "[a](https://x/guides/first.md)"),
        ("[a](./first.md#delay)", "[a](https://x/guides/first.md#delay)"),
        ("[a](first)", "[a](https://x/guides/first.md)"),
        ("[a](../reference/call.mdx)", "[a](https://x/api/call.md)"),
        ("[a](/api/call/ 'title')", "[a](https://x/api/call.md 'title')"),
        ("[a](</guides/first>) and [b](/)", "[a](<https://x/guides/first.md>) and [b](https://x/index.md)"),
        ("[a][r]\n\n[r]: first.md", "[a][r]\n\n[r]: https://x/guides/first.md"),
        ('<a href="/guides/first">a</a>', '<a href="https://x/guides/first.md">a</a>'),
        ("[a](https://example.com/guides/first)", None),
        ("[a](mailto:a@example.com) [b](#delay) [c](//example.com/first)", None),
        ("[a](/nowhere/at/all) ![b](first.png)", None),
        ("[a](/staff)", None),
        ("`[a](first.md)`\n\n```md\n[a](first.md)\n```", None),
        ("[a](first.md" + " " * 2 + "[b](" * 50, None),
        ("[a](first.md)" + "\nx" * MAX_CHARACTERS, None),
    ],
)
def test_link_within_the_site_leads_to_markdown(written, expected):
    page = Page("docs/guides/index.md", "/guides/", "Guides", f"# Guides\n\n{written}\n")
    assert with_markdown_links(page, SITE, "https://x/") == f"# Guides\n\n{expected or written}\n"


@given(st.lists(st.text("aA1é日 .,()&=+~-_", min_size=1).filter(lambda part: set(part) != {"."}), max_size=4))
def test_address_of_a_page_leads_back_to_it(parts):
    url = "/" + "/".join(parts)
    assert url in urls_of(unquote(markdown_path(url)))
    sent = quote(url)  # as a live site has it
    assert sent in urls_of(unquote(markdown_path(sent)))
