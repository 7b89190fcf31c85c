"""Python looks through all objects seldom, however many there are."""

import gc

import pytest

from service.runtime.memory import seldom_collected


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def takes(clock, seconds):
    """Make a full collection that takes so long."""

    def collected(phase, about):
        if phase == "start" and about["generation"] == 2:
            clock.seconds += seconds

    gc.callbacks.append(collected)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(collected)


@pytest.mark.parametrize(("took", "rest"), [(0.02, 20.0), (2.4, 600.0)])
def test_full_collections_take_a_small_part_of_the_time(took, rest):
    before, clock = gc.get_threshold(), Clock()
    with seldom_collected(clock):
        assert gc.get_threshold() == before
        takes(clock, took)
        assert gc.get_threshold()[2] > 1_000_000_000
        clock.seconds += rest * 0.99
        gc.collect(1)
        assert gc.get_threshold()[2] > 1_000_000_000
        clock.seconds += rest * 0.02
        gc.collect(1)
        assert gc.get_threshold() == before
        takes(clock, took)
    assert gc.get_threshold() == before
