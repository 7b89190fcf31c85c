"""Things that are done at their times, those of one organization one after the other."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Generic, TypeVar

import structlog

from eventstore import StoreUnavailable, Views
from service.domain.errors import ServiceError, Unavailable
from service.queries.read_models import wait_for_rebuild
from service.workers.fair_slots import FairSlots
from service.workers.retry import retry_while_unavailable

K = TypeVar("K", bound=Hashable)

log = structlog.get_logger()

LONGEST_WAIT_SECONDS = 3600.0
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 30.0, 3600.0
ATTEMPT_SECONDS = 600.0
"""Limit for doing one thing."""


class Attempts(Generic[K]):
    """Does one thing at a time to its end or its error; what fails is tried again after growing pauses."""

    def __init__(self, trouble: str) -> None:
        """``trouble`` is what the log says of a failure."""
        self._trouble = trouble
        self._failures: dict[K, int] = {}

    async def run(self, key: K, act: Callable[[], Awaitable[float | None]], **bound: str | int) -> float | None:
        """Return what ``act`` returns, or the seconds until the next try; ``bound`` goes into the log."""
        asked = 0.0
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                seconds = await act()
        except (ServiceError, StoreUnavailable, TimeoutError) as error:
            asked = (error.retry_after_seconds or 0.0) if isinstance(error, Unavailable) else 0.0
            code = error.code if isinstance(error, ServiceError) else type(error).__name__
            log.warning(self._trouble, code=code, reason=str(error)[:300], **bound)
        except Exception:  # the edge of one thing: the others are done
            log.exception(self._trouble, **bound)
        else:
            self._failures.pop(key, None)
            return seconds
        failures = self._failures[key] = min(self._failures.get(key, 0) + 1, 10)
        return max(asked, min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** (failures - 1)))


class Schedule(Generic[K]):
    """``act`` does one thing and returns the seconds until it is to be done again, None for never."""

    def __init__(self, act: Callable[[K], Awaitable[float | None]], slots: FairSlots) -> None:
        self._act, self._slots = act, slots
        self._due: dict[K, float] = {}
        self._owners: dict[K, str] = {}
        self._busy: set[str] = set()
        self._woken = asyncio.Event()

    def add(self, key: K, owner: str, *, seconds: float = 0.0) -> None:
        """Have it done after this time, or sooner if it is due sooner already."""
        due = asyncio.get_running_loop().time() + seconds
        if due < self._due.get(key, float("inf")):
            self._due[key], self._owners[key] = due, owner
            self._woken.set()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._woken.clear()
                now = asyncio.get_running_loop().time()
                next_due = now + LONGEST_WAIT_SECONDS
                for key, due in sorted(self._due.items(), key=lambda item: item[1]):
                    owner = self._owners[key]
                    if owner in self._busy:
                        continue
                    if due > now:
                        next_due = min(next_due, due)
                        break
                    self._busy.add(owner)
                    group.create_task(self._serve(key, owner))
                await self._wait(next_due - now)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _serve(self, key: K, owner: str) -> None:
        try:
            async with self._slots.held(owner):
                del self._due[key], self._owners[key]  # what is added from now on is done afterwards
                seconds = await self._act(key)
        finally:
            self._busy.discard(owner)
            self._woken.set()
        if seconds is not None:
            self.add(key, owner, seconds=seconds)


async def followed(views: Views, position: int) -> None:
    """Wait until reads show the event at a position, as far as they do within the time for a rebuild."""
    try:
        await retry_while_unavailable(partial(wait_for_rebuild, views, position))
    except TimeoutError:
        log.warning("the read models do not follow", position=position)
