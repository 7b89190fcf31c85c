"""Pages in Chromium while the model is held: the ask page of a public site, and a job's steps as they are taken."""

import asyncio
import json

import aiohttp
import pytest

from tests.dashboard.browsing import CHROMIUM, FLAGS, TIMEOUT_MS
from tests.dashboard.conftest import COOKIE, invite, sign_in
from tests.end_to_end.scripted import scripted_service
from tests.end_to_end.talk import create_job
from tests.fakes.provider import Call, ScriptedProvider
from tests.service_process import free_port

async_api = pytest.importorskip("playwright.async_api", reason="drives a browser through playwright")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: install it to run this")]

TEXTS = ("Fetch the kite, ", "hold the ", "string.")


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    """A service of its own, whose site is public and whose agent the tests script, too."""
    settings = {
        "AGENT__MODEL": "scripted",
        "LIMITS__PUBLIC_COST_USD_DAY": "100",
        "MODELS__SCRIPTED__INPUT_USD_PER_MILLION_TOKENS": "1",
        "MODELS__SCRIPTED__OUTPUT_USD_PER_MILLION_TOKENS": "1",
    }
    with scripted_service(tmp_path_factory.mktemp("held"), port, **settings) as service:
        service.cli("site", "update", service.domain, "--public")
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


@pytest.fixture
async def page(service):
    """A page of a fresh profile, without a session."""
    async with async_api.async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=2 * TIMEOUT_MS)
        context = await browser.new_context(base_url=service.url.replace("127.0.0.1", "localhost"))
        context.set_default_timeout(TIMEOUT_MS)
        yield await context.new_page()
        await browser.close()


async def asked(page, service):
    """Ask on the page of the site, and wait for the first words."""
    await page.goto(f"/ask/{service.domain}")
    await page.get_by_label("Your question").fill("How do I fetch the kite?")
    await page.keyboard.press("Enter")
    await page.locator(".reply .prose", has_text="Fetch the kite,").wait_for()


async def test_stranger_stops_an_answer_and_asks_again(page, service, provider):
    hold = asyncio.Event()
    provider.will_reply(*TEXTS, after=1, hold=hold)
    await asked(page, service)
    held = await provider.next_asked()
    await page.get_by_role("button", name="Stop").click()
    await page.get_by_role("button", name="Answer again").wait_for()
    async with asyncio.timeout(60):
        await held.disconnected.wait()  # the model's call is over, too
    hold.set()
    assert "string" not in await page.locator(".reply .prose").inner_text()
    provider.will_reply(*TEXTS)
    await page.get_by_role("button", name="Answer again").click()
    await page.locator(".reply .prose", has_text="hold the string.").wait_for()
    assert await page.locator(".reply").count() == 1
    assert await page.get_by_role("link", name="Sign in").count() == 1


async def test_strangers_reload_in_mid_answer_loses_no_word(page, service, provider):
    hold = asyncio.Event()
    provider.will_reply(*TEXTS, after=1, hold=hold)
    await asked(page, service)
    await page.reload()
    await page.locator(".reply .prose", has_text="Fetch the kite,").wait_for()
    hold.set()
    await page.locator(".reply .prose", has_text="Fetch the kite, hold the string.").wait_for()
    assert await page.locator(".asked").count() == await page.locator(".reply").count() == 1


async def test_step_is_on_the_page_before_the_next_event(page, service, provider):
    """By the order of events: nothing else happens meanwhile that could bring an event to the page."""
    _, link = await invite(service.data, email="ed@example.com", organization_id=service.organization_id, role="editor")
    cookie = await asyncio.to_thread(sign_in, service.url, link)
    await page.context.add_cookies([{"name": COOKIE, "value": cookie, "url": "https://localhost"}])
    hold = [asyncio.Event(), asyncio.Event()]
    read = Call("read", (json.dumps({"path": "install.md"}),))
    provider.will_reply("I look. ", calls=(read,), after=1, hold=hold[0])
    provider.will_reply("And think.", "…", after=1, hold=hold[1])
    async with aiohttp.ClientSession() as http:
        job = await create_job(http, service, "Look at the installer")
    await provider.next_asked()
    await page.goto(f"/dashboard/{service.organization_id}/jobs/{job['id']}")
    steps = page.locator("#steps > li")
    before = await steps.count()
    hold[0].set()
    await provider.next_asked()  # the step is recorded, and the model's next reply is held
    await steps.filter(has_text="install.md").first.wait_for()
    assert await steps.count() > before
    assert not hold[1].is_set()
    hold[1].set()
