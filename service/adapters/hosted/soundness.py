"""Whether a hosted repository holds what was written: of the truth there is no other copy but the backups."""

import os
from pathlib import Path

import msgspec
from dulwich.objects import S_ISGITLINK, Commit, ObjectID, Tag, Tree
from dulwich.refs import SYMREF, Ref

from service.adapters.git.history import is_folder
from service.adapters.git.hosted_sync import GONE
from service.adapters.git.objects import Objects
from service.adapters.git.repositories import BareRepository, opened
from service.adapters.hosted.pulls import Pull
from service.domain.errors import Damaged, NotFound

NICENESS = 10


def find_damage(repository: Path) -> str | None:
    """Return what is wrong with a repository, in a few words; None for a sound one.

    Everything that a branch, a tag or a pull request names must be here: commits, folders and files. Packs must have
    the sums that they were written with, single objects those of their names. A second for each 100 MB or so; what was
    left of work that a power cut ended is not looked at.
    """
    if not repository.is_dir():
        return GONE
    try:
        with opened(repository) as there:
            for pack in there.object_store.packs:
                pack.index.check()
                pack.data.check()
            _look_from(there, [name for ref, name in _tips(there).items() if not ref.startswith(b"refs/docsmith/")])
        for file in sorted((repository / "docsmith" / "pulls").glob("[0-9]*.json")):
            try:
                msgspec.json.decode(file.read_bytes(), type=Pull)
            except msgspec.MsgspecError:
                return f"the pull request in {file.name} cannot be read"
    except (Damaged, NotFound) as error:
        return str(error).removeprefix(f"{repository.name}: ").rstrip(".")
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return None


def find_damages(repositories: list[Path]) -> dict[str, str]:
    """Return what is wrong with those that are not sound, by the names of their folders."""
    found = {repository.name: find_damage(repository) for repository in repositories}
    return {name: says for name, says in found.items() if says is not None}


def find_damages_aside(repositories: list[Path]) -> dict[str, str]:
    """``find_damages`` in a child process of the service, whose other work comes first."""
    os.nice(NICENESS)
    return find_damages(repositories)


def _tips(there: BareRepository) -> dict[bytes, ObjectID]:
    head = there.refs.read_ref(Ref(b"HEAD"))
    if head is None or (head.startswith(SYMREF) and Ref(head[len(SYMREF) :]) not in there.refs):
        raise Damaged("the default branch is missing")
    return {bytes(ref): name for ref, name in there.refs.as_dict().items()}


def _look_from(there: BareRepository, tips: list[ObjectID]) -> None:
    objects, seen, todo = Objects(there), set(tips), list(tips)
    shallow = there.get_shallow()
    while todo:
        name = todo.pop()
        try:
            one = there.object_store[name]
        except KeyError:
            raise Damaged(f"the object {name[:12].decode()} is missing") from None
        if isinstance(one, Tag):
            named = [one.object[1]]
        elif isinstance(one, Commit):
            named = [one.tree, *(() if name in shallow else one.parents)]
        elif isinstance(one, Tree):
            named = []
            for entry in objects.entries(name):
                if is_folder(entry):
                    named.append(entry.id)
                elif not S_ISGITLINK(entry.mode) and entry.id not in seen:
                    seen.add(entry.id)
                    if entry.id not in objects:
                        raise Damaged(f"the object {entry.id[:12].decode()} is missing")
        else:
            named = []
        for other in named:
            if other not in seen:
                seen.add(other)
                todo.append(other)
