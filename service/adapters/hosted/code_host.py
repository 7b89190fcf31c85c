"""The embedded code host: pull requests of the repositories in ``hosted/``, without anything but their files.

    hosted/<project>.git/docsmith/pulls/<number>.json    what a person wrote and did
    hosted/<project>.git/refs/pull/<number>/head         the commit, as on other code hosts
    repos/<project>.heads/<hash>                         derived: the numbers of those of a head; beside the
                                                         repositories where several instances share them

git's own state is the truth: a pull request whose head is part of its base is merged, also when another program merged
it. So every operation begins by looking, and a repeat after a crash finds what was done. Writers of one repository take
turns by a lock on a file, across processes, and across machines that share the folder; branches move by
compare-and-swap, because pushes do not take that lock.
"""

import asyncio
import hmac
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from service.adapters.git.repositories import forget_killed_work, forget_old_work
from service.adapters.hosted.pulls import (
    Pull,
    PullRequestText,
    Pulls,
    close,
    look,
    merge,
    open_pull,
    opened_pulls,
    read_pull,
    update,
    version_of,
)
from service.domain.errors import Conflict, NotFound
from service.ports.code_host import (
    NO_SUCH_REPOSITORY,
    CheckedRepository,
    NewPullRequest,
    PullRequest,
    PullRequestFile,
    PullRequestPage,
    PullRequestTexts,
)
from service.ports.docs_source import Source
from service.runtime.file_locks import only_if_free
from service.runtime.hosted_place import HostedPlace
from service.runtime.processes import run_in_child

T = TypeVar("T")

PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
PAGE_SECONDS, PAGE_BYTES = 60.0, 1536 * 1024 * 1024
"""For a page, a merge included, on a machine that has much else to do: most take a tenth of a second."""


def _recover(place: HostedPlace) -> None:
    folder = place.root
    for repository in folder.glob("*.git"):
        if place.is_shared:  # other instances may be at work in it
            forget_old_work(repository)
            continue
        forget_killed_work(repository)
        for left in (repository / "docsmith" / "pulls").glob(".*.new"):
            left.unlink(missing_ok=True)
    for left in folder.glob(".*.git.*.new"):  # of a project whose making was killed
        with only_if_free(folder / f"{left.name.partition('.git.')[0]}.git.lock") as is_free:
            if is_free:
                shutil.rmtree(left, ignore_errors=True)


