"""One running service for all tests that do not harm it."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from tests.end_to_end.one_instance import reason_for
from tests.service_process import INSTANCES, Service, service_in, write_docs

GIT_ENVIRONMENT = {
    "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"
}  # fmt: skip
"""git as it is without the settings, language, proxy and repository of whoever runs the tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not INSTANCES:
        return
    for item in items:
        if "end_to_end" in item.nodeid and (reason := reason_for(item.nodeid)) is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as session:
        yield session


@pytest.fixture
def git():
    if shutil.which("git") is None:
        pytest.skip("asks git itself; install git to run it")

    def run(*arguments):
        done = subprocess.run(
            ["git", *arguments], env=GIT_ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
