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
    require_nothing_lost(fault)


@pytest.mark.parametrize("faults", [("kill-instance", "pause-instance"), ("kill-home", "kill-log-away")])
def test_fault_of_one_of_three_instances_loses_nothing(faults):
    if programs() is None:
        pytest.skip(MISSING)
    require_nothing_lost(*faults)


def require_nothing_lost(*faults):
    """Make each fault once, all at the same time: most of it is waiting for leases to end."""
    command = [sys.executable, "-m", "scripts.faults_run", "--rounds", "1", "--json", "--only"]
    running = [subprocess.Popen([*command, fault], cwd=ROOT, stdout=subprocess.PIPE, text=True) for fault in faults]
    try:
        shown = [one.communicate(timeout=600)[0] for one in running]
    finally:
        for one in running:
            one.kill()
    for fault, text in zip(faults, shown, strict=True):
        found = json.loads(text)
        assert [(goal["name"], goal["measured"]) for goal in found["goals"]] == [(fault, "nothing")]
        assert found["rows"][0]["rounds"] == 1
