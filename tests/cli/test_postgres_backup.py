"""Backups of a log in PostgreSQL, copies that follow it, and restores into databases."""

import sqlite3
import subprocess
import tarfile
import tempfile
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from eventstore.postgres.connections import FAILURES, Address, Connections
from tests.cli.test_following import following, stop
from tests.cli.test_store_commands import LOSE_ONE, run
from tests.eventstore.backends import addresses
from tests.eventstore.cluster import new_cluster, started_cluster
from tests.service_process import Service, begun, service_in, write_docs

WAITS = "the copy waits, and goes on by itself"
KEPT, ERASED = "Ask Ermentrude to dance", "Ask Wilhelmina to sing"


def stores(folder):
    """Variables with the addresses of a log and a vault that are made for a folder."""
    log, vault = addresses(folder)
    return {"DOCSMITH_STORE": log.text, "DOCSMITH_VAULT": vault.text}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A service with its log in PostgreSQL, one text that is erased, and a backup of it. Tests only read the log."""
    folder = tmp_path_factory.mktemp("kept")
    service = Service(folder / "data", stores(folder))
    docs = write_docs(folder / "docs")
    service.cli("organization", "create", "--name", "Acme")
    service.cli("project", "create", "--name", "kite", "--repository", str(docs), "--domain", "kite")
    jobs = [service.cli("job", "create", text)["id"] for text in (KEPT, ERASED)]
    early = folder / "early.tar"
    service.cli("backup", str(folder / "early-log.tar"), "--vault", str(early))
    service.cli("audit", "erase", f"job-{jobs[1]}", "--yes")
    file, vault = str(folder / "backup.tar"), str(folder / "vault.tar")
    made = service.cli("backup", file, "--vault", vault)
    return SimpleNamespace(service=service, made=made, file=file, vault=vault, early=str(early), jobs=jobs)


def require_texts(service, kept):
    """The log of a service has the text that was not erased, and the other one no more."""
    shown = service.cli("audit", "show", "--type", "job-requested")["events"]
    assert [one["erased"] for one in shown] == [False, True]
    assert KEPT in str(shown[0])
    assert service.run("job", "show", kept.jobs[0]).stdout.count(KEPT)


def names_in(file):
    with tarfile.open(file) as archive:
        return archive.getnames()


def test_backup_of_postgresql_is_restored_into_a_folder(kept, tmp_path):
    assert kept.made["repositoriesElsewhere"] is None
    names = names_in(kept.file)
    assert [name for name in names if name.startswith("hosted/") and name.endswith(".git/HEAD")]
    assert names_in(kept.vault) == ["keys.db", "manifest.json"]
    other = Service(tmp_path / "data")
    told = other.cli("restore", kept.file, "--vault", kept.vault)
    assert (told["head"], told["withoutKeys"], told["to"]) == (kept.made["head"], [], None)
    verified = other.cli("audit", "verify")
    assert (verified["sound"], verified["head"]) == (True, kept.made["head"])
    require_texts(other, kept)


def test_backup_is_restored_into_databases_and_taken_over(kept, tmp_path):
    other = Service(tmp_path / "data", stores(tmp_path))
    options = (kept.file, "--vault", kept.early, "--to", "env:DOCSMITH_STORE")
    for _ in range(2):  # the first makes nothing
        tried = other.cli("restore", *options, "--dry-run")
        assert (tried["restored"], tried["erasuresRepeated"], other.data.exists()) == (False, 1, False)
    told = other.cli("restore", *options)
    assert (told["restored"], told["head"]) == (True, kept.made["head"])
    assert not list(other.data.glob("events.db*")) + list(other.data.rglob("keys.db*"))
    refused = other.run("serve", "--port", "0")
    assert (refused.returncode, "is a restored copy" in refused.stderr) == (1, True)
    other.cli("take-over", "--yes")
    verified = other.cli("audit", "verify")
    assert (verified["sound"], verified["events"]) == (True, kept.made["position"] + 1)
    require_texts(other, kept)
    assert kept.service.cli("audit", "verify")["sound"]

    again = Service(tmp_path / "again", other.environment)
    for more in ((), ("--dry-run",)):
        refused = again.cli("restore", *options, *more, status=1)
        assert (refused["code"], "has a log already" in refused["detail"]) == ("store_differs", True)
    again.environment["DOCSMITH_STORE"] = stores(tmp_path / "another")["DOCSMITH_STORE"]
    refused = again.cli("restore", *options, status=1)
    assert (refused["code"], "has a vault with keys already" in refused["detail"]) == ("store_differs", True)
    assert not again.data.exists()


def test_unsuitable_databases_are_refused(kept, tmp_path):
    service = Service(tmp_path / "data")
    for options, says in (
        (("--wrap",), "are for --to"),
        (("--to-vault", "env:DOCSMITH_VAULT"), "are for --to"),
        (("--to", str(tmp_path / "folder")), "--to names a database"),
        (("--to", "env:DOCSMITH_STORE"), "DOCSMITH_STORE is not set"),
        (("--to", "postgresql://u:hunter2@h/d"), "has a password"),
    ):
        service.environment["DOCSMITH_VAULT"] = "postgresql://u@h/d"
        refused = service.cli("restore", kept.file, *options, status=1)
        assert (refused["code"], says in refused["detail"]) == ("bad_store", True), refused
        assert "hunter2" not in refused["detail"]
    with tempfile.TemporaryDirectory() as nowhere:
        address = f"postgresql://docsmith@/postgres?host={nowhere}"
        service.environment |= {"DOCSMITH_STORE": address, "DOCSMITH_VAULT": address}
        refused = service.run("restore", kept.file, "--to", "env:DOCSMITH_STORE")
        assert (refused.returncode, "PostgreSQL does not answer at " in refused.stderr) == (1, True)
    assert not service.data.exists()


def test_wrapped_vault_is_backed_up_opened_and_restored_wrapped(kept, tmp_path):
    first = Service(tmp_path / "first", stores(tmp_path / "first"))
    options = ("--vault", kept.vault, "--to", "env:DOCSMITH_STORE", "--wrap")
    first.cli("restore", kept.file, *options)
    first.cli("take-over", "--yes")
    (key,) = first.cli("vault", "status")["wrappingKeys"]
    assert (key["state"], key["keys"] > 0, key["here"]) == ("current", True, True)
    file, vault = str(tmp_path / "backup.tar"), str(tmp_path / "vault.tar")
    first.cli("backup", file, "--vault", vault)
    second = Service(tmp_path / "second")
    assert second.cli("restore", file, "--vault", vault)["withoutKeys"] == []
    assert not (second.data / "wrapping-keys").exists()
    require_texts(second, kept)
    third = Service(tmp_path / "third", stores(tmp_path / "third"))
    third.cli("restore", file, *(vault if one == kept.vault else one for one in options))
    require_texts(third, kept)
    assert key["id"] not in str(third.cli("vault", "status"))


def test_folder_of_backups_keeps_the_last_ones(kept, tmp_path):
    made = [Path(kept.service.cli("backup", str(tmp_path), "--keep", "2")["file"]) for _ in range(3)]
    assert sorted(tmp_path.iterdir()) == made[1:]


def test_backup_says_where_other_repositories_are(kept, tmp_path):
    other = Service(tmp_path / "data", dict(kept.service.environment))
    said = other.run("backup", str(tmp_path / "one.tar")).stdout
    assert "are not in it: they are in the folder hosted in the data folder of the home, another instance" in said
    assert other.cli("backup", str(tmp_path / "two.tar"))["repositoriesElsewhere"].endswith("another instance")
    with following(other.data, tmp_path / "live", environment=other.variables) as process:
        assert "another instance" in process.stdout.readline()
        assert stop(process) == 0
    other.environment["DOCSMITH_INSTANCES__HOSTED_FOLDER"] = str(kept.service.data / "hosted")
    assert other.cli("backup", str(tmp_path / "three.tar"))["repositoriesElsewhere"] is None
    assert [name for name in names_in(tmp_path / "three.tar") if name.startswith("hosted/")]
    other = Service(kept.service.data, {**kept.service.environment, "DOCSMITH_INSTANCES__HOME": "false"})
    assert other.cli("backup", str(tmp_path / "four.tar"))["repositoriesElsewhere"] is not None
    assert not [name for name in names_in(tmp_path / "four.tar") if name.startswith("hosted/")]


@contextmanager
def begun_command(service, *arguments):
    """A command in a process of its own, and the file with what it writes to standard error."""
    with tempfile.TemporaryFile("w+") as stderr:
        command = [*arguments, "--data", str(service.data)]
        process = begun(command, environment=service.variables, stdout=stderr, stderr=stderr)
        try:
            yield process, stderr
        finally:
            process.kill()
            process.wait(timeout=60)


@contextmanager
def locked(address, table, mode):
    """Lock a table. It gives a function that waits until another process waits for it."""
    with closing(Connections.open(Address(address))) as connections:
        holder = connections.run_plainly(connections.connect())

        async def lock():
            await holder.execute(f"BEGIN; LOCK TABLE {table} IN {mode} MODE")

        async def let_go():
            holder.terminate()

        def until_another_waits():
            sql = f"SELECT FROM pg_locks WHERE relation = '{table}'::regclass AND NOT granted"
            while not connections.fetch(sql):
                time.sleep(0.02)

        connections.run_plainly(lock())
        yield until_another_waits
        connections.run_plainly(let_go())


@pytest.mark.parametrize("name", ["", "backup.tar", "events.db"])
def test_killed_backup_leaves_nothing_half(kept, tmp_path, name):
    """It is killed once a file of its unfinished work is there, or later; the vault is not copied yet."""
    file, vault = tmp_path / "backup.tar", tmp_path / "vault" / "vault.tar"
    vault.parent.mkdir()
    with (
        locked(kept.service.environment["DOCSMITH_VAULT"], "secrets", "ACCESS EXCLUSIVE") as until_another_waits,
        begun_command(kept.service, "backup", str(file), "--vault", str(vault)) as (process, _),
    ):
        if name:
            while not list(tmp_path.glob(f".docsmith-backup-*/{name}")) and not file.exists():
                time.sleep(0.001)
        else:
            until_another_waits()
            assert file.exists()
            assert list(vault.parent.glob(".docsmith-vault-*"))
        process.kill()
        process.wait(timeout=60)
    assert not vault.exists()
    if file.exists():
        assert Service(tmp_path / "other").cli("restore", str(file), "--dry-run")["sound"]
    kept.service.cli("backup", str(tmp_path / "next.tar"), "--vault", str(vault))
    assert not list(tmp_path.rglob(".docsmith-*"))


def test_killed_restore_into_databases_is_finished(kept, tmp_path):
    """It waits for a table of the vault, once the folder is there."""
    other = Service(tmp_path / "data", stores(tmp_path))
    other.environment["OWNER"] = other.environment["DOCSMITH_STORE"]
    other.cli("store", "migrate", "env:OWNER", "--vault", "env:DOCSMITH_VAULT")  # tables alone are no log
    options = (kept.file, "--vault", kept.vault, "--to", "env:DOCSMITH_STORE")
    with (
        locked(other.environment["DOCSMITH_VAULT"], "secrets", "SHARE") as until_another_waits,
        begun_command(other, "restore", *options) as (process, _),
    ):
        until_another_waits()
        process.kill()
        process.wait(timeout=60)
    refused = other.cli("restore", *options, status=1)["detail"]
    finishing = f"docsmith store copy {other.data} env:DOCSMITH_STORE --move"
    assert refused.endswith(f"To finish a restore that was interrupted: {finishing}")
    done = other.cli(*finishing.split()[1:])
    assert (done["head"], done["moved"]) == (kept.made["head"], True)
    other.cli("take-over", "--yes")
    require_texts(other, kept)


@pytest.fixture
def service(tmp_path):
    """A service with its log in PostgreSQL, for a test that changes what is stored."""
    with service_in(tmp_path / "one", stores(tmp_path)) as service:
        for name in ("Acme", "Bolt", "Cork"):
            service.cli("organization", "create", "--name", name)
        yield service


def test_unsound_log_is_not_backed_up(service, tmp_path):
    log, file = service.environment["DOCSMITH_STORE"], tmp_path / "backup.tar"
    run(
        log,
        "ALTER TABLE events DISABLE TRIGGER events_stay",
        "UPDATE events SET type = 'organization-removed' WHERE position = 2",
        "ALTER TABLE events ENABLE TRIGGER events_stay",
    )
    refused = service.run("backup", str(file), "--vault", str(tmp_path / "vault.tar"))
    assert (refused.returncode, "is not sound at position 2" in refused.stderr) == (1, True)
    assert len(refused.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("*.tar")) + list(tmp_path.glob(".docsmith-*"))
    followed = service.cli("backup", str(tmp_path / "live"), "--follow", status=3)
    assert "is not sound at position 2" in followed["problem"]


def reached(live, position):
    """Wait until a copy that follows has a position."""
    found = 0
    while found < position:
        with closing(sqlite3.connect(f"file:{live / 'events.db'}?mode=ro", uri=True)) as db:
            (found,) = db.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()
        time.sleep(0.02)


def test_copy_ends_where_the_log_lost_events(service, tmp_path):
    with following(service.data, tmp_path / "live", environment=service.variables) as process:
        reached(tmp_path / "live", 4)
        run(service.environment["DOCSMITH_STORE"], *LOSE_ONE)
        assert process.wait(timeout=60) == 3
        assert "position 4 of " in process.stdout.read()


@pytest.fixture
def server():
    cluster = started_cluster()
    yield cluster
    with suppress(subprocess.CalledProcessError):
        cluster.remove()


@pytest.fixture
def alone(server, tmp_path):
    """A service whose log is on a server of its own."""
    run(server.address, "CREATE DATABASE log", "CREATE DATABASE vault")
    with service_in(tmp_path / "one") as service:
        for variable, name in (("STORE", "log"), ("VAULT", "vault")):
            service.environment[f"DOCSMITH_{variable}"] = server.address.replace("/postgres?", f"/{name}?")
        service.cli("organization", "create", "--name", "Acme")
        service.cli("person", "add", "ann@example.com", "--name", "Ann", "--operator")
        yield service


def test_copy_goes_on_when_postgresql_is_back(alone, server, tmp_path):
    live, vault, log = tmp_path / "live", tmp_path / "vault.tar", tmp_path / "follow.log"
    with following(alone.data, live, "--vault", str(vault), environment=alone.variables) as process:
        server.kill()
        while WAITS not in log.read_text():
            time.sleep(0.02)
        server.start()
        alone.cli("person", "add", "bob@example.com", "--name", "Bob", "--operator")
        verified = alone.cli("audit", "verify")
        reached(live, verified["events"])
        server.kill()
        while log.read_text().count(WAITS) < 2:
            time.sleep(0.02)
        assert stop(process) == 0
    assert len(log.read_text().splitlines()) == 2
    other = Service(tmp_path / "other")
    told = other.cli("restore", str(live), "--vault", str(vault))
    assert (told["head"], told["withoutKeys"]) == (verified["head"], [])
    other.cli("take-over", "--yes")
    emails = [one["email"] for one in other.cli("person", "list")["people"]]
    assert emails == ["ann@example.com", "bob@example.com"]


@pytest.mark.slow
def test_copy_waits_for_a_standby_until_it_is_promoted(alone, server, tmp_path):
    """The standby lacks the last events: until it is promoted it may get them yet, from then on they are lost."""
    standby, log = new_cluster(), tmp_path / "follow.log"
    standby.follow(server)
    alone.cli("person", "add", "bob@example.com", "--name", "Bob", "--operator")
    both = {name: f"{address},{quote(str(standby.folder), safe='')}" for name, address in alone.environment.items()}
    with following(tmp_path / "two", tmp_path / "live", environment=Service(tmp_path, both).variables) as process:
        reached(tmp_path / "live", alone.cli("audit", "verify")["events"])
        server.kill()
        standby.start()
        try:
            while WAITS not in log.read_text():
                time.sleep(0.02)
            standby.promote()
            assert process.wait(timeout=60) == 3
        finally:
            standby.remove()
    assert len(log.read_text().splitlines()) == 1


def test_backup_that_loses_postgresql_says_so(alone, server, tmp_path):
    vault = tmp_path / "vault.tar"
    with (
        suppress(*FAILURES),
        locked(alone.environment["DOCSMITH_VAULT"], "secrets", "ACCESS EXCLUSIVE") as until_another_waits,
        begun_command(alone, "backup", str(tmp_path / "backup.tar"), "--vault", str(vault)) as (process, said),
    ):
        until_another_waits()
        server.kill()
        assert process.wait(timeout=60) == 1
        said.seek(0)
        (line,) = said.read().splitlines()
        assert line.startswith("docsmith: ")
    assert not vault.exists()
    assert not list(tmp_path.glob(".docsmith-*"))
