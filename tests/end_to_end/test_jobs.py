"""The agent, from an instruction over HTTP to a pull request."""

import asyncio

from tests.end_to_end.talk import create_job, get_job, job_events, recorded


async def test_an_instruction_becomes_a_pull_request(http, service):
    job = await create_job(http, service, 'Replace "20 MB" with "25 MB" in install.md')
    assert job["status"] == "active"
    assert job["prLink"] is None
    assert job["archivedAt"] is None
    assert job["queuePosition"] is None
    assert job["source"] == {"repository": f"hosted/{service.project_id}.git", "ref": "main"}
    assert job["createdAt"].endswith("Z")
    events = await job_events(http, service, job["id"])
    types = [event["type"] for event in events]
    assert types[0] == "job-requested"
    assert types[-2:] == ["pull-request-opened", "job-completed"]
    done = await get_job(http, service, job["id"])
    assert done["status"] == "completed"
    assert done["prLink"].startswith(f"{service.url}/hosted/{service.project_id}/pulls/")
    assert done["failure"] is None
    assert done["usage"] == {"inputTokens": 0, "outputTokens": 0, "costUsd": 0.0}
    async with http.get(done["prLink"]) as page:
        assert page.status == 200
        text = await page.text()
        assert "25 MB" in text
        assert "install.md" in text


async def test_instruction_not_understood_ends_without_changes(http, service):
    job = await create_job(http, service, "Make it sing")
    await job_events(http, service, job["id"])
    done = await get_job(http, service, job["id"])
    assert (done["status"], done["prLink"]) == ("completed", None)


async def test_the_events_go_on_from_the_last_one_that_was_seen(http, service):
    job = await create_job(http, service, "Fix broken links")
    url = f"{service.url}/v2/agent/{service.project_id}/job/{job['id']}/events"
    async with http.get(url, headers=service.admin) as response:
        ids = [line[3:].strip().decode() async for line in response.content if line.startswith(b"id:")]
    async with http.get(url, headers={**service.admin, "Last-Event-ID": ids[-2]}) as response:
        lines = [line async for line in response.content]
    assert [line for line in lines if line.startswith(b"id:")] == [f"id: {ids[-1]}\n".encode()]


async def test_the_hosted_repository_is_one_that_git_can_clone(http, service, tmp_path, git):
    job = await create_job(http, service, 'Append "Kites fly." to index.md')
    await job_events(http, service, job["id"])
    branch = (await get_job(http, service, job["id"]))["branch"]
    url = service.url.replace("http://", f"http://docsmith:{service.admin_key}@")
    git("clone", "-q", f"{url}/hosted/{service.project_id}.git", str(tmp_path / "clone"))
    branches = git("-C", str(tmp_path / "clone"), "branch", "-r")
    assert f"origin/{branch}" in branches
    git("-C", str(tmp_path / "clone"), "fsck", "--strict")
    git("-C", str(service.data / "hosted" / f"{service.project_id}.git"), "fsck", "--strict")
    log = git("-C", str(tmp_path / "clone"), "log", "-1", "--format=%B", f"origin/{branch}")
    assert job["id"] in log


async def test_version_1_streams_the_job_as_data_lines(http, service):
    url = f"{service.url}/v1/agent/{service.project_id}/job"
    body = {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Fix broken links"}],
        "branch": "docs: fix it",
        "asDraft": "true",
        "model": "sonnet",
    }
    async with http.post(url, json=body, headers=service.admin) as response:
        assert response.status == 200
        assert response.content_type == "text/plain"
        assert response.headers["X-Branch-Name"] == "docs-fix-it"
        assert response.headers["X-Model"].startswith("builtin/editor (to use a language model, set model")
        assert response.headers["Deprecation"].startswith("@")
        assert f"/v2/agent/{service.project_id}/job" in response.headers["Link"]
        lines = (await response.text()).splitlines()
        job_id = response.headers["X-Session-Id"]
    assert all(line[:2] in {"0:", "2:", "3:", "8:", "9:", "a:", "d:", "e:", "f:"} for line in lines if line)
    assert lines[-1].startswith('d:{"type":"finish"')
    assert lines[0].startswith('0:"The builtin agent (builtin/editor) does this job')
    assert "set model under [agent] in docsmith.toml" in lines[0]
    done = await get_job(http, service, job_id)
    assert done["status"] == "completed"
    assert done["branch"] == "docs-fix-it"


async def test_unknown_model_of_version_1_is_refused(http, service):
    url = f"{service.url}/v1/agent/{service.project_id}/job"
    body = {"messages": [{"role": "user", "content": "Fix broken links"}], "model": "haiku"}
    async with http.post(url, json=body, headers=service.admin) as response:
        assert (response.status, (await response.json())["code"]) == (400, "unknown_model")


async def test_a_client_that_leaves_does_not_end_the_job(http, service):
    url = f"{service.url}/v1/agent/{service.project_id}/job"
    body = {"messages": [{"role": "user", "content": 'Append "One more." to retry.md'}]}
    async with http.post(url, json=body, headers=service.admin) as response:
        job_id = response.headers["X-Session-Id"]
        response.close()
    await job_events(http, service, job_id)
    assert (await get_job(http, service, job_id))["status"] == "completed"


async def test_reconnecting_after_the_last_event_ends_at_once(http, service):
    job = await create_job(http, service, 'Append "And again." to retry.md')
    await job_events(http, service, job["id"])
    url = f"{service.url}/v2/agent/{service.project_id}/job/{job['id']}/events"
    async with http.get(url, headers=service.admin) as response:
        ids = [line[3:].strip() for line in (await response.text()).splitlines() if line.startswith("id:")]
    for seen, left in ((ids[-1], []), (ids[-3], ids[-2:])):
        headers = {**service.admin, "Last-Event-ID": seen}
        async with asyncio.timeout(60), http.get(url, headers=headers) as response:
            lines = (await response.text()).splitlines()
        assert [line[3:].strip() for line in lines if line.startswith("id:")] == left


async def test_a_merge_is_recorded_and_indexed(http, service):
    job = await create_job(http, service, 'Create a page zebra.md with title "Zebra" and text "Zebras have stripes."')
    await job_events(http, service, job["id"])
    merge = f"{service.url}/v2/agent/{service.project_id}/job/{job['id']}/merge"
    async with http.post(merge, headers=service.admin) as response:
        assert response.status == 200, await response.text()
    async with http.get((await get_job(http, service, job["id"]))["prLink"]) as page:
        assert "Merged" in await page.text()
    shown = service.cli("audit", "show", "--stream", f"job-{job['id']}")
    assert [event["type"] for event in shown["events"]][-1] == "pull-request-closed"
    assert shown["events"][-1]["data"]["outcome"] == "merged"
    await recorded(service, f"site-{service.domain}", until="site-indexed", after=shown["events"][-1]["position"])
    found = service.cli("search", service.domain, "zebra stripes")["results"]
    assert found[0]["path"] == "zebra"
