"""Instances that share a folder of repositories see each other's locks there, or say that they do not."""

import pytest

from service.domain.errors import NotShared
from service.runtime.hosted_place import HostedPlace
from service.workers.hosted_folder import FOLDER, LOOKS_OF_LEASE, HostedFolder
from tests.fakes.instances import FakeInstances


class Instance:
    def __init__(self, shared, name, other):
        self.instances = FakeInstances(name)
        self.instances.begin(other, f"http://{other}")
        self.place = HostedPlace(shared / name, str(shared))
        self.folder = HostedFolder(self.place, self.instances)

    async def look(self):
        """Return why the repositories are not used here; empty when they are."""
        await self.folder.look()
        if self.place.trouble is None:
            assert self.place.repository("p1") == self.place.root / "p1.git"
            return ""
        with pytest.raises(NotShared):
            self.place.repository("p1")
        return self.place.trouble


@pytest.fixture
async def pair(tmp_path):
    instances = Instance(tmp_path, "here", "there"), Instance(tmp_path, "there", "here")
    for one in instances:
        await one.folder.open()
    yield instances
    for one in instances:
        await one.folder.close()


async def test_instances_of_one_folder_see_each_others_locks(pair):
    for one in pair:
        assert not await one.look()


async def test_repositories_are_refused_where_a_lock_is_not_seen(pair, tmp_path):
    here, there = pair
    await there.folder.close()
    (tmp_path / FOLDER / "there").touch()  # as on a file system whose locks stay on their machine
    assert "no locks between machines" in await here.look()


async def test_repositories_are_refused_beside_one_with_another_folder(pair):
    here, there = pair
    await there.folder.close()
    assert "the instance there does not use the same hosted_folder" in await here.look()
    assert here.folder.away is None
    await there.folder.open()
    assert not await here.look()


@pytest.mark.parametrize("is_killed", [True, False])
async def test_instance_that_ended_stops_no_other(pair, tmp_path, is_killed):
    here, there = pair
    assert not await here.look()
    await there.folder.close()
    if is_killed:
        (tmp_path / FOLDER / "there").touch()  # without its lock
    assert [await here.look() for _ in range(LOOKS_OF_LEASE)] == [""] * LOOKS_OF_LEASE
    assert await here.look()  # it goes on renewing its lease, so it did not end
    here.instances.end("there", crashed=is_killed)
    assert not await here.look()


async def test_files_of_instances_that_ended_are_removed(pair, tmp_path):
    here, _ = pair
    (tmp_path / FOLDER / "gone").touch()
    await here.look()
    assert sorted(file.name for file in (tmp_path / FOLDER).iterdir()) == ["here", "there"]


async def test_folder_that_is_gone_is_reported(pair, tmp_path):
    here, _ = pair
    (tmp_path / FOLDER).rename(tmp_path / "elsewhere")
    assert "cannot be used" in await here.look()
    assert here.folder.away == here.place.trouble
    (tmp_path / "elsewhere").rename(tmp_path / FOLDER)
