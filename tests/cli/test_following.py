"""A folder that follows a service: what it has after a kill of both, and what it refuses."""

import asyncio
import fcntl
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from eventstore import verify
from tests.end_to_end.conftest import http  # noqa: F401
from tests.end_to_end.talk import ask, create_job, get_job, job_events, question, recorded, text_of
from tests.eventstore.shapes import noted, opened
from tests.service_process import Service, begun, service_in, write_docs

KILLS = int(os.environ.get("FOLLOW_KILLS", "10"))


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path / "one") as service:
        service.set_up(write_docs(tmp_path / "docs"))
        service.start()
        yield service


@contextmanager
def following(data: Path, folder: Path, *options: str, environment: Mapping[str, str] | None = None):
    """``docsmith backup FOLDER --follow``, once it has begun to copy; killed at the end if it has not ended."""
    command = ["backup", str(folder), "--follow", "--data", str(data), *options]
    with (folder.parent / "follow.log").open("ab") as log:
        process = begun(command, environment=environment or {}, stdout=subprocess.PIPE, stderr=log)
        try:
            line = process.stdout.readline()
            assert "a copy of" in line, (folder.parent / "follow.log").read_text()
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
            process.stdout.close()


def stop(process) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=60)


async def some_events(folder: Path, *streams: str) -> None:
    """One in each stream, sealed."""
    folder.mkdir(mode=0o700, exist_ok=True)  # noqa: ASYNC240 - nothing else runs
    async with await opened(folder) as store:
        for stream in streams:
            await store.append(stream, [noted(1, "someone's words")], expected_version=0)


async def erase(folder: Path, subject: str) -> None:
    async with await opened(folder) as store:
        await store.erase(subject)


def key_of(folder: Path, subject: str) -> bytes:
    with closing(sqlite3.connect(folder / "keys.db")) as db:
        return db.execute("SELECT key FROM keys WHERE subject = ?", (subject,)).fetchone()[0]


async def caught_up(service: Service, live: Path) -> None:
    """All that was there before is in the copies, of the log, the repositories and the vault.

    A look copies the log first. So a second thing that is in the copy tells that the look for the first one has ended.
    """
    for _ in range(2):
        key = service.cli("key", "create", "--kind", "admin")["id"]
        await recorded(Service(live), f"key-{key}", until="key-created")


@pytest.mark.slow
async def test_killing_both_loses_nothing_that_was_copied(service, http, tmp_path):  # noqa: F811
    live, vault = tmp_path / "live", tmp_path / "vault.tar"
    with following(service.data, live, "--vault", str(vault)):
        secret = await ask(http, service, question("Where does Ermentrude live?"))
        erased = f"thread-{secret[0]['X-Thread-Id']}"
        asked = await ask(http, service, question("How do I install Kite?"))
        job = await create_job(http, service, 'Append "Kites rise." to index.md')
        await job_events(http, service, job["id"])
        await caught_up(service, live)
        service.cli("audit", "checkpoint")
        service.cli("audit", "erase", erased, "--yes")  # it ends: a copy keeps no WAL from being emptied of the key
        await caught_up(service, live)
        service.kill()
    assert stat.S_IMODE(live.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) & 0o077 == 0 for file in live.rglob("*"))

    other = Service(tmp_path / "two" / "data", project_id=service.project_id, domain=service.domain)
    other.admin_key, other.assistant_key = service.admin_key, service.assistant_key
    told = other.cli("restore", str(live), "--vault", str(vault))
    other.cli("take-over", "--yes")
    assert (told["sound"], told["withoutKeys"], told["erasuresRepeated"]) == (True, [], 1)
    verified = other.cli("audit", "verify")
    assert (verified["sound"], bool(verified["checkpoints"])) == (True, True)
    other.start()
    try:
        done = await get_job(http, other, job["id"])
        assert done["status"] == "completed"
        async with http.get(other.url + urlsplit(done["prLink"]).path) as page:
            assert page.status == 200
        await recorded(other, f"site-{other.domain}", until="site-indexed", after=told["position"])
        assert text_of(await ask(http, other, question("And the retries?", threadId=asked[0]["X-Thread-Id"])))
        more = await create_job(http, other, 'Append "Kites sink." to index.md')
        await job_events(http, other, more["id"])
        assert (await get_job(http, other, more["id"]))["status"] == "completed"
    finally:
        other.stop()
    shown = other.cli("audit", "show", "--type", "message-posted")["events"]
    assert {one["stream"] for one in shown if one["erased"]} == {erased}


