"""DocsSource over dulwich: bare clones of depth 1 and no work tree, so that nothing a repository holds (links, hooks,
filters, names) ever acts on this machine.

A clone in ``repos/`` is derived: delete it and the next fetch makes it again, which is done here when it is damaged, a
power cut's empty files among that. The repository of the ``local`` code host in ``hosted/`` is the truth, made once, by
``register``, and flushed; its clone borrows the objects (``objects/info/alternates``), so a fetch copies nothing.

Reads and writes of the clone run in threads: they take milliseconds to a second, and what a stranger can make large is
limited by the sizes in object headers. Whatever talks to a remote, or takes a whole repository in, runs in a child
process with a timeout and a memory limit.
"""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Container, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

import structlog
from dulwich.refs import Ref, check_ref_format
from msgspec.structs import replace

from service.adapters.code_hosts.named_secrets import token_from
from service.adapters.git import hosted_sync as git_own
from service.adapters.git import import_repository as git_import
from service.adapters.git import upstream_sync as git_refresh
from service.adapters.git.changes import changes_between
from service.adapters.git.commit_changes import ancestor, changed_by, compared, last_commits
from service.adapters.git.export import export
from service.adapters.git.listings import Listings
from service.adapters.git.merging import merge_base, write_merge
from service.adapters.git.objects import Objects, checked_id, read_blobs
from service.adapters.git.opened_folder import Folders, others_folder
from service.adapters.git.remote import transport as git_transport
from service.adapters.git.remote.context_fetch import HISTORY, fetch_context, named_commit, require_ref
from service.adapters.git.remote.remotes import Remote, remote_of, with_token
from service.adapters.git.repositories import commit_of, create, damaged, forget_killed_work, opened
from service.domain.errors import Damaged, Invalid, NotFound, ServiceError, Unavailable
from service.domain.projects.hosts import host_kind
from service.ports.docs_source import (
    Changes,
    CommitChanges,
    Fetched,
    LeftOut,
    NewCommit,
    Past,
    Source,
    TreeFile,
    WrittenCommit,
)
from service.runtime.file_locks import lock_of, locked, only_if_free
from service.runtime.hosted_place import HostedPlace
from service.runtime.processes import run_in_child
from service.runtime.uploads import upload_folder

T = TypeVar("T")

FETCH_SECONDS = 900.0
MERGE_BASE_DEPTHS = (50, 1_000)
"""How many commits of history are fetched, one number after the other, to find where a branch began."""
CONTEXT_SECONDS = 300.0
"""A job waits for it, and goes on without."""
IMPORT_SECONDS = 3_600.0
EXPORT_SECONDS = 300.0
HISTORY_SECONDS = 20.0
MAX_WITH_HISTORY = 1_000
_ID = re.compile(r"[0-9a-fA-F]{6,40}")

CHILD_BYTES = 4 * 1024 * 1024 * 1024
"""Limit for the child's address space, in bytes; the pack is mapped into it, too."""

PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")

log = structlog.get_logger()


