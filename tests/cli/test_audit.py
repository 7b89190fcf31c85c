"""Auditing: what anybody can check of the log, who has read it, and what is signed."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing

import pytest

from tests.service_process import Service, service_in


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        yield service


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A log of a few organizations, which no test changes but by reading it."""
    with service_in(tmp_path_factory.mktemp("audit")) as service:
        for name in ("Acme", "Bolt", "Cork"):
            service.cli("organization", "create", "--name", name)
        yield service


def change(service: Service, sql: str) -> None:
    with closing(sqlite3.connect(service.data / "events.db")) as db, db:
        db.execute(sql)


def test_kept_checkpoint_shows_that_the_log_was_rewritten(service, tmp_path):
    kept, key = tmp_path / "kept.json", tmp_path / "kept.pub"
    service.cli("organization", "create", "--name", "Acme")
    made = service.cli("audit", "checkpoint", "--output", str(kept))
    key.write_bytes((service.data / "checkpoint.pub").read_bytes())
    assert json.loads(kept.read_text()) == made
    assert (service.data / "checkpoints.jsonl").read_text().count("\n") == 1
    assert stat.S_IMODE((service.data / "checkpoint.key").stat().st_mode) == 0o600
    service.cli("organization", "create", "--name", "Bolt")
    checked = ("audit", "verify", "--checkpoint", str(kept), "--public-key", str(key))
    found = service.cli(*checked)
    assert (found["sound"], found["events"]) == (True, 2)
    assert [one["position"] for one in found["checkpoints"]] == [1, 1]
    assert "compare it with the one you know" in service.run("audit", "verify", "--checkpoint", str(kept)).stdout

    for file in service.data.iterdir():  # everything made anew, as somebody with access to the folder could
        file.unlink()
    service.cli("organization", "create", "--name", "Evil")
    assert "no checkpoint" in service.cli("audit", "verify", "--public-key", str(key), status=3)["problem"]
    service.cli("audit", "checkpoint")
    assert service.cli("audit", "verify")["sound"]
    found = service.cli("audit", "verify", "--public-key", str(key), status=3)
    assert "another key" in found["problem"]
    found = service.cli(*checked, status=3)
    assert (found["sound"], found["badPosition"]) == (False, 1)
    found = service.cli(*checked, "--from", "2", status=3)
    assert found["badPosition"] == 1

    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps({**made, "position": 2}))
    assert (
        "does not fit its signature" in service.cli("audit", "verify", "--checkpoint", str(forged), status=3)["problem"]
    )
    own = str(service.data / "checkpoints.jsonl")
    found = service.cli("audit", "verify", "--checkpoint", own, "--public-key", str(key), status=3)
    assert "another key" in found["problem"]
    assert service.run("audit", "verify", "--public-key", own).returncode == 1


def test_log_without_its_tail_is_found_by_its_checkpoints(service):
    for name in ("Acme", "Bolt"):
        service.cli("organization", "create", "--name", name)
    service.cli("audit", "checkpoint")
    change(service, "DELETE FROM events WHERE position = 2")
    found = service.cli("audit", "verify", status=3)
    assert found["badPosition"] == 2
    assert "before its checkpoint" in found["problem"]


def test_service_signs_its_log_on_schedule_and_when_it_stops(service):
    service.cli("organization", "create", "--name", "Acme")
    service.start()
    until = time.monotonic() + 60
    while not (service.data / "checkpoints.jsonl").exists():  # the one of the start, which is made beside all else
        assert time.monotonic() < until
    service.cli("organization", "create", "--name", "Bolt")
    assert service.stop() == 0
    lines = (service.data / "checkpoints.jsonl").read_text().splitlines()
    assert [json.loads(line)["position"] for line in lines] == [1, 2]
    service.start()
    assert service.stop() == 0
    assert len((service.data / "checkpoints.jsonl").read_text().splitlines()) == 2  # nothing new to sign
    assert len(service.cli("audit", "verify")["checkpoints"]) == 2


def test_signing_can_be_switched_off(service):
    service.environment["DOCSMITH_AUDIT__CHECKPOINT_MINUTES"] = "0"
    service.cli("organization", "create", "--name", "Acme")
    service.start()
    assert service.stop() == 0
    assert not (service.data / "checkpoints.jsonl").exists()


