"""A disk without room, really: a file system of a few megabytes."""

import asyncio
import subprocess
from contextlib import suppress

import pytest

from eventstore import Appended, StoreFull, Views, verify
from tests.eventstore.shapes import noted, opened
from tests.eventstore.test_views import Texts


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system takes more rights")
    yield folder
    subprocess.run(["umount", folder], check=True)


async def test_full_disk_is_reported_reads_work_and_appends_recover(small_disk):
    stored = 0
    filler = small_disk / "filler"
    async with await opened(small_disk) as store:
        filler.write_bytes(bytes(1 << 20))
        with suppress(StoreFull):
            while True:
                await store.append("note-1", [noted(stored, "x" * 20_000)], expected_version=stored)
                stored += 1
        assert stored > 0
        for _ in range(3):
            outcomes = await asyncio.gather(
                *(store.append(f"big-{n}", [noted(n, "x" * 50_000)], expected_version=0) for n in range(5)),
                return_exceptions=True,
            )
            assert [type(outcome) for outcome in outcomes] == [StoreFull] * 5
        assert len(await store.read_all()) == await store.head() == stored
        assert verify(small_disk / "events.db").position == stored
        filler.unlink()
        assert await store.append("note-1", [noted(0)], expected_version=stored) == Appended(stored + 1, stored + 1)
    assert verify(small_disk / "events.db").is_sound


async def test_views_wait_for_disk_space_and_go_on(small_disk):
    async with await opened(small_disk) as store, await Views.open(small_disk / "views.db", store, [Texts()]) as views:
        appended = await store.append("note-1", [noted(n, "x" * 20_000) for n in range(20)], expected_version=0)
        filler = small_disk / "filler"
        with pytest.raises(OSError, match="space"):
            filler.write_bytes(bytes(4 << 20))
        with pytest.raises(StoreFull):
            await views.catch_up()
        assert views.status()[0].failed is None
        filler.unlink()
        await views.catch_up()
        assert views.status()[0].position == appended.position
