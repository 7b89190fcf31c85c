"""Which processes are alive."""

import asyncio
import subprocess
import sys

import pytest

from service.workers.instances import Instance
from tests.contracts.instances import InstancesContract
from tests.fakes.instances import FakeInstances

OTHER = """
import sys
from pathlib import Path
from service.workers.instances import Instance
instance = Instance(Path(sys.argv[1]))
print(instance.name, flush=True)
sys.stdin.read()
instance.close()
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


def begun(data):
    """Return another process on the data folder, and its name."""
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return other, other.stdout.readline().strip()


class Processes:
    """See Group: other processes on one data folder."""

    def __init__(self, data, here):
        self._data, self.here = data, here
        self._others = {}

    async def begin(self):
        other, name = await asyncio.to_thread(begun, self._data)
        self._others[name] = other
        return name

    async def close(self, name):
        self._others.pop(name).communicate()

    async def crash(self, name):
        other = self._others.pop(name)
        other.kill()
        other.communicate()

    async def look(self):
        pass

    async def pass_lease(self):
        pass

    def end(self):
        for other in self._others.values():
            other.communicate()


@pytest.fixture
def group(tmp_path):
    with Instance(tmp_path) as here:
        processes = Processes(tmp_path, here)
        yield processes
        processes.end()


class TestFiles(InstancesContract):
    pass


class FakeGroup:
    def __init__(self):
        self.here = FakeInstances()
        self._begun = 0

    async def begin(self):
        self._begun += 1
        name = f"other-{self._begun}"
        self.here.begin(name)
        return name

    async def close(self, name):
        self.here.end(name)

    async def crash(self, name):
        self.here.end(name, crashed=True)

    async def look(self):
        pass

    async def pass_lease(self):
        pass


class TestFake(InstancesContract):
    @pytest.fixture
    def group(self):
        return FakeGroup()


def test_crashed_processes_of_before_are_known(tmp_path):
    other, name = begun(tmp_path)
    other.kill()
    other.communicate()
    with Instance(tmp_path) as here:
        assert name in here.crashed
        assert list((tmp_path / "instances").iterdir()) == [tmp_path / "instances" / here.name]


def test_instance_started_during_a_sweep_keeps_its_file(tmp_path):
    command = [sys.executable, "-c", SWEEPS_WHILE_ANOTHER_BEGINS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "takes another name\n"
