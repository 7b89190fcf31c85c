"""A log that lost its end is noticed: by what followed it, or by its WAL."""

import asyncio
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from eventstore import StoreLost, StoreUnavailable, Views, Witness, find_loss, not_held, verify, witnesses_in_views
from tests.eventstore.shapes import noted, opened
from tests.eventstore.test_views import Texts

APPENDS = 40
KILLED = f"""
import asyncio, os, sys
from pathlib import Path
from eventstore import Views
from tests.eventstore.shapes import noted, opened
from tests.eventstore.test_views import Texts

async def main(folder):
    store = await opened(folder)
    views = await Views.open(folder / "views.db", store, [Texts()])
    for number in range({APPENDS}):
        await store.append(f"note-{{number}}", [noted(number), noted(number)], expected_version=0)
    await views.catch_up()
    os._exit(0)

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Path:
    """What a process leaves that is killed: all events are in the WAL of the log, and the views had seen them."""
    folder = tmp_path_factory.mktemp("killed")
    root = Path(__file__).parent.parent.parent
    subprocess.run([sys.executable, "-c", KILLED, str(folder)], cwd=root, check=True, timeout=300)
    return folder


def copied(folder: Path, target: Path, *, but: str = "-shm") -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(f"*{but}"))
    return target / "events.db"


def flips(wal: Path) -> list[int]:
    """Bits all over a file, and those of the parts that matter most."""
    bits, chance = wal.stat().st_size * 8, random.Random(20260101)
    header = range(0, 32 * 8, 5)
    frames = range(32 * 8, bits, (24 + 4096) * 8)
    return [*header, *(at + chance.randrange(24 * 8) for at in frames), *(chance.randrange(bits) for _ in range(80))]


def flipped(log: Path, bit: int) -> None:
    wal = log.with_name("events.db-wal")
    content = bytearray(wal.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    wal.write_bytes(content)


def head(log: Path) -> int:
    with closing(sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True)) as db:
        try:
            return int(db.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def test_a_flipped_bit_in_a_wal_is_harmless_or_noticed(killed, tmp_path):
    harmless = 0
    for bit in flips(killed / "events.db-wal"):
        log = copied(killed, tmp_path / "copy")
        flipped(log, bit)
        before = {file.name: file.read_bytes() for file in log.parent.glob("events.db*")}
        loss = find_loss(log, witnesses_in_views(log.with_name("views.db")))
        if loss is None:
            assert verify(log).position == 2 * APPENDS, f"bit {bit}"
            harmless += 1
        else:
            assert loss.position < 2 * APPENDS
            assert loss.lost_from == loss.position + 1
        for name, content in before.items():
            assert log.with_name(name).read_bytes() == content, "nothing is written, so that it may still be rescued"
    assert harmless < 10


def test_a_wal_shows_all_but_the_loss_of_its_last_transaction(killed, tmp_path):
    assert find_loss(copied(killed, tmp_path / "copy"), []) is None
    unnoticed = []
    for bit in flips(killed / "events.db-wal"):
        log = copied(killed, tmp_path / "copy")
        flipped(log, bit)
        if find_loss(log, []) is None:
            unnoticed.append(2 * APPENDS - head(log))
    assert set(unnoticed) <= {0, 2}


def test_a_wal_that_is_gone_is_noticed_by_the_views(killed, tmp_path):
    log = copied(killed, tmp_path / "copy")
    log.with_name("events.db-wal").unlink()
    loss = find_loss(log, witnesses_in_views(log.with_name("views.db")))
    assert (loss.position, loss.lost_from, loss.witness.position) == (0, 1, 2 * APPENDS)


def test_missing_or_damaged_views_give_no_witness(killed, tmp_path):
    log = copied(killed, tmp_path / "copy")
    views = log.with_name("views.db")
    assert [one.name for one in witnesses_in_views(views)] == [f"the view {Texts().name}"]
    for file in views.parent.glob("views.db*"):
        file.unlink()
    assert witnesses_in_views(views) == []
    views.write_bytes(b"something else entirely" * 1000)
    assert witnesses_in_views(views) == []


async def test_a_loss_is_named_from_the_last_event_that_is_known(tmp_path):
    async with await opened(tmp_path) as store:
        await store.append("note-1", [noted(number) for number in range(10)], expected_version=0)
        hashes = {event.position: event.hash for event in await store.read_all()}
    log, other = tmp_path / "events.db", bytes(32)
    seen = [Witness(f"the one at {position}", position, hashes[position]) for position in (3, 7)]
    assert find_loss(log, seen) is None
    ahead = Witness("the one ahead", 12, other)
    loss = find_loss(log, [*seen, ahead])
    assert (loss.witness, loss.is_behind, loss.position, loss.lost_from) == (ahead, True, 10, 11)
    forked = Witness("the forked one", 9, other)
    loss = find_loss(log, [*seen, forked])
    assert (loss.witness, loss.is_behind, loss.position, loss.lost_from) == (forked, False, 10, 8)
    loss = find_loss(log, [*seen, forked, ahead])
    assert (loss.witness, loss.lost_from) == (ahead, 8)
    assert not_held(log, [*seen, forked, ahead]) == [forked, ahead]


async def test_looking_at_a_log_in_use_releases_no_lock(tmp_path):
    """Another process that comes next would take the WAL's index for abandoned, and begin it anew."""
    async with await opened(tmp_path) as store:
        for version in range(3):
            await store.append("note-1", [noted(version)], expected_version=version)
        index = (tmp_path / "events.db-shm").stat()

        def locks() -> list[str]:
            found = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
            own = [one for one in found if one[1] == "POSIX" and one[5].endswith(f":{index.st_ino}")]
            return sorted(" ".join(one[3:]) for one in own)

        before = locks()
        assert before
        assert find_loss(tmp_path / "events.db", []) is None
        assert verify(tmp_path / "events.db").is_sound
        assert locks() == before
        await store.append("note-1", [noted(3)], expected_version=3)


@pytest.mark.parametrize("count", [1, 2])
async def test_log_shortened_under_its_writer_gets_no_appends(tmp_path, count):
    async with await opened(tmp_path) as store:
        for version in range(4):
            await store.append("note-1", [noted(version)], expected_version=version)
        with closing(sqlite3.connect(tmp_path / "events.db")) as db, db:
            db.execute("DELETE FROM events WHERE position = 4")
        for _ in range(2):
            with pytest.raises(StoreLost, match="position 4"):
                await asyncio.gather(
                    *(store.append(f"note-{number}", [noted(1)], expected_version=0) for number in range(2, 2 + count))
                )
        assert await store.head() == 3


async def test_a_store_on_hold_reads_and_does_not_append(tmp_path):
    async with await opened(tmp_path) as store:
        await store.append("note-1", [noted(1)], expected_version=0)
        store.hold("it is not what it was")
        with pytest.raises(StoreLost, match="it is not what it was"):
            await store.append("note-1", [noted(2)], expected_version=1)
        assert len(await store.read_all()) == 1
        async with await Views.open(tmp_path / "views.db", store, [Texts()]) as views:
            await views.catch_up()
            assert views.status()[0].position == 1


def test_log_that_cannot_be_opened_is_unavailable(tmp_path):
    (tmp_path / "events.db").mkdir()  # as a file without a free descriptor, SQLite cannot open it
    with pytest.raises(StoreUnavailable):
        find_loss(tmp_path / "events.db", [])
