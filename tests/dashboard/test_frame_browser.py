"""The frame in a browser: live regions, the menu of a phone, the reference's search and its try-it form."""

import re

import pytest

from tests.dashboard.conftest import COOKIE, post_form

pytestmark = pytest.mark.slow
SIZES_AND_SCHEMES = [("desktop", "light"), ("desktop", "dark"), ("phone", "light"), ("phone", "dark")]


def test_live_region_follows_the_log(browsing, service, people):
    with browsing.opened("operator") as page:
        page.goto("/operator/health")
        count = page.locator("#health dd").first
        page.locator("#health[data-htmx-powered], #health").first.wait_for()
        before = int(count.inner_text().replace(",", ""))
        page.evaluate("document.querySelector('#health').dataset.kept = 'yes'")
        cookie = {"Cookie": f"{COOKIE}={people.cookies['operator']}"}
        form = {"id": "f" * 32, "name": "Live"}
        assert post_form(f"{service.url}/operator/organizations", form, cookie).status == 303
        page.wait_for_function(
            "before => Number(document.querySelector('#health dd').textContent.replaceAll(',', '')) > before",
            arg=before,
        )
        assert page.locator("#health").get_attribute("data-kept") == "yes"  # the page was not loaded again


def test_phone_menu_opens_without_a_script(browsing):
    with browsing.opened("owner", size="phone", scripts=False) as page:
        page.goto("/dashboard")
        jobs = page.get_by_role("link", name="Jobs", exact=True)
        assert not jobs.is_visible()
        page.get_by_role("button", name="Menu").click()
        jobs.click()
        page.wait_for_url("**/jobs")


def test_reference_search_swaps_as_one_types(browsing):
    with browsing.opened() as page:
        page.goto("/docs")
        page.get_by_label("Search operations").fill("cancel job")
        page.get_by_text(re.compile(r"operations? found for")).wait_for()
        assert page.locator("#createJob").count() == 0
        page.locator("#cancelJob a").click()
        page.get_by_role("heading", name="Cancel a job").wait_for()


def test_reference_search_works_without_a_script(browsing):
    with browsing.opened(scripts=False) as page:
        page.goto("/docs")
        page.get_by_label("Search operations").fill("cancel job")
        page.get_by_role("button", name="Search").click()
        page.get_by_text(re.compile(r"operations? found for")).wait_for()


def test_operation_is_tried_with_a_pasted_key(browsing, service):
    with browsing.opened("owner") as page:
        page.goto("/docs/createJob")
        page.get_by_label("Key").fill(service.admin_key)
        page.get_by_label("projectId").fill(service.project_id)
        page.get_by_role("button", name="Send").click()
        page.get_by_text("201 Created").wait_for()
        page.wait_for_function("document.querySelector('#try output pre').textContent.includes('builtin/editor')")
        kept = "JSON.stringify([{...localStorage}, {...sessionStorage}, location.href, history.state])"
        assert service.admin_key not in page.evaluate(kept)
        page.reload()
        assert page.get_by_label("Key").input_value() == ""


def test_pasted_key_is_in_no_address_where_its_script_is_missing(browsing):
    with browsing.opened() as page:
        page.route("**/assets/try.js*", lambda route: route.abort())
        page.goto("/docs/listKeys")
        page.get_by_label("Key").fill("docsmith_secret")
        page.get_by_label("Key").press("Enter")
        assert page.get_by_role("button", name="Send").is_disabled()
        page.evaluate("document.getElementById('try').submit()")  # as a script of an older page might
        page.wait_for_url(lambda url: "?" in url)
        assert "docsmith_secret" not in page.url


def test_session_does_not_open_the_api_from_a_page(browsing, service):
    with browsing.opened("owner") as page:
        page.goto("/docs/listJobs")
        status = page.evaluate("path => fetch(path).then(r => r.status)", f"/v2/agent/{service.project_id}/jobs")
        assert status == 401


@pytest.mark.parametrize(("size", "scheme"), SIZES_AND_SCHEMES)
def test_public_pages_are_accessible_and_fit(browsing, axe, size, scheme):
    with browsing.opened(size=size, scheme=scheme) as page:
        for path in ("/", "/docs", "/docs/createJob", "/manual", "/nothing", "/docs/errors/not_found"):
            page.goto(path)
            assert axe(page, colors_only=scheme == "dark") == [], path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
