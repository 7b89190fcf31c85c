"""The sign-in page in a browser: by keyboard, without a script, and with a link that was used."""

import pytest

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
