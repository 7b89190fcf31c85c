"""Damaged files of a data folder: what heals by itself, and the next step for what does not."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from eventstore import StoreCorrupt, StoreDiskFailed, StoreForeign, StoreFull, StoreNewer, StoreUnavailable
from service.cli.operate.damage import described
from tests.service_process import Service, service_in, write_docs


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"), index=False)
        yield service


def tear(file, *, begin: int, end: int) -> None:
    content = bytearray(file.read_bytes())
    end = min(end, len(content))
    content[begin:end] = bytes((byte * 31 + 7) % 256 for byte in range(end - begin))
    file.write_bytes(content)


def findings(service: Service) -> dict[str, dict[str, str]]:
    told = service.run("doctor", "--json")
    assert told.returncode == 1, told.stderr
    return {one["name"]: one for one in json.loads(told.stdout)["findings"] if one["level"] == "wrong"}


def test_read_tables_that_are_torn_in_the_middle_are_rebuilt(service):
    before = service.cli("project", "list")
    tear(service.data / "views.db", begin=3 * 4096, end=13 * 4096)
    told = service.run("project", "list")
    assert (told.returncode, told.stderr.count("\n")) == (1, 1)
    assert "docsmith serve rebuilds this file" in told.stderr
    assert "docsmith serve rebuilds this file" in findings(service)["data"]["mend"]
    service.start()
    assert "views are made anew" in service.log()
    assert service.cli("project", "list") == before


def test_unscanned_large_read_tables_are_rebuilt_on_damage(service):
    service.start()
    before = service.cli("project", "list")
    with sqlite3.connect(service.data / "views.db") as db:
        db.execute("CREATE TABLE filler (page)")
        db.execute("INSERT INTO filler VALUES (zeroblob(40000000))")
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'projects'").fetchone()
    service.kill()
    with sqlite3.connect(service.data / "views.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    tear(service.data / "views.db", begin=(page - 1) * 4096, end=page * 4096)
    told = service.run("project", "list")
    assert (told.returncode, told.stderr.count("\n")) == (1, 1)
    assert "docsmith serve rebuilds this file" in told.stderr
    service.start()
    assert "views are made anew" in service.log()
    assert service.cli("project", "list") == before
    service.kill()
    service.start()
    assert service.log().count("views are made anew") == 1


@pytest.mark.parametrize("command", [("project", "list"), ("serve", "--port", "0"), ("audit", "show")])
def test_damaged_log_is_reported_with_the_next_step(service, command):
    tear(service.data / "events.db", begin=4096, end=3 * 4096)
    told = service.run(*command)
    assert (told.returncode, told.stderr.count("\n")) == (1, 1), told.stderr
    assert told.stderr.startswith("docsmith: ")
    assert "docsmith restore BACKUP" in told.stderr
    assert service.run("audit", "verify").returncode == 3
    assert "docsmith audit verify" in findings(service)["data"]["mend"]


@pytest.mark.parametrize("left", ["missing", "empty"])
def test_missing_log_is_not_started_again(service, left):
    log = service.data / "events.db"
    shutil.move(log, log.with_name("kept"))
    if left == "empty":
        log.touch()
    for command in (("project", "list"), ("serve", "--port", "0"), ("organization", "create", "--name", "New")):
        told = service.run(*command)
        assert (told.returncode, told.stderr.count("\n")) == (1, 1), told.stderr
        assert f"{log}, the log, is {left}" in told.stderr
    assert f"the log, is {left}" in findings(service)["data"]["says"]
    assert not log.exists() or log.stat().st_size == 0
    shutil.move(log.with_name("kept"), log)
    assert service.run("project", "list").returncode == 0


def test_damaged_vault_is_reported_with_the_next_step(service):
    tear(service.data / "keys.db", begin=0, end=4096)
    told = service.run("project", "list")
    assert (told.returncode, told.stderr.count("\n")) == (1, 1)
    assert "docsmith restore BACKUP --vault VAULT" in told.stderr
    assert "docsmith restore BACKUP --vault VAULT" in findings(service)["data"]["mend"]


def test_only_a_disk_that_is_full_is_called_so(tmp_path):
    assert described(StoreDiskFailed("disk I/O error", file="keys.db"), tmp_path).remedy == ""
    full = Path("/sys")  # no room at all, always
    for error in (StoreDiskFailed("one", file="keys.db"), StoreFull("other", file="events.db")):
        assert "the disk of the data folder, /sys, is full" in described(error, full / "data").remedy


def test_next_step_is_chosen_by_kind_and_file_not_by_words(tmp_path):
    words = "keys.db: malformed, damaged, corrupt, not a database, disk is full"
    assert described(StoreUnavailable(words, file="events.db"), tmp_path).remedy == ""
    assert described(StoreForeign(words, file="events.db"), tmp_path).remedy == ""
    step = described(StoreCorrupt("?", file="views.db"), tmp_path).remedy
    assert "docsmith serve" in step
    passed_on = StoreUnavailable("not kept up to date")
    passed_on.__cause__ = StoreCorrupt("?", file="views.db")
    assert described(passed_on, tmp_path) == ("not kept up to date", step, "unavailable")
    assert described(StoreNewer("too new; very", remedy="use the newer one"), tmp_path)[:2] == (
        "too new; very",
        "use the newer one",
    )
