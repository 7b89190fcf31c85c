"""The agent's whole API, over HTTP: asked once, looked at, listed, talked to, cancelled, archived."""

import asyncio
import json
import time
from uuid import uuid4

import pytest

from tests.end_to_end.talk import create_job, get_job, head, job_events


def url_of(service, *parts, version=2):
    return "/".join([service.url, f"v{version}", "agent", service.project_id, *parts])


async def post(http, service, *parts, body=None, status=200, **headers):
    async with http.post(url_of(service, *parts), json=body, headers={**service.admin, **headers}) as response:
        assert response.status == status, await response.text()
        return await response.json()


async def ended(http, service, prompt):
    job = await create_job(http, service, prompt)
    await job_events(http, service, job["id"])
    return await get_job(http, service, job["id"])


async def told(http, service, job_id, prompt, status=200, **headers):
    return await post(http, service, "job", job_id, "message", body={"prompt": prompt}, status=status, **headers)


# Once


async def test_same_key_is_the_same_job_and_another_body_is_refused(http, service):
    key = str(uuid4())
    first = await post(http, service, "job", body={"prompt": "Look"}, status=201, **{"Idempotency-Key": key})
    again = await post(
        http, service, "job", body={"prompt": "Look", "more": 1}, status=201, **{"Idempotency-Key": f'"{key}"'}
    )
    assert again["id"] == first["id"]
    problem = await post(http, service, "job", body={"prompt": "Else"}, status=422, **{"Idempotency-Key": key})
    assert problem["code"] == "idempotency_key_reused"
    other = await post(http, service, "job", body={"prompt": "Look"}, status=201)
    assert other["id"] != first["id"]


async def test_of_many_at_once_with_one_key_one_becomes_a_job(http, service):
    key = {"Idempotency-Key": str(uuid4())}
    asked = [post(http, service, "job", body={"prompt": "Look"}, status=201, **key) for _ in range(20)]
    assert len({job["id"] for job in await asyncio.gather(*asked)}) == 1


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "a\tb", "schlüssel"])
async def test_invalid_key_is_refused(http, service, key):
    problem = await post(http, service, "job", body={"prompt": "Look"}, status=400, **{"Idempotency-Key": key})
    assert problem["code"] == "invalid_idempotency_key"


async def test_message_with_a_key_is_recorded_once(http, service):
    job = await ended(http, service, "Look around")
    key = {"Idempotency-Key": str(uuid4())}
    for _ in range(2):
        await told(http, service, job["id"], "And now?", **key)
    await told(http, service, job["id"], "Something else", status=422, **key)
    events = await job_events(http, service, job["id"])
    assert [event["text"] for event in events if event["type"] == "message-added"] == ["And now?"]


# Looking


async def test_reader_with_the_current_job_gets_304(http, service):
    job = await ended(http, service, "Look around")
    url = url_of(service, "job", job["id"])
    async with http.get(url, headers=service.admin) as response:
        tag = response.headers["ETag"]
        assert tag.startswith('W/"')
    for known in (tag, tag.removeprefix("W/"), f'"x", {tag}', "*"):
        async with http.get(url, headers={**service.admin, "If-None-Match": known}) as response:
            assert (response.status, response.headers["ETag"], await response.read()) == (304, tag, b"")
    await post(http, service, "job", job["id"], "archive")
    async with http.get(url, headers={**service.admin, "If-None-Match": tag}) as response:
        assert response.status == 200
        assert response.headers["ETag"] != tag


async def test_waiting_ends_with_the_job(http, service):
    job = await create_job(http, service, 'Append "Kites wait." to index.md')
    async with http.get(url_of(service, "job", job["id"]), params={"wait": "30"}, headers=service.admin) as response:
        assert (await response.json())["status"] == "completed"
    started = time.monotonic()
    async with http.get(url_of(service, "job", job["id"]), params={"wait": "30"}, headers=service.admin) as response:
        assert response.status == 200
    assert time.monotonic() - started < 10  # it has ended: there is nothing to wait for


@pytest.mark.parametrize("wait", ["61", "-1", "x", "", "1e9", "٣"])
async def test_invalid_wait_is_refused(http, service, wait):
    job = await create_job(http, service, "Look around")
    async with http.get(url_of(service, "job", job["id"]), params={"wait": wait}, headers=service.admin) as response:
        assert response.status == 400
        assert (await response.json())["errors"][0]["path"] == "?wait"


async def test_jobs_are_listed_newest_first_page_by_page(http, service):
    made = [(await ended(http, service, f"Look {number}"))["id"] for number in range(3)]
    seen, cursor = [], None
    for _ in range(200):
        params = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        async with http.get(url_of(service, "jobs"), params=params, headers=service.admin) as response:
            page = await response.json()
        assert 1 <= len(page["jobs"]) <= 2
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen[:3] == made[::-1]
    assert seen == sorted(set(seen), reverse=True)


