"""A folder that others write to is read as it is: nothing in it leads to files elsewhere, and none is quoted."""

import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from dulwich.objects import Blob, Tree
from msgspec.structs import replace

from service.adapters.git.dulwich_docs import DulwichDocs
from service.adapters.git.folder import Scan
from service.adapters.git.import_repository import import_repository
from service.adapters.git.opened_folder import Folders, open_folder
from service.adapters.git.remote.remotes import Remote
from service.adapters.git.repositories import opened
from service.domain.errors import Forbidden, Invalid, ServiceError
from tests.adapters.test_dulwich_docs import LOCAL, commit_to, make_repository, write_folder

SECRET = "sk-live-4242424242"


@dataclass
class Place:
    shared: Path
    """Allowed by the operator, and written to by others."""
    secret: Path
    """A repository that the service may read and others may not."""
    data: Path
    folders: Folders

    def source(self, name: str):
        return replace(LOCAL, repository=str(self.shared / name), guarded=True)

    def docs(self):
        async def folders():
            return self.folders

        return DulwichDocs(self.data, env={}, folders=folders)

    def published(self) -> bytes:
        """Return all that the service has in its repositories."""
        found = []
        for hosted in (self.data / "hosted").glob("*.git"):
            with opened(hosted) as repository:
                store = repository.object_store
                found += [store[name].as_raw_string() for name in store]
        return b"\n".join(found)


def repository(path: Path, text: str) -> Path:
    blob, tree = Blob.from_string(text.encode()), Tree()
    tree.add(b"index.md", 0o100644, blob.id)
    make_repository(path, tree, blob)
    return path


@pytest.fixture
def place(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    secret = repository(tmp_path / "secret.git", f"# {SECRET}\n")
    return Place(shared, secret, tmp_path / "data", Folders((str(shared),)))


def git_file(folder: Path, secret: Path) -> None:
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {secret}\n")


def linked_git(folder: Path, secret: Path) -> None:
    folder.mkdir()
    (folder / ".git").symlink_to(secret)


def commondir(folder: Path, secret: Path) -> None:
    folder.mkdir()
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "commondir").write_text(f"{secret}\n")


def without(*names: str):
    """Return a repository that has some of its files where the secret one has them."""

    def make(folder: Path, secret: Path) -> None:
        shutil.copytree(secret, folder)
        for name in names:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            path.symlink_to(secret / name)

    return make


def alternates(folder: Path, secret: Path) -> None:
    shutil.copytree(secret, folder)
    for inner in (folder / "objects").iterdir():
        shutil.rmtree(inner)
    (folder / "objects" / "info").mkdir()
    (folder / "objects" / "info" / "alternates").write_text(f"{secret / 'objects'}\n")


def linked_objects(folder: Path, secret: Path) -> None:
    shutil.copytree(secret, folder)
    for inner in list((folder / "objects").iterdir()):
        if len(inner.name) == 2:
            shutil.rmtree(inner)
            inner.symlink_to(secret / "objects" / inner.name)


def linked_files(folder: Path, secret: Path) -> None:
    shutil.copytree(secret, folder)
    for file in list((folder / "objects").rglob("*")):
        if file.is_file():
            file.unlink()
            file.symlink_to(secret / file.relative_to(folder))


def a_link(folder: Path, secret: Path) -> None:
    folder.symlink_to(secret)


NO_REPOSITORY = without("objects")
ATTACKS = [
    git_file,
    linked_git,
    commondir,
    NO_REPOSITORY,
    without("HEAD"),
    alternates,
    linked_objects,
    linked_files,
    a_link,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.__name__)
async def test_no_repository_elsewhere_is_reached(place, attack):
    attack(place.shared / "docs", place.secret)
    # One without objects is no repository: its files are taken for pages, and the link for a link.
    with nullcontext() if attack is NO_REPOSITORY else pytest.raises(ServiceError) as error:
        await place.docs().register(place.source("docs"))
    assert SECRET not in str(error and error.value)
    assert SECRET.encode() not in place.published()


async def test_configuration_of_others_is_not_read(place, tmp_path):
    (tmp_path / "keys").write_text(f"{SECRET}\n")
    made = repository(place.shared / "docs", "# Theirs\n")
    (made / "config").write_text(f"[include]\n\tpath = {tmp_path / 'keys'}\n")
    await place.docs().register(place.source("docs"))
    assert b"# Theirs" in place.published()


