"""One running service for all tests that do not harm it."""

from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from tests.service_process import Service, service_in, write_docs


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        yield session
