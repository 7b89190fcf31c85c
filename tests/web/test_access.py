"""Who may do what: random histories of keys and requests, against a model of a few lines."""

import asyncio
import base64
import tempfile
from contextlib import aclosing
from pathlib import Path

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from eventstore import SQLiteEventStore, execute
from service.domain.access.callers import address_of, is_origin_allowed, is_within
from service.domain.access.keys import ChangeKey, RevokeKey
from service.runtime.system import new_key_token, now
from service.streams import KEYS
from service.web.http.connections.admission import AdmissionSettings
from service.web.http.connections.client_address import Proxies
from tests.web.entrance import ORGANIZATIONS_PROJECTS, entrance, key_id

ADDRESSES = ("", "192.0.2.1", "2001:db8::1")
ORIGINS = ("", "https://docs.example.com", "https://evil.example", "null")
PLACES = ("alpha", "beta", "gamma", "nowhere")
LISTS = st.tuples(
    st.sampled_from([(), ("192.0.2.0/24",), ("2001:db8::/32", "198.51.100.7/32")]),
    st.sampled_from([(), ("https://docs.example.com",), ("https://*.example.com",)]),
)


class Key(Struct):
    token: str
    kind: str
    organization: str
    domains: tuple[str, ...]
    expired: bool
    addresses: tuple[str, ...]
    origins: tuple[str, ...]
    revoked: bool = False


def expected(key, api, place, address, origin):
    """Status and code of the answer."""
    if key is None or key.revoked:
        return 401, "unauthorized"
    if key.expired:
        return 401, "key_expired"
    if key.addresses and not is_within(address_of(address or "127.0.0.1"), key.addresses):
        return 403, "address_not_allowed"
    if key.origins and origin and not is_origin_allowed(origin, key.origins):
        return 403, "origin_not_allowed"
    if key.kind != ("admin" if api == "agent" else "assistant"):
        return 403, "wrong_key_kind"
    if place not in ORGANIZATIONS_PROJECTS[key.organization]:
        return 404, "project_not_found" if api == "agent" else "domain_not_found"
    if api == "assistant" and place not in key.domains:
        return 403, "forbidden"
    return 200, ""


STEPS = st.one_of(
    st.tuples(
        st.just("create"), st.sampled_from(["admin", "assistant"]), st.sampled_from(["one", "two"]), st.booleans(),
        LISTS, st.sampled_from([True, False, False, False]),
    ),
    st.tuples(st.just("revoke"), st.integers(0, 9)),
    st.tuples(st.just("change"), st.integers(0, 9), LISTS),
    *[
        st.tuples(
            st.just("ask"), st.integers(-1, 9), st.sampled_from(["agent", "assistant"]), st.sampled_from(PLACES),
            st.sampled_from(ADDRESSES), st.sampled_from(ORIGINS),
        )
    ] * 3,
)  # fmt: skip


