"""A job of the builtin editor on a small site: its changes, its problems, and its message."""

from collections.abc import Mapping

from msgspec import Struct

from service.domain.jobs.decider import Problem
from tests.adapters.builtin_job import job


class Done(Struct, frozen=True):
    files: Mapping[str, str]
    """All files after the job."""
    changed: Mapping[str, str | None]
    """Those that are other than before; None for one that is gone."""
    message: str
    problems: tuple[Problem, ...]


async def done(files: Mapping[str, str], instruction: str) -> Done:
    end, _, after = await job(instruction, files=files)
    changed = {path: after.get(path) for path in {*files, *after} if files.get(path) != after.get(path)}
    return Done(after, changed, end.outcome.message, end.work.remaining_problems or ())
