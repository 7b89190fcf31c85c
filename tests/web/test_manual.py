"""The manual: its pages lead to each other on a code host and over HTTP."""

import html
import itertools
import json
import re
import typing
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from markdown_it import MarkdownIt
from yarl import URL

from service.domain.access.names import Names
from service.markup.slugs import slug
from service.runtime.settings.settings import ModelSection, OidcSection, Settings
from service.web.http.access.hosts import NAMES
from service.web.http.answers import errors
from service.web.http.entrance import Entrance
from service.web.pages import manual, pull_requests, reference

MANUAL = Path(__file__).parent.parent.parent / "service" / "manual"
PAGES = sorted(file.name for file in MANUAL.glob("*.md"))


def anchors_of(text: str) -> set[str]:
    tokens = MarkdownIt("commonmark").parse(text)
    titles = (after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open")
    return {slug(re.sub("[`*]", "", title)) for title in titles}


def links_of(text: str) -> list[str]:
    inline = [child for token in MarkdownIt("commonmark").enable("table").parse(text) for child in token.children or ()]
    return [str(one.attrs.get("href") or one.attrs.get("src")) for one in inline if one.type in ("link_open", "image")]


@pytest.mark.parametrize("page", PAGES)
def test_each_link_of_a_page_leads_somewhere(page):
    for link in links_of((MANUAL / page).read_text("utf-8")):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        assert (MANUAL / (target or page)).is_file(), link
        assert not anchor or anchor in anchors_of((MANUAL / (target or page)).read_text("utf-8")), link


def test_links_of_other_pages_into_the_manual_lead_somewhere():
    templates = MANUAL.parent.glob("web/**/templates/**/*.html")
    links = [
        link
        for file in templates
        for link in re.findall(r'href="[^"]*manual/([a-z-]+)(#[a-z-]+)?"', file.read_text("utf-8"))
    ]
    assert ("configuration", "") in links
    for page, anchor in links:
        assert f"{page}.md" in PAGES, page
        assert anchor[1:] in {"", *anchors_of((MANUAL / f"{page}.md").read_text("utf-8"))}, anchor


def test_the_index_leads_to_each_page():
    assert set(links_of((MANUAL / "index.md").read_text("utf-8"))) >= {*PAGES} - {"index.md"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_a_title_and_a_description(page):
    text = (MANUAL / page).read_text("utf-8")
    found = re.match(r"---\ntitle: (.+)\ndescription: .+\.\n---\n\n# (.+)\n", text)
    assert found is not None
    assert found[1] == found[2]


SECTIONS = {**typing.get_type_hints(Settings), "models": ModelSection, "sign_in": OidcSection}


@pytest.mark.parametrize("name", SECTIONS)
def test_the_manual_lists_each_setting_and_its_default(name):
    heading = {"models": "models.NAME", "sign_in": "sign_in.oidc"}.get(name, name)
    section = (MANUAL / "configuration.md").read_text("utf-8").split(f"## `[{heading}]`\n")[1].split("\n## ")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+?) \| .+\. \|$", section, re.MULTILINE))
    assert listed == {field.name: default_of(field) for field in msgspec.structs.fields(SECTIONS[name])}


def default_of(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    if field.default is None:
        return "not set"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"`{json.dumps(default)}`"


# Over HTTP


@pytest.fixture
async def client(aiohttp_client):
    app = web.Application(middlewares=[Entrance().enter])
    app[NAMES] = Names("https://docs.example.com", "127.0.0.1")
    for routes in (manual.routes, reference.routes, errors.routes, pull_requests.routes):  # the last: the style sheet
        app.add_routes(routes)
    return await aiohttp_client(app)


def addresses_on(page: str) -> set[str]:
    """The links and assets of a page, but those to the start page and the dashboard."""
    found = re.findall(r'(?:href|src)="([^"]+)"', page)
    return {html.unescape(one) for one in found if "://" not in one and not re.fullmatch(r"[./]+(dashboard)?", one)}


async def test_each_page_and_each_of_its_links_is_served(client):
    open_addresses, seen = {URL("/manual")}, dict[URL, str]()
    while open_addresses:
        address = open_addresses.pop()
        response = await client.get(address)
        assert response.status == 200, address
        if response.content_type != "text/html":
            continue
        has_script = "script-src" in response.headers["Content-Security-Policy"]
        assert has_script == ("/errors/" not in address.path)
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        seen[address] = await response.text()
        for link in addresses_on(seen[address]):
            open_addresses |= {address.join(URL(link)).with_fragment(None)} - seen.keys()
    for address, page in seen.items():
        for link in map(URL, addresses_on(page)):
            target = seen.get(address.join(link).with_fragment(None), "")
            assert not link.fragment or f'id="{link.fragment}"' in target, (address, link)
    served = {address.path for address in seen if address.path.startswith("/manual")}
    assert served == {"/manual", *(f"/manual/{name.removesuffix('.md')}" for name in PAGES)} - {"/manual/index"}


@pytest.mark.parametrize("path", ["nothing", "index", "start.md", "images/nothing.png", "../start", "%2e%2e%2fcss"])
async def test_a_page_that_is_not_there_is_not_found(client, path):
    assert (await client.get(URL(f"/manual/{path}", encoded=True))).status == 404


async def test_the_page_at_hand_is_marked_in_the_contents(client):
    page = await (await client.get("/manual/audit")).text()
    assert set(re.findall(r'aria-current="page">(\w+)<', page)) == {"Audit"}
    assert "<title>Audit · Docsmith</title>" in page
    assert page.count("<h1") == 1


async def test_contents_have_each_page_in_one_group(client):
    grouped = [file for group in manual.groups() for file in group.pages]
    assert sorted(grouped) == PAGES
    assert [group.title for group in manual.groups()][:2] == ["", "Begin"]
    page = await (await client.get("/manual")).text()
    assert all(f"<p>{group.title}</p>" in page for group in manual.groups()[1:])


async def test_pages_lead_on_in_the_order_of_the_contents(client):
    address, seen = URL("/manual"), []
    while address is not None:
        page = await (await client.get(address)).text()
        assert ('rel="prev"' in page) == bool(seen)
        seen.append(address.path)
        found = re.search(r'rel="next" href="([^"]+)"', page)
        address = address.join(URL(found[1])) if found else None
    assert len(seen) == len(PAGES)


async def test_page_lists_its_parts(client):
    page = await (await client.get("/manual/audit")).text()
    parts = re.findall(r'<li><a href="#([^"]+)">', page.split('aria-label="On this page"')[1])
    assert parts
    assert parts == re.findall(r'<h2 id="([^"]+)"', page)


async def test_code_of_a_page_has_a_copy_button(client):
    page = await (await client.get("/manual/start")).text()
    assert page.count("<pre") == page.count("data-copy=") > 3
    assert 'data-copy="docsmith demo --exit"' in page


async def test_the_page_of_an_error_is_its_section_of_the_manual(client):
    address = URL("/docs/errors/restored_copy")
    page = await (await client.get(address)).text()
    assert "<h1>The data folder is a restored copy</h1>" in page
    assert "<p>Its original may still run." in page
    for link in addresses_on(page):
        assert (await client.get(address.join(URL(link)))).status == 200, link
    assert (await client.get("/docs/errors/nothing")).status == 404
