"""What the soak makes of what it saw."""

import pytest

from scripts.soak_run import Life

pytestmark = pytest.mark.slow


def lived(seconds, memory):
    life = Life()
    for second in range(seconds):
        life.seconds.append(float(second))
        life.memory.append(memory(second))
    return life


def test_leak_after_the_warm_up_is_seen_but_not_the_warm_up():
    leaking = lived(180, lambda second: 1_000 * second + (7_000_000 if second % 3 else 0))
    assert round(leaking.slope(leaking.memory) / 100_000) == 36
    filling = lived(180, lambda second: min(second, 60) * 1_000_000 + second % 5 * 100_000)
    assert filling.slope(filling.memory) == 0
    short = lived(60, lambda second: 1_000 * second)
    assert short.slope(short.memory) is None


def test_growth_between_the_warm_up_and_the_end_is_reported():
    life = lived(90, lambda second: 10 + second % 2 + (5 if second > 70 else 0))
    assert life.growth(life.memory) == 5


def test_the_slowest_hundredth_decides():
    life = Life(delays={0.001: 900, 0.01: 985, 0.025: 995, float("inf"): 1000})
    assert life.delay_p99() == 0.025
