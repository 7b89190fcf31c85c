"""The site without the assistant, over HTTP: search, and pages as text."""

import pytest

from tests.service_process import DOCS


@pytest.fixture
def post(http, service):
    async def post(what, body, status=200, headers=None, domain=None):
        url = f"{service.url}/discovery/v1/{what}/{domain or service.domain}"
        async with http.post(url, json=body, headers=service.assistant if headers is None else headers) as response:
            assert response.status == status, await response.text()
            assert response.headers["Access-Control-Allow-Origin"] == "*"
            return await response.json() if response.content_type.endswith("json") else await response.text()

    return post


async def test_sections_are_found_best_first_with_their_address(post):
    results = await post("search", {"query": "How long is the delay between two tries?"})
    assert (results[0]["path"], results[0]["metadata"]["title"]) == ("retry", "Retries")
    assert (results[0]["metadata"]["url"], results[0]["metadata"]["file"]) == ("/retry#delay", "retry.md")
    assert "retryDelaySecs" in results[0]["content"]
    scores = [result["metadata"]["score"] for result in results]
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)
    start, end = results[0]["metadata"]["startLine"], results[0]["metadata"]["endLine"]
    assert "retryDelaySecs" in "\n".join(DOCS["retry.md"].split("\n")[start - 1 : end])
    assert len(results[0]["metadata"]["commit"]) == 40


async def test_results_have_the_requested_number_and_quality(post):
    everything = await post("search", {"query": "kite job install retry", "pageSize": 50})
    assert len(everything) > 2
    assert await post("search", {"query": "kite job install retry", "pageSize": 1.0}) == everything[:1]
    middle = everything[1]["metadata"]["score"]
    good = await post("search", {"query": "kite job install retry", "pageSize": 50, "scoreThreshold": middle})
    assert good == [result for result in everything if result["metadata"]["score"] >= middle]
    assert await post("search", {"query": "zyzzyva"}) == []
    assert await post("search", {"query": "install", "filter": {"tag": "nowhere"}}) == []
    assert await post("search", {"query": "install", "filter": None, "pageSize": None, "unknown": 1}) != []


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "$.query"),
        ({"query": ""}, "$.query"),
        ({"query": "  "}, "$.query"),
        ({"query": "a", "pageSize": 0}, "$.pageSize"),
        ({"query": "a", "pageSize": 51}, "$.pageSize"),
        ({"query": "a", "pageSize": 1.5}, "$.pageSize"),
        ({"query": "a", "scoreThreshold": 1.1}, "$.scoreThreshold"),
        ({"query": "a", "filter": {"groups": "staff"}}, "$.filter.groups"),
    ],
)
async def test_a_search_that_does_not_fit_is_refused_with_the_place(post, body, path):
    told = await post("search", body, 400)
    assert (told["code"], told["errors"][0]["path"]) == ("invalid_request", path)


@pytest.mark.parametrize("path", ["install.md", "install", "/install", "/install/#top"])
async def test_a_page_is_read_whole_by_any_of_its_names(post, path):
    page = await post("page", {"path": path})
    assert page["path"] == path
    assert "curl -sSf kite.example/install | sh" in page["content"]
    assert page["metadata"] == {"title": "Install", "url": "/install", "path": "install", "file": "install.md"}


@pytest.mark.parametrize("path", ["nowhere", "../../etc/passwd", "docs.json", "/"])
async def test_a_page_that_is_not_there_is_not_found(post, path):
    if path == "/":
        assert "Kite sends jobs" in (await post("page", {"path": path}))["content"]
        return
    told = await post("page", {"path": path}, 404)
    assert told["code"] == "page_not_found"


@pytest.mark.parametrize("what", ["search", "page", "feedback"])
async def test_they_take_the_assistant_key_of_the_site(post, service, what):
    body = {"query": "install", "path": "install", "threadId": "t", "messageId": "m", "rating": "up"}
    assert (await post(what, body, 401, headers={}))["code"] == "unauthorized"
    assert (await post(what, body, 403, headers=service.admin))["code"] == "wrong_key_kind"
    assert (await post(what, body, 404, domain="other"))["code"] == "domain_not_found"
