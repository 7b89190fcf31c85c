"""Signing in by a one-time link, what ends a session, and which requests count as our own page's."""

import asyncio
import os
import random
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.cookies import SimpleCookie
from urllib.error import URLError

import pytest
from yarl import URL

from tests.dashboard.conftest import COOKIE, SAME_ORIGIN, SECURE_COOKIE, ask_page, browser, invite, post_form, sign_in
from tests.service_process import service_in

KILLS = int(os.environ.get("SIGN_IN_KILLS", "2"))


async def link_of(service, email, **rights):
    _, link = await invite(service.data, email=email, **(rights or {"is_operator": True}))
    return link


async def member_cookie(service, email, role):
    rights = {"organization_id": service.organization_id, "role": role}
    return sign_in(service.url, await link_of(service, email, **rights))


async def test_link_works_once(service, people):
    link = await link_of(service, "once@example.com")
    assert sign_in(service.url, f"{service.url}/sign-in#{link}")  # the whole link, as it is printed
    again = post_form(f"{service.url}/sign-in", {"link": link})
    assert again.status == 401
    assert "link_not_valid" in again.text
    page = post_form(f"{service.url}/sign-in", {"link": link}, {"Accept": "text/html"})
    assert page.status == 401
    assert "used already" in page.text
    assert link.partition(".")[2] not in page.text
    for _ in range(100):
        failed = service.cli("audit", "show", "--type", "sign-ins-failed")["events"]
        if failed:
            break
    assert failed  # the first failure since the start, of whichever test
    assert link.partition(".")[2] not in str(failed)


async def test_one_of_many_browsers_signs_in(service, people):
    link = await link_of(service, "many@example.com")
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: post_form(f"{service.url}/sign-in", {"link": link}), range(8)))
    assert sorted(answer.status for answer in answers) == [303, *[401] * 7]


async def test_cookie_stays_with_this_host_and_page(service, people):
    answer = post_form(
        f"{service.url}/sign-in", {"link": await link_of(service, "cookie@example.com"), "next": "/account"}
    )
    cookie = SimpleCookie(answer.headers["Set-Cookie"])[COOKIE]
    assert answer.headers["Location"].endswith("/account")
    assert (cookie["path"], cookie["httponly"]) == ("/", True)
    assert (cookie["samesite"], cookie["domain"]) == ("Lax", "")
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    settings = {"DOCSMITH_SERVER__PUBLIC_URL": "https://docs.example.com"}
    with service_in(tmp_path_factory.mktemp("public"), settings) as service:
        service.cli("organization", "create", "--name", "Acme")
        service.start()
        yield service


def begin_session(service, headers):
    """The cookies that a sign-in sets, by name, with whether they are for https alone."""
    answer = post_form(f"{service.url}/sign-in", {"link": service.cli("login")["link"].rpartition("#")[2]}, headers)
    found = SimpleCookie("\r\n".join(answer.headers.get_all("Set-Cookie", ())))
    return answer.status, {name: bool(cookie["secure"]) for name, cookie in found.items()}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "docs.localhost"])
def test_cookie_of_plain_http_on_this_machine_needs_no_https(public, host):
    port = public.url.rpartition(":")[2]
    sent = {"Host": f"{host}:{port}", "Origin": f"http://{host}:{port}"}
    assert begin_session(public, sent) == (303, {COOKIE: False})


@pytest.mark.parametrize(
    "sent",
    [
        {"Host": "docs.example.com"},
        {"Host": "docs.example.com", "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"},
        {"X-Forwarded-For": "192.0.2.1"},
        {"X-Forwarded-Proto": "https"},
        {"Forwarded": "for=192.0.2.1;proto=https"},
        {"Via": "1.1 proxy"},
        {"Origin": "https://docs.example.com"},
    ],
)
def test_cookie_behind_a_proxy_is_for_https_alone(public, sent):
    assert begin_session(public, sent) == (303, {SECURE_COOKIE: True})


@pytest.mark.parametrize("host", ["192.0.2.7:8080", "docs.example.com:8080"])
def test_no_one_signs_in_by_plain_http_from_elsewhere(public, host):
    assert begin_session(public, {"Host": host}) == (403, {})


