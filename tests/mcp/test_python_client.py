"""The official Python client (``mcp`` on PyPI), in both eras of the protocol."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from tests.end_to_end.scripted import next_asked
from tests.end_to_end.talk import ask, question

pytestmark = pytest.mark.slow
ASK = {"name": "ask", "arguments": {"question": "How do I install Kite?"}}
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@asynccontextmanager
async def official(url, mode, **headers):
    import httpx2  # they take over a second, so not at the beginning of tests that are left out
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", VERSIONS)
async def test_official_client_uses_the_whole_server(service, mode):
    from mcp import MCPError

    async with official(f"{service.url}/mcp/open", mode) as client:
        assert client.protocol_version == VERSIONS[mode]
        assert client.server_info.name == "docsmith"
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["search", "fetch", "ask", "submit_feedback"]
        assert tools["search"].annotations.read_only_hint is True
        found = (await client.call_tool("search", {"query": "delay between two tries"})).structured_content
        page = await client.call_tool("fetch", {"id": found["results"][0]["id"]})
        assert "retryDelaySecs" in json.loads(page.content[0].text)["text"]
        (await client.list_resource_templates(), await client.list_prompts())
        uris = [str(one.uri) for one in (await client.list_resources()).resources]
        read = await client.read_resource(uris[-1])
        assert read.contents[0].text

        words = []

        async def hear(progress, total, message):
            words.append(message or "")

        answer = await client.call_tool("ask", {"question": "How do I install Kite?"}, progress_callback=hear)
        view = answer.structured_content
        assert "".join(words) == view["answer"]
        rating = {"threadId": view["threadId"], "messageId": view["messageId"], "rating": "down"}
        assert not (await client.call_tool("submit_feedback", rating)).is_error
        assert (await client.call_tool("search", {})).is_error
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("nothing", {})
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("docs://open/nowhere")


@pytest.mark.parametrize("mode", VERSIONS)
async def test_official_client_works_for_an_organization(service, http, mode):
    thread_id = (await ask(http, service, question("Where is the zeppelin moored?")))[0]["X-Thread-Id"]
    async with official(f"{service.url}/mcp", mode, **service.admin) as client:

        async def call(tool, **arguments):
            """The view, which the client compares with the tool's schema."""
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.content
            return result.structured_content

        job = await call("create_job", project="kite", prompt="Fix broken links")
        assert (await call("job_status", jobId=job["id"], waitSeconds=60))["status"] == "completed"
        assert (await call("message_job", jobId=job["id"], prompt="Fix broken links"))["status"] == "active"
        groups = (await call("list_unanswered", project="kite"))["groups"]
        assert any(thread_id in group["threadIds"] for group in groups)
        assert (await call("show_thread", threadId=thread_id))["messages"]
        assert (await client.call_tool("job_status", {"jobId": "nothing"})).is_error


@pytest.mark.parametrize("mode", VERSIONS)
async def test_official_client_cancels_a_question(scripted, provider, mode):
    provider.will_reply("To install ", "Kite", after=1, hold=asyncio.Event())
    async with official(f"{scripted.url}/mcp/kite", mode, **scripted.assistant) as client:
        calling = asyncio.create_task(client.call_tool(ASK["name"], ASK["arguments"]))
        asked = await next_asked(provider)
        calling.cancel()
        async with asyncio.timeout(60):
            await asked.disconnected.wait()
