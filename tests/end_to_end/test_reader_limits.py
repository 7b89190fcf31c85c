"""What one reader of a site may ask, and how often a site may be searched, by the kind of key."""

import asyncio
import re
from collections import Counter

import pytest

from tests.end_to_end.talk import message_url, question
from tests.service_process import service_in, write_docs

SETTINGS = {
    "DOCSMITH_LIMITS__READER_5_MINUTES": "2",
    "DOCSMITH_LIMITS__READER_DAY": "3",
    "DOCSMITH_LIMITS__KEY_SEARCHES_MINUTE": "3",
    "DOCSMITH_LIMITS__ADDRESS_SEARCHES_MINUTE": "2",
    "DOCSMITH_SERVER__TRUSTED_PROXIES": "127.0.0.1",
}
ORIGIN = "https://docs.example.com"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limited")
    with service_in(folder, SETTINGS) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


@pytest.fixture
async def key(service):
    """Makes a key for browsers, or an open one."""

    async def make(*options):
        tokens = ("--no-reader-tokens",) if options else ()
        command = ("key", "create", "--kind", "assistant", "--domain", service.domain, *options, *tokens)
        return (await asyncio.to_thread(service.cli, *command))["token"]

    return make


async def ask(http, service, token, address, *, fp="anonymous"):
    """The status, and the fields of the limits by name."""
    headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}
    async with http.post(message_url(service), json={**question("Retry?"), "fp": fp}, headers=headers) as response:
        await response.read()
        return response.status, dict(response.headers)


async def search(http, service, token, address, query="retry"):
    headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}
    url = f"{service.url}/discovery/v1/search/{service.domain}"
    async with http.post(url, json={"query": query}, headers=headers) as response:
        await response.read()
        return response.status, dict(response.headers)


def assert_refused(answer, scope, seconds):
    status, headers = answer
    assert status == 429
    assert headers["RateLimit-Policy"].startswith(f'"{scope}";')
    assert headers["RateLimit-Policy"].endswith(f";w={seconds}")
    assert re.fullmatch(rf'"{scope}";r=0;t=\d+', headers["RateLimit"])
    assert 0 < int(headers["Retry-After"]) <= seconds


async def test_reader_runs_out_by_address(http, service, key):
    token = await key("--origin", ORIGIN)
    for _ in range(2):
        assert (await ask(http, service, token, "192.0.2.1"))[0] == 200
    assert_refused(await ask(http, service, token, "192.0.2.1"), "reader", 300)
    assert_refused(await ask(http, service, token, "192.0.2.1", fp="someone"), "reader", 300)
    assert (await ask(http, service, token, "192.0.2.2"))[0] == 200  # anonymous readers are not one


async def test_reader_of_ipv6_is_a_network(http, service, key):
    token = await key("--origin", ORIGIN)
    for host in (1, 2):
        assert (await ask(http, service, token, f"2001:db8:1:2::{host}"))[0] == 200
    assert_refused(await ask(http, service, token, "2001:db8:1:2:3::4"), "reader", 300)
    assert (await ask(http, service, token, "2001:db8:1:3::1"))[0] == 200


async def test_reader_runs_out_by_fp_for_the_day_too(http, service, key):
    tokens = [await key("--origin", ORIGIN), await key("--origin", ORIGIN)]
    for number in range(2):
        assert (await ask(http, service, tokens[number], f"192.0.2.{10 + number}", fp="ada"))[0] == 200
    assert_refused(await ask(http, service, tokens[0], "192.0.2.13", fp="ada"), "reader", 300)
    service.kill()
    await asyncio.to_thread(service.start)
    assert_refused(await ask(http, service, tokens[1], "192.0.2.14", fp="ada"), "reader", 300)
    assert (await ask(http, service, tokens[1], "192.0.2.14", fp="bob"))[0] == 200


async def test_open_keys_have_no_reader_limit(http, service, key):
    token = await key()
    for _ in range(5):
        assert (await ask(http, service, token, "192.0.2.20", fp="eve"))[0] == 200


async def test_open_key_runs_out_of_searches(http, service, key):
    token = await key()
    assert (await search(http, service, token, "192.0.2.30", query=" "))[0] == 400  # not counted
    for number in range(3):
        status, headers = await search(http, service, token, f"192.0.2.{30 + number}")
        assert (status, headers["RateLimit-Policy"]) == (200, '"key-searches";q=3;w=60')
    assert_refused(await search(http, service, token, "192.0.2.39"), "key-searches", 60)
    assert (await search(http, service, await key(), "192.0.2.30"))[0] == 200


async def test_address_runs_out_of_searches(http, service, key):
    tokens = [await key("--origin", ORIGIN), await key("--origin", ORIGIN)]
    for token in tokens:
        assert (await search(http, service, token, "192.0.2.40"))[0] == 200
    for token in tokens:
        assert_refused(await search(http, service, token, "192.0.2.40"), "address-searches", 60)
        assert (await search(http, service, token, "192.0.2.41"))[0] == 200


async def test_refused_requests_and_searches_are_measured(http, service, key):
    token = await key("--origin", ORIGIN)
    for _ in range(3):
        await ask(http, service, token, "192.0.2.50")
        await search(http, service, token, "192.0.2.50")
    counted = Counter()
    for one in service.each:
        async with http.get(f"{one.url}/metrics") as response:
            found = re.findall(r'docsmith_bounds_reached_total\{bound="(\w+)"\} (\d+)', await response.text())
            counted.update({bound: int(times) for bound, times in found})
    assert counted["requests"] >= 1
    assert counted["searches"] >= 1
