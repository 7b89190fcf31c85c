"""A page of another origin, in a real browser: streaming, exposed headers, preflights, origins that are refused."""

import asyncio
import shutil

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.end_to_end.scripted import scripted_service
from tests.end_to_end.talk import message_url, question
from tests.fakes.provider import ScriptedProvider

async_api = pytest.importorskip("playwright.async_api", reason="drives a browser through playwright")
CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: install it to run this")

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
    "--disable-component-update",
]  # fmt: skip
ASK = """
async ([url, key, body, more]) => {
  try {
    const response = await fetch(url, {
      method: body ? "POST" : "GET",
      headers: { Authorization: `Bearer ${key}`, ...(body ? { "Content-Type": "application/json" } : {}), ...more },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const names = ["x-thread-id", "x-thread-key", "x-request-id", "ratelimit", "ratelimit-policy"];
    const headers = Object.fromEntries(names.map((name) => [name, response.headers.get(name)]));
    const decoder = new TextDecoder();
    window.text = "";
    if (response.body) for (const reader = response.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      window.text += decoder.decode(value, { stream: true });
    }
    return { status: response.status, headers, text: window.text };
  } catch (error) {
    return { failed: String(error) };
  }
}
"""


@pytest.fixture
async def page():
    """An empty page of an origin that is not the service's."""

    async def empty(_):
        return web.Response(text="<!doctype html><title>A page</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", empty)
    async with TestServer(app) as server, async_api.async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=120_000)
        page = await browser.new_page()
        page.set_default_timeout(60_000)
        await page.goto(str(server.make_url("/")))
        yield page
        await browser.close()


async def fetched(page, url, key, body=None, **headers):
    async with asyncio.timeout(60):
        return await page.evaluate(ASK, [url, key, body, headers])


async def test_page_of_another_origin_reads_stream_and_headers(page, service):
    url, key = message_url(service), service.assistant_key
    first = await fetched(page, url, key, question("How do I install Kite?", id="page"))
    assert first["status"] == 200
    assert first["text"].endswith("data: [DONE]\n\n")
    assert all(first["headers"][name] for name in ("x-thread-id", "x-thread-key", "x-request-id")), first["headers"]
    named = {"X-Thread-Id": first["headers"]["x-thread-id"], "X-Thread-Key": first["headers"]["x-thread-key"]}
    second = await fetched(page, url, key, question("And the delay between retries?"), **named)
    assert (second["status"], second["headers"]["x-thread-id"]) == (200, named["X-Thread-Id"])
    assert second["headers"]["x-thread-key"] is None
    resumed = await fetched(page, f"{url}/page/stream", key, **{"X-Thread-Key": named["X-Thread-Key"]})
    assert resumed["status"] == 204
    old = await fetched(page, message_url(service, 1), key, question("How do I install Kite?"))
    assert (old["status"], bool(old["headers"]["x-thread-id"])) == (200, True)


async def test_page_of_another_origin_reads_words_as_they_come(page, tmp_path):
    hold = asyncio.Event()
    async with ScriptedProvider() as provider:
        with scripted_service(tmp_path, int(provider.url.rpartition(":")[2])) as service:
            provider.will_reply("Fetch the kite, ", "hold the string.", after=1, hold=hold)
            asked = asyncio.create_task(fetched(page, message_url(service), service.assistant_key, question("How?")))
            await page.wait_for_function("() => (window.text ?? '').includes('Fetch the')")
            hold.set()
            told = await asked
    assert "string." in told["text"]


async def test_page_of_another_origin_learns_what_is_wrong(page, service):
    refused = await fetched(page, message_url(service), "docsmith_dsc_nonsense", question("How?"))
    assert (refused["status"], "This API key is not valid." in refused["text"]) == (401, True)
    bad = await fetched(page, message_url(service), service.assistant_key, {"fp": "x"})
    assert (bad["status"], bool(bad["headers"]["x-request-id"])) == (400, True)


async def test_a_page_may_not_call_what_takes_admin_keys(page, service):
    jobs = f"{service.url}/v2/agent/{service.project_id}/jobs"
    assert "failed" in await fetched(page, jobs, service.admin_key)


@pytest.mark.parametrize(("listed", "status"), [("https://docs.example.com", 403), ("", 200)])
async def test_a_key_with_a_list_of_origins_serves_no_other_page(page, service, listed, status):
    origin = listed or page.url.rstrip("/")
    created = ("key", "create", "--kind", "assistant", "--domain", service.domain, "--origin", origin)
    key = (await asyncio.to_thread(service.cli, *created, "--no-reader-tokens"))["token"]
    found = await fetched(page, message_url(service), key, question("How do I install Kite?"))
    assert found.get("status") == status, found
