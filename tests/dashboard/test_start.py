"""The start page, errors in a browser, and what needs a person."""

import re

import pytest

from tests.dashboard.conftest import browser, invite, sign_in


async def test_start_page_names_no_private_site(service, nobody, owner):
    for client in (nobody, owner):
        async with client.get("/") as page:
            text = await page.text()
            assert page.status == 200
            assert service.domain not in text
            assert page.headers["Cache-Control"] == "no-store"
            assert "script-src" not in page.headers["Content-Security-Policy"]


async def test_start_page_leads_the_signed_in_to_the_dashboard(nobody, owner):
    assert 'href="./sign-in"' in await (await nobody.get("/")).text()
    assert 'href="./dashboard"' in await (await owner.get("/")).text()


async def test_favicon_is_a_picture(nobody):
    assert (await nobody.get("/favicon.ico")).content_type == "image/svg+xml"


@pytest.mark.parametrize(
    ("accept", "kind"), [("text/html,*/*;q=0.8", "text/html"), ("*/*", "application/problem+json")]
)
async def test_error_is_a_page_where_html_is_asked_for(nobody, accept, kind):
    async with nobody.get("/nothing-here", headers={"Accept": accept}) as answer:
        assert (answer.status, answer.content_type) == (404, kind)


async def test_error_of_api_is_json_for_browsers_too(nobody):
    async with nobody.get("/v2/agent/x/jobs") as answer:
        assert (answer.status, answer.content_type) == (401, "application/problem+json")


async def test_htmx_gets_an_error_as_a_part_of_a_page(owner):
    async with owner.get("/nothing-here", headers={"HX-Request": "true", "Accept": "text/html"}) as answer:
        assert answer.status == 404
        assert (await answer.text()).startswith('<p class="notice trouble" role="alert">')


async def test_dashboard_leads_to_the_one_organization(service, viewer):
    async with viewer.get("/dashboard") as page:
        assert page.url.path == f"/dashboard/{service.organization_id}"
        text = await page.text()
        assert service.domain in text
        assert "script-src 'self'" in page.headers["Content-Security-Policy"]
        assert " style=" not in text
        assert "<script>" not in text


async def test_operator_without_organization_is_led_to_create_one(service):
    _, link = await invite(service.data, email="new-operator@example.com", is_operator=True)
    async with browser(service.url, sign_in(service.url, link)) as operator:
        text = await (await operator.get("/dashboard")).text()
    assert 'href="./operator/organizations"' in text


async def test_first_page_of_operators_shows_disk_and_checkpoint(service, operator, viewer):
    text = await (await operator.get("/dashboard?all")).text()
    assert "of the disk is free" in text
    assert re.search(r'href="[^"]*operator/health">[^<]+</a></p>\s*<p class="label">last signed checkpoint', text)
    assert "of the disk is free" not in await (await viewer.get(f"/dashboard/{service.organization_id}")).text()


async def test_viewer_is_offered_no_new_job(service, viewer, editor):
    path = f"/dashboard/{service.organization_id}"
    assert "jobs/new" not in await (await viewer.get(path)).text()
    assert "jobs/new" in await (await editor.get(path)).text()


async def test_organization_of_others_is_not_found(people, owner):
    theirs = await owner.get(f"/dashboard/{people.other_organization_id}")
    none = await owner.get(f"/dashboard/{'0' * 32}")
    assert (theirs.status, none.status) == (404, 404)
    assert await theirs.text() == await none.text()
