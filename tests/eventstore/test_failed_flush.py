"""A flush that fails leaves open whether the events are stored; to repeat the append settles it."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eventstore import Appended, DuplicateEventId, verify
from tests.eventstore.disk import can_record
from tests.eventstore.shapes import CODEC, Noted, noted, opened

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.skipif(not can_record(), reason="SQLite is built into this interpreter")


async def appended_while_flushes_fail(folder: Path, failures: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.eventstore.unflushed", str(folder), str(failures)]
    ran = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=300)
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


async def test_failed_flush_is_an_outcome_of_its_own(tmp_path):
    told = await appended_while_flushes_fail(tmp_path, 1)
    assert told == {"without an id": "OutcomeUnknown", "with an id": "version 2", "head": 2}
    async with await opened(tmp_path) as store:
        assert [event.id for event in await store.read_all(after=1)] == ["an-id"]
    assert verify(tmp_path / "events.db").is_sound


async def test_append_with_ids_is_repeated_until_it_is_stored(tmp_path):
    told = await appended_while_flushes_fail(tmp_path, 3)  # of the first append, and of two tries of the second
    assert told == {"without an id": "OutcomeUnknown", "with an id": "version 2", "head": 2}
    async with await opened(tmp_path) as store:
        assert [CODEC.decode(event) for event in await store.read_all()] == [Noted(1, "secret"), Noted(2, "more")]


async def test_refused_event_in_the_log_is_found_by_a_repeat(tmp_path):
    told = await appended_while_flushes_fail(tmp_path, 1_000)
    assert told == {"without an id": "OutcomeUnknown", "with an id": "OutcomeUnknown", "head": 1}
    async with await opened(tmp_path) as store:
        assert await store.head() == 2, "what was refused is there after a crash"
        with pytest.raises(DuplicateEventId):
            await store.append("note-1", [noted(2, "other", event_id="an-id")], expected_version=1)
        again = await store.append("note-1", [noted(2, "more", event_id="an-id")], expected_version=1)
        assert again == Appended(2, 2)
        assert await store.head() == 2
    assert verify(tmp_path / "events.db").is_sound
