"""Sites without a key: who gets in, from where, and how often; attacked as strangers would."""

import asyncio

import aiohttp
import pytest

from service.domain.access.usage import Limits
from service.web.http.connections.admission import AdmissionSettings
from service.web.http.connections.client_address import Proxies
from tests.web.entrance import entrance

MESSAGE = "/discovery/v2/assistant/{}/message"
DOCS = "https://docs.example.com"


class Stranger:
    """A caller without a key."""

    def __init__(self, http, entry):
        self._http, self._entry = http, entry

    async def ask(self, domain="alpha", fp="anonymous", path=MESSAGE, **headers):
        """Status, body and headers of the answer to a question."""
        url = self._entry.url + path.format(domain)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._http.post(url, json={"fp": fp}, headers=named) as response:
            return response.status, await response.json(), response.headers

    async def until(self, status, **more):
        """Ask until the answer has a status: what another part has just changed is known a moment later."""
        while (answer := await self.ask(**more))[0] != status:
            pass
        return answer


@pytest.fixture
async def http():
    async with aiohttp.ClientSession() as session:
        yield session


async def test_site_without_key_is_refused_as_one_that_is_not_there(tmp_path, http):
    async with entrance(tmp_path) as entry:
        stranger = Stranger(http, entry)
        await entry.open_site("beta", DOCS)
        await stranger.until(200, domain="beta")
        answers = []
        for domain in ("alpha", "gamma", "no-such-site"):
            status, problem, headers = await stranger.ask(domain, Origin=DOCS)
            problem.pop("requestId")
            fixed = {
                name: value for name, value in headers.items() if name.lower() != "x-request-id" and name != "Date"
            }
            answers.append((status, problem, fixed))
        assert answers[0][0] == 401
        assert answers[0] == answers[1] == answers[2]
        await entry.open_site("beta", public=False)
        assert (await stranger.until(401, domain="beta"))[1]["code"] == "unauthorized"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": DOCS}, 200),
        ({"Origin": "https://a.preview.example.com"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://docs.example.com.evil.example"}, 403),
        ({"Origin": "http://docs.example.com"}, 403),
        ({"Origin": "https://ours.example", "Sec_Fetch_Site": "same-origin"}, 200),
        ({"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "none"}, 200),
    ],
)
async def test_browser_page_must_be_of_a_listed_website(tmp_path, http, headers, status):
    async with entrance(tmp_path) as entry:
        stranger = Stranger(http, entry)
        await entry.open_site("alpha", DOCS, "https://*.preview.example.com")
        await stranger.until(200)
        answered, problem, told = await stranger.ask(**headers)
        assert answered == status
        if status == 403:
            assert problem["code"] == "origin_not_allowed"
            assert told["Access-Control-Allow-Origin"] == "*"  # so that the page's developer can read why
        elif "Origin" in headers:
            assert told["Access-Control-Allow-Origin"] == headers["Origin"]


async def test_site_without_origins_is_for_programs_alone(tmp_path, http):
    async with entrance(tmp_path) as entry:
        stranger = Stranger(http, entry)
        await entry.open_site("alpha")
        await stranger.until(200)
        assert (await stranger.ask(Origin=DOCS))[0] == 403


async def test_wrong_key_opens_no_public_site(tmp_path, http):
    async with entrance(tmp_path) as entry:
        stranger = Stranger(http, entry)
        await entry.open_site("alpha")
        await stranger.until(200)
        assert (await stranger.ask(Authorization="Bearer docsmith_dsc_wrong"))[0] == 401
        other = await entry.key("assistant", "two")
        assert (await stranger.ask(Authorization=f"Bearer {other}"))[0] == 404
        own = await entry.key("assistant")
        assert "public" not in (await stranger.until(200, Authorization=f"Bearer {own}"))[2]["RateLimit"]


async def test_names_do_not_get_around_the_limit_of_an_address(tmp_path, http):
    settings = AdmissionSettings(Limits(public_address=3), Proxies.of("127.0.0.0/8", "X-Forwarded-For"))
    async with entrance(tmp_path, settings) as entry:
        stranger = Stranger(http, entry)
        await entry.open_site("alpha")
        one = {"X_Forwarded_For": "2001:db8:1:2::1"}
        await stranger.until(200, **one)
        await stranger.ask(fp="b", **one)
        status, _, headers = await stranger.ask(fp="c", X_Forwarded_For="10.0.0.1, 2001:db8:1:2::9")
        assert status == 200
        assert headers["RateLimit"].startswith('"public-address";r=0;')
        status, problem, headers = await stranger.ask(fp="d", **one)
        assert (status, problem["code"]) == (429, "rate_limited")
        assert 3500 < int(headers["Retry-After"]) <= 3600
        assert (await stranger.ask(X_Forwarded_For="2001:db8:1:3::1"))[0] == 200


async def test_forwarded_address_of_a_stranger_is_not_believed(tmp_path, http):
    async with entrance(tmp_path, AdmissionSettings(Limits(public_address=2))) as entry:
        stranger = Stranger(http, entry)
        await entry.open_site("alpha")
        await stranger.until(200)
        assert (await stranger.ask(X_Forwarded_For="192.0.2.1", Forwarded="for=192.0.2.1"))[0] == 200
        assert (await stranger.ask(X_Forwarded_For="192.0.2.2", Forwarded="for=192.0.2.2"))[0] == 429


async def test_limit_holds_for_many_at_once_on_two_instances(tmp_path, http):
    settings = AdmissionSettings(Limits(public_site=7))
    async with entrance(tmp_path, settings) as one, entrance(tmp_path, settings) as two:
        await one.open_site("alpha")
        strangers = (Stranger(http, one), Stranger(http, two))
        for stranger in strangers:
            await stranger.until(200)
        statuses = [answer[0] for answer in await asyncio.gather(*(strangers[n % 2].ask() for n in range(20)))]
        assert statuses.count(200) == 5
        assert statuses.count(429) == 15


async def test_day_of_a_site_runs_out_for_all_addresses_and_survives(tmp_path, http):
    settings = AdmissionSettings(Limits(public_site=2), Proxies.of("127.0.0.0/8", "X-Forwarded-For"))
    async with entrance(tmp_path, settings) as entry:
        stranger = Stranger(http, entry)
        await entry.open_site("alpha")
        await entry.open_site("beta")
        await stranger.until(200, X_Forwarded_For="192.0.2.1")
        assert (await stranger.ask(X_Forwarded_For="192.0.2.2"))[0] == 200
        assert (await stranger.ask(X_Forwarded_For="192.0.2.3"))[0] == 429
        await stranger.until(200, domain="beta", X_Forwarded_For="192.0.2.1")  # its own day is its own
        own = await entry.key("assistant")
        await stranger.until(200, Authorization=f"Bearer {own}")  # a key has room still
    async with entrance(tmp_path, settings) as entry:
        assert (await Stranger(http, entry).ask(X_Forwarded_For="192.0.2.4"))[0] == 429
