"""Views follow the log: rows and position together, each event once, a faulty projection alone."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventstore import NewEvent, RecordedEvent, SQLiteEventStore, StoreUnavailable, UnknownEventType, Views
from eventstore.sqlite import view_file
from tests.eventstore.shapes import CODEC, Noted, counted, files_with, noted, opened

ROOT = Path(__file__).parent.parent.parent


class Texts:
    """The texts of the notes, and how many events each stream has."""

    def __init__(self, name: str = "texts-1", table: str = "texts") -> None:
        self.name, self.table = name, table
        self.tables = f"""
            CREATE TABLE {table} (position INTEGER PRIMARY KEY, stream TEXT, text TEXT);  -- fails on an event twice
            CREATE INDEX {table}_by_stream ON {table} (stream);
            CREATE TABLE {table}_sizes (stream TEXT PRIMARY KEY, events INTEGER);
        """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for event in events:
            db.execute(
                f"INSERT INTO {self.table}_sizes VALUES (?, 1) ON CONFLICT DO UPDATE SET events = events + 1",
                (event.stream,),
            )
            with suppress(UnknownEventType):
                decoded = CODEC.decode(event)
                if isinstance(decoded, Noted):
                    row = (event.position, event.stream, decoded.text)
                    db.execute(f"INSERT INTO {self.table} VALUES (?, ?, ?)", row)


class Words:
    """A virtual table, as search has; it cannot stand the word "poison"."""

    name = "words-1"
    tables = "CREATE VIRTUAL TABLE words USING fts5(text);"

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for event in events:
            decoded = CODEC.decode(event)
            if isinstance(decoded, Noted):
                db.execute("INSERT INTO words VALUES (?)", (decoded.text,))
                if "poison" in decoded.text:
                    raise LookupError("a word too many")


@pytest.fixture
async def store(tmp_path):
    async with await opened(tmp_path) as store:
        yield store


class running:  # noqa: N801 - reads as a statement
    """Views whose run() is under way."""

    def __init__(self, path, store, *projections) -> None:
        self.path, self.store, self.projections = path, store, projections

    async def __aenter__(self) -> Views:
        self.views = await Views.open(self.path, self.store, self.projections)
        self.task = asyncio.create_task(self.views.run())
        return self.views

    async def __aexit__(self, *_) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.views.close()


async def caught_up(path, store, *projections) -> Views:
    views = await Views.open(path, store, projections)
    await views.catch_up()
    return views


async def texts(views: Views, table: str = "texts") -> list[str]:
    return [row["text"] for row in await views.query(f"SELECT text FROM {table} ORDER BY position")]


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return sorted(db.iterdump())


async def test_a_writer_reads_its_own_writes(tmp_path, store):
    async with running(tmp_path / "views.db", store, Texts(), Words()) as views:
        for number in range(20):
            appended = await store.append("note-1", [noted(number, f"text {number}")], expected_version=number)
            await views.wait_for(appended.position)
            row = await views.query_one("SELECT text FROM texts WHERE position = ?", (appended.position,))
            assert row is not None
            assert row["text"] == f"text {number}"
        assert await views.query_one("SELECT text FROM texts WHERE position = :p", {"p": 99}) is None
        assert [(status.position, status.lag, status.failed) for status in views.status()] == [(20, 0, None)] * 2


async def test_waiting_has_an_end(tmp_path, store):
    async with running(tmp_path / "views.db", store, Texts()) as views:
        await views.wait_for(0)
        with pytest.raises(TimeoutError):
            await views.wait_for(1, timeout_seconds=0.01)


async def test_views_are_rebuilt_when_their_file_is_gone(tmp_path, store):
    async with running(tmp_path / "live.db", store, Texts()) as views:
        for number in range(30):
            appended = await store.append(f"note-{number % 3}", [noted(number, "a"), counted()],
                                          expected_version=number // 3 * 2)  # fmt: skip
        await views.wait_for(appended.position)
    await (await caught_up(tmp_path / "rebuilt.db", store, Texts())).close()
    assert dump(tmp_path / "live.db") == dump(tmp_path / "rebuilt.db")


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=5), st.booleans()), min_size=1, max_size=30))
@settings(max_examples=15, deadline=None)
def test_a_rebuilt_view_equals_the_live_one(tmp_path_factory, appends):
    folder = tmp_path_factory.mktemp("views")

    async def run() -> None:
        versions = dict.fromkeys(range(3), 0)
        async with (
            await opened(folder, synchronous="OFF") as store,
            running(folder / "live.db", store, Texts()) as views,
        ):
            for stream, text, waits in appends:
                appended = await store.append(f"note-{stream}", [noted(0, text)], expected_version=versions[stream])
                versions[stream] += 1
                if waits:
                    await views.wait_for(appended.position)
            await views.wait_for(appended.position)
            await (await caught_up(folder / "rebuilt.db", store, Texts())).close()

    asyncio.run(run())
    assert dump(folder / "live.db") == dump(folder / "rebuilt.db")


async def test_a_poison_event_stops_its_own_projection_only(tmp_path, store):
    new = [noted(1, "fine"), noted(2, "poison"), noted(3, "fine too")]
    async with running(tmp_path / "views.db", store, Words(), Texts()) as views:
        appended = await store.append("note-1", new, expected_version=0)
        await views.wait_for(appended.position)
        words, texts_ = views.status()
        assert (words.name, words.position, words.lag) == ("words-1", 1, 2)
        assert words.failed == "event 2 (noted): LookupError: a word too many"
        assert (texts_.position, texts_.failed) == (3, None)
        appended = await store.append("note-1", [noted(4)], expected_version=3)
        await views.wait_for(appended.position)
        assert [row["text"] for row in await views.query("SELECT text FROM words")] == ["fine"]
        assert await texts(views) == ["fine", "poison", "fine too", ""]


async def test_waiting_for_views_that_have_all_failed_raises(tmp_path, store):
    async with running(tmp_path / "views.db", store, Words()) as views:
        appended = await store.append("note-1", [noted(1, "poison")], expected_version=0)
        with pytest.raises(StoreUnavailable):
            await views.wait_for(appended.position)
        with pytest.raises(StoreUnavailable):
            await views.wait_for(appended.position)


async def test_a_failed_projection_goes_on_at_the_next_start(tmp_path, store):
    await store.append("note-1", [noted(1, "a"), noted(2, "poison"), noted(3, "b")], expected_version=0)
    views = await caught_up(tmp_path / "views.db", store, Words())
    assert views.status()[0].failed
    await views.close()

    class Mended(Words):
        def apply(self, db, events):
            with suppress(LookupError):
                super().apply(db, [event for event in events if event.position != 2])

    views = await caught_up(tmp_path / "views.db", store, Mended())
    assert [row["text"] for row in await views.query("SELECT text FROM words")] == ["a", "b"]
    assert views.status()[0].failed is None
    await views.close()


async def test_new_projection_starts_empty_while_another_continues(tmp_path, store):
    await store.append("note-1", [noted(number, "a") for number in range(2500)], expected_version=0)
    await (await caught_up(tmp_path / "views.db", store, Texts())).close()
    await store.append("note-1", [noted(1, "b")], expected_version=2500)
    views = await caught_up(tmp_path / "views.db", store, Texts(), Texts("others-1", "others"), Words())
    assert await texts(views) == await texts(views, "others") == ["a"] * 2500 + ["b"]
    assert {status.position for status in views.status()} == {2501}
    await views.close()


class Busy(SQLiteEventStore):
    """A log that grows by an event whenever it is read."""

    async def read_all(self, **where):
        events = await super().read_all(**where)
        await self.append("note-busy", [noted(0, "meanwhile")], expected_version=await self.stream_version("note-busy"))
        return events


async def test_others_continue_while_a_renamed_projection_catches_up(tmp_path, store):
    await store.append("note-1", [noted(number, "a") for number in range(5_000)], expected_version=0)
    await (await caught_up(tmp_path / "views.db", store, Texts(), Texts("others-1", "others"))).close()
    seen = []
    async with await Busy.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as busy:
        views = await Views.open(tmp_path / "views.db", busy, [Texts(), Texts("others-2", "others")])
        await views.catch_up(progress=lambda statuses: seen.append([status.position for status in statuses]))
        assert sum(texts > 5_000 and others < 5_000 for texts, others in seen) >= 4
        assert seen == sorted(seen), "lags shrink"
        await views.wait_for(5_002, projections=["texts-1"])
        await views.close()


async def test_projections_serve_new_writes_while_another_catches_up(tmp_path, store):
    await store.append("note-1", [noted(number, "a") for number in range(30_000)], expected_version=0)
    await (await caught_up(tmp_path / "views.db", store, Texts())).close()
    async with running(tmp_path / "views.db", store, Texts(), Texts("others-1", "others")) as views:
        appended = await store.append("note-2", [noted(1, "new")], expected_version=0)
        await views.wait_for(appended.position, 60, projections=["texts-1"])
        row = await views.query_one("SELECT text FROM texts WHERE position = ?", (appended.position,))
        of_texts, of_others = views.status()  # soon: the other has a second's work, or two, before it
        assert row is not None
        assert row["text"] == "new"
        assert of_texts.lag == 0
        assert of_others.lag > 0
        await views.wait_for(appended.position, 60)
        assert (await texts(views, "others"))[-1] == "new"


async def test_a_new_name_or_another_script_means_fresh_tables(tmp_path, store):
    await store.append("note-1", [noted(1, "a")], expected_version=0)
    await (await caught_up(tmp_path / "views.db", store, Texts(), Words())).close()
    views = await caught_up(tmp_path / "views.db", store, Texts("texts-2"))
    assert await texts(views) == ["a"]
    with pytest.raises(sqlite3.OperationalError, match="words"):
        await views.query("SELECT * FROM words")
    await views.close()

    changed = Texts("texts-2")
    changed.tables = changed.tables.replace("text TEXT", "text TEXT, more TEXT DEFAULT 'x'").replace(
        "-- fails", "-- still fails"
    )
    changed.apply = lambda _db, _events: None  # type: ignore[method-assign]
    views = await caught_up(tmp_path / "views.db", store, changed)
    assert await views.query("SELECT more FROM texts") == []
    await views.close()
    await (await caught_up(tmp_path / "views.db", store)).close()
    with closing(sqlite3.connect(tmp_path / "views.db")) as db:
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")}
    assert names == {"checkpoints", "objects"}


async def test_views_of_another_log_are_made_again(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    async with await opened(tmp_path / "old") as old, await opened(tmp_path / "new") as new:
        await old.append("note-1", [noted(1, "old"), noted(2, "older")], expected_version=0)
        await new.append("note-1", [noted(1, "new"), noted(2, "newer")], expected_version=0)
        await (await caught_up(tmp_path / "views.db", old, Texts())).close()
        views = await caught_up(tmp_path / "views.db", new, Texts())
        assert await texts(views) == ["new", "newer"]
        await views.close()


async def test_two_names_must_differ(tmp_path, store):
    with pytest.raises(ValueError, match="same name"):
        await Views.open(tmp_path / "views.db", store, [Texts(), Texts()])


async def test_queries_cannot_write(tmp_path, store):
    views = await caught_up(tmp_path / "views.db", store, Texts())
    with pytest.raises(StoreUnavailable):
        await views.query("DELETE FROM texts")
    await views.close()


async def test_two_views_on_one_file_apply_each_event_once(tmp_path, store):
    async with (
        await opened(tmp_path) as other,
        running(tmp_path / "views.db", store, Texts()) as views,
        running(tmp_path / "views.db", other, Texts()) as views_too,
    ):
        for number in range(100):
            writer = (store, other)[number % 2]
            appended = await writer.append("note-1", [noted(number, str(number))], expected_version=number)
        await views.wait_for(appended.position)
        await views_too.wait_for(appended.position)
        assert await texts(views) == await texts(views_too) == [str(number) for number in range(100)]
        assert not any(status.failed for status in views.status() + views_too.status())


PROJECT = """
import asyncio, sys
from pathlib import Path
from eventstore import Views
from tests.eventstore.shapes import opened
from tests.eventstore.test_views import Texts, Words

