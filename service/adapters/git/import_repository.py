"""Taking a repository in: from now on the embedded code host keeps it."""

import os
import shutil
from pathlib import Path

from dulwich.objects import Commit, ObjectID
from dulwich.refs import Ref

from service.adapters.git.folder import AUTHOR, import_folder
from service.adapters.git.remote import transport as git_transport
from service.adapters.git.remote.remotes import Remote, is_shallow
from service.adapters.git.repositories import FETCHED, HEADS, commit_of, create, forget_unfinished, locked, opened
from service.domain.errors import Invalid

FOLDER_BRANCH = "main"
"""The branch to which the files of a plain folder are committed when none is named."""


def default_branch(remote: Remote) -> str:
    folder = Path(remote.path)
    if remote.path and not folder.is_dir():
        raise no_folder(remote)
    if remote.path and (remote.is_plain or not is_repository(folder)):
        return FOLDER_BRANCH
    return git_transport.default_branch(remote)


def import_repository(hosted: Path, remote: Remote, ref: str) -> None:
    """Make the hosted repository from a plain folder, or from the branch ``ref`` of a git repository with its history.

    A shallow repository has no history to serve to others: its files become one commit, as a folder's do.
    """
    with locked(hosted.parent / f".{hosted.name}.lock"):
        forget_unfinished(hosted)
        if hosted.is_dir():
            return
        folder = Path(remote.path)
        if remote.path and not folder.is_dir():
            raise no_folder(remote)

        def fill(made: Path) -> None:
            if remote.path and (remote.is_plain or not is_repository(folder)):
                import_folder(made, folder, ref)
            else:
                _import_branch(made, remote, ref)

        create(hosted, fill, branch=ref)


def forget_repository(hosted: Path) -> None:
    """Remove the repository, and what a killed import of it left."""
    if hosted.parent.is_dir():
        with locked(hosted.parent / f".{hosted.name}.lock"):
            forget_unfinished(hosted)
            shutil.rmtree(hosted, ignore_errors=True)


def no_folder(remote: Remote) -> Invalid:
    if remote.is_plain:
        return Invalid("The uploaded files are not here any more. Upload them again.", code="no_such_repository")
    return Invalid(f"{remote.path} is not a folder.", code="no_such_repository")


def is_repository(folder: Path) -> bool:
    return (folder / ".git").exists() or ((folder / "objects").is_dir() and (folder / "refs").is_dir())


def _import_branch(made: Path, remote: Remote, ref: str) -> None:
    if remote.path and is_shallow(Path(remote.path)):
        _import_files(made, remote, ref)
        return
    found = git_transport.fetch(made, remote, [ref], None)
    if ref not in found:
        branches = sorted(git_transport.heads(remote))
        hint = f" It has: {', '.join(branches[:20])}." if branches else " It is empty."
        raise Invalid(
            f"{remote.url or os.fspath(remote.path)} has no branch {ref!r}.{hint}",
            code="no_such_branch",
        )
    with opened(made, durable=True) as repository:
        name = ref.encode()
        repository.refs[Ref(HEADS + name)] = repository.refs[Ref(FETCHED + name)]
        repository.refs.remove_if_equals(Ref(FETCHED + name), None)


def _import_files(made: Path, remote: Remote, ref: str) -> None:
    found = git_transport.fetch(made, remote, [ref], 1)
    if ref not in found:
        raise Invalid(f"{remote.path} has no branch {ref!r}.", code="no_such_branch")
    with opened(made, durable=True) as repository:
        newest = commit_of(repository, found[ref])
        commit = Commit()
        commit.tree, commit.parents = newest.tree, []
        commit.author = commit.committer = AUTHOR
        commit.author_time = commit.commit_time = newest.commit_time
        commit.author_timezone = commit.commit_timezone = 0
        commit.message = f"Import {ref} at {found[ref]}\n".encode()
        repository.object_store.add_object(commit)
        repository.refs[Ref(HEADS + ref.encode())] = ObjectID(commit.id)
        repository.refs.remove_if_equals(Ref(FETCHED + ref.encode()), None)
    (made / "shallow").unlink(missing_ok=True)
