"""A disk that is full or read-only: the service says so, and search goes on."""

import json
import resource
import subprocess
import urllib.error
import urllib.request
from contextlib import suppress
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

import pytest

from tests.dashboard.conftest import COOKIE, HTML, post_form
from tests.eventstore.backends import addresses
from tests.service_process import Service, write_docs

pytestmark = pytest.mark.slow


def mount(*arguments):
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


class Disk:
    """A small file system of its own."""

    def __init__(self, folder):
        self.folder = folder

    def fill(self):
        for size in (1 << 20, 4096, 1):
            with suppress(OSError), (self.folder / "filler").open("ab", buffering=0) as file:
                while file.write(bytes(size)) == size:
                    pass

    def make_room(self):
        (self.folder / "filler").unlink()

    def protect(self):
        assert mount("-o", "remount,ro", str(self.folder))

    def release(self):
        assert mount("-o", "remount,rw", str(self.folder))


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        is_mounted = mount("-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder))
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if not is_mounted:
        pytest.skip("mounting a small file system takes more rights")
    yield Disk(folder)
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def service(disk, tmp_path):
    service = Service(disk.folder / "data", {"DOCSMITH_SERVER__HOST": "127.0.0.1"})
    service.log_file = tmp_path / "server.log"  # elsewhere: the disk will be full
    service.set_up(write_docs(tmp_path / "docs"))
    yield service
    service.kill()


def asked(service, path, key=None, body=None):
    """The status, the headers and the JSON (or the text) of an answer."""
    headers = {**(key or {}), "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        answer = urllib.request.urlopen(urllib.request.Request(service.url + path, data, headers), timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        text = answer.read()
        return answer.status, answer.headers, json.loads(text) if "json" in answer.headers["Content-Type"] else text


def finds(service):
    status, _, found = asked(
        service, f"/discovery/v1/search/{service.domain}", service.assistant, {"query": "installer disk"}
    )
    return status == 200 and "20 MB" in str(found)


def new_job(service):
    path = f"/v2/agent/{service.project_id}/job"
    return asked(service, path, service.admin, {"prompt": 'Append "Kites rise." to index.md'})


def ready(service):
    status, headers, told = asked(service, "/readyz")
    assert (status == 503) == bool(told["reasons"]) == ("Retry-After" in headers)
    return told["reasons"]


def until_ready(service):
    for _ in range(600):
        with suppress(urllib.error.URLError, ConnectionError):
            if not ready(service):
                return
        subprocess.run(["sleep", "0.1"], check=True)
    raise AssertionError(service.log())


def refuses_and_says(service, reason, words):
    refused = 0
    for _ in range(200):  # what a kill left of the log's journal may have room for a few more jobs
        status, headers, answer = new_job(service)
        assert words in ready(service)["data folder"]
        if status != 201:
            assert (status, answer["code"], headers["Retry-After"]) == (503, "unavailable", "5")
            refused += 1
        if refused == 9:
            break
    assert refused == 9
    told = service.run("health")
    assert told.returncode == 1
    metrics = asked(service, "/metrics")[2].decode()
    assert f'docsmith_data_folder_trouble{{reason="{reason}"}} 1.0' in metrics
    assert finds(service)
    return told.stdout


def test_full_disk_is_reported_until_there_is_space(service, disk):
    service.start()
    assert new_job(service)[0] == 201
    disk.fill()
    assert "is full" in refuses_and_says(service, "disk_full", "is full")
    disk.make_room()
    until_ready(service)
    assert new_job(service)[0] == 201
    assert service.log().count("the data folder cannot be written") == 1
    assert service.log().count("the data folder can be written again") == 1


@pytest.mark.parametrize("end", [Service.stop, Service.kill])
def test_search_goes_on_from_a_start_on_a_full_disk(service, disk, end):
    service.start()
    assert new_job(service)[0] == 201
    end(service)
    disk.fill()
    service.start()
    address = service.url
    assert "is full" in refuses_and_says(service, "disk_full", "is full")
    disk.make_room()
    until_ready(service)
    assert service.url == address
    assert new_job(service)[0] == 201
    assert service.stop() == 0
    assert service.cli("audit", "verify")["sound"]


@pytest.mark.parametrize("end", [Service.stop, Service.kill])
def test_search_goes_on_from_a_start_on_a_read_only_disk(service, disk, end):
    service.start()
    assert new_job(service)[0] == 201
    end(service)
    disk.protect()
    service.start()
    try:
        refuses_and_says(service, "read_only", "is read-only")
    finally:
        disk.release()
    until_ready(service)
    assert new_job(service)[0] == 201
    assert service.stop() == 0
    assert service.cli("audit", "verify")["sound"]


def test_person_stays_signed_in_at_a_start_on_a_read_only_disk(service, disk, tmp_path):
    log, vault = addresses(tmp_path)
    service.environment |= {"DOCSMITH_STORE": log.text, "DOCSMITH_VAULT": vault.text}
    service.cli("store", "copy", str(service.data), "env:DOCSMITH_STORE", "--move")
    added = service.cli("person", "add", "ann@example.com", "--name", "Ann", "--operator")
    service.start()
    signed_in = post_form(f"{service.url}/sign-in", {"link": urlsplit(added["link"]).fragment})
    page = {**HTML, "Cookie": f"{COOKIE}={SimpleCookie(signed_in.headers['Set-Cookie'])[COOKIE].value}"}
    assert service.stop() == 0
    disk.protect()
    service.start()
    try:
        assert "is read-only" in ready(service)["data folder"]
        status, _, text = asked(service, "/operator/health", page)
        assert (status, b"is in PostgreSQL, at" in text) == (200, True)
        assert asked(service, "/metrics")[2].decode().count("docsmith_log_bytes 0") == 0
    finally:
        disk.release()
    until_ready(service)
    assert asked(service, "/operator/health", page)[0] == 200


def test_limit_that_no_look_finds_is_reported_once_it_is_met(service):
    service.start()
    _, hard = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, hard))
    refuses_and_says(service, "write_failed", "The log cannot be written")
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
    until_ready(service)
    assert new_job(service)[0] == 201
