"""The audit pages: events by filter, one event, the check of the whole log, and a checkpoint to keep."""

import asyncio
import json
import re

import pytest

from service.queries.export_format import Line
from tests.end_to_end.talk import create_job, job_events

NAMES = list(zip(Line.__struct_fields__, Line.__struct_encode_fields__, strict=True))
AUDIT = "/operator/audit"


async def text_of(client, path):
    async with client.get(path) as page:
        assert page.status == 200, await page.text()
        return await page.text()


def positions_in(text):
    return [int(one) for one in re.findall(r"/events/([0-9]+)\"", text)]


async def test_events_are_listed_page_by_page(operator):
    found, path = [], AUDIT
    while path is not None:
        text = await text_of(operator, path)
        found += positions_in(text)
        older = re.search(r'rel="next" href="(\?[^"]+)"', text)
        path = older and AUDIT + older[1].replace("&amp;", "&")
    assert found == list(range(found[0], 0, -1))


@pytest.mark.parametrize(
    ("query", "type_"),
    [
        ("category=organization", "organization-created"),
        ("type=project-created", "project-created"),
        ("category=key&type=key-created", "key-created"),
        ("since=2020-01-01&type=project-created", "project-created"),
    ],
)
async def test_filter_chooses_events(operator, query, type_):
    text = await text_of(operator, f"{AUDIT}?{query}")
    types = re.findall(r"<td>([a-z]+-[a-z-]+)", text)
    assert types
    assert set(types) == {type_}


async def test_events_of_one_stream_and_time(operator, service):
    text = await text_of(operator, f"{AUDIT}?stream=project-{service.project_id}")
    assert "project-created" in text
    assert "No event matches this filter." in await text_of(operator, f"{AUDIT}?until=2020-01-01")
    assert "No event matches this filter." in await text_of(operator, f"{AUDIT}?since=2120-01-01")
    async with operator.get(f"{AUDIT}?since=yesterday") as page:
        assert page.status == 400


async def test_event_is_shown_as_json_without_secrets(operator, service):
    webhook = {"url": "https://hooks.example/audit"}
    async with operator.post(f"{service.url}/v2/webhooks", json=webhook, headers=service.admin) as made:
        secret = (await made.json())["secret"]
    text = await text_of(operator, f"{AUDIT}?type=webhook-created")
    position = positions_in(text)[0]
    page = await text_of(operator, f"{AUDIT}/events/{position}")
    assert "https://hooks.example/audit" in page
    assert secret not in page
    async with operator.get(f"{AUDIT}/events/{position}?format=json") as answer:
        event = await answer.json()
    assert (event["position"], event["type"], event["data"]["secret"]) == (position, "webhook-created", "[hidden]")
    async with operator.get(f"{AUDIT}/events/99999999") as missing:
        assert missing.status == 404


async def looks_of(operator):
    """What was read, and by which page: the newest ones."""
    newest = await text_of(operator, f"{AUDIT}?type=audit-read&category=audit")
    looks = []
    for position in positions_in(newest):
        async with operator.get(f"{AUDIT}/events/{position}?format=json") as answer:
            looks.append((await answer.json())["data"])
    return looks


async def test_each_look_is_recorded_once(operator):
    for _ in range(2):
        await text_of(operator, f"{AUDIT}?type=sample-of-a-look")
    looks = await looks_of(operator)
    assert [look["command"] for look in looks if look["filters"] == {"type": "sample-of-a-look"}] == ["page audit"]


async def test_check_of_the_log_reports_its_head(operator):
    async with operator.post(f"{AUDIT}/verify") as page:
        assert page.url.path == f"{AUDIT}/verify"
    async with asyncio.timeout(120), operator.get(f"{AUDIT}/verify/live") as states:
        assert "event: done" in await states.text()
    assert "page audit verify" in [look["command"] for look in await looks_of(operator)]
    text = await text_of(operator, f"{AUDIT}/verify")
    assert "Every event is as it was recorded." in text
    assert "Verify again" in text
    assert 'name="form"' in text
    assert re.search(r"<code>[0-9a-f]{64}</code>", text)


async def test_checkpoint_is_downloaded(operator, service):
    async with operator.post(f"{AUDIT}/checkpoint") as answer:
        assert answer.headers["Content-Disposition"].startswith('attachment; filename="docsmith-checkpoint-')
        made = json.loads(await answer.text())
    assert "page audit checkpoint" in [look["command"] for look in await looks_of(operator)]
    kept = service.data.parent / "kept.json"
    kept.write_text(json.dumps(made))
    assert service.cli("audit", "verify", "--checkpoint", str(kept))["sound"]


async def test_export_has_what_the_hashes_cover(operator):
    async with operator.get(f"{AUDIT}/export?category=organization") as answer:
        lines = [json.loads(line) for line in (await answer.text()).splitlines()]
    assert {line["type"] for line in lines} == {"organization-created"}
    assert all(Line(**{name: line[to] for name, to in NAMES}).says_what_is_stored() for line in lines)
    async with operator.get(f"{AUDIT}/export?category=organization&format=csv") as answer:
        assert len((await answer.text()).splitlines()) == len(lines) + 1
    async with operator.get(f"{AUDIT}/export?format=xml") as answer:
        assert answer.status == 400


async def test_job_is_reproduced(service, operator):
    job = await create_job(operator, service, 'Replace "20 MB" with "25 MB" in install.md')
    await job_events(operator, service, job["id"])
    async with operator.post(f"{AUDIT}/reproduce", data={"job": job["id"]}) as page:
        text = await page.text()
        assert page.status == 200
    assert "Each commit has the id that the log says." in text
    async with operator.post(f"{AUDIT}/reproduce", data={"job": "nothing"}) as page:
        assert page.status == 400
        assert "Job not found: nothing." in await page.text()


async def test_live_rows_alone_are_recorded_too(operator, viewer, service):
    path = f"/dashboard/{service.organization_id}/jobs/live?only=failed"
    async with asyncio.timeout(60), viewer.get(path) as rows:
        assert rows.status == 200
        looks = await looks_of(operator)
    assert {"organization": service.organization_id, "only": "failed"} in [look["filters"] for look in looks]
