"""Instances that share a folder of repositories see each other's locks there, or say that they do not."""

import pytest

from service.workers.hosted_folder import FOLDER, HostedFolder
from tests.fakes.instances import FakeInstances


@pytest.fixture
async def pair(tmp_path):
    here, there = FakeInstances("here"), FakeInstances("there")
    here.begin("there", "http://there")
    there.begin("here", "http://here")
    folders = HostedFolder(tmp_path, here), HostedFolder(tmp_path, there)
    for folder in folders:
        await folder.open()
    yield folders
    for folder in folders:
        await folder.close()


async def test_instances_of_one_folder_see_each_others_locks(pair):
    for folder in pair:
        await folder.look()
        assert folder.trouble is None


async def test_lock_that_is_not_seen_is_reported(pair, tmp_path):
    here, there = pair
    await there.close()
    (tmp_path / FOLDER / "there").touch()  # as on a file system whose locks stay on their machine
    await here.look()
    assert "no locks between machines" in here.trouble


async def test_instance_with_another_folder_is_reported(pair, tmp_path):
    here, there = pair
    await there.close()
    await here.look()
    assert "the instance there does not use the same hosted_folder" in here.trouble
    await there.open()
    await here.look()
    assert here.trouble is None


async def test_files_of_instances_that_ended_are_removed(pair, tmp_path):
    here, _ = pair
    (tmp_path / FOLDER / "gone").touch()
    await here.look()
    assert sorted(file.name for file in (tmp_path / FOLDER).iterdir()) == ["here", "there"]


async def test_folder_that_is_gone_is_reported(pair, tmp_path):
    here, _ = pair
    (tmp_path / FOLDER).rename(tmp_path / "elsewhere")
    await here.look()
    assert "cannot be used" in here.trouble
    (tmp_path / "elsewhere").rename(tmp_path / FOLDER)
