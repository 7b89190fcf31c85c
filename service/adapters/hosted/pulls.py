"""Pull requests of one hosted repository: their files, and what is done with them."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec
from dulwich.objects import Commit, ObjectID
from dulwich.refs import Ref
from msgspec import Struct

from service.adapters.git.history import History
from service.adapters.git.objects import Entry, Objects
from service.adapters.git.repositories import HEADS, BareRepository, branch_commit, commit_of, move_ref, opened
from service.adapters.git.tree_merge import Unmergeable, is_mergeable, merged_tree
from service.adapters.hosted.diff import Diff
from service.adapters.hosted.line_merges import LineMerges
from service.domain.errors import Conflict
from service.ports.code_host import (
    NewPullRequest,
    PullRequest,
    PullRequestCommit,
    PullRequestPage,
    PullRequestState,
)
from service.runtime.durable import sync_folder
from service.runtime.file_locks import locked

TOKEN_BYTES = 24
MAX_COMMITS_SHOWN = 250
MAX_MESSAGES, MAX_SUBJECT = 64 * 1024, 200
"""Bytes of all messages that a page shows, and of each one beyond those."""
MAX_TRIES = 10
MAX_TREES = 16
"""Folders that are remembered."""
COMMITTER = b"Docsmith <docsmith@localhost>"


class Pull(Struct, frozen=True):
    """As stored: a new field gets a default."""

    number: int
    token: str
    title: str
    body: str
    head: str
    base: str
    draft: bool
    created_at: datetime
    head_commit: str
    base_commit: str
    """Where the head left the base, as last seen while open."""
    state: PullRequestState = "open"
    closed_at: datetime | None = None
    merge_commit: str | None = None


def open_pull(pulls: "Pulls", new: NewPullRequest, now: datetime) -> Pull:
    with pulls.locked():
        head, base = pulls.branch(new.head), pulls.branch(new.base)
        if head is None or base is None:
            missing = new.head if head is None else new.base
            raise Conflict(f"There is no branch {missing!r} to open a pull request for.", code="no_such_branch")
        for pull in pulls.of_head(new.head):
            if (pull.head, pull.base, pull.state) == (new.head, new.base, "open"):
                seen = pulls.refreshed(pull, now)
                if seen.state == "open":
                    return seen
        left = pulls.history.merge_base(base, head)
        if left == head:
            raise Conflict(f"{new.head} has nothing that {new.base} lacks.", code="no_commits")
        return pulls.add(
            Pull(
                number=0,
                token=secrets.token_urlsafe(TOKEN_BYTES),
                title=new.title,
                body=new.body,
                head=new.head,
                base=new.base,
                draft=new.draft,
                created_at=now,
                head_commit=head.decode(),
                base_commit=left.decode() if left else "",
            )
        )


def look(pulls: "Pulls", known: Pull, now: datetime) -> Pull:
    if pulls.looked(known, now) == known:
        return known
    with pulls.locked():
        return pulls.refreshed(pulls.again(known), now)


class PullRequestText(Struct, frozen=True):
    title: str
    body: str
    draft: bool | None
    """None leaves it as it is."""


def update(pulls: "Pulls", known: Pull, wanted: PullRequestText, now: datetime) -> Pull:
    with pulls.locked():
        pull = pulls.refreshed(pulls.again(known), now)
        if pull.state == "merged":
            raise Conflict("This pull request is merged.", code="pull_request_merged")
        if pull.state == "closed":
            raise Conflict("This pull request is closed.", code="pull_request_closed")
        draft = pull.draft if wanted.draft is None else wanted.draft
        new = msgspec.structs.replace(pull, title=wanted.title, body=wanted.body, draft=draft)
        return pull if new == pull else pulls.save(new)


def close(pulls: "Pulls", known: Pull, now: datetime) -> Pull:
    with pulls.locked():
        pull = pulls.refreshed(pulls.again(known), now)
        if pull.state == "merged":
            raise Conflict("This pull request is merged.", code="pull_request_merged")
        if pull.state == "closed":
            return pull
        return pulls.save(msgspec.structs.replace(pull, state="closed", closed_at=now))


def merge(pulls: "Pulls", known: Pull, now: datetime, *, version: str) -> Pull:
    with pulls.locked():
        pull = pulls.refreshed(pulls.again(known), now)
        if pull.state == "merged":
            return pull
        if pull.state == "closed":
            raise Conflict("This pull request is closed.", code="pull_request_closed")
        if version and not pull.head_commit.startswith(version.rpartition("-")[2]):
            raise Conflict(
                "Other commits were pushed since this page was loaded. Look at the changes again, then merge.",
                code="branch_moved",
            )
        head = ObjectID(pull.head_commit.encode())
        for _ in range(MAX_TRIES):
            base = pulls.branch(pull.base)
            if base is None:
                raise Conflict(f"The branch {pull.base} is gone.", code="no_such_branch")
            left = pulls.history.merge_base(base, head)
            merged = head if left == base else pulls.merge_commit(pull, base, head, left, now)
            if pulls.move(pull.base, base, merged):
                return pulls.save(
                    msgspec.structs.replace(
                        pull,
                        state="merged",
                        closed_at=now,
                        merge_commit=merged.decode(),
                        base_commit=left.decode() if left else "",
                    )
                )
        raise Conflict(f"The branch {pull.base} keeps moving; try again.", code="branch_moved")


def _file(path: Path, number: int) -> Path:
    return path / "docsmith" / "pulls" / f"{number}.json"


def _hash(head: str) -> str:
    return sha256(head.encode()).hexdigest()[:40]


def _note(folder: Path, head: str, number: int) -> None:
    """Among those of the head. A line that a crash cut short spoils no other. Durable, since one that is missing means
    another pull request of the same head.
    """
    with (folder / _hash(head)).open("ab") as file:
        is_new = not file.tell()
        file.write(b"\n%d\n" % number)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_folder(folder)


def read_pull(path: Path, number: int) -> Pull:
    return msgspec.json.decode(_file(path, number).read_bytes(), type=Pull)


@contextmanager
def opened_pulls(path: Path, heads: Path) -> "Iterator[Pulls]":
    with opened(path, durable=True) as repository:
        yield Pulls(path, heads, repository)


class _Remembering(Objects):
    """Reads a tree once, where the comparison and the trial merge both need it."""

    def __init__(self, repository: BareRepository) -> None:
        super().__init__(repository)
        self._trees: dict[ObjectID, tuple[Entry, ...]] = {}

    def entries(self, tree: ObjectID) -> Iterator[Entry]:
        if tree not in self._trees:
            if len(self._trees) == MAX_TREES:
                self._trees.clear()
            self._trees[tree] = tuple(super().entries(tree))
        return iter(self._trees[tree])


class Pulls:
    """The pull requests of one repository, for one operation in one thread."""

    def __init__(self, path: Path, heads: Path, repository: BareRepository) -> None:
        """``heads``: the derived folder with the numbers of those of each branch."""
        self._path = path
        self._heads = heads
        self._repository = repository
        self.history = History(repository)
        self._objects = _Remembering(repository)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with locked(self._path / "docsmith" / "lock"):
            yield

    def branch(self, name: str) -> ObjectID | None:
        commit = branch_commit(self._repository, name)
        return commit if commit is not None and self.history.commit(commit) is not None else None

    def move(self, branch: str, old: ObjectID, new: ObjectID) -> bool:
        return move_ref(self._repository, HEADS + branch.encode(), old, new)

    def of_head(self, head: str) -> Iterator[Pull]:
        """Yield those of a branch, newest first; the others are not read. Call it with the lock held."""
        if not self._heads.is_dir():
            self._index_heads()
        file = self._heads / _hash(head)
        for number in sorted({int(line) for line in file.read_bytes().split()}, reverse=True) if file.exists() else ():
            with suppress(FileNotFoundError):  # its making was cut short
                pull = read_pull(self._path, number)
                if pull.head == head:
                    yield pull

    def _numbers(self) -> Iterator[int]:
        """Yield the numbers in no order, one at a time: there may be very many."""
        with suppress(FileNotFoundError), os.scandir(self._path / "docsmith" / "pulls") as listing:
            for file in listing:
                if file.name.endswith(".json") and file.name[:-5].isdigit():
                    yield int(file.name[:-5])

    def _index_heads(self) -> None:
        """It is there whole or not at all."""
        folder = self._heads.parent
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f".{self._heads.name}.*.new"):
            shutil.rmtree(left, ignore_errors=True)
        made = Path(tempfile.mkdtemp(prefix=f".{self._heads.name}.", suffix=".new", dir=folder))
        for number in sorted(self._numbers()):
            _note(made, read_pull(self._path, number).head, number)
        sync_folder(made)
        made.rename(self._heads)
        sync_folder(folder)

    def again(self, pull: Pull) -> Pull:
        """Return the pull request as it is now that we hold the lock."""
        return read_pull(self._path, pull.number)

    def add(self, pull: Pull) -> Pull:
        """Under the next free number. A link never replaces a file: no two writers get the same one, lock or not."""
        folder = self._path / "docsmith" / "pulls"
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            sync_folder(folder.parent)
            sync_folder(self._path)
        number = max(self._numbers(), default=0) + 1
        while True:
            made = msgspec.structs.replace(pull, number=number)
            _note(self._heads, pull.head, number)
            with _written(folder, made) as partial:
                try:
                    os.link(partial, _file(self._path, number))
                except FileExistsError:
                    number += 1
                    continue
            sync_folder(folder)
            self._point(made)
            return made

    def save(self, pull: Pull) -> Pull:
        folder = self._path / "docsmith" / "pulls"
        with _written(folder, pull) as partial:
            partial.replace(_file(self._path, pull.number))
        sync_folder(folder)
        return pull

    def _point(self, pull: Pull) -> None:
        move_ref(self._repository, f"refs/pull/{pull.number}/head".encode(), None, ObjectID(pull.head_commit.encode()))

    def looked(self, pull: Pull, now: datetime) -> Pull:
        """The pull request as git's state says it is."""
        if pull.state != "open":
            return pull
        head = self.branch(pull.head) or ObjectID(pull.head_commit.encode())
        base = self.branch(pull.base)
        if base is None:
            return msgspec.structs.replace(pull, head_commit=head.decode())
        left = self.history.merge_base(base, head)
        if left == head and head.decode() != pull.base_commit:
            return msgspec.structs.replace(
                pull, head_commit=head.decode(), state="merged", closed_at=now, merge_commit=self._merged_by(base, head)
            )
        return msgspec.structs.replace(
            pull, head_commit=head.decode(), base_commit=left.decode() if left else pull.base_commit
        )

    def _merged_by(self, base: ObjectID, head: ObjectID) -> str:
        """The merge commit at the tip of the base, if that is what brought the head; else the head itself."""
        commit = self.history.commit(base)
        return (base if commit is not None and head in commit.parents[1:] else head).decode()

    def refreshed(self, pull: Pull, now: datetime) -> Pull:
        """``looked``, stored. Call it with the lock held."""
        seen = self.looked(pull, now)
        if seen != pull:
            self.save(seen)
        name = Ref(f"refs/pull/{pull.number}/head".encode())
        if self._repository.refs.read_loose_ref(name) != seen.head_commit.encode():
            self._point(seen)
        return seen

    def merge_commit(
        self, pull: Pull, base: ObjectID, head: ObjectID, left: ObjectID | None, now: datetime
    ) -> ObjectID:
        ours, theirs = commit_of(self._repository, base.decode()), commit_of(self._repository, head.decode())
        before = None if left is None else commit_of(self._repository, left.decode()).tree
        try:
            add, trees = self._repository.object_store.add_object, (before, ours.tree, theirs.tree)
            tree = merged_tree(self._objects, add, trees, merge_file=LineMerges(self._objects))
        except Unmergeable as error:
            advice = f"Send the job a message, such as: Merge {pull.base}."
            raise Conflict(f"Both sides changed {error}. {advice}", code="merge_conflict") from None
        commit = Commit()
        commit.tree, commit.parents = tree, [base, head]
        commit.author = commit.committer = COMMITTER
        commit.author_time = commit.commit_time = int(now.timestamp())
        commit.author_timezone = commit.commit_timezone = 0
        commit.message = f"Merge pull request #{pull.number} from {pull.head}\n\n{pull.title}\n".encode()
        self._repository.object_store.add_object(commit)
        return ObjectID(commit.id)

    def _can_merge(self, pull: Pull) -> bool:
        base = self.branch(pull.base)
        if pull.state != "open" or base is None:
            return False
        head = ObjectID(pull.head_commit.encode())
        left = self.history.merge_base(base, head)
        if left == base:
            return True
        ours, theirs = commit_of(self._repository, base.decode()), commit_of(self._repository, head.decode())
        before = None if left is None else commit_of(self._repository, left.decode()).tree
        return is_mergeable(self._objects, before, ours.tree, theirs.tree, LineMerges(self._objects))

    def diff(self, pull: Pull) -> Diff:
        newest = self.history.commit(ObjectID(pull.head_commit.encode()))
        oldest = self.history.commit(ObjectID(pull.base_commit.encode())) if pull.base_commit else None
        return Diff(self._objects, None if oldest is None else oldest.tree, None if newest is None else newest.tree)

    def page(self, pull: Pull, public: PullRequest, first_file: int) -> PullRequestPage:
        head = ObjectID(pull.head_commit.encode())
        start = ObjectID(pull.base_commit.encode()) if pull.base_commit else None
        diff = self.diff(pull)
        commits = self.history.between(start, head) if start is not None else []
        return PullRequestPage(
            pull_request=public,
            body=pull.body,
            created_at=pull.created_at,
            commits=list(_shown(commits[:MAX_COMMITS_SHOWN])),
            files=diff.page(first_file),
            truncated=diff.is_cut or len(commits) > MAX_COMMITS_SHOWN,
            mergeable=self._can_merge(pull),
            closed_at=pull.closed_at,
            merge_commit=pull.merge_commit,
            first_file=first_file,
            file_count=len(diff),
            version=version_of(pull),
        )


def version_of(pull: Pull) -> str:
    """Return a name for what a page shows: the beginnings of the commits before and after the changes."""
    return f"{pull.base_commit[:10]}-{pull.head_commit[:10]}"


def _shown(commits: Iterable[tuple[ObjectID, Commit]]) -> Iterator[PullRequestCommit]:
    """Yield the commits as a page shows them: the first ones with whole messages, the others with the beginnings."""
    left = MAX_MESSAGES
    for name, commit in commits:
        message = commit.message[: max(left, MAX_SUBJECT)].decode("utf-8", "replace")
        left -= len(message)
        try:
            at = datetime.fromtimestamp(commit.commit_time, UTC)
        except (OverflowError, OSError, ValueError):
            at = datetime.fromtimestamp(0, UTC)  # written by a stranger
        yield PullRequestCommit(
            commit=name.decode(),
            author=commit.author[:MAX_SUBJECT].decode("utf-8", "replace"),
            message=message,
            committed_at=at,
        )


@contextmanager
def _written(folder: Path, pull: Pull) -> Iterator[Path]:
    """A file with the pull request, flushed, under a name of its own until the block gives it another."""
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=".new", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(pull)))
            file.flush()
            os.fsync(file.fileno())
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
