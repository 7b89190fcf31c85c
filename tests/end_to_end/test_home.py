"""Two instances of a log in PostgreSQL: one is home to the embedded code host, and the other answers as well."""

import asyncio
import io
import zipfile

import pytest

from tests.end_to_end.talk import create_job, get_job, job_events
from tests.instances import instances_in
from tests.service_process import Service, write_docs


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with instances_in(folder, {}, count=2) as pair:
        pair.set_up(write_docs(folder / "docs"))
        pair.start()
        yield pair


@pytest.fixture
def away(pair):
    """The instance that is not home, as its callers see it."""
    return seen_by(pair, pair.members[1].url)


def seen_by(pair, url):
    names = ("organization_id", "project_id", "domain", "admin_key", "assistant_key")
    return Service(pair.data, url=url, **{name: getattr(pair, name) for name in names})


async def search(http, service, query, domain=""):
    url = f"{service.url}/discovery/v1/search/{domain or service.domain}"
    async with http.post(url, json={"query": query}, headers=service.assistant) as response:
        return response.status, [each["path"] for each in (await response.json())] if response.status == 200 else []


async def until(is_so):
    async with asyncio.timeout(60):
        while not await is_so():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.1)


async def test_index_of_home_is_fetched(http, away):
    async def is_found():
        return (await search(http, away, "retry delay"))[1][:1] == ["retry"]

    await until(is_found)
    async with http.get(f"{away.url}/readyz") as response:
        assert response.status == 200, await response.text()


async def test_job_is_done_at_home_and_merged_from_elsewhere(http, away):
    job = await create_job(http, away, 'Replace "20 MB" with "37 MB" in install.md')
    await job_events(http, away, job["id"])
    done = await get_job(http, away, job["id"])
    assert done["status"] == "completed", done
    place = done["prLink"].partition("/hosted/")[2]
    async with http.get(f"{away.url}/hosted/{place}") as page:
        assert page.status == 200
        assert "37 MB" in await page.text()
        assert "frame-src 'self'" in page.headers["Content-Security-Policy"]
    async with http.head(f"{away.url}/hosted/{place}") as page:
        assert (page.status, await page.read()) == (200, b"")
    async with http.get(f"{away.url}/v2/agent/{away.project_id}/job/{job['id']}/changes", headers=away.admin) as found:
        changes = await found.json()
        assert (changes["isReadable"], changes["files"][0]["path"]) == (True, "install.md")
    url = f"{away.url}/v2/agent/{away.project_id}/job/{job['id']}/merge"
    async with http.post(url, headers=away.admin) as merged:
        assert merged.status == 200, await merged.text()
        assert (await merged.json())["pullRequestState"] == "merged"

    async def is_found():
        return (await search(http, away, "37 MB of disk"))[1][:1] == ["install"]

    await until(is_found)


def test_git_clones_and_pushes_by_any_instance(away, git, tmp_path):
    clone = tmp_path / "clone"
    url = away.url.replace("http://", f"http://docsmith:{away.admin_key}@")
    git("clone", "-q", f"{url}/hosted/{away.project_id}.git", str(clone))
    (clone / "large.md").write_text("# Large\n\n" + "".join(f"Line {number} of it.\n" for number in range(200_000)))
    git("-C", str(clone), "add", "-A")
    git("-C", str(clone), "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-qm", "docs: more")
    git("-C", str(clone), "push", "-q", "origin", "HEAD:refs/heads/more")
    assert "refs/heads/more" in git("ls-remote", f"{url}/hosted/{away.project_id}.git")
    git("-C", str(away.data / "hosted" / f"{away.project_id}.git"), "fsck", "--strict")


async def test_archive_is_uploaded_by_any_instance(http, away):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.md", "# Gliders\n\nA glider has no engine.\n")
    url = f"{away.url}/v2/uploads?name=Gliders"
    headers = {**away.admin, "Content-Type": "application/octet-stream"}
    async with http.post(url, data=packed.getvalue(), headers=headers) as response:
        assert response.status == 201, await response.text()
        project = (await response.json())["project"]
    assert (away.data / "hosted" / f"{project['id']}.git").is_dir()
    url = f"{away.url}/v2/projects/{project['id']}/upload"
    async with http.post(url, data=packed.getvalue(), headers=headers) as response:
        assert response.status == 200, await response.text()
    async with http.post(url, data=packed.getvalue(), headers={**headers, "Authorization": "Bearer no"}) as response:
        assert response.status == 401


async def test_project_of_a_hosted_repository_is_made_at_home(http, away, tmp_path):
    body = {"name": "Elsewhere", "repository": "https://127.0.0.1:1/x.git"}
    async with http.post(f"{away.url}/v2/projects", json=body, headers=away.admin) as response:
        assert (response.status, (await response.json())["code"]) == (403, "address_not_allowed")


async def test_reads_go_on_while_home_is_away(http, pair, away):
    home = pair.members[0]
    home.kill()
    try:
        for _ in range(2):
            url = f"{away.url}/hosted/{away.project_id}.git/info/refs?service=git-upload-pack"
            async with http.get(url, headers={"Authorization": "Basic eDp5"}) as response:
                assert (response.status, response.headers["Retry-After"]) == (503, "5"), await response.text()
                assert (await response.json())["code"] == "home_away"
        assert (await search(http, away, "retry delay"))[0] == 200
        job = await create_job(http, away, 'Append "Kites fly." to index.md')
    finally:
        home.start()
    await job_events(http, away, job["id"])
    assert (await get_job(http, away, job["id"]))["status"] == "completed"
    for _ in range(600):  # until the other one has seen that home is back
        async with http.get(f"{away.url}/hosted/{away.project_id}/pulls/1-none") as page:
            status = page.status
        if status != 503:
            break
        await asyncio.sleep(0.1)
    assert status == 404


async def test_each_instance_says_that_two_are_home(http, pair):
    second = pair.members[1]
    second.stop()
    second.environment["DOCSMITH_INSTANCES__HOME"] = "true"
    second.start()
    try:
        for member in pair.members:

            async def is_said(member=member):
                async with http.get(f"{member.url}/readyz") as response:
                    return "2 instances are home to the embedded code host" in await response.text()

            await until(is_said)
            async with http.get(f"{member.url}/readyz/requests") as response:
                assert response.status == 200
        said = second.run("doctor").stdout
        assert "2 instances are home to the embedded code host" in said
        assert said.count(" leads") == 1
    finally:
        second.stop()
        second.environment["DOCSMITH_INSTANCES__HOME"] = "false"
        second.start()
