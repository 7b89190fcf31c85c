"""Those who wait for the newest events, in a process that is paused."""

import asyncio
from datetime import UTC, datetime

from eventstore.events import Metadata, RecordedEvent
from eventstore.tail import ALL, WOKEN_AT_ONCE, Tail

AT = datetime(2026, 3, 14, tzinfo=UTC)


class PausedLoop(asyncio.SelectorEventLoop):
    """Its process was stopped for some seconds, once or more."""

    paused_seconds = 0.0

    def time(self):
        return super().time() + self.paused_seconds


def test_waiters_are_woken_though_the_process_was_paused_between_two_lots():
    event = RecordedEvent(1, "note-1", 1, "noted", b"{}", None, False, 1, Metadata(), "1", AT, b"")

    async def woken():
        tail = Tail(0, lambda: True)
        waiting = [asyncio.create_task(tail.wait(ALL)) for _ in range(WOKEN_AT_ONCE + 1)]
        await asyncio.sleep(0)
        tail.publish([event])
        loop.paused_seconds = 3600.0
        async with asyncio.timeout(30):
            return await asyncio.gather(*waiting)

    with asyncio.Runner(loop_factory=PausedLoop) as runner:
        loop = runner.get_loop()
        assert runner.run(woken()) == [0] * (WOKEN_AT_ONCE + 1)
