"""Sign-in with an account at a provider on this machine, as a browser goes through it."""

import re
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie

import aiohttp
import pytest
from yarl import URL

from eventstore import Metadata
from service.commands.access.credentials import Admits, person_of_account
from service.commands.access.people import NewPerson, add_person
from service.ports.sign_in import Account
from service.queries.access.people import PeopleDirectory
from tests.dashboard.conftest import COOKIE, HTML, invite, open_data
from tests.fakes.oidc import CLIENT_ID, SECRET, FakeOidc
from tests.service_process import free_port, service_in

KEPT = "docsmith-oidc"


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    """A service of its own, whose provider each test starts."""
    environment = {
        "DOCSMITH_SIGN_IN__OIDC__ISSUER": f"http://127.0.0.1:{port}/realms/main",
        "DOCSMITH_SIGN_IN__OIDC__CLIENT_ID": CLIENT_ID,
        "DOCSMITH_SIGN_IN__OIDC__CLIENT_SECRET_ENV": "OIDC_SECRET",
        "DOCSMITH_SIGN_IN__OIDC__NAME": "Main login",
        "OIDC_SECRET": SECRET,
    }
    with service_in(tmp_path_factory.mktemp("oidc"), environment) as service:
        service.organization_id = service.cli("organization", "create", "--name", "Acme")["id"]
        service.environment |= {
            "DOCSMITH_SIGN_IN__OIDC__VIEWER_DOMAINS": "viewers.example.com, other.example.com",
            "DOCSMITH_SIGN_IN__OIDC__VIEWER_ORGANIZATION": service.organization_id,
        }
        service.start()
        yield service


@pytest.fixture
async def provider(port):
    fake = FakeOidc(port)
    async with fake.server:
        yield fake


@asynccontextmanager
async def browser(service):
    """A browser without scripts; it keeps its cookies by hand, since they are for https alone."""
    base = str(URL(service.url).with_host("localhost"))
    async with aiohttp.ClientSession(base, headers=HTML, cookie_jar=aiohttp.DummyCookieJar()) as client:
        yield client


def cookies_of(answer):
    found = SimpleCookie()
    for line in answer.headers.getall("Set-Cookie", []):
        found.load(line)
    return {name: morsel.value for name, morsel in found.items()}


async def begun(client, next_path="/account", path=""):
    """The address that the browser is sent to, and the cookie that it keeps."""
    begin = URL(path, encoded=True) if path else URL("/sign-in/oidc").with_query(next=next_path)
    async with client.get(begin, allow_redirects=False) as answer:
        assert answer.status == 303
        return answer.headers["Location"], cookies_of(answer)[KEPT]


async def answered(client, location):
    """The provider's answer: the path and query of the address that it sends the browser back to."""
    async with aiohttp.ClientSession() as session, session.get(location, allow_redirects=False) as answer:
        return URL(answer.headers["Location"], encoded=True)


async def returned(client, back, kept):
    return await client.get(
        URL(back.raw_path_qs, encoded=True), headers={"Cookie": f"{KEPT}={kept}"}, allow_redirects=False
    )


async def signed_in(service, next_path="/account"):
    """The answer at the end of a whole sign-in."""
    async with browser(service) as client:
        location, kept = await begun(client, next_path)
        answer = await returned(client, await answered(client, location), kept)
        return answer, await answer.text()


async def add(service, email, role="editor"):
    await invite(service.data, email=email, organization_id=service.organization_id, role=role)


async def test_added_person_signs_in_and_is_led_on(service, provider):
    await add(service, "ada@example.com")
    answer, _ = await signed_in(service, "/account?tab=1")
    assert (answer.status, answer.headers["Location"]) == (303, "../../account?tab=1")
    cookies = cookies_of(answer)
    assert cookies[COOKIE]
    assert cookies[KEPT] == ""
    async with browser(service) as client:
        opened = await client.get("/dashboard", headers={"Cookie": f"{COOKIE}={cookies[COOKIE]}"})
        assert opened.status == 200
        shown = await client.get("/sign-in")
        assert "Sign in with Main login" in await shown.text()


async def test_strangers_and_unverified_addresses_are_refused(service, provider):
    provider.account = {"sub": "9", "email": "stranger@example.com", "email_verified": True}
    answer, text = await signed_in(service)
    assert (answer.status, COOKIE in cookies_of(answer)) == (403, False)
    assert "stranger@example.com has no role here" in text
    await add(service, "victim@example.com", "owner")
    provider.account = {"sub": "10", "email": "victim@example.com", "email_verified": False}
    answer, text = await signed_in(service)
    assert (answer.status, COOKIE in cookies_of(answer)) == (403, False)
    assert "has not verified" in text


async def test_second_account_with_same_address_is_refused(service, provider):
    await add(service, "kept@example.com")
    provider.account = {"sub": "11", "email": "Kept@example.com", "email_verified": True}
    assert (await signed_in(service))[0].status == 303
    provider.account["sub"] = "12"
    answer, text = await signed_in(service)
    assert answer.status == 403
    assert "Another account of the provider" in text


