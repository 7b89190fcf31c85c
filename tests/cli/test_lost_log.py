"""A log that lost its end, or is another one: nothing goes on with it until somebody has decided what to do."""

import json
import shutil
import sqlite3
import time
import urllib.error
import urllib.request
from contextlib import closing

import pytest

from tests.service_process import Service, service_in, write_docs

COMMANDS = (
    ("serve", "--port", "0"), ("organization", "create", "--name", "New"), ("organization", "list"),
    ("audit", "checkpoint"), ("audit", "replay"),
)  # fmt: skip


@pytest.fixture
def service(tmp_path):
    """Three organizations, which the views have seen."""
    with service_in(tmp_path) as service:
        for name in ("Acme", "Bolt", "Cork"):
            service.cli("organization", "create", "--name", name)
        yield service


def change(service: Service, sql: str) -> None:
    with closing(sqlite3.connect(service.data / "events.db")) as db, db:
        db.execute(sql)


def log_of(service: Service) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(service.data / "events.db")) as db:
        return db.execute("SELECT position, type FROM events ORDER BY position").fetchall()


def without_views(service: Service, kept) -> None:
    kept.mkdir()
    for file in service.data.glob("views.db*"):
        shutil.move(file, kept / file.name)


def is_refused(service: Service, says: str) -> None:
    before = log_of(service)
    for command in COMMANDS:
        told = service.run(*command)
        assert (told.returncode, told.stdout, told.stderr.count("\n")) == (1, "", 1), (command, told.stderr)
        assert says in told.stderr
        assert f"docsmith audit accept-loss --reason TEXT --data {service.data}" in told.stderr
        assert "docsmith restore BACKUP --vault VAULT" in told.stderr
    found = service.cli("audit", "verify", status=3)
    assert says in found["problem"]
    told = service.run("doctor", "--json")
    (finding,) = [one for one in json.loads(told.stdout)["findings"] if one["name"] == "data"]
    assert says in finding["says"]
    assert "accept-loss" in finding["mend"]
    assert log_of(service) == before


def test_log_without_its_tail_is_not_continued(service, tmp_path):
    change(service, "DELETE FROM events WHERE position = 3")
    says = f"{service.data}/events.db ends at position 2, and the view "
    is_refused(service, says)
    told = service.run("backup", str(tmp_path / "backup.tar"))
    assert (told.returncode, says in told.stderr) == (1, True)
    assert not (tmp_path / "backup.tar").exists()
    shown = service.run("audit", "show")
    assert (shown.returncode, len(shown.stdout.splitlines())) == (0, 2)
    assert "warning: the log cannot be written" in shown.stderr
    assert len(log_of(service)) == 2


def test_log_that_diverged_is_not_continued(service, tmp_path):
    without_views(service, tmp_path / "kept")
    change(service, "DELETE FROM events WHERE position > 1")
    for name in ("Bold", "Core", "Dole"):
        service.cli("organization", "create", "--name", name)
    shutil.rmtree(tmp_path / "made", ignore_errors=True)
    without_views(service, tmp_path / "made")
    for file in (tmp_path / "kept").iterdir():
        shutil.copyfile(file, service.data / file.name)
    is_refused(service, f"{service.data}/events.db has another event at position 3 than the view ")


def test_the_last_signed_checkpoint_is_a_witness_too(service, tmp_path):
    service.cli("audit", "checkpoint")
    without_views(service, tmp_path / "kept")
    change(service, "DELETE FROM events WHERE position = 3")
    told = service.run("organization", "list")
    assert (told.returncode, told.stdout) == (1, "")
    assert "ends at position 2, and the signed checkpoint has seen position 3" in told.stderr
    checkpoints = service.data / "checkpoints.jsonl"
    checkpoints.write_text(checkpoints.read_text().replace('"position":3', '"position":4'))  # not what was signed
    assert len(service.cli("organization", "list")["organizations"]) == 2


def test_views_that_are_gone_are_rebuilt(service, tmp_path):
    before = service.cli("organization", "list")
    without_views(service, tmp_path / "kept")
    assert service.cli("organization", "list") == before
    assert service.cli("audit", "verify")["sound"]


