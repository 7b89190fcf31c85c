"""Keys, webhooks, deliveries and usage of an organization, over HTTP with its admin keys."""

import asyncio

import pytest

from tests.end_to_end.talk import create_job, job_events
from tests.service_process import service_in, write_docs

CHANGE = 'Replace "20 MB" with "21 MB" in install.md'


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """A service with two organizations, whose webhooks go nowhere."""
    folder = tmp_path_factory.mktemp("organization")
    with service_in(folder, {"DOCSMITH_NETWORK__ALLOW_PRIVATE": "true"}) as service:
        service.set_up(write_docs(folder / "docs"), index=False)
        other = service.cli("organization", "create", "--name", "Other")
        service.other_key = service.cli("key", "create", "--kind", "admin", "--organization", other["id"])["token"]
        service.start()
        yield service


async def call(http, instance, method, path, body=None, *, key=None):
    headers = {"Authorization": f"Bearer {key or instance.admin_key}"}
    async with http.request(method, instance.url + path, json=body, headers=headers) as response:
        return response.status, await response.json() if response.content_type.endswith("json") else None


async def test_key_is_created_changed_and_revoked(instance, http):
    body = {"kind": "admin", "name": "CI", "scope": "read", "expiresDays": 30}
    status, made = await call(http, instance, "POST", "/v2/keys", body)
    assert (status, made["scope"], made["status"]) == (201, "read", "in_force")
    path = f"/v2/keys/{made['id']}"
    for query in ("", "?service=git-upload-pack"):
        status, refused = await call(http, instance, "POST", path + query, {"name": "Mine"}, key=made["token"])
        assert (status, refused["code"]) == (403, "scope_not_allowed")
    status, changed = await call(http, instance, "POST", path, {"name": "Reports", "allowedAddresses": ["127.0.0.1"]})
    assert (status, changed["name"], changed["allowedAddresses"]) == (200, "Reports", ["127.0.0.1/32"])
    assert (await call(http, instance, "GET", path, key=made["token"]))[1]["name"] == "Reports"
    assert "token" not in changed
    status, revoked = await call(http, instance, "POST", f"{path}/revoke")
    assert (status, revoked["status"]) == (200, "revoked")
    assert (await call(http, instance, "GET", path, key=made["token"]))[0] == 401


async def test_keys_are_listed_page_by_page(instance, http):
    for name in ("one", "two", "three"):
        await call(http, instance, "POST", "/v2/keys", {"kind": "assistant", "name": name, "domains": ["kite"]})
    _, whole = await call(http, instance, "GET", "/v2/keys")
    names, cursor = [], ""
    while cursor is not None:
        status, page = await call(http, instance, "GET", f"/v2/keys?limit=2{cursor and f'&cursor={cursor}'}")
        assert status == 200
        names += [key["name"] for key in page["keys"]]
        cursor = page["nextCursor"]
    assert names == [key["name"] for key in whole["keys"]]
    assert names[:3] == ["three", "two", "one"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"kind": "assistant", "name": "x", "domains": ["nowhere"]}, "$.domains"),
        ({"kind": "admin", "name": "x", "expiresDays": 8}, "$.expiresDays"),
        ({"kind": "admin", "name": ""}, "$.name"),
    ],
)
async def test_key_that_does_not_fit_is_refused_with_its_place(instance, http, body, path):
    status, refused = await call(http, instance, "POST", "/v2/keys", body)
    assert (status, refused["errors"][0]["path"]) == (400, path)


async def test_webhook_is_created_listed_and_deleted(instance, http):
    status, made = await call(http, instance, "POST", "/v2/webhooks", {"url": "http://127.0.0.1:9/hook"})
    assert (status, made["events"]) == (201, ["job.active", "job.completed", "job.failed"])
    assert made.pop("secret").startswith("whsec_")
    assert (await call(http, instance, "GET", "/v2/webhooks"))[1] == {"webhooks": [made]}
    path = f"/v2/webhooks/{made['id']}"
    assert await call(http, instance, "POST", f"{path}/enable") == (200, made)
    assert (await call(http, instance, "POST", f"{path}/delete"))[0] == 204
    assert (await call(http, instance, "GET", path))[0] == 404
    status, refused = await call(
        http, instance, "POST", "/v2/webhooks", {"url": "http://127.0.0.1:9/hook", "projectId": "nowhere"}
    )
    assert (status, refused["errors"][0]["path"]) == (400, "$.projectId")


