"""A power cut takes nothing that was acknowledged, and brings back nothing that was erased."""

import asyncio
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest

from eventstore import find_loss, verify
from tests.eventstore.disk import Journal, after_power_cut, can_record, chances
from tests.eventstore.shapes import files_with, opened

ROOT = Path(__file__).parent.parent.parent
CUTS = 60

pytestmark = [
    pytest.mark.skipif(not can_record(), reason="SQLite is built into this interpreter"),
    pytest.mark.slow,
]


def recorded(folder: Path, synchronous: str) -> Journal:
    command = [sys.executable, "-m", "tests.eventstore.recorder", str(folder), synchronous]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    journal: Journal = pickle.loads((folder / "journal").read_bytes())
    return journal


def cut(journal: Journal, at: int, chance: random.Random, folder: Path) -> None:
    folder.mkdir()
    for name, content in after_power_cut(journal[:at], chances(chance)).items():
        (folder / name).write_bytes(content)


async def lost(journal: Journal, folder: Path) -> list[object]:
    """What had been acknowledged and is not there; whatever is there has to be sound."""
    told = {entry[3]: entry[1:3] for entry in journal if entry[0] == "told"}
    erased = {entry[1]: entry[2] for entry in journal if entry[0] == "erased"}
    async with await opened(folder) as store:
        events = await store.read_all(limit=1_000_000)
        assert [event.position for event in events] == list(range(1, len(events) + 1))
        assert len({event.id for event in events}) == len(events)
        assert len({(event.stream, event.stream_version) for event in events}) == len(events)
        erasing = {entry[1] for entry in journal if entry[0] == "erasing"}
        assert not any(event.erased for event in events if event.stream not in erasing), "a key is gone"
        assert all(event.erased for event in events if event.stream in erased), "a key is back"
        for key in erased.values():
            assert files_with(folder, key) == []
        verified = verify(folder / "events.db")
        assert (verified.is_sound, verified.position) == (True, len(events)), verified
        there = {event.position: (event.stream, event.stream_version) for event in events}
        return [position for position, where in told.items() if there.get(position) != where]


async def test_acknowledged_events_survive_a_power_cut(tmp_path):
    journal = await asyncio.to_thread(recorded, tmp_path, "FULL")
    assert any(entry[0] == "write" and entry[1] == "events.db" for entry in journal), "the WAL was never moved over"
    chance = random.Random(20260101)
    first = next(number for number, entry in enumerate(journal) if entry[0] == "told")
    for number in range(CUTS):
        at = chance.randrange(first, len(journal))
        cut(journal, at, chance, tmp_path / str(number))
        if (tmp_path / str(number) / "events.db").exists():
            assert find_loss(tmp_path / str(number) / "events.db", []) is None, "no more is missing than was under way"
        assert await lost(journal[:at], tmp_path / str(number)) == [], f"cut {number}, at {at}"


async def test_the_power_cut_is_one(tmp_path):
    """A log that asks for no flush loses something."""
    journal = await asyncio.to_thread(recorded, tmp_path, "NORMAL")
    cut(journal, len(journal), random.Random(7), tmp_path / "cut")
    nothing_more = after_power_cut(journal, lambda: False)
    for name, content in nothing_more.items():
        (tmp_path / "cut" / name).write_bytes(content)
    assert await lost(journal, tmp_path / "cut") != []
