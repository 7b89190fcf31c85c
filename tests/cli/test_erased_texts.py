"""A vault that is older than an erasure: no reader shows what was erased, whichever comes first."""

import shutil
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing

import pytest

from tests.cli.test_audit import AS_ANYBODY
from tests.service_process import service_in, write_docs


@pytest.fixture
def service(tmp_path):
    """What Ermentrude asked was erased; then the vault of before was put back."""
    with service_in(tmp_path) as service:
        service.cli("organization", "create", "--name", "Acme")
        docs = write_docs(tmp_path / "docs")
        service.cli("project", "create", "--name", "kite", "--repository", str(docs), "--domain", "kite")
        for name in ("Ermentrude", "Balthasar"):
            service.cli("job", "create", f"Ask {name} to dance")
        (first, _) = service.cli("audit", "show", "--category", "job")["events"]
        kept = tmp_path / "kept.db"
        shutil.copyfile(service.data / "keys.db", kept)
        service.cli("audit", "erase", first["stream"], "--yes")
        for name in ("keys.db-wal", "keys.db-shm"):
            (service.data / name).unlink(missing_ok=True)
        shutil.copyfile(kept, service.data / "keys.db")
        yield service


def everything(folder):
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()).decode(errors="replace")


@pytest.mark.parametrize("command", ["show", "export", "csv", "job"])
def test_a_reader_repeats_erasures_first(service, tmp_path, command):
    out = tmp_path / "out"
    match command:
        case "show":
            shown = service.run("audit", "show", "--json").stdout
        case "export" | "csv":
            kind = "csv" if command == "csv" else "jsonl"
            service.cli("audit", "export", "--output", str(out), "--personal", "--format", kind)
            shown = everything(out)
        case _:
            (service.data / "views.db").unlink()  # they are rebuilt from what can be read
            shown = service.run("job", "list", "--json").stdout
    assert "Balthasar" in shown
    assert "Ermentrude" not in shown
    assert "Ermentrude" not in everything(service.data)


def test_a_copy_of_the_vault_has_no_key_that_was_erased(service, tmp_path):
    service.cli("backup", str(tmp_path / "backup.tar"), "--vault", str(tmp_path / "vault.tar"))
    with tarfile.open(tmp_path / "vault.tar") as archive:
        archive.extract("keys.db", tmp_path / "unpacked", filter="data")
    with closing(sqlite3.connect(tmp_path / "unpacked" / "keys.db")) as db:
        assert db.execute("SELECT count(key), count(erased_at) FROM keys").fetchall() == [(1, 1)]


@pytest.mark.skipif(bool(AS_ANYBODY) and shutil.which("setpriv") is None, reason="root may write everywhere")
def test_reader_of_a_read_only_folder_hides_erased_text(service):
    for file in service.data.rglob("*"):
        file.chmod(0o500 if file.is_dir() else 0o400)
    service.data.chmod(0o500)
    try:
        done = subprocess.run(
            [*AS_ANYBODY, sys.executable, "-m", "service", "audit", "show", "--json", "--data", str(service.data)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        service.data.chmod(0o700)
        for file in service.data.rglob("*"):
            file.chmod(0o700 if file.is_dir() else 0o600)
    assert done.returncode == 0, done.stderr
    assert "Balthasar" in done.stdout
    assert "Ermentrude" not in done.stdout