async def test_delivery_is_listed_and_repeated(instance, http):
    _, webhook = await call(http, instance, "POST", "/v2/webhooks", {"url": "http://127.0.0.1:9/hook"})
    job = await create_job(http, instance, "Fix broken links")
    await job_events(http, instance, job["id"])
    path = f"/v2/webhooks/{webhook['id']}/deliveries"
    async with asyncio.timeout(60):
        while len((found := (await call(http, instance, "GET", path))[1])["deliveries"]) < 2:
            pass  # a worker asks for the second once it has seen the job's end
    assert [one["event"] for one in found["deliveries"]] == ["job.completed", "job.active"]
    _, first = await call(http, instance, "GET", f"{path}?limit=1")
    _, second = await call(http, instance, "GET", f"{path}?limit=1&cursor={first['nextCursor']}")
    assert [page["deliveries"][0]["event"] for page in (first, second)] == ["job.completed", "job.active"]
    assert second["nextCursor"] is None
    status, again = await call(http, instance, "POST", f"/v2/deliveries/{found['deliveries'][0]['id']}/redeliver")
    assert (status, again["state"]) == (200, "pending")
    assert (await call(http, instance, "GET", f"{path}?state=lost"))[0] == 400
    await call(http, instance, "POST", f"/v2/webhooks/{webhook['id']}/delete")


async def test_usage_counts_requests_by_day_key_and_project(instance, http):
    await create_job(http, instance, "Fix broken links")
    status, usage = await call(http, instance, "GET", "/v2/usage?days=7")
    assert (status, len(usage["days"])) == (200, 7)
    given = sum(day["agent"] for day in usage["days"])
    assert given >= 1
    assert [(one["name"], one["agent"]) for one in usage["projects"]] == [("kite", given)]
    assert sum(one["agent"] for one in usage["keys"]) == given
    (project,) = [limit for limit in usage["limits"] if limit["scope"] == "project"]
    assert (project["id"], project["used"]) == (instance.project_id, given)


async def test_jobs_of_all_projects_are_listed_and_filtered(instance, http):
    made = [(await create_job(http, instance, text))["id"] for text in (CHANGE, "Make it sing")]
    for job_id in made:
        await job_events(http, instance, job_id)
    _, first = await call(http, instance, "GET", "/v2/jobs?limit=1")
    status, second = await call(http, instance, "GET", f"/v2/jobs?limit=1&cursor={first['nextCursor']}")
    assert (status, [page["jobs"][0]["id"] for page in (first, second)]) == (200, made[::-1])
    (linked,) = [one for one in second["jobs"] if one["id"] == made[0]]
    assert (linked["projectId"], linked["state"]) == (instance.project_id, "review")
    _, keys = await call(http, instance, "GET", "/v2/keys")
    assert linked["requestedBy"] in {key["id"] for key in keys["keys"]}
    _, to_review = await call(http, instance, "GET", "/v2/jobs?only=review&limit=100")
    assert made[0] in {one["id"] for one in to_review["jobs"]}
    assert {one["state"] for one in to_review["jobs"]} == {"review"}
    _, elsewhere = await call(http, instance, "GET", "/v2/jobs?projectId=nowhere")
    assert elsewhere == {"jobs": [], "nextCursor": None}
    assert (await call(http, instance, "GET", "/v2/jobs", key=instance.other_key))[1]["jobs"] == []
    for wrong in ("only=lost", "cursor=x", "limit=0"):
        assert (await call(http, instance, "GET", f"/v2/jobs?{wrong}"))[0] == 400