class DulwichDocs:
    """``env`` holds the tokens, under the names that the sources give; instead, ``token_of`` gives the token of a
    source, "" for none, and raises what ``register`` raises. ``allow_private``: guarded sources may have private
    addresses. With ``scratch``, a folder, nothing is written into the
    clones in ``repos/``: those made there borrow the objects of ours. Everything about a source of the ``local`` code
    host raises KeptElsewhere where ``place`` does.
    """

    def __init__(
        self,
        data: Path,
        *,
        env: Mapping[str, str],
        scratch: Path | None = None,
        token_of: Callable[[Source], Awaitable[str]] | None = None,
        allow_private: bool = False,
        place: HostedPlace | None = None,
        renamed: Callable[[Source, str], Awaitable[None]] | None = None,
        folders: Callable[[], Awaitable[Folders]] | None = None,
    ) -> None:
        self._data = data
        self._place = place or HostedPlace(data)
        self._scratch = scratch
        self._env = env
        self._token_of = token_of
        self._renamed = renamed
        self._folders = folders
        self._allow_private = allow_private
        self._locks: dict[str, asyncio.Lock] = {}
        self._borrowing: set[Path] = set()
        """Clones that are known to borrow from where the hosted repositories are now."""
        self._with_history: set[tuple[str, str]] = set()
        """Projects and commits for which history was fetched."""
        self._listings = Listings()

    async def default_branch(self, source: Source) -> str:
        remote = await self._theirs(source)
        return await run_in_child(
            git_import.default_branch, remote, timeout_seconds=FETCH_SECONDS, memory_bytes=CHILD_BYTES
        )

    async def register(self, source: Source) -> None:
        if source.context or source.code_host != "local":
            await run_in_child(
                require_ref if source.context else _check_branch,
                await self._theirs(source),
                source.ref,
                timeout_seconds=CONTEXT_SECONDS if source.context else FETCH_SECONDS,
                memory_bytes=CHILD_BYTES,
            )
            return
        hosted = self._hosted(source)
        async with self._locked(source):
            if not await asyncio.to_thread(hosted.is_dir):
                remote = await self._theirs(source)
                state = "" if remote.is_plain else await asyncio.to_thread(git_refresh.state_of, remote, source.ref)
                await run_in_child(
                    git_import.import_repository,
                    hosted,
                    remote,
                    source.ref,
                    timeout_seconds=IMPORT_SECONDS,
                    memory_bytes=CHILD_BYTES,
                )
                await asyncio.to_thread(git_refresh.remember_state, hosted, state)
        if source.ref not in await asyncio.to_thread(git_own.heads, hosted, [source.ref]):
            raise _no_branch("The hosted repository", source.ref)

    async def forget(self, source: Source) -> None:
        if source.code_host == "local" and not source.context:
            async with self._locked(source):
                await asyncio.to_thread(git_import.forget_repository, self._hosted(source))

    async def fetch(self, source: Source, *, branch: str = "") -> Fetched:
        if source.context:
            return await self._fetch_context(source)
        branches = [source.ref, *([branch] if branch and branch != source.ref else [])]
        if source.code_host == "local":
            await self._clone(source)
            where = "The hosted repository"
            found = await asyncio.to_thread(git_own.heads, self._hosted(source), branches)
        else:
            remote = await self._theirs(source)
            where = remote.url or remote.path

            async def run(clone: Path) -> dict[str, str]:
                async with self._locked(source):
                    return await self._remotely(git_transport.fetch, clone, remote, branches, 1)

            found = await self._healed(source, run)
        if source.ref not in found:
            await self._follow_default_branch(source, where)
            raise _no_branch(where, source.ref, " Name one that it has: docsmith project update SITE --ref BRANCH")
        return Fetched(found[source.ref], found.get(branch) if branch else None)

    async def _follow_default_branch(self, source: Source, where: str) -> None:
        """Record the new name of a default branch that the project follows. Raise Unavailable: the project is another
        now, and so what was begun with it begins again.
        """
        if self._renamed is None or not source.follows:
            return
        ref = await self.default_branch(source)
        if ref != source.ref:
            await self._renamed(source, ref)
            raise Unavailable(
                f"The default branch of {where} is {ref!r} now, and no longer {source.ref!r}.", retry_after_seconds=1
            )

    async def _fetch_context(self, source: Source) -> Fetched:
        remote = await self._theirs(source)

        async def run(clone: Path) -> tuple[str, str]:
            async with self._locked(source):
                return await run_in_child(
                    _locking, fetch_context, clone, remote, source.ref,
                    timeout_seconds=CONTEXT_SECONDS, memory_bytes=CHILD_BYTES,
                )  # fmt: skip

        ref, commit = await self._healed(source, run)
        return Fetched(commit, None, ref)

    async def keep_contexts(self, source: Source, contexts: Sequence[Source]) -> None:
        kept = {_clone_name(context) for context in contexts}
        await asyncio.to_thread(_remove_clones, self._data / "repos", f"{_checked(source.project_id)}@", kept)

    async def refresh(self, source: Source) -> bool:
        uploaded = upload_folder(self._data, source.repository)
        if source.code_host != "local" or (uploaded is not None and not await asyncio.to_thread(uploaded.is_dir)):
            return False
        hosted, remote = self._hosted(source), await self._theirs(source)
        if not await asyncio.to_thread(hosted.is_dir):  # what it was made from lacks what was merged since
            raise damaged(hosted, git_own.GONE)
        state = "" if remote.is_plain else await asyncio.to_thread(git_refresh.state_of, remote, source.ref)
        if state and await asyncio.to_thread(git_refresh.known_state, hosted) == state:
            return False
        async with self._locked(source):
            taken = await run_in_child(
                git_refresh.refresh,
                hosted,
                remote,
                source.ref,
                timeout_seconds=IMPORT_SECONDS,
                memory_bytes=CHILD_BYTES,
            )
        # As it was before: what changed meanwhile is looked at again.
        await asyncio.to_thread(git_refresh.remember_state, hosted, state)
        return taken

    async def list_files(self, source: Source, commit: str) -> Sequence[TreeFile]:
        return await self._read(source, commit, lambda clone: self._listings.of_commit(clone, commit))

    async def left_out(self, source: Source, commit: str, paths: Collection[str]) -> Mapping[str, LeftOut]:
        return await self._read(source, commit, lambda clone: _left_out(clone, commit, paths)) if paths else {}

    async def read_file(self, source: Source, blob: str) -> bytes:
        found = await self.read_files(source, [blob])
        if blob not in found:
            raise Invalid("This file is too large to be read.", code="too_large")
        return found[blob]

    async def read_files(self, source: Source, blobs: Sequence[str]) -> Mapping[str, bytes]:
        async def run(clone: Path) -> Mapping[str, bytes]:
            return await asyncio.to_thread(_read_files, clone, blobs)

        try:
            return await self._healed(source, run)
        except NotFound:
            clone = await self._clone(source)
            commit = await asyncio.to_thread(self._listings.commit_with, clone, blobs)
            if commit is None:
                raise
            if source.code_host == "local" and not source.context:
                raise damaged(self._hosted(source), f"a file of {commit[:12]} is missing") from None
        # The clone has lost what it had, or was made again without it.
        async with self._locked(source):
            await asyncio.to_thread(_remove_clone, clone)
        return await self._with_commit(source, commit, lambda clone: _listed(self._listings, clone, commit, run))

    async def export(self, source: Source, commit: str, archive: Path) -> None:
        async def run(clone: Path) -> None:
            await run_in_child(
                _export,
                clone,
                commit,
                source.docs_folder,
                archive,
                timeout_seconds=EXPORT_SECONDS,
                memory_bytes=CHILD_BYTES,
            )

        await self._with_commit(source, commit, run)

    async def changes(self, source: Source, before: str, commit: str) -> Changes | None:
        checked_id(before)

        async def run(clone: Path) -> Changes | None:
            return await run_in_child(
                changes_between,
                clone,
                before,
                commit,
                source.docs_folder,
                timeout_seconds=EXPORT_SECONDS,
                memory_bytes=CHILD_BYTES,
            )

        return await self._with_commit(source, commit, run)

    async def history(self, source: Source, commit: str, path: str, *, limit: int) -> Past:
        found = await self._asked_of_history(source, commit, last_commits, path, limit)
        if found.is_whole or len(found.commits) >= limit or not await self._with_more_history(source, commit):
            return found
        return await self._asked_of_history(source, commit, last_commits, path, limit)

    async def changed_by(self, source: Source, commit: str, name: str, paths: Sequence[str]) -> CommitChanges:
        try:
            return await self._asked_of_history(source, commit, changed_by, name, paths)
        except NotFound:
            if not await self._with_more_history(source, commit):
                raise
        return await self._asked_of_history(source, commit, changed_by, name, paths)

    async def compared(
        self, source: Source, commit: str, before: str, after: str, paths: Sequence[str]
    ) -> CommitChanges:
        ids = [await self._named(source, commit, name) if name else commit for name in (before, after)]

        async def run(clone: Path) -> CommitChanges:
            return await run_in_child(
                compared, clone, *ids, paths, timeout_seconds=HISTORY_SECONDS, memory_bytes=CHILD_BYTES
            )

        return await self._healed(source, run)

    async def _named(self, source: Source, commit: str, name: str) -> str:
        """Return the commit that an id, a tag or a branch names. Raise NotFound, and as ``fetch``."""
        found: str | None = None
        if _ID.fullmatch(name):
            found = await self._asked_of_history(source, commit, ancestor, name)
            if found is None and await self._with_more_history(source, commit):
                found = await self._asked_of_history(source, commit, ancestor, name)
        if found is None and check_ref_format(Ref(b"refs/tags/" + name.encode(errors="replace"))):
            found = await self._fetched(source, name)
        if found is None:
            raise NotFound(f"Commit not found, nor a tag or a branch: {name[:100]}.")
        return found

    async def _fetched(self, source: Source, name: str) -> str | None:
        """Return the commit of a branch or a tag of the repository; None where it has neither."""
        clone = await self._clone(source)
        if source.code_host == "local" and not source.context:
            return await asyncio.to_thread(named_commit, self._hosted(source), name)
        remote = await self._theirs(source)
        async with self._locked(source):
            try:
                return (await self._remotely(fetch_context, clone, remote, name))[1]
            except Invalid as error:
                if error.code == "no_such_branch":
                    return None
                raise

    async def _asked_of_history(self, source: Source, commit: str, ask: Callable[..., T], *args: object) -> T:
        async def run(clone: Path) -> T:
            return await run_in_child(
                ask, clone, commit, *args, timeout_seconds=HISTORY_SECONDS, memory_bytes=CHILD_BYTES
            )

        return await self._with_commit(source, commit, run)

    async def _with_more_history(self, source: Source, commit: str) -> bool:
        """Fetch some history of the ref, once for each commit that is asked about; return whether that was done."""
        asked = (source.project_id, commit)
        if source.code_host == "local" or source.context or asked in self._with_history:
            return False
        clone = await self._clone(source)
        try:
            async with self._locked(source):
                await self._remotely(git_transport.deepen, clone, await self._theirs(source), [source.ref], HISTORY)
        except ServiceError:
            return False  # it only helps: what is here is the answer then
        self._with_history = {*list(self._with_history)[-MAX_WITH_HISTORY:], asked}
        return True

    async def merge_base(self, source: Source, *, branch: str, commit: str, base_commit: str) -> str | None:
        async def run(clone: Path) -> str | None:
            found = await asyncio.to_thread(merge_base, clone, commit, base_commit)
            for depth in MERGE_BASE_DEPTHS if source.code_host != "local" else ():
                if found is not None:
                    break
                async with self._locked(source):
                    remote = await self._theirs(source)
                    await self._remotely(git_transport.deepen, clone, remote, [branch, source.ref], depth)
                found = await asyncio.to_thread(merge_base, clone, commit, base_commit)
            return found

        return await self._healed(source, run)

    async def write_commit(self, source: Source, new: NewCommit) -> WrittenCommit:
        others = [] if new.merged is None else [new.merged.commit, new.merged.base]
        for other in others:  # fetched again when our clone was lost
            await self._read(source, other, lambda clone, name=other: _has_commit(clone, name))  # type: ignore[misc]
        return await self._read(source, new.parent, lambda clone: write_merge(clone, new))

    async def push(self, source: Source, *, branch: str, commit: str) -> None:
        checked_id(commit)

        async def run(clone: Path) -> None:
            if source.code_host == "local":
                await asyncio.to_thread(git_own.push, clone, self._hosted(source), branch, commit)
                return
            async with self._locked(source):
                await self._remotely(git_transport.push, clone, await self._theirs(source), branch, commit)

        try:
            await self._healed(source, run)
        except NotFound as error:
            if error.code != "commit_not_found":
                raise
            # The clone was made again, without what was committed there alone.
            raise Unavailable(
                "The commit is not in the clone any more; it is made again.", retry_after_seconds=1
            ) from None

    def _hosted(self, source: Source) -> Path:
        return self._place.repository(_checked(source.project_id))

    async def _theirs(self, source: Source) -> Remote:
        """Return the repository that the source names, wherever it is hosted."""
        if folder := upload_folder(self._data, source.repository):
            return Remote("", str(folder), is_plain=True)
        remote = remote_of(source.repository)
        if not remote.url:
            folders = Folders() if self._folders is None else await self._folders()
            own = (self._data, self._place.root)
            return await asyncio.to_thread(others_folder, remote, folders, own, guarded=source.guarded)
        remote = replace(remote, guarded=source.guarded and not self._allow_private)
        if self._token_of is not None:
            token = await self._token_of(source)
        else:
            token = await asyncio.to_thread(token_from, self._env, source)
        host = host_kind(source.repository) if source.context else source.code_host
        return with_token(remote, host, token) if token else remote

    @asynccontextmanager
    async def _locked(self, source: Source) -> AsyncIterator[None]:
        """One remote operation per clone. Other processes are kept out where it matters, by locks on files."""
        async with self._locks.setdefault(_clone_name(source), asyncio.Lock()):
            yield

    async def _clone(self, source: Source) -> Path:
        own = self._data / "repos" / _clone_name(source)
        clone = own if self._scratch is None else self._scratch / own.name
        lenders = [self._hosted(source)] if source.code_host == "local" else []
        if self._scratch is None:
            borrowed = [self._place.borrowed(one) for one in lenders]
        else:
            there = [one for one in (own, *lenders) if (one / "objects").is_dir()]
            borrowed = [one.absolute() / "objects" for one in there]
        if not (clone / "objects").is_dir():
            await asyncio.to_thread(_make_clone, clone, borrowed, source.ref or "main")
        elif lenders and clone is own and own not in self._borrowing:
            await asyncio.to_thread(_borrow_from, clone, borrowed)
            self._borrowing.add(own)
        return clone

    async def _remotely(self, function: Callable[..., T], clone: Path, remote: Remote, *args: object) -> T:
        return await run_in_child(
            _locking, function, clone, remote, *args, timeout_seconds=FETCH_SECONDS, memory_bytes=CHILD_BYTES
        )

    async def _read(self, source: Source, commit: str, function: Callable[[Path], T]) -> T:
        return await self._with_commit(source, commit, lambda clone: asyncio.to_thread(function, clone))

    async def _with_commit(self, source: Source, commit: str, run: Callable[[Path], Awaitable[T]]) -> T:
        """``run`` on the clone; when that was deleted since the commit was fetched, fetch it again."""
        checked_id(commit)
        try:
            return await self._healed(source, run)
        except NotFound as error:
            if error.code != "commit_not_found" or source.code_host == "local":
                raise

        async def fetched(clone: Path) -> T:
            async with self._locked(source):
                await self._remotely(git_transport.fetch_commit, clone, await self._theirs(source), commit)
            return await run(clone)

        return await self._healed(source, fetched)

    async def _healed(self, source: Source, run: Callable[[Path], Awaitable[T]]) -> T:
        """``run`` on the clone; when that is damaged, remove it and run on a new one. Raises Damaged where that does
        not help: it is the hosted repository.
        """
        clone = await self._clone(source)
        try:
            return await run(clone)
        except Damaged as error:
            if error.names_remedy:
                raise
            log.warning("a clone is damaged, and made again", clone=clone.name, reason=str(error))
        async with self._locked(source):
            await asyncio.to_thread(_remove_clone, clone)
        try:
            return await run(await self._clone(source))
        except Damaged as error:
            if error.names_remedy or source.code_host != "local" or source.context:
                raise
            raise damaged(self._hosted(source), str(error)) from error


