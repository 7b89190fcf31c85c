"""Where sessions are kept: a file, and a table in PostgreSQL."""

from contextlib import AsyncExitStack

import pytest

from service.adapters.postgres.sessions import TableSessions
from service.adapters.postgres.tables import Tables
from service.adapters.sessions import SqliteSessions
from service.domain.errors import Unavailable
from tests.contracts.session_table import SessionTableContract, session
from tests.eventstore.backends import addresses


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


async def in_tables(folder, stack):
    tables = await Tables.open(addresses(folder)[1].text, "service_vault")
    stack.push_async_callback(tables.close)
    table = TableSessions(tables)
    stack.push_async_callback(table.close)
    return tables, table


class TestFile(SessionTableContract):
    @pytest.fixture
    def opened(self, tmp_path, stack):
        async def opened():
            table = SqliteSessions(tmp_path / "sessions.db")
            stack.push_async_callback(table.close)
            return table

        return opened


class TestTable(SessionTableContract):
    @pytest.fixture
    def opened(self, tmp_path, stack):
        async def opened():
            return (await in_tables(tmp_path, stack))[1]

        return opened


async def test_table_that_cannot_be_reached_is_unavailable(tmp_path, stack):
    tables, table = await in_tables(tmp_path, stack)
    await tables.close()
    assert await table.load() == []
    for asked in (table.find("digest"), table.of_person("ada"), table.add(session(1)), table.update([session(1)], [])):
        with pytest.raises(Unavailable):
            await asked
