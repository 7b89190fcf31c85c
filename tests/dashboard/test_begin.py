"""The first page of a new installation, and what an operator may allow there that others may not."""

import re

import pytest

from eventstore import Metadata
from service.commands.organizations import create_organization
from tests.dashboard.conftest import Answer, ask_page, browser, invite, open_data, post_form, sign_in
from tests.fakes.live_website import live_website
from tests.service_process import service_in, write_docs

COOKIE = "__Host-docsmith"


class Person:
    """A browser of someone who is signed in, by paths of the service."""

    def __init__(self, url: str, link: str) -> None:
        self.url, self.cookie = url, {"Cookie": f"{COOKIE}={sign_in(url, link)}", "Accept": "text/html"}

    def get(self, path: str) -> Answer:
        return ask_page(self.url + path, None, self.cookie)

    def post(self, path: str, **fields: str) -> Answer:
        return post_form(self.url + path, {name.rstrip("_"): value for name, value in fields.items()}, self.cookie)

    def id_of_form(self, path: str) -> str:
        return re.search(r'name="id" value="([0-9a-f]{32})"', self.get(path).text)[1]


@pytest.fixture
def service(tmp_path):
    """A service with an empty data folder."""
    with service_in(tmp_path) as service:
        service.start()
        yield service


@pytest.fixture
def operator(service):
    return Person(service.url, service.cli("login")["link"])


async def owner_elsewhere(service):
    """The owner of an organization who does not operate the installation; and the path of its new projects."""
    async with open_data(service.data) as runtime:
        other = await create_organization(runtime.store, "Beta", Metadata("cli:tests"))
    _, link = await invite(service.data, email="grace@example.com", organization_id=other.id, role="owner")
    return Person(service.url, link), f"/dashboard/{other.id}/projects/new"


def begun(answer: Answer) -> re.Match[str]:
    """The organization and the site that an answer leads to."""
    assert answer.status == 303, answer.text
    found = re.search(r"dashboard/([0-9a-f]{32})/sites/([a-z0-9.-]+)$", answer.headers["Location"])
    assert found is not None
    return found


async def test_new_installation_begins_with_its_documentation(service, operator):
    async with browser(service.url) as nobody:
        assert "docsmith login" in await (await nobody.get("/")).text()
        async with nobody.get("/begin", allow_redirects=False) as led:
            assert (led.status, "sign-in" in led.headers["Location"]) == (303, True)
    assert operator.get("/dashboard").headers["Location"].endswith("/begin")
    assert 'href="./begin"' in operator.get("/").text
    page = operator.get("/begin").text
    kinds = ("upload", "folder", "git", "host", "website", "sample")
    assert re.findall(r'href="\?from=(\w+)"', page) == list(kinds)
    assert "Markdown, MDX, reStructuredText, HTML, Jupyter notebooks and OpenAPI descriptions are read" in page
    sent = {"from_": "sample", "id": operator.id_of_form("/begin?from=sample"), "organization": "Acme"}
    first = begun(operator.post("/begin", **sent))
    assert first[2] == "docsmith-manual"
    assert service.cli("organization", "list")["organizations"][0]["name"] == "Acme"
    assert operator.get("/begin").headers["Location"].endswith(f"dashboard/{first[1]}/projects/new?from=upload")
    second = begun(operator.post(f"/dashboard/{first[1]}/projects/new", from_="sample"))
    assert second[2] == "docsmith-manual-2"