@pytest.mark.parametrize(
    ("name", "host", "status"),
    [
        (COOKIE, "localhost", 200),
        (SECURE_COOKIE, "localhost", 200),
        (SECURE_COOKIE, "docs.example.com", 200),
        (COOKIE, "docs.example.com", 303),
    ],
)
def test_plain_cookie_counts_on_this_machine_alone(public, name, host, status):
    secret = sign_in(public.url, public.cli("login")["link"])
    other = COOKIE if name == SECURE_COOKIE else SECURE_COOKIE
    for sent in (f"{name}={secret}", f"{other}=ended; {name}={secret}", f"{name}={secret}; {other}=ended"):
        assert ask_page(f"{public.url}/account", None, {"Host": host, "Cookie": sent}).status == status


def test_sign_out_drops_each_cookie_that_came(public):
    secret = sign_in(public.url, public.cli("login")["link"])
    left = post_form(f"{public.url}/sign-out", {}, {"Cookie": f"{SECURE_COOKIE}=old; {COOKIE}={secret}"})
    dropped = SimpleCookie("\r\n".join(left.headers.get_all("Set-Cookie", ())))
    assert (dropped[COOKIE].value, dropped[COOKIE]["secure"]) == ("", "")
    assert (dropped[SECURE_COOKIE].value, dropped[SECURE_COOKIE]["secure"]) == ("", True)


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example", "https://evil.example", "/a\r\nb", ""])
async def test_next_page_is_one_of_ours(service, people, path):
    answer = post_form(f"{service.url}/sign-in", {"link": await link_of(service, "next@example.com"), "next": path})
    assert answer.headers["Location"] == "./dashboard"


async def test_sign_out_ends_the_session(service, people):
    cookie = sign_in(service.url, await link_of(service, "leaving@example.com"))
    async with browser(service.url, cookie) as client:
        left = await client.post("/sign-out", allow_redirects=False)
        assert left.status == 303
        assert f'{COOKIE}=""; expires=' in "".join(left.headers.getall("Set-Cookie"))
        assert (await client.post("/sign-out", allow_redirects=False)).status == 401


async def test_page_leads_to_sign_in_and_back(service, nobody):
    away = await nobody.get("/account?a=1&b=2", allow_redirects=False)
    assert (away.status, away.headers["Location"]) == (303, "./sign-in?next=/account%3Fa%3D1%26b%3D2")
    part = await nobody.get("/account", headers={"HX-Request": "true"}, allow_redirects=False)
    assert part.status == 401
    assert (await nobody.post("/account/name", data={"name": "x"}, allow_redirects=False)).status == 401


async def test_session_opens_no_api(service, owner):
    assert (await owner.get("/v2/people")).status == 401
    assert (await owner.get(f"/v2/agent/{service.project_id}/jobs")).status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
async def test_other_sites_change_nothing(service, people, headers):
    cookie = {"Cookie": f"{COOKIE}={people.cookies['owner']}"}
    answer = post_form(f"{service.url}/account/name", {"name": "Mallory"}, {**cookie, **headers}, site=False)
    assert answer.status == 403
    link = await link_of(service, "csrf@example.com")
    refused = post_form(f"{service.url}/sign-in", {"link": link}, headers, site=False)
    assert refused.status == 403
    assert sign_in(service.url, link)


async def test_origin_of_our_own_stands_for_the_header(service, people):
    cookie = {"Cookie": f"{COOKIE}={people.cookies['viewer']}", "Origin": service.url}
    answer = post_form(f"{service.url}/account/name", {"name": "Vera"}, cookie, site=False)
    assert answer.status == 303


async def test_unknown_host_gets_no_page(service, nobody):
    for path in ("/", "/sign-in", "/dashboard", "/manual"):
        assert (await nobody.get(path, headers={"Host": "evil.example"})).status == 421
    port = service.url.rpartition(":")[2]
    assert (await nobody.get("/sign-in", headers={"Host": f"localhost:{port}"})).status == 200
    assert (await nobody.get("/healthz", headers={"Host": "evil.example"})).status == 200
    listed = await nobody.get("/v2/people", headers={**service.admin, "Host": "docsmith:8080"})
    assert listed.status == 200


