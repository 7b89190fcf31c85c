"""Two instances of a log in PostgreSQL, without sticky sessions: sign-ins, limits and checks hold at both."""

import asyncio
import json
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.dashboard.conftest import post_form
from tests.end_to_end.talk import question
from tests.instances import instances_in
from tests.service_process import write_docs

SETTINGS = {
    "DOCSMITH_LIMITS__KEY_SEARCHES_MINUTE": "10",
    "DOCSMITH_LIMITS__ASSISTANT_KEY_MONTH": "6",
    "DOCSMITH_NETWORK__ALLOW_PRIVATE": "true",
}
PATIENCE_SECONDS = 30
PAGE = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    with instances_in(folder, SETTINGS, count=2) as pair:
        pair.set_up(write_docs(folder / "docs"))
        pair.start()
        for member in pair.members:
            until_joined(pair, member.url)
        yield pair


def until_joined(pair, url):
    """Wait until an instance knows the other one, and has the index: both take some seconds from its start."""
    ends = time.monotonic() + PATIENCE_SECONDS
    search = urllib.request.Request(f"{url}/v2/sites/{pair.domain}/search?query=retry", headers=pair.admin)
    while "docsmith_instances 2.0" not in fetched(f"{url}/metrics") or not fetched(search):
        assert time.monotonic() < ends, pair.log()
        time.sleep(0.1)


def fetched(url):
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError:
        return ""


@pytest.fixture
def urls(pair):
    return [member.url for member in pair.members]


@pytest.fixture
async def cookie(pair, urls, request):
    email = f"{request.node.name}@example.com"
    added = await asyncio.to_thread(pair.cli, "person", "add", email, "--operator")
    form = {"link": urlsplit(added["link"]).fragment}
    signed_in = await asyncio.to_thread(post_form, f"{urls[0]}/sign-in", form)
    assert signed_in.status == 303, signed_in.text
    return {**PAGE, "Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}


async def posted(url, cookie):
    answer = await asyncio.to_thread(post_form, url, {}, cookie)
    assert answer.status == 303, answer.text


async def status(http, url, cookie):
    async with http.get(url, headers=cookie, allow_redirects=False) as response:
        return response.status


async def test_person_is_signed_in_and_out_at_both(http, urls, cookie):
    for url in (*urls, *urls):
        assert await status(http, f"{url}/account", cookie) == 200
    await posted(f"{urls[1]}/sign-out", cookie)
    for url in urls:
        assert await status(http, f"{url}/account", cookie) == 303


async def test_check_of_the_log_shows_at_both(http, urls, cookie):
    await posted(f"{urls[1]}/operator/audit/verify", cookie)
    for url in urls:
        async with http.get(f"{url}/operator/audit/verify/live", headers=cookie) as response:
            assert "Every event is as it was recorded." in await response.text()
        async with http.get(f"{url}/operator/audit/verify", headers=cookie) as response:
            assert "Every event is as it was recorded." in await response.text()


@pytest.fixture
async def website():
    """A site whose page does not come before ``site_opens`` is set."""
    app, is_open = web.Application(), asyncio.Event()

    async def listed(_):
        return web.Response(text="# Kites\n\n- [Strings](/strings.md)\n")

    async def strings(_):
        await is_open.wait()
        return web.Response(text="# Strings\n\nTake zylon in a storm.\n", content_type="text/markdown")

    app.router.add_get("/llms.txt", listed)
    app.router.add_get("/strings.md", strings)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}/", is_open
        is_open.set()


async def test_progress_of_indexing_shows_at_both(http, pair, urls, website):
    address, is_open = website
    new = {"name": "Slow", "repository": address, "codeHost": "website", "domain": "slow"}
    async with http.post(f"{urls[0]}/v2/projects", json=new, headers=pair.admin) as response:
        assert response.status == 201, await response.text()

    async def progress(url):
        async with http.get(f"{url}/v2/sites/slow", headers=pair.admin) as response:
            assert response.status == 200, await response.text()
            return (await response.json()).get("indexing")

    async def stages():
        return [found and found["stage"] for found in await asyncio.gather(*map(progress, urls))]

    async with asyncio.timeout(PATIENCE_SECONDS):
        while await stages() != ["its newest commit is being fetched"] * 2:  # noqa: ASYNC110  (nothing tells when)
            await asyncio.sleep(0.02)
        is_open.set()
        while await stages() != [None, None]:  # noqa: ASYNC110  (nothing tells when)
            await asyncio.sleep(0.02)


async def test_last_checkpoint_shows_at_both(http, urls, cookie):
    for url in urls:
        signed = await asyncio.to_thread(post_form, f"{url}/operator/audit/checkpoint", {}, cookie)
        assert signed.status == 200, signed.text
        for other in urls:
            async with http.get(f"{other}/operator/health", headers=cookie) as response:
                text = await response.text()
            assert json.loads(signed.text)["hash"] in text
            assert "one of 2 that share the log" in text


async def test_searches_at_both_are_counted_together(http, pair, urls):
    async def search(url):
        async with http.post(
            f"{url}/discovery/v1/search/{pair.domain}", json={"query": "retry"}, headers=pair.assistant
        ) as response:
            return response.status

    found = await asyncio.gather(*(search(url) for url in urls for _ in range(8)))
    assert sorted(found) == [200] * 10 + [429] * 6


async def test_questions_at_both_are_counted_together(http, pair, urls):
    async def ask(url):
        async with http.post(
            f"{url}/discovery/v2/assistant/{pair.domain}/message",
            json=question("How is a job retried?"),
            headers=pair.assistant,
        ) as response:
            await response.read()
            return response.status

    found = await asyncio.gather(*(ask(url) for url in urls for _ in range(5)))
    assert sorted(found) == [200] * 6 + [429] * 4