async def test_job_shows_its_steps_changes_and_is_closed(instance, http):
    job = await create_job(http, instance, CHANGE)
    path = f"/v2/agent/{instance.project_id}/job/{job['id']}"
    await job_events(http, instance, job["id"])
    status, found = await call(http, instance, "GET", f"{path}/steps")
    first, *_, last = found["steps"]
    assert (status, first["name"], first["words"], first["isSaid"]) == (200, "Job requested", CHANGE, True)
    assert (last["name"], last["isSaid"], found["nextCursor"]) == ("Completed", False, None)
    _, earlier = await call(http, instance, "GET", f"{path}/steps?cursor=2")
    assert earlier["steps"] == [first]
    assert (await call(http, instance, "GET", f"{path}/steps?cursor=last"))[0] == 400
    status, changes = await call(http, instance, "GET", f"{path}/changes")
    (file,) = changes["files"]
    assert (status, file["path"], file["added"], file["removed"]) == (200, "install.md", 1, 1)
    lines = [line for hunk in file["hunks"] for line in hunk["lines"] if line["side"] != "same"]
    assert [(line["side"], "21 MB" in line["text"]) for line in lines] == [("removed", False), ("added", True)]
    status, closed = await call(http, instance, "POST", f"{path}/close")
    assert (status, closed["pullRequestState"]) == (200, "closed")
    status, refused = await call(http, instance, "POST", f"{path}/merge")
    assert (status, refused["code"]) == (409, "pull_request_closed")
    for action, method in (("steps", "GET"), ("changes", "GET"), ("close", "POST")):
        status, refused = await call(http, instance, method, f"{path}/{action}", key=instance.other_key)
        assert (status, refused["code"]) == (404, "project_not_found")


async def test_command_line_merges_what_a_job_made(instance, http):
    context = "Kites rise at dusk."
    made = await asyncio.to_thread(
        instance.cli, "job", "create", 'Append "Kites rise." to index.md', "--context", context, "--watch"
    )
    path = f"/v2/agent/{instance.project_id}/job/{made['id']}"
    _, found = await call(http, instance, "GET", f"{path}/steps")
    assert context in found["steps"][0]["words"]
    for _ in range(2):
        merged = await asyncio.to_thread(instance.cli, "job", "merge", made["id"])
        assert merged["pullRequestState"] == "merged"
    assert (await call(http, instance, "GET", path))[1]["pullRequestState"] == "merged"
    refused = await asyncio.to_thread(instance.cli, "job", "close", made["id"], status=1)
    assert refused["code"] == "pull_request_merged"
    long = await asyncio.to_thread(instance.cli, "job", "create", "x", "--context", 50_001 * "x", status=1)
    assert "50,001 characters" in long["detail"]


async def test_overview_counts_what_needs_a_person(instance, http):
    job = await create_job(http, instance, CHANGE)
    await job_events(http, instance, job["id"])
    _, to_review = await call(http, instance, "GET", "/v2/jobs?only=review&limit=100")
    status, overview = await call(http, instance, "GET", "/v2/overview")
    assert (status, overview["jobs"]["review"]) == (200, len(to_review["jobs"]))
    assert (overview["sites"], overview["failingSites"], overview["unanswered"]) == (1, 0, 0)
    _, models = await call(http, instance, "GET", "/v2/models")
    assert models == {"agent": "builtin/editor", "aliases": [], "refused": {}}
    _, theirs = await call(http, instance, "GET", "/v2/overview", key=instance.other_key)
    assert theirs == {
        "jobs": {"review": 0, "needsInput": 0, "active": 0, "failed": 0},
        "unanswered": 0, "sites": 0, "failingSites": 0, "oldestIndexedAt": None,
    }  # fmt: skip


async def test_things_of_another_organization_are_not_found(instance, http):
    _, key = await call(http, instance, "POST", "/v2/keys", {"kind": "admin", "name": "Ours"})
    _, webhook = await call(http, instance, "POST", "/v2/webhooks", {"url": "http://127.0.0.1:9/hook"})
    paths = [f"/v2/keys/{key['id']}", f"/v2/webhooks/{webhook['id']}", f"/v2/webhooks/{webhook['id']}/deliveries"]
    for path in paths:
        other = path.replace(key["id"], "x").replace(webhook["id"], "x")
        theirs, missing = [await call(http, instance, "GET", one, key=instance.other_key) for one in (path, other)]
        assert (theirs[0], theirs[1]["code"]) == (missing[0], missing[1]["code"])
        assert theirs[0] == 404
    for path in (f"/v2/keys/{key['id']}/revoke", f"/v2/webhooks/{webhook['id']}/delete"):
        assert (await call(http, instance, "POST", path, key=instance.other_key))[0] == 404
    _, theirs = await call(http, instance, "GET", "/v2/keys", key=instance.other_key)
    assert [one["name"] for one in theirs["keys"]] == ["admin key"]
    assert (await call(http, instance, "GET", "/v2/webhooks", key=instance.other_key))[1] == {"webhooks": []}
    assert (await call(http, instance, "GET", "/v2/usage", key=instance.other_key))[1]["keys"] == []
