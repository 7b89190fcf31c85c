"""Docsmith's own manual, as an agent reads all of it."""

import re
from pathlib import Path

import pytest

import service as package
from tests.mcp.client import Client
from tests.service_process import service_in

MANUAL = Path(package.__file__).parent / "manual"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manual")
    with service_in(folder, {"DOCSMITH_LIMITS__KEY_SEARCHES_MINUTE": "0"}) as service:
        service.set_up(MANUAL)
        service.start()
        yield service


async def test_every_id_and_address_of_a_search_opens(http, manual):
    client = Client(http, f"{manual.url}/mcp/kite", **manual.assistant)
    headings = {
        line for page in MANUAL.glob("*.md") for line in re.findall(r"^##? (.+)", page.read_text("utf-8"), re.M)
    }
    found = {}
    for heading in sorted(headings):
        results = (await client.call("search", query=heading))["structuredContent"]["results"]
        found.update({result["id"]: result for result in results})
    assert len(found) > 100
    for id_, result in found.items():
        page = (await client.call("fetch", id=id_))["structuredContent"]
        assert page["text"]
        assert page["url"] == result["url"]
        async with http.get(result["url"], headers=manual.assistant) as response:
            assert response.status == 200, result
