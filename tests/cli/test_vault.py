"""``docsmith vault``, and a service on a wrapped vault."""

import asyncio
import json
import shutil
from contextlib import closing

import pytest

from eventstore.postgres.connections import Address, Connections
from tests.end_to_end.conftest import http  # noqa: F401
from tests.end_to_end.talk import ask, question, text_of
from tests.eventstore.backends import addresses
from tests.eventstore.cluster import started_cluster
from tests.service_process import service_in, write_docs

SECRET = "a secret of all instances, 40 characters"


@pytest.fixture
def stores(tmp_path):
    log, vault = addresses(tmp_path)
    return {"DOCSMITH_STORE": log.text, "DOCSMITH_VAULT": vault.text, "DOCSMITH_VAULT_SECRET": SECRET}


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        docs = write_docs(tmp_path / "docs")
        service.cli("organization", "create", "--name", "Acme")
        service.cli("project", "create", "--name", "kite", "--repository", str(docs), "--domain", "kite")
        service.cli("job", "create", "Ask Ermentrude to dance")
        yield service


def findings(service):
    found = service.run("doctor", "--json")
    return {one["name"]: one for one in json.loads(found.stdout)["findings"] if one["level"] != "ok"}


def jobs(service):
    return service.run("audit", "show", "--category", "job", "--json").stdout


def moved(service, stores, *options):
    service.environment |= stores
    service.cli("store", "copy", str(service.data), "env:DOCSMITH_STORE", "--move", *options)
    shutil.rmtree(service.data / "moved")


def test_a_moved_log_has_a_wrapped_vault_and_comes_back(service, stores):
    moved(service, stores, "--wrap")
    (key,) = service.cli("vault", "status")["wrappingKeys"]
    assert (key["state"], key["keys"] > 0, key["here"]) == ("current", True, True)
    assert "Ermentrude" in jobs(service)
    assert "cluster" not in findings(service)
    service.cli("store", "copy", "env:DOCSMITH_STORE", str(service.data.parent / "copy"))
    service.cli("store", "copy", "env:DOCSMITH_STORE", str(service.data), "--move")
    for name in stores:
        del service.environment[name]
    assert "Ermentrude" in jobs(service)
    backup = service.data.parent / "backup.tar"
    service.cli("backup", str(backup), "--vault", str(service.data.parent / "vault.tar"))
    shutil.rmtree(service.data)
    service.cli("restore", str(backup), "--vault", str(service.data.parent / "vault.tar"))
    assert "Ermentrude" in jobs(service)


def test_wrapping_keys_are_lost_and_put_back_from_a_copy(service, stores, tmp_path):
    moved(service, stores)
    assert "not wrapped" in service.run("vault", "export", str(tmp_path / "none.json")).stderr
    assert findings(service)["cluster"]["mend"].startswith("docsmith vault wrap")
    first = service.cli("vault", "wrap")
    assert service.cli("vault", "wrap") == first
    found = findings(service)
    assert "cluster" not in found
    assert found["wrapping keys"]["level"] == "wrong"
    assert "there is no copy" in found["wrapping keys"]["says"]
    copy = tmp_path / "wrapping-keys.json"
    assert service.cli("vault", "export", str(copy))["ids"] == [first["id"]]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert "is there already" in service.run("vault", "export", str(copy)).stderr
    assert "wrapping keys" not in findings(service)
    shutil.rmtree(service.data / "wrapping-keys")
    assert "docsmith vault import" in service.run("audit", "show", "--category", "job").stderr
    assert "lacks the wrapping key" in service.run("vault", "rotate").stderr
    started = service.run("serve", "--port", "0")
    assert (started.returncode, "docsmith vault import FILE" in started.stderr) == (1, True)
    assert service.cli("vault", "import", str(copy))["ids"] == [first["id"]]
    assert "Ermentrude" in jobs(service)


@pytest.fixture
def server():
    cluster = started_cluster()
    yield cluster
    cluster.remove()


def keys_in_files(server, keys):
    """Return how many of the keys are in the files of a server's tables."""
    with closing(Connections.open(Address(server.address))) as connections:
        connections.run_plainly(_executed(connections, "CHECKPOINT"))
    content = b"".join(file.read_bytes() for file in (server.data / "base").rglob("*") if file.is_file())
    return sum(key in content for key in keys)


async def _executed(connections, sql):
    async with connections.pooled(begins=False) as connection:
        await connection.execute(sql)