def test_events_are_chosen_by_what_auditors_know_of_them(filled):
    (first, second, third, *_) = filled.cli("audit", "show", "--category", "organization")["events"]
    assert [one["data"]["name"] for one in (first, second, third)] == ["Acme", "Bolt", "Cork"]

    def names(*options):
        return [one["data"].get("name") for one in filled.cli("audit", "show", *options)["events"]]

    assert names("--stream", second["stream"]) == ["Bolt"]
    assert names("--since", second["recordedAt"], "--until", third["recordedAt"]) == ["Bolt"]
    assert names("--type", "organization-created", "--after", "1", "--limit", "1") == ["Bolt"]
    assert names("--category", "organization", "--actor", "system") == []
    assert names("--until", "2020-01-01") == []
    for options in (("--since", "yesterday"), ("--limit", "0")):
        assert filled.run("audit", "show", *options).returncode == 2


def test_reading_the_log_is_recorded_before_anything_is_shown(filled):
    filled.run("audit", "show", "--type", "key-created", "--after", "1")
    *_, read = filled.cli("audit", "show", "--category", "audit")["events"]
    assert read["type"] == "audit-read"
    assert read["actor"].startswith("cli:")
    assert read["data"]["command"] == "audit show"
    assert read["data"]["filters"] == {"type": "key-created", "after": "1"}
    assert (read["data"]["after"], read["data"]["through"]) == (1, read["position"] - 1)


AS_ANYBODY = ["setpriv", "--inh-caps", "-all", "--bounding-set", "-all"] if os.geteuid() == 0 else []
"""What root has to run a command with, to be told that something cannot be written."""


