"""Instances of one log: who is there, and who leads, while they are killed and paused."""

import signal
import time
import urllib.request
from contextlib import closing

import pytest

from eventstore.postgres.connections import Address, Connections
from tests.instances import instances_in
from tests.service_process import Service, write_docs

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0


class Table:
    """The table of the instances, as PostgreSQL has it."""

    def __init__(self, connections):
        self._connections = connections

    def rows(self):
        rows = self._connections.fetch(
            "SELECT url, name = (SELECT name FROM leader) AS leads, ended_at IS NULL AS is_alive FROM instances"
        )
        return {url: (leads, is_alive) for url, leads, is_alive in rows}

    def leader(self):
        return next((url for url, (leads, _) in self.rows().items() if leads), None)

    def until(self, condition):
        ends = time.monotonic() + PATIENCE_SECONDS
        while not condition(self.rows()):
            assert time.monotonic() < ends, self.rows()
            time.sleep(0.1)


def address(member):
    """The address by which the other instances know it: people's programs know it as localhost."""
    return member.url.replace("//localhost:", "//127.0.0.1:")


def metric(member, name):
    with urllib.request.urlopen(f"{member.url}/metrics") as answer:
        [line] = [line for line in answer.read().decode().splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


@pytest.fixture
def group(tmp_path):
    with instances_in(tmp_path, {}, count=3) as service:
        service.set_up(write_docs(tmp_path / "docs"))
        service.start()
        with closing(Connections.open(Address(service.stores["DOCSMITH_STORE"]))) as connections:
            yield service, Table(connections)


def test_leader_that_is_killed_or_paused_is_followed_by_another(group):
    service, table = group
    urls = {address(member) for member in service.members}
    table.until(lambda rows: rows.keys() == urls)
    first = table.leader()
    assert [metric(member, "docsmith_leads") for member in service.members] == [
        float(address(member) == first) for member in service.members
    ]
    table.until(lambda _: all(metric(member, "docsmith_instances") == 3 for member in service.members))
    killed = next(member for member in service.members if address(member) == first)
    killed.kill()
    table.until(lambda rows: rows[first] == (False, False) and table.leader() is not None)
    second = table.leader()
    paused = next(member for member in service.members if address(member) == second)
    paused.process.send_signal(signal.SIGSTOP)
    try:
        table.until(lambda rows: rows[second] == (False, False))
        third = table.leader()
        assert third in urls - {first, second}
    finally:
        paused.process.send_signal(signal.SIGCONT)
    table.until(lambda rows: rows[second] == (False, True))
    paused.stop()
    table.until(lambda rows: second not in rows)
    assert table.leader() == third
    killed.start()  # on the same folder: what it left is known to have ended, and it is another instance
    table.until(lambda rows: address(killed) in rows and rows[address(killed)] == (False, True))


def test_commands_on_a_folder_of_its_own_know_that_the_log_is_served(group):
    service, table = group
    table.until(lambda rows: rows.keys() == {address(member) for member in service.members})
    stopped = service.members[2]
    stopped.stop()
    elsewhere = Service(stopped.data, dict(service.stores))
    created = elsewhere.run("job", "create", "--project", service.project_id, "Explain retries")
    assert created.returncode == 0, created.stderr
    assert "No service runs" not in created.stderr
    refused = elsewhere.run("audit", "accept-loss", "--reason", "a test")
    assert refused.returncode == 1
    assert "another service uses the log" in refused.stderr
    service.kill()
    table._connections.fetch("UPDATE instances SET ended_at = now()")  # without a wait for their leases
    created = elsewhere.run("job", "create", "--project", service.project_id, "Explain retries")
    assert "No service runs" in created.stderr
