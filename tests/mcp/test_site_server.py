"""A site's server as agents meet it over HTTP."""

import json

import pytest
from multidict import CIMultiDict

from tests.mcp.client import Client, headers_of, legacy, modern
from tests.mcp.conftest import ORIGIN
from tests.mcp.fuzzing import send_all


async def test_legacy_client_is_initialized_without_a_session(client):
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = await client.send(legacy("initialize", asked))
    assert answer.result["protocolVersion"] == "2025-11-25"
    assert answer.result["serverInfo"]["name"] == "docsmith"
    assert "Mcp-Session-Id" not in answer.headers
    newest = await client.send(legacy("initialize", {**asked, "protocolVersion": "1900-01-01"}))
    assert newest.result["protocolVersion"] == "2025-11-25"
    noticed = await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (noticed.status, noticed.text) == (202, "")
    assert (await client.send(legacy("ping"))).result == {}
    assert (await client.send(legacy("tools/list"))).result["tools"]


async def test_modern_client_discovers_the_server(client):
    found = (await client.ask("server/discover")).result
    assert found["supportedVersions"][0] == "2026-07-28"
    assert found["resultType"] == "complete"
    assert (found["ttlMs"], found["cacheScope"]) == (3_600_000, "public")
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "docsmith"


async def test_unknown_method_is_404_for_modern_clients_only(client):
    answer = await client.ask("ping")
    assert (answer.status, answer.code) == (404, -32601)
    answer = await client.send(legacy("logging/setLevel"))
    assert (answer.status, answer.code) == (200, -32601)


async def test_header_that_is_sent_twice_is_refused(client):
    message = modern("tools/list")
    headers = [*headers_of(message).items(), ("Mcp-Method", "ping"), ("Content-Type", "application/json")]
    async with client.http.post(client.url, data=json.dumps(message), headers=CIMultiDict(headers)) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, -32020)


async def test_only_post_is_answered(client):
    for method in ("GET", "DELETE"):
        async with client.http.request(method, client.url) as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")