async def test_lists_are_narrowed_and_hide_archived_jobs(http, service):
    job = await ended(http, service, "Look around")
    archived = await post(http, service, "job", job["id"], "archive")
    assert (archived["status"], archived["archivedAt"][-1]) == ("completed", "Z")
    assert await post(http, service, "job", job["id"], "archive") == archived

    async def listed(**params):
        async with http.get(url_of(service, "jobs"), params={"limit": "100", **params}, headers=service.admin) as page:
            return (await page.json())["jobs"]

    assert job["id"] not in {one["id"] for one in await listed()}
    assert job["id"] in {one["id"] for one in await listed(includeArchived="true")}
    unarchived = await post(http, service, "job", job["id"], "unarchive")
    assert unarchived == {**archived, "archivedAt": None}
    assert await post(http, service, "job", job["id"], "unarchive") == unarchived
    assert job["id"] in {one["id"] for one in await listed()}
    assert {one["status"] for one in await listed(status="completed")} == {"completed"}


@pytest.mark.parametrize(
    "params", [{"limit": "0"}, {"limit": "101"}, {"cursor": "x"}, {"cursor": "!"}, {"status": "new"}, {"limit": "1.5"},
               {"includeArchived": "yes"}, {"cursor": "JyBPUiAxPTE"}],
)  # fmt: skip
async def test_a_list_that_cannot_be_is_refused(http, service, params):
    async with http.get(url_of(service, "jobs"), params=params, headers=service.admin) as response:
        assert response.status == 400
        assert (await response.json())["errors"][0]["path"] == f"?{next(iter(params))}"


@pytest.mark.parametrize("action", ["message", "cancel", "archive"])
async def test_missing_job_cannot_be_talked_to(http, service, action):
    problem = await post(http, service, "job", str(uuid4()), action, body={"prompt": "Hi"}, status=404)
    assert problem["code"] == "job_not_found"


# Talking


async def test_a_job_goes_on_in_the_same_pull_request(http, service):
    job = await ended(http, service, 'Append "Kites are red." to index.md')
    answer = await told(http, service, job["id"], 'Append "Kites are blue." to retry.md')
    assert (answer["status"], answer["prLink"]) == ("active", None)
    events = await job_events(http, service, job["id"])
    types = [event["type"] for event in events]
    assert types.count("job-completed") == types.count("committed") == 2
    assert types[-2:] == ["pull-request-updated", "job-completed"]
    assert types.index("job-reopened") > types.index("job-completed")
    done = await get_job(http, service, job["id"])
    assert (done["prLink"], done["branch"]) == (job["prLink"], job["branch"])
    async with http.get(done["prLink"]) as page:
        text = await page.text()
        assert "Kites are red." in text
        assert "Kites are blue." in text


async def test_follower_of_a_continued_job_follows_it_to_its_last_end(http, service):
    job = await ended(http, service, "Look around")
    first = await job_events(http, service, job["id"])
    assert first[-1]["type"] == "job-completed"
    await told(http, service, job["id"], 'Append "Kites go on." to index.md')
    again = await job_events(http, service, job["id"])
    assert again[: len(first)] == first
    assert [event["type"] for event in again if event["type"].startswith("job-")][-3:] == [
        "job-reopened", "job-started", "job-completed"
    ]  # fmt: skip


async def test_job_with_a_merged_pull_request_opens_a_new_one(http, service):
    job = await ended(http, service, 'Create a page gnu.md with title "Gnu" and text "Gnus graze."')
    await post(http, service, "job", job["id"], "merge")
    await told(http, service, job["id"], 'Append "Gnus wander." to gnu.md')
    await job_events(http, service, job["id"])
    done = await get_job(http, service, job["id"])
    assert (done["status"], done["failure"]) == ("completed", None)
    assert done["prLink"] != job["prLink"]
    assert done["branch"] == f"{job['branch']}-2"
    async with http.get(done["prLink"]) as page:
        text = await page.text()
        assert "Gnus wander." in text
        assert '+title: "Gnu"' not in text


async def test_a_job_that_has_ended_cannot_be_cancelled(http, service):
    job = await ended(http, service, "Look around")
    problem = await post(http, service, "job", job["id"], "cancel", status=409)
    assert problem["code"] == "job_ended"


async def test_blank_message_is_refused_and_an_archived_job_returns(http, service):
    job = await ended(http, service, "Look around")
    assert (await told(http, service, job["id"], " ", status=400))["code"] == "invalid_request"
    await post(http, service, "job", job["id"], "archive")
    assert (await told(http, service, job["id"], "Look again"))["archivedAt"] is None
    await job_events(http, service, job["id"])


