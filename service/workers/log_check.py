"""Checks the whole log for a person who waits for it: one check at a time, in a child process, with its progress."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import Invalid, Unavailable
from service.integrity.verification import CheckedLog, check_log
from service.runtime.processes import run_in_child
from service.runtime.system import now

MAX_SECONDS = 3600
"""A million events take some ten seconds."""

ENDED_EARLY = "It was ended before it was done."


class LogCheckState(Struct, frozen=True):
    """How far the check is that was started last."""

    started_at: datetime
    form: str = ""
    """The form that started it, which starts no other one when it is sent again."""
    position: int = 0
    head: int = 0
    """0 until the first events are read."""
    ended_at: datetime | None = None
    found: CheckedLog | None = None
    failure: str = ""
    """Why there is no result."""

    @property
    def is_running(self) -> bool:
        return self.ended_at is None


class LogCheck:
    def __init__(self, data: Path) -> None:
        self._data = data
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self.state: LogCheckState | None = None

    def start(self, form: str = "") -> bool:
        """Begin a check, once for each ``form``; False where another one is under way."""
        if self.state is not None and form and self.state.form == form:
            return True
        if self.state is not None and self.state.is_running:
            return False
        self._set(LogCheckState(now(), form))
        self._task = asyncio.create_task(self._run(), name="log-check")
        return True

    async def changes(self) -> AsyncGenerator[LogCheckState, None]:
        """Yield the state of the check now and whenever it changes, until it has ended."""
        while (state := self.state) is not None:
            changed = self._changed
            yield state
            if not state.is_running:
                return
            if state is self.state:
                await changed.wait()

    async def close(self) -> None:
        """End a check that is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._end(None, ENDED_EARLY)  # it may have been cancelled before it began

    async def _run(self) -> None:
        found, failure = None, ENDED_EARLY
        try:
            found = await run_in_child(check_log, self._data, timeout_seconds=MAX_SECONDS, on_progress=self._progress)
        except (Unavailable, Invalid) as error:
            failure = str(error)
        finally:
            self._end(found, failure)

    def _end(self, found: CheckedLog | None, failure: str) -> None:
        if self.state is not None and self.state.is_running:
            self._set(replace(self.state, ended_at=now(), found=found, failure="" if found else failure))

    def _progress(self, reached: tuple[int, int]) -> None:
        if self.state is not None:
            position, head = reached
            self._set(replace(self.state, position=position, head=head))

    def _set(self, state: LogCheckState) -> None:
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()
