"""A hosted repository, and the folder or repository that it was made from and that people still work on: changes there
are imported by a merge of whole files, so that what was merged here stays.

The files of a folder, and those of a repository without history, are commits on a line of their own; a reference says
how far it has been imported.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from dulwich.graph import find_merge_base
from dulwich.objects import Blob, Commit, ObjectID
from dulwich.refs import Ref

from service.adapters.git.folder import AUTHOR, SKIPPED, Scan
from service.adapters.git.import_repository import is_folder, is_shallow
from service.adapters.git.names import MAX_DEPTH
from service.adapters.git.objects import MAX_ENTRIES, Objects
from service.adapters.git.opened_folder import OpenedFolder, open_folder
from service.adapters.git.remote import transport as git_transport
from service.adapters.git.remote.remotes import Remote
from service.adapters.git.repositories import (
    FETCHED,
    HEADS,
    BareRepository,
    branch_commit,
    children_first,
    commit_of,
    move_ref,
    opened,
)
from service.adapters.git.tree_merge import Unmergeable, merged_tree
from service.domain.errors import Conflict, Invalid, Unavailable
from service.runtime.file_locks import lock_of, locked

TAKEN_IN = b"refs/docsmith/taken-in"
STATE_FILE = Path("docsmith", "taken-in")
"""Only spares a look: when it is lost, or half, everything is looked at."""
MAX_COMMITS = 100_000
"""Followed to the first one."""


def refresh(hosted: Path, remote: Remote, ref: str) -> bool:
    """Import what is new; return whether anything was. Safe to repeat after a crash at any point.

    Raise Conflict (``diverged``) when a file changed there and here: nothing is imported.
    """
    is_plain = is_folder(remote)
    with locked(lock_of(hosted)), opened(hosted, durable=True) as repository:
        ours = branch_commit(repository, ref)
        if ours is None:
            raise Invalid(f"The hosted repository has no branch {ref!r}.", code="no_such_branch")
        if is_plain:
            return _take_in_files(repository, _folder(remote), ours, ref)
        has_no_history = is_shallow(remote)
        found = git_transport.fetch(hosted, remote, [ref], 1 if has_no_history else None, durable=True)
        if ref not in found:
            raise Invalid(f"{remote.url or remote.path} has no branch {ref!r}.", code="no_such_branch")
        theirs = ObjectID(found[ref].encode())
        try:
            if has_no_history:
                (hosted / "shallow").unlink(missing_ok=True)
                return _take_in_files(repository, _commit_of(theirs), ours, ref)
            bases = find_merge_base(repository, [ours, theirs])
            base = bases[0] if bases else None
            return base is not None and base != theirs and _merge(repository, base, ours, theirs, ref)
        finally:
            repository.refs.remove_if_equals(Ref(FETCHED + ref.encode()), None)


Take = Callable[[BareRepository], tuple[ObjectID, int]]
"""The tree of the files as they are now, its objects in the repository, and the time of the newest."""


def _folder(remote: Remote) -> Take:
    def take(repository: BareRepository) -> tuple[ObjectID, int]:
        with open_folder(Path(remote.path), remote.root, remote.name) as opened:
            scan = Scan(opened)
            tree = scan.tree()
            if tree is None:
                raise Invalid(f"There are no files in {opened.path}.", code="bad_repository")
            objects = Objects(repository)
            for name, file in scan.files.items():
                if name not in objects:
                    blob = Blob.from_string(file.content())
                    if blob.id != name:
                        raise Unavailable(f"{file.path} changed while it was being read.")
                    repository.object_store.add_object(blob)
            for each in children_first(scan.trees.values()):
                if each.id not in objects:
                    repository.object_store.add_object(each)
            return tree, max(0, int(max(file.modified for file in scan.files.values())))

    return take


def _commit_of(name: ObjectID) -> Take:
    def take(repository: BareRepository) -> tuple[ObjectID, int]:
        commit = commit_of(repository, name.decode())
        return commit.tree, commit.commit_time

    return take


def _take_in_files(repository: BareRepository, take: Take, ours: ObjectID, ref: str) -> bool:
    base = _last_taken_in(repository, ours)
    if base is None:
        return False  # it was made from something else
    tree, at = take(repository)
    if tree == base.tree:
        return False
    theirs = _commit(repository, tree, [base.id], at, b"Take in changes\n")
    taken = _merge(repository, ObjectID(base.id), ours, theirs, ref)
    move_ref(repository, TAKEN_IN, None, theirs)
    return taken


def _last_taken_in(repository: BareRepository, ours: ObjectID) -> Commit | None:
    known = repository.refs.as_dict().get(Ref(TAKEN_IN))
    if known is not None:
        return commit_of(repository, known.decode())
    commit = commit_of(repository, ours.decode())
    for _ in range(MAX_COMMITS):
        if not commit.parents:
            return commit if commit.author == AUTHOR and commit.message.startswith(b"Import ") else None
        commit = commit_of(repository, commit.parents[0].decode())
    return None


def _merge(repository: BareRepository, base: ObjectID, ours: ObjectID, theirs: ObjectID, ref: str) -> bool:
    """Let the branch have both sides."""
    new = theirs
    if ours != base:
        before, here, there = (commit_of(repository, name.decode()) for name in (base, ours, theirs))
        try:
            add = repository.object_store.add_object
            tree = merged_tree(Objects(repository), add, (before.tree, here.tree, there.tree))
        except Unmergeable as error:
            raise Conflict(
                f"{error} was changed in what this project was made from, and here too. Make it the same in both, then"
                " index or upload again.",
                code="diverged",
            ) from None
        if tree == here.tree:
            return False
        new = _commit(repository, tree, [ours, theirs], there.commit_time, b"Merge what was taken in\n")
    if not move_ref(repository, HEADS + ref.encode(), ours, new):
        raise Unavailable("Another process is changing this branch; try again.", code="busy")
    return True


def _commit(repository: BareRepository, tree: ObjectID, parents: list[ObjectID], at: int, message: bytes) -> ObjectID:
    commit = Commit()
    commit.tree, commit.parents = tree, parents
    commit.author = commit.committer = AUTHOR
    commit.author_time = commit.commit_time = at
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = message
    repository.object_store.add_object(commit)
    return ObjectID(commit.id)


def known_state(hosted: Path) -> str:
    """Return the state of the folder or repository when it was last imported; empty when it is not known."""
    try:
        return (hosted / STATE_FILE).read_text(encoding="utf-8")
    except OSError:
        return ""


def remember_state(hosted: Path, state: str) -> None:
    (hosted / STATE_FILE).parent.mkdir(exist_ok=True)
    (hosted / STATE_FILE).write_text(state, encoding="utf-8")


def state_of(remote: Remote, ref: str) -> str:
    """Return a text that differs whenever there may be something to import: a folder's names, sizes and times, or the
    newest commit of a repository on this machine; empty for one elsewhere, where only a fetch can find out. No file is
    read. Raise as ``refresh`` does.
    """
    if not remote.path:
        return ""
    if not is_folder(remote):
        return git_transport.heads(remote, ref).get(ref, "")
    found, entries = sha256(), 0
    todo: list[tuple[str, ...]] = [()]
    with open_folder(Path(remote.path), remote.root) as root:
        while todo:
            parts = todo.pop()
            with suppress(Unavailable), root.folder(*parts) as folder:  # removed just now: another state without it
                for item in _listed(folder):
                    entries += 1
                    if entries > MAX_ENTRIES:
                        raise Invalid(f"The folder has more than {MAX_ENTRIES:,} files.", code="too_large")
                    if item.is_dir(follow_symlinks=False):
                        if len(parts) < MAX_DEPTH:
                            todo.append((*parts, item.name))
                        continue
                    with suppress(FileNotFoundError):
                        status = item.stat(follow_symlinks=False)
                        path = os.fsencode(folder.path / item.name)
                        found.update(b"%b\0%d %d %d\0" % (path, status.st_size, status.st_mtime_ns, status.st_mode))
    return found.hexdigest()


def _listed(folder: OpenedFolder) -> list[os.DirEntry[str]]:
    """In an order of their own: that of the file system may be another one tomorrow."""
    return [item for item in folder.listed() if os.fsencode(item.name) not in SKIPPED]
