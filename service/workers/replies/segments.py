"""When replies under way record what was written: those of one moment together, so that one commit has them all.

A reply is listed once it has something to record, and has no task or clock of its own until then: many replies may
wait for a slow model at a time.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Self

import structlog

log = structlog.get_logger()

SEGMENT_SECONDS = 0.25
"""How much of a reply a crash can lose, and how many events a reply costs, while there are few replies at once."""
REPLIES_OF_A_MOMENT = 16
"""Replies that record their segments together, in one commit; more where there are very many replies. Each moment of an
interval has its own replies, so that the event loop does not handle all of them at once.
"""
MAX_MOMENTS = 16

Record = Callable[[], Coroutine[object, object, None]]


def segment_seconds(replies: int) -> float:
    """Return the seconds between two segments of a reply, while this number of replies is under way.

    To record a segment costs as much as to publish ten pieces of text, so with many replies at once each is recorded
    less often: a crash still loses no more than a second of each.
    """
    if replies <= REPLIES_OF_A_MOMENT:
        return SEGMENT_SECONDS
    return SEGMENT_SECONDS * (2 if replies <= 4 * REPLIES_OF_A_MOMENT else 4)


def moment_of(position: int, replies: int) -> float:
    """Return when in each interval a reply is recorded, as a part of it; ``replies``: how many are under way."""
    moments = min(MAX_MOMENTS, 1 + replies // REPLIES_OF_A_MOMENT)
    return position % moments / moments


class SegmentClock:
    """Has replies recorded at their moments."""

    def __init__(self, replies: Callable[[], int]) -> None:
        """``replies`` returns how many are under way."""
        self._replies = replies
        self._listed: dict[float, list[Record]] = {}
        """By their moments; each has a timer."""
        self._recording: set[asyncio.Task[None]] = set()

    def add(self, moment: float, record: Record) -> None:
        """Have ``record`` called once, at this moment of the interval."""
        listed = self._listed.get(moment)
        if listed is None:
            listed = self._listed[moment] = []
            asyncio.get_running_loop().call_later(self._seconds_to(moment), self._record, moment)
        listed.append(record)

    def _seconds_to(self, moment: float) -> float:
        interval = segment_seconds(self._replies())
        since = (asyncio.get_running_loop().time() - interval * moment) % interval
        return interval - since if since < interval - 0.01 else interval

    def _record(self, moment: float) -> None:
        for record in self._listed.pop(moment, ()):
            task = asyncio.create_task(record(), name="segments")
            self._recording.add(task)
            task.add_done_callback(self._recorded)

    def _recorded(self, task: asyncio.Task[None]) -> None:
        self._recording.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("segments were not written", kind=type(error).__name__)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let what is being recorded end; the end of each reply has recorded the rest."""
        self._listed.clear()
        if self._recording:
            await asyncio.wait(self._recording)
