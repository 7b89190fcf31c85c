"""A backup of a service that runs, and a service from a backup."""

import asyncio
import sqlite3
import stat
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from eventstore import verify
from service.queries.installation import measure_disk
from tests.cli.test_following import following, stop
from tests.end_to_end.conftest import http  # noqa: F401
from tests.end_to_end.talk import ask, create_job, get_job, job_events, question, recorded, text_of
from tests.eventstore.shapes import noted, opened
from tests.service_process import Service, service_in, write_docs


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path / "one") as service:
        service.set_up(write_docs(tmp_path / "docs"))
        service.start()
        yield service


def restored(service: Service, folder: Path, *options: str) -> Service:
    """A service like this one, from a backup."""
    other = Service(folder / "data", project_id=service.project_id, domain=service.domain)
    other.admin_key, other.assistant_key = service.admin_key, service.assistant_key
    other.cli("restore", *options)
    other.cli("take-over", "--yes")
    return other


async def test_service_starts_from_a_backup_made_while_it_served(service, http, tmp_path):  # noqa: F811
    file, vault = tmp_path / "backup.tar", tmp_path / "vault.tar"
    job = await create_job(http, service, 'Append "Kites rise." to index.md')
    await job_events(http, service, job["id"])
    title = (await get_job(http, service, job["id"]))["title"]
    asked = await ask(http, service, question("How do I install Kite?"))
    old = await ask(http, service, question("Where does Ermentrude live?"))
    erased = f"thread-{old[0]['X-Thread-Id']}"
    service.cli("audit", "checkpoint")
    service.cli("backup", str(tmp_path / "first.tar"), "--vault", str(vault))
    service.cli("audit", "erase", erased, "--yes")

    made = service.cli("backup", str(file))
    assert (made["position"], made["vault"]) == (service.cli("audit", "verify")["events"] - 1, None)
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(vault.stat().st_mode) == 0o600
    with tarfile.open(file) as archive:
        names = archive.getnames()
    assert names[-1] == "manifest.json"
    assert not [name for name in names if "keys" in name or "views" in name or name == "checkpoint.key"]
    assert not [name for name in sorted(tmp_path.rglob("*")) if name.name.startswith(".docsmith")]

    told = Service(tmp_path / "two" / "data").cli("restore", str(file), "--vault", str(vault), "--dry-run")
    assert (told["restored"], told["sound"], told["erasuresRepeated"]) == (False, True, 1)
    assert not (tmp_path / "two").exists()

    other = restored(service, tmp_path / "two", str(file), "--vault", str(vault))
    service.stop()
    assert other.cli("audit", "verify")["sound"]
    shown = other.cli("audit", "show", "--stream", erased)["events"]  # the vault was older than the erasure
    assert [one["erased"] for one in shown if one["type"] == "message-posted"] == [True]
    other.start()
    try:
        assert (await get_job(http, other, job["id"]))["title"] == title
        await recorded(other, f"site-{other.domain}", until="site-indexed", after=made["position"])
        found = await ask(http, other, question("And the retries?", threadId=asked[0]["X-Thread-Id"]))
        assert text_of(found)
        again = await create_job(http, other, 'Append "Kites sink." to index.md')
        await job_events(http, other, again["id"])
        again = await get_job(http, other, again["id"])
        assert again["status"] == "completed"
        async with http.get(again["prLink"]) as page:
            assert page.status == 200
        async with http.get(f"{other.url}/readyz") as response:
            assert response.status == 200
    finally:
        other.stop()
    assert other.run("restore", str(file)).returncode == 1

    bare = restored(service, tmp_path / "three", str(file))  # without the vault
    shown = bare.cli("audit", "show", "--type", "message-posted")["events"]
    assert all(one["erased"] for one in shown)
    assert "[erased]" in bare.run("job", "show", job["id"]).stdout


