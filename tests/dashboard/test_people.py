"""The people of an organization: on their page, in the API, and on the command line."""

import os
import pty
import re
import subprocess

from tests.dashboard.conftest import browser, sign_in
from tests.service_process import begun, service_in

LINK = re.compile(r"http://localhost:\d+/sign-in#[\w.-]+")


def people_path(service):
    return f"/dashboard/{service.organization_id}/people"


async def test_owner_invites_someone_who_signs_in(service, people, owner):
    sent = {"email": "Grace@example.com", "name": "Grace <b>", "role": "viewer"}
    made = await owner.post(people_path(service), data=sent)
    page = await made.text()
    assert made.status == 200
    assert made.headers["Cache-Control"] == "no-store"
    assert "Grace &lt;b&gt;" in page
    link = LINK.search(page)[0]
    assert "within 7 days" in page
    shown_again = await (await owner.get(people_path(service))).text()
    assert "grace@example.com" in shown_again
    assert not LINK.search(shown_again)
    async with browser(service.url, sign_in(service.url, link)) as grace:
        assert (await grace.get(people_path(service))).status == 200
        assert (await grace.post(people_path(service), data={**sent, "email": "x@example.com"})).status == 403
    again = await owner.post(people_path(service), data=sent)
    assert again.status == 409
    assert "has a role in this organization already" in await again.text()


async def test_owner_changes_and_removes_a_role(service, people, owner):
    made = await owner.post(people_path(service), data={"email": "joan@example.com", "role": "editor"})
    cookie = sign_in(service.url, LINK.search(await made.text())[0])
    listed = await (await owner.get("/v2/people", headers=service.admin)).json()
    joan = next(one["id"] for one in listed["people"] if one["email"] == "joan@example.com")
    async with browser(service.url, cookie) as client:
        await owner.post(f"{people_path(service)}/{joan}/role", data={"role": "owner"})
        assert (await client.get("/account", allow_redirects=False)).status == 200
        await owner.post(f"{people_path(service)}/{joan}/role", data={"role": "viewer"})
        assert (await client.get("/account", allow_redirects=False)).status == 303  # at once
    removed = await owner.post(f"{people_path(service)}/{joan}/remove")
    assert "joan@example.com" not in await removed.text()
    assert (await owner.post(f"{people_path(service)}/{joan}/remove")).status == 404


async def test_people_are_managed_by_owners_alone(service, people, editor, viewer, outsider, operator, nobody):
    path = f"{people_path(service)}/{people.ids['owner']}"
    for client, status in ((editor, 403), (viewer, 403), (outsider, 404), (operator, 404), (nobody, 401)):
        for action, data in (("role", {"role": "viewer"}), ("remove", {}), ("link", {})):
            answer = await client.post(f"{path}/{action}", data=data, allow_redirects=False)
            assert answer.status == status, action


async def test_owner_makes_no_link_for_people_elsewhere(service, people, owner):
    answer = await owner.post(f"{people_path(service)}/{people.ids['outsider']}/link")
    assert answer.status == 404
    assert not LINK.search(await answer.text())


async def test_person_sees_and_ends_their_sessions(service, people):
    cookie = sign_in(service.url, service.cli("login", "--person", people.ids["operator"])["link"])
    async with browser(service.url, cookie) as first:
        second_cookie = sign_in(service.url, service.cli("login", "--person", people.ids["operator"])["link"])
        async with browser(service.url, second_cookie) as second:
            page = await (await first.get("/account")).text()
            assert page.count("(this one)") == 1
            await first.post("/account/sessions/others/end")
            assert (await second.get("/account", allow_redirects=False)).status == 303
        assert (await first.post("/account/sessions/0123456789abcdef0123456789abcdef/end")).status == 404
        renamed = await first.post("/account/name", data={"name": " Op "})
        assert 'value="Op"' in await renamed.text()
        assert (await first.post("/account/name", data={"name": ""})).status == 400
    people.cookies["operator"] = cookie  # the one that the fixture had was ended


