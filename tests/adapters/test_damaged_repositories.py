"""A clone is derived, and heals by itself; the hosted repository is the truth, and is never made again in silence."""

import shutil
import subprocess

import pytest
from msgspec.structs import replace

from service.adapters.git.dulwich_docs import DulwichDocs
from service.adapters.git.import_repository import import_repository
from service.adapters.git.remote.remotes import Remote
from service.domain.errors import Damaged
from tests.adapters.test_dulwich_docs import LOCAL, commit_to, write_folder
from tests.contracts.docs_source import commit

DAMAGES = {
    "emptied": lambda file: write(file, b""),
    "zeros": lambda file: write(file, bytes(file.stat().st_size)),
    "cut": lambda file: write(file, file.read_bytes()[: file.stat().st_size // 2]),
}
"""What power cuts leave of files that were not flushed."""


def write(file, content):
    file.chmod(0o600)
    file.write_bytes(content)


def files_of(folder):
    return sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(".lock"))


@pytest.fixture(scope="module")
def taken_in(tmp_path_factory):
    data, folder = tmp_path_factory.mktemp("data"), write_folder(tmp_path_factory.mktemp("folder"))
    import_repository(data / "hosted" / "p1.git", Remote("", str(folder)), "main")
    return data


@pytest.fixture(params=["local", "elsewhere"])
def project(request, taken_in, tmp_path):
    """A data folder, and a source of the embedded code host or of another one."""
    if request.param == "local":
        return shutil.copytree(taken_in, tmp_path / "data"), LOCAL
    shutil.copytree(taken_in / "hosted" / "p1.git", tmp_path / "theirs.git")
    return tmp_path / "data", replace(LOCAL, repository=str(tmp_path / "theirs.git"), code_host="gitea")


def fsck(repository):
    subprocess.run(["git", "fsck", "--strict"], cwd=repository, check=True, capture_output=True)


async def hand_in(docs, source, text):
    """What a job does: fetch, read, commit and push, also after its process was killed."""
    base = (await docs.fetch(source)).base_commit
    files = await docs.list_files(source, base)
    found = await docs.read_files(source, [file.blob for file in files])
    written = await docs.write_commit(source, commit(base, {"index.md": text}, "Ours\n"))
    await docs.push(source, branch="docs/ours", commit=written.commit)
    assert (await docs.fetch(source, branch="docs/ours")).branch_commit == written.commit
    return found


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damaged_clones_are_made_again(project, damage):
    data, source = project
    docs = DulwichDocs(data, env={})
    whole = await hand_in(docs, source, "Kites rise.\n")
    for file in files_of(data / "repos" / "p1.git"):
        if not file.exists():  # made again without it
            continue
        DAMAGES[damage](file)
        docs = DulwichDocs(data, env={})  # the process was killed, too
        assert await hand_in(docs, source, "Kites rise.\n") == whole, file
    fsck(data / "hosted" / "p1.git" if source.code_host == "local" else source.repository)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_clone_damaged_between_commit_and_push_heals_when_the_job_goes_on(project, damage):
    data, source = project
    docs = DulwichDocs(data, env={})
    base = (await docs.fetch(source)).base_commit
    before = set(files_of(data / "repos" / "p1.git"))
    new = commit(base, {"index.md": "Kites rise.\n"}, "Ours\n")
    written = await docs.write_commit(source, new)
    for file in set(files_of(data / "repos" / "p1.git")) - before:
        DAMAGES[damage](file)
    assert await docs.write_commit(source, new) == written  # as a job that goes on does
    await docs.push(source, branch="docs/ours", commit=written.commit)
    assert (await docs.fetch(source, branch="docs/ours")).branch_commit == written.commit


class TestHosted:
    @pytest.fixture
    def data(self, taken_in, tmp_path):
        return shutil.copytree(taken_in, tmp_path / "data")

    async def test_one_that_is_gone_is_not_made_again(self, data, tmp_path):
        source = replace(LOCAL, repository=str(write_folder(tmp_path / "folder")))
        commit_to(data / "hosted" / "p1.git", "main", "merged.md", "Merged here.\n")
        docs = DulwichDocs(data, env={})
        await docs.fetch(source)
        shutil.rmtree(data / "hosted")
        for again in (docs, DulwichDocs(data, env={})):
            for use in (again.fetch(source), again.refresh(source)):
                with pytest.raises(Damaged, match=r"p1.git is damaged: its folder is gone.*restore BACKUP --only p1"):
                    await use
        assert not (data / "hosted" / "p1.git").exists()

    @pytest.mark.parametrize("damage", DAMAGES)
    async def test_damage_is_named_with_the_way_back(self, data, damage):
        for file in files_of(data / "hosted" / "p1.git"):
            if file.suffix not in (".pack", ".idx") and file.name != "main":
                continue
            kept = file.read_bytes()
            DAMAGES[damage](file)
            with pytest.raises(Damaged, match="restore BACKUP --only p1"):
                await hand_in(DulwichDocs(data, env={}), LOCAL, "Kites rise.\n")
            write(file, kept)
            shutil.rmtree(data / "repos")
        await hand_in(DulwichDocs(data, env={}), LOCAL, "Kites rise.\n")

    async def test_file_that_is_no_object_counts_as_none(self, data):
        """A power cut has emptied what an earlier push of the same files was adding."""
        docs, hosted = DulwichDocs(data, env={}), data / "hosted" / "p1.git"
        before = set(files_of(hosted / "objects"))
        base = (await docs.fetch(LOCAL)).base_commit
        written = await docs.write_commit(LOCAL, commit(base, {"index.md": "Kites rise.\n"}, "Ours\n"))
        await docs.push(LOCAL, branch="docs/one", commit=written.commit)
        (hosted / "refs" / "heads" / "docs" / "one").unlink()
        for number, file in enumerate(sorted(set(files_of(hosted / "objects")) - before)):
            DAMAGES[[*DAMAGES][number % 3]](file)
        await docs.push(LOCAL, branch="docs/two", commit=written.commit)
        fsck(hosted)
