"""What killed processes leave is removed by the next run or start, unless its owner lives."""

import fcntl
import os
from contextlib import contextmanager

import pytest

from tests.service_process import Service, service_in, write_docs


@contextmanager
def held(folder):
    """As if the process that works in there lived."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def left(parent, name):
    folder = parent / name
    folder.mkdir(parents=True)
    for file in ("keys.db", "checkpoint.key", "files.tar"):
        (folder / file).write_text("secret")
    return folder


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path / "data")
    service.cli("organization", "create", "--name", "Acme")
    yield service
    service.kill()


def test_a_backup_removes_what_a_killed_one_left(service, tmp_path):
    place, elsewhere = tmp_path / "backups", tmp_path / "vaults"
    dead = [left(place, ".docsmith-backup-a"), left(elsewhere, ".docsmith-vault-b")]
    alive = left(place, ".docsmith-backup-c")
    with held(alive):
        service.cli("backup", str(place / "one.tar"), "--vault", str(elsewhere / "vault.tar"))
        assert not any(folder.exists() for folder in dead)
        assert alive.exists()
    service.cli("backup", str(place / "two.tar"))
    assert not alive.exists()


def test_a_restore_removes_what_a_killed_one_left(service, tmp_path):
    file = tmp_path / "backup.tar"
    service.cli("backup", str(file))
    dead, alive = left(tmp_path / "new", ".docsmith-restore-a"), left(tmp_path / "new", ".docsmith-restore-b")
    other = Service(tmp_path / "new" / "data")
    with held(alive):
        other.cli("restore", str(file))
    assert (dead.exists(), alive.exists()) == (False, True)


def test_doctor_names_what_was_left_and_a_start_removes_it(service, tmp_path):
    dead, alive = left(tmp_path, ".docsmith-restore-a"), left(tmp_path, ".docsmith-backup-b")
    with held(alive):
        found = [one for one in service.cli("doctor", status=1)["findings"] if one["name"] == "leftovers"]
        assert [(one["level"], str(dead) in one["says"]) for one in found] == [("wrong", True)]
        assert dead.exists()
        service.start()
        assert (dead.exists(), alive.exists()) == (False, True)


@pytest.mark.parametrize("name", [".files-a", ".0123456789ab-0123.building-a", ".0123456789ab-0123.removed"])
@pytest.mark.slow
def test_a_start_and_the_next_indexing_clear_a_sites_folder(tmp_path, name):
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"))
        place = service.data / "index" / "kite"
        dead, alive = left(place, name), left(place, f"{name}2")
        archive = place / ".0123456789ab-0123.tar"
        archive.write_text("")
        with held(alive):
            service.start()
            assert (dead.exists(), alive.exists(), archive.exists()) == (False, True, False)
            service.stop()
        service.cli("index", "kite")
        assert not alive.exists()
        assert [path.name for path in place.iterdir() if path.name.startswith(".") and path.is_dir()] == []


def test_a_start_removes_a_repository_that_was_never_whole(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"))
        dead = left(service.data / "hosted", ".0123.git.abcd.new")
        alive = left(service.data / "hosted", ".4567.git.abcd.new")
        with (service.data / "hosted" / ".4567.git.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            service.start()
        assert (dead.exists(), alive.exists()) == (False, True)


def test_a_link_that_is_named_as_a_leftover_is_not_followed(service, tmp_path):
    place = tmp_path / "other"
    left(place, "kept")
    (tmp_path / ".docsmith-restore-x").symlink_to(place)
    service.start()
    assert (place / "kept" / "keys.db").exists()
