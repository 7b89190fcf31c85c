"""Who may read a data folder, and which commands may make one."""

import os
import stat
from contextlib import contextmanager

import pytest
from aiohttp import encode_basic_auth

from tests.end_to_end.conftest import http  # noqa: F401
from tests.end_to_end.talk import create_job, job_events
from tests.service_process import Service, service_in, write_docs


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def open_to_others(folder):
    return [path for path in (folder, *folder.rglob("*")) if path.lstat().st_mode & 0o077]


async def test_data_is_the_owners_alone_whatever_the_umask(tmp_path, http):  # noqa: F811
    with umask(0), service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs", {"index.md": "# Kite\n\nIt flies high.\n"}), domain="open")
        service.start()
        job = await create_job(http, service, 'Append "Kites rise." to index.md')
        await job_events(http, service, job["id"])
        service.cli("audit", "checkpoint")
        assert open_to_others(service.data) == []


def test_an_open_data_folder_is_closed_at_the_start(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"))
        for path in (service.data, *service.data.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        found = [one for one in service.cli("doctor", status=1)["findings"] if one["name"] == "permissions"]
        assert any("hosted" in one["says"] and one["mend"] == f"chmod -R go= {service.data}" for one in found)
        assert any("keys.db" in one["says"] and one["level"] == "wrong" for one in found)
        assert stat.S_IMODE(service.data.stat().st_mode) == 0o755  # doctor changes nothing
        service.start()
        assert open_to_others(service.data) == []


def test_a_link_in_the_data_folder_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    with service_in(tmp_path) as service:
        service.cli("organization", "create", "--name", "Acme")
        (service.data / "index").symlink_to(outside)
        service.data.chmod(0o755)
        service.start()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755


READING = [
    ("organization", "list"),
    ("project", "list"),
    ("key", "create", "--kind", "admin"),
    ("search", "kite", "install"),
    ("job", "list"),
    ("audit", "verify"),
    ("audit", "erase", "thread-x", "--yes"),
    ("backup", "x.tar"),
    ("health",),
    ("doctor",),
]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_a_mistyped_folder_leaves_it_as_it_was(tmp_path, command):
    (tmp_path / "notes.txt").write_text("mine")
    done = Service(tmp_path).run(*command)
    assert done.returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    "command",
    [("serve", "--port", "0"), ("organization", "create", "--name", "Acme"), ("demo", "--exit")],
    ids=" ".join,
)
def test_a_folder_that_holds_other_things_is_refused(tmp_path, command):
    tmp_path.chmod(0o755)
    (tmp_path / "notes.txt").write_text("mine")
    done = Service(tmp_path).run(*command)
    assert done.returncode == 1
    assert "holds other things ('notes.txt')" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_the_root_of_a_new_volume_is_accepted(tmp_path):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "docsmith.toml").write_text("")
    (tmp_path / "manual").mkdir()  # the copy that the single binary's demo has made
    Service(tmp_path).cli("organization", "create", "--name", "Acme")
    assert (tmp_path / "events.db").exists()


async def test_a_local_projects_path_is_not_shown(tmp_path, http):  # noqa: F811
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"), changes=True)
        service.start()
        (tmp_path / "docs").rename(tmp_path / "gone")
        job = await create_job(http, service, 'Append "Kites rise." to index.md')
        events = await job_events(http, service, job["id"])
        shown = {"repository": f"hosted/{service.project_id}.git", "ref": "main"}
        assert job["source"] == events[0]["source"] == shown
        address = f"{service.url}/v2/agent/{service.project_id}/job/{job['id']}"
        async with http.get(address, headers=service.admin) as answer:
            assert str(tmp_path) not in await answer.text() + str(events)
        refs = f"{service.url}/{shown['repository']}/info/refs?service=git-upload-pack"
        async with http.get(refs, headers={"Authorization": encode_basic_auth("git", service.admin_key)}) as answer:
            assert answer.status == 200
