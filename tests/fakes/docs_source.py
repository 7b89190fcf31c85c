"""A documentation repository in memory, with git's true ids: small, and told when to fail."""

import asyncio
import io
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path

from msgspec.structs import replace

from service.adapters.git.export import OWN_FILE, OWN_FOLDER, SITE_FILES, SITE_FOLDERS
from service.adapters.git.names import checked_path, folded
from service.domain.errors import Conflict, Invalid, NotFound, ServiceError, Unavailable
from service.ports.docs_source import (
    ChangedFile,
    CommitChanges,
    Fetched,
    LeftOut,
    NewCommit,
    Past,
    PastCommit,
    Source,
    TreeFile,
    WrittenCommit,
    size_limit,
)

MAX_BLOB_BYTES = 2 * 1024 * 1024
IMPORTED_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class FakeChanges:
    blobs: Mapping[str, str | None]
    files: Mapping[str, bytes]
    left_out: Sequence[LeftOut] = ()

    @contextmanager
    def open(self) -> Iterator[Callable[[str, int], bytes | None]]:
        yield lambda path, limit: self.files[path][:limit] if path in self.files else None


class FakeDocsSource:
    """One repository, for any project, that begins with the given files on ``main``."""

    def __init__(self, files: Mapping[str, str | bytes] | None = None, *, ref: str = "main") -> None:
        self.blobs: dict[str, bytes] = {}
        self.trees: dict[str, dict[str, str]] = {}  # by commit: path to blob
        self.parents: dict[str, str | None] = {}
        self.commits: dict[str, PastCommit] = {}
        self.second_parents: dict[str, str] = {}
        self.branches: dict[str, str] = {}  # of the repository
        self.executable: set[str] = set()
        self.left_out_files: list[LeftOut] = []
        self.errors: list[ServiceError] = []  # raised by the next calls of register, fetch and push
        self.registered: list[Source] = []
        self.contexts: dict[str, FakeDocsSource] = {}  # by name
        self.kept_contexts: dict[str, list[str]] = {}  # by project
        self.pushes: list[tuple[str, str]] = []
        tree = {path: self._blob(text) for path, text in (files or {}).items()}
        self.branches[ref] = self._commit(tree, None, "Docsmith <docsmith@localhost>", "Import a folder\n", IMPORTED_AT)

    async def default_branch(self, source: Source) -> str:
        self._fail()
        return next(iter(self.branches))

    async def register(self, source: Source) -> None:
        if source.context:
            await self._context(source).register(_plain(source))
            return
        self._fail()
        self._base(source)
        self.registered.append(source)

    async def forget(self, source: Source) -> None:
        self.registered = [one for one in self.registered if one.project_id != source.project_id]

    async def fetch(self, source: Source, *, branch: str = "") -> Fetched:
        if source.context:
            fetched = await self._context(source).fetch(_plain(source))
            return replace(fetched, ref=_plain(source).ref)
        self._fail()
        return Fetched(self._base(source), self.branches.get(branch) if branch else None)

    async def keep_contexts(self, source: Source, contexts: Sequence[Source]) -> None:
        self.kept_contexts[source.project_id] = [context.context for context in contexts]

    async def refresh(self, source: Source) -> bool:
        self._fail()
        return False

    async def list_files(self, source: Source, commit: str) -> Sequence[TreeFile]:
        if source.context:
            return await self._context(source).list_files(_plain(source), commit)
        return [
            TreeFile(path, blob, executable=path in self.executable)
            for path, blob in sorted(self._tree(commit).items())
        ]

    async def left_out(self, source: Source, commit: str, paths: Collection[str]) -> Mapping[str, LeftOut]:
        if source.context:
            return await self._context(source).left_out(_plain(source), commit, paths)
        self._tree(commit)
        found = ((path, one) for path in paths for one in self.left_out_files if f"{path}/".startswith(f"{one.path}/"))
        return dict(found)

    async def read_file(self, source: Source, blob: str) -> bytes:
        if source.context:
            return await self._context(source).read_file(_plain(source), blob)
        content = self._content(blob)
        if len(content) > MAX_BLOB_BYTES:
            raise Invalid("This file is too large to be read.", code="too_large")
        return content

    async def read_files(self, source: Source, blobs: Sequence[str]) -> Mapping[str, bytes]:
        if source.context:
            return await self._context(source).read_files(_plain(source), blobs)
        found = {blob: self._content(blob) for blob in blobs}
        return {blob: content for blob, content in found.items() if len(content) <= MAX_BLOB_BYTES}

    async def export(self, source: Source, commit: str, archive: Path) -> None:
        with tarfile.open(archive, "w") as tar:
            for path, blob in sorted(self._tree(commit).items()):
                if _exported(path, source.docs_folder) and len(self.blobs[blob]) <= size_limit(path):
                    info = tarfile.TarInfo(path)
                    info.size = len(self.blobs[blob])
                    tar.addfile(info, io.BytesIO(self.blobs[blob]))

    async def changes(self, source: Source, before: str, commit: str) -> "FakeChanges | None":
        if before not in self.trees:
            return None
        old, new = ({path: blob for path, blob in self._tree(one).items() if _exported(path, source.docs_folder)
                     and len(self.blobs[blob]) <= size_limit(path)} for one in (before, commit))  # fmt: skip
        blobs = {path: new.get(path) for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
        whole = {path: self.blobs[blob] for path, blob in self._tree(commit).items()}
        return FakeChanges(blobs, {path: data for path, data in whole.items() if len(data) <= size_limit(path)})

    async def write_commit(self, source: Source, new: NewCommit) -> WrittenCommit:
        tree = dict(self._tree(new.parent))
        if new.merged is not None:
            tree = self._merged(tree, new)
        for path, text in new.changes.items():
            checked_path(path)
            if text is None and path not in tree:
                if new.merged is not None:
                    continue
                raise Invalid(f"There is no file {path!r} to delete.", code="no_such_file")
            if any(other.startswith(f"{path}/") or path.startswith(f"{other}/") for other in tree):
                raise Invalid(f"{path!r} is a folder, or lies below a file.", code="bad_path")
        for path in (path for path, text in new.changes.items() if text is None):
            tree.pop(path, None)
        for path, text in new.changes.items():
            if text is not None:
                _refuse_lookalike(path, tree)
                tree[path] = self._blob(text)
        second = new.merged.commit if new.merged is not None else None
        commit = self._commit(tree, new.parent, new.author, new.message, new.at, second)
        return WrittenCommit(commit, self._tree_id(tree))

    def _merged(self, ours: dict[str, str], new: NewCommit) -> dict[str, str]:
        assert new.merged is not None
        base, theirs = self._tree(new.merged.base), self._tree(new.merged.commit)
        tree: dict[str, str] = {}
        for path in sorted(ours.keys() | theirs.keys()):
            was, mine, yours = base.get(path), ours.get(path), theirs.get(path)
            if was not in (mine, yours) and mine != yours and path not in new.changes:
                raise Conflict(f"Both sides changed {path}. Choose one with git.", code="merge_conflict")
            kept = yours if mine == was else mine
            if path in new.changes:
                kept = kept or mine or yours
            if kept is not None:
                tree[path] = kept
        return tree

    async def history(self, source: Source, commit: str, path: str, *, limit: int) -> Past:
        if source.context:
            return await self._context(source).history(_plain(source), commit, path, limit=limit)
        found = [self.commits[one] for one in self._line(commit) if self._changed(one, path)]
        return Past(tuple(found[:limit]), is_whole=True)

    async def changed_by(self, source: Source, commit: str, name: str, paths: Sequence[str]) -> CommitChanges:
        if source.context:
            return await self._context(source).changed_by(_plain(source), commit, name, paths)
        found = next((one for one in self._line(commit) if one.startswith(name)), None)
        if found is None:
            raise NotFound(f"Commit not found: {name}.")
        return CommitChanges(self.commits[found], tuple(self._changed(found, *paths)), 0)

    async def compared(
        self, source: Source, commit: str, before: str, after: str, paths: Sequence[str]
    ) -> CommitChanges:
        if source.context:
            return await self._context(source).compared(_plain(source), commit, before, after, paths)
        old, new = (self._named(commit, name) if name else commit for name in (before, after))
        return CommitChanges(self.commits[new], tuple(_differing(self.trees[old], self.trees[new], *paths)), 0)

    def _named(self, commit: str, name: str) -> str:
        found = self.branches.get(name) or next((one for one in self._line(commit) if one.startswith(name)), None)
        if found is None:
            raise NotFound(f"Commit not found, nor a tag or a branch: {name}.")
        return found

    def _line(self, commit: str | None) -> Iterator[str]:
        while commit is not None:
            yield commit
            commit = self.parents[commit]

    def _changed(self, commit: str, *paths: str) -> list[ChangedFile]:
        parent = self.parents[commit]
        return _differing(self.trees[parent] if parent else {}, self.trees[commit], *paths)

    async def merge_base(self, source: Source, *, branch: str, commit: str, base_commit: str) -> str | None:
        self._fail()
        theirs = self._ancestors(base_commit)
        walk: list[str | None] = [commit]
        while walk:
            name = walk.pop(0)
            if name in theirs:
                return name
            if name is not None:
                walk += [self.parents[name], self.second_parents.get(name)]
        return None

    async def push(self, source: Source, *, branch: str, commit: str) -> None:
        self._fail()
        self._tree(commit)
        current = self.branches.get(branch)
        if current is not None and current not in self._ancestors(commit):
            raise Conflict(f"{branch} has other commits by now.", code="branch_moved")
        self.branches[branch] = commit
        self.pushes.append((branch, commit))

    def change(self, branch: str, texts: Mapping[str, str]) -> str:
        """Someone's commit."""
        parent = self.branches[branch]
        tree = {**self.trees[parent], **{path: self._blob(text) for path, text in texts.items()}}
        self.branches[branch] = self._commit(tree, parent, "Ada <ada@localhost>", "Change\n", IMPORTED_AT)
        return self.branches[branch]

    def _context(self, source: Source) -> "FakeDocsSource":
        if source.context not in self.contexts:
            raise Unavailable(f"{source.repository} cannot be reached.")
        return self.contexts[source.context]

    def forget_all_but(self, branch: str) -> None:
        """What a clone without history does: only the newest commit of the branch is there."""
        self.trees = {self.branches[branch]: self.trees[self.branches[branch]]}

    def files(self, branch: str) -> dict[str, str]:
        """What the repository holds on a branch: for tests."""
        return {path: self.blobs[blob].decode() for path, blob in sorted(self.trees[self.branches[branch]].items())}

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def _base(self, source: Source) -> str:
        if source.ref not in self.branches:
            raise Invalid(f"There is no branch {source.ref!r}.", code="no_such_branch")
        return self.branches[source.ref]

    def _tree(self, commit: str) -> dict[str, str]:
        if commit not in self.trees:
            raise NotFound(f"There is no commit {commit[:12]} here.", code="commit_not_found")
        return self.trees[commit]

    def _content(self, blob: str) -> bytes:
        if blob not in self.blobs:
            raise NotFound("There is no such file here.")
        return self.blobs[blob]

    def _ancestors(self, commit: str | None) -> set[str]:
        found: set[str] = set()
        walk = [commit]
        while walk:
            name = walk.pop()
            if name is not None and name not in found:
                found.add(name)
                walk += [self.parents[name], self.second_parents.get(name)]
        return found

    def _blob(self, text: str | bytes) -> str:
        content = text.encode() if isinstance(text, str) else text
        blob = _id("blob", content)
        self.blobs[blob] = content
        return blob

    def _tree_id(self, files: Mapping[str, str]) -> str:
        folders: dict[str, dict[str, str]] = {}
        entries: list[tuple[bytes, bytes]] = []
        for path, blob in files.items():
            name, _, rest = path.partition("/")
            if rest:
                folders.setdefault(name, {})[rest] = blob
            else:
                entries.append((name.encode(), b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)))
        for name, inside in folders.items():
            tree = bytes.fromhex(self._tree_id(inside))
            entries.append((name.encode() + b"/", b"40000 " + name.encode() + b"\0" + tree))
        return _id("tree", b"".join(entry for _, entry in sorted(entries)))

    def _commit(
        self,
        tree: dict[str, str],
        parent: str | None,
        author: str,
        message: str,
        at: datetime,
        second: str | None = None,
    ) -> str:
        who = f"{author} {int(at.timestamp())} +0000"
        above = "".join(f"parent {name}\n" for name in (parent, second) if name)
        text = f"tree {self._tree_id(tree)}\n{above}author {who}\ncommitter {who}\n\n{message}"
        commit = _id("commit", text.encode())
        self.trees[commit], self.parents[commit] = tree, parent
        self.commits[commit] = PastCommit(commit, author.partition(" <")[0], at, message.partition("\n")[0])
        if second is not None:
            self.second_parents[commit] = second
        return commit


