"""Kinds of assistant keys, and the reader tokens of those for browsers; attacked with copies and forgeries."""

import asyncio
from datetime import timedelta

import aiohttp
import pytest

from service.domain.access.reader_tokens import Reader, is_reader_token_valid, make_reader_token
from service.domain.access.usage import Limits
from service.runtime.system import now
from service.web.http.connections.admission import AdmissionSettings
from service.web.http.connections.client_address import Proxies
from tests.web.entrance import entrance, key_id

DOCS, SHOP = "https://docs.example.com", "https://shop.example.com"
MESSAGE, TOKEN = "/discovery/v2/assistant/alpha/message", "/discovery/v1/token/{}"
SETTINGS = AdmissionSettings(Limits(address_tokens=3), Proxies.of("127.0.0.1", "X-Forwarded-For"))


class Page:
    """A page of a website, or a program that says that it is one."""

    def __init__(self, http, entry, key, origin=DOCS, address="192.0.2.1"):
        self.http, self.entry, self.key, self.origin, self.address = http, entry, key, origin, address

    async def post(self, path, token=None, **more):
        fields = {"Authorization": f"Bearer {self.key}", "Origin": self.origin, "X-Forwarded-For": self.address,
                  "X-Reader-Token": token, **more}  # fmt: skip
        headers = {name: value for name, value in fields.items() if value is not None}
        async with self.http.post(self.entry.url + path, headers=headers, json={}) as response:
            return response.status, await response.json(), response.headers

    async def ask(self, token=None, **more):
        status, body, _ = await self.post(MESSAGE, token, **more)
        return status, body.get("code", "")

    async def token(self, domain="alpha"):
        status, body, _ = await self.post(TOKEN.format(domain))
        assert status == 200, body
        return body["token"]


@pytest.fixture
async def http():
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def entry(tmp_path):
    async with entrance(tmp_path, SETTINGS) as entry:
        yield entry


async def browser_key(entry, *origins):
    return await entry.key("assistant", allowed_origins=origins or (DOCS,), needs_reader_token=None)


async def test_page_asks_with_its_token(entry, http):
    page = Page(http, entry, await browser_key(entry))
    assert await page.ask() == (401, "reader_token_required")
    status, body, headers = await page.post(TOKEN.format("alpha"))
    assert (status, set(body)) == (200, {"token", "expiresAt", "expiresIn"})
    assert body["expiresIn"] == 900
    assert headers["RateLimit-Policy"] == '"address-tokens";q=3;w=60'
    assert await page.ask(body["token"]) == (200, "")
    own = {"Origin": None, "Sec-Fetch-Site": "same-origin"}  # as a GET of our own pages comes
    assert await page.ask(body["token"], **own) == (200, "")


@pytest.mark.parametrize("change", ["key", "origin", "address"])
async def test_token_of_another_caller_is_refused(entry, http, change):
    key = await browser_key(entry, DOCS, SHOP)
    others = {
        "key": Page(http, entry, await browser_key(entry)),
        "origin": Page(http, entry, key, origin=SHOP),
        "address": Page(http, entry, key, address="192.0.2.2"),
    }
    token = await Page(http, entry, key).token()
    assert await others[change].ask(token) == (401, "reader_token_expired")


async def test_network_of_ipv6_is_one_reader(entry, http):
    key = await browser_key(entry)
    token = await Page(http, entry, key, address="2001:db8:1:2::1").token()
    assert await Page(http, entry, key, address="2001:db8:1:2:3::4").ask(token) == (200, "")
    assert (await Page(http, entry, key, address="2001:db8:1:3::1").ask(token))[0] == 401


async def test_forged_tokens_are_refused(entry, http):
    page = Page(http, entry, await browser_key(entry))
    token = await page.token()
    turned = "".join("A" if letter != "A" else "B" for letter in token)
    longer = make_reader_token(b"guess", Reader(key_id(page.key), "192.0.2.1"), DOCS, now() + timedelta(days=9))
    for forged in (token[:-1], token[1:], token + "AAAA", token[:-4], turned, longer, "x", "=", "A" * 5000, "%00"):
        assert await page.ask(forged) == (401, "reader_token_expired"), forged
    assert await page.ask(token) == (200, "")


async def test_token_ends():
    reader, at = Reader("key", "192.0.2.1"), now()
    token = make_reader_token(b"secret", reader, DOCS, at + timedelta(minutes=15))
    assert is_reader_token_valid(b"secret", token, reader, DOCS, at + timedelta(minutes=14))
    assert not is_reader_token_valid(b"secret", token, reader, DOCS, at + timedelta(minutes=15))


async def test_token_needs_an_allowed_page(entry, http):
    key = await browser_key(entry)
    for origin in ("https://evil.example", "null", None):
        status, body, _ = await Page(http, entry, key, origin=origin).post(TOKEN.format("alpha"))
        assert (status, body["code"]) == (403, "origin_not_allowed")
    status, body, _ = await Page(http, entry, key).post(TOKEN.format("gamma"))
    assert (status, body["code"]) == (404, "domain_not_found")
    status, body, _ = await Page(http, entry, await entry.key("assistant")).post(TOKEN.format("alpha"))
    assert (status, body["code"]) == (409, "conflict")


async def test_address_runs_out_of_tokens(entry, http):
    page = Page(http, entry, await browser_key(entry))
    for _ in range(3):
        await page.token()
    status, body, headers = await page.post(TOKEN.format("alpha"))
    assert (status, body["code"]) == (429, "rate_limited")
    assert 0 < int(headers["Retry-After"]) <= 60
    await Page(http, entry, page.key, address="192.0.2.9").token()


async def test_key_made_before_works_without_tokens(entry, http):
    page = Page(http, entry, await entry.key("assistant", allowed_origins=(DOCS,)))
    assert await page.ask() == (200, "")
    assert await page.ask(await page.token()) == (200, "")


async def test_server_key_is_refused_from_pages(entry, http):
    page = Page(http, entry, await entry.key("assistant", is_server=True))
    assert await page.ask() == (403, "origin_not_allowed")
    for site in ("cross-site", "same-origin"):
        assert await page.ask(Origin=None, **{"Sec-Fetch-Site": site}) == (403, "origin_not_allowed")
    assert await page.ask(Origin=None) == (200, "")


@pytest.mark.parametrize("origin", [b"https://\xff", b"https://" + 300 * b"a"])
async def test_origin_of_no_browser_gets_no_token(entry, origin):
    key = await browser_key(entry)
    reader, writer = await asyncio.open_connection("127.0.0.1", entry.port)
    head = f"POST {TOKEN.format('alpha')} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    own = "Sec-Fetch-Site: same-origin\r\nContent-Length: 0\r\nConnection: close\r\nOrigin: "
    writer.write((head + own).encode() + origin + b"\r\n\r\n")
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 403")
