"""The record of who looked at text that others typed."""

import asyncio

from eventstore import Metadata
from service.commands.audit import record_page_read
from service.streams import AUDIT, decoded

ANN = Metadata(actor="person:ann")


async def test_filter_of_a_page_read_is_kept_short(store):
    await record_page_read(store, "s1", "jobs", {"project": "x" * 10_000}, ANN)
    (event,) = [event for _, event in decoded(AUDIT, await store.read_all())]
    assert len(event.filters["project"]) == 300


async def test_page_read_is_recorded_once_for_session_and_filter(store):
    reads = [("s1", {"rating": "up"}), ("s1", {"rating": "up", "site": ""}), ("s1", {}), ("s2", {"rating": "up"})]
    await asyncio.gather(*(record_page_read(store, who, "questions", chosen, ANN) for who, chosen in reads * 2))
    events = [event for _, event in decoded(AUDIT, await store.read_all())]
    assert sorted((event.command, *event.filters) for event in events) == [
        ("page questions",), ("page questions", "rating"), ("page questions", "rating")
    ]  # fmt: skip
    assert {event.metadata.actor for event in await store.read_all()} == {"person:ann"}
    assert "s1" not in str([(event.stream, event.data) for event in await store.read_all()])
