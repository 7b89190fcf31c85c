"""The pages of a site as Markdown, as agents and people's browsers ask for them."""

import pytest

from tests.agents.conftest import ORIGIN, SECRET

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    "path",
    ["guides/first.md", "guides/first", "guides/first/", "/guides/first.md"],
)
async def test_page_is_read_as_markdown(read, path):
    status, headers, text = await read(f"sites/open/{path}")
    assert status == 200
    assert headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert headers["Link"] == f'<{ORIGIN}/guides/first>; rel="canonical"'
    assert text == "# First [steps]\n\nSend a job with `kite send`.\n"


async def test_root_page_is_named_index(read):
    assert (await read("sites/open/index.md"))[2].startswith("# Kite\n")
    assert (await read("sites/open/"))[2].startswith("# Kite\n")


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (BROWSER, 302),
        ("text/html", 302),
        ("text/markdown", 200),
        ("text/markdown, text/html", 200),
        ("text/html;q=0.8, text/markdown;q=0.9", 200),
        ("text/html, text/markdown;q=0.5", 302),
        ("text/html;q=nonsense, text/markdown;q=0", 302),
        ("*/*", 200),
        ("", 200),
    ],
)
async def test_browser_is_sent_to_the_page_on_its_site(read, accept, status):
    found, headers, _ = await read("sites/open/guides/first", Accept=accept)
    assert found == status
    assert "Accept" in headers["Vary"]
    if status == 302:
        assert headers["Location"] == f"{ORIGIN}/guides/first"


async def test_markdown_address_is_markdown_for_browsers(read):
    assert (await read("sites/open/guides/first.md", Accept=BROWSER))[0] == 200


async def test_page_is_not_sent_again(read):
    _, headers, _ = await read("sites/open/guides/first.md")
    again, _, text = await read("sites/open/guides/first.md", If_None_Match=headers["ETag"])
    assert (again, text) == (304, "")
    assert headers["Cache-Control"] == "no-cache"
    other, _, _ = await read("sites/open/guides/second.md", If_None_Match=headers["ETag"])
    assert other == 200


@pytest.mark.parametrize(
    "path", ["nowhere.md", "nowhere", "staff.md", "staff", "x" * 3_000, "..%2f..%2fevents.db", "%00"]
)
async def test_page_that_is_not_there_is_not_found(read, path):
    status, _, text = await read(f"sites/open/{path}")
    assert status == 404
    assert SECRET not in text


@pytest.mark.parametrize("path", ["index.md", "llms.txt", "llms-full.txt", "nowhere.md"])
async def test_private_site_answers_as_one_that_is_not_there(read, path):
    (status, _, private), (other, _, missing) = await read(f"sites/kite/{path}"), await read(f"sites/no-site/{path}")
    assert status == other == 401
    assert private.replace("x", "")[:60] == missing.replace("x", "")[:60]
    assert "kite" not in private.lower()


async def test_key_opens_its_own_site(read, service):
    key = {"Authorization": f"Bearer {service.assistant_key}"}
    status, headers, text = await read("sites/kite/retry.md", **key)
    assert (status, text[:9]) == (200, "# Retries")
    assert headers["Cache-Control"] == "private, no-cache"
    assert "Link" not in headers  # where people read it is not known
    assert (await read("sites/kite/retry", Accept=BROWSER, **key))[0] == 200
    assert (await read("sites/kite/staff.md", **key))[0] == 404
    assert (await read("sites/open/retry.md", **key))[0] == 403
    assert (await read("sites/kite/retry.md", Authorization=f"Bearer {service.admin_key}"))[0] == 403


@pytest.mark.parametrize(
    ("headers", "status", "allowed"),
    [
        ({"Origin": ORIGIN}, 200, ORIGIN),
        ({"Origin": "https://evil.example"}, 403, "*"),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 200, None),
    ],
)
async def test_listed_website_may_fetch_a_page(read, headers, status, allowed):
    found, answered, _ = await read("sites/open/retry.md", **headers)
    assert found == status
    assert allowed is None or answered["Access-Control-Allow-Origin"] == allowed


async def test_foreign_host_name_is_refused(read):
    assert (await read("sites/open/retry.md", Host="evil.example"))[0] == 421