async def test_api_keeps_people_within_the_organization(service, people, nobody):
    async def call(method, path, **body):
        answer = await nobody.request(method, path, json=body or None, headers=service.admin)
        return answer.status, await answer.json() if answer.content_type.endswith("json") else None

    status, added = await call("POST", "/v2/people", email="api@example.com", role="viewer")
    assert (status, added["role"], bool(LINK.fullmatch(added["signInLink"]))) == (201, "viewer", True)
    assert (await call("POST", "/v2/people", email="api@example.com", role="viewer"))[1]["code"] == "member_exists"
    assert (await call("POST", "/v2/people", email="api", role="viewer"))[0] == 400
    assert (await call("POST", "/v2/people", email="api2@example.com", role="king"))[0] == 400
    _, page = await call("GET", "/v2/people?limit=1")
    emails = [page["people"][0]["email"]]
    while page["nextCursor"]:
        _, page = await call("GET", f"/v2/people?limit=1&cursor={page['nextCursor']}")
        emails += [one["email"] for one in page["people"]]
    assert emails == sorted(set(emails))
    assert "outsider@example.com" not in emails
    status, changed = await call("POST", f"/v2/people/{added['id']}/role", role="editor")
    assert (status, changed["role"]) == (200, "editor")
    assert (await call("GET", f"/v2/people/{added['id']}"))[1] == changed
    assert (await call("POST", f"/v2/people/{added['id']}/link"))[1]["signInLink"] != added["signInLink"]
    assert (await call("POST", f"/v2/people/{added['id']}/remove"))[0] == 204
    assert (await call("GET", f"/v2/people/{people.ids['outsider']}"))[1]["code"] == "person_not_found"
    assert (await call("POST", f"/v2/people/{people.ids['outsider']}/role", role="viewer"))[0] == 404


def test_people_are_managed_from_the_terminal(tmp_path):
    with service_in(tmp_path) as service:
        assert service.cli("login", status=1)["code"] == "no_data"
        service.organization_id = service.cli("organization", "create", "--name", "Acme")["id"]
        first = service.cli("login", "--person", "root@example.com")
        assert LINK.fullmatch(first["link"])
        assert service.cli("login", "--person", "eve@example.com", status=1)["code"] == "person_not_found"
        added = service.cli("person", "add", "ada@example.com", "--role", "editor")
        assert LINK.fullmatch(added["link"])
        assert service.cli("person", "add", "ada@example.com", "--role", "viewer")["link"] is None
        listed = {one["email"]: one for one in service.cli("person", "list")["people"]}
        assert listed["root@example.com"]["isOperator"]
        assert [one["role"] for one in listed["ada@example.com"]["roles"]] == ["viewer"]
        assert service.cli("person", "remove", "root@example.com", status=1)["code"] == "last_owner"
        assert service.cli("person", "remove", "ada@example.com")["removed"]
        assert service.cli("person", "add", "x@example.com", status=1)["code"] == "invalid_request"
        away = {"DOCSMITH_SERVER__PUBLIC_URL": "http://docs.example.com", "DOCSMITH_SERVER__HOST": "192.0.2.7"}
        service.environment |= away
        assert service.cli("login", status=1)["code"] == "https_required"


def start_on_a_terminal(service):
    """Start the service with a terminal for its standard error; what reads there."""
    ours, theirs = pty.openpty()
    command = ["serve", "--data", str(service.data), "--port", "0"]
    environment = dict(os.environ, **service.environment)
    with os.fdopen(theirs, "wb", buffering=0) as terminal:
        service.process = begun(command, environment=environment, stdout=subprocess.PIPE, stderr=terminal)
    service.url = service.process.stdout.readline().removeprefix("listening on ").strip()
    return ours


def read_terminal(ours, *, until=None):
    """What was written there until a pattern fits, or until the other end is closed."""
    text = ""
    while until is None or not until.search(text):
        try:
            text += os.read(ours, 4096).decode()
        except OSError:  # as Linux says that the other end is closed
            break
    return text


def test_first_start_on_a_terminal_prints_a_link(tmp_path):
    with service_in(tmp_path) as service:
        service.data.mkdir()
        terminal = start_on_a_terminal(service)
        link = LINK.search(read_terminal(terminal, until=re.compile(r"sign-in#[\w.-]+\r\n")))[0]
        assert link.startswith(service.url.replace("127.0.0.1", "localhost"))
        assert sign_in(service.url, link)
        service.stop()
        os.close(terminal)
        terminal = start_on_a_terminal(service)
        service.stop()
        assert not LINK.search(read_terminal(terminal))
        os.close(terminal)


def test_start_into_a_file_prints_no_link(tmp_path):
    with service_in(tmp_path) as service:
        service.start()
        service.stop()
        assert "sign-in#" not in service.log()
