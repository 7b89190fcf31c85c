"""The operator's pages: health and disk, settings, organizations."""

import re

import pytest

from tests.dashboard.conftest import invite, sign_in

PAGES = ("/operator/health", "/operator/settings", "/operator/organizations")


@pytest.mark.parametrize("path", PAGES)
async def test_operator_page_is_for_operators(operator, owner, nobody, path):
    assert (await operator.get(path)).status == 200
    assert (await owner.get(path)).status == 403
    assert (await nobody.get(path, allow_redirects=False)).status == 303


async def test_health_page_names_disk_models_and_state(operator, service):
    text = await (await operator.get("/operator/health")).text()
    assert "All parts of the service work." in text
    assert "builtin" in text
    assert re.search(r"Log of all events</th><td class=\"number\">[\d.,]+ (?:k|M)?B", text)
    assert str(service.data) in text


async def test_health_is_sent_live(operator):
    async with operator.get("/operator/health/live") as answer:
        assert answer.content_type == "text/event-stream"
        first = await answer.content.readuntil(b"\n\n")
    assert first.startswith(b"data: ")
    assert b"All parts of the service work." in first


async def test_settings_name_their_origin(operator):
    text = await (await operator.get("/operator/settings?changed")).text()
    assert "DOCSMITH_" in text
    assert '<span class="soft">default</span>' not in text
    assert '<span class="soft">default</span>' in await (await operator.get("/operator/settings")).text()


async def test_new_organization_belongs_to_its_creator(operator):
    page = await (await operator.get("/operator/organizations")).text()
    form = {"id": re.search(r'name="id" value="([0-9a-f]{32})"', page)[1], "name": "Gamma <b>"}
    for _ in range(2):  # the second is the same form, sent again
        made = await operator.post("/operator/organizations", data=form, allow_redirects=False)
        assert (made.status, made.headers["Location"]) == (303, f"../dashboard/{form['id']}")
    overview = await operator.get(f"/dashboard/{form['id']}", headers={"Cookie": _cookies(operator, made)})
    text = await overview.text()
    assert "Gamma &lt;b&gt; is created, and you own it." in text
    assert 'href="../dashboard/' + form["id"] + '/projects/new"' in text
    assert (await (await operator.get("/operator/organizations")).text()).count("Gamma &lt;b&gt;") == 1


async def test_organization_without_a_name_is_refused(operator):
    form = {"id": "0" * 32, "name": " "}
    refused = await operator.post("/operator/organizations", data=form)
    assert refused.status == 400
    assert 'aria-invalid="true"' in await refused.text()


def _cookies(client, answer):
    """The client's own cookie, with those of an answer."""
    return "; ".join([client.headers["Cookie"], *(f"{one.key}={one.value}" for one in answer.cookies.values())])


async def test_menu_stays_on_the_pages_of_an_operator(service, nobody):
    new = {"email": "both@example.com", "organization_id": service.organization_id, "role": "owner"}
    _, link = await invite(service.data, **new, is_operator=True)
    cookie = {"Cookie": f"__Host-docsmith={sign_in(service.url, link)}"}
    for path in ("/operator/organizations", "/operator/health", "/operator/settings", "/operator/audit"):
        async with nobody.get(path, headers=cookie) as answer:
            text = await answer.text()
            assert answer.status == 200, text
            for section in ("jobs", "gaps", "webhooks"):
                assert f'dashboard/{service.organization_id}/{section}"' in text
