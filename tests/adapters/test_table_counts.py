"""Counts and marks that instances share, over PostgreSQL."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest

from service.adapters.postgres.counts import AWAY_SECONDS, Circuit, TableCounts, TableReaderTokens, TableUsedOnce
from service.adapters.postgres.tables import Tables
from service.domain.errors import Unavailable
from service.ports.shared.brief_counts import Window
from tests.contracts.brief_counts import MINUTE, SITE, BriefCountsContract, counted
from tests.eventstore.backends import addresses
from tests.fakes.brief_counts import FakeBriefCounts

ENDS = datetime.now(UTC) + timedelta(minutes=5)


@pytest.fixture
async def instances(tmp_path):
    """Three, each with its own connections."""
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(3):
            tables = await Tables.open(addresses(tmp_path)[0].text, "service_log")
            stack.push_async_callback(tables.close)
            opened.append(tables)
        yield opened


@pytest.fixture
def counts(instances):
    return [TableCounts(Circuit(tables)) for tables in instances]


@pytest.fixture
def pass_seconds(instances):
    async def passed(seconds):
        """Let all that was counted be this much longer ago."""
        await instances[0].fetch(
            "UPDATE brief_counts SET times = (SELECT array_agg(time - $1 ORDER BY time) FROM unnest(times) AS time)",
            round(seconds * 1000),
        )

    return passed


class TestTable(BriefCountsContract):
    pass


class TestFake(BriefCountsContract):
    @pytest.fixture
    def counts(self):
        return [FakeBriefCounts()] * 3

    @pytest.fixture
    def pass_seconds(self, counts):
        async def passed(seconds):
            counts[0].now += round(seconds * 1000)

        return passed


async def test_busy_window_stays_small_and_exact(counts, instances, pass_seconds):
    window = Window("busy", 1_000, MINUTE)
    await instances[0].fetch(
        "INSERT INTO brief_counts (name, times, counts) SELECT 'busy', array_agg(at - 2 * place ORDER BY place DESC),"
        " array_agg(1 ORDER BY place) FROM generate_series(1, 400) AS place,"
        " (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at) AS now"
    )
    outcomes = await asyncio.gather(*(counted(one, window) for one in counts for _ in range(250)))
    assert sum(outcomes) == 600
    ((entries,),) = await instances[0].fetch("SELECT cardinality(times) FROM brief_counts")
    assert entries < 450
    await pass_seconds(60.2)
    assert (await counts[0].count([window])).uses[0].used == 1


async def test_without_the_database_nobody_waits_for_it(instances):
    seconds = [0.0]
    counts = TableCounts(Circuit(instances[0], seconds=lambda: seconds[0]))
    assert await counted(counts, SITE)
    fetch, sent = instances[0].fetch, []

    async def away(sql, *values):
        sent.append(sql)
        raise TimeoutError

    instances[0].fetch = away
    for _ in range(5):
        with pytest.raises(Unavailable):
            await counted(counts, SITE)
    assert len(sent) == 1
    instances[0].fetch = fetch
    seconds[0] += AWAY_SECONDS
    assert (await counts.count([SITE])).uses[0].used == 2


async def test_what_was_used_at_one_is_used_at_all(instances):
    marks = [TableUsedOnce(Circuit(tables)) for tables in instances]
    outcomes = await asyncio.gather(*(one.use(b"proof", ENDS) for one in marks for _ in range(5)))
    assert sum(outcomes) == 1
    assert [await one.use(b"other", ENDS) for one in marks] == [True, False, False]


async def test_reader_tokens_of_all_instances_add_up(instances):
    one, two, _ = (TableReaderTokens(Circuit(tables)) for tables in instances)
    assert await one.add({("site", 10): 3, ("site", 11): 1}, since_hour=0) == {("site", 10): 3, ("site", 11): 1}
    assert await two.add({("site", 11): 2, ("other", 11): 1}, since_hour=11) == {("site", 11): 3, ("other", 11): 1}
    await two.forget(before_hour=11)
    assert await one.add({}, since_hour=0) == {("site", 11): 3, ("other", 11): 1}
