"""One running service for all tests that do not harm it."""

import shutil
import subprocess
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


@pytest.fixture
def git():
    if shutil.which("git") is None:
        pytest.skip("asks git itself; install git to run it")

    def run(*arguments):
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