class HostedCodeHost:
    """CodeHost and HostedPullRequests. ``base_url`` is where people reach this service, without a slash at its end."""

    def __init__(self, data: Path, *, base_url: Callable[[], str], place: HostedPlace | None = None) -> None:
        self._place = place or HostedPlace(data)
        self._base_url = base_url

    async def recover(self) -> None:
        """Free what a killed process held; call it before other processes may be at work in the repositories."""
        if self._place.is_here:
            await asyncio.to_thread(_recover, self._place)

    async def check_repository(self, source: Source) -> CheckedRepository:
        if not await asyncio.to_thread(self._path(source.project_id).is_dir):
            raise NotFound("Repository not found.", code=NO_SUCH_REPOSITORY)
        return CheckedRepository()

    async def open_pull_request(self, source: Source, new: NewPullRequest) -> PullRequest:
        pull = await asyncio.to_thread(self._open_pull, self._path(source.project_id), new, datetime.now(UTC))
        return self.public(source.project_id, pull)

    async def get_pull_request(self, source: Source, number: int) -> PullRequest:
        def read() -> Pull:
            path, known = self._known(source.project_id, number)
            with self._pulls(path) as pulls:
                return look(pulls, known, datetime.now(UTC))

        return self.public(source.project_id, await asyncio.to_thread(read))

    async def update_pull_request(
        self, source: Source, number: int, *, title: str, body: str, draft: bool | None = None
    ) -> PullRequest:
        def write() -> Pull:
            path, known = self._known(source.project_id, number)
            with self._pulls(path) as pulls:
                wanted = PullRequestText(title, body, draft)
                return update(pulls, known, wanted, datetime.now(UTC))

        return self.public(source.project_id, await asyncio.to_thread(write))

    async def admit(self, project_id: str, number: int, token: str) -> None:
        await asyncio.to_thread(self._admitted, project_id, number, token)

    async def token(self, project_id: str, number: int) -> str:
        _, known = await asyncio.to_thread(self._known, project_id, number)
        return known.token

    async def page(self, project_id: str, number: int, token: str, *, first_file: int = 1) -> PullRequestPage:
        return await self._in_child(_page, project_id, number, token, look, datetime.now(UTC), first_file)

    async def file(self, project_id: str, number: int, token: str, *, place: int, version: str) -> PullRequestFile:
        return await self._in_child(_one_file, project_id, number, token, datetime.now(UTC), place, version)

    async def texts(self, project_id: str, number: int, token: str, *, place: int, version: str) -> PullRequestTexts:
        return await self._in_child(_texts, project_id, number, token, datetime.now(UTC), place, version)

    async def merge(
        self, project_id: str, number: int, token: str, *, now: datetime, version: str = ""
    ) -> PullRequestPage:
        return await self._in_child(_page, project_id, number, token, partial(merge, version=version), now, 1)

    async def close(self, project_id: str, number: int, token: str, *, now: datetime) -> PullRequestPage:
        return await self._in_child(_page, project_id, number, token, close, now, 1)

    async def _in_child(self, function: Callable[..., T], *args: object) -> T:
        """Run a function of a code host in a process of its own: it compares what others committed."""
        return await run_in_child(
            _with_host, self._place, self._base_url(), function, args,
            timeout_seconds=PAGE_SECONDS, memory_bytes=PAGE_BYTES,
        )  # fmt: skip

    def _open_pull(self, path: Path, new: NewPullRequest, now: datetime) -> Pull:
        with self._pulls(path) as pulls:
            return open_pull(pulls, new, now)

    def _pulls(self, path: Path) -> AbstractContextManager[Pulls]:
        return opened_pulls(path, self._place.heads_of(path))

    def _path(self, project_id: str) -> Path:
        if not PROJECT.fullmatch(project_id):
            raise NotFound("Repository not found.")
        return self._place.repository(project_id)

    def public(self, project_id: str, pull: Pull) -> PullRequest:
        url = f"{self._base_url()}/hosted/{project_id}/pulls/{pull.number}-{pull.token}"
        return PullRequest(pull.number, url, pull.head, pull.base, pull.title, pull.state, pull.draft, pull.body)

    def _known(self, project_id: str, number: int) -> tuple[Path, Pull]:
        """The repository, and a pull request of it. Raises NotFound."""
        path = self._path(project_id)
        try:
            return path, read_pull(path, number)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound("Pull request not found.", code="pull_request_not_found") from None

    @contextmanager
    def acting(self, project_id: str, number: int, token: str) -> Iterator[tuple[Pulls, Pull]]:
        path, known = self._admitted(project_id, number, token)
        with self._pulls(path) as pulls:
            yield pulls, known

    def _admitted(self, project_id: str, number: int, token: str) -> tuple[Path, Pull]:
        """The pull request by its capability. Raises NotFound, which says the same whatever is wrong."""
        try:
            path, known = self._known(project_id, number)
        except NotFound:
            raise NotFound("Pull request not found.") from None
        if not hmac.compare_digest(known.token.encode(), token.encode("utf-8", "replace")):
            raise NotFound("Pull request not found.")
        return path, known


def _with_host(place: HostedPlace, base_url: str, function: Callable[..., T], args: tuple[object, ...]) -> T:
    return function(HostedCodeHost(place.root.parent, base_url=lambda: base_url, place=place), *args)


def _page(
    host: HostedCodeHost,
    project_id: str,
    number: int,
    token: str,
    act: Callable[[Pulls, Pull, datetime], Pull],
    now: datetime,
    first_file: int,
) -> PullRequestPage:
    with host.acting(project_id, number, token) as (pulls, known):
        pull = act(pulls, known, now)
        return pulls.page(pull, host.public(project_id, pull), first_file)


def _one_file(
    host: HostedCodeHost, project_id: str, number: int, token: str, now: datetime, place: int, version: str
) -> PullRequestFile:
    with host.acting(project_id, number, token) as (pulls, known):
        pull = _of_version(pulls, known, now, version)
        file = pulls.diff(pull).file(place)
        if file is None:
            raise NotFound("Pull request not found.")
        return PullRequestFile(pull.title, file)


def _texts(
    host: HostedCodeHost, project_id: str, number: int, token: str, now: datetime, place: int, version: str
) -> PullRequestTexts:
    with host.acting(project_id, number, token) as (pulls, known):
        pull = _of_version(pulls, known, now, version)
        found = pulls.diff(pull).texts(place)
        if found is None:
            raise NotFound("Pull request not found.")
        path, before, after, is_text = found
        texts = [None if content is None else content.decode("utf-8", "replace") for content in (before, after)]
        return PullRequestTexts(pull.title, path, texts[0], texts[1], is_text)


def _of_version(pulls: Pulls, known: Pull, now: datetime, version: str) -> Pull:
    """Return the pull request as it is now. Raise Conflict when it has other commits than the version names."""
    pull = look(pulls, known, now)
    if version_of(pull) != version:
        raise Conflict("This pull request has other commits by now.", code="branch_moved")
    return pull
