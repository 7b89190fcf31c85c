"""Every page and action, for operator, owner, editor, viewer, the owner of another organization, and nobody."""

import asyncio
import html
import re
from urllib.parse import urljoin, urlsplit

import pytest

from tests.dashboard.conftest import COOKIE, browser, people_of, post_form
from tests.dashboard.entities import made, opened_pull_request
from tests.dashboard.served import (
    ANYONE,
    BY_LINK,
    EDITOR,
    ELSEWHERE,
    LEAST,
    OPERATOR,
    PEOPLE,
    PERSON,
    READER,
    ROLES,
    VIEWER,
    filled,
    served,
)
from tests.service_process import AWAY, service_in, write_docs

PROMPT = 'Append "Kites are decided on." to index.md'
JSON = {"Accept": "application/json"}
REFUSALS = {"organization_not_found": "not found", "role_too_low": "forbidden", "operator_only": "forbidden"}
READERS_REFUSALS = {**REFUSALS, "domain_not_found": "not found"}


def test_every_route_has_a_row():
    assert set(served()) == {*LEAST, *ELSEWHERE}


def expected(least: str, person: str) -> str:
    if least == ANYONE:
        return "allowed"
    if person == "nobody":
        return "sign in"
    if least == PERSON:
        return "allowed"
    if least == OPERATOR:
        return "allowed" if person == "operator" else "forbidden"
    if person not in ROLES:
        return "not found"  # exactly as for an organization that does not exist
    return "allowed" if least == READER or ROLES.index(person) >= ROLES.index(least) else "forbidden"


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("route", LEAST)
async def test_route_opens_for_role(service, people, route, person):
    method, _, path = route.partition(" ")
    is_readers = LEAST[route] == READER
    path = filled(path, organizationId=service.organization_id, **({"domain": service.domain} if is_readers else {}))
    async with (
        browser(service.url, people.cookies.get(person, "")) as client,
        client.request(method, path, headers=JSON, allow_redirects=False) as answer,
    ):
        problem = await answer.json() if answer.content_type == "application/problem+json" else {}
        assert answer.status < 500
        if "/sign-in?next=" in answer.headers.get("Location", "") or problem.get("code") == "sign_in_required":
            found = "sign in"
        else:
            found = (READERS_REFUSALS if is_readers else REFUSALS).get(problem.get("code"), "allowed")
        assert found == expected(LEAST[route], person), (answer.status, problem)


async def test_refusal_names_who_may_and_what_you_are(service, viewer, editor):
    base = f"/dashboard/{service.organization_id}"
    for client, path, says in (
        (viewer, f"{base}/jobs/new", "Only editors and owners may do this, and you are a viewer here."),
        (editor, f"{base}/keys/new", "Only owners may do this, and you are an editor here."),
    ):
        async with client.get(path) as page:
            assert (page.status, says in await page.text()) == (403, True)


OFFERED = re.compile(r'<form\b[^>]*\bmethod="post"[^>]*\baction="(?P<post>[^"]*)"|<a\b[^>]*\bhref="(?P<get>[^"]*)"')


def route_of(method, path):
    """The row of ``LEAST`` for an address; the literal ones first, as ``new`` is no id."""
    for route in sorted(LEAST, key=lambda route: route.count("{")):
        wanted, _, pattern = route.partition(" ")
        if wanted == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path):
            return route
    return None


@pytest.mark.slow
@pytest.mark.parametrize("role", ["viewer", "editor"])
async def test_page_offers_only_what_its_reader_may_do(service, people, role):
    entities = await asyncio.to_thread(made, service)
    refused = []
    async with browser(service.url, people.cookies[role]) as client:
        for route, least in LEAST.items():
            method, _, path = route.partition(" ")
            if (
                method != "GET"
                or least not in ROLES
                or ROLES.index(least) > ROLES.index(role)
                or path.endswith("/live")
            ):
                continue
            async with client.get(filled(path, **entities.values)) as page:
                text, address = await page.text(), page.url.path
            for found in OFFERED.finditer(text.partition("<main")[2]):
                kind, target = ("POST", found["post"]) if found["post"] is not None else ("GET", found["get"])
                offered = route_of(kind, urlsplit(urljoin(address, html.unescape(target))).path)
                needed = LEAST.get(offered or "", VIEWER)
                if needed in ROLES and ROLES.index(needed) > ROLES.index(role):
                    refused.append(f"{address} offers {offered}")
    assert refused == []


async def test_other_organization_looks_as_if_it_did_not_exist(service, outsider):
    for organization_id in (service.organization_id, "0" * 32):
        async with outsider.get(f"/dashboard/{organization_id}/jobs", headers=JSON) as answer:
            found = await answer.json()
            found = {name: value for name, value in found.items() if name not in ("requestId", "request_id")}
        assert found["status"] == 404
        assert organization_id not in str(found)


async def test_page_leads_to_sign_in_and_back(service, nobody):
    path = f"/dashboard/{service.organization_id}/jobs?state=open"
    async with nobody.get(path, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"].endswith("state%3Dopen")) == (303, True)


@pytest.fixture(scope="module", params=BY_LINK, ids=["act_by_role", "act_by_link"])
def reviewed(request, service, people, tmp_path_factory):
    """The setting, the page of a pull request of a service that has it, and the cookies of its people."""
    if not request.param:
        yield False, service.url + opened_pull_request(service, PROMPT)[1], people.cookies
        return
    folder = tmp_path_factory.mktemp("by-link")
    with service_in(folder, {**AWAY, "DOCSMITH_HOSTED__ACT_BY_LINK": "true"}) as other:
        other.set_up(write_docs(folder / "docs"))
        other.start()
        yield True, other.url + opened_pull_request(other, PROMPT)[1], people_of(other).cookies


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("action", BY_LINK[False])
def test_link_of_a_pull_request_acts_for_role(reviewed, action, person):
    by_link, url, cookies = reviewed
    cookie = {"Cookie": f"{COOKIE}={cookies[person]}"} if person in cookies else {}
    answer = post_form(f"{url}/{action}", {"text": ""}, cookie)
    assert answer.status < 500
    least = BY_LINK[by_link][action]
    is_editor = person in ROLES and ROLES.index(person) >= ROLES.index(EDITOR)
    assert (answer.status != 403) == (least == ANYONE or is_editor), answer.text