async def test_tools_are_closed_short_and_say_what_they_change(client):
    tools = (await client.ask("tools/list")).result["tools"]
    for tool in tools:
        assert tool["inputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        assert '"null"' not in json.dumps(tool["inputSchema"])
        assert len(tool["description"].split()) <= 40
        assert tool["annotations"].get("readOnlyHint", False) is (tool["name"] in ("search", "fetch"))


async def test_search_and_fetch_have_the_shape_that_chatgpt_asks_for(client):
    found = await client.call("search", query="delay between two tries")
    assert list(found["structuredContent"]) == ["results"]
    first = found["structuredContent"]["results"][0]
    assert sorted(first) == ["id", "title", "url"]
    (text,) = found["content"]
    assert json.loads(text["text"]) == found["structuredContent"]
    page = await client.call("fetch", id=first["id"])
    assert sorted(page["structuredContent"]) == ["id", "metadata", "text", "title", "url"]
    assert "retryDelaySecs" in page["structuredContent"]["text"]
    assert page["structuredContent"]["metadata"]["file"] == "retry.md"
    assert json.loads(page["content"][0]["text"]) == page["structuredContent"]


async def test_long_page_is_cut_around_what_was_asked_for(client):
    whole = (await client.call("fetch", id="/long"))["structuredContent"]
    assert (len(whole["text"]), whole["metadata"]["cut"]) == (100_000, True)
    found = await client.call("search", query="orange windsock")
    part = (await client.call("fetch", id=found["structuredContent"]["results"][0]["id"]))["structuredContent"]
    assert "The windsock is orange." in part["text"]
    assert (part["metadata"]["heading"], part["metadata"]["cut"]) == ("Far", True)


async def test_wrong_arguments_are_for_the_model_to_mend(client):
    answer = await client.ask("tools/call", {"name": "serch", "arguments": {}})
    assert (answer.status, answer.code) == (200, -32602)
    for arguments in ({}, {"query": 5}, {"query": " "}, {"query": None}):
        result = await client.call("search", **arguments)
        assert result["isError"] is True, arguments
        assert "query" in result["content"][0]["text"]
    missing = await client.call("fetch", id="/nowhere")
    assert (missing["isError"], "/nowhere" in missing["content"][0]["text"]) == (True, True)


N8N = {"sessionId": "5f0c", "action": "sendMessage", "chatInput": "How?", "toolCallId": "call_1"}


async def test_arguments_that_clients_add_are_ignored(client):
    for tool, arguments in (("search", {"query": "delay"}), ("ask", {"question": "What is the delay?"})):
        result = await client.call(tool, **arguments, **N8N)
        assert not result.get("isError"), result
    assert not (await client.call("search", query="delay", more=1)).get("isError")
    misspelt = await client.call("ask", question="What is the delay?", threadid="a")
    assert (misspelt["isError"], "threadid" in misspelt["content"][0]["text"]) == (True, True)


async def test_optional_argument_may_be_null(client):
    assert not (await client.call("ask", question="What is the delay?", threadId=None, threadKey=None)).get("isError")


async def test_batch_is_answered_where_the_version_has_them(client):
    search = legacy("tools/call", {"name": "search", "arguments": {"query": "delay"}}, id_="b")
    noticed = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    batch = [legacy("ping"), noticed, search, legacy("nothing", id_=3), legacy("initialize", id_=4), {"id": 5}]
    for headers in ({}, {"MCP-Protocol-Version": "2025-03-26"}):
        answer = await client.send(batch, **headers)
        assert answer.status == 200
        assert [one["id"] for one in answer.json] == [1, "b", 3, 4, 5]
        assert [one.get("error", {}).get("code") for one in answer.json] == [None, None, -32601, -32600, -32600]
        assert answer.json[1]["result"]["structuredContent"]["results"]
    assert (await client.send([noticed])).status == 202
    for refused in ([], [legacy("ping")] * 21):
        answer = await client.send(refused)
        assert (answer.status, answer.code) == (400, -32600)
    answer = await client.send(batch, **{"MCP-Protocol-Version": "2025-06-18"})
    assert (answer.status, answer.code) == (400, -32600)


async def test_restricted_pages_are_in_no_answer(client, http, service):
    keyed = Client(http, f"{service.url}/mcp/kite", **service.assistant)
    for one in (client, keyed):
        assert "9417" not in json.dumps(await one.call("search", query="vault code"))
        assert "9417" not in json.dumps(await one.call("ask", question="What is the vault code?"))
        assert (await one.call("fetch", id="staff.md"))["isError"] is True


async def test_private_site_needs_its_key(http, service):
    for domain in ("kite", "nowhere"):
        answer = await Client(http, f"{service.url}/mcp/{domain}").ask("tools/list")
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        wrong = await Client(http, f"{service.url}/mcp/{domain}", Authorization="Bearer gone").ask("tools/list")
        assert (wrong.status, wrong.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')
    keyed = Client(http, f"{service.url}/mcp/kite", **service.assistant)
    assert (await keyed.ask("tools/list")).result["cacheScope"] == "private"
    assert (await Client(http, f"{service.url}/mcp/nowhere", **service.assistant).ask("tools/list")).status == 404


async def test_origin_that_is_not_listed_is_forbidden(client):
    assert (await client.ask("tools/list", Origin="https://evil.example")).status == 403
    assert (await client.ask("tools/list", Origin=ORIGIN)).status == 200
    host = {"Host": "evil.example", "Origin": "http://evil.example"}
    assert (await client.ask("tools/list", **host)).status == 403


async def test_listed_page_may_call_from_a_browser(client):
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
    async with client.http.options(client.url, headers=asked) as response:
        assert response.status == 204
        allowed = response.headers["Access-Control-Allow-Headers"]
        assert {"MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"} <= set(allowed.split(", "))
    answer = await client.ask("tools/list", Origin=ORIGIN)
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN


async def test_body_of_another_kind_or_size_is_refused(client):
    assert (await client.send(modern("tools/list"), **{"Content-Type": "text/plain"})).status == 415
    assert (await client.send(b'{"a":"' + b"a" * 600_000 + b'"}')).status == 413


async def test_pages_are_resources(client):
    (template,) = (await client.ask("resources/templates/list")).result["resourceTemplates"]
    assert template["uriTemplate"] == "docs://open/{+path}"
    listed = (await client.ask("resources/list")).result
    names = {one["uri"].removeprefix("docs://open/"): one["name"] for one in listed["resources"]}
    assert names == {"": "Kite", "install": "Install", "retry": "Retries", "long": "Long"}
    for uri in [one["uri"] for one in listed["resources"]]:
        (read,) = (await client.ask("resources/read", {"uri": uri})).result["contents"]
        assert (read["uri"], read["mimeType"], bool(read["text"])) == (uri, "text/markdown", True)
    for uri in ("docs://open/staff", "docs://open/nowhere", "docs://kite/install", "file:///etc/passwd"):
        answer = await client.ask("resources/read", {"uri": uri})
        assert (answer.code, answer.json["error"]["data"]) == (-32602, {"uri": uri})
        assert (await client.send(legacy("resources/read", {"uri": uri}))).code == -32002
    assert (await client.ask("resources/list", {"cursor": "x"})).code == -32602
    assert (await client.ask("resources/list", {"cursor": "4"})).result["resources"] == []


async def test_lists_may_be_kept_for_an_hour(client):
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        result = (await client.ask(method)).result
        assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (3_600_000, "public", "complete")


async def questions(http, service):
    async with http.get(f"{service.url}/v2/questions", headers=service.admin) as response:
        return (await response.json())["conversations"]


async def test_question_is_answered_with_its_sources(client, http, service):
    answered = await client.call("ask", question="How do I install Kite?")
    view = answered["structuredContent"]
    assert "kite.example/install" in view["answer"]
    assert view["resolution"] == "answered"
    assert view["sources"][0]["id"] == "/install"
    assert view["sources"][0]["url"] == f"{ORIGIN}/install"
    further = await client.call("ask", question="And the delay between retries?", threadId=view["threadId"])
    assert further["structuredContent"]["threadId"] == view["threadId"]
    rating = {"threadId": view["threadId"], "messageId": view["messageId"], "rating": "up", "comment": "Right."}
    assert (await client.call("submit_feedback", **rating))["structuredContent"] == {"recorded": True}
    assert (await client.call("submit_feedback", **{**rating, "messageId": "x"}))["isError"] is True
    asked = await questions(http, service)
    assert ("How do I install Kite?", "mcp", "up") in {
        (one["query"], one["caller"], (one["feedback"] or {}).get("rating")) for one in asked
    }


@pytest.mark.parametrize("token", ["t", 7])
async def test_words_of_an_answer_come_as_progress(client, token):
    arguments = {"question": "What is the delay between two tries?"}
    message = modern("tools/call", {"name": "ask", "arguments": arguments}, progressToken=token)
    answer = await client.send(message, **headers_of(message))
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    *progress, last = answer.events
    assert {one["method"] for one in progress} == {"notifications/progress"}
    assert {one["params"]["progressToken"] for one in progress} == {token}
    counts = [one["params"]["progress"] for one in progress]
    assert counts == sorted(set(counts))
    words = "".join(one["params"].get("message", "") for one in progress)
    assert words == last["result"]["structuredContent"]["answer"]
    answer = await client.send(message, **headers_of(message), Accept="application/json")
    assert answer.headers["Content-Type"].startswith("application/json")


async def test_no_body_is_an_error_of_the_server(service):
    found, wrong = await send_all(f"{service.url}/mcp/kite", 7, 400, **service.assistant)
    assert (wrong, found.total()) == ([], 400)
    assert found.keys() <= {200, 202, 400, 404, 429}