def _checked(project_id: str) -> str:
    if not PROJECT.fullmatch(project_id):
        raise NotFound(f"Project not found: {project_id!r} is not a project's id.")
    return project_id


def _clone_name(source: Source) -> str:
    """Return the name of a source's clone. A context's depends on its address: another repository is another clone."""
    if not source.context:
        return f"{_checked(source.project_id)}.git"
    digest = sha256(source.repository.encode()).hexdigest()[:12]
    return f"{_checked(source.project_id)}@{source.context}-{digest}.git"


def _remove_clones(folder: Path, beginning: str, kept: Container[str]) -> None:
    for clone in folder.glob("*.git"):
        if clone.name.startswith(beginning) and clone.name not in kept:
            _remove_clone(clone)


def _remove_clone(clone: Path) -> None:
    with locked(lock_of(clone)):
        shutil.rmtree(clone, ignore_errors=True)


def _no_branch(where: str, ref: str, advice: str = "") -> Invalid:
    return Invalid(f"{where} has no branch {ref!r}.{advice}", code="no_such_branch")


def _check_branch(remote: Remote, ref: str) -> None:
    if ref not in git_transport.heads(remote, ref):
        raise _no_branch(remote.url or remote.path, ref)


def _make_clone(clone: Path, borrowed: Sequence[Path], ref: str) -> None:
    def fill(made: Path) -> None:
        if borrowed:
            _borrow_from(made, borrowed)

    create(clone, fill, branch=ref)


