"""A service that may open few files: it pauses and goes on, and its log stays small."""

import re
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, suppress

from tests.service_process import Service, service_in


def test_service_pauses_without_descriptors_and_resumes(tmp_path):
    with service_in(tmp_path) as service:
        service.start()
        one = service.each[0]
        _, hard = resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE, (128, hard))
        host, port = one.url.removeprefix("http://").split(":")
        with ExitStack() as held:
            for _ in range(200):
                with suppress(OSError):
                    held.enter_context(socket.create_connection((host, int(port)), timeout=60))
            while "no connection is accepted" not in one.log():
                time.sleep(0.02)
        with urllib.request.urlopen(f"{one.url}/metrics", timeout=60) as answer:
            found = re.search(rb'(?m)^docsmith_bounds_reached_total{bound="descriptors"} (\S+)$', answer.read())
        assert found
        assert float(found[1]) > 0
        log = one.log()
        assert "connections are accepted again" in log
        assert "Traceback" not in log, log[max(0, log.index("Traceback") - 300) : log.index("Traceback") + 3000]
        assert len(log.splitlines()) < 100


def test_start_with_too_few_descriptors_is_refused(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); "
    command = ["serve", "--port", "0", "--data", str(tmp_path / "data")]
    run = f"from service.main.program import main; raise SystemExit(main({command!r}))"
    done = subprocess.run(
        [sys.executable, "-c", limit + run], capture_output=True, text=True, timeout=300, check=False,
        env=Service(tmp_path / "data").variables,
    )  # fmt: skip
    assert done.returncode == 1
    assert "This process may have 100 files open, and the service needs 128" in done.stderr
    assert "Traceback" not in done.stderr
