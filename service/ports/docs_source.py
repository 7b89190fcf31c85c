"""A documentation repository in git: read a commit, write a commit on top of it, push it. There is no work tree."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from service.domain.projects.settings import CodeHostKind

LEFT_OUT, REASON, MAY_HOLD_PAGES = b"V", "DOCSMITH.reason", "DOCSMITH.folder"
"""In an archive of ``export``: the type of a member that is left out (GNU's for a volume's label, which no repository
holds), and its PAX headers.
"""

PAGE_BYTES: Mapping[str, int] = {
    **dict.fromkeys(("md", "mdx", "markdown", "rst"), 1 << 20),
    **dict.fromkeys(("html", "htm"), 4 << 20),
    **dict.fromkeys(("json", "yaml", "yml"), 8 << 20),
    "ipynb": 10 << 20,
}
"""The most that is read of a kind of page, by its suffix. The longest page of large public documentation has 0.6 MB;
notebooks hold images, and the description of an API is one file.
"""
OTHER_BYTES = 2 << 20
"""The most that is read of any other file: configuration, what pages include."""


def size_limit(path: str) -> int:
    """Return the number of bytes up to which a file of this name can be read for the index."""
    return PAGE_BYTES.get(path.rpartition(".")[2].lower(), OTHER_BYTES)


class LeftOut(Struct, frozen=True):
    """A file or folder of a commit that is not handed on, and why."""

    path: str
    """As it can be shown: what cannot be is escaped."""
    reason: str
    may_hold_pages: bool = False
    """It is, or may be, a folder."""


class Source(Struct, frozen=True):
    """Which repository, and how to reach it."""

    project_id: str
    repository: str
    """As the operator gave it; the ``local`` code host keeps a repository of its own, made from it once."""
    ref: str
    docs_folder: str
    code_host: CodeHostKind
    api_url: str = ""
    git_token_env: str = ""
    """The variable that holds the token. Its value, or that of the same name with ``_FILE`` at its end: a file."""
    github_app_id: str = ""
    github_app_key_env: str = ""
    """The variable, or with ``_FILE`` the file, that holds the App's private key."""
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    context: str = ""
    """The name of the context repository that this is: it is fetched with some history, and only read."""
    guarded: bool = False
    """Its server must have a public address, unless the service's settings allow others; its folder must be one that
    people may make projects of.
    """
    public: bool = False
    """The text of a context repository may be quoted."""
    token_id: str = ""
    """The name under which the vault keeps the token, instead of a variable."""
    follows: tuple[str, ...] = ()
    """The names that the default branch has had, the last one ``ref``; empty where the branch was chosen."""


class Fetched(Struct, frozen=True):
    base_commit: str
    """Commit of the source's ref."""
    branch_commit: str | None
    """Commit of the branch that was asked for, when it exists."""
    ref: str = ""
    """The branch or tag that was fetched of a context repository."""


class TreeFile(Struct, frozen=True, gc=False):
    """A plain file of a commit: symbolic links, submodules and names that no safe tree holds are left out.

    There are tens of thousands; not tracked by the collector, they do not make it stop every thread to look at them.
    """

    path: str
    """From the root of the repository, ``/`` between its parts."""
    blob: str
    executable: bool = False


class MergedCommit(Struct, frozen=True):
    """The second parent of a merge, and the commit that both parents come from."""

    commit: str
    base: str


class NewCommit(Struct, frozen=True):
    """All that a commit's id depends on. Author and committer are the same."""

    parent: str
    changes: Mapping[str, str | None]
    """Path to text; None deletes."""
    author: str
    """``Name <mail>``"""
    message: str
    at: datetime
    """Whole seconds, UTC."""
    merged: MergedCommit | None = None
    """Files that the changes do not name are merged whole: each as the parent that changed it since the base has it."""


class WrittenCommit(Struct, frozen=True):
    commit: str
    tree: str


class PastCommit(Struct, frozen=True):
    commit: str
    author: str
    """The name alone."""
    at: datetime
    subject: str


class Past(Struct, frozen=True):
    commits: tuple[PastCommit, ...]
    """Newest first."""
    is_whole: bool
    """Nothing was left out for lack of history."""


class ChangedFile(Struct, frozen=True):
    path: str
    old: str | None
    """The blob before; None when the file was added."""
    new: str | None


class CommitChanges(Struct, frozen=True):
    commit: PastCommit
    files: tuple[ChangedFile, ...]
    more: int
    """Number of files that are not named."""


class Changes(Protocol):
    """What is different in a commit from an earlier one. It can be pickled, and used in another process."""

    @property
    def blobs(self) -> Mapping[str, str | None]:
        """Path → the id of its content now; None: the file is gone, or cannot be read."""

    @property
    def left_out(self) -> Sequence[LeftOut]:
        """Files and folders that differ and are not read now. Their paths are in ``blobs`` too."""

    def open(self) -> AbstractContextManager[Callable[[str, int], bytes | None]]:
        """Return a reader for files of the newer commit, changed or not: at most that number of bytes of a path, None
        where there is no plain file within its ``size_limit``.
        """


