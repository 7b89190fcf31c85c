from contextlib import AsyncExitStack

import pytest

from tests.eventstore.backends import BACKENDS


@pytest.fixture(params=BACKENDS)
def backend_name(request):
    return request.param


@pytest.fixture
def backend(backend_name):
    return BACKENDS[backend_name]


@pytest.fixture
async def open_store(backend, tmp_path):
    """Opens the same storage each time it is called, as another process would, and closes all of it at the end."""
    async with AsyncExitStack() as stack:

        async def open_another(**options):
            return await stack.enter_async_context(await backend.open(tmp_path, **options))

        yield open_another


@pytest.fixture
async def store(open_store):
    return await open_store()