def _borrow_from(clone: Path, borrowed: Sequence[Path]) -> None:
    """Have a clone borrow objects from there: the hosted repositories may have moved since it was made."""
    file, lines = clone / "objects" / "info" / "alternates", "".join(f"{objects}\n" for objects in borrowed)
    if file.exists() and file.read_text() == lines:
        return
    file.parent.mkdir(exist_ok=True)
    written = file.with_name(f".alternates-{token_hex(4)}")
    written.write_text(lines)
    written.replace(file)


def clear_clone(clone: Path) -> None:
    """Remove what a killed process left in a clone, unless another process works in it."""
    with only_if_free(lock_of(clone)) as is_free:
        if is_free:
            forget_killed_work(clone)


def _locking(function: Callable[..., T], clone: Path, *args: object) -> T:
    """Call the function with the clone's lock held. Leftovers of a killed holder are removed."""
    with locked(lock_of(clone)):
        forget_killed_work(clone)
        return function(clone, *args)


def _left_out(clone: Path, commit: str, paths: Collection[str]) -> dict[str, LeftOut]:
    with opened(clone) as repository:
        return Objects(repository).in_the_way(commit_of(repository, commit).tree, paths)


async def _listed(listings: Listings, clone: Path, commit: str, run: Callable[[Path], Awaitable[T]]) -> T:
    """``run`` on a clone that has the commit. Raise NotFound where it has not."""
    await asyncio.to_thread(listings.of_commit, clone, commit)
    return await run(clone)


def _read_files(clone: Path, blobs: Sequence[str]) -> dict[str, bytes]:
    with opened(clone) as repository:
        return read_blobs(repository, blobs)


def _export(clone: Path, commit: str, docs_folder: str, archive: Path) -> None:
    with opened(clone) as repository:
        export(repository, commit_of(repository, commit), docs_folder, archive)


def _has_commit(clone: Path, commit: str) -> None:
    with opened(clone) as repository:
        commit_of(repository, commit)