async def main(folder):
    async with await opened(folder) as store:
        for _ in range(20):
            views = await Views.open(folder / "views.db", store, [Texts(), Words()])
            await views.catch_up()
            assert not any(status.failed for status in views.status()), views.status()
            await views.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROJECT, str(folder)], cwd=ROOT)


async def test_processes_that_catch_up_at_once_apply_each_event_once(tmp_path, store):
    children = [start(tmp_path) for _ in range(2)]
    async with running(tmp_path / "views.db", store, Texts(), Words()) as views:
        version = 0
        while version < 3_000 or any(child.poll() is None for child in children):
            appended = await store.append("note-1", [noted(1, "a")] * 30, expected_version=version)
            version += 30
        await views.wait_for(appended.position, timeout_seconds=120)
        assert [child.returncode for child in children] == [0, 0]
        assert len(await texts(views)) == version
        row = await views.query_one("SELECT events FROM texts_sizes")
        assert row is not None
        assert row["events"] == version
        assert not any(status.failed for status in views.status())


async def test_erased_text_is_scrubbed_from_the_views(tmp_path, store):
    class Forgetful(Texts):
        def apply(self, db, events):
            super().apply(db, [event for event in events if event.type != "forgotten"])
            for event in events:
                if event.type == "forgotten":
                    db.execute("UPDATE texts SET text = '' WHERE stream = ?", (event.stream,))

    async with running(tmp_path / "views.db", store, Forgetful()) as views:
        for number in range(50):
            await store.append(f"note-{number}", [noted(1, f"a long secret of {number}.")], expected_version=0)
        appended = await store.append("note-7", [NewEvent("forgotten", b"{}")], expected_version=1)
        await store.erase("note-7")
        await views.wait_for(appended.position)
        await views.scrub()
        assert files_with(tmp_path, b"a long secret of 7.") == []
        assert files_with(tmp_path, b"a long secret of 8.") != []


