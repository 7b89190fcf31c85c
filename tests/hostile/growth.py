"""How processor time grows with the size of what is worked on."""

import signal
import statistics
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

LEAST_SECONDS = 0.02
"""Below this a measurement says more of the clock than of the work."""
MOST_SECONDS = 4.0
MOST_GROWTH = 3.0
"""Of the time for twice the size: 2 is linear, 4 is quadratic."""
CLEARLY_LINEAR = 2.4
"""A growth that needs no second measurement."""
LARGEST = 1 << 17
"""What takes under ``LEAST_SECONDS`` at this size is not quadratic: that would take minutes."""


class Hangs(BaseException):
    """The work takes longer than any linear work of its size; no ``except Exception`` stops this."""


def seconds(work: Callable[[T], object], on: T, *, most: float = MOST_SECONDS) -> float:
    """Processor time; raises Hangs."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise Hangs(f"over {most:g} s of processor time")

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, most)
    began = time.process_time()
    try:
        work(on)
        return time.process_time() - began
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)  # a late one would end the process by default


def growth(
    work: Callable[[T], object],
    sized: Callable[[int], T],
    *,
    first: int = 1000,
    largest: int = LARGEST,
    most: float = MOST_SECONDS,
) -> float:
    """By how much more time twice the size takes, where the smaller one takes at least ``LEAST_SECONDS``: the median of
    five where the first is not clearly linear. 1 for what is quicker than that at the largest size.

    Work with a bounded cost for each character looks quadratic until the bound is reached, and a busy machine is
    uneven, so the size grows until the growth is linear, or the work hangs.
    """
    size, worst = first, 1.0
    while size <= largest or (worst > MOST_GROWTH and size <= 8 * largest):
        one = sized(size)
        if seconds(work, one, most=most) >= LEAST_SECONDS:
            two = sized(2 * size)
            found = [seconds(work, two, most=most) / max(seconds(work, one, most=most), 1e-9)]
            while found[0] > CLEARLY_LINEAR and len(found) < 5 and sum(each <= MOST_GROWTH for each in found) < 3:
                # three of five decide
                found.append(seconds(work, two, most=most) / max(seconds(work, one, most=most), 1e-9))
            worst = statistics.median(found)
            if worst <= MOST_GROWTH:
                return worst
        size *= 2
    return worst


def assert_linear(
    work: Callable[[T], object], sized: Callable[[int], T], name: str, *, first: int = 1000, largest: int = LARGEST
) -> None:
    try:
        found = growth(work, sized, first=first, largest=largest)
    except Hangs as error:
        raise AssertionError(f"{name}: {error}") from None
    assert found <= MOST_GROWTH, f"{name}: twice the size takes {found:.1f} times as long"
