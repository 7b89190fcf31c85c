"""The ask page: who may open it, and what its requests answer to whom."""

import asyncio

import pytest

from tests.dashboard.conftest import browser
from tests.end_to_end.talk import chunks, question, text_of
from tests.service_process import DOCS, write_docs

PATH = "/ask/kite"
SECRET = "zq-9417-vx"
RESTRICTED = f"---\ntitle: Staff\ngroups: [staff]\n---\n\n# Staff\n\nFor staff, the vault code is {SECRET}.\n"


async def asked(client, **headers):
    async with client.post(f"{PATH}/message", json=question("How do I install Kite?"), headers=headers) as response:
        return response.status, await response.text()


@pytest.mark.parametrize("name", ["owner", "editor", "viewer"])
async def test_person_of_the_organization_may_ask(service, people, name):
    async with browser(service.url, people.cookies[name]) as client:
        async with client.get(PATH) as response:
            assert (response.status, "Ask kite" in await response.text()) == (200, True)
        status, stream = await asked(client)
    assert status == 200
    assert "installer" in text_of(chunks(stream))


@pytest.mark.parametrize("name", ["outsider", "operator"])
async def test_site_of_others_is_as_one_that_is_not_there(service, people, name):
    answers = []
    async with browser(service.url, people.cookies[name]) as client:
        assert (await asked(client))[0] == 404
        for path in (PATH, "/ask/none"):
            async with client.get(path, allow_redirects=False) as response:
                text = await response.text()
                answers.append((response.status, text.replace(response.headers["X-Request-Id"], "").replace(path, "")))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404


async def test_private_site_asks_to_sign_in(nobody):
    assert (await asked(nobody))[0] == 401
    for path in (PATH, "/ask/none"):
        async with nobody.get(path, allow_redirects=False) as response:
            assert (response.status, response.headers["Location"].split("?")[0]) == (303, "../sign-in")


async def test_another_website_cannot_ask(viewer):
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        assert (await asked(viewer, **headers))[0] == 403


async def test_session_opens_no_address_of_the_api(viewer):
    async with viewer.post("/discovery/v2/assistant/kite/message", json=question("How?")) as response:
        assert response.status == 401


async def test_page_searches_without_a_script(viewer):
    async with viewer.get(PATH, params={"q": "retry <b>delay"}) as response:
        text = await response.text()
    assert "retryDelaySecs" in text
    assert "<b>" not in text
    async with viewer.get(PATH, params={"q": "xyzzyplugh"}) as response:
        assert "Nothing was found" in await response.text()


async def test_page_of_a_site_without_an_address_is_shown(viewer, outsider, nobody):
    async with viewer.get(f"{PATH}/pages/retry") as response:
        text = await response.text()
    assert (response.status, '<section id="delay">' in text, "retryDelaySecs" in text) == (200, True, True)
    async with viewer.get(PATH, params={"q": "retry delay"}) as response:
        assert 'href="../ask/kite/pages/retry#delay"' in await response.text()
    for path in ("none", "../../dashboard", "a" * 3_000):
        async with viewer.get(f"{PATH}/pages/{path.replace('.', '%2E')}") as response:
            assert response.status == 404
    async with outsider.get(f"{PATH}/pages/retry") as response:
        assert response.status == 404
    async with nobody.get(f"{PATH}/pages/retry", allow_redirects=False) as response:
        assert response.status == 303


async def test_builtin_model_is_not_said_to_be_ai(viewer):
    for language, said in (("en", "quoted from this documentation"), ("de", "wörtliche Stellen")):
        async with viewer.get(PATH, headers={"Accept-Language": language}) as response:
            text = (await response.text()).partition("data-texts")[0] + (await response.text()).partition("<header>")[2]
        assert said in text
        assert not any(claim in text for claim in ("written by AI", "eine KI"))


async def test_person_rates_searches_and_resumes(viewer):
    async with viewer.post(f"{PATH}/search", json={"query": "inst", "prefix": True}) as response:
        assert [one["path"] for one in await response.json()][:1] == ["install"]
    async with viewer.post(f"{PATH}/message", json=question("How do I install Kite?", id="c1")) as response:
        ids = {"threadId": response.headers["X-Thread-Id"], "messageId": response.headers["X-Message-Id"]}
        await response.read()
    async with viewer.post(f"{PATH}/feedback", json={**ids, "rating": "up"}) as response:
        assert response.status == 204
    for method, last in (("GET", "stream"), ("POST", "stop")):
        async with viewer.request(method, f"{PATH}/message/c1/{last}") as response:
            assert response.status == 204


