"""A log that moves to PostgreSQL and back, and a service that keeps it there."""

import asyncio
import shutil

import pytest

from service.workers.log_watch import LogWatch
from tests.end_to_end.conftest import http  # noqa: F401
from tests.end_to_end.talk import ask, create_job, get_job, job_events, question, text_of
from tests.eventstore.backends import addresses
from tests.service_process import service_in, write_docs


@pytest.fixture
def stores(tmp_path):
    """Variables with the addresses of a log and a vault of this test's own."""
    log, vault = addresses(tmp_path)
    return {"DOCSMITH_STORE": log.text, "DOCSMITH_VAULT": vault.text}


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        service.cli("organization", "create", "--name", "Acme")
        yield service


def test_a_copied_log_is_the_same_and_goes_on(service, stores):
    plain = dict(service.environment)
    data = str(service.data)
    service.environment |= stores
    first = service.cli("store", "copy", data, "env:DOCSMITH_STORE")
    service.environment = plain
    head = service.cli("audit", "verify")["head"]
    service.cli("organization", "create", "--name", "Bolt")
    service.environment = plain | stores
    second = service.cli("store", "copy", data, "env:DOCSMITH_STORE", "--move")
    assert (first["head"], first["moved"], second["added"], second["moved"]) == (head, False, 1, True)
    assert not (service.data / "events.db").exists()
    assert [one["name"] for one in service.cli("organization", "list")["organizations"]] == ["Acme", "Bolt"]
    service.cli("organization", "create", "--name", "Cork")
    assert service.cli("audit", "verify")["events"] == 3

    service.environment = plain
    told = service.run("organization", "list")
    assert told.returncode == 1
    assert "set DOCSMITH_STORE and DOCSMITH_VAULT" in told.stderr

    shutil.rmtree(service.data / "moved")
    service.environment = plain | stores
    service.cli("store", "copy", "env:DOCSMITH_STORE", data, "--move")
    service.environment = plain
    names = [one["name"] for one in service.cli("organization", "list")["organizations"]]
    assert names == ["Acme", "Bolt", "Cork"]


def test_addresses_may_be_in_files(service, stores, tmp_path):
    for name, address in stores.items():
        file = tmp_path / name
        file.write_text(f"{address}\n")
        service.environment[f"{name}_FILE"] = str(file)
    service.cli("store", "copy", str(service.data), "env:DOCSMITH_STORE", "--move")
    assert [one["name"] for one in service.cli("organization", "list")["organizations"]] == ["Acme"]

    service.environment["DOCSMITH_STORE_FILE"] = str(tmp_path / "none")
    told = service.run("organization", "list")
    assert (told.returncode, "DOCSMITH_STORE_FILE names" in told.stderr) == (1, True)
    (tmp_path / "none").touch()
    assert "which is empty" in service.run("organization", "list").stderr


def test_an_interrupted_move_there_is_finished(service, stores):
    data = service.data
    plain = dict(service.environment)
    service.environment |= stores
    service.cli("store", "copy", str(data), "env:DOCSMITH_STORE", "--move")
    for name in ("events.db", "keys.db"):  # as if it had been killed before it set them apart
        (data / "moved" / name).rename(data / name)
    service.cli("organization", "create", "--name", "Bolt")
    assert [one["name"] for one in service.cli("organization", "list")["organizations"]] == ["Acme", "Bolt"]
    (data / "events.db").rename(data / "moved" / "events.db")
    again = service.cli("store", "copy", str(data), "env:DOCSMITH_STORE", "--move")
    assert (again["position"], again["added"], again["moved"]) == (2, 0, True)
    assert {path.name for path in (data / "moved").iterdir()} >= {"events.db", "keys.db"}
    assert not (data / "keys.db").exists()
    service.environment = plain
    assert "set DOCSMITH_STORE and DOCSMITH_VAULT" in service.run("organization", "list").stderr