def test_an_accepted_loss_is_on_the_record(service):
    assert service.cli("audit", "accept-loss", "--reason", "none", status=1)["code"] == "nothing_lost"
    service.cli("audit", "checkpoint")
    service.cli("audit", "checkpoint")
    service.cli("organization", "create", "--name", "Dole")
    service.cli("audit", "checkpoint")
    (lost,) = [one for one in service.cli("audit", "show", "--after", "3")["events"] if one["position"] == 4]
    change(service, "DELETE FROM events WHERE position > 3")
    found = service.cli("audit", "verify", status=3)
    assert service.run("audit", "accept-loss", "--reason", " ").returncode == 1
    done = service.cli("audit", "accept-loss", "--reason", "the disk failed")
    assert (done["position"], done["lostFrom"], done["lostThrough"], done["checkpointsSetApart"]) == (4, 4, 4, 1)
    (event,) = service.cli("audit", "show", "--type", "loss-accepted")["events"]
    data = event["data"]
    assert event["actor"].startswith("cli:")
    assert (data["reason"], data["found_position"], data["expected_position"]) == ("the disk failed", 3, 4)
    assert data["found_hash"] == done["foundHash"] == found["head"]
    assert data["expected_hash"] == lost["hash"]
    assert service.cli("audit", "verify")["sound"]
    assert [one["name"] for one in service.cli("organization", "list")["organizations"]] == ["Acme", "Bolt", "Cork"]
    apart = (service.data / "checkpoints.lost.jsonl").read_text().splitlines()
    assert [json.loads(line)["position"] for line in apart] == [4]
    kept = (service.data / "checkpoints.jsonl").read_text().splitlines()
    assert [json.loads(line)["position"] for line in kept] == [3, 3]
    service.start()
    assert service.run("audit", "accept-loss", "--reason", "again").returncode == 1
    assert service.stop() == 0


def ready(service: Service) -> tuple[int, dict[str, str]]:
    try:
        with urllib.request.urlopen(f"{service.url}/readyz", timeout=60) as answer:
            return answer.status, {}
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["reasons"]


@pytest.mark.slow
def test_a_log_that_is_shortened_beneath_a_service_is_noticed(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"))  # indexed, so it appends nothing by itself
        service.start()
        assert ready(service) == (200, {})
        last = log_of(service)[-1][0]
        change(service, f"DELETE FROM events WHERE position = {last}")
        until = time.monotonic() + 120
        while (found := ready(service))[0] == 200:
            assert time.monotonic() < until
        assert found[0] == 503
        assert "docsmith doctor says what to do" in found[1]["log"]
        assert str(tmp_path) not in str(found)
        request = urllib.request.Request(
            f"{service.url}/v2/agent/{service.project_id}/job", b'{"prompt": "Document it"}',
            {**service.admin, "Content-Type": "application/json"},
        )  # fmt: skip
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        refused.value.close()
        assert refused.value.code == 503
        assert service.stop() == 0
        assert log_of(service)[-1][0] == last - 1
        assert (
            not (service.data / "checkpoints.jsonl").exists()
            or f'"position":{last}' in (service.data / "checkpoints.jsonl").read_text()
        )


def test_a_torn_wal_of_a_killed_service_is_noticed(tmp_path):
    with service_in(tmp_path) as service:
        service.cli("organization", "create", "--name", "Acme")
        service.start()
        for name in ("Bolt", "Cork", "Dole"):
            service.cli("organization", "create", "--name", name)
        service.kill()
        wal = service.data / "events.db-wal"
        whole, count = wal.read_bytes(), len(log_of(service))
        if not wal.exists():  # looking at it has moved it over
            wal.write_bytes(whole)
        for at in (0, 5, 20, 40, len(whole) // 2, len(whole) - 100):
            copy = Service(tmp_path / f"copy-{at}")
            shutil.copytree(service.data, copy.data, ignore=shutil.ignore_patterns("*-shm"))
            torn = bytearray(whole)
            torn[at] ^= 4
            (copy.data / "events.db-wal").write_bytes(torn)
            told = copy.run("organization", "list")
            if told.returncode == 0:
                assert copy.cli("audit", "verify")["events"] == count
            else:
                assert "are lost" in told.stderr
                assert (copy.data / "events.db-wal").read_bytes() == bytes(torn)
                assert copy.run("audit", "verify").returncode == 3
                copy.cli("audit", "accept-loss", "--reason", "a torn WAL")
                assert copy.cli("audit", "verify")["sound"]
