"""The sign-in page in a browser: by keyboard, without a script, and with a link that was used."""

import json
from urllib.request import Request, urlopen

import pytest

from tests.dashboard.browsing import SIZES, Browsing
from tests.dashboard.conftest import post_form
from tests.service_process import service_in

pytestmark = pytest.mark.slow


def new_link(service, people):
    return service.cli("login", "--person", people.ids["outsider"])["link"]


def test_link_signs_in_by_keyboard(service, people, browsing):
    with browsing.opened() as page:
        page.goto(new_link(service, people))
        assert "#" not in page.url  # the secret is out of the address
        page.keyboard.press("Enter")
        page.wait_for_url("**/dashboard/**")
        page.goto("/account")
        page.get_by_role("heading", name="Your account").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_text("You are signed out.").wait_for()


def test_link_signs_in_without_a_script(service, people, browsing):
    with browsing.opened(scripts=False) as page:
        link = new_link(service, people)
        page.goto("/account")  # leads to the sign-in page, and back
        page.get_by_label("Sign-in link").fill(link)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url("**/account")
        page.get_by_role("heading", name="Your account").wait_for()
        page.context.clear_cookies()
        page.goto("/sign-in")
        page.get_by_label("Sign-in link").fill(link)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.get_by_role("alert").get_by_text("used already").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_people_are_accessible(service, people, browsing, axe, scheme):
    with browsing.opened("owner", scheme=scheme) as page:
        for path in ("/sign-in", "/account", f"/dashboard/{service.organization_id}/people"):
            page.goto(path)
            assert axe(page) == [], path


@pytest.fixture(scope="module")
def service_behind_a_proxy(tmp_path_factory):
    settings = {"DOCSMITH_SERVER__USER_HEADER": "X-Forwarded-User", "DOCSMITH_SERVER__TRUSTED_PROXIES": "127.0.0.1"}
    with service_in(tmp_path_factory.mktemp("chooser"), settings) as service:
        keys = []
        for name in ("Acme", "Beta"):
            organization = service.cli("organization", "create", "--name", name)["id"]
            keys.append(service.cli("key", "create", "--kind", "admin", "--organization", organization)["token"])
        service.start()
        body = json.dumps({"email": "both@example.com", "role": "viewer"}).encode()
        for key in keys:
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            with urlopen(Request(f"{service.url}/v2/people", body, headers), timeout=60) as answer:
                added = json.load(answer)
            # The link of the invitation is opened in the browser in which the proxy then signs the person in.
            opened = post_form(f"{service.url}/sign-in", {"link": added["signInLink"]})
            here = {"Cookie": opened.headers["Set-Cookie"].partition(";")[0], "X-Forwarded-User": "both@example.com"}
            assert post_form(f"{service.url}/sign-in/proxy", {"account": added["id"]}, here).status == 303
        yield service


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_choice_of_an_account_is_accessible(service_behind_a_proxy, browsing, axe, scheme):
    behind = Browsing(browsing.browser, service_behind_a_proxy.url, {}, "")
    with behind.opened(scheme=scheme) as page:
        page.context.set_extra_http_headers({"X-Forwarded-User": "both@example.com"})
        page.goto("/sign-in?next=/account")
        page.get_by_role("link", name="Acme", exact=True).wait_for()
        assert axe(page) == []
        page.set_viewport_size(SIZES["phone"])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("link", name="Beta", exact=True).focus()
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Your account").wait_for()