def test_operator_allows_a_folder_which_stays_allowed(service, operator, tmp_path):
    docs = write_docs(tmp_path / "allowed" / "guide").parent
    sent = {"from_": "folder", "id": operator.id_of_form("/begin?from=folder"), "organization": "Acme"}
    refused = operator.post("/begin", repository=str(docs), **sent)
    assert (refused.status, "tick the box below" in refused.text) == (403, True)
    for path, says in (("/", "own data"), (str(service.data), "own data"), ("guide", "begins with a slash")):
        assert says in operator.post("/begin", repository=path, allow="true", **sent).text
    made = begun(operator.post("/begin", repository=str(docs), allow="true", **sent))
    assert made[2] == "allowed"
    assert len(service.cli("organization", "list")["organizations"]) == 1
    service.stop()
    service.start()
    again = Person(service.url, service.cli("login")["link"])
    new = f"/dashboard/{made[1]}/projects/new"
    assert begun(again.post(new, from_="folder", repository=str(docs / "guide")))[2] == "guide"
    assert str(docs) in again.get("/operator/settings").text
    assert again.post("/operator/settings/folders/disallow", folder=str(docs)).status == 303
    assert again.post(new, from_="folder", repository=str(docs / "guide"), name="Again").status == 403


def test_live_website_is_asked_and_given_no_job(tmp_path):
    with live_website(tmp_path / "www") as website, service_in(tmp_path / "service") as service:
        service.environment["DOCSMITH_NETWORK__ALLOW_PRIVATE"] = "true"
        service.start()
        operator = Person(service.url, service.cli("login")["link"])
        sent = {"id": operator.id_of_form("/begin?from=website"), "organization": "Acme", "repository": website}
        made = begun(operator.post("/begin", from_="website", domain="kites", **sent))
        for part in ("", "/search", "/report", "/golden", "/access", "/widget", "/project"):
            page = operator.get(f"/dashboard/{made[1]}/sites/kites{part}")
            assert (page.status, "Ask it" in page.text, "jobs/new" in page.text) == (200, True, False), part


async def test_owner_uses_what_was_allowed_and_allows_nothing(service, operator, tmp_path):
    owner, new = await owner_elsewhere(service)
    docs = write_docs(tmp_path / "docs")
    assert owner.get("/begin").status == 403
    assert owner.post("/begin", from_="sample", id="0" * 32, organization="Mine").status == 403
    assert "Allow this folder" not in owner.get(f"{new}?from=folder").text
    assert owner.post(new, from_="folder", repository=str(docs), allow="true").status == 403
    private = owner.post(new, from_="git", repository="http://127.0.0.1:1/x.git", allow="true")
    assert (private.status, "not an address of the public internet" in private.text) == (403, True)
    assert owner.post("/operator/settings/folders/disallow", folder=str(docs)).status == 403
    id_ = operator.id_of_form("/begin")
    begun(operator.post("/begin", from_="folder", id=id_, organization="Acme", repository=str(docs), allow="true"))
    assert "Folder" in owner.get(new).text
    assert begun(owner.post(new, from_="folder", repository=str(docs), name="Mine"))[2] == "mine"


async def test_beginning_takes_no_organization_of_others(service, operator):
    _, new = await owner_elsewhere(service)
    taken = operator.post("/begin", from_="sample", id=new.split("/")[2], organization="Beta")
    assert taken.status == 409
    assert service.cli("project", "list")["projects"] == []


def test_operator_lets_one_project_have_a_private_address(service, operator, tmp_path):
    id_ = operator.id_of_form("/begin")
    docs = write_docs(tmp_path / "docs")
    first = begun(operator.post("/begin", from_="folder", id=id_, organization="A", repository=str(docs), allow="true"))
    project = service.cli("project", "list")["projects"][0]["id"]
    key = service.cli("key", "create", "--kind", "admin", "--scope", "all")["token"]
    address = {"from_": "git", "repository": f"{service.url}/hosted/{project}.git", "token": key}
    new = f"/dashboard/{first[1]}/projects/new"
    assert operator.post(new, **address, name="Refused").status == 400  # the token would travel unencrypted
    assert operator.post(new, **{**address, "token": ""}, name="Refused").status == 403
    copied = begun(operator.post(new, **address, name="Copied", allow="true"))
    page = f"/dashboard/{first[1]}/sites/{copied[2]}/project"
    moved = operator.post(page, name="Copied", ref="main", repository="http://127.0.0.1:1/other.git", allow="true")
    assert "Repository" in operator.get(page).text
    assert moved.status in (303, 400, 403)
    assert service.cli("project", "show", service.cli("project", "list")["projects"][1]["id"])["name"] == "Copied"
