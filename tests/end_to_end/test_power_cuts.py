"""What was acknowledged is there after a power cut, of which only what was flushed survives."""

import shutil
import subprocess

import pytest

from scripts.outages.flushed_disk import flushed_disk, mounted, unusable
from tests.service_process import DOCS, service_in, write_docs

pytestmark = pytest.mark.skipif(unusable() is not None, reason=f"no disk whose power can be cut: {unusable()}")


@pytest.fixture
def disk(tmp_path):
    with flushed_disk(tmp_path, 64) as disk:
        yield disk


def git(*arguments, cwd):
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def test_a_cut_keeps_what_was_flushed_and_nothing_else(disk, tmp_path):
    with (disk.folder / "flushed").open("w") as file:
        file.write("there")
    subprocess.run(["sync", "-f", disk.folder], check=True)
    (disk.folder / "later").write_text("lost")
    disk.cut(tmp_path / "cut.img")
    with mounted(tmp_path / "cut.img", tmp_path / "after") as folder:
        assert (folder / "flushed").read_text() == "there"
        assert not (folder / "later").exists() or not (folder / "later").read_text()


def test_project_made_from_a_folder_survives_a_cut_after_the_answer(disk, tmp_path):
    with service_in(tmp_path / "one") as service:
        service.set_up(write_docs(tmp_path / "docs"), index=False)
        shutil.move(service.data, disk.folder / "data")
        subprocess.run(["sync", "-f", disk.folder], check=True)
        service.data = disk.folder / "data"
        docs = write_docs(tmp_path / "more", {**DOCS, "more.md": "# More\n"})
        made = service.cli("project", "create", "--name", "More", "--repository", str(docs), "--domain", "more")
        disk.cut(tmp_path / "cut.img")
    with mounted(tmp_path / "cut.img", tmp_path / "after") as folder:
        repository = folder / "data" / "hosted" / f"{made['id']}.git"
        git("fsck", "--strict", cwd=repository)
        assert git("show", "main:more.md", cwd=repository) == "# More"
