"""What all BriefCounts do. A subclass gives the fixtures ``counts``, those of three instances, and ``pass_seconds``."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from service.ports.shared.brief_counts import BriefCounts, Window

PassSeconds = Callable[[float], Awaitable[None]]

MINUTE = 60_000
SITE, ALL = Window("site", 5, MINUTE), Window("all", 1_000_000, MINUTE)


async def counted(counts: BriefCounts, *windows: Window) -> bool:
    return (await counts.count(windows)).is_counted


class BriefCountsContract:
    async def test_all_instances_together_count_exactly_the_limit(self, counts: Sequence[BriefCounts]):
        window = Window("searches", 200, MINUTE)
        outcomes = await asyncio.gather(*(counted(one, window) for one in counts for _ in range(100)))
        assert sum(outcomes) == 200
        for one in counts:
            found = await one.count([window])
            assert not found.is_counted
            assert found.uses[0].used == 200

    async def test_window_slides(self, counts: Sequence[BriefCounts], pass_seconds: PassSeconds):
        one, two, _ = counts
        assert all([await counted(one, SITE) for _ in range(3)])
        await pass_seconds(40)
        assert [await counted(two, SITE) for _ in range(3)] == [True, True, False]
        refused = await one.count([SITE])
        assert 19_000 < refused.uses[0].reset_milliseconds <= 20_000
        await pass_seconds(20)
        found = [await two.count([SITE]) for _ in range(4)]
        assert [each.is_counted for each in found] == [True, True, True, False]
        assert [each.uses[0].used for each in found] == [3, 4, 5, 5]
        assert 39_000 < found[-1].uses[0].reset_milliseconds <= 40_000

    async def test_thing_counts_in_both_windows_or_in_none(self, counts: Sequence[BriefCounts]):
        one, two, _ = counts
        address, other = Window("address", 2, MINUTE), Window("other", 2, MINUTE)
        for expected in (True, True, False):
            assert await counted(one, SITE, address) is expected
        assert (await two.count([SITE, other])).uses[0].used == 3
        assert [await counted(two, SITE, Window("third", 9, MINUTE)) for _ in range(3)] == [True, True, False]
        assert (await two.count([Window("third", 9, MINUTE)])).uses[0].used == 3
        assert (await one.count([other])).uses[0].used == 2

    async def test_windows_of_many_callers_are_counted_at_once(self, counts: Sequence[BriefCounts]):
        windows = [Window(f"caller {number:03}", number % 4, MINUTE) for number in range(100)]
        asked = [(one, window) for window in windows for one in counts for _ in range(2)]
        outcomes = await asyncio.gather(*(counted(one, ALL, window) for one, window in asked))
        taken: dict[str, int] = {}
        for (_, window), is_counted in zip(asked, outcomes, strict=True):
            taken[window.name] = taken.get(window.name, 0) + is_counted
        assert taken == {window.name: window.limit for window in windows}

    async def test_lowered_limit_refuses_until_few_enough_are_left(
        self, counts: Sequence[BriefCounts], pass_seconds: PassSeconds
    ):
        one, *_ = counts
        for _ in range(5):
            assert await counted(one, SITE)
            await pass_seconds(10)
        found = await one.count([Window("site", 2, MINUTE)])
        assert not found.is_counted
        assert 39_000 < found.uses[0].reset_milliseconds <= 40_000  # then the fourth of five leaves
