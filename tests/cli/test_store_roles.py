"""A service on a log in PostgreSQL whose role has the least rights, and whose password no output shows."""

import asyncio
import hashlib
from pathlib import Path

import pytest

import eventstore.postgres.migrations
import service.adapters.postgres.migrations
from eventstore import StoreUnavailable
from eventstore.postgres.connections import Address, Connections
from eventstore.postgres.roles import roles_sql
from service.main.program import SCHEMAS
from tests.cli.test_config import docsmith
from tests.end_to_end.conftest import http  # noqa: F401
from tests.end_to_end.talk import ask, create_job, job_events, question, text_of
from tests.eventstore.cluster import server_address
from tests.service_process import service_in, write_docs

PASSWORD = "hunter2-5f1c9a70d3e8b642"
"""Of every role here; the server trusts all who come by its socket."""


@pytest.fixture
def databases(tmp_path):
    """Make a database for a log and one for a vault, with their roles; return a function that gives addresses."""
    name = "of_" + hashlib.sha256(str(tmp_path).encode()).hexdigest()[:12]
    server = server_address()

    def address(kind, role="docsmith"):
        return server.replace("docsmith@/postgres", f"{role}:{PASSWORD}@/{name}_{kind}")

    for kind in ("log", "vault"):
        run(server, f"CREATE DATABASE {name}_{kind}")
        run(
            address(kind),
            roles_sql(kind, owner=f"{name}_owner", service=name, reader=f"{name}_reader", schema="public"),
        )
    address.name = name
    yield address
    for kind in ("log", "vault"):
        run(server, f"DROP DATABASE {name}_{kind} WITH (FORCE)")
    for role in (f"{name}_owner", name, f"{name}_reader"):
        run(server, f"DROP ROLE IF EXISTS {role}")


def run(address, statement):
    connections = Connections.open(Address(address))

    async def executed():
        async with connections.pooled() as connection:
            await connection.execute(statement)

    try:
        connections.run(executed())
    finally:
        connections.close()


@pytest.fixture
def environment(databases):
    """Variables of the service's role, and of the owner's."""
    name = databases.name
    return {
        "DOCSMITH_STORE": databases("log", name),
        "DOCSMITH_VAULT": databases("vault", name),
        "OWNER_STORE": databases("log", f"{name}_owner"),
    }


def test_the_owner_makes_the_tables_of_every_kind():
    folders = set()
    for package in (eventstore.postgres.migrations, service.adapters.postgres.migrations):
        for folder in Path(package.__file__).parent.iterdir():
            if any(folder.glob("*.sql")):
                folders.add((folder.name, package.__name__))
    assert {(kind, package) for kinds in SCHEMAS.values() for kind, package in kinds.items()} == folders


@pytest.mark.slow
async def test_a_service_works_with_the_least_rights(http, tmp_path, databases, environment):  # noqa: F811 - the fixture
    with service_in(tmp_path) as running:
        await asyncio.to_thread(running.set_up, write_docs(tmp_path / "docs"))
        running.environment |= environment

        def cli(*arguments):
            return asyncio.to_thread(running.cli, *arguments)

        early = await asyncio.to_thread(running.run, "store", "copy", str(running.data), "env:DOCSMITH_STORE", "--move")
        assert (early.returncode, "docsmith store migrate" in early.stderr) == (1, True)
        made = await cli("store", "migrate", "env:OWNER_STORE", "--vault", "env:DOCSMITH_VAULT")
        assert {(one["schema"], one["from"]) for one in made["schemas"]} >= {("log", 0), ("vault", 0)}
        await cli("store", "copy", str(running.data), "env:DOCSMITH_STORE", "--move")
        await asyncio.to_thread(running.start)
        chunks = await ask(http, running, question("How are retries configured?"))
        assert text_of(chunks)
        job = await create_job(http, running, 'replace "tried" with "run" in retry.md')
        await job_events(http, running, job["id"])
        events = (await cli("audit", "show", "--category", "thread"))["events"]
        await cli("audit", "erase", events[0]["stream"], "--yes")
        assert (await cli("audit", "verify"))["sound"]
        found = await asyncio.to_thread(running.cli, "doctor", status=1)
        assert "rights" not in {one["name"] for one in found["findings"]}
        wrong = [one["says"] for one in found["findings"] if one["level"] == "wrong"]
        assert wrong == ["The vault is in the log's own PostgreSQL cluster, whose archives keep erased keys."]
        assert running.stop() == 0
        for statement in ("UPDATE events SET data = ''", "DELETE FROM events", "TRUNCATE events"):
            with pytest.raises(StoreUnavailable, match="permission denied"):
                await asyncio.to_thread(run, environment["DOCSMITH_STORE"], statement)


