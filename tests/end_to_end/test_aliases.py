"""The older paths of public clients: the same handlers, limits, headers and metrics as the main paths."""

import re

import pytest

from service.web.http.routes import aliases_of
from tests.end_to_end.talk import chunks, question, text_of

MESSAGES = (
    "/v2/assistant/{domain}/message", "/v1/assistant/{domain}/message", "/api/assistant/{domain}/message",
)  # fmt: skip


@pytest.mark.parametrize("path", MESSAGES)
async def test_older_message_path_answers_as_the_main_one(http, service, path):
    url = service.url + path.format(domain=service.domain)
    body = question("How do I install Kite?", id="chat-of-an-alias")
    async with http.post(url, json=body, headers={**service.assistant, "Origin": "https://a.example"}) as response:
        text = await response.text()
        assert response.status == 200, text
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert response.headers["RateLimit"]
        is_v1 = "v2" not in path
        assert ("Deprecation" in response.headers) is is_v1
        if is_v1:
            successor = f'</discovery/v2/assistant/{service.domain}/message>; rel="successor-version"'
            assert response.headers["Link"] == successor
            assert "kite.example/install" in text
            assert text.startswith("f:")
        else:
            assert "kite.example/install" in text_of(chunks(text))
    async with http.get(f"{url}/no-such-chat/stream", headers=service.assistant) as response:
        assert response.status == 204
    async with http.options(url, headers={"Origin": "https://a.example"}) as response:
        assert response.status == 204
    async with http.post(f"{url}/", json=body, headers=service.assistant) as response:
        assert response.status == 404
    async with http.post(url, json=body) as response:
        assert response.status == 401
        assert response.headers["Access-Control-Allow-Origin"] == "*"


async def test_older_paths_of_search_page_and_feedback_answer(http, service):
    async def post(path, body):
        url = f"{service.url}/v1/{path}/{service.domain}"
        async with http.post(url, json=body, headers=service.assistant) as response:
            return response.status, await response.text()

    status, found = await post("search", {"query": "delay between retries"})
    assert status == 200
    assert "retryDelaySecs" in found
    status, page = await post("page", {"path": "install.md"})
    assert status == 200
    assert "installer" in page
    status, problem = await post("feedback", {"threadId": "none", "messageId": "none", "rating": "up"})
    assert status == 404
    assert "thread_not_found" in problem


async def test_metrics_have_no_label_of_an_older_path(http, service):
    async with http.post(f"{service.url}/v1/page/{service.domain}", json={}) as response:
        assert response.status == 401
    async with http.get(service.url + "/metrics") as response:
        routes = set(re.findall(r'route="([^"]*)"', await response.text()))
    assert "/discovery/v1/page/{domain}" in routes
    assert not {route for route in routes if route.startswith(("/v1/page", "/v1/assistant", "/api/", "/v1/search"))}


def test_message_path_has_its_aliases_with_resume():
    resume = "/message/{chatId}/stream"
    assert aliases_of(f"/discovery/v1/assistant/{{domain}}{resume}") == [
        f"/v1/assistant/{{domain}}{resume}",
        f"/api/assistant/{{domain}}{resume}",
    ]
