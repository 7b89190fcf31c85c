"""An operator's day: starts, reloads, supervisors, sockets that are passed on."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from service.domain.errors import Forbidden
from service.main.folder import require_owner
from tests.service_process import PROGRAM, Service, service_in, write_docs

SECONDS = 60.0
"""For what takes a moment, on a machine with much else to do."""


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        yield service


def lines(service: Service) -> list[dict[str, object]]:
    whole = [one.log().rpartition("\n")[0] for one in service.each]  # the last line may be half written
    return [json.loads(line) for text in whole for line in text.splitlines() if line.startswith("{")]


def wait_for(service: Service, event: str, *, times: int = 1) -> dict[str, object]:
    """The line of the log, once it is there so often."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        found = [line for line in lines(service) if line["event"] == event]
        if len(found) >= times:
            return found[-1]
        time.sleep(0.05)
    raise AssertionError(f"no {event!r} in {service.log()}")


def get(service: Service, path: str) -> tuple[int, dict[str, str]]:
    with urllib.request.urlopen(service.url + path, timeout=SECONDS) as answer:
        return answer.status, json.load(answer)


def test_the_first_start_says_what_to_do_and_later_ones_do_not(service, tmp_path):
    service.start()
    assert service.stop() == 0
    before = []
    for one in service.each:
        said = one.log()
        assert f"Docsmith serves {one.url}, with its data in the folder {one.data} (agent builtin/editor" in said
        assert f"docsmith project create --name NAME --repository URL_OR_FOLDER --domain SITE --data {one.data}" in said
        before.append(len(said))
    service.set_up(write_docs(tmp_path / "docs"), index=False)
    service.start()
    assert service.stop() == 0
    for one, length in zip(service.each, before, strict=True):
        again = [json.loads(line)["event"] for line in one.log()[length:].splitlines()]
        assert "serving" in (again[:1] if len(before) == 1 else again)  # which of several leads is found before it


def test_settings_are_read_again_and_bad_ones_are_not_taken(service, tmp_path):
    file = tmp_path / "docsmith.toml"
    service.environment["DOCSMITH_CONFIG"] = str(file)
    file.write_text('[agent]\nmodel = "builtin"\n')
    service.start()
    assert get(service, "/readyz")[1]["models"]["agent"] == "builtin/editor"

    file.write_text('[agent]\nmodel = "mine"\n[models.mine]\nmodel = "openai/gpt-5.2"\n[server]\nhead_seconds = 1\n')
    service.signal(signal.SIGHUP)
    told = wait_for(service, "settings read", times=len(service.each))
    assert told["changed"] == ["agent.model", "models.mine"]
    assert told["take_a_restart"] == ["server.head_seconds"]
    assert get(service, "/readyz")[1]["models"]["agent"] == "openai/gpt-5.2"

    file.write_text('[agent]\nmodle = "builtin"\n')
    service.signal(signal.SIGHUP)
    told = wait_for(service, "settings not read: the earlier ones stay", times=len(service.each))
    assert "did you mean 'model'?" in str(told["reason"])
    assert get(service, "/readyz")[1]["models"]["agent"] == "openai/gpt-5.2"

    file.write_text('[log]\nlevel = "warning"\n')
    service.signal(signal.SIGHUP)
    until = time.monotonic() + SECONDS
    for one in service.each:
        while get(one, "/readyz")[1]["models"]["agent"] != "builtin/editor":
            assert time.monotonic() < until
    for one in service.each:
        urllib.request.urlopen(urllib.request.Request(f"{one.url}/healthz", headers={"X-Request-Id": "quiet"})).close()
    assert service.stop() == 0  # what waits to be written is
    assert "quiet" not in [line.get("request_id") for line in lines(service)]


def test_supervisor_is_notified_how_it_goes(service, tmp_path):
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(address))
        notified.settimeout(SECONDS)
        service.environment |= {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "300000"}
        service.start()
        assert service.process is not None
        assert notified.recv(4096).decode() == f"READY=1\nSTATUS=listening on {service.url}"
        assert [notified.recv(4096) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        service.process.send_signal(signal.SIGHUP)
        assert news(notified).startswith(b"RELOADING=1\nMONOTONIC")
        assert news(notified).startswith(b"READY=1")
        with ThreadPoolExecutor() as threads:
            stopped = threads.submit(service.stop)  # what it tells is read meanwhile: a full socket takes no more
            assert news(notified) == b"STOPPING=1"
            assert stopped.result() == 0
        notified.setblocking(False)
        with pytest.raises(BlockingIOError):
            notified.recv(4096)  # that was the last


def news(notified: socket.socket) -> bytes:
    """The next message that tells more than that the service is alive."""
    until = time.monotonic() + SECONDS
    while (message := notified.recv(4096)) == b"WATCHDOG=1":
        assert time.monotonic() < until
    return message


def test_a_service_that_still_starts_can_be_stopped(service):
    """Its log is locked, so that the start waits."""
    service.cli("organization", "create", "--name", "Acme")
    lock = service.data / "server.lock"
    with ThreadPoolExecutor() as threads:
        with closing(sqlite3.connect(service.data / "events.db", isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN IMMEDIATE")
            served = threads.submit(service.run, "serve", "--port", "0")
            while not (lock.exists() and lock.read_text()):
                assert not served.done()
            os.kill(int(lock.read_text().split()[0]), signal.SIGTERM)
            other.execute("COMMIT")
        done = served.result()
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_socket_that_is_passed_on_is_listened_on(tmp_path):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        program = (
            "import os, sys\n"
            f"os.dup2({listening.fileno()}, 3)\n"
            "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')\n"
            f"command = {PROGRAM!r}\n"
            "os.execv(command[0], [*command, *sys.argv[1:]])"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program, "serve", "--data", str(tmp_path / "data"), "--port", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, pass_fds=(listening.fileno(), 3),
            env={**Service(tmp_path / "data").variables, "PYTHONPATH": str(Path(__file__).parents[2])},
        )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"listening on http://localhost:{port}\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=SECONDS) as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        assert process.wait(SECONDS) == 0
        process.stdout.close()


def test_root_leaves_nothing_in_the_folder_of_another_user(service):
    service.cli("organization", "create", "--name", "Acme")
    log = service.data / "events.db"
    if os.geteuid() == 0:
        os.chown(log, 65533, -1)
        refused = service.run("key", "create", "--kind", "admin")
        assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
        assert "run this as that user (sudo -u '#65533' docsmith …)" in refused.stderr
    with pytest.raises(Forbidden) as refused_too:
        require_owner(service.data, user=0)
    assert refused_too.value.code == "data_of_another_user"
    require_owner(service.data, user=log.stat().st_uid)  # its own
    require_owner(service.data / "new", user=0)
