"""Each command that works on a log, with one in PostgreSQL: while it answers, while it is away, once it lost events."""

import time
from contextlib import closing

import pytest

from eventstore.postgres.away.local_copy import LocalCopy
from eventstore.postgres.connections import Address, Connections
from service.integrity.log_place import MOVED_AWAY
from tests.eventstore.cluster import started_cluster
from tests.service_process import service_in

LOSE_ONE = (
    "ALTER TABLE events DISABLE TRIGGER events_stay",
    "DELETE FROM events WHERE position = (SELECT position FROM head)",
    "UPDATE head SET (position, hash) = (SELECT position, hash FROM events ORDER BY position DESC LIMIT 1)",
    "ALTER TABLE events ENABLE TRIGGER events_stay",
)


def run(address, *statements):
    with closing(Connections.open(Address(address))) as connections:
        for statement in statements:
            connections.fetch(statement)


@pytest.fixture
def server():
    cluster = started_cluster()
    yield cluster
    cluster.remove()


@pytest.fixture
def service(tmp_path, server):
    """A data folder whose log is in PostgreSQL, in two databases."""
    run(server.address, "CREATE DATABASE log", "CREATE DATABASE vault")
    with service_in(tmp_path) as service:
        service.environment |= {
            f"DOCSMITH_{variable}": server.address.replace("/postgres?", f"/{name}?")
            for variable, name in (("STORE", "log"), ("VAULT", "vault"))
        }
        service.cli("organization", "create", "--name", "Acme")
        service.cli("person", "add", "ann@example.com", "--name", "Ann", "--operator")
        yield service


def test_commands_work_on_a_log_in_postgresql(service, tmp_path):
    assert service.cli("audit", "verify")["sound"]
    assert service.cli("audit", "checkpoint")["position"] == 4
    assert service.cli("audit", "replay")["differences"] == []
    service.cli("audit", "export", "--output", str(tmp_path / "events"))
    assert service.run("audit", "verify-export", str(tmp_path / "events")).returncode == 0
    shown = service.run("config", "show").stdout + service.run("doctor").stdout
    assert "postgresql://docsmith" not in shown
    refused = service.run("take-over", "--yes")
    assert (refused.returncode, "is not a restored copy" in refused.stderr) == (1, True)
    refused = service.run("audit", "accept-loss", "--reason", "none")
    assert (refused.returncode, "there is no loss to accept" in refused.stderr) == (1, True)


def test_commands_say_that_postgresql_is_away(service, server):
    server.kill()
    for command in (("organization", "list"), ("audit", "verify"), ("audit", "replay"), ("take-over", "--yes")):
        refused = service.run(*command)
        assert refused.returncode == 1
        assert "PostgreSQL does not answer at " in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    examined = service.run("doctor")
    assert (examined.returncode, "PostgreSQL does not answer at " in examined.stdout) == (1, True)
    assert service.run("config", "show").returncode == 0
    server.start()
    assert service.cli("audit", "verify")["sound"]


def until_held(address):
    """Wait until a service has noted in the log that it lost events."""
    with closing(Connections.open(Address(address))) as connections:
        while not connections.fetch("SELECT FROM head WHERE held IS NOT NULL"):
            time.sleep(0.1)


def test_a_loss_is_accepted_for_all_instances(service):
    log = service.environment["DOCSMITH_STORE"]
    service.start()
    service.cli("organization", "create", "--name", "Bolt")
    copied(service.data, 5)
    run(log, *LOSE_ONE)
    refused = service.run("organization", "create", "--name", "Cork")
    assert (refused.returncode, "events from 5 to 5 are lost" in refused.stderr) == (1, True)
    until_held(log)
    service.kill()
    with service_in(service.data.parent / "other", service.environment) as other:
        refused = other.run("organization", "create", "--name", "Cork")
        assert (refused.returncode, "does not hold position 5" in refused.stderr) == (1, True)
        accepted = service.cli("audit", "accept-loss", "--reason", "a failover")
        assert (accepted["lostFrom"], accepted["lostThrough"]) == (5, 5)
        other.cli("organization", "create", "--name", "Cork")
        names = [one["name"] for one in service.cli("organization", "list")["organizations"]]
        assert names == ["Acme", "Cork"]
    service.start()
    assert service.cli("audit", "verify")["sound"]


def copied(data, position):
    """Wait until the copy of the log in a data folder has a position."""
    reached = 0
    while reached < position:
        copy = LocalCopy.open(data / "log-copy.db")
        reached = copy.witness.position
        copy.close()


def value(address, sql):
    with closing(Connections.open(Address(address))) as connections:
        return connections.fetch(sql)[0][0]