def _plain(source: Source) -> Source:
    return replace(source, context="", ref=source.ref or "main")


def _id(kind: str, content: bytes) -> str:
    return sha1(f"{kind} {len(content)}\0".encode() + content).hexdigest()


def _exported(path: str, folder: str) -> bool:
    if not folder or path.startswith(f"{folder}/"):
        return True
    if path == f"{OWN_FOLDER}/{OWN_FILE}" or path.endswith(f"/{OWN_FOLDER}/{OWN_FILE}"):
        path = path.removesuffix(f"{OWN_FOLDER}/{OWN_FILE}") + "docs.json"  # it goes where the configuration goes
    above, _, name = path.rpartition("/")
    site = next((above.removesuffix(one) for one in SITE_FOLDERS if f"/{above}".endswith(f"/{one}")), None)
    if site is not None:
        return f"{folder}/".startswith(site)
    return name in SITE_FILES and (not above or f"{folder}/".startswith(f"{above}/"))


def _refuse_lookalike(path: str, tree: Mapping[str, str]) -> None:
    for other in tree:
        for one, two in zip(path.split("/"), other.split("/"), strict=False):
            if one != two:
                if folded(one) == folded(two):
                    raise Invalid(f"{path!r} differs from {other!r} in case only.", code="bad_path")
                break


