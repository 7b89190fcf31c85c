"""One address: what is listened on, links to pull requests, invitations and pages say the same name."""

import re
import socket
from urllib.parse import urlsplit

import pytest

from tests.dashboard.conftest import COOKIE, ask_page, browser, invite, sign_in
from tests.service_process import service_in

OPENED = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}


ONLY_HERE = "works on this machine only"


def by_number(url: str) -> str:
    """The same service by the number of the machine."""
    return f"http://127.0.0.1:{urlsplit(url).port}"


def test_links_say_the_name_that_is_listened_on(service, people):
    job = service.cli("job", "create", 'Append "One name." to index.md', "--project", service.project_id, "--watch")
    there = ("--organization", service.organization_id)
    invited = service.cli("person", "add", "one-name@example.com", "--role", "viewer", *there)
    assert urlsplit(service.url).hostname == "localhost"
    for link in (job["prLink"], invited["link"], service.cli("login", "--person", people.ids["operator"])["link"]):
        assert link.startswith(f"{service.url}/")


@pytest.mark.parametrize("path", ["/", "/dashboard", "/manual/start?x=1", "/sign-in?next=/account"])
def test_browser_by_number_is_led_to_the_name(service, path):
    led = ask_page(by_number(service.url) + path, None, OPENED)
    assert (led.status, led.headers["Location"]) == (307, service.url + path)


def test_programs_are_not_led_away(service):
    assert ask_page(by_number(service.url) + "/manual", None, {}).status == 200
    assert ask_page(by_number(service.url) + "/healthz", None, OPENED).status == 200
    assert ask_page(service.url + "/manual", None, OPENED).status == 200


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Via", "Forwarded", "X-Real-IP"])
def test_readers_behind_a_proxy_are_not_led_away(service, header):
    """A proxy may name this machine by its number."""
    assert ask_page(by_number(service.url) + "/manual", None, {**OPENED, header: "198.51.100.7"}).status == 200


def test_readers_behind_a_proxy_that_says_nothing_are_not_led_away(service):
    place = urlsplit(by_number(service.url))
    head = "\r\n".join(f"{name}: {value}" for name, value in {**OPENED, "Host": place.netloc}.items())
    with socket.create_connection((place.hostname, place.port), timeout=60) as asked:
        asked.sendall(f"GET /manual HTTP/1.0\r\n{head}\r\n\r\n".encode())
        assert b" 200 " in asked.makefile("rb").readline()


async def test_session_by_number_goes_on(service, people):
    """It began before the name was the one, or by a program."""
    new = {"email": "by-number@example.com", "organization_id": service.organization_id, "role": "viewer"}
    _, link = await invite(service.data, **new)
    cookie = sign_in(service.url, link)
    async with browser(by_number(service.url), cookie) as client:
        async with client.get("/account", headers=OPENED, allow_redirects=False) as page:
            assert page.status == 200
        async with client.get("/sign-in", headers=OPENED, allow_redirects=False) as page:
            assert page.headers["Location"] == f"{service.url}/sign-in"


async def test_dashboard_leads_to_pull_requests_by_the_name_it_is_opened_by(service, people, editor):
    job = service.cli(
        "job", "create", 'Append "Relative links." to index.md', "--project", service.project_id, "--watch"
    )
    path = f"/dashboard/{service.organization_id}/jobs/{job['id']}"
    text = await (await editor.get(path)).text()
    found = re.search(r'href="([^"]*/hosted/[^"]+)"', text)
    assert found is not None
    assert found[1] == "../../../" + urlsplit(job["prLink"]).path.lstrip("/")
    assert ONLY_HERE in await (await editor.get(urlsplit(job["prLink"]).path)).text()
    assert f'href="{service.url}' not in text


def test_public_url_of_this_machine_is_the_one_name(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with service_in(tmp_path, {"DOCSMITH_SERVER__PUBLIC_URL": f"http://127.0.0.1:{port}"}) as service:
        service.start()
        assert service.cli("login")["link"].startswith(f"http://127.0.0.1:{port}/sign-in#")
        led = ask_page(f"http://localhost:{urlsplit(service.url).port}/manual", None, OPENED)
        assert led.headers["Location"] == f"{by_number(service.url)}/manual"


def test_localhost_of_another_program_is_not_the_name(tmp_path):
    """Browsers try ::1 first: there, another program listens."""
    if not socket.has_ipv6:
        pytest.skip("needs IPv6")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other, service_in(tmp_path) as service:
        port = other.getsockname()[1]
        service.start("--port", str(port))
        assert service.url == f"http://127.0.0.1:{port}"
        assert service.cli("login")["link"].startswith(f"{service.url}/sign-in#")


async def test_links_for_others_are_warned_about_without_a_public_address(service, owner, operator):
    base = f"/dashboard/{service.organization_id}"
    new = {"email": "warned@example.com", "role": "viewer"}
    assert ONLY_HERE in await (await owner.post(f"{base}/people", data=new)).text()
    assert ONLY_HERE in await (await owner.get(f"{base}/sites/{service.domain}/widget")).text()
    assert ONLY_HERE not in await (await owner.get(f"{base}/people")).text()
    added = service.run("person", "add", "told@example.com", "--operator")
    assert ONLY_HERE in added.stderr
    assert "public_url" in added.stderr


async def test_links_for_others_are_not_warned_about_with_one(tmp_path):
    with service_in(tmp_path, {"DOCSMITH_SERVER__PUBLIC_URL": "https://docs.example.com"}) as service:
        organization = service.cli("organization", "create", "--name", "Acme")["id"]
        added = service.run("person", "add", "ada@example.com", "--role", "owner")
        assert added.stdout.startswith("https://docs.example.com/sign-in#")
        assert "within 7 days" in added.stderr
        assert ONLY_HERE not in added.stderr
        service.start()
        cookie = sign_in(service.url, added.stdout.strip())
        async with browser(service.url, cookie) as client:
            new = {"email": "grace@example.com", "role": "viewer"}
            invited = await (await client.post(f"/dashboard/{organization}/people", data=new)).text()
            assert "https://docs.example.com/sign-in#" in invited
            assert ONLY_HERE not in invited


@pytest.mark.slow
def test_pages_by_number_show_the_session_of_the_name(service, people, browsing):
    context = browsing.browser.new_context()
    context.add_cookies([{"name": COOKIE, "value": people.cookies["owner"], "url": "https://localhost"}])
    page = context.new_page()
    page.goto(f"{by_number(service.url)}/account")
    page.get_by_role("heading", name="Your account").wait_for()
    assert page.url == f"{browsing.origin}/account"
    context.close()