async def test_one_of_several_accounts_is_chosen(service, provider):
    other = service.cli("organization", "create", "--name", "Beta <b>")["id"]
    people = {}
    for organization_id in (service.organization_id, other):
        async with open_data(service.data) as runtime:
            new = NewPerson("both@example.com", organization_id=organization_id, role="viewer", by_owner=True)
            person = (await add_person(runtime.store, runtime.views, new, Metadata("cli:tests"))).id
            # As who has opened the link of the invitation in the same browser.
            account = Account(provider.issuer, "13", "both@example.com", "")
            await person_of_account(
                runtime.store, runtime.views, PeopleDirectory(runtime.store), account, Admits(), Metadata("cli:tests"),
                present=person,
            )  # fmt: skip
            people[organization_id] = person
    provider.account = {"sub": "14", "email": "both@example.com", "email_verified": True}
    assert "Open the link of the invitation first" in (await signed_in(service))[1]
    provider.account["sub"] = "13"
    answer, text = await signed_in(service, "/account?tab=2")
    assert (answer.status, COOKIE in cookies_of(answer)) == (403, False)
    choices = dict(re.findall(r'href="../../(sign-in/oidc\?account=[^"]*)">([^<]*)<', text))
    assert list(choices.values()) == ["Acme", "Beta &lt;b&gt;"]
    for path, organization_id in zip(choices, people, strict=True):
        assert people[organization_id] in path
        async with browser(service) as client:
            location, kept = await begun(client, path="/" + path.replace("&amp;", "&"))
            answer = await returned(client, await answered(client, location), kept)
            assert (answer.status, answer.headers["Location"]) == (303, "../../account?tab=2")
            cookie = {"Cookie": f"{COOKIE}={cookies_of(answer)[COOKIE]}"}
            opened = await client.get(f"/dashboard/{organization_id}", headers=cookie)
            assert opened.status == 200
    async with browser(service) as client:  # the account of someone else
        stranger = people[other].replace(people[other][0], "f" if people[other][0] != "f" else "e")
        location, kept = await begun(client, path=f"/sign-in/oidc?account={stranger}")
        assert (await returned(client, await answered(client, location), kept)).status == 403


async def test_people_of_listed_domains_become_viewers_once(service, provider):
    provider.account = {"sub": "20", "email": "new@viewers.example.com", "email_verified": True, "name": "New\x00"}
    assert (await signed_in(service))[0].status == 303
    person = next(one for one in service.cli("person", "list")["people"] if one["email"] == "new@viewers.example.com")
    assert [(one["organizationId"], one["role"]) for one in person["roles"]] == [(service.organization_id, "viewer")]
    service.cli("person", "remove", "new@viewers.example.com")
    answer, text = await signed_in(service)
    assert (answer.status, "has no role here" in text) == (403, True)
    provider.account = {"sub": "21", "email": "new@viewers.example.com.attacker.example", "email_verified": True}
    assert (await signed_in(service))[0].status == 403


@pytest.mark.parametrize("wrong", ["cookie", "state", "no state", "other attempt", "issuer"])
async def test_answer_that_another_browser_began_is_refused(service, provider, wrong):
    await add(service, f"{wrong.replace(' ', '')}@example.com")
    provider.account = {"sub": f"30{wrong}", "email": f"{wrong.replace(' ', '')}@example.com", "email_verified": True}
    async with browser(service) as client:
        location, kept = await begun(client)
        back = await answered(client, location)
        if wrong == "cookie":
            kept = "00"
        elif wrong == "state":
            back = back.update_query(state="x" * 43)
        elif wrong == "no state":
            back = back.without_query_params("state")
        elif wrong == "other attempt":
            _, kept = await begun(client)
        else:
            back = back.update_query(iss="https://attacker.example")
        answer = await returned(client, back, kept)
        assert (answer.status, COOKIE in cookies_of(answer)) == (403, False)


async def test_code_of_another_sign_in_is_refused(service, provider):
    await add(service, "coded@example.com")
    provider.account = {"sub": "40", "email": "coded@example.com", "email_verified": True}
    async with browser(service) as client:
        theirs = await answered(client, (await begun(client))[0])
        location, kept = await begun(client)
        ours = await answered(client, location)
        answer = await returned(client, ours.update_query(code=theirs.query["code"]), kept)
        assert (answer.status, COOKIE in cookies_of(answer)) == (403, False)


async def test_redirects_lead_to_this_service_alone(service, provider):
    await add(service, "led@example.com")
    provider.account = {"sub": "50", "email": "led@example.com", "email_verified": True}
    for path in ("https://attacker.example/", "//attacker.example", "/\\attacker.example", "/sign-in"):
        answer, _ = await signed_in(service, path)
        assert (answer.status, answer.headers["Location"]) == (303, "../../dashboard")
    async with browser(service) as client:
        named = await client.get("/sign-in/oidc", headers={"Host": "attacker.example"}, allow_redirects=False)
        assert named.status in (403, 421)


async def test_words_of_an_error_are_not_shown(service, provider):
    async with browser(service) as client:
        location, kept = await begun(client)
        state = URL(location).query["state"]
        back = URL("/sign-in/oidc/callback").update_query(
            state=state, error="access_denied", error_description="Call 555-0100"
        )
        answer = await returned(client, back, kept)
        text = await answer.text()
        assert (answer.status, "Main login did not let you in" in text, "555-0100" in text) == (403, True, False)


async def test_sign_ins_are_recorded_without_secrets(service, provider):
    await add(service, "logged@example.com")
    provider.account = {"sub": "60", "email": "logged@example.com", "email_verified": True}
    answer, _ = await signed_in(service)
    async with open_data(service.data) as runtime:
        events = await runtime.store.read_all(after=0, limit=10_000)
    stored = b" ".join(event.data for event in events).decode()
    assert "account-linked" in {event.type for event in events}
    for secret in (SECRET, cookies_of(answer)[COOKIE]):
        assert secret not in stored + service.log()