class StallingDocsSource(FakeDocsSource):
    """One that never answers for the projects and operations in ``stalled``."""

    def __init__(self, files: Mapping[str, str | bytes] | None = None) -> None:
        super().__init__(files)
        self.stalled: set[tuple[str, str]] = set()
        """Project ids, with ``fetch``, ``export`` or ``changes``."""
        self.calls: list[tuple[str, str]] = []
        self.at_work: dict[str, int] = {}
        """By project, how many exports are under way; and the most that were."""
        self.most_at_work = 0

    async def fetch(self, source: Source, *, branch: str = "") -> Fetched:
        await self._stall(source, "fetch")
        return await super().fetch(source, branch=branch)

    async def changes(self, source: Source, before: str, commit: str) -> "FakeChanges | None":
        await self._stall(source, "changes")
        return await super().changes(source, before, commit)

    async def export(self, source: Source, commit: str, archive: Path) -> None:
        self.at_work[source.project_id] = self.at_work.get(source.project_id, 0) + 1
        self.most_at_work = max(self.most_at_work, self.at_work[source.project_id])
        try:
            await self._stall(source, "export")
            await super().export(source, commit, archive)
        finally:
            self.at_work[source.project_id] -= 1

    async def _stall(self, source: Source, operation: str) -> None:
        self.calls.append((source.project_id, operation))
        if (source.project_id, operation) in self.stalled:
            await asyncio.Event().wait()
        await asyncio.sleep(0)


def _differing(before: Mapping[str, str], now: Mapping[str, str], *paths: str) -> list[ChangedFile]:
    return [
        ChangedFile(one, before.get(one), now.get(one))
        for one in sorted(now.keys() | before.keys())
        if before.get(one) != now.get(one)
        and (not any(paths) or any(one == path or one.startswith(f"{path}/") for path in paths))
    ]
