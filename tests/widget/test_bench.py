"""``scripts/bench widget`` in short: it shows an answer whole, and finds the figures that it judges."""

import pytest

from scripts import bench_widget
from tests.dashboard.browsing import CHROMIUM

SECONDS = 3


@pytest.mark.slow
async def test_bench_measures_an_answer_that_is_shown_whole():
    if CHROMIUM is None:
        pytest.skip("needs Chromium: install it to run this")
    pytest.importorskip("playwright.async_api", reason="drives a browser through playwright")
    found = await bench_widget.in_chromium(SECONDS, 1)
    assert found["sent"] == "".join(bench_widget.tokens(SECONDS * bench_widget.PER_SECOND))
    words = {word for word in found["text"].split() if word.isalnum()}
    assert words >= {word for word in found["sent"].split() if word.isalpha()}
    for figures in (found["empty"], found["answer"]):
        assert figures["frames"] > 0
        assert figures["tasks"]
    assert found["answer"]["script_ms"] > found["empty"]["script_ms"]
