"""The benchmarks of the log in PostgreSQL run, in a short form."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eventstore.cluster import MISSING, programs, server_address

SCRIPTS = Path(__file__).parent.parent / "scripts"
pytestmark = pytest.mark.slow


def measured(name, *options):
    if programs() is None:
        pytest.skip(MISSING)
    command = [sys.executable, str(SCRIPTS / f"bench_{name}.py"), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(done.stdout)


def test_copy_there_and_back_has_the_same_head():
    found = measured("copy", "--events", "5000")
    assert {goal["name"]: goal["met"] for goal in found["goals"]} == {
        "heads of 5,000 events there and back": True,
        "keys of the vault there and back": True,
        "memory of a copy, MB": True,
    }


def test_store_option_measures_that_database():
    found = measured("eventstore", "--store", server_address(), "--events", "200", "--rounds", "1")
    assert {"bare COPY, batches of 100", "100 writers"} <= {row["what"] for row in found["rows"]}


def test_each_kind_of_append_is_measured():
    found = measured("postgres", "--events", "200", "--rounds", "1")
    assert {"bare COPY, batches of 100", "100 writers", "one writer"} <= {row["what"] for row in found["rows"]}
    assert all(row["events/s"] > 0 for row in found["rows"])
