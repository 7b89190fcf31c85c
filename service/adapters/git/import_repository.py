"""Taking a repository in: from now on the embedded code host keeps it."""

import os
import shutil
from pathlib import Path

from dulwich.objects import Commit, ObjectID
from dulwich.refs import Ref

from service.adapters.git.folder import AUTHOR, import_folder
from service.adapters.git.opened_folder import git_folder, open_folder
from service.adapters.git.remote import transport as git_transport
from service.adapters.git.remote.remotes import Remote
from service.adapters.git.repositories import FETCHED, HEADS, commit_of, create, forget_unfinished, opened
from service.domain.errors import Invalid
from service.runtime.file_locks import lock_of, locked

FOLDER_BRANCH = "main"
"""The branch to which the files of a plain folder are committed when none is named."""


def default_branch(remote: Remote) -> str:
    if is_folder(remote):
        return FOLDER_BRANCH
    return git_transport.default_branch(remote)


def import_repository(hosted: Path, remote: Remote, ref: str) -> None:
    """Make the hosted repository from a plain folder, or from the branch ``ref`` of a git repository with its history.

    A shallow repository has no history to serve to others: its files become one commit, as a folder's do.
    """
    with locked(lock_of(hosted)):
        forget_unfinished(hosted)
        if hosted.is_dir():
            return
        is_plain = is_folder(remote)

        def fill(made: Path) -> None:
            if is_plain:
                import_folder(made, Path(remote.path), ref, remote.root, remote.name)
            else:
                _import_branch(made, remote, ref)

        create(hosted, fill, branch=ref, durable=True)


def forget_repository(hosted: Path) -> None:
    """Remove the repository, and what a killed import of it left."""
    if hosted.parent.is_dir():
        with locked(lock_of(hosted)):
            forget_unfinished(hosted)
            shutil.rmtree(hosted, ignore_errors=True)


def no_folder(remote: Remote) -> Invalid:
    if remote.is_plain:
        return Invalid("The uploaded files are not here any more. Upload them again.", code="no_such_repository")
    return Invalid(f"{remote.path} is not a folder.", code="no_such_repository")


def is_folder(remote: Remote) -> bool:
    """Return whether it is a plain folder of this machine. Raises Invalid where there is none, and what ``git_folder``
    and ``open_folder`` raise.
    """
    if not remote.path:
        return False
    folder = Path(remote.path)
    if not remote.root and not folder.is_dir():
        raise no_folder(remote)
    if remote.is_plain:
        return True
    if not remote.root:
        return not (folder / ".git").exists() and not ((folder / "objects").is_dir() and (folder / "refs").is_dir())
    with open_folder(folder, remote.root) as opened:
        return git_folder(opened) is None


def is_shallow(remote: Remote) -> bool:
    if not remote.path:
        return False
    if not remote.root:
        return any((Path(remote.path) / where).is_file() for where in ("shallow", ".git/shallow"))
    with open_folder(Path(remote.path), remote.root) as opened, opened.folder(*git_folder(opened) or ()) as git:
        return bool(git.mode("shallow"))


def _import_branch(made: Path, remote: Remote, ref: str) -> None:
    if is_shallow(remote):
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
    with opened(made) as repository:  # ``create`` flushes all of it, once
        name = ref.encode()
        repository.refs[Ref(HEADS + name)] = repository.refs[Ref(FETCHED + name)]
        repository.refs.remove_if_equals(Ref(FETCHED + name), None)


def _import_files(made: Path, remote: Remote, ref: str) -> None:
    found = git_transport.fetch(made, remote, [ref], 1)
    if ref not in found:
        raise Invalid(f"{remote.path} has no branch {ref!r}.", code="no_such_branch")
    with opened(made) as repository:  # ``create`` flushes all of it, once
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