def test_an_interrupted_move_back_changes_no_log(service, stores):
    data = service.data
    service.environment |= stores
    service.cli("store", "copy", str(data), "env:DOCSMITH_STORE", "--move")
    service.cli("store", "copy", "env:DOCSMITH_STORE", str(data))  # all of a move but its last step
    service.cli("organization", "create", "--name", "Bolt")
    moved = service.cli("store", "copy", "env:DOCSMITH_STORE", str(data), "--move")
    assert (moved["position"], moved["added"]) == (2, 1)
    for name in stores:
        del service.environment[name]
    assert [one["name"] for one in service.cli("organization", "list")["organizations"]] == ["Acme", "Bolt"]


@pytest.mark.parametrize(
    ("source", "target", "options", "says"),
    [
        ("env:NOWHERE", "new", (), "The environment variable NOWHERE is not set"),
        ("mysql://u:hunter2@h/d", "new", (), "begins with postgresql://"),
        ("postgresql://u:hunter2@h/d?statement_cache_size=x", "new", (), "is a number"),
        ("nowhere", "new", (), "there is no log here"),
        ("data", "new", ("--move",), "--move is for a data folder and a database"),
    ],
)
def test_a_copy_that_cannot_be_is_refused(service, tmp_path, source, target, options, says):
    service.environment["DOCSMITH_VAULT"] = "postgresql://u:hunter2@h/d"
    source = source if ":" in source else str(tmp_path / source)
    told = service.run("store", "copy", source, str(tmp_path / target), *options)
    assert told.returncode == 1
    assert says in told.stderr
    assert "hunter2" not in told.stderr + told.stdout
    assert not (tmp_path / "new" / "events.db").exists()


def test_a_store_without_a_vault_is_refused(service, stores):
    service.environment["DOCSMITH_STORE"] = stores["DOCSMITH_STORE"]
    told = service.run("organization", "list")
    assert (told.returncode, "DOCSMITH_STORE needs DOCSMITH_VAULT" in told.stderr) == (1, True)
    service.environment |= stores
    told = service.run("organization", "list")
    assert (told.returncode, "has a log of its own" in told.stderr) == (1, True)


async def test_a_service_stops_appending_to_a_log_that_is_moved(tmp_path):
    held = asyncio.get_running_loop().create_future()
    watch = LogWatch(tmp_path, held.set_result)
    watch.in_other_use = lambda: "the log is in other use"
    running = asyncio.create_task(watch.run())
    assert "the log is in other use: nothing is appended here" in await held
    assert watch.not_ready == "the log is in other use"
    running.cancel()


@pytest.mark.slow
async def test_a_service_keeps_its_log_in_postgresql(http, tmp_path, stores):  # noqa: F811 - the fixture
    with service_in(tmp_path) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        service.environment |= stores
        await asyncio.to_thread(service.cli, "store", "copy", str(service.data), "env:DOCSMITH_STORE", "--move")
        await asyncio.to_thread(service.start)
        chunks = await ask(http, service, question("How are retries configured?"))
        assert text_of(chunks)
        job = await create_job(http, service, 'replace "tried" with "run" in retry.md')
        await job_events(http, service, job["id"])
        before = await asyncio.to_thread(service.cli, "audit", "verify")
        with service_in(tmp_path / "second", stores) as other:
            told = await asyncio.to_thread(
                other.run, "store", "copy", "env:DOCSMITH_STORE", str(tmp_path / "back"), "--move"
            )
            assert told.returncode == 1
            assert "another service uses the log" in told.stderr
            other.project_id, other.admin_key = service.project_id, service.admin_key
            await asyncio.to_thread(other.start)
            assert (await get_job(http, other, job["id"]))["outcome"] == "pull_request"
        service.kill()
        await asyncio.to_thread(service.start)
        assert (await get_job(http, service, job["id"]))["outcome"] == "pull_request"
        after = await asyncio.to_thread(service.cli, "audit", "verify")
        assert (after["sound"], after["events"] >= before["events"] > 20) == (True, True)