async def test_session_opens_nothing_by_an_unknown_host(service, people, owner):
    """A path that looks like git's, which is let in by any name."""
    for path in ("/dashboard/a.git%2F/keys", "/hosted/a.git%2Fb/pulls/1-c", "/account/passkeys/.git%2F/remove"):
        async with owner.get(URL(path, encoded=True), headers={"Host": "evil.example"}) as answer:
            assert answer.status == 421, path
    async with owner.get("/hosted/a.git/info/refs?service=git-upload-pack", headers={"Host": "evil.example"}) as git:
        assert git.status != 421


async def test_sign_in_wants_https_away_from_this_machine(service, people, nobody):
    link = await link_of(service, "https@example.com")
    shown = await nobody.get("/sign-in", headers={"Host": "192.0.2.7:8080"})
    assert shown.status == 403
    assert "needs https" in await shown.text()
    for kind in ("application/x-www-form-urlencoded", "text/plain"):  # what is sent is not looked at
        sent = {"Host": "192.0.2.7:8080", "Content-Type": kind}
        assert post_form(f"{service.url}/sign-in", {"link": link}, sent).status == 403
    assert sign_in(service.url, link)


@pytest.mark.parametrize("command", [("add", "--role", "viewer"), ("remove",)])
async def test_live_page_ends_with_the_role(service, people, command):
    email = f"live-{command[0]}@example.com"
    cookie = await member_cookie(service, email, "editor")
    path = f"/dashboard/{service.organization_id}/jobs/live"
    async with browser(service.url, cookie) as client, client.get(path) as live:
        assert live.status == 200
        verb, *rest = command
        await asyncio.to_thread(
            service.cli, "person", verb, email, *rest, "--organization", service.organization_id
        )  # another process
        with suppress(asyncio.IncompleteReadError):
            await live.content.read()  # to its end
        assert (await client.get("/account", allow_redirects=False)).status == 303


async def test_member_of_another_organization_sees_nothing(service, people, outsider, owner):
    theirs = await outsider.get(f"/dashboard/{service.organization_id}/people")
    missing = await outsider.get("/dashboard/0123456789abcdef0123456789abcdef/people")
    assert theirs.status == missing.status == 404
    assert (await owner.get(f"/dashboard/{service.organization_id}/people")).status == 200


async def test_proxy_header_counts_from_trusted_proxies_alone(tmp_path):
    settings = {"DOCSMITH_SERVER__USER_HEADER": "X-Forwarded-User"}
    with service_in(tmp_path, settings) as service:
        service.cli("organization", "create", "--name", "Acme")
        service.cli("person", "add", "ada@example.com", "--role", "viewer")
        service.start()
        ada = {"X-Forwarded-User": "Ada@example.com"}
        async with browser(service.url) as client:
            assert (await client.get("/sign-in", headers=ada, allow_redirects=False)).status == 200
        service.stop()
        service.environment["DOCSMITH_SERVER__TRUSTED_PROXIES"] = "127.0.0.1"
        service.start()
        async with browser(service.url) as client:
            opened = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
            known = await client.get("/sign-in?next=/account", headers=ada | opened, allow_redirects=False)
            assert (known.status, known.headers["Location"]) == (303, "./account")
            cookie = SimpleCookie(known.headers["Set-Cookie"])[SECURE_COOKIE].value
            another = await client.get("/sign-in", headers={"X-Forwarded-User": "eve@example.com", **opened})
            assert another.status == 403
            assert "eve@example.com has no role here" in await another.text()
        kept = {"Cookie": f"{SECURE_COOKIE}={cookie}"}
        async with browser(service.url) as client:
            assert (await client.get("/account", headers=ada | kept)).status == 200
            eve = {"X-Forwarded-User": "eve@example.com"}
            others = await client.get("/account", headers=eve | kept, allow_redirects=False)
            assert others.status == 303


