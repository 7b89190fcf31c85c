"""Making a site's index in a child process: how long that may take, and what the child does."""

import os
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import structlog

from service.domain.errors import Invalid, ServiceError
from service.ports.docs_source import Changes
from service.retrieval.index.report import IndexReport
from service.runtime.processes import OUT_OF_MEMORY, run_in_child

log = structlog.get_logger()

MEMORY_BYTES, QUICK_MEMORY_BYTES = 4 * 1024**3, 2 * 1024**3
"""The builder reads what strangers wrote."""
NICENESS = 10
"""Indexing leaves the processors to those who wait for an answer (nice(2))."""


class BuildTimes(NamedTuple):
    """Seconds that an indexing may take, after its repository was fetched."""

    least: float = 120.0
    bytes_a_second: float = 50_000.0
    """On top, by what there is to read; 20 times as slow as large sites are read."""
    most: float = 1_800.0
    quick: float = 60.0
    """Work that takes longer than this, in seconds, counts as long and begins again in a slot for long work."""
    quick_bytes: int = 20_000_000
    """More to read than this is long work from the start."""

    def for_site(self, size: int) -> float:
        """Return the seconds for a site of this size, in bytes."""
        return min(self.most, self.least + size / self.bytes_a_second)


TIMES = BuildTimes()


class Limits(NamedTuple):
    seconds: float
    memory_bytes: int


class SiteCommit(NamedTuple):
    docs_folder: str
    commit: str
    outside: Changes | None = None
    """Reads files outside the folder, which its pages may show."""


Report = Callable[[tuple[int, int]], None]
_T = TypeVar("_T")


async def build_in_child(
    report_progress: Report, target: Path, archive: Path, site: SiteCommit, limits: Limits
) -> IndexReport:
    """Read everything. Raises Unavailable, Invalid as ``run_in_child``, and what ``build_index`` raises."""
    return await _in_child(report_progress, limits, build, target, archive, site)


async def renew_in_child(
    report_progress: Report, before: Path, target: Path, changes: Changes | Path, site: SiteCommit, limits: Limits
) -> IndexReport | None:
    """Read what changed, by ``changes`` or by comparing an archive of all files. None when everything has to be read:
    whatever an index that cannot be read comes to in its reader, a whole one is the cure.
    """
    try:
        return await _in_child(report_progress, limits, renew, before, target, changes, site)
    except (ServiceError, RuntimeError, sqlite3.Error, ValueError, LookupError, OSError, zlib.error) as error:
        log.warning("index not renewed", index=before.name, error=f"{type(error).__name__}: {error}"[:500])
        return None


async def _in_child(report_progress: Report, limits: Limits, work: Callable[..., _T], *arguments: object) -> _T:
    try:
        return await run_in_child(
            work,
            *arguments,
            timeout_seconds=limits.seconds,
            memory_bytes=limits.memory_bytes,
            on_progress=report_progress,
        )
    except Invalid as error:
        if error.code != OUT_OF_MEMORY:
            raise
        raise Invalid(
            f"Out of memory: indexing this site needs more than {limits.memory_bytes >> 20:,} MiB."
            " Split its largest pages, or name a smaller documentation folder.",
            code=OUT_OF_MEMORY,
        ) from error


def renew(before: Path, target: Path, changes: Changes | Path, site: SiteCommit, report: Report) -> IndexReport | None:
    """``renew_index`` as a child process runs it; ``changes`` may also be an archive of all files."""
    from service.retrieval.index.build import renew_from_archive, renew_index  # here alone: this process does without

    _step_back()
    docs_folder, commit = site.docs_folder, site.commit

    def progress(done: int, total: int) -> None:
        report((done, total))

    if isinstance(changes, Path):
        with site.outside.open() if site.outside is not None else nullcontext() as outside:
            return renew_from_archive(
                before, changes, target, docs_folder=docs_folder, commit=commit, progress=progress, outside=outside
            )
    with changes.open() as read:
        return renew_index(
            before, target, read, changes.blobs, docs_folder=docs_folder, commit=commit, progress=progress,
            left_out=changes.left_out,
        )  # fmt: skip


def build(target: Path, archive: Path, site: SiteCommit, report: Report) -> IndexReport:
    """``build_index`` as a child process runs it."""
    from service.retrieval.index.build import build_index

    _step_back()

    def progress(done: int, total: int) -> None:
        report((done, total))

    with site.outside.open() if site.outside is not None else nullcontext() as outside:
        return build_index(
            archive, target, docs_folder=site.docs_folder, commit=site.commit, progress=progress, outside=outside
        )


def _step_back() -> None:
    with suppress(OSError):  # forbidden here
        os.nice(NICENESS)