async def test_erased_job_refuses_messages(http, service):
    job = await ended(http, service, 'Append "Erase me." to index.md')
    await told(http, service, job["id"], 'Append "And me." to retry.md')
    await job_events(http, service, job["id"])
    erased = await asyncio.to_thread(service.cli, "audit", "erase", f"job-{job['id']}", "--yes")
    kept = erased["erased"][0]["kept"]
    assert [one.split()[0] for one in kept] == ["changed", "changed", "commit", "branch", "pull", "commit"]
    assert (await told(http, service, job["id"], "Look again", status=409))["code"] == "job_erased"


# Retrying and merging


async def test_failed_job_is_retried(http, service):
    job = await ended(http, service, f'Append "AKIA{"Q7XN4ZK2" * 2} is the key." to index.md')
    assert job["failure"]["code"] == "secret_in_changes"
    assert (await post(http, service, "job", job["id"], "retry"))["failure"] is None
    types = [event["type"] for event in await job_events(http, service, job["id"])]
    assert types.count("job-reopened") == types.count("message-added") == 1
    assert types.count("job-failed") == 2


async def test_job_on_a_branch_of_its_own_is_merged(http, service):
    body = {"prompt": 'Append "Kites merge." to index.md', "asDraft": True, "branch": "kites/merge", "context": "Kites"}
    job = await post(http, service, "job", body=body, status=201)
    await job_events(http, service, job["id"])
    done = await get_job(http, service, job["id"])
    assert (done["outcome"], done["branch"], done["pullRequestState"]) == ("pull_request", "kites/merge", "open")
    assert done["endedAt"] > done["createdAt"]
    assert (await post(http, service, "job", job["id"], "retry", status=409))["code"] == "job_not_failed"
    for _ in range(2):
        assert (await post(http, service, "job", job["id"], "merge"))["pullRequestState"] == "merged"


async def test_job_without_a_pull_request_cannot_be_merged(http, service):
    job = await ended(http, service, "Look around")
    assert (await post(http, service, "job", job["id"], "merge", status=409))["code"] == "no_pull_request"


# Version 1


async def test_version_1_shows_every_field(http, service):
    job = await ended(http, service, 'Append "Kites have sessions." to index.md')
    async with http.get(url_of(service, "job", job["id"], version=1), headers=service.admin) as response:
        assert response.headers["Deprecation"].startswith("@")
        shown = await response.json()
    assert set(shown) == {
        "sessionId", "subdomain", "branch", "haulted", "haultReason", "pullRequestLink", "messageToUser", "todos",
        "userId", "title", "createdAt",
    }  # fmt: skip
    assert (shown["sessionId"], shown["subdomain"], shown["branch"]) == (job["id"], service.domain, job["branch"])
    assert (shown["haulted"], shown["haultReason"], shown["pullRequestLink"]) == (True, "completed", job["prLink"])
    assert shown["messageToUser"]
    assert shown["userId"]
    async with http.get(url_of(service, "jobs", version=1), params={"take": "2"}, headers=service.admin) as response:
        listed = await response.json()
    assert len(listed["allSessions"]) == 2
    assert listed["allSessions"][0]["sessionId"] == job["id"]
    params = {"skip": "1", "take": "1"}
    async with http.get(url_of(service, "jobs", version=1), params=params, headers=service.admin) as response:
        assert (await response.json())["allSessions"] == listed["allSessions"][1:]
    async with http.get(url_of(service, "jobs", version=1), params={"take": "101"}, headers=service.admin) as response:
        assert response.status == 400


async def test_version_1_answers_a_repeated_request_with_the_same_job(http, service):
    headers = {**service.admin, "Idempotency-Key": str(uuid4())}
    body = {"messages": [{"role": "user", "content": "Look around"}]}
    seen = []
    for _ in range(2):
        async with http.post(url_of(service, "job", version=1), json=body, headers=headers) as response:
            lines = (await response.text()).splitlines()
            seen.append((response.headers["X-Session-Id"], json.loads(lines[-1][2:])["finishReason"]))
    assert seen[0] == seen[1]


# The command line


async def test_command_line_lists_messages_and_archives_jobs(http, service):
    job = await ended(http, service, "Look around")
    row = await asyncio.to_thread(service.cli, "job", "message", job["id"], 'Append "Told." to index.md')
    assert row["status"] == "active"
    watched = await asyncio.to_thread(service.cli, "job", "watch", job["id"])
    assert watched["status"] == "completed"
    assert [event["type"] for event in watched["events"]].count("job-completed") == 2
    await asyncio.to_thread(service.cli, "job", "archive", job["id"])
    listed = await asyncio.to_thread(service.cli, "job", "list", "--archived", "--limit", "500")
    assert next(row for row in listed["jobs"] if row["id"] == job["id"])["archivedAt"]
    done = await asyncio.to_thread(service.run, "job", "cancel", job["id"])
    assert done.returncode == 1
    assert "ended already" in done.stderr
    assert head(service) > 0