def test_the_copy_of_the_vault_forgets_what_is_erased(tmp_path):
    asyncio.run(some_events(tmp_path / "data", "note-1", "note-2"))
    live, vault = tmp_path / "live", tmp_path / "vault.tar"
    with following(tmp_path / "data", live, "--vault", str(vault)) as process:
        assert stop(process) == 0
    key = key_of(tmp_path / "data", "note-1")
    assert key in vault.read_bytes()
    asyncio.run(erase(tmp_path / "data", "note-1"))
    with following(tmp_path / "data", live, "--vault", str(vault)) as process:
        assert stop(process) == 0
    assert key not in vault.read_bytes()
    assert key_of(tmp_path / "data", "note-2") in vault.read_bytes()
    assert not list(tmp_path.glob(".docsmith*"))


def test_no_copy_of_the_vault_replaces_one_that_was_begun_later(tmp_path):
    asyncio.run(some_events(tmp_path / "data", "note-1"))
    vault = tmp_path / "vault.tar"
    with following(tmp_path / "data", tmp_path / "live", "--vault", str(vault)) as process:
        assert stop(process) == 0
    vault.unlink()
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)  # as whoever copies the vault to this folder does, from its reading on
    with following(tmp_path / "data", tmp_path / "live", "--vault", str(vault)) as process:
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        assert not vault.exists()
        os.close(held)
        assert process.wait(timeout=60) == 0
    assert vault.exists()


def test_copy_equals_the_log_however_often_writers_are_killed(tmp_path):
    data, live, vault = tmp_path / "data", tmp_path / "live", tmp_path / "vault.tar"
    asyncio.run(some_events(data, "note-1"))
    with following(data, live, "--vault", str(vault)) as process:
        command = [sys.executable, "-m", "tests.eventstore.killed", str(data), str(KILLS), "1"]
        written = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        assert stop(process) == 0
    told = [json.loads(line) for line in written.stdout.splitlines()]
    assert verify(live / "events.db").position >= max(position for *_, position in told)
    with following(data, live, "--vault", str(vault)) as process:
        # What the last writer had stored, but not told anybody, is found in its WAL by whoever opens the log next.
        assert stop(process) == 0
    copy = verify(live / "events.db")
    assert copy == verify(data / "events.db")
    restored = Service(tmp_path / "other").cli("restore", str(live), "--vault", str(vault))
    assert (restored["position"], restored["withoutKeys"]) == (copy.position, [])


def test_checkpoint_of_an_event_that_is_not_copied_yet_is_left_out(tmp_path):
    """A follower was killed between the two."""
    data, live, other = tmp_path / "data", tmp_path / "live", Service(tmp_path / "other")
    asyncio.run(some_events(data, "note-1"))
    Service(data).cli("audit", "checkpoint")
    with following(data, live) as process:
        assert stop(process) == 0
    asyncio.run(some_events(data, "note-2"))
    Service(data).cli("audit", "checkpoint")
    lines = (data / "checkpoints.jsonl").read_bytes()
    (live / "checkpoints.jsonl").write_bytes(lines)
    other.cli("restore", str(live))
    assert (other.data / "checkpoints.jsonl").read_bytes() == lines.splitlines(keepends=True)[0]
    assert other.cli("audit", "verify")["sound"]


async def test_repositories_are_copied_as_they_change(tmp_path):
    data, live = tmp_path / "data", tmp_path / "live"
    await some_events(data, "note-1")
    one, two = data / "hosted" / "one.git", data / "hosted" / "two.git"
    files = ("HEAD", "refs/heads/main", "refs/heads/docs/x", "objects/ab/cdef", "objects/cd/ef01", "pulls/1.json")
    for file in (*(one / name for name in files), two / "HEAD"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{file.name} as it was")
    (tmp_path / "secret").write_text("of somebody else")
    (one / "pulls" / "2.json").symlink_to(tmp_path / "secret")
    for is_new in (True, False):  # by one who has seen them before, and by one who has not
        with following(data, live) as process:
            for number in range(2):  # the second tells that the look for the first has ended
                await some_events(data, f"note-{is_new}{number}")
                await recorded(Service(live), f"note-{is_new}{number}", until="noted")
            assert contents(live / "hosted") == contents(data / "hosted")
            (one / "refs" / "heads" / "main").write_text(f"of another commit, {is_new}")
            (one / "refs" / "heads" / "docs" / "x").unlink(missing_ok=True)
            (one / "objects" / "ab" / "cdef").unlink(missing_ok=True)
            (one / "objects" / "pack").mkdir(exist_ok=True)
            (one / "objects" / "pack" / f"{is_new}.pack").write_text("what was loose")
            (one / "objects" / "pack" / "tmp_pack").write_text("half of ")
            (one / "refs" / "heads" / "main.lock").write_text("")
            if two.exists():
                (two / "HEAD").unlink()
                two.rmdir()
            await some_events(data, f"note-{is_new}-last")
            assert stop(process) == 0
        assert contents(live / "hosted") == contents(data / "hosted")
    assert "refs/heads/docs/x" not in contents(live / "hosted" / "one.git")
    assert not (live / "hosted" / "two.git").exists()


def contents(folder: Path) -> dict[str, str]:
    """Of what is finished in it."""
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink() and file.name not in ("tmp_pack", "main.lock")
    }