async def test_public_site_answers_everyone_within_its_limits(service, outsider, nobody):
    command = ("site", "update", "kite", "--public", "--origin", "https://docs.example.com")
    try:
        await asyncio.to_thread(service.cli, *command)
        for client in (nobody, outsider):
            while (found := await asked(client))[0] != 200:  # known a moment later
                assert found[0] in (401, 404)
            async with client.post(f"{PATH}/message", json=question("How do I install Kite?")) as response:
                assert response.headers["RateLimit-Policy"].startswith('"public-address";q=60;')
            async with client.get(PATH) as response:
                text = await response.text()
            assert service.organization_id not in text
            assert (await asked(client, **{"Sec-Fetch-Site": "cross-site"}))[0] == 403
    finally:
        await asyncio.to_thread(service.cli, "site", "update", "kite", "--private")


async def test_person_is_one_reader_by_any_name(viewer):
    left = []
    for fp in ("one", "two"):
        async with viewer.post(f"{PATH}/message", json={**question("How do I install Kite?"), "fp": fp}) as response:
            assert response.headers["RateLimit-Policy"].startswith('"reader";q=20;')
            left.append(int(response.headers["RateLimit"].split("r=")[1].split(";")[0]))
    assert left[1] == left[0] - 1


@pytest.fixture(scope="module")
def grouped(service, tmp_path_factory):
    """The domain of a site with a page for staff alone."""
    docs = write_docs(tmp_path_factory.mktemp("grouped") / "docs", {**DOCS, "staff.md": RESTRICTED})
    of_acme = ("--organization", service.organization_id)
    service.cli("project", "create", "--name", "grouped", "--repository", str(docs), "--domain", "grouped", *of_acme)
    service.cli("index", "grouped")
    return "grouped"


async def test_member_asks_as_a_reader_of_groups_and_no_one_else(service, grouped, viewer, outsider):
    path = f"/ask/{grouped}"

    async def answer(client, groups):
        body = {**question("Which code has the vault of the staff?"), "filter": {"groups": groups}}
        async with client.post(f"{path}/message", json=body) as response:
            return response.status, await response.text()

    page = ""
    while 'value="staff"' not in page:  # indexed a moment later
        async with viewer.get(path) as response:
            page = await response.text()
    assert SECRET not in (await answer(viewer, []))[1]
    assert SECRET in (await answer(viewer, ["staff"]))[1]
    async with viewer.get(path, params={"q": "vault code", "group": "staff"}) as response:
        text = await response.text()
        assert (SECRET in text, 'value="staff" checked' in text) == (True, True)
    async with viewer.get(f"{path}/pages/staff") as response:
        assert SECRET in await response.text()
    try:
        await asyncio.to_thread(service.cli, "site", "update", grouped, "--public")
        while (found := await answer(outsider, ["staff"]))[0] != 200:  # known a moment later
            assert found[0] == 404
        assert SECRET not in found[1]
        async with outsider.get(f"{path}/pages/staff") as response:
            assert response.status == 404
        async with outsider.get(path, params={"q": "vault code", "group": "staff"}) as response:
            text = await response.text()
            assert (SECRET in text, 'value="staff"' in text) == (False, False)
    finally:
        await asyncio.to_thread(service.cli, "site", "update", grouped, "--private")


@pytest.mark.parametrize(
    ("accepted", "language", "heading"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", "de", "kite fragen"),
        ("nl, fr;q=0.5, ja;q=0.8", "ja", "kite に質問"),
        ("ar", "ar", "اسأل kite"),
        ("de;q=x, zh;q=-1, ko;q=0, nan;q=nan", "en", "Ask kite"),
        ("de;q=0" + ",x" * 50, "en", "Ask kite"),
    ],
)
async def test_page_is_in_the_language_of_the_reader(viewer, accepted, language, heading):
    async with viewer.get(PATH, headers={"Accept-Language": accepted}) as response:
        text = await response.text()
    assert f'<html lang="{language}" dir="{"rtl" if language == "ar" else "ltr"}">' in text
    assert f"<h1>{heading}</h1>" in text
