"""A text that does not open is its own event's misfortune: all others are read, and views are built."""

import asyncio
import os
import sqlite3
from contextlib import aclosing, closing

import pytest

from eventstore import CommandId, DuplicateEventId, Views, damaged_texts, execute, load
from eventstore.decider import Decider
from tests.eventstore.shapes import CODEC, Counted, Noted, noted, opened, take
from tests.eventstore.test_views import Texts

DAMAGED = 3
"""The position of the event whose text is damaged."""


def gather(texts, event):
    return (*texts, event.text) if isinstance(event, Noted) else texts


NOTES = Decider("note", (), lambda text, _texts: [Noted(0, text)] if text else [], gather, CODEC)


def flipped(blob, byte, bit=1):
    return blob[:byte] + bytes([blob[byte] ^ bit]) + blob[byte + 1 :]


DAMAGE = {
    "a bit of the text": lambda sealed: flipped(sealed, 25),
    "a bit of the nonce": lambda sealed: flipped(sealed, 12),
    "the last bit": lambda sealed: flipped(sealed, len(sealed) - 1),
    "the format": lambda sealed: flipped(sealed, 0, 0x80),
    "its end": lambda sealed: sealed[:-1],
    "all but the head": lambda sealed: sealed[:9],
    "all but a part of the nonce": lambda sealed: sealed[:13],
    "everything": lambda _: b"",
    "other bytes": lambda sealed: sealed[:9] + os.urandom(len(sealed) - 9),
}


def damage(folder, position=DAMAGED, how=DAMAGE["a bit of the text"]):
    with closing(sqlite3.connect(folder / "events.db")) as db, db:
        (sealed,) = db.execute("SELECT sealed FROM events WHERE position = ?", (position,)).fetchone()
        db.execute("UPDATE events SET sealed = ? WHERE position = ?", (how(sealed), position))


@pytest.fixture
async def log(tmp_path):
    async with await opened(tmp_path) as store:
        await store.append("note-1", [noted(number, f"text {number}") for number in range(1, 6)], expected_version=0)
        await store.append("note-2", [noted(6, "text 6"), noted(7)], expected_version=0)
    return tmp_path


def texts_of(events):
    return [event.personal and CODEC.decode(event).text for event in events]


@pytest.mark.parametrize("how", DAMAGE.values(), ids=DAMAGE.keys())
async def test_damaged_text_stops_no_reader(log, how):
    damage(log, how=how)
    async with await opened(log) as store:
        events = await store.read_all()
        assert [(event.damaged, event.erased) for event in events] == [(n == DAMAGED, False) for n in range(1, 8)]
        assert [CODEC.decode(event).text for event in events[1:4]] == ["text 2", "[damaged]", "text 4"]
        assert await store.read_stream("note-1") == events[:5]
        assert (await store.read_stream("note-1", backwards=True))[::-1] == events[:5]
        assert [event async for event in store.iterate_stream("note-1")] == events[:5]
        assert await take(store, 7) == events
        assert await take(store, 5, stream="note-1") == events[:5]
        assert await take(store, 7, category="note") == events
        assert await store.find(events[2].id) == events[2]
        async with aclosing(store.follow(after=6)) as batches:
            await anext(batches)
            await store.append("note-2", [noted(8, "text 8")], expected_version=2)
            assert texts_of(await anext(batches)) == ["text 8"]
    assert damaged_texts(log / "events.db", log / "keys.db") == [DAMAGED]
    assert damaged_texts(log / "events.db", log / "keys.db", after=DAMAGED) == []


@pytest.mark.parametrize("how", [lambda key: flipped(key, 0), lambda key: key[:-1], lambda _: b""])
async def test_damaged_key_stops_only_its_own_texts(log, how):
    with closing(sqlite3.connect(log / "keys.db")) as db, db:
        (key,) = db.execute("SELECT key FROM keys WHERE subject = 'note-1'").fetchone()
        db.execute("UPDATE keys SET key = ? WHERE subject = 'note-1'", (how(key),))
    async with await opened(log) as store:
        assert [event.damaged for event in await store.read_all()] == [True] * 5 + [False] * 2
        await store.append("note-2", [noted(8, "more")], expected_version=2)
        await store.append("note-1", [noted(8)], expected_version=5)