def test_a_copy_that_was_killed_goes_on_where_it_was(tmp_path):
    data, live = tmp_path / "data", tmp_path / "live"
    asyncio.run(some_events(data, *(f"note-{number}" for number in range(50))))
    with following(data, live):
        pass  # killed, with the first events on their way
    asyncio.run(some_events(data, "note-more"))
    with following(data, live) as process:
        assert stop(process) == 0
    assert verify(live / "events.db").position == verify(data / "events.db").position


def test_unsuitable_target_of_a_copy_is_refused(tmp_path):
    data, live = tmp_path / "data", tmp_path / "live"
    service = Service(data)
    assert "no log here" in service.run("backup", str(live), "--follow").stderr
    asyncio.run(some_events(data, "note-1"))
    inside = service.run("backup", str(data / "live"), "--follow")
    assert (inside.returncode, "is in the data folder" in inside.stderr) == (1, True)
    together = service.run("backup", str(live), "--follow", "--vault", str(live / "vault.tar"))
    assert (together.returncode, "keep the vault apart" in together.stderr, live.exists()) == (1, True, False)
    full = service.run("backup", str(tmp_path), "--follow")
    assert (full.returncode, "is not empty" in full.stderr) == (1, True)
    with following(data, live) as process:
        again = service.run("backup", str(live), "--follow")
        assert (again.returncode, "by another process" in again.stderr) == (1, True)
        assert stop(process) == 0
    other = tmp_path / "other"
    asyncio.run(some_events(other, "note-2", "note-3"))
    mixed = Service(other).cli("backup", str(live), "--follow", status=3)
    assert "is of another log" in mixed["problem"]
    assert Service(tmp_path / "new").cli("restore", str(live), "--dry-run")["position"] == mixed["position"]
    with closing(sqlite3.connect(live / "events.db")) as db:
        db.execute("DROP TRIGGER IF EXISTS events_are_not_changed")
        db.execute("DELETE FROM events WHERE position = 1")
        db.commit()
    assert "not sound" in service.run("backup", str(live), "--follow").stderr
    assert "not sound" in Service(tmp_path / "new").cli("restore", str(live), status=3)["problem"]
    assert not (tmp_path / "new").exists()


def test_a_log_that_was_changed_is_not_copied(tmp_path):
    data, live = tmp_path / "data", tmp_path / "live"
    asyncio.run(some_events(data, "note-1", "note-2", "note-3"))
    with closing(sqlite3.connect(data / "events.db")) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE events SET stream = 'note-9' WHERE position = 2")
        db.commit()
    assert "not sound at position 2" in Service(data).cli("backup", str(live), "--follow", status=3)["problem"]
    assert verify(live / "events.db").position == 0


def test_vault_older_than_its_log_is_reported(tmp_path):
    data, live, vault = tmp_path / "data", tmp_path / "live", tmp_path / "vault.tar"
    asyncio.run(some_events(data, "note-1", "note-erased"))
    with following(data, live, "--vault", str(vault)) as process:
        assert stop(process) == 0
    asyncio.run(some_events(data, "note-2", "note-3", "note-4", "note-5", "note-6"))
    with following(data, live) as process:
        assert stop(process) == 0
    other = Service(tmp_path / "other")
    assert other.cli("restore", str(live), "--vault", str(vault), "--dry-run")["withoutKeys"] == [
        f"note-{number}" for number in range(2, 7)
    ]
    said = other.run("restore", str(live), "--vault", str(vault)).stdout
    assert "can never decrypt note-2, note-3, note-4 and 2 more" in said
