"""One public shape for each thing: the command line's ``--json`` prints what HTTP answers."""

import asyncio
import re

import msgspec
import pytest

from service.views.access.keys import KeyView
from service.views.jobs.jobs import JobList
from service.views.organizations import OrganizationView
from service.views.projects import ProjectView
from service.views.sites import SiteView
from service.views.webhooks import DeliveryView, WebhookView
from tests.end_to_end.talk import create_job, get_job, job_events

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def cli(service):
    async def cli(*arguments):
        return await asyncio.to_thread(service.cli, *arguments)

    return cli


def printed(value, view):
    """Return what a command printed as its view prints it: the same, unless names are missing or unknown."""
    return msgspec.json.decode(msgspec.json.encode(msgspec.convert(value, view)))


async def answer(http, service, path, **query):
    async with http.get(f"{service.url}{path}", params=query, headers=service.admin) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_job_is_the_same_over_http_and_command_line(http, service, cli):
    job = await create_job(http, service, 'Append "Views." to index.md')
    await job_events(http, service, job["id"])
    shown = await get_job(http, service, job["id"])
    assert shown == await cli("job", "show", job["id"])
    listed = await answer(http, service, f"/v2/agent/{service.project_id}/jobs", limit=2)
    of_all = await cli("job", "list", "--limit", "2")
    assert [{name: one[name] for name in shown} for one in of_all["jobs"]] == listed["jobs"]
    assert {one["projectId"] for one in of_all["jobs"]} == {service.project_id}
    assert shown in listed["jobs"]
    cancelled = await cli("job", "message", job["id"], "Fix broken links")
    assert set(cancelled) == set(shown)


async def test_search_result_is_the_same_over_http_and_command_line(http, service, cli):
    url = f"{service.url}/discovery/v1/search/{service.domain}"
    async with http.post(url, json={"query": "retry delay", "pageSize": 3}, headers=service.assistant) as response:
        found = await response.json()
    assert found
    assert found == (await cli("search", service.domain, "retry delay", "--limit", "3"))["results"]


async def test_search_as_you_type_marks_what_it_found(http, service, cli):
    url = f"{service.url}/discovery/v1/search/{service.domain}"
    body = {"query": "retry del", "pageSize": 3, "prefix": True, "highlights": True}
    async with http.post(url, json=body, headers=service.assistant) as response:
        (best, *_) = found = await response.json()
    places = best["metadata"]["highlights"]
    marked = [best["content"][each["start"] : each["end"]] for each in places["content"]]
    marked += [best["metadata"]["heading"][each["start"] : each["end"]] for each in places["heading"]]
    assert any(word.casefold().startswith("del") for word in marked), (marked, best)
    for result in found:
        del result["metadata"]["highlights"]
    assert found == (await cli("search", service.domain, "retry del", "--limit", "3", "--prefix"))["results"]


async def test_answer_is_the_same_over_http_and_command_line(http, service, cli):
    told = await cli("ask", service.domain, "How do I install Kite?")
    thread = await answer(http, service, f"/v1/analytics/{service.project_id}/assistant/threads/{told['threadId']}")
    reply = thread["messages"][-1]
    assert (told["messageId"], told["text"]) == (reply["id"], reply["content"])
    assert told["sources"] == reply["sources"]
    assert reply["sources"]


@pytest.mark.parametrize(
    ("arguments", "name", "view"),
    [
        (("organization", "list"), "organizations", OrganizationView),
        (("project", "list"), "projects", ProjectView),
        (("key", "list"), "keys", KeyView),
        (("webhook", "list"), "webhooks", WebhookView),
        (("webhook", "deliveries"), "deliveries", DeliveryView),
    ],
)
async def test_list_prints_public_shapes(cli, arguments, name, view):
    rows = (await cli(*arguments))[name]
    assert printed(rows, list[view]) == rows
    assert all(re.fullmatch(TIME, row["createdAt"]) for row in rows if "createdAt" in row)


async def test_project_is_shown_with_its_site(service, cli):
    shown = await cli("project", "show", service.domain)
    site = shown.pop("index")
    assert shown in (await cli("project", "list"))["projects"]
    assert printed(site, SiteView) == site
    assert re.fullmatch(TIME, site["indexedAt"])


async def test_key_is_shown_as_it_was_created(cli):
    made = await cli("key", "create", "--kind", "admin", "--expires-days", "7")
    del made["token"]
    assert made == await cli("key", "show", made["id"])
    assert made["status"] == "in_force"


async def test_job_list_is_the_described_one(cli):
    listed = await cli("job", "list")
    described = printed(listed, JobList)["jobs"]
    assert [
        {name: one[name] for name in each} for one, each in zip(listed["jobs"], described, strict=True)
    ] == described
