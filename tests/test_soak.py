"""What the soak makes of what it saw."""

from scripts.soak_run import Life


def test_a_leak_after_the_warm_up_is_seen_and_the_warm_up_is_none():
    leaking, filling = Life(), Life()
    for second in range(90):
        for life in (leaking, filling):
            life.seconds.append(float(second))
        leaking.memory.append(100_000 * second)
        filling.memory.append(min(second, 30) * 1_000_000)
    assert round(leaking.memory_slope()) == 6_000_000
    assert filling.memory_slope() == 0


def test_the_slowest_hundredth_decides():
    life = Life(delays={0.001: 900, 0.01: 985, 0.025: 995, float("inf"): 1000})
    assert life.delay_p99() == 0.025
