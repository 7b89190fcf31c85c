"""``docsmith health``: exits with 0 when the service of the data folder is ready."""

import os
import socket
import threading

import pytest

from service.cli.runtime import address_of_server, is_served, reachable
from tests.cli.test_config import docsmith
from tests.service_process import service_in


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        yield service


def test_health_finds_the_service_of_the_data_folder(service):
    service.start()
    assert service.cli("health") == {
        "address": service.url, "ready": True, "reasons": {}, "behind": {}, "degraded": {},
    }  # fmt: skip
    assert address_of_server(service.data) == service.url
    assert service.run("serve").stderr.rstrip().endswith(f"is served by process {service.process.pid} already.")
    assert service.run("health", "--url", service.url + "/").stdout == f"{service.url}: ready\n"
    service.stop()
    gone = service.run("health")
    assert (gone.returncode, len(gone.stderr.splitlines())) == (1, 1)
    assert "No service has the data folder" in gone.stderr


def test_service_on_all_interfaces_is_addressed_as_local(service):
    service.environment["DOCSMITH_SERVER__HOST"] = "0.0.0.0"
    service.start()
    port = service.url.rpartition(":")[2]
    assert service.url == f"http://0.0.0.0:{port}"
    assert service.cli("health")["address"] == f"http://localhost:{port}"


@pytest.mark.parametrize(
    ("listens_on", "followed"),
    [
        ("http://0.0.0.0:8080", "http://localhost:8080"),
        ("http://[::]:8080", "http://localhost:8080"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://0.0.0.0.example:8080", "http://0.0.0.0.example:8080"),
    ],
)
def test_an_address_that_can_be_followed(listens_on, followed):
    assert reachable(listens_on) == followed


def answering(answer: bytes) -> str:
    """The address of something that gives one answer."""
    listening = socket.create_server(("127.0.0.1", 0))

    def once() -> None:
        with listening, listening.accept()[0] as asked:
            asked.recv(4096)
            asked.sendall(answer)

    threading.Thread(target=once, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def http_answer(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def test_service_that_is_not_ready_is_reported(tmp_path):
    url = answering(http_answer("503 No", '{"status": "not ready", "reasons": {"indexer": "this worker has ended"}}'))
    done = docsmith(tmp_path, "health", "--url", url)
    assert (done.returncode, done.stdout) == (1, f"{url}: not ready\nindexer: this worker has ended\n")


@pytest.mark.parametrize("answer", [b"", b"hello\r\n", http_answer("200 OK", "<html>"), http_answer("200 OK", "{}")])
def test_other_servers_are_not_taken_for_the_service(tmp_path, answer):
    done = docsmith(tmp_path, "health", "--url", answering(answer))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://localhost", "http://", "http://127.0.0.1:x", "http://a b"])
def test_invalid_address_is_reported(tmp_path, url):
    done = docsmith(tmp_path, "health", "--url", url)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


def test_a_lock_of_an_earlier_version_names_no_address(tmp_path):
    (tmp_path / "server.lock").write_text(str(os.getpid()))
    assert is_served(tmp_path)
    assert address_of_server(tmp_path) is None
