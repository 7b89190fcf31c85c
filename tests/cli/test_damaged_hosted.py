"""A hosted repository that is damaged or gone is named, with the way back, and never replaced in silence."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from tests.service_process import service_in, write_docs


def flip_a_bit(repository):
    pack = next((repository / "objects" / "pack").glob("*.pack"))
    pack.chmod(0o600)
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 1
    pack.write_bytes(content)


def remove(repository):
    shutil.rmtree(repository.parent)


DAMAGES = [flip_a_bit, remove]


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"))
        yield service


def asked(service, path, body=None):
    """The answer to a request with the admin key, whatever its status."""
    request = urllib.request.Request(
        service.url + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={**service.admin, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)


def jobs_of(service):
    return f"/v2/agent/{service.project_id}/job"


def until(service, path, holds):
    """The answer to a request, asked again until it is as wanted."""
    end = time.monotonic() + 90
    while not holds(found := asked(service, path)):
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_and_the_repository_restored(service, tmp_path, damage):
    service.start()
    job = asked(service, jobs_of(service), {"prompt": 'Append "Kites rise." to index.md'})
    until(service, f"{jobs_of(service)}/{job['id']}?wait=30", lambda job: job["status"] == "completed")
    asked(service, f"{jobs_of(service)}/{job['id']}/merge", {})
    hosted = service.data / "hosted" / f"{service.project_id}.git"
    assert service.cli("backup", str(tmp_path / "one.tar"))["damaged"] == {}
    service.stop()
    damage(hosted)
    way_back = f"--only {service.project_id}"

    doctor = service.run("doctor", "--json")
    assert doctor.returncode == 1
    found = [one for one in json.loads(doctor.stdout)["findings"] if way_back in (one["mend"] or "")]
    assert [one["level"] for one in found] == ["wrong"]
    backup = service.run("backup", str(tmp_path / "two.tar"), "--json")
    assert (backup.returncode, [*json.loads(backup.stdout)["damaged"]]) == (3, [hosted.name])

    service.start()
    until(service, "/readyz", lambda ready: way_back in ready["reasons"].get("hosted repositories", ""))
    job = asked(service, jobs_of(service), {"prompt": 'Append "Kites sink." to index.md'})
    until(service, f"{jobs_of(service)}/{job['id']}", lambda job: way_back in json.dumps(job))
    assert hosted.exists() is (damage is flip_a_bit)

    assert service.cli("restore", str(tmp_path / "one.tar"), "--only", service.project_id)["restored"]
    subprocess.run(["git", "fsck", "--strict"], cwd=hosted, check=True, capture_output=True)
    shown = subprocess.run(["git", "show", "main:index.md"], cwd=hosted, check=True, capture_output=True, text=True)
    assert "Kites rise." in shown.stdout
    until(service, "/readyz", lambda ready: ready["status"] == "ready")
    service.run("job", "retry", job["id"])  # unless it goes on by itself before
    until(service, f"{jobs_of(service)}/{job['id']}?wait=30", lambda job: job["status"] == "completed")


def test_sound_repository_is_not_replaced(service, tmp_path):
    service.cli("backup", str(tmp_path / "one.tar"))
    told = service.run("restore", str(tmp_path / "one.tar"), "--only", service.project_id)
    assert told.returncode == 1
    assert "is sound" in told.stderr


def test_damaged_backup_is_not_put_in_place(service, tmp_path):
    hosted = service.data / "hosted" / f"{service.project_id}.git"
    flip_a_bit(hosted)
    assert service.run("backup", str(tmp_path / "one.tar")).returncode == 3
    shutil.rmtree(hosted)
    told = service.run("restore", str(tmp_path / "one.tar"), "--only", service.project_id)
    assert (told.returncode, hosted.exists()) == (3, False)
    assert "Try an older backup" in told.stdout
