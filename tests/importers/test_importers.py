"""What Postman and Bruno make of the served description, by the converters that they import with."""

import asyncio
import json
import re
from pathlib import Path

import aiohttp
import msgspec
import pytest

from service.web.api.description.description import OPERATIONS
from tests.node_packages import require_packages
from tests.service_process import service_in, write_docs

HERE = Path(__file__).parent
TOOLS = ("postman", "bruno")

pytestmark = [pytest.mark.slow, pytest.mark.node]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


@pytest.fixture
async def http():
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def imported(service, http):
    require_packages(HERE)
    async with http.get(f"{service.url}/openapi.json") as response:
        document = await response.read()
    pipe = asyncio.subprocess.PIPE
    node = await asyncio.create_subprocess_exec("node", "import.mjs", cwd=HERE, stdin=pipe, stdout=pipe, stderr=pipe)
    found, complaint = await node.communicate(document)
    assert node.returncode == 0, complaint.decode()
    return json.loads(found)


async def test_importers_find_every_operation_and_the_server(service, imported):
    described = {(one.method, re.sub(r"{(\w+)}", r":\1", one.path)) for one in OPERATIONS}
    for tool in TOOLS:
        requests = imported[tool]["requests"]
        assert {(one["method"], one["path"]) for one in requests} == described, tool
        assert {one["host"] for one in requests} == {"{{baseUrl}}"}
        assert imported[tool]["base"] == service.url


async def test_importers_send_a_key_where_one_is_wanted(imported):
    for tool in TOOLS:
        keys = {(one["method"], one["path"]): one["auth"] for one in imported[tool]["requests"]}
        for operation in OPERATIONS:
            auth = keys[operation.method, re.sub(r"{(\w+)}", r":\1", operation.path)]
            assert (auth == "bearer") == (operation.key is not None), (tool, operation.id)


async def test_imported_bodies_are_examples_that_work(service, http, imported):
    operations = {one.summary: one for one in OPERATIONS if one.body is not None}
    for tool in TOOLS:
        bodies = {one["name"]: one["body"] for one in imported[tool]["requests"] if one["name"] in operations}
        assert bodies.keys() == operations.keys()
        for name, body in bodies.items():
            msgspec.json.decode(body, type=operations[name].body)
        search = next(one for one in imported[tool]["requests"] if one["path"] == "/discovery/v1/search/:domain")
        url = imported[tool]["base"] + search["path"].replace(":domain", service.domain)
        headers = {**service.assistant, "Content-Type": "application/json"}
        async with http.post(url, data=search["body"], headers=headers) as response:
            assert response.status == 200, await response.text()
