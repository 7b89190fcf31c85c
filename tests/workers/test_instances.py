"""Which processes are alive."""

import subprocess
import sys

from service.workers.instances import Instance

OTHER = """
import sys
from pathlib import Path
from service.workers.instances import Instance
instance = Instance(Path(sys.argv[1]))
print(instance.name, flush=True)
sys.stdin.read()
"""

SWEEPS_WHILE_ANOTHER_BEGINS = """
import fcntl, os, sys
from pathlib import Path
from service.workers.instances import Instance
folder = Path(sys.argv[1]) / "instances"
folder.mkdir()
made = os.open(folder / "another", os.O_CREAT | os.O_RDWR)

def lock(event, arguments):
    if event == "os.remove" and Path(arguments[0]).name == "another":
        try:
            fcntl.flock(made, fcntl.LOCK_EX | fcntl.LOCK_NB)
            print("locked, and about to be removed")
        except BlockingIOError:
            print("takes another name")

sys.addaudithook(lock)
Instance(folder.parent).close()
"""


def test_a_process_is_alive_until_it_is_killed(tmp_path):
    with Instance(tmp_path) as here:
        other = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        name = other.stdout.readline().strip()
        assert here.is_alive(name)
        assert here.is_alive(here.name)
        other.kill()
        other.communicate()
        assert not here.is_alive(name)


def test_unused_name_is_not_alive(tmp_path):
    with Instance(tmp_path) as here:
        assert not here.is_alive("1234-abcd")
        assert not here.is_alive("../../etc/passwd-nobody")


def test_names_are_not_used_again(tmp_path):
    names = set()
    for _ in range(20):
        with Instance(tmp_path) as here:
            names.add(here.name)
    assert len(names) == 20
    assert list((tmp_path / "instances").iterdir()) == []


def test_instance_started_during_a_sweep_keeps_its_file(tmp_path):
    command = [sys.executable, "-c", SWEEPS_WHILE_ANOTHER_BEGINS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "takes another name\n"
