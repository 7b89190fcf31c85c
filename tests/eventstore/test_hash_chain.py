"""Verification finds whatever was done to a log, and needs nothing but its file."""

import asyncio
import json
import random
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eventstore import (
    GENESIS,
    Checkpoint,
    Metadata,
    StoreCorrupt,
    StoreNewer,
    StoreUnavailable,
    event_hash,
    sign_checkpoint,
    verify,
    verify_checkpoint,
)
from tests.eventstore.pages import CACHES_AND_PEOPLE, dead_bytes
from tests.eventstore.shapes import counted, noted, opened

EVENTS = 60
COLUMNS = (
    "position", "stream", "stream_version", "id", "type", "schema_version", "recorded_at", "metadata", "data",
    "sealed", "hash",
)  # fmt: skip
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """A closed log: its file is all there is."""
    folder = tmp_path_factory.mktemp("log")

    async def write() -> None:
        async with await opened(folder) as store:
            for number in range(EVENTS // 3):
                stream, version = f"note-{number % 4}", number // 4 * 3
                words = "someone's words" * (1000 if number == 5 else 1)  # more than a page
                new = [noted(number, words), counted(number), noted(number)]
                await store.append(stream, new, expected_version=version)

    asyncio.run(write())
    return folder / "events.db"


@pytest.fixture(scope="module")
def copy(log) -> Path:
    """Where each example puts its changed copy."""
    return log.with_name("changed.db")


def change(log: Path, copy: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    for beside in ("-wal", "-shm"):
        copy.with_name(copy.name + beside).unlink(missing_ok=True)
    shutil.copyfile(log, copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement, values)


def rows(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT {', '.join(COLUMNS)} FROM events NOT INDEXED ORDER BY position").fetchall()


def hash_of(row: tuple[object, ...], previous: bytes) -> bytes:
    return event_hash(previous, *(value.encode() if isinstance(value, str) else value for value in row[:-1]))  # type: ignore[arg-type]


def test_a_log_is_sound_as_it_was_written(log):
    reached = []
    verified = verify(log, progress=lambda position, head: reached.append((position, head)))
    assert verified.is_sound
    assert (verified.position, verified.hash) == (EVENTS, rows(log)[-1][-1])
    assert reached == [(EVENTS, EVENTS)]


def test_chain_hashes_the_columns(log):
    previous = GENESIS
    for row in rows(log):
        previous = hash_of(row, previous)
        assert previous == row[-1]


def test_an_empty_log_is_sound(tmp_path):
    async def make() -> None:
        await (await opened(tmp_path)).close()

    asyncio.run(make())
    assert verify(tmp_path / "events.db").position == 0


@given(st.integers(1, EVENTS), st.sampled_from(COLUMNS[1:]), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_changed_value_is_found_at_its_place(log, copy, position, column, chance):
    value = rows(log)[position - 1][COLUMNS.index(column)]
    match value:
        case str():
            at = chance.randrange(len(value))
            changed: object = value[:at] + chr(ord(value[at]) + 200) + value[at + 1 :]
        case bytes():
            at = chance.randrange(len(value))
            changed = value[:at] + bytes([value[at] ^ (1 << chance.randrange(8))]) + value[at + 1 :]
        case int():
            changed = value + 1_000
        case _:
            changed = b""
    change(log, copy, f"UPDATE events SET {column} = ? WHERE position = ?", values=(changed, position))
    verified = verify(copy)
    assert (verified.position, verified.bad_position) == (position - 1, position)


@given(st.integers(1, EVENTS - 1))
@settings(max_examples=20, deadline=None)
def test_a_deleted_row_is_found(log, copy, position):
    change(log, copy, "DELETE FROM events WHERE position = ?", values=(position,))
    assert verify(copy).bad_position == position
    assert "missing" in (verify(copy).problem or "")


@given(st.integers(1, EVENTS - 1), st.data())
@settings(max_examples=20, deadline=None)
def test_swapped_rows_are_found(log, copy, first, data):
    second = data.draw(st.integers(first + 1, EVENTS))
    change(
        log, copy,
        f"UPDATE events SET position = -1 WHERE position = {first}",
        f"UPDATE events SET position = {first} WHERE position = {second}",
        f"UPDATE events SET position = {second} WHERE position = -1",
    )  # fmt: skip
    assert verify(copy).bad_position == first


def insert(position: int, stream: str, version: int, event_hash: bytes) -> tuple[str, tuple[object, ...]]:
    values = (position, stream, version, "an-id", "noted", 1, NOW.isoformat(), "{}", "{}", None, event_hash)
    return f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})", values


def test_rows_added_by_hand_are_found(log, copy):
    for position, bad_position in ((EVENTS + 1, EVENTS + 1), (EVENTS + 2, EVENTS + 1), (0, 0), (-7, -7)):
        statement, values = insert(position, "note-9", 1, bytes(32))
        change(log, copy, statement, values=values)
        assert verify(copy).bad_position == bad_position


def test_stream_with_a_gap_is_found_despite_a_right_hash(log, copy):
    for stream, version in (("note-0", 17), ("note-0", 99), ("note-9", 2), ("note-9", 0)):
        statement, values = insert(EVENTS + 1, stream, version, b"")
        values = (*values[:-1], hash_of(values, rows(log)[-1][-1]))
        change(log, copy, statement, values=values)
        verified = verify(copy)
        assert verified.bad_position == EVENTS + 1
        assert "version" in (verified.problem or "")
        assert verify(copy, from_position=EVENTS).bad_position == EVENTS + 1
    statement, values = insert(EVENTS + 1, "note-0", 16, b"")
    change(log, copy, statement, values=(*values[:-1], hash_of(values, rows(log)[-1][-1])))
    assert verify(copy).is_sound


def test_verification_may_start_later(log, copy):
    change(log, copy, "UPDATE events SET data = '{}' WHERE position = 10")
    assert verify(copy).bad_position == 10
    assert verify(copy, from_position=11).is_sound
    assert verify(copy, from_position=10).bad_position == 10
    assert verify(copy, from_position=EVENTS + 1).is_sound
    assert verify(copy, from_position=EVENTS + 5).bad_position == EVENTS + 4


@pytest.fixture(scope="module")
def dead(log) -> set[int]:
    """The bytes of the log's file that no query can depend on."""
    with closing(sqlite3.connect(log)) as db:
        roots = dict(db.execute("SELECT name, rootpage FROM sqlite_master").fetchall())
    return dead_bytes(log.read_bytes(), roots)


def test_little_of_a_file_means_nothing(log, dead):
    assert len(dead) < log.stat().st_size / 2
    assert {at for at in dead if at < 100} == set(CACHES_AND_PEOPLE)


def is_found(log: Path, copy: Path, at: int, flip: int) -> bool:
    content = bytearray(log.read_bytes())
    content[at] ^= flip
    change(log, copy)
    copy.write_bytes(content)
    try:
        return not verify(copy).is_sound
    except (StoreCorrupt, StoreUnavailable):
        return True


@given(st.data(), st.integers(1, 255))
@settings(max_examples=300, deadline=None)
def test_any_changed_byte_that_means_something_is_found(log, copy, dead, data, flip):
    at = data.draw(st.integers(0, log.stat().st_size - 1))
    if not is_found(log, copy, at, flip):
        assert at in dead
        assert everything(copy) == everything(log)


def everything(path: Path) -> list[list[tuple[object, ...]]]:
    """What queries give, by the table and by each index."""
    with closing(sqlite3.connect(path)) as db:
        try:
            return [
                db.execute(f"SELECT {', '.join(COLUMNS)} FROM events {by} ORDER BY position").fetchall()
                for by in ("NOT INDEXED", *(f"INDEXED BY events_by_{one}" for one in ("stream", "id", "category")))
            ]
        except sqlite3.DatabaseError as error:
            return [[(str(error),)]]


def test_changes_of_the_log_outside_events_are_found_too(log, copy):
    for statement in (
        "CREATE TRIGGER more AFTER INSERT ON events BEGIN UPDATE events SET data = '{}' WHERE position = 1; END",
        "CREATE TABLE more (a)",
        "DROP INDEX events_by_category",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 0",
    ):
        change(log, copy, statement)
        verified = verify(copy)
        assert (verified.bad_position, verified.position) == (0, 0), statement
    change(log, copy, "PRAGMA writable_schema = 1", "DELETE FROM sqlite_master WHERE name = 'events_by_id'")
    assert not verify(copy).is_sound


def test_a_log_of_a_newer_program_is_not_called_damaged(log, copy):
    change(log, copy, "CREATE TABLE of_tomorrow (a)", "PRAGMA user_version = 1000")
    with pytest.raises(StoreNewer, match=r"version 1000.*use the newer one"):
        verify(copy)


async def test_a_log_of_a_newer_program_is_not_read(tmp_path):
    await (await opened(tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "events.db")) as db:
        db.execute("PRAGMA user_version = 1000")
    for read_only in (True, False):
        with pytest.raises(StoreNewer):
            await opened(tmp_path, read_only=read_only)


def test_an_index_that_hides_an_event_is_found(log, copy):
    change(
        log, copy,
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_master SET sql = sql || ' WHERE position <> 7' WHERE name = 'events_by_category'",
    )  # fmt: skip
    change_back = (
        "UPDATE sqlite_master SET sql = replace(sql, ' WHERE position <> 7', '') WHERE name = 'events_by_category'"
    )
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("REINDEX events_by_category")
        db.execute("PRAGMA writable_schema = 1")
        db.execute(change_back)
    verified = verify(copy)
    assert (verified.position, verified.bad_position) == (EVENTS, 0)
    assert "events_by_category" in (verified.problem or "")
    assert verify(copy, structure=False).is_sound


def test_a_file_torn_in_the_middle_is_found(log, copy):
    content = log.read_bytes()
    rng = random.Random(1)
    for page in range(5, len(content) // 4096):
        torn = content[: page * 4096] + rng.randbytes(4096) + content[(page + 1) * 4096 :]
        change(log, copy)
        copy.write_bytes(torn)
        try:
            if not verify(copy).is_sound:
                continue
        except (StoreCorrupt, StoreUnavailable):
            continue
        assert rows(copy) == rows(log)


def test_file_that_is_missing_or_no_log_is_reported(tmp_path):
    with pytest.raises(StoreUnavailable):
        verify(tmp_path / "events.db")
    (tmp_path / "events.db").write_bytes(b"something else entirely" * 1000)
    with pytest.raises(StoreCorrupt):
        verify(tmp_path / "events.db")


async def test_log_in_use_is_verified_and_erasures_are_no_change(tmp_path):
    async with await opened(tmp_path) as store:
        await store.append("note-1", [noted(1, "words"), noted(2)], expected_version=0)
        head = verify(tmp_path / "events.db")
        await store.erase("note-1")
        assert verify(tmp_path / "events.db") == head
        assert head.position == 2


# Checkpoints


def test_checkpoint_is_its_signers_and_no_one_elses(log):
    key = Ed25519PrivateKey.generate()
    head = verify(log)
    checkpoint = sign_checkpoint(key, head.position, head.hash, NOW)
    assert verify_checkpoint(key.public_key(), checkpoint)
    assert not verify_checkpoint(Ed25519PrivateKey.generate().public_key(), checkpoint)
    for changed in (
        replace(checkpoint, position=1),
        replace(checkpoint, hash=bytes(32)),
        replace(checkpoint, signed_at=datetime(2027, 1, 1, tzinfo=UTC)),
        replace(checkpoint, signature=bytes(64)),
    ):
        assert not verify_checkpoint(key.public_key(), changed)


async def test_the_first_event_names_the_log(tmp_path):
    names = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        async with await opened(folder) as store:
            assert await store.log_id() == ""
            metadata = Metadata(actor="someone")
            new = replace(noted(1), metadata=metadata)
            await store.append("note-1", [new, new], expected_version=0)
            names.append(await store.log_id())
            assert [event.metadata for event in await store.read_all()] == [metadata] * 2
        stored = [json.loads(row[COLUMNS.index("metadata")]) for row in rows(folder / "events.db")]
        assert stored == [{"log": names[-1], "actor": "someone"}, {"actor": "someone"}]
        assert verify(folder / "events.db").is_sound
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names)
    assert names[0] != names[1]


def test_a_checkpoint_of_another_log_is_called_that(log):
    head, key = verify(log), Ed25519PrivateKey.generate()
    (log_id,) = {json.loads(row[COLUMNS.index("metadata")]).get("log") for row in rows(log)[:1]}
    own = sign_checkpoint(key, head.position, head.hash, NOW, log_id)
    assert verify_checkpoint(key.public_key(), own)
    assert not verify_checkpoint(key.public_key(), replace(own, log=""))
    assert verify(log, checkpoints=[own]) == head
    other = sign_checkpoint(key, head.position, head.hash, NOW, "f" * 32)
    found = verify(log, checkpoints=[own, other])
    assert (found.bad_position, found.problem) == (1, f"a checkpoint is of the log {'f' * 32}, and this is {log_id}")


def test_a_log_without_a_name_is_sound(log, copy):
    """As a program wrote it that did not name logs."""
    nameless, previous = [], GENESIS
    for row in rows(log):
        values = [*row]
        values[COLUMNS.index("metadata")] = "{}"
        previous = hash_of(tuple(values), previous)
        nameless.append((*values[:-1], previous))
    change(log, copy)
    with closing(sqlite3.connect(copy)) as db, db:
        db.executemany(
            "UPDATE events SET metadata = ?2, hash = ?3 WHERE position = ?1", [(r[0], r[7], r[10]) for r in nameless]
        )
    key = Ed25519PrivateKey.generate()
    old = sign_checkpoint(key, EVENTS, previous, NOW)
    assert verify_checkpoint(key.public_key(), old)
    assert verify(copy, checkpoints=[old]).is_sound
    assert not verify(copy, checkpoints=[replace(old, log="f" * 32)]).is_sound


def test_every_checkpoint_counts_wherever_verification_begins(log):
    head = verify(log)
    stored = {row[0]: row[-1] for row in rows(log)}
    true = [Checkpoint(position, stored[position], NOW) for position in (1, EVENTS // 2, EVENTS)]
    for start in (1, EVENTS // 2, EVENTS):
        assert verify(log, from_position=start, checkpoints=true) == head
        for one in true:
            for kept in ([one, replace(one, hash=bytes(32))], [replace(one, hash=bytes(32)), one]):
                assert verify(log, from_position=start, checkpoints=kept).bad_position == one.position


def test_tail_cut_off_or_rewritten_is_found_by_a_checkpoint(log, copy):
    key = Ed25519PrivateKey.generate()
    head = verify(log)
    checkpoint = sign_checkpoint(key, head.position, head.hash, NOW)
    assert verify(log, checkpoints=[checkpoint]).is_sound

    change(log, copy, f"DELETE FROM events WHERE position > {EVENTS - 5}")
    assert verify(copy).is_sound
    assert verify(copy, checkpoints=[checkpoint]).bad_position == EVENTS - 4

    change(log, copy, f"UPDATE events SET data = '{{}}' WHERE position = {EVENTS - 1}")
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        for row in rows(copy)[EVENTS - 2 :]:
            (previous,) = db.execute("SELECT hash FROM events WHERE position = ?", (row[0] - 1,)).fetchone()
            db.execute("UPDATE events SET hash = ? WHERE position = ?", (hash_of(row, previous), row[0]))
    assert verify(copy).is_sound
    assert verify(copy, checkpoints=[checkpoint]).bad_position == EVENTS


async def test_header_that_is_still_in_the_wal_is_no_damage(tmp_path):
    """After a power cut while the WAL is moved over, the file's first page may be older than those behind it."""
    async with await opened(tmp_path) as store:
        for number in range(2):
            for version in range(40):
                await store.append(f"note-{number}", [noted(version, "x" * 1_000)], expected_version=version)
            if not number:
                with closing(sqlite3.connect(tmp_path / "events.db")) as db:
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cut = tmp_path / "cut"
        cut.mkdir()
        for name in ("events.db", "events.db-wal"):
            shutil.copy(tmp_path / name, cut / name)
    content = bytearray((cut / "events.db").read_bytes())
    content[44:48] = bytes(4)
    (cut / "events.db").write_bytes(content)
    found = verify(cut / "events.db")
    assert (found.problem, found.position) == (None, 80)