@pytest.mark.slow
async def test_no_output_shows_the_password(http, tmp_path, databases, environment):  # noqa: F811 - the fixture
    with service_in(tmp_path) as running:
        await asyncio.to_thread(running.set_up, write_docs(tmp_path / "docs"))
        running.environment |= environment | {"DOCSMITH_LOG__LEVEL": "debug"}
        shown = []

        async def typed(*arguments):
            found = await asyncio.to_thread(running.run, *arguments)
            shown.extend((*found.args, found.stdout, found.stderr))
            return found

        await typed("store", "migrate", "env:OWNER_STORE")
        await typed("store", "copy", str(running.data), "env:DOCSMITH_STORE", "--move")
        await asyncio.to_thread(running.start)
        shown.append(await asyncio.to_thread(Path(f"/proc/{running.process.pid}/cmdline").read_text))
        headers = {"Authorization": f"Bearer {running.admin_key}"}
        jobs = f"/v2/agent/{running.project_id}/job"
        reads = ("/v2/organization", "/v2/overview", f"{jobs}s")
        for path in ("/readyz", "/healthz", "/openapi.json", "/metrics", *reads):
            async with http.get(running.url + path, headers=headers) as response:
                assert response.status == 200 or path not in reads, path
                shown.append(await response.text())
        await ask(http, running, question("How are retries configured?"))
        run(server_address(), f"ALTER DATABASE {databases.name}_log ALLOW_CONNECTIONS false")
        for name in ("log", "vault"):
            run(
                server_address(),
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{databases.name}_{name}'",
            )
        async with http.get(f"{running.url}/readyz") as response:
            shown.append(await response.text())
        async with http.post(running.url + jobs, headers=headers, json={"prompt": "Fix broken links"}) as response:
            assert response.status == 503
            shown.append(await response.text())
        for command in (("organization", "list"), ("audit", "verify"), ("doctor",), ("doctor", "--json")):
            assert (await typed(*command)).returncode == 1
        run(server_address(), f"ALTER DATABASE {databases.name}_log ALLOW_CONNECTIONS true")
        running.stop()
        for command in (
            ("config", "show"), ("config", "show", "--json"), ("config", "check"), ("doctor",), ("audit", "verify"),
            ("store", "copy", "env:DOCSMITH_STORE", str(tmp_path / "copy")), ("store", "migrate", "env:DOCSMITH_STORE"),
            ("backup", str(tmp_path / "backup.tar")), ("store", "roles", "log"),
        ):  # fmt: skip
            await typed(*command)
        kept = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
        shown.append(running.log())
        assert len(kept) > 5
        assert not [text for text in shown if PASSWORD in text]
        assert not [text for text in kept if PASSWORD.encode() in text]


@pytest.mark.parametrize("variable", ["DOCSMITH_STORE", "DOCSMITH_VAULT"])
@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://app:{PASSWORD}@nowhere.invalid/docsmith",
        f"postgresql://app:{PASSWORD}@[::1/docsmith",
        f"postgresql://app:{PASSWORD}@127.0.0.1:1/docsmith?sslmode=sometimes",
        f"postgresql://app:{PASSWORD}@127.0.0.1:port/docsmith",
        f"postgresql://app:{PASSWORD}@127.0.0.1:99999/docsmith",
        f"postgresql://app:12/{PASSWORD}@127.0.0.1/docsmith",
        f"postgresql://app:12/{PASSWORD}@127.0.0.1",
        f"postgresql://app:12?{PASSWORD}@127.0.0.1/docsmith",
        f"postgresql://app:12#{PASSWORD}@127.0.0.1/docsmith",
        f"postgresql://app@127.0.0.1:1/docsmith?password={PASSWORD}",
        f"postgresql://app@127.0.0.1:1/docsmith?statement_cache_size={PASSWORD}",
        f"postgresql://app:{PASSWORD}@127.0.0.1:1/docsmith?nothing=known",
        f"postgresql://app:%ZZ{PASSWORD}@127.0.0.1:1/docsmith?sslmode=require",
        f"{PASSWORD}",
    ],
)
def test_a_bad_address_is_reported_without_its_password(tmp_path, variable, address):
    with service_in(tmp_path) as running:
        good = "postgresql://app@127.0.0.1:1/docsmith"
        running.environment |= {"DOCSMITH_STORE": good, "DOCSMITH_VAULT": good, variable: address}
        for command in (("organization", "list"), ("doctor",), ("audit", "verify"), ("serve", "--port", "0")):
            found = running.run(*command)
            assert found.returncode == 1, (command, found.stdout)
            assert PASSWORD not in found.stdout + found.stderr
            assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("serve", "--store", f"postgresql://app:{PASSWORD}@h/d"),
        ("serve", "--vault", f"postgresql://app:{PASSWORD}@h/d"),
        ("store", "copy", f"postgresql://app:{PASSWORD}@h/d", "new"),
        ("store", "copy", "data", "postgresql://h/d", "--to-vault", f"postgresql://app@h/d?password={PASSWORD}"),
        ("store", "migrate", f"postgresql://app:{PASSWORD}@h/d"),
    ],
)
def test_an_address_with_a_password_is_not_typed(tmp_path, command):
    with service_in(tmp_path) as running:
        found = running.run(*command)
        assert (found.returncode, "list of processes" in found.stderr) == (1, True)
        assert PASSWORD not in found.stdout + found.stderr


@pytest.mark.parametrize(("kind", "owner"), [("log", "docsmith_owner"), ("vault", "docsmith")])
def test_roles_are_printed_as_sql_and_nothing_else(tmp_path, kind, owner):
    printed = docsmith(tmp_path, "store", "roles", kind)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert printed.stdout.rstrip("\n") == roles_sql(
        kind, owner="docsmith_owner", service="docsmith", reader="docsmith_reader", schema="public"
    ).rstrip("\n")
    assert owner in printed.stdout
    refused = docsmith(tmp_path, "store", "roles", kind, "--owner", "")
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
