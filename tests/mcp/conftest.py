"""One service for all tests of the folder: ``open`` is a public site, ``kite`` a private one of the same pages."""

from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from tests.end_to_end.scripted import scripted_service
from tests.fakes.provider import ScriptedProvider
from tests.mcp.client import Client
from tests.service_process import DOCS, Service, free_port, service_in, write_docs

ORIGIN = "https://docs.example.com"
LONG = "---\ntitle: Long\n---\n\n# Long\n\n" + "Kites, more kites.\n\n" * 6_000 + "## Far\n\nThe windsock is orange.\n"
RESTRICTED = "---\ntitle: Staff\ngroups: [staff]\n---\n\n# Staff\n\nThe vault code is 9417.\n"


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("mcp")
    docs = write_docs(folder / "docs", {**DOCS, "long.md": LONG, "staff.md": RESTRICTED})
    with service_in(folder) as service:
        service.set_up(docs)
        service.cli("project", "create", "--name", "open", "--repository", str(docs), "--domain", "open")
        service.cli("index", "open")
        service.cli("site", "update", "open", "--public", "--origin", ORIGIN)
        service.start()
        yield service


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as session:
        yield session


@pytest.fixture
def client(http: aiohttp.ClientSession, service: Service) -> Client:
    return Client(http, f"{service.url}/mcp/open")


@pytest.fixture(scope="session")
def port() -> int:
    return free_port()


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Service]:
    """A service whose model says what a test has it say."""
    limits = {"LIMITS__KEY_SEARCHES_MINUTE": "3", "LIMITS__PUBLIC_COST_USD_DAY": "100"}
    with scripted_service(tmp_path_factory.mktemp("scripted"), port, **limits) as service:
        yield service


@pytest.fixture
async def provider(port: int) -> AsyncIterator[ScriptedProvider]:
    async with ScriptedProvider(port=port) as provider:
        yield provider
