"""How a process becomes an instance of its log."""

import pytest

from service import __version__
from service.cli.operate.instance_findings import look_at_instances
from service.main.process.joining import internal_url, join
from service.ports.shared.instances import Peer
from service.runtime.hosted_place import HostedPlace
from service.runtime.settings.settings import InstancesSection, Settings
from tests.eventstore.backends import addresses

ONE, TWO = "http://127.0.0.1:8081", "http://127.0.0.1:8082"


@pytest.mark.parametrize(
    ("listening", "database", "url"),
    [
        ("http://10.0.0.7:8080", "postgresql://u:p@db/d", "http://10.0.0.7:8080"),
        ("http://localhost:8080", "postgresql://u:p@db/d", "http://localhost:8080"),
        ("http://0.0.0.0:8080", "postgresql://u:p@127.0.0.1:5432,db:5432/d", "http://127.0.0.1:8080"),
        ("http://[::]:8080", "postgresql:///d?host=/run", "http://127.0.0.1:8080"),
        ("http://0.0.0.0:1", "postgresql://u:p@nowhere.invalid/d", "http://127.0.0.1:1"),
    ],
)
def test_others_reach_an_instance_where_it_listens(listening, database, url):
    assert internal_url(listening, database) == url


@pytest.fixture
def in_tables(tmp_path, monkeypatch):
    log, vault = addresses(tmp_path)
    monkeypatch.setenv("DOCSMITH_STORE", log.text)
    monkeypatch.setenv("DOCSMITH_VAULT", vault.text)
    return tmp_path


async def test_services_of_a_log_in_postgresql_know_each_other(in_tables):
    named = Settings(instances=InstancesSection(url="http://10.0.0.7:8080/"))
    async with join(in_tables / "one", Settings(), serves=True) as one:
        await one.serve_at("http://127.0.0.1:8080", is_home=False)
        async with join(in_tables / "two", named, serves=True) as two:
            await two.serve_at("http://127.0.0.1:8081", is_home=True)
            [peer] = two.instances.others()
            assert (peer.name, peer.url, peer.is_home) == (one.instances.name, "http://127.0.0.1:8080", False)
            async with join(in_tables / "three", named, serves=False) as command:
                peer = command.instances.find(two.instances.name)
                assert (peer.url, peer.is_home) == ("http://10.0.0.7:8080", True)
                assert command.instances.is_alive(one.instances.name)


async def test_service_of_a_folder_is_alone(tmp_path):
    async with join(tmp_path, Settings(), serves=True) as joined:
        await joined.serve_at("http://127.0.0.1:8080", is_home=False)
        assert joined.instances.leads()
        assert (tmp_path / "instances" / joined.instances.name).exists()


async def test_what_a_crash_left_in_the_folder_has_ended_at_once(in_tables):
    async with join(in_tables / "one", Settings(), serves=True) as one:
        lost = one.instances.name
        (in_tables / "two" / "instances").mkdir(parents=True)
        (in_tables / "two" / "instances" / lost).touch()  # as after a crash of a service on the other folder
        async with join(in_tables / "two", Settings(), serves=True) as two:
            assert not two.instances.is_alive(lost)
            assert lost in two.instances.crashed
            assert two.instances.leads()


async def test_doctor_lists_instances_and_the_leader(in_tables):
    async with join(in_tables / "one", Settings(), serves=True) as one:
        await one.serve_at(ONE, is_home=True)
        async with join(in_tables / "two", Settings(), serves=True) as two:
            await two.serve_at(TWO, is_home=False)
            assert await examined(in_tables) == [
                ("instance", "ok", f"{ONE} (version {__version__}) leads and is home to the embedded code host."),
                ("instance", "ok", f"{TWO} (version {__version__}) is alive."),
            ]
            await two.serve_at(TWO, is_home=True)
            [(name, level, says)] = (await examined(in_tables))[2:]
            assert (name, level) == ("home", "wrong")
            assert "2 instances are home" in says
            assert f"{ONE}, {TWO}" in says


async def examined(folder):
    """The findings of a doctor's look, on a data folder that has no repositories."""
    async with join(folder / "three", Settings(), serves=False) as command:
        place = HostedPlace(folder / "three", is_here=False)
        found = list(look_at_instances(command.instances.others(), place, []))
        return [(finding.name, finding.level, finding.says) for finding in found]


def test_doctor_finds_that_no_one_leads_or_is_home(tmp_path):
    serving = [Peer("one", ONE, "1.0", is_home=False), Peer("two", "", "1.0", is_home=False)]
    place = HostedPlace(tmp_path, is_here=False)
    found = look_at_instances(serving, place, [])
    assert [(finding.name, finding.level) for finding in found] == [("instance", "ok"), ("leader", "wrong")]
    assert [finding.name for finding in look_at_instances(serving[1:], place, [])] == ["instances"]
