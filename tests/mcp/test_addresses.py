"""The pages of whole sites, by their ids: each opens, and its address is the one that the site's generator gives it."""

import asyncio
import json
import re
from hashlib import sha256
from urllib.parse import unquote

import pytest
from msgspec import Struct

from scripts.oracle.compare import SAMPLES, samples, written
from tests.end_to_end.fuzzing import UNLIMITED
from tests.mcp.client import Client
from tests.service_process import service_in, write_docs

pytestmark = pytest.mark.slow

SITE = "https://docs.example.com"
BUILT = [(folder.name, sample) for folder in sorted(SAMPLES.iterdir()) for sample in samples(folder.name)]
SECTIONS, PAGES = 26, 20
AT_ONCE = 8


def bare(url):
    """An address without what differs by a server's settings alone."""
    return unquote(url).rstrip("/")


class Written(Struct):
    """A page of a large site."""

    path: str
    address: str
    word: str
    """One that no other page has."""


def word_of(name):
    """A word that is near to no other one."""
    return "".join(chr(ord("a") + byte % 26) for byte in sha256(name.encode()).digest()[:12])


def docusaurus():
    """Return files and pages, addressed as Docusaurus does: numbers go, an index is its folder, a slug rules."""
    files, pages = {"docusaurus.config.js": "module.exports = {title: 'Boats', url: 'https://x.example'};\n"}, []
    for section in range(SECTIONS):
        for page in range(PAGES):
            name, head = (f"{page:02}-page-{page}", "") if page else ("index", "")
            url = f"/docs/section-{section}/page-{page}" if page else f"/docs/section-{section}/"
            if page == 7:
                head, url = f"---\nslug: /chosen/{section}\n---\n\n", f"/docs/chosen/{section}"
            one = Written(
                f"docs/{section:02}-section-{section}/{name}.md", SITE + url, word_of(f"docusaurus {section} {page}")
            )
            files[one.path] = f"{head}# Boat\n\nThe word is {one.word}.\n"
            pages.append(one)
    return files, pages, SITE


def mkdocs():
    """Return files and pages, addressed as MkDocs does: a folder for each page, below the site's own."""
    files, pages = {"mkdocs.yml": "site_name: Boats\n"}, []
    for section in range(SECTIONS):
        for page in range(PAGES):
            path = f"docs/{section:02}-section/{f'Page_{page}' if page else 'index'}.md"
            url = f"/manual/{section:02}-section/" + (f"Page_{page}/" if page else "")
            pages.append(Written(path, SITE + url, word_of(f"mkdocs {section} {page}")))
            files[path] = f"# Boat\n\nThe word is {pages[-1].word}.\n"
    return files, pages, f"{SITE}/manual"


@pytest.fixture(scope="module")
def large():
    """The pages of the large sites, by domain."""
    return {"large-docusaurus": docusaurus(), "large-mkdocs": mkdocs()}


@pytest.fixture(scope="module")
def service(tmp_path_factory, large):
    """A service with the large sites and all samples, whose indexes it makes."""
    folder = tmp_path_factory.mktemp("addresses")
    sites = [(domain, write_docs(folder / domain, files), url, "") for domain, (files, _, url) in large.items()]
    for name, sample in BUILT:
        sites.append((f"{name}-{sample}", SAMPLES / name / sample, SITE, written(name, sample).docs_folder))
    projects = [
        {"domain": domain, "repository": str(docs), "site_url": url, "docs_folder": docs_folder}
        for domain, docs, url, docs_folder in sites
    ]
    key = {"name": "Reader", "kind": "assistant", "domains": [domain for domain, *_ in sites], "token_file": "token"}
    entries = {"organization": [{"name": "Acme"}], "project": projects, "key": [key]}
    lines = (f"[[{table}]]\n{toml_lines(entry)}" for table, listed in entries.items() for entry in listed)
    (folder / "entries.toml").write_text("\n".join(lines))
    with service_in(folder, UNLIMITED) as service:
        service.cli("apply", str(folder / "entries.toml"))
        service.assistant_key = (folder / "token").read_text().strip()
        service.start()
        yield service


def toml_lines(entry):
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in entry.items() if value)


async def site_of(http, service, domain):
    """A client of a site, once it is indexed."""
    client = Client(http, f"{service.url}/mcp/{domain}", **service.assistant)
    async with asyncio.timeout(600):
        while (await client.ask("resources/list")).status == 404:  # noqa: ASYNC110  (nothing tells when)
            await asyncio.sleep(0.02)
    return client


async def all_ids(client, domain):
    """The ids of a site's pages, from the list of its resources."""
    ids, cursor = [], {}
    while True:
        listed = (await client.ask("resources/list", cursor)).result
        ids += [f"/{unquote(one['uri'].removeprefix(f'docs://{domain}/'))}" for one in listed["resources"]]
        if "nextCursor" not in listed:
            return ids
        cursor = {"cursor": listed["nextCursor"]}


async def markdown_of(http, service, domain):
    """The addresses that the Markdown of each page in llms.txt names as the page's own."""
    async with http.get(f"{service.url}/sites/{domain}/llms.txt", headers=service.assistant) as answer:
        listed = re.findall(r"\]\((\S+\.md)\)", await answer.text())
    found = []
    for address in listed:
        async with http.get(address, headers=service.assistant) as answer:
            assert answer.status == 200, address
            found.append(bare(answer.headers["Link"].partition(">")[0][1:]))
    return found


async def test_thousand_ids_of_searches_open_at_their_addresses(http, service, large):
    clients = {domain: await site_of(http, service, domain) for domain in large}
    wanted = [(clients[domain], page) for domain, (_, pages, _) in large.items() for page in pages]
    assert len(wanted) >= 1_000
    waiting, opened = iter(wanted), []

    async def open_pages():
        for client, page in waiting:
            found = (await client.call("search", query=page.word))["structuredContent"]["results"][0]
            fetched = (await client.call("fetch", id=found["id"]))["structuredContent"]
            assert (fetched["metadata"]["file"], bare(fetched["url"])) == (page.path, bare(page.address))
            assert bare(found["url"]) == bare(page.address)
            assert page.word in fetched["text"]
            opened.append(fetched["url"])

    async with asyncio.TaskGroup() as readers:
        for _ in range(AT_ONCE):
            readers.create_task(open_pages())
    assert len({*opened}) == len(wanted)
    for domain, (_, pages, _) in large.items():
        assert sorted(await markdown_of(http, service, domain)) == sorted(bare(page.address) for page in pages)


@pytest.mark.parametrize(("name", "sample"), BUILT)
async def test_addresses_are_those_that_the_generator_made(http, service, name, sample):
    domain, expected = f"{name}-{sample}", written(name, sample).pages
    client = await site_of(http, service, domain)
    addresses = {}
    for id_ in await all_ids(client, domain):
        page = (await client.call("fetch", id=id_))["structuredContent"]
        addresses[page["metadata"]["file"]] = bare(page["url"])
    assert addresses == {path: bare(SITE + page.url) for path, page in expected.items()}
    assert sorted(await markdown_of(http, service, domain)) == sorted(addresses.values())
