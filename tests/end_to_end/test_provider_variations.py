"""Combinations of what providers do otherwise, in short; scripts/provider-variations tries 200 and more."""

import pytest

from scripts.provider_variations import FRAMINGS, PLACES, run, variations

pytestmark = pytest.mark.slow

COUNT = 30


def test_variations_lose_nothing_and_show_words_alone(tmp_path):
    given = variations(COUNT, seed=3)
    assert {one.framing for one in given} == set(FRAMINGS)
    assert {one.place for one in given} == set(PLACES)
    assert run(tmp_path, COUNT, seed=3) == []
