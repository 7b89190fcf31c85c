"""Passkeys from a device in software: one is added on the account page, and then signs its person in."""

import json
from contextlib import asynccontextmanager

import aiohttp
import pytest
from yarl import URL

from tests.dashboard.conftest import COOKIE, SAME_ORIGIN, invite, open_data, sign_in
from tests.fakes.authenticator import SoftwareDevice


@pytest.fixture
def origin(service):
    return str(URL(service.url).with_host("localhost")).rstrip("/")


@asynccontextmanager
async def calling(origin, cookie="", **headers):
    """Call as the page's script does: JSON in, status and JSON out."""
    sent = {**SAME_ORIGIN, **headers, **({"Cookie": f"{COOKIE}={cookie}"} if cookie else {})}
    async with aiohttp.ClientSession(origin, headers=sent, cookie_jar=aiohttp.DummyCookieJar()) as client:

        async def call(path, body=None):
            async with client.post(path, json=body or {}) as answer:
                return answer.status, await answer.json(), answer.cookies

        yield call


async def added(origin, cookie, device, name="Laptop"):
    async with calling(origin, cookie) as call:
        status, options, _ = await call("/account/passkeys/options")
        if status != 200:
            return status
        answer = device.make(json.dumps(options))
        return (await call("/account/passkeys", {"name": name, "answer": json.loads(answer)}))[0]


async def signed_in(origin, device, next_path="/account"):
    async with calling(origin) as call:
        _, options, _ = await call("/sign-in/passkey/options")
        answer = json.loads(device.sign(json.dumps(options)))
        return await call("/sign-in/passkey", {"next": next_path, "answer": answer})


async def person(service, people, name):
    """A person of their own, since sessions and passkeys stay, and the cookie of a session."""
    person_id, link = await invite(
        service.data, email=f"{name}@passkeys.example", organization_id=service.organization_id, role="viewer"
    )
    return person_id, sign_in(service.url, link)


async def test_passkey_signs_its_person_in_until_it_is_removed(service, people, origin):
    person_id, cookie = await person(service, people, "ada")
    device = SoftwareDevice(origin, "localhost")
    device.count = 1
    assert await added(origin, cookie, device) == 200
    assert device.handle.decode() == person_id
    status, answer, cookies = await signed_in(origin, device, "/account?x=1")
    assert (status, answer["location"]) == (200, "../account?x=1")
    session = cookies[COOKIE]
    assert (session["secure"], session["httponly"], session["samesite"]) == ("", True, "Lax")
    async with aiohttp.ClientSession(origin, cookie_jar=aiohttp.DummyCookieJar()) as client:
        headers = {**SAME_ORIGIN, "Cookie": f"{COOKIE}={session.value}"}
        passkey_id = json.loads(device.sign('{"challenge": ""}'))["id"]
        path = f"/account/passkeys/{passkey_id}/remove"
        assert (await client.post(path, headers=headers, allow_redirects=False)).status == 303
        assert (await client.post(path, headers=headers, allow_redirects=False)).status == 404
    status, answer, cookies = await signed_in(origin, device)
    assert (status, "does not sign anyone in" in answer["detail"], COOKIE in cookies) == (403, True, False)


async def test_copied_passkey_is_refused(service, people, origin):
    _, cookie = await person(service, people, "copied")
    device = SoftwareDevice(origin, "localhost")
    device.count = 5
    await added(origin, cookie, device)
    assert (await signed_in(origin, device))[0] == 200
    device.count = 3
    assert (await signed_in(origin, device))[0] == 403


async def test_answer_is_accepted_once_over_http(service, people, origin):
    _, cookie = await person(service, people, "replayed")
    device = SoftwareDevice(origin, "localhost")
    await added(origin, cookie, device)
    async with calling(origin) as call:
        _, options, _ = await call("/sign-in/passkey/options")
        answer = json.loads(device.sign(json.dumps(options)))
        statuses = [(await call("/sign-in/passkey", {"answer": answer}))[0] for _ in range(2)]
    assert statuses == [200, 403]


async def test_passkey_of_a_removed_person_opens_nothing(service, people, origin):
    _, cookie = await person(service, people, "removed")
    device = SoftwareDevice(origin, "localhost")
    await added(origin, cookie, device)
    service.cli("person", "remove", "removed@passkeys.example")
    status, _, cookies = await signed_in(origin, device)
    assert (status, COOKIE in cookies) == (403, False)
    assert await added(origin, cookie, SoftwareDevice(origin, "localhost")) == 401


async def test_passkey_of_one_person_does_not_open_another(service, people, origin):
    _, cookie = await person(service, people, "mallory")
    device = SoftwareDevice(origin, "localhost")
    await added(origin, cookie, device)
    for handle in (people.ids["owner"], "", "../x", "x" * 100):
        device.handle = handle.encode()
        status, _, cookies = await signed_in(origin, device)
        assert (status, COOKIE in cookies) == (403, False)


async def test_passkeys_take_our_own_pages_and_a_session(service, people, origin):
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        async with calling(origin, people.cookies["viewer"], **headers) as call:
            for path in ("/sign-in/passkey/options", "/sign-in/passkey", "/account/passkeys/options"):
                assert (await call(path))[0] == 403
    async with calling(origin) as call:
        for path in ("/account/passkeys/options", "/account/passkeys"):
            assert (await call(path))[0] == 401
    async with calling(origin, people.cookies["viewer"]) as call:
        for body in ({}, {"name": "x"}, {"name": "x", "answer": 5}, {"name": "x", "answer": {"response": {}}}):
            assert (await call("/account/passkeys", body))[0] in (400, 403)


async def test_passkeys_are_recorded_in_the_log(service, people, origin):
    person_id, cookie = await person(service, people, "logged")
    device = SoftwareDevice(origin, "localhost")
    await added(origin, cookie, device, name="Key of Ada")
    await signed_in(origin, device)
    async with open_data(service.data) as runtime:
        events = await runtime.store.read_stream(f"credentials-{person_id}")
    assert [event.type for event in events] == ["passkey-added", "passkey-used"]
    assert {event.metadata.actor for event in events} == {f"person:{person_id}"}
    assert b"Key of Ada" not in b"".join(event.data for event in events)