def test_wrapping_leaves_no_key_in_the_files_of_the_database(service, server):
    with closing(Connections.open(Address(server.address))) as connections:
        for schema in ("log", "vault"):
            connections.fetch(f"CREATE SCHEMA {schema}")
        log, vault = (f"{server.address}&search_path={schema}" for schema in ("log", "vault"))
        moved(service, {"DOCSMITH_STORE": log, "DOCSMITH_VAULT": vault, "DOCSMITH_VAULT_SECRET": SECRET})
        keys = [bytes(key) for (key,) in connections.fetch("SELECT key FROM vault.keys WHERE key IS NOT NULL")]
        connections.fetch("ALTER TABLE vault.keys ALTER COLUMN key SET STATISTICS 100")  # as before there was a limit
        connections.fetch("ANALYZE vault.keys")
        connections.fetch("ALTER TABLE vault.keys ALTER COLUMN key TYPE bytea")
        assert keys_in_files(server, keys) == len(keys) > 0
        service.cli("vault", "wrap")
        assert keys_in_files(server, keys) == 0
        shown = service.run("vault", "wrap").stdout
        assert "write-ahead log up to now have the keys as they were" in shown
        assert "Ermentrude" in jobs(service)
        connections.fetch("UPDATE vault.wrapping_keys SET rewritten_at = NULL")  # as an interrupted command leaves it
        assert "Files of the database may still have keys" in service.run("doctor").stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not a copy"),
        ("{}", "is not a copy"),
        ('{"format": "docsmith-wrapping-keys-9", "keys": {}}', "does not know"),
        ('{"format": "docsmith-wrapping-keys-1", "keys": {}}', "no wrapping key that this vault uses"),
        ('{"format": "docsmith-wrapping-keys-1", "keys": {"ID": "00"}}', "does not have the key"),
        ('{"format": "docsmith-wrapping-keys-1", "keys": {"ID": "zz"}}', "is not a copy"),
    ],
)
def test_a_bad_copy_of_wrapping_keys_is_refused(service, stores, tmp_path, content, says):
    moved(service, stores, "--wrap")
    (key,) = service.cli("vault", "status")["wrappingKeys"]
    (tmp_path / "copy.json").write_text(content.replace("ID", key["id"]))
    found = service.run("vault", "import", str(tmp_path / "copy.json"))
    assert (found.returncode, says in found.stderr) == (1, True), found.stderr


def test_a_vault_in_files_is_not_wrapped(service, tmp_path):
    for command in (("wrap",), ("rotate",), ("status",), ("export", str(tmp_path / "x")), ("import", "x")):
        found = service.run("vault", *command)
        assert found.returncode == 1, command
    assert "is not wrapped" in service.run("vault", "wrap").stderr
    assert "--wrap is for a vault in PostgreSQL" in service.run(
        "store", "copy", str(service.data), str(tmp_path / "copy"), "--wrap"
    ).stderr  # fmt: skip


@pytest.mark.slow
async def test_instances_hand_each_other_a_new_wrapping_key(http, tmp_path, stores):  # noqa: F811 - the fixture
    with service_in(tmp_path) as first:
        await asyncio.to_thread(first.set_up, write_docs(tmp_path / "docs"))
        first.environment |= stores
        await asyncio.to_thread(first.cli, "store", "copy", str(first.data), "env:DOCSMITH_STORE", "--wrap", "--move")
        await asyncio.to_thread(first.start)
        assert text_of(await ask(http, first, question("How are retries configured?")))
        with service_in(tmp_path / "second", stores) as second:
            await asyncio.to_thread(second.start)  # it has nothing but the addresses and the secret
            one, two = first.data / "wrapping-keys", second.data / "wrapping-keys"
            assert {file.name for file in one.iterdir()} == {file.name for file in two.iterdir()}
            following = (await asyncio.to_thread(second.cli, "vault", "rotate"))["id"]
            async with asyncio.timeout(120):
                while True:
                    rows = (await asyncio.to_thread(first.cli, "vault", "status"))["wrappingKeys"]
                    if [row["state"] for row in rows] == ["retired", "current"]:
                        break
            assert (rows[1]["id"], rows[0]["keys"]) == (following, 0)
            assert {file.name for file in one.iterdir()} == {file.name for file in two.iterdir()}
            first.kill()
            events = (await asyncio.to_thread(second.cli, "audit", "show", "--category", "thread"))["events"]
            assert "retries" in json.dumps(events)