async def test_error_of_a_damaged_repository_quotes_nothing(place, tmp_path):
    (tmp_path / "keys").write_text(f"{SECRET}\n")
    made = repository(tmp_path / "terminal.git", "# Theirs\n")
    (made / "config").write_text(f"[include]\n\tpath = {tmp_path / 'keys'}\n")
    with pytest.raises(Invalid, match="damaged") as error:  # named at the terminal: its configuration is read
        await place.docs().register(replace(LOCAL, repository=str(made)))
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("inner", ["", "site"])
async def test_folder_that_becomes_a_link_is_not_followed(place, tmp_path, inner):
    write_folder(place.shared / "guide" / inner)
    source, docs = place.source("guide"), place.docs()
    await docs.register(source)
    shutil.rmtree(place.shared / "guide")
    write_folder(tmp_path / "private")
    (tmp_path / "private" / "index.md").write_text(f"# {SECRET}\n")
    (place.shared / "guide").symlink_to(tmp_path / "private")
    with pytest.raises(Forbidden, match="link"):
        await docs.refresh(source)
    assert SECRET.encode() not in place.published()


async def test_folder_is_not_read_after_it_is_taken_back(place):
    write_folder(place.shared / "guide")
    source = replace(place.source("guide"), guarded=False)  # as projects of earlier versions are
    await place.docs().register(source)
    (place.shared / "guide" / "new.md").write_text(f"# {SECRET}\n")
    place.folders = Folders((), (str(place.shared),))
    with pytest.raises(Forbidden, match="may not be read"):
        await place.docs().refresh(source)
    place.folders = Folders()
    with pytest.raises(Forbidden, match="may not be read"):
        await place.docs().refresh(replace(source, guarded=True))
    assert SECRET.encode() not in place.published()


async def test_own_data_is_not_read_even_below_an_allowed_folder(place):
    place.data = place.shared / "data"
    (place.data / "hosted").mkdir(parents=True)
    repository(place.data / "hosted" / "p2.git", f"# {SECRET}\n")
    with pytest.raises(Forbidden, match="own data"):
        await place.docs().register(place.source("data/hosted/p2.git"))


def test_what_was_found_is_read_where_it_was_found(tmp_path):
    """The scan reads each file twice; between, its folder becomes a link."""
    write_folder(tmp_path / "folder")
    (tmp_path / "private").mkdir()
    with open_folder(tmp_path / "folder", str(tmp_path)) as root:
        scan = Scan(root)
        scan.tree()
        shutil.move(tmp_path / "folder" / "docs", tmp_path / "moved")
        (tmp_path / "folder" / "docs").symlink_to(tmp_path / "moved")
        inside = [file for file in scan.files.values() if file.parts[0] == "docs"]
        assert inside
        for file in inside:
            with pytest.raises(ServiceError):
                file.content()


@pytest.mark.parametrize("name", ["bare.git", "work"])
async def test_sound_repository_is_imported_and_followed(place, name):
    bare = repository(place.shared / name, "# One\n")
    if name == "work":
        bare.rename(place.shared / "moved")
        (place.shared / "work").mkdir()
        bare = (place.shared / "moved").rename(place.shared / "work" / ".git")
    source, docs = place.source(name), place.docs()
    assert await docs.default_branch(source) == "main"
    await docs.register(source)
    assert not await docs.refresh(source)
    commit_to(bare, "main", "index.md", "# Two\n")
    assert await docs.refresh(source)
    files = {file.path: file.blob for file in await docs.list_files(source, (await docs.fetch(source)).base_commit)}
    assert await docs.read_file(source, files["index.md"]) == b"# Two\n"


def test_errors_of_an_archive_name_no_folder_of_the_service(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for name in ("A.md", "a.md"):
        (files / name).write_text("# A\n")
    with pytest.raises(Invalid, match="differs from its neighbour") as error:
        import_repository(tmp_path / "hosted" / "p.git", Remote("", str(files), is_plain=True), "main")
    assert str(tmp_path) not in str(error.value)
    assert "the archive/a.md" in str(error.value)
