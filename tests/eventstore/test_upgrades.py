"""A file that an older program made is brought up to date, and the old one is kept."""

import sqlite3
from contextlib import closing

import pytest

from eventstore import StoreUnavailable
from eventstore.sqlite import files

FIRST, SECOND = "tests.eventstore.schemas.first", "tests.eventstore.schemas.second"


@pytest.fixture
def path(tmp_path):
    """A file of the first version with one note, which is still in its WAL."""
    path = tmp_path / "notes.db"
    with closing(files.connect(path)) as db:
        files.use_wal(db, path)
        files.migrate(db, FIRST, 1, path, keep=True)
        db.execute("INSERT INTO notes VALUES ('first')")
        path.chmod(0o600)
        yield path


def notes(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT * FROM notes").fetchall()


def upgrade(path):
    with closing(files.connect(path)) as db:
        files.migrate(db, SECOND, 1, path, keep=True)


def test_the_old_file_is_kept_for_the_program_that_wrote_it(path):
    upgrade(path)
    upgrade(path)
    assert notes(path) == [("first", None)]
    kept = path.with_name("notes.db.version-1")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert {each.name for each in path.parent.iterdir()} - {"notes.db-wal", "notes.db-shm"} == {path.name, kept.name}
    with closing(files.connect(kept)) as db:
        files.migrate(db, FIRST, 1, kept)  # it is the older program's
    assert notes(kept) == [("first",)]
    with closing(files.connect(path)) as db, pytest.raises(StoreUnavailable, match="newer"):
        files.migrate(db, FIRST, 1, path)


def test_older_programs_writes_after_a_failed_upgrade_are_kept(path):
    kept = path.with_name("notes.db.version-1")
    with closing(files.connect(kept)) as db:
        db.execute("CREATE TABLE notes (text)")
    upgrade(path)
    assert notes(kept) == [("first",)]


def test_a_file_that_cannot_be_kept_is_not_changed(path):
    path.with_name("notes.db.version-1").mkdir()
    with pytest.raises(StoreUnavailable, match=r"notes\.db\.version-1"):
        upgrade(path)
    assert notes(path) == [("first",)]


def test_a_new_file_has_nothing_to_keep(tmp_path):
    upgrade(tmp_path / "new.db")
    assert [each.name for each in tmp_path.iterdir() if "version" in each.name] == []