@pytest.mark.skipif(bool(AS_ANYBODY) and shutil.which("setpriv") is None, reason="root may write everywhere")
def test_read_only_folder_can_be_read_with_a_warning(service, tmp_path):
    service.cli("organization", "create", "--name", "Acme")
    for file in service.data.iterdir():
        file.chmod(0o400)
    service.data.chmod(0o500)
    try:
        for command in (("show",), ("export", "--output", str(tmp_path / "export")), ("verify",)):
            done = subprocess.run(
                [*AS_ANYBODY, sys.executable, "-m", "service", "audit", *command, "--data", str(service.data)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr
            assert ("it is not recorded" in done.stderr) == (command != ("verify",))
    finally:
        service.data.chmod(0o700)
    assert service.cli("audit", "verify")["events"] == 1


def test_checkpoints_that_somebody_wrote_into_are_found(service):
    service.cli("organization", "create", "--name", "Acme")
    made = service.cli("audit", "checkpoint")
    file = service.data / "checkpoints.jsonl"
    with file.open("a") as opened:
        opened.write('{"half a li')  # of a process that was killed
    assert len(service.cli("audit", "verify")["checkpoints"]) == 1
    service.cli("audit", "checkpoint")
    assert len(service.cli("audit", "verify")["checkpoints"]) == 2
    file.write_text("nonsense\n" + file.read_text())
    assert "not a checkpoint" in service.cli("audit", "verify", status=3)["problem"]
    file.write_text(json.dumps(made | {"hash": "00" * 32}) + "\n")
    assert "does not fit its signature" in service.cli("audit", "verify", status=3)["problem"]


def test_checkpoint_of_a_newer_program_is_not_called_tampered(service, tmp_path):
    service.cli("organization", "create", "--name", "Acme")
    made = service.cli("audit", "checkpoint")
    newer, file = made | {"format": "docsmith-checkpoint-3", "more": []}, tmp_path / "newer.json"
    file.write_text(json.dumps(newer))
    told = service.run("audit", "verify", "--checkpoint", str(file))
    assert (told.returncode, told.stdout) == (1, "")
    assert f"{file}: its format docsmith-checkpoint-3 was made by a newer docsmith; use that one" in told.stderr
    own = service.data / "checkpoints.jsonl"
    own.write_text(own.read_text() + json.dumps(newer) + "\n")
    assert service.cli("audit", "verify", status=1)["code"] == "newer_format"
    own.write_text(json.dumps(made) + "\n")
    file.write_text(json.dumps(made | {"format": "docsmith-checkpoint-0"}))
    told = service.run("audit", "verify", "--checkpoint", str(file))
    assert (told.returncode, told.stdout) == (1, "")
    assert f"{file}: no checkpoint found in it" in told.stderr
    change(service, "PRAGMA user_version = 7")
    for command in (("audit", "verify"), ("audit", "show"), ("audit", "checkpoint"), ("organization", "list")):
        told = service.run(*command)
        assert (told.returncode, told.stdout, told.stderr.count("\n")) == (1, "", 1), command
        assert "made by a newer program" in told.stderr


def test_audit_creates_nothing_without_a_log(tmp_path):
    service = Service(tmp_path / "data")
    for command in (("verify",), ("show",), ("checkpoint",)):
        done = service.run("audit", *command)
        assert (done.returncode, done.stdout) == (1, "")
        assert "there is no log here" in done.stderr
    assert not (tmp_path / "data").exists()


def test_damaged_text_is_named_and_stops_no_command(service, tmp_path):
    service.cli("organization", "create", "--name", "Acme")
    url = "https://one.example/hook"
    made = service.cli("webhook", "create", "--url", url)
    service.cli("organization", "create", "--name", "Bolt")
    assert service.cli("audit", "show", "--category", "webhook")["events"][0]["damaged"] is False
    change(service, "UPDATE events SET sealed = substr(sealed, 1, length(sealed) - 1) WHERE stream LIKE 'webhook-%'")
    (shown,) = service.cli("audit", "show", "--category", "webhook")["events"]
    assert (shown["damaged"], shown["erased"], "url" in shown["data"]) == (True, False, False)
    assert "[damaged]" in service.run("audit", "show", "--category", "webhook").stdout
    service.cli("audit", "export", "--output", str(tmp_path / "out"), "--personal")
    for file in service.data.glob("views.db*"):
        file.unlink()
    (row,) = service.cli("webhook", "list")["webhooks"]
    assert (row["id"], row["url"]) == (made["id"], "[damaged]")
    assert service.cli("audit", "replay")["same"]
    doctor = service.run("doctor")
    assert "WRONG  texts" in doctor.stdout, doctor.stdout
    assert str(shown["position"]) in doctor.stdout


def test_the_read_models_are_those_that_the_log_makes(service, tmp_path):
    for name in ("Acme", "Bolt", "Cork"):
        service.cli("organization", "create", "--name", name)
    service.start()
    service.cli("organization", "create", "--name", "Dole")
    found = service.cli("audit", "replay")
    assert (found["same"], found["tables"]["organizations"]) == (True, 4)

    with closing(sqlite3.connect(service.data / "views.db")) as db, db:
        db.execute("UPDATE organizations SET name = 'Evil' WHERE name = 'Bolt'")
        db.execute("DELETE FROM organizations WHERE name = 'Cork'")
        db.execute("INSERT INTO organizations VALUES ('x', 'New', '2026-01-01')")
    found = service.cli("audit", "replay", status=3)
    assert (found["same"], found["differingRows"]) == (False, 3)
    told = {one["key"][0]: (one["live"], one["replayed"]) for one in found["differences"]}
    assert ({"name": "Evil"}, {"name": "Bolt"}) in told.values()
    assert told["x"][1] is None

    (*_, third) = service.cli("audit", "show", "--category", "organization", "--limit", "3")["events"]
    for until, names in ((2, ["Acme", "Bolt"]), (third["recordedAt"], ["Acme", "Bolt", "Cork"])):
        file = tmp_path / f"then-{len(names)}.db"
        service.cli("audit", "replay", "--until", str(until), "--output", str(file))
        with closing(sqlite3.connect(file)) as db:
            assert [row[0] for row in db.execute("SELECT name FROM organizations ORDER BY name")] == names
    change(service, "UPDATE events SET recorded_at = '2099-01-01T00:00:00.000000+00:00' WHERE position = 2")
    file = tmp_path / "beside-a-bad-reading.db"
    service.cli("audit", "replay", "--until", third["recordedAt"], "--output", str(file))
    with closing(sqlite3.connect(file)) as db:
        assert len(db.execute("SELECT name FROM organizations").fetchall()) == 3
    assert service.run("audit", "replay", "--output", str(file)).returncode == 1
    assert service.run("audit", "replay", "--until", "2").returncode == 2