def test_nothing_is_overwritten_and_nothing_bad_is_restored(tmp_path):
    service = Service(tmp_path / "data")
    file = tmp_path / "backup.tar"
    assert service.run("backup", str(file)).returncode == 1  # there is nothing
    service.cli("organization", "create", "--name", "Acme")
    service.cli("backup", str(file))
    for command in ("backup", "restore"):
        told = service.cli(command, str(file), status=1)
        assert (told["code"], "is there already" in told["detail"]) == ("conflict", True)
    for more in (
        (str(tmp_path / "no" / "b.tar"),),
        (str(tmp_path / "b.tar"), "--vault", str(tmp_path / "no" / "v.tar")),
    ):
        assert str(tmp_path / "no") in service.cli("backup", *more, status=1)["detail"]

    other, bad, content = Service(tmp_path / "other"), tmp_path / "bad.tar", file.read_bytes()
    changed = content.replace(b"Acme", b"Evil", 1)
    for what in (changed, content[:-20_000], content[: len(content) // 2], b"", b"nonsense" * 1000):
        bad.write_bytes(what)
        assert "problem" in other.cli("restore", str(bad), status=3), len(what)
    for name in ("../evil", "/evil", "hosted/x.git/../../../evil", "evil"):
        with tarfile.open(bad, "w") as archive:
            archive.add(file, name)
        assert "no place" in other.cli("restore", str(bad), status=3)["problem"]
    assert not (tmp_path / "other").exists()
    assert not list(tmp_path.glob(".docsmith*"))
    assert other.run("restore", str(tmp_path / "nowhere.tar")).returncode == 1
    vault = other.cli("restore", str(file), "--vault", str(file), status=3)
    assert "no place" in vault["problem"]
    assert other.cli("restore", str(file), "--dry-run")["sound"]


def test_a_folder_of_backups_keeps_the_last_ones(tmp_path):
    service, folder = Service(tmp_path / "data"), tmp_path / "backups"
    service.cli("organization", "create", "--name", "Acme")
    assert "make it first" in service.run("backup", str(folder), "--keep", "2").stderr
    folder.mkdir()
    for name in ("docsmith-2026-01-01T00-00-00Z.tar", "docsmith-2026-01-02T00-00-00Z.tar", "mine.tar", "notes.txt"):
        (folder / name).write_text("kept")
    made = service.cli("backup", str(folder), "--keep", "2")
    new = Path(made["file"])
    assert made["deleted"] == [str(folder / "docsmith-2026-01-01T00-00-00Z.tar")]
    assert sorted(file.name for file in folder.iterdir()) == [
        "docsmith-2026-01-02T00-00-00Z.tar", new.name, "mine.tar", "notes.txt",
    ]  # fmt: skip
    assert Service(tmp_path / "other").cli("restore", str(new), "--dry-run")["sound"]
    assert service.run("backup", str(folder), "--keep", "0").returncode == 2


def test_a_folder_takes_several_backups_within_a_second(tmp_path):
    service, folder = Service(tmp_path / "data"), tmp_path / "backups"
    service.cli("organization", "create", "--name", "Acme")
    folder.mkdir()
    made = [service.cli("backup", str(folder))["file"] for _ in range(6)]
    assert made == sorted(set(made))


def test_litestream_log_is_sound_and_its_tables_not_backed_up(tmp_path):
    service, file = Service(tmp_path / "data"), tmp_path / "backup.tar"
    service.cli("organization", "create", "--name", "Acme")
    change(
        service.data / "events.db",
        "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)",
        "CREATE TABLE _litestream_lock (id INTEGER)",
        "INSERT INTO _litestream_seq VALUES (1, 50)",
    )
    assert service.cli("audit", "verify")["sound"]
    service.cli("backup", str(file))
    with tarfile.open(file) as archive:
        log = archive.extractfile("events.db")
        assert log is not None
        assert b"_litestream" not in log.read()
    change(service.data / "events.db", "CREATE TRIGGER more AFTER INSERT ON _litestream_seq BEGIN SELECT 1; END")
    assert not service.cli("audit", "verify", status=3)["sound"]


def test_a_new_log_that_litestream_came_to_first_is_still_made(tmp_path):
    change(tmp_path / "events.db", "CREATE TABLE _litestream_lock (id INTEGER)")

    async def begin() -> None:
        async with await opened(tmp_path) as store:
            await store.append("note-1", [noted(1)], expected_version=0)

    asyncio.run(begin())
    assert verify(tmp_path / "events.db").is_sound


def change(log: Path, *statements: str) -> None:
    with closing(sqlite3.connect(log)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def test_repositories_of_a_shared_folder_are_in_the_backup(tmp_path):
    with service_in(tmp_path / "one") as service:
        shared = tmp_path / "shared"
        service.environment["DOCSMITH_INSTANCES__HOSTED_FOLDER"] = str(shared)
        service.set_up(write_docs(tmp_path / "docs"), changes=True)  # a folder of its own
        name = f"{service.project_id}.git"
        assert (shared / name / "HEAD").exists()
        file = tmp_path / "backup.tar"
        service.cli("backup", str(file))
        with tarfile.open(file) as archive:
            assert f"hosted/{name}/HEAD" in archive.getnames()
        hosted = {part.name: part.size for part in measure_disk(service.data, shared).parts}["Hosted repositories"]
        assert hosted >= sum(one.stat().st_size for one in (shared / name).rglob("*") if one.is_file())
        settings = tmp_path / "docsmith.toml"
        settings.write_text(f'[instances]\nhosted_folder = "{shared}"\n')
        with following(service.data, tmp_path / "copy", "--config", str(settings)) as process:
            assert stop(process) == 0
        assert (tmp_path / "copy" / "hosted" / name / "HEAD").exists()
