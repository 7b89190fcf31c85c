"""Log lines arrive in the order in which they were written, whichever of them are written a batch at a time."""

import json
import subprocess
import sys

PROGRAM = """
from datetime import UTC, datetime

import structlog

from service.runtime.logs import RequestLine, configure_logging, log_request


def request(number):
    log_request(RequestLine("GET", "/healthz", 200, 0.1, f"req_{number}", "", datetime(2026, 1, 1, tzinfo=UTC)))


level = configure_logging("info", "json")
request(1)
request(2)
structlog.get_logger().warning("other", n=1)
level.change("warning")
request(3)
level.change("info")
request(4)
"""


def test_request_lines_keep_their_order_and_fields():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line.get("request_id", line["event"]) for line in lines] == ["req_1", "req_2", "other", "req_4"]
    assert lines[0] == {
        "method": "GET", "path": "/healthz", "status": 200, "milliseconds": 0.1, "request_id": "req_1", "actor": "",
        "event": "request", "level": "info", "timestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip


COLLECTING = """
import gc
import io
import sys

import structlog

from service.runtime.logs import configure_logging


class Collecting(io.FileIO):
    def write(self, data):
        gc.collect()
        return super().write(data)


class Cycle:
    def __init__(self):
        self.own = self

    def __del__(self):
        structlog.get_logger().info("collected")


sys.stderr = io.TextIOWrapper(io.BufferedWriter(Collecting(2, "w")))
configure_logging("info", "json")
gc.disable()
Cycle()
structlog.get_logger().info("other")
"""


def test_line_logged_while_another_is_written_is_kept():
    done = subprocess.run([sys.executable, "-c", COLLECTING], capture_output=True, text=True, check=True, timeout=60)
    assert sorted(json.loads(line)["event"] for line in done.stderr.splitlines()) == ["collected", "other"]