async def test_damaged_text_reaches_a_subscriber_of_another_process(log):
    async with await opened(log) as other, await opened(log) as store, asyncio.timeout(60):
        async with aclosing(store.subscribe(after=7)) as events:
            await other.append("note-3", [noted(1, "one"), noted(2, "two")], expected_version=0)
            assert (await anext(events)).position == 8
        damage(log, 9)
        async with aclosing(store.subscribe(after=8)) as events:
            assert (await anext(events)).damaged
            await other.append("note-3", [noted(3, "three")], expected_version=2)
            assert CODEC.decode(await anext(events)) == Noted(3, "three")


async def test_state_says_that_a_text_is_missing(log):
    damage(log)
    async with await opened(log) as store:
        for _ in range(2):
            loaded = await load(store, NOTES, "1")
            assert loaded.state == ("text 1", "text 2", "[damaged]", "text 4", "text 5")
            assert loaded.damaged == DAMAGED
        assert (await load(store, NOTES, "2")).damaged == 0
        executed = await execute(store, NOTES, "1", "more")
        assert (executed.state[-1], executed.damaged) == ("more", DAMAGED)
        again = await execute(store, NOTES, "1", "and more", known=executed)
        assert (again.state[-2:], again.damaged) == (("more", "and more"), DAMAGED)
        for number in range(60):  # long enough for a state to be kept
            await execute(store, NOTES, "1", f"{number}")
        assert [(await load(store, NOTES, "1")).damaged for _ in range(2)] == [DAMAGED] * 2


async def test_command_is_carried_out_despite_a_damaged_text(log):
    damage(log)
    async with await opened(log) as store:
        await store.append("note-1", [CODEC.encode(Counted(4))], expected_version=5)
        command_id = CommandId()
        await execute(store, NOTES, "1", "kept", command_id=command_id)
        command_id.is_in_doubt = True
        assert list((await execute(store, NOTES, "1", "kept", command_id=command_id)).events) == [Noted(0, "kept")]


async def test_repeat_of_a_damaged_event_is_a_repeat(tmp_path):
    async with await opened(tmp_path) as store:
        first = await store.append("note-1", [noted(1, "text", event_id="a")], expected_version=0)
    damage(tmp_path, 1)
    async with await opened(tmp_path) as store:
        assert await store.append("note-1", [noted(1, "text", event_id="a")], expected_version=0) == first
        with pytest.raises(DuplicateEventId):
            await store.append("note-1", [noted(2, "text", event_id="a")], expected_version=0)


async def test_erased_text_that_was_damaged_is_erased(log):
    damage(log)
    async with await opened(log) as store:
        await store.erase("note-1")
        events = await store.read_all()
        assert [event.erased for event in events] == [True] * 5 + [False] * 2
        assert not any(event.damaged for event in events)
    assert damaged_texts(log / "events.db", log / "keys.db") == []


async def test_views_go_on_and_can_be_rebuilt(log):
    async with await opened(log) as store:
        async with await Views.open(log / "views.db", store, [Texts()]) as views:
            await views.catch_up()
        damage(log)
        damage(log, 6)
        for name in ("views.db", "fresh.db"):
            async with await Views.open(log / name, store, [Texts()]) as views:
                version = await store.stream_version("note-2")
                await store.append("note-2", [noted(8, "new")], expected_version=version)
                await views.catch_up()
                (status,) = views.status()
                assert (status.failed, status.position) == (None, await store.head())
                rows = await views.query("SELECT text FROM texts ORDER BY position")
                assert rows[-1]["text"] == "new"
                assert (rows[2]["text"] == "[damaged]") == (name == "fresh.db")
