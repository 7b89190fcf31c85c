"""Catalogs and cards of MCP servers: of public sites alone."""

import re

import pytest

from tests.agents.conftest import ORIGIN

CATALOGS = (".well-known/ai-catalog.json", ".well-known/mcp/catalog.json", ".well-known/mcp.json")


@pytest.mark.parametrize("path", CATALOGS)
async def test_catalog_lists_public_sites_alone(read_json, service, path):
    status, headers, catalog = await read_json(path)
    assert (status, headers["Access-Control-Allow-Origin"]) == (200, "*")
    assert catalog == {
        "specVersion": "1.0",
        "entries": [
            {
                "identifier": "urn:air:localhost:open",
                "displayName": "Open Kite documentation",
                "type": "application/mcp-server-card+json",
                "url": f"{service.url}/mcp/open/server-card",
            }
        ],
    }


@pytest.mark.parametrize("path", ["mcp/open/server-card", ".well-known/mcp/server-card.json"])
async def test_card_says_where_the_server_is(read_json, service, path):
    status, headers, card = await read_json(path)
    assert (status, headers["Content-Type"]) == (200, "application/mcp-server-card+json")
    assert card["$schema"] == "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", card["name"])
    assert (card["title"], card["websiteUrl"]) == ("Open Kite documentation", ORIGIN)
    (remote,) = card["remotes"]
    assert (remote["type"], remote["url"]) == ("streamable-http", f"{service.url}/mcp/open")
    assert {"2026-07-28", "2025-11-25"} <= {*remote["supportedProtocolVersions"]}


async def test_private_site_has_a_card_as_little_as_none(read_json):
    answers = [await read_json(f"mcp/{domain}/server-card") for domain in ("kite", "no-site")]
    for _, _, problem in answers:
        problem.pop("requestId")
    (status, _, private), (_, _, missing) = answers
    assert (status, private) == (404, missing)


async def test_card_agrees_with_its_server(read_json, service, http):
    _, _, card = await read_json("mcp/open/server-card")
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    async with http.post(card["remotes"][0]["url"], json=begin) as answer:
        server = (await answer.json())["result"]["serverInfo"]
    assert (server["title"], server["version"]) == (card["title"], card["version"])


@pytest.mark.parametrize(("path", "status"), [*((each, 421) for each in CATALOGS), ("mcp/open/server-card", 404)])
async def test_card_names_no_host_that_only_the_request_does(service, http, path, status):
    async with http.get(f"{service.url}/{path}", headers={"Host": "evil.example"}) as answer:
        assert (answer.status, "evil.example" in await answer.text()) == (status, False)
    async with http.get(f"{service.url}/{path}") as answer:
        assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")  # there is no public_url
