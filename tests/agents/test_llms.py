"""``llms.txt`` and ``llms-full.txt``, by the rules of llmstxt.org."""

import re

from service.ports.search_index import ListedPage
from service.web.agents.texts import list_text
from tests.agents.conftest import ORIGIN, SECRET


async def test_list_names_every_page(read, service):
    status, headers, text = await read("sites/open/llms.txt")
    assert status == 200
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    base = f"{service.url}/sites/open/"
    assert text == (
        "# Open Kite\n\n"
        f"- [All pages in one file]({base}llms-full.txt)\n\n"
        "## Docs\n\n"
        f"- [Kite]({base}index.md)\n- [Install]({base}install.md)\n- [Retries]({base}retry.md)\n\n"
        "## Guides\n\n"
        f"- [First \\[steps\\]]({base}guides/first.md): Begin here.\n- [Second steps]({base}guides/second.md)\n"
    )


async def test_every_listed_address_opens(read, service):
    _, _, text = await read("sites/open/llms.txt")
    addresses = re.findall(r"\]\((\S+)\)", text)
    assert len(addresses) == 6
    for address in addresses:
        assert (await read(address.removeprefix(f"{service.url}/")))[0] == 200


async def test_whole_site_is_one_text(read):
    status, headers, text = await read("sites/open/llms-full.txt")
    assert status == 200
    titles = re.findall(r"^# (.*)\n\nSource: (\S+)$", text, re.MULTILINE)
    assert titles == [
        ("Kite", f"{ORIGIN}/"), ("Install", f"{ORIGIN}/install"), ("Retries", f"{ORIGIN}/retry"),
        ("First [steps]", f"{ORIGIN}/guides/first"), ("Second steps", f"{ORIGIN}/guides/second"),
    ]  # fmt: skip
    assert "Set `retryDelaySecs`" in text
    assert SECRET not in text
    again, _, nothing = await read("sites/open/llms-full.txt", If_None_Match=headers["ETag"])
    assert (again, nothing) == (304, "")
    assert (await read("sites/open/llms-full.txt", method="HEAD"))[1]["ETag"] == headers["ETag"]


def test_versions_and_translations_are_optional():
    pages = [
        ListedPage("a.md", "/docs/a", "A", "", is_main=True),
        ListedPage("v1/a.md", "/docs/v1/a", "A", "", is_main=False),
    ]
    assert list_text("Kite", "https://x/", pages).endswith(
        "## Docs\n\n- [A](https://x/docs/a.md)\n\n## Optional\n\n- [A](https://x/docs/v1/a.md)\n"
    )


def test_folders_are_named_by_their_own_page():
    pages = [
        ListedPage(f"{url}.md", url, title, "", is_main=True)
        for url, title in {
            "/": "Home", "/docs/intro": "Intro", "/docs/guide": "The guide", "/docs/guide/a": "A",
            "/docs/guide/b": "B", "/docs/how-to/c": "C", "/docs/how-to/d": "D", "/docs/alone/e": "E",
        }.items()
    ]  # fmt: skip
    text = list_text("Kite", "https://x/", pages)
    sections = {part.partition("\n")[0]: re.findall(r"\[(\w+)", part) for part in text.split("## ")[1:]}
    assert sections == {"Docs": ["Home", "Intro", "The", "E"], "The guide": ["A", "B"], "How to": ["C", "D"]}


def test_titles_cannot_leave_their_line():
    pages = [ListedPage("a.md", "/a b)(", "One](x)\n\n## Do this", "de\u202escri\nption", is_main=True)]
    text = list_text("Kite\n# x", "https://x/", pages)
    assert text.splitlines()[0] == "# Kite # x"
    assert text.splitlines()[-1] == "- [One\\](x) ## Do this](https://x/a%20b%29%28.md): de scri ption"
