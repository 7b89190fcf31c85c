"""Projects and sites by the API: made of an upload, indexed, reported, opened, and no other organization's."""

import asyncio
import io
import zipfile

import pytest

from tests.service_process import DOCS, service_in, write_docs


def zipped(files=DOCS):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"guide-main/{name}", content)
    return made.getvalue()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service of their own: with several projects, commands would no longer know which one is meant."""
    folder = tmp_path_factory.mktemp("projects")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


@pytest.fixture(scope="module")
def other(service):
    """The headers of another organization's admin key."""
    organization = service.cli("organization", "create", "--name", "Others")["id"]
    key = service.cli("key", "create", "--kind", "admin", "--organization", organization)["token"]
    return {"Authorization": f"Bearer {key}"}


async def indexed(http, service, domain):
    async with asyncio.timeout(120):
        while True:
            async with http.get(f"{service.url}/v2/sites/{domain}", headers=service.admin) as answer:
                shown = await answer.json()
            if shown["site"]["commit"]:
                return shown
            await asyncio.sleep(0.05)  # between two looks at what another process does


async def test_uploaded_archive_becomes_an_indexed_site(http, service, other):
    url = f"{service.url}/v2/uploads?name=Uploaded"
    async with http.post(url, data=zipped(), headers=service.admin) as answer:
        made = (await answer.json())["project"]
        assert (answer.status, made["domain"]) == (201, "uploaded")
        assert made["repository"] == f"hosted/{made['id']}.git"
    shown = await indexed(http, service, "uploaded")
    assert (shown["site"]["pages"], shown["payment"]["problem"]) == (3, "")
    async with http.get(f"{service.url}/v2/sites/uploaded/report", headers=service.admin) as answer:
        report = await answer.json()
        assert (report["generator"], report["findings"]["skipped"]["number"]) == ("mintlify", 0)
    async with http.post(f"{service.url}/v2/sites/uploaded/index", headers=service.admin) as answer:
        assert answer.status == 202
    for path in ("sites/uploaded", "sites/uploaded/report", f"projects/{made['id']}", "sites/none"):
        async with http.get(f"{service.url}/v2/{path}", headers=other) as answer:
            assert answer.status == 404, path


async def test_new_version_of_an_upload_is_indexed(http, service, other):
    async with http.post(f"{service.url}/v2/uploads?name=Versions", data=zipped(), headers=service.admin) as answer:
        project_id = (await answer.json())["project"]["id"]
    before = await indexed(http, service, "versions")
    url = f"{service.url}/v2/projects/{project_id}/upload"
    new = zipped({"docs/only.md": "# Only\n\nThis page.\n"})
    async with http.post(url, data=new, headers=other) as answer:
        assert answer.status == 404
    async with http.post(url, data=new, headers=service.admin) as answer:
        assert (answer.status, (await answer.json())["warnings"]) == (200, [])
    async with asyncio.timeout(120):
        while True:
            shown = await indexed(http, service, "versions")
            if shown["site"]["commit"] != before["site"]["commit"]:
                break
            await asyncio.sleep(0.05)  # between two looks at what another process does
    assert shown["site"]["pages"] == 1
    async with http.post(url, data=new, headers=service.admin) as answer:
        assert "same files" in (await answer.json())["warnings"][0]
    async with http.post(url, data=b"no archive", headers=service.admin) as answer:
        assert (answer.status, (await answer.json())["code"]) == (400, "bad_archive")
    async with http.post(
        f"{service.url}/v2/projects/{service.project_id}/upload", data=new, headers=service.admin
    ) as answer:
        assert (answer.status, (await answer.json())["code"]) == (409, "not_uploaded")


async def test_lists_are_paged_and_the_organizations_own(http, service, other):
    async with http.get(f"{service.url}/v2/projects?limit=1", headers=service.admin) as answer:
        listed = await answer.json()
        assert len(listed["projects"]) == 1
    async with http.get(f"{service.url}/v2/sites", headers=other) as answer:
        assert await answer.json() == {"sites": [], "nextCursor": None}
    async with http.get(f"{service.url}/v2/organization", headers=other) as answer:
        assert (await answer.json())["name"] == "Others"


async def test_bad_uploads_are_refused_with_the_reason(http, service):
    url = f"{service.url}/v2/uploads?name=Bad"
    for content, code in ((b"no archive", "bad_archive"), (zipped({"../evil.md": "x"}), "bad_archive")):
        async with http.post(url, data=content, headers=service.admin) as answer:
            assert (answer.status, (await answer.json())["code"]) == (400, code)
    assert list((service.data / "uploads").iterdir()) == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"repository": "/etc"}, 403, "folder_not_allowed"),
        ({"repository": "http://127.0.0.1:1/x"}, 403, "address_not_allowed"),
        ({"repository": "http://169.254.169.254/x", "codeHost": "website"}, 403, "address_not_allowed"),
        ({"repository": "https://10.0.0.1/a/b", "codeHost": "gitlab", "token": "t"}, 403, "address_not_allowed"),
        ({"repository": "file:///etc"}, 400, "invalid_request"),
        ({"repository": "https://git.example/a/b", "codeHost": "github"}, 400, "invalid_request"),
    ],
)
async def test_what_a_caller_may_not_name_is_refused(http, service, body, status, code):
    url = f"{service.url}/v2/projects"
    async with http.post(url, json={"name": "Evil", **body}, headers=service.admin) as answer:
        assert (answer.status, (await answer.json())["code"]) == (status, code)


async def test_access_is_changed_by_the_api(http, service):
    url = f"{service.url}/v2/sites/{service.domain}/access"
    body = {"public": True, "origins": ["https://docs.example.com"]}
    async with http.post(url, json=body, headers=service.admin) as answer:
        site = (await answer.json())["site"]
        assert (site["public"], site["origins"]) == (True, ["https://docs.example.com"])
    async with http.post(url, json={"public": False, "origins": []}, headers=service.admin) as answer:
        assert (await answer.json())["site"]["public"] is False


async def test_widget_is_changed_by_the_api(http, service):
    url = f"{service.url}/v2/sites/{service.domain}/widget"
    body = {"title": "Ask us", "handOff": "https://example.com/help?ref={threadId}", "form": "modal"}
    async with http.post(url, json=body, headers=service.admin) as answer:
        widget = (await answer.json())["site"]["widget"]
        assert widget == {**body, "greeting": "", "suggestions": [], "accent": ""}
    async with http.post(url, json={"handOff": "javascript:alert(1)"}, headers=service.admin) as answer:
        assert (answer.status, (await answer.json())["code"]) == (400, "invalid_request")


async def test_project_is_changed_by_the_api(http, service):
    url = f"{service.url}/v2/projects/{service.project_id}"
    async with http.get(url, headers=service.admin) as answer:
        before = await answer.json()
    async with http.post(url, json={"name": "Renamed"}, headers=service.admin) as answer:
        assert (await answer.json())["project"] == {**before, "name": "Renamed"}
    async with http.post(url, json={"name": before["name"]}, headers=service.admin) as answer:
        assert answer.status == 200
