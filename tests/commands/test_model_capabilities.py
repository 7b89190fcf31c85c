"""Refusals of models' servers in the log: for a day, for all instances."""

from datetime import UTC, datetime, timedelta

from eventstore import SQLiteEventStore
from service.commands.model_capabilities import KNOWN_SECONDS, LoggedCapabilities
from service.streams import MODEL_CAPABILITIES

NOW = datetime(2026, 7, 1, tzinfo=UTC)
SERVER = "a-server"
PLACE = {"model": "openai/own", "address": "127.0.0.1:1"}


class Clock:
    """A time that only passes where a test says so."""

    def __init__(self):
        self.passed = timedelta()

    def now(self):
        return NOW + self.passed

    def seconds(self):
        return self.passed.total_seconds()


async def test_refusal_is_known_for_a_day_to_all_and_recorded_once(store):
    clock = Clock()
    one, other = (LoggedCapabilities(store, now=clock.now, seconds=clock.seconds) for _ in range(2))
    assert await other.refused(SERVER) == frozenset()
    for instance in (one, other):  # both meet it at once
        await instance.learn(SERVER, "max_tokens", **PLACE)
    assert await one.refused(SERVER) == await other.refused(SERVER) == {"max_tokens"}
    assert await other.refused("another-server") == frozenset()
    events = await store.read_stream(MODEL_CAPABILITIES.stream(SERVER))
    assert len(events) == 1
    clock.passed = timedelta(hours=23, minutes=59)
    assert await one.refused(SERVER) == {"max_tokens"}
    clock.passed = timedelta(hours=24)
    assert await one.refused(SERVER) == frozenset()
    await one.learn(SERVER, "max_tokens", **PLACE)
    clock.passed += timedelta(seconds=KNOWN_SECONDS)
    assert await other.refused(SERVER) == {"max_tokens"}


async def test_refusal_that_cannot_be_recorded_is_known_here(tmp_path):
    clock = Clock()
    store = await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db")
    capabilities = LoggedCapabilities(store, now=clock.now, seconds=clock.seconds)
    await store.close()
    await capabilities.learn(SERVER, "tools", **PLACE)
    assert await capabilities.refused(SERVER) == {"tools"}
