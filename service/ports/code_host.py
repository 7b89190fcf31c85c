"""Where pull requests live."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from service.ports.docs_source import Source

PullRequestState = Literal["open", "merged", "closed"]

# Codes of errors: API, and a job's ``failure.code``. The DocsSource raises those that can happen with git, too.
TOKEN_MISSING = "token_missing"  # noqa: S105
TOKEN_REFUSED = "token_refused"  # noqa: S105
RIGHTS_MISSING = "rights_missing"
NO_SUCH_REPOSITORY = "no_such_repository"
REPOSITORY_MOVED = "repository_moved"
REPOSITORY_ARCHIVED = "repository_archived"
PULL_REQUEST_REFUSED = "pull_request_refused"
PULL_REQUEST_NOT_FOUND = "pull_request_not_found"
CODE_HOST_UNAVAILABLE = "code_host_unavailable"


class NewPullRequest(Struct, frozen=True):
    title: str
    body: str
    """Markdown."""
    head: str
    base: str
    draft: bool


class PullRequest(Struct, frozen=True):
    number: int
    url: str
    head: str
    base: str
    title: str
    state: PullRequestState
    draft: bool
    body: str = ""


class CheckedRepository(Struct, frozen=True):
    """A code host's answer about a repository, and about what the token may do there."""

    warnings: tuple[str, ...] = ()
    """Sentences for the operator: what could not be found out, what will soon be a problem."""


class CodeHost(Protocol):
    """Errors of every method, besides its own:

    Forbidden: no token (``token_missing``), not taken (``token_refused``), lacking rights (``rights_missing``).
    NotFound: the repository does not exist, or the token may not see it (``no_such_repository``).
    Conflict: it has another address by now (``repository_moved``), accepts no changes (``repository_archived``).
    RateLimited, Unavailable (``code_host_unavailable``): still so after a few tries. The call can be made again later.
    """

    async def check_repository(self, source: Source) -> CheckedRepository:
        """Check whether pull requests can be opened there, as far as the host reports it. Changes nothing."""

    async def open_pull_request(self, source: Source, new: NewPullRequest) -> PullRequest:
        """Open a pull request, or return the one already open for the same head and base branch. Safe to repeat.

        The source's labels and reviewers are added as far as the host does it; one that it refuses stops nothing.

        Raises:
            Conflict: refused, the same call will be refused again: nothing to merge (``no_commits``), a branch that is
                not there (``no_such_branch``), or what else the host says (``pull_request_refused``).
        """

    async def get_pull_request(self, source: Source, number: int) -> PullRequest:
        """Return it as it is now on the host. Raise NotFound (``pull_request_not_found``)."""

    async def update_pull_request(
        self, source: Source, number: int, *, title: str, body: str, draft: bool | None = None
    ) -> PullRequest:
        """Change the title and text of an open one. Safe to repeat.

        ``draft`` True makes it a draft where the host has drafts, False makes it ready, None leaves it as it is.

        Raises:
            NotFound: there is none of this number (``pull_request_not_found``).
            Conflict: it is merged (``pull_request_merged``) or closed (``pull_request_closed``).
        """


MAX_SHOWN_LINE = 2_000
"""Characters of a line of a diff that are shown."""


class DiffLine(Struct, frozen=True, gc=False):
    """A line that both sides have, or that was added or removed."""

    side: Literal["same", "added", "removed"]
    text: str
    """Without the newline that ends it."""
    ends_file_without_newline: bool = False
    is_cut: bool = False
    """The text is the beginning of a longer line."""


class DiffHunk(Struct, frozen=True):
    """Changed lines with some around them. Lines are counted from 1; a side without lines has the number before."""

    first_old: int
    first_new: int
    lines: Sequence[DiffLine]


class Diffed(Struct, frozen=True):
    """One file of a pull request's diff."""

    path: str
    old_path: str
    """Another than ``path`` when the file was moved."""
    kind: Literal["added", "deleted", "changed", "moved"]
    hunks: Sequence[DiffHunk] | None
    """Empty for a binary file; None when they are long, and have a page of their own."""
    added: int | None
    """None: its lines have not been counted."""
    removed: int | None
    binary: bool = False
    lines: int = 0
    """Rows of all hunks with their headings, also where these are left out."""
    is_cut: bool = False
    """The hunks are the beginning of more."""
    is_too_large: bool = False
    """The file is larger than what is read."""


class ComparedChanges(Struct, frozen=True):
    """The files that a job has changed, against the documentation that it began from."""

    files: Sequence[Diffed]
    is_cut: bool = False
    """There are more than are shown."""
    is_readable: bool = True
    """False: the texts are gone, here or by an erasure."""


class PullRequestCommit(Struct, frozen=True):
    commit: str
    author: str
    message: str
    committed_at: datetime


class PullRequestPage(Struct, frozen=True):
    """All that a person wants to see of a pull request of the embedded code host."""

    pull_request: PullRequest
    body: str
    created_at: datetime
    commits: Sequence[PullRequestCommit]
    files: Sequence[Diffed]
    truncated: bool
    """There are more files, or commits, than are looked at."""
    mergeable: bool
    closed_at: datetime | None = None
    merge_commit: str | None = None
    first_file: int = 1
    """The number of the first of ``files`` among all; these are a part when there are many."""
    file_count: int = 0
    """Number of all files of the change; 0: ``files`` has all of them."""
    version: str = ""
    """Names what is compared: with it, a file has the same number."""


class PullRequestFile(Struct, frozen=True):
    """One file of a pull request's diff."""

    title: str
    file: Diffed


class PullRequestTexts(Struct, frozen=True):
    """A file of a pull request before and after it."""

    title: str
    path: str
    before: str | None
    """None: it is not there."""
    after: str | None
    is_text: bool = True
    """Else it is binary, or larger than what is read, and both texts are None."""


class HostedPullRequests(Protocol):
    """The embedded code host as its own pages use it. ``token`` is the unguessable part of the pull request's URL: a
    caller who has it may read and act; a wrong one raises NotFound, like a number that does not exist.
    """

    async def admit(self, project_id: str, number: int, token: str) -> None:
        """Raise NotFound unless the token is right. This costs nearly nothing."""

    async def token(self, project_id: str, number: int) -> str:
        """Return the token of a pull request, for a caller whose access was checked otherwise. Raise NotFound."""

    async def page(self, project_id: str, number: int, token: str, *, first_file: int = 1) -> PullRequestPage:
        """Return the pull request with its files from the given one on.

        Raises:
            NotFound: the pull request does not exist.
            Unavailable: it takes more time than a page may.
            Invalid: it takes more memory.
        """

    async def file(self, project_id: str, number: int, token: str, *, place: int, version: str) -> PullRequestFile:
        """Return a file by its number. Raises as ``page``, and Conflict: the pull request has other commits by now."""

    async def texts(self, project_id: str, number: int, token: str, *, place: int, version: str) -> PullRequestTexts:
        """Return the texts of a file by its number. Raises as ``file``."""

    async def merge(
        self, project_id: str, number: int, token: str, *, now: datetime, version: str = ""
    ) -> PullRequestPage:
        """Merge into the base branch: a fast-forward where possible, else a merge commit. Safe to repeat.

        With the ``version`` of a page, only the commits that this page showed.

        Raises Conflict: it is closed, or both sides changed the same lines (``merge_conflict``), or there are other
        commits than those of the version (``branch_moved``).
        """

    async def close(self, project_id: str, number: int, token: str, *, now: datetime) -> PullRequestPage:
        """Close it without merging. Safe to repeat. Raises Conflict when it is merged."""