class ShortOfMemory:
    """A store that finds no memory for its next few reads."""

    def __init__(self, store, errors):
        self._store, self.errors = store, errors

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def head(self):
        if self.errors:
            raise self.errors.pop()
        return await self._store.head()


async def test_views_go_on_once_there_is_memory_again(tmp_path, store):
    short = ShortOfMemory(store, [])
    views = await caught_up(tmp_path / "views.db", short, Texts())
    await store.append("note-1", [noted(1, "first")], expected_version=0)
    short.errors = [MemoryError(), RuntimeError("can't start new thread")]
    following = asyncio.create_task(views.run())
    await views.wait_for(1, timeout_seconds=60)
    assert (await texts(views), short.errors, following.done()) == (["first"], [], False)
    following.cancel()
    await asyncio.wait([following])
    await views.close()


async def test_queries_of_large_tables_keep_little_in_memory(tmp_path, store):
    """SQLite would keep 2 MB for each connection, for good."""
    await store.append("thing-1", [noted(number, "x") for number in range(3)], expected_version=0)
    async with running(tmp_path / "views.db", store, Texts()) as views:
        await views.wait_for(3)
        (row,) = await views.query("PRAGMA cache_size")
    assert row[0] == -512


async def test_log_that_does_not_show_its_end_is_reported(tmp_path, store):
    """It went away after its end was read, and what is read then is a copy that is behind."""

    class Away(ShortOfMemory):
        async def read_all(self, **_):
            return []

    await store.append("note-1", [noted(1, "first")], expected_version=0)
    async with await Views.open(tmp_path / "views.db", Away(store, []), [Texts()]) as views:
        with pytest.raises(StoreUnavailable):
            await views.catch_up()


def test_file_that_several_make_at_once_is_one(tmp_path):
    begin = threading.Barrier(4)

    def opened(path):
        begin.wait()
        view_file.open_file(path).close()

    with ThreadPoolExecutor(4) as threads:
        for number in range(50):
            list(threads.map(opened, [tmp_path / f"views-{number}.db"] * 4))
