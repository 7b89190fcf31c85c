"""Limits over HTTP: what is counted, what is told, and what a refusal looks like."""

import asyncio
import re

import aiohttp
import pytest

from service.domain.access.usage import Limits
from service.web.http.connections.admission import AdmissionSettings
from service.web.http.connections.client_address import Proxies
from tests.web.entrance import entrance

FIELD = re.compile(r'"([a-z-]+)";r=(\d+);t=(\d+)')
ASSISTANT = "/discovery/v2/assistant/alpha/message"


async def post(http, entry, path, token, *, status=200, body=None, **headers):
    headers = {"Authorization": f"Bearer {token}", **headers}
    async with http.post(entry.url + path, headers=headers, json={} if body is None else body) as response:
        assert response.status == status, await response.text()
        return await response.json(), response.headers


async def test_the_project_runs_out(tmp_path):
    async with (
        entrance(tmp_path, AdmissionSettings(limits=Limits(project=3))) as entry,
        aiohttp.ClientSession() as http,
    ):
        token, other = await entry.key(), await entry.key()
        told = []
        for key in (token, other, token):
            _, headers = await post(http, entry, "/v2/agent/alpha/job", key)
            assert headers["RateLimit-Policy"] == '"project";q=3;w=3600'
            told.append(FIELD.fullmatch(headers["RateLimit"]).groups()[:2])
        assert told == [("project", "2"), ("project", "1"), ("project", "0")]
        problem, headers = await post(http, entry, "/v2/agent/alpha/job", token, status=429)
        assert problem["code"] == "rate_limited"
        assert 3590 <= int(headers["Retry-After"]) <= 3600
        assert FIELD.fullmatch(headers["RateLimit"])[2] == "0"
        await post(http, entry, "/v2/agent/beta/job", token)  # another project has its own


async def test_a_request_that_is_not_accepted_is_not_counted(tmp_path):
    async with (
        entrance(tmp_path, AdmissionSettings(limits=Limits(project=2))) as entry,
        aiohttp.ClientSession() as http,
    ):
        token = await entry.key()
        for body in ({"text": 7}, [], {"text": None}):
            _, headers = await post(http, entry, "/v2/agent/alpha/job", token, status=400, body=body)
            assert FIELD.fullmatch(headers["RateLimit"])[2] == "2"
        async with http.get(
            f"{entry.url}/v2/agent/alpha/job", headers={"Authorization": f"Bearer {token}"}
        ) as response:  # looking is not in the scope of a limit
            assert "RateLimit" not in response.headers
        _, headers = await post(http, entry, "/v2/agent/alpha/job", token)
        assert FIELD.fullmatch(headers["RateLimit"])[2] == "1"


async def test_a_restart_frees_nothing(tmp_path):
    settings = AdmissionSettings(limits=Limits(assistant_key=3))
    async with aiohttp.ClientSession() as http:
        async with entrance(tmp_path, settings) as entry:
            token = await entry.key("assistant")
            for _ in range(2):
                await post(http, entry, ASSISTANT, token)
        async with entrance(tmp_path, settings) as entry:
            _, headers = await post(http, entry, ASSISTANT, token)
            assert FIELD.fullmatch(headers["RateLimit"])[2] == "0"
            await post(http, entry, ASSISTANT, token, status=429)


async def test_two_instances_on_one_store_share_the_limit(tmp_path):
    settings = AdmissionSettings(limits=Limits(assistant_key=25))
    async with (
        entrance(tmp_path, settings) as one,
        entrance(tmp_path, settings) as two,
        aiohttp.ClientSession() as http,
    ):
        token = await one.key("assistant")
        headers = {"Authorization": f"Bearer {token}"}

        async def ask(number):
            entry = (one, two)[number % 2]
            async with http.post(entry.url + ASSISTANT, headers=headers, json={}) as response:
                return response.status

        while await ask(1) == 401:  # the other hears of the key within a second
            pass
        statuses = await asyncio.gather(*(ask(number) for number in range(40)))
        assert sorted(set(statuses)) == [200, 429]
        assert statuses.count(200) == 24


@pytest.mark.parametrize(
    ("one", "two", "shared"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:3::9", True),
        ("192.0.2.1", "192.0.2.1", True),
    ],
)
async def test_address_is_the_one_behind_the_proxy(tmp_path, one, two, shared):
    settings = AdmissionSettings(limits=Limits(address=1), proxies=Proxies.of("127.0.0.0/8", "X-Forwarded-For"))
    async with entrance(tmp_path, settings) as entry, aiohttp.ClientSession() as http:
        token = await entry.key("assistant")
        _, headers = await post(http, entry, ASSISTANT, token, **{"X-Forwarded-For": f"203.0.113.1, {one}"})
        assert headers["RateLimit"].startswith('"address";r=0;')
        status = 429 if shared else 200
        await post(http, entry, ASSISTANT, token, status=status, **{"X-Forwarded-For": f"203.0.113.2, {two}"})


async def test_addresses_are_not_in_the_log(tmp_path):
    settings = AdmissionSettings(proxies=Proxies.of("127.0.0.0/8", "X-Forwarded-For"))
    async with entrance(tmp_path, settings) as entry, aiohttp.ClientSession() as http:
        token = await entry.key("assistant")
        await post(http, entry, ASSISTANT, token, **{"X-Forwarded-For": "192.0.2.77"})
    assert all(b"192.0.2.77" not in file.read_bytes() for file in tmp_path.iterdir())


async def test_a_page_may_read_the_fields(tmp_path):
    async with (
        entrance(tmp_path, AdmissionSettings(limits=Limits(assistant_key=1))) as entry,
        aiohttp.ClientSession() as http,
    ):
        token = await entry.key("assistant")
        for status in (200, 429):
            _, headers = await post(http, entry, ASSISTANT, token, status=status, Origin="https://docs.example.com")
            exposed = headers["Access-Control-Expose-Headers"]
            assert all(name in exposed for name in ("RateLimit", "RateLimit-Policy", "Retry-After"))
            assert headers["Access-Control-Allow-Origin"] == "*"
