"""One service with a public and a private site, for the tests of what agents read."""

import asyncio
import json

import aiohttp
import pytest

from tests.end_to_end.fuzzing import UNLIMITED
from tests.service_process import DOCS, service_in, write_docs

ORIGIN = "https://docs.example.com"
SECRET = "the vault code is 9417"
PAGES = {
    **DOCS,
    "guides/first.md": "---\ntitle: First [steps]\ndescription: Begin here.\n---\n\nSend a job with `kite send`.\n",
    "guides/second.md": "# Second steps\n\nSee [the first](first.md).\n",
    "staff.md": f"---\ntitle: Staff\ngroups: [staff]\n---\n\n# Staff\n\nFor staff, {SECRET}.\n",
}


@pytest.fixture(scope="package")
def service(tmp_path_factory):
    """Two sites of the same pages: ``kite``, which is private, and ``open``, which is public."""
    folder = tmp_path_factory.mktemp("agents")
    docs = write_docs(folder / "docs", PAGES)
    with service_in(folder, UNLIMITED) as service:
        service.set_up(docs)
        service.cli("project", "create", "--name", "Open Kite", "--repository", str(docs), "--domain", "open")
        service.cli("index", "open")
        service.cli("site", "update", "open", "--public", "--origin", ORIGIN)
        service.start()
        yield service


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as session:
        yield session


@pytest.fixture
def read(service, http):
    """A function that gets a path of the service: status, headers, text. No redirect is followed."""

    async def get(path, method="GET", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"{service.url}/{path}"
        async with asyncio.timeout(300), http.request(method, url, headers=named, allow_redirects=False) as answer:
            return answer.status, answer.headers, await answer.text()

    return get


@pytest.fixture
def read_json(read):
    async def get(path, **headers):
        status, answered, text = await read(path, **headers)
        return status, answered, json.loads(text)

    return get
