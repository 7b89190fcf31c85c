"""What goes wrong with a data folder: told in one sentence, with nothing lost."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import urllib.error
import urllib.request

import pytest

from tests.service_process import PROGRAM, service_in, write_docs


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"), index=False)
        yield service


def damage(file, *, after: int) -> None:
    data = bytearray(file.read_bytes())
    data[after:] = bytes((byte * 31 + 7) % 256 for byte in data[after:])
    file.write_bytes(data)


@pytest.mark.parametrize("after", [0, 8192])
def test_damaged_views_are_rebuilt_by_the_service(service, after):
    before = service.cli("project", "list")
    damage(service.data / "views.db", after=after)
    told = service.run("project", "list")
    assert (told.returncode, len(told.stderr.splitlines())) == (1, 1)
    assert "docsmith serve rebuilds this file" in told.stderr
    service.start()
    with urllib.request.urlopen(f"{service.url}/readyz", timeout=60) as ready:
        assert json.load(ready)["status"] == "ready"
    assert "views are made anew" in service.log()
    assert service.cli("project", "list") == before
    assert service.stop() == 0


def test_a_log_without_its_vault_is_not_given_a_new_one(service):
    vault, kept = service.data / "keys.db", service.data.parent / "keys.db"
    for command in (("project", "list"), ("serve", "--port", "0")):
        shutil.move(vault, kept)
        told = service.run(*command)
        assert (told.returncode, len(told.stderr.splitlines())) == (1, 1)
        assert "the vault of the log beside it, is missing" in told.stderr
        assert not vault.exists()
        shutil.move(kept, vault)
    assert service.run("project", "list").returncode == 0


@pytest.mark.parametrize("name", ["events.db", "keys.db", "views.db"])
def test_a_folder_of_a_newer_program_is_refused(service, name):
    before = (service.data / name).read_bytes()
    with sqlite3.connect(service.data / name) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        db.execute(f"PRAGMA user_version = {version + 1}")
    db.close()
    for command in (("project", "list"), ("serve", "--port", "0")):
        told = service.run(*command)
        said = told.stderr if service.place.is_local else told.stderr.splitlines(keepends=True)[-1]
        assert (told.returncode, said) == (
            1,
            f"docsmith: {name} is of version {version + 1}, made by a newer program than this one, which knows "
            f"versions up to {version}; use the newer one\n",
        )
    assert len((service.data / name).read_bytes()) == len(before)


def test_a_clock_that_was_set_back_loses_and_reorders_nothing(service):
    """The log's last event is of an hour from now, as if the clock had been right until then."""
    faketime = shutil.which("faketime")
    if faketime is None:
        pytest.skip("sets the clock of a process; install Debian's package faketime to run it")
    command = [faketime, "-f", "+1h", *PROGRAM, "project", "create", "--name", "Later"]
    more = ["--repository", str(service.data.parent / "docs"), "--domain", "later", "--data", str(service.data)]
    subprocess.run([*command, *more], check=True, capture_output=True, timeout=300, env=service.variables)
    service.start()
    assert {one["domain"] for one in service.cli("project", "list")["projects"]} == {"kite", "later"}
    created = service.cli("key", "create", "--kind", "admin")
    assert created["token"]
    assert service.stop() == 0
    service.cli("audit", "verify")


def test_folder_that_cannot_be_written_is_reported(service):
    """As root, without the right to write where the permissions forbid it."""
    command, variables = [*PROGRAM, "project", "list", "--data", str(service.data)], service.variables
    if os.getuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("gives up rights of root; install Debian's package util-linux to run it")
        command = [setpriv, "--bounding-set=-dac_override,-dac_read_search", *command]
    for place in (*[service.data / "events.db"] * service.place.is_local, service.data):
        mode = place.stat().st_mode
        place.chmod(0o555 if place.is_dir() else 0o444)
        told = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=variables)
        place.chmod(mode)
        assert told.returncode == 1
        assert told.stderr.startswith(f"docsmith: {place} cannot be written by the user that runs this")
        assert len(told.stderr.splitlines()) == 1
    assert service.run("project", "list").returncode == 0


def created(name):
    return {"prompt": f'create page {name}.md with title "{name}" and text "There is room."'}


def ended(service, job_id):
    """A job, once it has ended."""
    url = f"{service.url}/v2/agent/{service.project_id}/job/{job_id}?wait=30"
    for _ in range(20):
        with urllib.request.urlopen(urllib.request.Request(url, headers=service.admin), timeout=60) as answer:
            job = json.load(answer)
        if job["status"] != "active":
            return job
    raise AssertionError(job)


def asked(service, body, key):
    """The status and the answer of a request for a job."""
    request = urllib.request.Request(
        f"{service.url}/v2/agent/{service.project_id}/job",
        data=json.dumps(body).encode(),
        headers={**key, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_full_disk_refuses_what_it_cannot_keep_and_heals_itself(service):
    """No file may grow, as on a disk without room; then there is room again."""
    service.start()
    status, kept = asked(service, created("kept"), service.admin)
    assert status == 201
    _, hard = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, hard))
    status, told = asked(service, {"prompt": "Make it dance"}, service.admin)
    assert (status, told["code"]) == (503, "unavailable")
    with urllib.request.urlopen(f"{service.url}/healthz", timeout=60) as health:
        assert health.status == 200
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
    status, later = asked(service, created("later"), service.admin)
    assert status == 201
    for job in (kept, later):
        assert ended(service, job["id"])["status"] == "completed"
    assert service.stop() == 0
    service.cli("audit", "verify")
    pulls = service.data / "hosted" / f"{service.project_id}.git" / "docsmith" / "pulls"
    assert sorted(file.name for file in pulls.iterdir()) == ["1.json", "2.json"]


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("name", ["events.db", "keys.db"])
def test_log_that_is_removed_or_replaced_while_it_is_served_takes_nothing_more(service, name, replaced):
    """What was written would go on into a file without a name, acknowledged, and be gone at the next start."""
    if not service.place.is_local:
        pytest.skip("the log is not in the data folder")
    service.start()
    status, _ = asked(service, created("kept"), service.admin)
    assert status == 201
    file = service.data / name
    shutil.copyfile(file, file.with_name(f"{name}.copy"))
    if replaced:
        file.with_name(f"{name}.copy").replace(file)
    else:
        file.unlink()
    reasons = {}
    while "log" not in reasons:
        try:
            with urllib.request.urlopen(f"{service.url}/readyz", timeout=60) as ready:
                reasons = json.load(ready)["reasons"]
        except urllib.error.HTTPError as error:
            with error:
                reasons = json.load(error)["reasons"]
    assert f"{name} was removed or replaced" in reasons["log"]
    assert asked(service, created("later"), service.admin)[0] == 503
    with urllib.request.urlopen(f"{service.url}/healthz", timeout=60) as health:
        assert health.status == 200