@pytest.mark.parametrize("named", [b"\xff\xfe@example.com", "\u212ada@example.com".encode(), b"ada"])
async def test_address_of_a_proxy_that_is_none_is_nobodys(proxied, named):
    host = f"localhost:{proxied.url.rpartition(':')[2]}"
    reader, writer = await asyncio.open_connection("127.0.0.1", int(host.rpartition(":")[2]))
    for path in (b"/sign-in", b"/account"):
        head = b"GET %b HTTP/1.1\r\nHost: %b\r\nX-Forwarded-User: %b\r\n\r\n" % (path, host.encode(), named)
        writer.write(head)
        status = (await reader.readuntil(b"\r\n")).split()[1]
        assert status in (b"200", b"303", b"401", b"403"), status
        rest = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", rest)
        await reader.readexactly(int(length[1]) if length else 0)
    writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        {"Sec-Fetch-Dest": "image", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-origin"},
        {},
    ],
)
async def test_other_websites_begin_no_session_of_a_proxied_person(proxied, sent):
    ada = {"X-Forwarded-User": "ada@example.com"}
    async with browser(proxied.url) as client:
        shown = await client.get("/sign-in?next=/account", headers=ada | sent, allow_redirects=False)
        assert (shown.status, "Set-Cookie" in shown.headers) == (200, False)
        assert "Continue as ada@example.com" in await shown.text()
        elsewhere = {**ada, "Sec-Fetch-Site": "cross-site"}
        assert (await client.post("/sign-in/proxy", headers=elsewhere, data={})).status == 403
        here = {**ada, "Sec-Fetch-Site": "same-origin"}
        assert (await client.post("/sign-in/proxy", headers=SAME_ORIGIN, data={})).status == 200  # no one is named
        begun = await client.post("/sign-in/proxy", headers=here, data={"next": "/account"}, allow_redirects=False)
        assert (begun.status, begun.headers["Location"]) == (303, "../account")
        assert SECURE_COOKIE in SimpleCookie(begun.headers["Set-Cookie"])


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    settings = {"DOCSMITH_SERVER__USER_HEADER": "X-Forwarded-User", "DOCSMITH_SERVER__TRUSTED_PROXIES": "127.0.0.1"}
    with service_in(tmp_path_factory.mktemp("proxied"), settings) as service:
        service.cli("organization", "create", "--name", "Acme")
        service.cli("person", "add", "ada@example.com", "--role", "viewer")
        service.start()
        yield service


@pytest.mark.slow
@pytest.mark.parametrize("number", range(KILLS))
async def test_link_works_once_across_kills(tmp_path, number):
    """kill -9 at a random instant of the exchange: the link is good, or it has been used; never both."""
    chosen = random.Random(number)
    with service_in(tmp_path) as service:
        service.cli("organization", "create", "--name", "Acme")
        link = (await asyncio.to_thread(service.cli, "login"))["link"].rpartition("#")[2]
        signed_in = 0
        for _ in range(6):
            service.start()
            delay = chosen.uniform(0, 0.03)
            with ThreadPoolExecutor(1) as thread:
                answer = thread.submit(post_form, f"{service.url}/sign-in", {"link": link})
                with suppress(TimeoutError):
                    answer.result(delay)
                service.kill()
                with suppress(URLError, ConnectionError):
                    signed_in += answer.result().status == 303
        service.start()
        if not signed_in:  # what the last answer would have said may have been lost with the process
            last = post_form(f"{service.url}/sign-in", {"link": link})
            assert last.status in (303, 401)
            signed_in += last.status == 303
        assert signed_in <= 1
        assert post_form(f"{service.url}/sign-in", {"link": link}).status == 401
        assert sign_in(service.url, service.cli("login")["link"])
        assert service.cli("audit", "verify")


async def test_sign_in_page_says_that_there_is_no_provider(nobody):
    async with nobody.get("/sign-in/oidc", allow_redirects=False) as answer:
        text = await answer.text()
    assert answer.status == 404
    assert "No identity provider signs people in here" in text
    assert 'name="link"' in text