def test_folders_of_other_instances_follow_an_accepted_loss(service):
    """Each has seen what is lost. One whose log is cut again, after it has followed, has lost something else."""
    log, folder = service.environment["DOCSMITH_STORE"], service.data.parent
    with (
        service_in(folder / "two", service.environment) as two,
        service_in(folder / "three", service.environment) as three,
    ):
        for one in (service, two, three):
            one.start()
        service.cli("organization", "create", "--name", "Bolt")
        service.cli("organization", "create", "--name", "Cork")
        two.cli("audit", "checkpoint")
        last = value(log, "SELECT position FROM head")
        for one in (service, two, three):
            copied(one.data, last)
        for one in (service, two, three):
            one.kill()
        run(log, *LOSE_ONE, *LOSE_ONE)
        for one in (service, two, three):
            assert "are lost" in one.run("organization", "list").stderr
        accepted = service.cli("audit", "accept-loss", "--reason", "a failover")
        assert (accepted["lostFrom"], accepted["lostThrough"]) == (last - 1, last)
        service.start()
        for one in (two, three):
            one.start()
            assert "as an operator has accepted" in one.log()
            assert one.cli("audit", "verify")["sound"]
            assert [each["name"] for each in one.cli("organization", "list")["organizations"]] == ["Acme"]
        assert f'"position":{last}' in (two.data / "checkpoints.lost.jsonl").read_text()
        three.cli("organization", "create", "--name", "Dole")
        last = value(log, "SELECT position FROM head")
        copied(two.data, last)
        for one in (service, two, three):
            one.kill()
        run(log, *LOSE_ONE)
        refused = two.run("serve", "--port", "0")
        assert (refused.returncode, f"events from {last} to {last} are lost" in refused.stderr) == (1, True)


def test_a_log_that_a_lost_instance_has_stopped_goes_on(service):
    log = service.environment["DOCSMITH_STORE"]
    run(log, "UPDATE head SET held = 'db/log does not hold position 9 as it was stored'")
    refused = service.run("organization", "create", "--name", "Bolt")
    assert (refused.returncode, "does not hold position 9" in refused.stderr) == (1, True)
    found = {one["name"]: one for one in service.cli("doctor", status=1)["findings"]}
    assert "does not hold position 9" in found["log"]["says"]
    assert "docsmith audit accept-loss --reason TEXT" in found["log"]["mend"]
    accepted = service.cli("audit", "accept-loss", "--reason", "its disk is gone")
    assert (accepted["lostThrough"], "position 9" in accepted["witness"]) == (None, True)
    (event,) = service.cli("audit", "show", "--type", "loss-accepted")["events"]
    assert event["data"]["reason"] == "its disk is gone"
    service.cli("organization", "create", "--name", "Bolt")
    assert service.cli("audit", "accept-loss", "--reason", "again", status=1)["code"] == "nothing_lost"
    assert service.cli("audit", "verify")["sound"]


def test_nothing_is_appended_to_a_log_that_was_moved(service, tmp_path):
    environment, moved_to = dict(service.environment), tmp_path / "moved-to"
    with service_in(tmp_path / "other", environment) as other:
        other.cli("organization", "create", "--name", "Early")
        service.cli("store", "copy", "env:DOCSMITH_STORE", str(moved_to), "--move")
        for command in (("organization", "create", "--name", "Late"), ("audit", "accept-loss", "--reason", "none")):
            refused = other.run(*command)
            assert (refused.returncode, "was moved into a data folder" in refused.stderr) == (1, True), command
        assert "--move" in {one["name"]: one for one in other.cli("doctor", status=1)["findings"]}["log"]["mend"]
        refused = other.run("store", "copy", "env:DOCSMITH_STORE", str(tmp_path / "third"), "--move")
        assert (refused.returncode, "was moved into a data folder" in refused.stderr) == (1, True)
        service.data, service.environment = moved_to, {}
        service.cli("organization", "create", "--name", "Bolt")
        service.environment = environment
        service.cli("store", "copy", str(moved_to), "env:DOCSMITH_STORE", "--move")
        other.cli("organization", "create", "--name", "Cork")
        names = [one["name"] for one in service.cli("organization", "list")["organizations"]]
        assert names == ["Acme", "Early", "Bolt", "Cork"]


def test_a_move_that_fails_takes_its_hold_back(service, tmp_path):
    """The last part of the copy fails: the log says that it has one more event than there is."""
    log = service.environment["DOCSMITH_STORE"]
    run(
        log,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.held IS NOT NULL THEN"
        " NEW.position := NEW.position + 1; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER fails BEFORE UPDATE ON head FOR EACH ROW EXECUTE FUNCTION fail()",
    )
    refused = service.run("store", "copy", "env:DOCSMITH_STORE", str(tmp_path / "moved-to"), "--move")
    assert (refused.returncode, "is missing" in refused.stderr) == (1, True), refused.stderr
    run(log, "DROP TRIGGER fails ON head", "UPDATE head SET position = position - 1")
    service.cli("organization", "create", "--name", "Bolt")


def test_a_move_that_was_killed_is_finished_by_a_repeat(service, tmp_path):
    log, moved_to = service.environment["DOCSMITH_STORE"], tmp_path / "moved-to"
    service.cli("store", "copy", "env:DOCSMITH_STORE", str(moved_to))
    run(log, f"UPDATE head SET held = '{MOVED_AWAY}'")
    service.cli("store", "copy", "env:DOCSMITH_STORE", str(moved_to), "--move")
    assert "was moved" in service.run("organization", "create", "--name", "Late").stderr
    service.data, service.environment = moved_to, {}
    service.cli("organization", "create", "--name", "Bolt")
