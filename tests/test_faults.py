"""Faults that scripts/faults makes many times, once each: nothing acknowledged is lost, nothing is left behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eventstore.cluster import MISSING, programs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("fault", ["kill-jobs", "kill-replies", "kill-migrate", "kill-erase", "disk-full"])
def test_fault_loses_nothing_acknowledged(fault):
    command = [sys.executable, "-m", "scripts.faults_run", "--rounds", "1", "--only", fault, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    found = json.loads(done.stdout)
    assert [(goal["name"], goal["measured"]) for goal in found["goals"]] == [(fault, "nothing")]
    assert found["rows"][0]["rounds"] == 1


@pytest.mark.parametrize("fault", ["kill-instance", "pause-instance", "kill-home", "kill-log-away"])
def test_fault_of_one_of_three_instances_loses_nothing(fault):
    if programs() is None:
        pytest.skip(MISSING)
    test_fault_loses_nothing_acknowledged(fault)