async def play(steps, elsewhere):
    """Each change is by this process or, as ``elsewhere`` says, by another one, whose changes are seen in a second."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        behind_proxy = AdmissionSettings(proxies=Proxies.of("127.0.0.1", "X-Forwarded-For"))
        async with (
            entrance(data, behind_proxy) as entry,
            await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as other,
            aiohttp.ClientSession() as http,
        ):
            keys: list[Key] = []
            for number, step in enumerate(steps):
                store = other if elsewhere[number % len(elsewhere)] else entry.store
                match step:
                    case ("create", kind, organization, all_domains, (addresses, origins), expired):
                        places = ORGANIZATIONS_PROJECTS[organization]
                        domains = () if kind == "admin" else places if all_domains else places[:1]
                        origins = origins if kind == "assistant" else ()
                        token = await entry.key(
                            kind, organization, domains=domains, store=store, expired=expired,
                            allowed_addresses=addresses, allowed_origins=origins,
                        )  # fmt: skip
                        keys.append(Key(token, kind, organization, domains, expired, addresses, origins))
                    case ("revoke", which) if which < len(keys):
                        keys[which].revoked = True
                        await execute(store, KEYS, key_id(keys[which].token), RevokeKey(now()))
                    case ("change", which, (addresses, origins)) if which < len(keys) and not keys[which].revoked:
                        key = keys[which]
                        key.addresses, key.origins = addresses, origins if key.kind == "assistant" else ()
                        change = ChangeKey(now(), allowed_addresses=key.addresses, allowed_origins=key.origins)
                        await execute(store, KEYS, key_id(key.token), change)
                    case ("ask", which, api, place, address, origin) if which < len(keys):
                        key = keys[which] if which >= 0 else None
                        wanted = expected(key, api, place, address, origin)
                        async with asyncio.timeout(60):
                            while await ask(http, entry.url, key, api, place, address, origin) != wanted:
                                assert any(elsewhere)  # what this process did is known at once


async def ask(http, url, key, api, place, address, origin):
    headers = {"Authorization": f"Bearer {key.token if key else new_key_token('admin')}"}
    if address:
        headers["X-Forwarded-For"] = f"203.0.113.7, {address}"
    if origin:
        headers["Origin"] = origin
    path = f"/v2/agent/{place}/job" if api == "agent" else f"/discovery/v2/assistant/{place}/message"
    async with http.post(url + path, headers=headers, json={}) as response:
        body = await response.json()
        allowed = response.headers.get("Access-Control-Allow-Origin")
        assert allowed is None or api == "assistant"
        assert ("Origin" in response.headers.getall("Vary", [])) == (api == "assistant")
        if api == "assistant" and origin:  # without it nothing needs to be allowed
            assert allowed is not None
        if api == "assistant" and response.status == 200:
            assert allowed == ((origin or None) if key.origins else "*")
        return response.status, body.get("code", "")


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=5, max_size=40), st.lists(st.booleans(), min_size=1, max_size=5))
def test_a_key_opens_what_the_model_says(steps, elsewhere):
    asyncio.run(play(steps, elsewhere))


@pytest.mark.parametrize(
    ("scope", "method", "path", "status"),
    [
        ("read", "GET", "/v2/agent/alpha/job", 200),
        ("read", "POST", "/v2/agent/alpha/job", 403),
        ("read", "POST", "/v2/agent/nowhere/job", 403),
        ("jobs", "GET", "/v2/agent/alpha/job", 200),
        ("jobs", "POST", "/v2/agent/alpha/job", 200),
        ("jobs", "POST", "/v2/other/alpha", 403),
        ("jobs", "DELETE", "/v2/other/alpha", 403),
        ("all", "POST", "/v2/other/alpha", 200),
    ],
)
async def test_key_opens_what_its_scope_includes(tmp_path, scope, method, path, status):
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as http:
        headers = {"Authorization": f"Bearer {await entry.key(scope=scope)}"}
        async with http.request(method, entry.url + path, headers=headers, json={}) as response:
            assert response.status == status
            assert status == 200 or (await response.json())["code"] == "scope_not_allowed"


@pytest.mark.parametrize(("scope", "service", "status"), [
    ("read", "git-upload-pack", 200), ("read", "git-receive-pack", 403), ("jobs", "git-receive-pack", 403),
    ("all", "git-receive-pack", 200),
])  # fmt: skip
async def test_git_push_needs_the_widest_scope(tmp_path, scope, service, status):
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as http:
        basic = base64.b64encode(f"docsmith:{await entry.key(scope=scope)}".encode()).decode()
        url = f"{entry.url}/git/alpha?service={service}"
        async with http.get(url, headers={"Authorization": f"Basic {basic}"}) as response:
            assert response.status == status


async def test_missing_things_and_those_of_others_are_answered_alike(tmp_path):
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as http:
        token = await entry.key(organization="two")
        bodies = []
        for place in ("alpha", "nowhere"):
            headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "same"}
            async with http.get(f"{entry.url}/v2/agent/{place}/job", headers=headers) as response:
                told = sorted(field for field in response.headers.items() if field[0] != "Date")  # a second may pass
                bodies.append((response.status, await response.read(), told))
        assert bodies[0] == bodies[1]


async def test_that_a_key_was_used_is_recorded_once_an_hour(tmp_path):
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as http:
        token = await entry.key()
        for _ in range(20):
            async with http.get(
                f"{entry.url}/v2/agent/alpha/job", headers={"Authorization": f"Bearer {token}"}
            ) as done:
                assert done.status == 200
        async with (
            asyncio.timeout(60),
            aclosing(entry.store.subscribe(stream=KEYS.stream(key_id(token)))) as events,
        ):
            async for event in events:
                if event.type == "key-used":
                    break
        assert await entry.store.stream_version(KEYS.stream(key_id(token))) == 2


async def test_the_preflight_of_a_page_needs_no_key(tmp_path):
    headers = {"Origin": "https://docs.example.com", "Access-Control-Request-Method": "POST"}
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as http:
        async with http.options(f"{entry.url}/discovery/v2/assistant/alpha/message", headers=headers) as response:
            assert (response.status, response.headers["Access-Control-Allow-Origin"]) == (204, "*")
        async with http.options(f"{entry.url}/v2/agent/alpha/job", headers=headers) as response:
            assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize(
    "credentials", ["B\xe4sic x", "Basic \xe4\xf6", "Basic =", "Basic /w==", "Basic " + "A" * 5000]
)
async def test_odd_git_credentials_open_nothing(tmp_path, credentials):
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as http:
        async with http.get(f"{entry.url}/git/alpha", headers={"Authorization": credentials}) as response:
            assert await response.json() == {"allowed": False}
        right = base64.b64encode(f"docsmith:{await entry.key()}".encode()).decode()
        async with http.get(f"{entry.url}/git/alpha", headers={"Authorization": f"Basic {right}"}) as response:
            assert await response.json() == {"allowed": True}
