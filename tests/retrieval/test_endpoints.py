"""Pages that a build makes of the operations of an API, where its navigation names the description."""

import json

import pytest

from tests.retrieval.sites import DOMAIN

API = {
    "openapi": "3.0.0",
    "info": {"title": "Harbour API"},
    "paths": {
        "/keys/{id}": {
            "get": {"summary": "Get API key (v1)", "tags": ["Keys"], "description": "Walnut."},
            "delete": {"tags": ["Keys"], "description": "Chestnut."},
        },
        "/keys": {"get": {"summary": "List, all.", "description": "Hazel."}},
        "/old-keys": {"get": {"summary": "Get API key (v1)", "tags": ["Keys"], "description": "Acorn."}},
        "/inner": {"get": {"summary": "Inner", "x-excluded": True, "description": "Almond."}},
        "/own": {"get": {"summary": "Own", "x-mint": {"href": "/own/Place"}, "description": "Pecan."}},
    },
}


def site(navigation, api=API):
    config = json.dumps({"name": "H", "theme": "mint", "navigation": navigation})
    return {"docs.json": config, "specs/api.json": json.dumps(api), "a.mdx": "# A\n\nText.\n"}


IN_A_TAB = {"tabs": [{"tab": "API", "openapi": "specs/api.json"}, {"tab": "Guides", "pages": ["a"]}]}


@pytest.mark.parametrize(
    ("word", "address"),
    [
        ("walnut", "/api-reference/keys/get-api-key-v1"),
        ("acorn", "/api-reference/keys/get-api-key-v1-1"),
        ("chestnut", "/api-reference/keys/delete-keys"),
        ("hazel", "/api-reference/list-all"),
        ("pecan", "/own/place"),
        ("almond", "/specs/api.json#get-inner"),
    ],
)
async def test_operation_is_cited_at_the_page_that_is_made_of_it(indexed, word, address):
    await indexed.fill(site(IN_A_TAB))
    (section,) = (await indexed.index.search(DOMAIN, word)).sections
    assert section.url == address


@pytest.mark.parametrize(
    ("navigation", "addresses"),
    [
        (
            {"groups": [{"group": "G", "openapi": {"source": "/specs/api.json", "directory": "ref/Two"}}]},
            {"walnut": "/ref/two/keys/get-api-key-v1", "hazel": "/ref/two/list-all"},
        ),
        (
            {"groups": [{"group": "G", "openapi": "specs/api.json", "pages": ["a", "GET /keys"]}]},
            {"walnut": "/specs/api.json#get-keysid", "hazel": "/api-reference/list-all"},
        ),
        ({"pages": ["a", "specs/api.json get /keys/{id}"]}, {"walnut": "/api-reference/keys/get-api-key-v1"}),
        ({"tabs": [{"tab": "API", "openapi": ["specs/api.json"]}]}, {"hazel": "/api-reference/list-all"}),
    ],
)
async def test_navigation_says_which_operations_have_pages_and_where(indexed, navigation, addresses):
    await indexed.fill(site(navigation))
    found = {word: (await indexed.index.search(DOMAIN, word)).sections[0].url for word in addresses}
    assert found == addresses


async def test_navigation_in_a_file_of_its_own_is_followed(indexed):
    files = site({"$ref": "./nav/all.json"}) | {"nav/all.json": json.dumps(IN_A_TAB)}
    await indexed.fill(files)
    assert (await indexed.index.search(DOMAIN, "hazel")).sections[0].url == "/api-reference/list-all"
    links = await indexed.index.links(DOMAIN)
    assert links.resolve("/api-reference/list-all") == "/api-reference/list-all"