class DocsSource(Protocol):
    """Commits and trees are named by their 40 hex digits. Whatever is written is a function of its arguments alone:
    the same ``NewCommit`` gives the same ids, anywhere.
    """

    async def default_branch(self, source: Source) -> str:
        """Return the branch that a repository shows by default; ``main`` for a plain folder. The source's own ref is
        ignored.

        Raises: as ``register``.
        """

    async def register(self, source: Source) -> None:
        """Make sure that the repository can be read; for the ``local`` code host, import it. Safe to repeat.

        Raises:
            Invalid: it is not a repository or folder, or the ref is not in it; the message says what to do.
            Forbidden: credentials are missing or refused.
            Unavailable: out of reach.
        """

    async def forget(self, source: Source) -> None:
        """Remove what ``register`` has imported for a project that is not recorded after all. Safe to repeat."""

    async def fetch(self, source: Source, *, branch: str = "") -> Fetched:
        """Bring the ref (and the branch, where it exists) into our bare clone, history not needed. Safe to repeat. Of a
        context repository the ref may be a tag, or empty for its default branch.

        Raises: as ``register``.
        """

    async def keep_contexts(self, source: Source, contexts: Sequence[Source]) -> None:
        """Remove the clones of the source's context repositories but those of these. Safe to repeat."""

    async def refresh(self, source: Source) -> bool:
        """Import into the ``local`` code host's repository the changes, since the last time, of the folder or
        repository that it was made from, or of the upload that the source names while its files are there; return
        whether there were any. False for the other code hosts, whose repositories are the originals. Cheap where
        nothing has changed. Safe to repeat.

        Raises:
            Conflict: a file was changed there and here (``diverged``); nothing was imported.
            Invalid, Forbidden, Unavailable: as ``register``.
        """

    async def list_files(self, source: Source, commit: str) -> Sequence[TreeFile]:
        """Every plain file, sorted by path. Raises NotFound when the commit is not in our clone, Invalid for a tree
        beyond the limits (entries, depth).
        """

    async def left_out(self, source: Source, commit: str, paths: Collection[str]) -> Mapping[str, LeftOut]:
        """Return what stands in the way of plain files at the paths: a symbolic link, a submodule or an unsafe name,
        there or in a folder above; also one whose name differs in case or accents only. Other paths are not named.

        Raises: as ``list_files``.
        """

    async def read_file(self, source: Source, blob: str) -> bytes:
        """Return the content of a blob. Raise Invalid over the size limit, without inflating it."""

    async def read_files(self, source: Source, blobs: Sequence[str]) -> Mapping[str, bytes]:
        """Several at once, in one hop off the event loop; those over the size limit are left out."""

    async def export(self, source: Source, commit: str, archive: Path) -> None:
        """Write every plain file under the docs folder, up to its ``size_limit``, into an uncompressed tar archive.

        Names are paths from the root of the repository. What is left out is an empty member of the type ``LEFT_OUT``
        with its reason in the header ``REASON``.
        """

    async def changes(self, source: Source, before: str, commit: str) -> Changes | None:
        """Return which of the files that ``export`` writes differ from another commit. None where finding out costs as
        much as reading everything, or the other commit is not here any more.
        """

    async def history(self, source: Source, commit: str, path: str, *, limit: int) -> Past:
        """Return the last commits up to this one that changed the file or folder; every commit for an empty path. Some
        of the history is fetched for it; where that fails, what is here is looked through.

        Raises: as ``list_files``, and Unavailable when it takes too long.
        """

    async def changed_by(self, source: Source, commit: str, name: str, paths: Sequence[str]) -> CommitChanges:
        """Return the files that a commit changed, the given one or an earlier one: those that are, or are below, one of
        the paths, all for none. ``name``: its id, or the beginning of it.

        Raises: as ``history``; NotFound when the commit, or the one before it, is not in the history that is here.
        """

    async def compared(
        self, source: Source, commit: str, before: str, after: str, paths: Sequence[str]
    ) -> CommitChanges:
        """Return the files that differ between two commits, as ``changed_by`` does, and the newer commit. Each is given
        by its id, or the beginning of it, as far as it is in the history of ``commit``; or it is a tag or a branch,
        which is fetched. An empty one is ``commit`` itself.

        Raises: as ``changed_by`` and ``fetch``; NotFound for any other name.
        """

    async def merge_base(self, source: Source, *, branch: str, commit: str, base_commit: str) -> str | None:
        """Return the newest commit that a commit of the branch and one of the source's ref both come from. None when
        there is none in as much of the history as is fetched for this.

        Raises: as ``register``.
        """

    async def write_commit(self, source: Source, new: NewCommit) -> WrittenCommit:
        """Write blobs, trees and the commit object into our clone. Safe to repeat.

        Raises:
            Invalid: what the changes name cannot be committed (``bad_path``, ``no_such_file`` …).
            Conflict: both parents of a merge changed a file that the changes do not name (``merge_conflict``).
        """

    async def push(self, source: Source, *, branch: str, commit: str) -> None:
        """Make the branch of the repository point to the commit, by fast-forward only. Safe to repeat.

        Raises:
            Conflict: the branch has other commits (``branch_moved``), or is protected (``branch_protected``).
            Forbidden, Unavailable: as ``register``.
        """
