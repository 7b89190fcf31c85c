"""One running service with two organizations, and a signed-in client for each kind of person.

``operator`` runs the installation and belongs to no organization; ``owner``, ``editor`` and ``viewer`` belong to Acme,
which has the project; ``outsider`` owns another organization; ``nobody`` is not signed in.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import Message
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

import aiohttp
import pytest

from eventstore import Metadata
from service.commands.access.people import NewPerson, add_person, make_link
from service.commands.organizations import create_organization
from service.main.folder import open_for_command
from service.runtime.settings.settings import Settings
from tests.dashboard.browsing import axe, browsing, page  # noqa: F401  (fixtures)
from tests.service_process import AWAY, Service, service_in, write_docs

COOKIE = "docsmith"
"""As it is on the machine itself: over https it is ``SECURE_COOKIE``."""
SECURE_COOKIE = f"__Host-{COOKIE}"
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@dataclass
class People:
    """Who there is, by the names of the fixtures."""

    other_organization_id: str
    ids: dict[str, str]
    cookies: dict[str, str]
    """The secret of each person's session."""


@asynccontextmanager
async def open_data(data: Path):
    """The data folder, as a command has it open; the service may run meanwhile."""
    async with open_for_command(data, Settings()) as runtime:
        yield runtime


async def invite(data: Path, **new: object) -> tuple[str, str]:
    """Add a person as the terminal does; their id, and the secret of a sign-in link."""
    async with open_data(data) as runtime:
        added = await add_person(runtime.store, runtime.views, NewPerson(**new), Metadata("cli:tests"))
        return added.id, await make_link(runtime.store, added.id, Metadata("cli:tests"))


def sign_in(url: str, link: str) -> str:
    """The secret of a new session's cookie."""
    answer = post_form(f"{url}/sign-in", {"link": link})
    assert answer.status == 303, answer.text
    return SimpleCookie(answer.headers["Set-Cookie"])[COOKIE].value


@dataclass
class Answer:
    status: int
    headers: Message
    text: str


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def post_form(url: str, fields: dict[str, str], headers: dict[str, str] | None = None, *, site: bool = True) -> Answer:
    """The answer to a form, whatever its status."""
    return ask_page(url, fields, {**(SAME_ORIGIN if site else {}), **(headers or {})})


def ask_page(url: str, fields: dict[str, str] | None, headers: dict[str, str]) -> Answer:
    """The answer to a form, or to a request for a page where there are no fields; no redirect is followed."""
    request = Request(url, None if fields is None else urlencode(fields).encode(), headers)
    try:
        response = build_opener(_NoRedirects).open(request, timeout=60)
    except HTTPError as error:
        response = error
    with response:
        return Answer(response.status, response.headers, response.read().decode())


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("dashboard")
    with service_in(folder, AWAY) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


@pytest.fixture(scope="session")
def people(service: Service) -> People:
    return people_of(service)


def people_of(service: Service) -> People:
    """Add one person of each kind to a running service."""

    async def added() -> tuple[str, dict[str, tuple[str, str]]]:
        async with open_data(service.data) as runtime:
            other = await create_organization(runtime.store, "Beta", Metadata("cli:tests"))
        acme = service.organization_id
        roles = {"owner": acme, "editor": acme, "viewer": acme, "outsider": other.id}
        found = {"operator": await invite(service.data, email="operator@example.com", is_operator=True)}
        for name, organization_id in roles.items():
            role = "owner" if name == "outsider" else name
            email = f"{name}@example.com"
            found[name] = await invite(service.data, email=email, organization_id=organization_id, role=role)
        return other.id, found

    other_id, found = asyncio.run(added())
    cookies = {name: sign_in(service.url, link) for name, (_, link) in found.items()}
    return People(other_id, {name: person_id for name, (person_id, _) in found.items()}, cookies)


@asynccontextmanager
async def browser(url: str, cookie: str = "") -> AsyncIterator[aiohttp.ClientSession]:
    """A client that sends what a browser with this session would; addresses are paths of the service."""
    headers = {**SAME_ORIGIN, **HTML, **({"Cookie": f"{COOKIE}={cookie}"} if cookie else {})}
    timeout = aiohttp.ClientTimeout(total=300)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(url, headers=headers, timeout=timeout, cookie_jar=jar) as session:
        yield session


def client_of(name: str):
    """The fixture of a signed-in person's browser."""

    @pytest.fixture(name=name)
    async def client(service: Service, people: People) -> AsyncIterator[aiohttp.ClientSession]:
        async with browser(service.url, people.cookies[name]) as session:
            yield session

    return client


operator, owner, editor, viewer, outsider = map(client_of, ("operator", "owner", "editor", "viewer", "outsider"))


@pytest.fixture
async def nobody(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with browser(service.url) as client:
        yield client
